"""The one place that knows which class stands behind each port.

Command line, clients and demo ask here for a store, a worker or a monitor. Imports are made
when something is asked for: a command that only looks must not load what runs jobs.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tidewheel.config import (
    StoreSettings,
    failpoint,
    read_platforms,
    scheduler_settings,
    store_url,
    submit_limits,
)
from tidewheel.core.tasks.requests import Abilities, HostProcess
from tidewheel.core.tasks.resources import Resources
from tidewheel.core.tasks.task import TaskId
from tidewheel.errors import BadSetting, StoreUnreachable, UnsafeStore
from tidewheel.failpoints import Failpoint
from tidewheel.ports import Runner, Store, TaskStore

if TYPE_CHECKING:
    from tidewheel.config import MonitorSettings, SchedulerSettings, WorkerSettings
    from tidewheel.core.runs.definition import RunOptions
    from tidewheel.core.runs.views import RunView
    from tidewheel.runners.handlers import Handlers
    from tidewheel.services.alarm import Alarm
    from tidewheel.services.monitor import Monitor
    from tidewheel.services.scheduler.run_driver import OnBatch, RunDriver
    from tidewheel.services.scheduler.standby import Standby
    from tidewheel.services.service import OnReport, Surroundings
    from tidewheel.services.shift import Host
    from tidewheel.services.worker import Worker
    from tidewheel.store.migrate import MigrationReport

STORES_ACCEPTED = "sqlite:///PATH or postgresql://USER@HOST/DATABASE"

GARBAGE_THRESHOLD = 10_000  # objects that came and stayed; by default 700

AroundRunner = Callable[[Runner], Runner]


def store_settings(where: str | StoreSettings | None = None) -> StoreSettings:
    """Settings for an address; without one, for the store of this user."""
    if isinstance(where, StoreSettings):
        return where
    return StoreSettings(url=where or store_url(), submit=submit_limits())


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
        case _:
            # The scheme alone: an address may hold a password.
            raise BadSetting("store", f"{scheme}:…", STORES_ACCEPTED)


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
    # Connecting may take many seconds; a thread lets signals through meanwhile.
    store = await open_patiently(
        lambda: asyncio.to_thread(open_store, where),
        _surroundings(on_report),
        stop,
        stop_asked,
        wait_seconds_max,
    )
    try:
        yield store
    finally:
        if store is not None:
            await store.close()


def migrate_store(where: str | StoreSettings | None = None) -> MigrationReport:
    """Bring a store to the schema of this program."""
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


def worker_name() -> str:
    """What a worker is called unless it was given a name."""
    return f"{socket.gethostname()}:{os.getpid()}"


def usable_cores() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0))


def machine_capacity(labels: Sequence[str] = ()) -> Resources:
    """What a worker offers unless it is told otherwise; GPUs are not guessed."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Resources(
        cpu=float(usable_cores()), memory_bytes=memory_bytes, labels=frozenset(labels)
    )


def attempt_directory(home: Path, store_id: str, task_seq: int, attempt: int) -> Path:
    """Where the files of an attempt are, on the host that ran it."""
    from tidewheel.services.worker import STORE_ID_LENGTH

    return home / "tasks" / store_id[:STORE_ID_LENGTH] / str(task_seq) / str(attempt)


def submission_directory(home: Path, task_id: TaskId, attempt: int) -> Path:
    """The same for a submission of a run."""
    from tidewheel.core.runs.job_names import read_job_name

    name = read_job_name(task_id)
    return home / "runs" / name.run / name.log_folder(attempt)


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
            surroundings=_surroundings(on_report),
            smtp=how.smtp,
            trigger_log=trigger_log,
            pace=as_compatible,
            platforms=read_platforms(home),
        )
        yield driver_of(run, lease, scheduler_home, given=given, on_batch=on_batch)


def build_standby(
    where: str | StoreSettings | None,
    store: Store,
    settings: SchedulerSettings,
    home: Path,
    on_report: OnReport | None = None,
) -> Standby:
    """Whoever takes over runs of this store."""
    from tidewheel.services.scheduler.standby import Standby

    def drive(run: RunView) -> AbstractAsyncContextManager[RunDriver]:
        return driving(where, store, run, home, settings=settings, on_report=on_report)

    return Standby(store, drive, settings, _surroundings(on_report))


def build_monitor(
    store: Store, settings: MonitorSettings, on_report: OnReport | None = None
) -> Monitor:
    """A monitor of this store."""
    from tidewheel.services.monitor import Monitor

    return Monitor(store, settings, _surroundings(on_report))


@asynccontextmanager
async def built_worker(
    where: str | StoreSettings | None,
    store: TaskStore,
    settings: WorkerSettings,
    *,
    handlers: Handlers | None = None,
    around: AroundRunner | None = None,
    on_report: OnReport | None = None,
) -> AsyncIterator[Worker]:
    """A worker with its runners; what they hold of this machine is let go at the end.

    ``where`` is the address of ``store``: heartbeats have a connection of their own. Without
    handlers a worker runs commands only.
    """
    from tidewheel.runners.job_environment import RunAids
    from tidewheel.runners.messages import MessageServer
    from tidewheel.runners.others import RunnerParts, open_runner, stop_runners
    from tidewheel.runners.own_programs import write_programs
    from tidewheel.runners.python import PythonRunner
    from tidewheel.runners.shell import ShellRunner
    from tidewheel.runners.usage import UsageSampler
    from tidewheel.services.job_calls import JobCalls
    from tidewheel.services.worker import Worker

    make_private_directory(settings.home)
    message_bytes_max = store_settings(where).submit.message_bytes_max
    messages = MessageServer(
        settings.home, message_bytes_max, JobCalls(cast("Store", store), settings.home)
    )
    sampler = UsageSampler(settings.usage_interval_seconds)
    aids = RunAids(programs=write_programs(settings.home))
    shell = ShellRunner(
        environ=os.environ,
        messages=messages,
        sampler=sampler,
        tie_jobs=settings.tie_jobs,
        failpoint=this_failpoint(),
        limits=settings.job_limits,
        aids=aids,
    )
    parts = RunnerParts.of(settings, messages, aids, os.environ, this_failpoint())
    others = [open_runner(name, parts) for name in settings.runners]
    runners: list[Runner] = [shell, *others]
    python = None
    if handlers is not None:
        python = PythonRunner(
            handlers, threads=settings.slots, message_bytes_max=message_bytes_max
        )
        runners.append(python)
    await messages.start()
    try:
        wrapped = [around(runner) if around else runner for runner in runners]
        host = _host(where, handlers.names if handlers else frozenset())
        worker = Worker(store, settings, wrapped, host, _surroundings(on_report))
        for other in others:
            other.tell_trouble_to(worker.hear_trouble)
        yield worker
    finally:
        await messages.stop()
        sampler.stop()
        shell.stop()
        await stop_runners(others)
        if python is not None:
            python.stop()


def _host(where: str | StoreSettings | None, handlers: frozenset[str]) -> Host:
    from tidewheel.runners.processes import is_process_alive
    from tidewheel.services.shift import Host

    return Host(
        process=this_process(),
        is_alive=is_process_alive,
        abilities=Abilities(handlers=handlers, bare=False),
        heartbeat_store=lambda: opened_store(where),
    )


def _surroundings(on_report: OnReport | None) -> Surroundings:
    from tidewheel.services.clock import SystemClock
    from tidewheel.services.service import Surroundings, tell_nobody

    return Surroundings(
        clock=SystemClock(), on_report=on_report or tell_nobody, failpoint=this_failpoint()
    )


def make_private_directory(path: Path) -> None:
    """The state directory, which nobody else may enter (S31)."""
    from tidewheel.runners import job_directory

    job_directory.make_private_directory(path)
