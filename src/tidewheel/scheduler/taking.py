"""Takes a run: reads all of it from the store, and sets the stage on which it is driven."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tidewheel.config import SMTP_DEFAULT
from tidewheel.core.graph.graph import Graph
from tidewheel.core.operator.definition import RunOptions, StoredDefinition
from tidewheel.core.operator.requests import RunLease
from tidewheel.core.operator.views import RunView
from tidewheel.core.sched.dependency_index import DependencyIndex
from tidewheel.core.sched.index_builder import build_index
from tidewheel.core.sched.persistence import rebuild
from tidewheel.core.sched.step import new_pool
from tidewheel.errors import RunLost
from tidewheel.platforms import Platform
from tidewheel.ports.store import Store
from tidewheel.runners.python.functions import Functions
from tidewheel.scheduler.broadcasts import Nodes
from tidewheel.scheduler.command_handler import Commands
from tidewheel.scheduler.deferred_stages import LateMeans
from tidewheel.scheduler.event_outbox import Outbox, Telling
from tidewheel.scheduler.mail import MailSettings
from tidewheel.scheduler.restart_options import check_final, options_from_now_on
from tidewheel.scheduler.run_driver import OnBatch, RunDriver, at_once
from tidewheel.scheduler.run_engine import GivenAnew, Stage, Taken
from tidewheel.scheduler.run_files import RunFiles
from tidewheel.scheduler.xtrigger_calls import RunContext, XtriggerSurroundings
from tidewheel.scheduler.xtriggers import Xtriggers
from tidewheel.services.definitions.snapshot import RestoredDefinition, restore
from tidewheel.services.paths import run_directory
from tidewheel.services.service import Surroundings
from tidewheel.services.workflow_state import answer, remembering

Read = Callable[[StoredDefinition, RunOptions, Path], Awaitable[RestoredDefinition]]


async def read_in_thread(
    definition: StoredDefinition, options: RunOptions, directory: Path
) -> RestoredDefinition:
    """A large one takes seconds, for which other runs, and a server beside, need not wait."""
    return await asyncio.to_thread(restore, definition, options, directory)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerHome:
    """Where schedulers of this process work."""

    store: Store
    home: Path
    environment: Mapping[str, str]  # of event handlers
    surroundings: Surroundings
    smtp: str = SMTP_DEFAULT
    trigger_log: Path | None = None
    new_files: Callable[[Path, Path | None], RunFiles] = RunFiles
    pace: Callable[[RunOptions, StoredDefinition], float] = at_once
    read: Read = read_in_thread
    plan_of: Callable[[Graph], DependencyIndex] = build_index  # a test may number otherwise
    platforms: Mapping[str, Platform] = field(default_factory=dict)


def driver_of(
    run: RunView,
    lease: RunLease,
    home: SchedulerHome,
    *,
    given: RunOptions | None = None,
    on_batch: OnBatch | None = None,
) -> RunDriver:
    """Who drives a run that was claimed, with options that are given anew if it goes on."""

    async def open_stage() -> Stage:
        stage = await _open_stage(lease, given, home, driver.wake)
        driver.pace_seconds = home.pace(stage.drive.run.options, stage.definition)
        return stage

    driver = RunDriver(home.store, run, lease, open_stage, home.surroundings, on_batch)
    return driver


async def check_given(run: RunView, given: RunOptions, home: Path, store: Store) -> None:
    """Refuse options with which a run cannot go on, before anybody takes it."""
    options = options_from_now_on(run.name, run.options, given)
    if options.final != run.options.final:
        definition = await store.definition(run.definition)
        directory = run_directory(home, run.name)
        old = restore(definition, run.options, directory)
        new = restore(definition, options, directory)
        check_final(run.name, old.graph, new.graph)


async def _open_stage(
    lease: RunLease, given: RunOptions | None, home: SchedulerHome, wake: Callable[[], None]
) -> Stage:
    taken = await _take(lease, given, home)
    files = home.new_files(run_directory(home.home, taken.run.name), home.trigger_log)
    files.prepare(taken.definition)
    return Stage(
        taken,
        files,
        _xtriggers(taken, files, home, wake),
        Commands(home.store),
        _telling(taken.run, taken.restored, files, home),
        LateMeans(home.store, home.surroundings.clock),
    )


def _telling(
    run: RunView, restored: RestoredDefinition, files: RunFiles, home: SchedulerHome
) -> Telling:
    return Telling(
        run,
        restored,
        files,
        home.surroundings,
        home.environment,
        MailSettings(smtp=home.smtp),
        Outbox(home.store, run.number),
    )


async def deliver_left(run: RunView, home: SchedulerHome) -> int:
    """Calls the handlers of a run that is over and whose scheduler died before it could.

    Answers how many events there were. Who else does it at the same time tells them twice.
    That takes as long as the handlers do; whoever cancels it leaves the rest for the next time.
    """
    store = home.store
    left = await store.undelivered(run.number)
    definition = await store.definition(run.definition)
    restored = await _read(definition, run.options, home, run)
    stored = await store.read_run(run.number)
    files = home.new_files(run_directory(home.home, run.name), None)
    telling = _telling(run, restored, files, home)
    is_settled = False
    try:
        nodes = Nodes(restored.graph, run.options.mode, stored.broadcasts)
        telling.tell_again(left, restored.graph, nodes)
        await telling.settled()
        is_settled = True
    finally:
        await telling.close(is_hurried=not is_settled)
    return len(left)


async def _take(lease: RunLease, given: RunOptions | None, home: SchedulerHome) -> Taken:
    store, number = home.store, lease.run
    run = await store.run(number)
    if run.epoch != lease.epoch:  # nothing may be done in its folder, and no handler be run
        raise RunLost(run.name, lease.epoch, run.epoch)
    definition = await store.definition(run.definition)
    anew = None
    if given is not None and run.batch == lease.batch:  # else it goes on with them by now
        options = options_from_now_on(run.name, run.options, given)
        restored_anew = await _read(definition, options, home, run)
        anew = GivenAnew(given=given, options=options, restored=restored_anew)
    if anew is not None and run.batch == 0:  # nothing has happened yet: it begins with them
        run, restored = replace(run, options=anew.options), anew.restored
    else:
        restored = await _read(definition, run.options, home, run)
    stored = await store.read_run(number)
    past = store.past(number)
    if run.batch == 0:
        across = run.options.prune_across_points
        across = across or restored.settings.scheduler.prune_across_points
        pool = new_pool(restored.graph, past=past, prune_across_points=across)
    else:
        pool = rebuild(home.plan_of(restored.graph), stored.changes, past)
    return Taken(
        run=run,
        lease=RunLease(
            run=number, epoch=lease.epoch, batch=run.batch, lease_seconds=lease.lease_seconds
        ),
        definition=definition,
        restored=restored,
        pool=pool,
        stored=stored,
        undelivered=await store.undelivered(number),
        anew=anew,
        platforms=home.platforms,
    )


async def _read(
    definition: StoredDefinition, options: RunOptions, home: SchedulerHome, run: RunView
) -> RestoredDefinition:
    return await home.read(definition, options, run_directory(home.home, run.name))


def _xtriggers(
    taken: Taken, files: RunFiles, home: SchedulerHome, wake: Callable[[], None]
) -> Xtriggers:
    async def definition_of(run: RunView) -> RestoredDefinition:
        definition = await home.store.definition(run.definition)
        return await _read(definition, run.options, home, run)

    remembered = remembering(definition_of)
    xtriggers = Xtriggers(
        taken.restored.graph,
        XtriggerSurroundings(
            context=RunContext(
                run=taken.run.name,
                user=home.environment.get("USER", ""),
                directory=str(files.directory),
            ),
            functions=Functions(files.directory, home.environment),
            ask=lambda question: answer(home.store, question, remembered),
            clock=home.surroundings.clock,
            wake=wake,
            on_report=home.surroundings.on_report,
        ),
    )
    xtriggers.restore(taken.stored.xtriggers)
    return xtriggers
