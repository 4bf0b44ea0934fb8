"""The one place that knows which class stands behind each port.

Command line, clients and demo ask here for a store, a worker or a monitor. Imports are made
when something is asked for: a command that only looks must not load what runs jobs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tidewheel.config import (
    StoreSettings,
    credentials,
    failpoint,
    home_directory,
    own_store_url,
    scheduler_settings,
    store_url,
    submit_limits,
)
from tidewheel.core.tasks.requests import HostProcess
from tidewheel.core.tasks.task import TaskId
from tidewheel.errors import BadSetting, StoreUnreachable, UnsafeStore
from tidewheel.failpoints import Failpoint
from tidewheel.ports import Store, TaskStore

if TYPE_CHECKING:
    from tidewheel.config import MonitorSettings, SchedulerSettings
    from tidewheel.core.runs.definition import RunOptions
    from tidewheel.core.runs.views import RunView
    from tidewheel.run_ports import RunDoor
    from tidewheel.services.alarm import Alarm
    from tidewheel.services.monitor import Monitor
    from tidewheel.services.scheduler.run_driver import OnBatch, RunDriver
    from tidewheel.services.scheduler.standby import Standby
    from tidewheel.services.service import OnReport, Surroundings
    from tidewheel.services.workflow_state import DefinitionOf
    from tidewheel.store.migrate import MigrationReport

STORES_ACCEPTED = (
    "sqlite:///PATH, postgresql://USER@HOST/DATABASE, or the URL of a server, https://HOST"
)
SERVERS = ("http:", "https:")

GARBAGE_THRESHOLD = 10_000  # objects that came and stayed; by default 700


def store_settings(where: str | StoreSettings | None = None) -> StoreSettings:
    """Settings for an address; without one, for what the environment names, for the store
    that this user's server stands before, or for the file in the state directory."""
    if isinstance(where, StoreSettings):
        return where
    url = where or store_url() or _served_url() or own_store_url()
    if not url.startswith(SERVERS):
        return StoreSettings(url=url, submit=submit_limits())
    return StoreSettings(url=url, submit=submit_limits(), credentials=credentials(url))


def _served_url() -> str | None:
    """The running server of this user, if it stands before another store than this file."""
    from tidewheel.config import found_server

    found = found_server(home_directory())
    if found is None or found.store == own_store_url():
        return None
    return found.url if is_process_alive(found.process) else None


def is_remote(where: str | StoreSettings | None = None) -> bool:
    """Whether the store is a server's, to be asked over HTTP."""
    return store_settings(where).url.startswith(SERVERS)


def require_database(where: str | StoreSettings | None, role: str) -> None:
    """Refused for a server: the role is done where the database is."""
    if is_remote(where):
        raise BadSetting(
            "store",
            store_settings(where).url,
            f"the store itself for {role}: sqlite:///PATH or postgresql://USER@HOST/DATABASE "
            "(--store URL); what a server stands before, its own machine can reach",
        )


def is_embedded(where: str | StoreSettings | None = None) -> bool:
    """Whether the store is a file of this machine, with nobody else to watch over it."""
    return store_settings(where).url.startswith("sqlite:")


def store_exists(where: str | StoreSettings | None = None) -> bool:
    """Whether there is anything to look at: opening a file would make it."""
    if not is_embedded(where):
        return True
    from tidewheel.store.sqlite_file import file_path

    return file_path(store_settings(where).url).exists()


def open_store(where: str | StoreSettings | None = None) -> Store:
    """The store at an address; without one, that of this user."""
    settings = store_settings(where)
    match scheme := settings.url.partition(":")[0]:
        case "sqlite":
            from tidewheel.store.sqlite import open_sqlite_store

            try:
                return open_sqlite_store(settings, failpoint=this_failpoint())
            except OSError as error:
                raise StoreUnreachable(
                    f"the store {settings.url} cannot be opened ({error.strerror}); "
                    "check that its folder is there and can be written"
                ) from error
        case "postgresql" | "postgres":
            _require_psycopg()
            from tidewheel.store.postgres import open_postgres_store

            return open_postgres_store(settings, failpoint=this_failpoint())
        case "http" | "https":
            from tidewheel.store.remote import open_remote_store

            # It has the parts of a Store that can be asked of a server, and refuses the rest.
            return cast("Store", open_remote_store(settings))
        case _:
            # The scheme alone: an address may hold a password.
            raise BadSetting("store", f"{scheme}:…", STORES_ACCEPTED)


def with_readers_of(store: Store, second: Store) -> Store:
    """A store that writes as the first and looks as the second, on one file."""
    from tidewheel.store.facade import ScriptedStore
    from tidewheel.store.shared_writer import SharedWriter

    assert isinstance(store, ScriptedStore) and isinstance(second, ScriptedStore)
    return SharedWriter(store, second)


@cache
def this_failpoint() -> Failpoint:
    """One for the whole process: all its parts count together how often they got there."""
    return failpoint()


@asynccontextmanager
async def opened_store(where: str | StoreSettings | None = None) -> AsyncIterator[Store]:
    """A store that is closed at the end of the block."""
    store = open_store(where)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def awaited_store(
    where: str | StoreSettings | None,
    wait_seconds_max: float,
    stop: Alarm,
    stop_asked: Callable[[], bool],
    on_report: OnReport | None = None,
) -> AsyncIterator[Store | None]:
    """A store that may not answer yet; None if asked to stop before it did.

    A file that cannot be opened is a mistake, and waiting mends no mistake.
    """
    from tidewheel.services.opening import open_patiently

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


def migrate_store(where: str | StoreSettings | None = None) -> MigrationReport:
    """Bring a store to the schema of this program."""
    require_database(where, "a migration")
    settings = store_settings(where)
    match scheme := settings.url.partition(":")[0]:
        case "sqlite":
            from tidewheel.store.sqlite_file import migrate_sqlite

            return migrate_sqlite(settings)
        case "postgresql" | "postgres":
            _require_psycopg()
            from tidewheel.store.postgres import connect, translated
            from tidewheel.store.postgres_schema import migrate

            with translated(), connect(settings) as connection:
                return migrate(connection)
        case _:
            # The scheme alone: an address may hold a password.
            raise BadSetting("store", f"{scheme}:…", STORES_ACCEPTED)


def _require_psycopg() -> None:
    from importlib.util import find_spec

    if find_spec("psycopg") is None:
        raise UnsafeStore(
            "PostgreSQL needs the driver psycopg, which is not installed. "
            "Install it: pip install 'tidewheel[postgres]'"
        )


def spare_garbage_collector() -> None:
    """For a process that does nothing but work: what it has loaded by now stays.

    The collector would search all of it again and again while tasks come and go by the
    thousand, which was a fifth of a worker's time. An application decides this for itself.
    """
    import gc

    gc.freeze()  # without a collection first: it would find next to nothing, in 20 ms
    gc.set_threshold(GARBAGE_THRESHOLD)


def this_process() -> HostProcess:
    """This process, so that it can be told apart from any later one."""
    from tidewheel.runners import processes

    return processes.this_process()


def is_process_alive(process: HostProcess) -> bool:
    """Whether a process may still run; False only where its death can be proven from here."""
    from tidewheel.runners import processes

    return processes.is_process_alive(process)


def listener_on(port: int) -> str:
    """Which process of this machine listens there, for people; empty if nobody can tell."""
    from tidewheel.runners import listeners

    return listeners.listener_on(port)


def attempt_directory(home: Path, store_id: str, task_seq: int, attempt: int) -> Path:
    """Where the files of an attempt are, on the host that ran it."""
    from tidewheel.services.worker import STORE_ID_LENGTH

    return home / "tasks" / store_id[:STORE_ID_LENGTH] / str(task_seq) / str(attempt)


def submission_directory(home: Path, task_id: TaskId, attempt: int) -> Path:
    """The same for a submission of a run."""
    from tidewheel.core.runs.job_names import read_job_name

    name = read_job_name(task_id)
    return home / "runs" / name.run / name.log_folder(attempt)


def run_door(
    store: TaskStore, home: Path, definition_of: DefinitionOf | None = None
) -> RunDoor:
    """The runs of a store, or of the server that it stands for; ``home`` holds their files."""
    from tidewheel.run_ports import BringsRunDoor
    from tidewheel.services.run_door import StoreRunDoor

    if isinstance(store, BringsRunDoor):
        return store.run_door()
    return StoreRunDoor(cast("Store", store), home, definition_of)


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
    from tidewheel.core.runs.requests import RunClaim
    from tidewheel.runners.processes import is_process_alive
    from tidewheel.services.scheduler.handlers_voice import handlers_voice
    from tidewheel.services.scheduler.pace import as_compatible
    from tidewheel.services.scheduler.run_owner import take_folder
    from tidewheel.services.scheduler.taking import SchedulerHome, check_given, driver_of

    if given is not None:
        await check_given(run, given, home, store)
    make_private_directory(home)
    take_folder(run, home)
    how = settings or scheduler_settings()
    is_dead = run.owner is not None and not is_process_alive(run.owner)
    claim = RunClaim(
        run=run.number,
        process=this_process(),
        lease_seconds=how.lease_seconds,
        dead_epoch=run.epoch if is_dead else None,
    )
    lease = await store.claim_run(claim)
    limit = store_settings(where).submit.message_bytes_max
    async with handlers_voice(store, run, home, limit) as environment:
        scheduler_home = SchedulerHome(
            store=store,
            home=home,
            environment=environment,
            surroundings=surroundings(on_report),
            smtp=how.smtp,
            trigger_log=trigger_log,
            pace=as_compatible,
        )
        yield driver_of(run, lease, scheduler_home, given=given, on_batch=on_batch)


def build_standby(
    where: str | StoreSettings | None,
    store: Store,
    settings: SchedulerSettings,
    home: Path,
    *,
    on_report: OnReport | None = None,
    on_batch: OnBatch | None = None,
) -> Standby:
    """Whoever takes over runs of this store."""
    from tidewheel.services.scheduler.standby import Standby

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

    return Standby(store, drive, settings, surroundings(on_report))


def build_monitor(
    store: Store, settings: MonitorSettings, on_report: OnReport | None = None
) -> Monitor:
    """A monitor of this store."""
    from tidewheel.services.monitor import Monitor

    return Monitor(store, settings, surroundings(on_report))


def surroundings(on_report: OnReport | None) -> Surroundings:
    from tidewheel.services.clock import SystemClock
    from tidewheel.services.service import Surroundings, tell_nobody

    return Surroundings(
        clock=SystemClock(), on_report=on_report or tell_nobody, failpoint=this_failpoint()
    )


def make_private_directory(path: Path) -> None:
    """The state directory, which nobody else may enter (S31)."""
    from tidewheel.runners import job_directory

    job_directory.make_private_directory(path)
