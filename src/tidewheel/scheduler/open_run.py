"""Opens a run: reads all of it from the store, and makes the engine that holds it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field, replace
from pathlib import Path

from tidewheel.config import SMTP_DEFAULT
from tidewheel.core.graph.graph import Graph
from tidewheel.core.operator.definition import RunOptions, StoredDefinition
from tidewheel.core.operator.requests import RunLease
from tidewheel.core.operator.views import RunView
from tidewheel.core.sched.dependency_index import DependencyIndex
from tidewheel.core.sched.dependents import near_the_horizon, neighbourhood
from tidewheel.core.sched.index_builder import build_index
from tidewheel.core.sched.persistence import rebuild
from tidewheel.core.sched.step import new_pool
from tidewheel.errors import RunLost
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.platforms import Platform
from tidewheel.ports.store import Store
from tidewheel.scheduler.code_tasks import AuthorFunctions, CodeTasks, QueuedCalls
from tidewheel.scheduler.event_handlers import EventDelivery
from tidewheel.scheduler.pending_batch import HistoryCache
from tidewheel.scheduler.restart_options import RestartOptions, check_final, options_from_now_on
from tidewheel.scheduler.run_driver import OnBatch, RunDriver, at_once
from tidewheel.scheduler.run_engine import OpenedRun, RunEngine
from tidewheel.scheduler.run_files import RunFiles
from tidewheel.scheduler.submissions import DefinitionInForce, EffectiveSettings
from tidewheel.scheduler.xtriggers import RunContext, Xtriggers, XtriggerSurroundings
from tidewheel.services import service
from tidewheel.services.definitions.snapshot import (
    RestoredDefinition,
    check_start,
    restore,
)
from tidewheel.services.paths import run_directory
from tidewheel.services.workflow_state import answer, remembering

Read = Callable[[StoredDefinition, RunOptions, Path], Awaitable[RestoredDefinition]]


async def read_in_thread(
    definition: StoredDefinition, options: RunOptions, directory: Path
) -> RestoredDefinition:
    """Reads a definition in a thread: a large one takes seconds, other runs need not wait."""
    return await asyncio.to_thread(restore, definition, options, directory)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerHome:
    """Holds the store, folders and settings that all schedulers of this process work with."""

    store: Store
    home: Path
    environment: Mapping[str, str]  # of event handlers
    surroundings: service.Surroundings
    smtp: str = SMTP_DEFAULT
    trigger_log: Path | None = None
    new_files: Callable[[Path, Path | None], RunFiles] = RunFiles
    pace: Callable[[RunOptions, StoredDefinition], float] = at_once
    read: Read = read_in_thread
    read_new: service.ReadsDefinitions = (
        service.read_in_thread
    )  # definitions of runs that tasks are
    plan_of: Callable[[Graph], DependencyIndex] = (
        build_index  # a test may number prerequisites otherwise
    )
    platforms: Mapping[str, Platform] = field(default_factory=dict)
    # Whether code of definitions that came from a folder of their owner runs in this process.
    trusts_definitions: bool = False


def driver_of(
    run: RunView,
    lease: RunLease,
    home: SchedulerHome,
    *,
    given: RunOptions | None = None,
    on_batch: OnBatch | None = None,
) -> RunDriver:
    """Returns the driver of a run that was claimed; `given` are options to go on with."""

    async def open_engine() -> RunEngine:
        engine = await _open_engine(lease, given, home, driver)
        driver.pace_seconds = home.pace(engine.run.options, engine.definition)
        return engine

    driver = RunDriver(home.store, run, lease, open_engine, home.surroundings, on_batch)
    return driver


async def check_given(run: RunView, given: RunOptions, home: Path, store: Store) -> None:
    """Raises Refused for options with which a run cannot go on, before anybody takes it."""
    definition = await store.definition(run.definition)
    options = options_from_now_on(run.name, run.options, given, definition.kind)
    if not (given.final or given.stop or given.hold_after):
        return
    directory = run_directory(home, run.name)
    new = restore(definition, options, directory)
    check_start(new.graph, given)
    if options.final != run.options.final:
        check_final(run.name, restore(definition, run.options, directory).graph, new.graph)


async def _open_engine(
    lease: RunLease, given: RunOptions | None, home: SchedulerHome, driver: RunDriver
) -> RunEngine:
    opened = await _read_run(lease, given, home, driver.past)
    files = home.new_files(run_directory(home.home, opened.run.name), home.trigger_log)
    files.prepare(opened.definition)
    in_force = DefinitionInForce(opened.definition, opened.restored)
    code = _code_tasks(opened.run, in_force, home)
    return RunEngine(
        opened,
        files,
        _xtriggers(opened, files, home, driver.wake, code),
        EventDelivery(opened.run, opened.restored, files, home, code),
        (home.store, home.surroundings.clock),
    )


async def deliver_left(run: RunView, home: SchedulerHome) -> int:
    """Calls the handlers of a run that is over and whose scheduler died before it could.

    Returns how many events there were; the caller sees to it that nobody else does it at once.
    It takes as long as the handlers do; what is left if it is cancelled is for the next time.
    """
    store = home.store
    left = await store.undelivered(run.number)
    definition = await store.definition(run.definition)
    restored = await _read(definition, run.options, home, run)
    stored = await store.read_run(run.number)
    files = home.new_files(run_directory(home.home, run.name), None)
    code = _code_tasks(run, DefinitionInForce(definition, restored), home)
    delivery = EventDelivery(run, restored, files, home, code)
    is_settled = False
    try:
        settings = EffectiveSettings(restored.graph, run.options.mode, stored.broadcasts)
        delivery.deliver_again(left, restored.graph, settings)
        await delivery.settled()
        is_settled = True
    finally:
        await delivery.close(is_hurried=not is_settled)
    return len(left)


async def _read_run(
    lease: RunLease, given: RunOptions | None, home: SchedulerHome, past: HistoryCache
) -> OpenedRun:
    store, number = home.store, lease.run
    run = await store.run(number)
    if run.epoch != lease.epoch:  # nothing may be done in its folder, and no handler be run
        raise RunLost(run.name, lease.epoch, run.epoch)
    definition = await store.definition(run.definition)
    restart = None
    if given is not None and run.batch == lease.batch:  # else it goes on with them by now
        options = options_from_now_on(run.name, run.options, given, definition.kind)
        restored_then = await _read(definition, options, home, run)
        restart = RestartOptions(given=given, options=options, restored=restored_then)
    if restart is not None and run.batch == 0:  # nothing has happened yet: it begins with them
        run, restored = replace(run, options=restart.options), restart.restored
    else:
        restored = await _read(definition, run.options, home, run)
    stored = await store.read_run(number)
    if run.batch == 0:
        across = run.options.prune_across_points
        across = across or restored.settings.scheduler.prune_across_points
        pool = new_pool(restored.graph, past=past, prune_across_points=across)
    else:
        plan = home.plan_of(restored.graph)
        pool = rebuild(plan, stored.changes)
        pool.past = past
        if behind := near_the_horizon(pool):
            await past.fetch(store, number, neighbourhood(pool, behind))
            pool = rebuild(plan, stored.changes, past)
    return OpenedRun(
        run=run,
        lease=RunLease(
            run=number, epoch=lease.epoch, batch=run.batch, lease_seconds=lease.lease_seconds
        ),
        definition=definition,
        restored=restored,
        pool=pool,
        past=past,
        stored=stored,
        undelivered=await store.undelivered(number),
        restart=restart,
        platforms=home.platforms,
        code_trusted=home.trusts_definitions,
        read_new=home.read_new,
    )


async def _read(
    definition: StoredDefinition, options: RunOptions, home: SchedulerHome, run: RunView
) -> RestoredDefinition:
    return await home.read(definition, options, run_directory(home.home, run.name))


def _code_tasks(run: RunView, definition: DefinitionInForce, home: SchedulerHome) -> CodeTasks:
    return CodeTasks(home.store, run, definition, is_trusting=home.trusts_definitions)


def _xtriggers(
    opened: OpenedRun,
    files: RunFiles,
    home: SchedulerHome,
    wake: Callable[[], None],
    code: CodeTasks,
) -> Xtriggers:
    async def definition_of(run: RunView) -> RestoredDefinition:
        definition = await home.store.definition(run.definition)
        return await _read(definition, run.options, home, run)

    remembered, clock = remembering(definition_of), home.surroundings.clock
    queued = QueuedCalls(code, opened.run.number, opened.lease.epoch, home.store, clock)
    xtriggers = Xtriggers(
        opened.restored.graph,
        XtriggerSurroundings(
            context=RunContext(
                run=opened.run.name,
                user=home.environment.get("USER", ""),
                directory=str(files.directory),
            ),
            functions=AuthorFunctions(code, files.directory, home.environment, queued),
            ask=lambda question: answer(home.store, question, remembered, opened.run.number),
            clock=clock,
            wake=wake,
            on_report=home.surroundings.on_report,
        ),
    )
    xtriggers.restore(opened.stored.xtriggers)
    return xtriggers
