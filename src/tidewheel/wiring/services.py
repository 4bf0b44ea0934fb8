"""Builds services with everything that they need: schedulers, monitors, notifiers, views."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from tidewheel.config import (
    RULES_FILE,
    ProcessLimits,
    StoreSettings,
    Where,
    home_directory,
    scheduler_settings,
)
from tidewheel.ports.runs import BringsDoors, BringsNotifications
from tidewheel.ports.store import Store
from tidewheel.wiring.machine import is_process_alive, make_private_directory, this_process
from tidewheel.wiring.stores import (
    is_embedded,
    is_remote,
    open_store,
    opened_store,
    store_settings,
    this_failpoint,
)

if TYPE_CHECKING:
    from tidewheel.config import MonitorSettings, SchedulerSettings
    from tidewheel.core.operator.definition import RunOptions, StoredDefinition
    from tidewheel.core.operator.views import RunView
    from tidewheel.ports.runs import Arguments, BlockDoor, Document, RegistryDoor, RunDoor
    from tidewheel.scheduler.open_run import Read, SchedulerHome
    from tidewheel.scheduler.run_driver import OnBatch, RunDriver
    from tidewheel.services.definitions.snapshot import RestoredDefinition
    from tidewheel.services.monitor import Monitor
    from tidewheel.services.notifications.delivery import DeliveryMeans
    from tidewheel.services.notifications.notifier import NotifierService
    from tidewheel.services.service import (
        OnReport,
        ReadsDefinitions,
        Surroundings,
        Wakeup,
    )
    from tidewheel.services.workflow_state import DefinitionOf
    from tidewheel.wiring.limited_process import LimitedProcess


# A run belongs to the notebook of its number modulo this; its holder delivers what they left.
OUTBOX_NOTEBOOKS = 64


@asynccontextmanager
async def awaited_store(
    where: Where,
    wait_seconds_max: float,
    stop: Wakeup,
    stop_asked: Callable[[], bool],
    on_report: OnReport | None = None,
) -> AsyncIterator[Store | None]:
    """Opens a store that may not answer yet, and waits until it does; yields None if asked to
    stop before.

    A file is not waited for: one that cannot be opened is a mistake, and waiting mends no
    mistake.
    """
    from tidewheel.services.service import open_patiently

    if is_embedded(where):
        wait_seconds_max = 0.0

    async def open_and_ask() -> Store:
        # Connecting may take many seconds; a thread lets signals through meanwhile.
        store = await asyncio.to_thread(open_store, where)
        if is_remote(where):
            try:
                await store.store_id()  # nothing was asked of the server yet
            except BaseException:
                await store.close()
                raise
        return store

    around = surroundings(on_report)
    store = await open_patiently(open_and_ask, around, stop, stop_asked, wait_seconds_max)
    try:
        yield store
    finally:
        if store is not None:
            await store.close()


@asynccontextmanager
async def driving(  # noqa: PLR0913 - each by name
    where: Where,
    store: Store,
    run: RunView,
    home: Path,
    *,
    given: RunOptions | None = None,
    settings: SchedulerSettings | None = None,
    trigger_log: Path | None = None,
    on_batch: OnBatch | None = None,
    on_report: OnReport | None = None,
    read: Read | None = None,
) -> AsyncIterator[RunDriver]:
    """Takes the lease of one run, and yields the driver that advances the run.

    If the scheduler that held the lease is provably dead, the lease need not run out first.
    ``given`` are options with which a run is carried on instead of those that it has.
    """
    from tidewheel.core.operator.requests import RunClaim
    from tidewheel.scheduler.open_run import check_given, driver_of

    if given is not None:
        await check_given(run, given, home, store)
    make_private_directory(home)
    await _take_folder(store, run, home)
    how = settings or scheduler_settings()
    is_dead = run.owner is not None and not is_process_alive(run.owner)
    claim = RunClaim(
        run=run.number,
        process=this_process(),
        lease_seconds=how.lease_seconds,
        dead_epoch=run.epoch if is_dead else None,
        seen_epoch=run.epoch,
    )
    lease = await store.claim_run(claim)
    async with _scheduler_home(where, store, run, home, how, on_report) as made:
        scheduler_home = replace(made, trigger_log=trigger_log, read=read or made.read)
        yield driver_of(run, lease, scheduler_home, given=given, on_batch=on_batch)


T = TypeVar("T")

# Giant runs: one of them would keep all others of its scheduler waiting for many seconds, again
# and again. Each is driven, and looked at, by a process of its own.

GIANT_SIZE = 3_000  # tasks, lines, values; to read so many takes a third of a second


class RunProcess:
    """Drives a giant run in a process of its own; for its scheduler it is like a driver."""

    def __init__(
        self, name: str, work: Callable[[], tuple[str, str]], limits: ProcessLimits
    ) -> None:
        self.status, self.reason = "", ""
        self._name, self._work, self._limits = name, work, limits
        self._process: LimitedProcess | None = None
        self._stop_asked = False
        self.on_report: OnReport | None = None

    async def run(self) -> None:
        """Drives the run until it is over, or is given back because of ``ask_stop``."""
        from tidewheel.wiring.limited_process import LimitedProcess

        outcome: Future[tuple[str, str]] = Future()
        outcome.set_running_or_notify_cancel()
        process = self._process = LimitedProcess(os.environ)

        def body() -> None:
            try:
                told = process.call(self._work, self._limits, self._name, self.on_report)
                outcome.set_result(told)
            except BaseException as error:
                outcome.set_exception(error)

        threading.Thread(target=body, name=f"run {self._name}", daemon=True).start()
        if self._stop_asked:
            process.ask_stop()
        try:
            self.status, self.reason = await asyncio.wrap_future(outcome)
        finally:
            process.kill()

    def ask_stop(self) -> None:
        self._stop_asked = True
        if self._process is not None:
            self._process.ask_stop()


@asynccontextmanager
async def driving_apart(  # noqa: PLR0913 - each by name
    where: Where,
    store: Store,
    run: RunView,
    home: Path,
    *,
    settings: SchedulerSettings,
    on_batch: OnBatch | None = None,
    on_report: OnReport | None = None,
) -> AsyncIterator[RunDriver | RunProcess]:
    """Yields what advances a run that waits for a scheduler: a driver in this process, as
    ``driving`` does, or one in a process of its own if the run is a giant."""
    from tidewheel.formats.growth import Outgrown

    try:
        read = await _read_small(store, run, home)
    except Outgrown:
        work = partial(drive_in_process, store_settings(where), run, home, settings)
        limits = ProcessLimits(memory_bytes=settings.run_memory_bytes_max)
        giant = RunProcess(run.name, work, limits)
        giant.on_report = on_report
        yield giant
        return
    shared: Any = {"given": run.given, "settings": settings, "read": read}
    shared |= {"on_batch": on_batch, "on_report": on_report}
    async with driving(where, store, run, home, **shared) as driver:
        yield driver


async def _read_small(store: Store, run: RunView, home: Path) -> Read | None:
    """Reads the definition of a run with the options that it goes on with, and returns a
    function that knows it; raises Outgrown if it is a giant's.

    Other mistakes are left to the driver, which says what has to be said.
    """
    from tidewheel.core.operator.definition import PYTHON
    from tidewheel.errors import Refused
    from tidewheel.formats.growth import Outgrown, bounded_growth
    from tidewheel.scheduler.open_run import read_in_thread
    from tidewheel.services.paths import run_directory

    definition = await store.definition(run.definition)
    if definition.kind == PYTHON:  # its code runs in its own folder only
        return None
    directory = run_directory(home, run.name)
    try:
        with bounded_growth(GIANT_SIZE):
            restored = await read_in_thread(definition, run.options, directory)
    except Outgrown:
        raise
    except (Refused, OSError):
        return None

    async def read(
        asked: StoredDefinition, options: RunOptions, folder: Path
    ) -> RestoredDefinition:
        known = (definition.digest, run.options, directory)
        if (asked.digest, options, folder) == known:
            return restored
        return await read_in_thread(asked, options, folder)

    return read


async def _read_apart(settings: SchedulerSettings, name: str, work: Callable[[], T]) -> T:
    """Does work that reads the definition of a new run: in a thread, or in a process of its own
    if the definition turns out to be a giant's."""
    from tidewheel.errors import Refused
    from tidewheel.formats.growth import Outgrown, bounded_growth
    from tidewheel.wiring.limited_process import LimitedProcess, ProcessDied

    try:
        with bounded_growth(GIANT_SIZE):
            return await asyncio.to_thread(work)
    except Outgrown:
        limits = ProcessLimits(memory_bytes=settings.run_memory_bytes_max)
        process = LimitedProcess(os.environ)
        try:
            return await asyncio.to_thread(process.call, work, limits, name)
        except ProcessDied as died:
            raise Refused(f"{name} cannot be read: {died}") from None
        finally:
            process.kill()


def drive_in_process(
    where: StoreSettings, run: RunView, home: Path, settings: SchedulerSettings
) -> tuple[str, str]:
    """Drives one run in this process, which was made for it; returns how it ended, and why."""
    return asyncio.run(_drive(where, run, home, settings))


async def _drive(
    where: StoreSettings, run: RunView, home: Path, settings: SchedulerSettings
) -> tuple[str, str]:
    from tidewheel.wiring.limited_process import report

    async with opened_store(where) as store:
        shared: Any = {"given": run.given, "settings": settings, "on_report": report}
        async with driving(where, store, run, home, **shared) as driver:
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, driver.ask_stop)
            await driver.run()
            return driver.status, driver.reason


def look_in_process(
    where: StoreSettings, home: Path, view: str, arguments: Arguments
) -> Document:
    """Returns a view of a run, worked out in this process."""

    async def look() -> Document:
        async with opened_store(where) as store:
            return await run_door(store, home).look(view, arguments)

    return asyncio.run(look())


def show_in_process(where: StoreSettings, home: Path, view: str, arguments: Arguments) -> bytes:
    """Returns a view of a run as JSON, worked out and written in this process."""
    return msgspec.json.encode(look_in_process(where, home, view, arguments))


def snapshot_in_process(where: StoreSettings, home: Path, run: RunView) -> bytes:
    """Returns the state of a run from which its events go on, as JSON."""
    from tidewheel.views.events import run_snapshot

    async def look() -> bytes:
        async with opened_store(where) as store:
            return msgspec.json.encode(await run_snapshot(store, run, home))

    return asyncio.run(look())


def carry_on_in_process(
    where: StoreSettings, home: Path, run: str, given: RunOptions
) -> RunView:
    """Asks any scheduler to go on with a run, which is read in this process."""

    async def ask() -> RunView:
        async with opened_store(where) as store:
            return await run_door(store, home).carry_on(run, given)

    return asyncio.run(ask())


async def deliver_left(
    where: Where,
    store: Store,
    run: RunView,
    home: Path,
    settings: SchedulerSettings,
    on_report: OnReport | None = None,
) -> int:
    """Calls the event handlers of an ended run that its scheduler did not call before it died.

    Returns the number of events whose handlers were called; 0 while another process does it.
    """
    from tidewheel.scheduler.open_run import deliver_left
    from tidewheel.services.notebook import Owner, held_notebook

    name = f"outbox {run.number % OUTBOX_NOTEBOOKS}"
    owner = Owner(this_process(), secrets.token_hex(8))
    async with held_notebook(store, name, owner, is_process_alive) as is_held:
        if not is_held:
            return 0
        await _take_folder(store, run, home)
        made = _scheduler_home(where, store, run, home, settings, on_report)
        async with made as scheduler_home:
            return await deliver_left(run, scheduler_home)


async def _take_folder(store: Store, run: RunView, home: Path) -> None:
    from tidewheel.services.paths import note_store, run_directory, take_folder

    take_folder(run, home)
    note_store(run_directory(home, run.name), await store.store_id())


@asynccontextmanager
async def _scheduler_home(
    where: Where,
    store: Store,
    run: RunView,
    home: Path,
    settings: SchedulerSettings,
    on_report: OnReport | None,
) -> AsyncIterator[SchedulerHome]:
    """Yields what a run is driven with, and answers commands of its event handlers
    meanwhile."""
    from tidewheel.platforms import read_platforms
    from tidewheel.runners import event_handlers as handlers
    from tidewheel.runners.job_environment import write_programs
    from tidewheel.runners.messages.server import MessageServer
    from tidewheel.scheduler.open_run import SchedulerHome
    from tidewheel.scheduler.run_driver import as_compatible
    from tidewheel.services.job_api import JobApi, handler_caller
    from tidewheel.services.paths import run_directory

    directory = run_directory(home, run.name)
    folder = handlers.handler_folder(directory)
    folder.mkdir(parents=True, exist_ok=True)
    message_bytes_max = store_settings(where).submit.message_bytes_max
    server = MessageServer(home, message_bytes_max, JobApi(run_door(store, home), home))
    secret = secrets.token_urlsafe()
    await server.start()
    try:
        server.expect(secret, folder, handlers.Unheard(), handler_caller(run.name))
        programs = write_programs(home)
        yield SchedulerHome(
            store=store,
            home=home,
            environment=handlers.handler_environment(
                os.environ, run.name, directory, programs, secret
            ),
            surroundings=surroundings(on_report),
            smtp=settings.smtp,
            trusts_definitions=settings.trust_definitions,
            pace=as_compatible,
            platforms=read_platforms(home),
            read_new=partial(_read_apart, settings),
        )
    finally:
        await server.stop()


def build_monitor(
    store: Store,
    settings: MonitorSettings,
    on_report: OnReport | None = None,
    home: Path | None = None,
) -> Monitor:
    """Returns a monitor of this store, which also removes the files of deleted tasks and runs
    below the home."""
    from tidewheel.services.monitor import Monitor

    return Monitor(store, settings, surroundings(on_report), home or home_directory())


def surroundings(on_report: OnReport | None) -> Surroundings:
    from tidewheel.services.service import Surroundings, SystemClock, tell_nobody

    return Surroundings(
        clock=SystemClock(), on_report=on_report or tell_nobody, failpoint=this_failpoint()
    )


# ---- services for requests: of the store, or of the server that it stands for ----


def run_door(
    store: Store,
    home: Path,
    definition_of: DefinitionOf | None = None,
    read: ReadsDefinitions | None = None,
    *,
    by_whole_name: bool = False,
) -> RunDoor:
    """Returns the service for runs: that of the server, if the store is behind one, else one on
    the store; ``home`` holds the files of runs. ``by_whole_name``: see RunService."""
    if isinstance(store, BringsDoors):
        return store.run_door()
    from tidewheel.services.run_service import RunService
    from tidewheel.services.service import read_in_thread

    reading = read or read_in_thread
    return RunService(store, home, definition_of, reading, by_whole_name=by_whole_name)


def block_door(store: Store, home: Path) -> BlockDoor:
    """Returns the service for blocks and objects: that of the server, if the store is behind
    one, else one on the store."""
    if isinstance(store, BringsDoors):
        return store.block_door()
    from tidewheel.services.blocks.service import BlockService

    # A user who can open the store runs what is in it, with rights of their own.
    return BlockService(store, run_door(store, home), home, code_trusted=True)


def registry_door(store: Store, home: Path) -> RegistryDoor:
    """Returns the registry: that of the server, if the store is behind one, else that of the
    store."""
    if isinstance(store, BringsDoors):
        return store.registry_door()
    from tidewheel.services.registry.service import RegistryService

    # A user who can open the store runs what is in it, with rights of their own.
    return RegistryService(store, run_door(store, home), code_trusted=True)


# ---- notifications: the notifier, and the service that shows and tries rules ----


def build_notifier(
    store: Store, home: Path, smtp: str, on_report: OnReport | None = None
) -> NotifierService:
    """Returns the notifier for the rules in this state directory."""
    from tidewheel.services.notifications.notifier import NotifierService, NotifierSettings

    make_private_directory(home)
    settings = NotifierSettings(
        rules=home / RULES_FILE,
        home=home,
        process=this_process(),
        is_alive=is_process_alive,
        means=notification_means(home, smtp),
    )
    return NotifierService(store, settings, surroundings(on_report))


def notification_desk(store: Store, home: Path, smtp: str) -> BringsNotifications:
    """Returns the service that shows notifications and tests rules: that of the server, if the
    store is behind one, else one on the store."""
    if isinstance(store, BringsNotifications):
        return store
    from tidewheel.services.notifications.notifier import NotificationAdmin

    return NotificationAdmin(store, home / RULES_FILE, notification_means(home, smtp))


def notification_means(home: Path, smtp: str) -> DeliveryMeans:
    """Returns the means by which this process sends notifications: folder, SMTP server,
    environment."""
    from tidewheel.runners.job_environment import inherited_environment
    from tidewheel.services.notifications.delivery import DeliveryMeans

    return DeliveryMeans(
        directory=home, smtp=smtp, environment=inherited_environment(os.environ)
    )
