"""Schedulers and monitors with everything that they need."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tidewheel.config import (
    StoreSettings,
    home_directory,
    scheduler_settings,
)
from tidewheel.platforms import read_platforms
from tidewheel.ports.store import Store
from tidewheel.wiring.machine import make_private_directory, this_process
from tidewheel.wiring.stores import (
    is_embedded,
    is_remote,
    open_store,
    store_settings,
    this_failpoint,
)

if TYPE_CHECKING:
    from tidewheel.config import MonitorSettings, SchedulerSettings
    from tidewheel.core.operator.definition import RunOptions
    from tidewheel.core.operator.views import RunView
    from tidewheel.scheduler.run_driver import OnBatch, RunDriver
    from tidewheel.scheduler.service import SchedulerService
    from tidewheel.services.monitor import Monitor
    from tidewheel.services.service import OnReport, Surroundings
    from tidewheel.services.wakeup import Wakeup


@asynccontextmanager
async def awaited_store(
    where: str | StoreSettings | None,
    wait_seconds_max: float,
    stop: Wakeup,
    stop_asked: Callable[[], bool],
    on_report: OnReport | None = None,
) -> AsyncIterator[Store | None]:
    """A store that may not answer yet; None if asked to stop before it did.

    A file that cannot be opened is a mistake, and waiting mends no mistake.
    """
    from tidewheel.services.connect_retry import open_patiently

    if is_embedded(where):
        wait_seconds_max = 0.0
    store = await open_patiently(
        lambda: _open_and_ask(where),
        surroundings(on_report),
        stop,
        stop_asked,
        wait_seconds_max,
    )
    try:
        yield store
    finally:
        if store is not None:
            await store.close()


async def _open_and_ask(where: str | StoreSettings | None) -> Store:
    # Connecting may take many seconds; a thread lets signals through meanwhile.
    store = await asyncio.to_thread(open_store, where)
    if is_remote(where):
        try:
            await store.store_id()  # nothing was asked of the server yet
        except BaseException:
            await store.close()
            raise
    return store


@asynccontextmanager
async def driving(  # noqa: PLR0913 - each by name
    where: str | StoreSettings | None,
    store: Store,
    run: RunView,
    home: Path,
    *,
    given: RunOptions | None = None,
    settings: SchedulerSettings | None = None,
    trigger_log: Path | None = None,
    on_batch: OnBatch | None = None,
    on_report: OnReport | None = None,
) -> AsyncIterator[RunDriver]:
    """A scheduler for one run, which it holds from now on.

    If the one that held it is dead for sure, nobody has to wait for its lease. ``given`` are
    options with which a run is carried on instead of those that it has.
    """
    from tidewheel.core.operator.requests import RunClaim
    from tidewheel.runners.process.processes import is_process_alive
    from tidewheel.scheduler.handler_socket import handler_socket
    from tidewheel.scheduler.open_run import SchedulerHome, check_given, driver_of
    from tidewheel.scheduler.run_driver import as_compatible
    from tidewheel.scheduler.run_folder_lock import note_store, take_folder
    from tidewheel.services.paths import run_directory

    if given is not None:
        await check_given(run, given, home, store)
    make_private_directory(home)
    take_folder(run, home)
    note_store(run_directory(home, run.name), await store.store_id())
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
    limit = store_settings(where).submit.message_bytes_max
    async with handler_socket(store, run, home, limit) as environment:
        scheduler_home = SchedulerHome(
            store=store,
            home=home,
            environment=environment,
            surroundings=surroundings(on_report),
            smtp=how.smtp,
            trigger_log=trigger_log,
            pace=as_compatible,
            platforms=read_platforms(home),
        )
        yield driver_of(run, lease, scheduler_home, given=given, on_batch=on_batch)


async def deliver_left(
    where: str | StoreSettings | None,
    store: Store,
    run: RunView,
    home: Path,
    on_report: OnReport | None = None,
) -> int:
    """Call the event handlers of a run that is over and whose scheduler died before it could;
    of how many events."""
    from tidewheel.scheduler.handler_socket import handler_socket
    from tidewheel.scheduler.open_run import SchedulerHome, deliver_left
    from tidewheel.scheduler.run_folder_lock import note_store, take_folder
    from tidewheel.services.paths import run_directory

    take_folder(run, home)
    note_store(run_directory(home, run.name), await store.store_id())
    limit = store_settings(where).submit.message_bytes_max
    async with handler_socket(store, run, home, limit) as environment:
        scheduler_home = SchedulerHome(
            store=store,
            home=home,
            environment=environment,
            surroundings=surroundings(on_report),
            smtp=scheduler_settings().smtp,
        )
        return await deliver_left(run, scheduler_home)


def build_standby(
    where: str | StoreSettings | None,
    store: Store,
    settings: SchedulerSettings,
    home: Path,
    *,
    on_report: OnReport | None = None,
    on_batch: OnBatch | None = None,
) -> SchedulerService:
    """Whoever takes over runs of this store."""
    from tidewheel.scheduler.service import SchedulerService

    def drive(run: RunView) -> AbstractAsyncContextManager[RunDriver]:
        return driving(
            where,
            store,
            run,
            home,
            given=run.given,
            settings=settings,
            on_batch=on_batch,
            on_report=on_report,
        )

    def deliver(run: RunView) -> Awaitable[int]:
        return deliver_left(where, store, run, home, on_report)

    return SchedulerService(store, drive, settings, surroundings(on_report), deliver)


def build_monitor(
    store: Store,
    settings: MonitorSettings,
    on_report: OnReport | None = None,
    home: Path | None = None,
) -> Monitor:
    """A monitor of this store, which removes files below the home."""
    from tidewheel.services.monitor import Monitor

    return Monitor(store, settings, surroundings(on_report), home or home_directory())


def surroundings(on_report: OnReport | None) -> Surroundings:
    from tidewheel.services.service import Surroundings, tell_nobody
    from tidewheel.services.wakeup import SystemClock

    return Surroundings(
        clock=SystemClock(), on_report=on_report or tell_nobody, failpoint=this_failpoint()
    )
