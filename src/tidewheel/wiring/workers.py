"""Builds workers, which reach their store directly or through a server."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tidewheel.config import (
    CONTAINER_RUNNERS,
    ENVIRON,
    EVERYWHERE,
    Where,
    WorkerSettings,
    read_allowances,
)
from tidewheel.core.queue.requests import Abilities, Claimed, HostProcess
from tidewheel.core.queue.resources import COMPOSE_2_LABEL, Resources
from tidewheel.errors import BadSetting
from tidewheel.ports.runners import Runner
from tidewheel.ports.store import Store
from tidewheel.wiring.machine import is_process_alive, make_private_directory, this_process
from tidewheel.wiring.services import run_door, surroundings
from tidewheel.wiring.stores import is_remote, opened_store, store_settings, this_failpoint

if TYPE_CHECKING:
    from tidewheel.core.operator.definition import StoredDefinition
    from tidewheel.runners.job_users import JobUsers
    from tidewheel.runners.messages.server import MessageServer
    from tidewheel.runners.python.runner import Handlers
    from tidewheel.runners.registry import RunnerParts
    from tidewheel.runners.secret_values import SecretSources
    from tidewheel.services.job_api import SpeakingFor
    from tidewheel.services.service import OnReport
    from tidewheel.worker.adoption import IsAlive
    from tidewheel.worker.attempts import Machine, Supply
    from tidewheel.worker.worker import ServerWays, Worker

AroundRunner = Callable[[Runner], Runner]


def worker_name() -> str:
    """Returns the name of a worker that was given none: HOST:PID."""
    return f"{socket.gethostname()}:{os.getpid()}"


def usable_cores() -> int:
    """Returns the number of cores that this process may run on."""
    return len(os.sched_getaffinity(0))


def machine_capacity(labels: Sequence[str] = ()) -> Resources:
    """Returns the resources that a worker offers unless it is told otherwise: the cores it may
    use, all memory, and no GPUs, because these are not guessed."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Resources(
        cpu=float(usable_cores()), memory_bytes=memory_bytes, labels=frozenset(labels)
    )


def compose_labels(runners: Sequence[str]) -> frozenset[str]:
    """Returns what a worker with containers offers because of the docker compose here."""
    if set(runners).isdisjoint(CONTAINER_RUNNERS):
        return frozenset()
    from tidewheel.runners.containers.docker_cli import has_compose_2

    return frozenset({COMPOSE_2_LABEL}) if has_compose_2(os.environ) else frozenset()


def capacity_with(said: Resources, labels: frozenset[str]) -> Resources:
    """Returns what a worker offers, with the labels that follow from its other settings.

    Raises BadSetting if it is said to have a docker compose that it has not.
    """
    if COMPOSE_2_LABEL in said.labels - labels:
        fault = (
            f"--label {COMPOSE_2_LABEL} cannot be given by hand: a worker with docker compose "
            "2 offers it automatically, and none was found here"
        )
        raise BadSetting("label", COMPOSE_2_LABEL, fault=fault)
    return replace(said, labels=said.labels | labels)


@asynccontextmanager
async def built_worker(  # noqa: PLR0913 - each by name
    where: Where,
    store: Store,
    settings: WorkerSettings,
    *,
    handlers: Handlers | None = None,
    around: AroundRunner | None = None,
    machine: Machine | None = None,
    on_report: OnReport | None = None,
    job_users: JobUsers | None = None,
) -> AsyncIterator[Worker]:
    """Yields a worker with its runners; at the end, stops the runners and frees what they hold.

    ``where`` is the address of ``store``: heartbeats open a connection of their own. Without
    handlers the worker runs commands only. Several workers of this process may share one
    ``machine``, and so its resources.
    """
    from tidewheel.runners.messages.server import MessageServer
    from tidewheel.runners.registry import open_runner, stop_runners
    from tidewheel.runners.shell.runner import ShellRunner
    from tidewheel.runners.usage import UsageSampler
    from tidewheel.services.job_api import JobApi
    from tidewheel.worker.worker import Host, Worker

    home = settings.home
    make_private_directory(home)
    message_bytes_max = store_settings(where).submit.message_bytes_max
    process, is_alive = _neighbourhood(home)
    ways, speaking_for = _afar(where, store, home)
    host = Host(
        process=process,
        is_alive=is_alive,
        abilities=Abilities(
            commands=settings.shell,
            handlers=handlers.names if handlers else frozenset(),
            bare=False,
        ),
        heartbeat_store=lambda: opened_store(where),
        supply=_supply(store, home),
        server=ways,
        machine=machine,
    )
    async with AsyncExitStack() as stack:
        calls = JobApi(run_door(store, home), home, speaking_for=speaking_for)
        messages = MessageServer(home, message_bytes_max, calls)
        await messages.start()
        stack.push_async_callback(messages.stop)
        parts = _runner_parts(settings, messages, job_users)
        others = [open_runner(name, parts) for name in settings.runners]
        stack.push_async_callback(stop_runners, others)
        sampler = UsageSampler(settings.usage_interval_seconds)
        shell = ShellRunner(parts, sampler=sampler, tie_jobs=settings.tie_jobs)
        stack.callback(shell.stop)
        stack.callback(sampler.stop)
        runners: list[Runner] = [*([shell] if settings.shell else []), *others]
        if handlers is not None:
            from tidewheel.runners.python.runner import PythonRunner

            python = PythonRunner(
                handlers, threads=settings.slots, message_bytes_max=message_bytes_max
            )
            stack.callback(python.stop)
            runners.append(python)
        wrapped = [around(runner) if around else runner for runner in runners]
        worker = Worker(store, settings, wrapped, host, surroundings(on_report))
        for other in others:
            other.tell_trouble_to(worker.hear_trouble)
        yield worker


def require_shell_without_engine(settings: WorkerSettings, job_users: JobUsers | None) -> None:
    """Raises BadSetting if shell jobs could speak to the container engine (H6): whoever can is
    root on this host, whatever the policy for compose files says."""
    containers = set(settings.runners) & set(CONTAINER_RUNNERS)
    if not settings.shell or not containers:
        return
    from tidewheel.runners.containers.docker_cli import Cli

    if "engine-socket" in read_allowances(settings.allow_compose).get(EVERYWHERE, ()):
        return
    for name in Cli(os.environ).speakers(None if job_users is None else job_users.names):
        fault = (
            f"--runner shell cannot be combined with {' and '.join(sorted(containers))} here: "
            f"the user {name} may use the container engine, so shell jobs would be root on "
            "this host; leave out --runner shell, start jobs as other users (--run-as), or "
            "allow it (--allow-compose engine-socket)"
        )
        raise BadSetting("runner", "shell", fault=fault)


def _runner_parts(
    settings: WorkerSettings, messages: MessageServer, job_users: JobUsers | None
) -> RunnerParts:
    """Returns the parts that all runners of a worker share."""
    from tidewheel.runners.job_environment import RunAids, write_programs
    from tidewheel.runners.registry import RunnerParts

    programs = write_programs(settings.home)
    if job_users is not None:
        from tidewheel.runners.job_users import open_to_jobs

        open_to_jobs(settings.home, messages.path, programs)
    return RunnerParts(
        environ=os.environ,
        messages=messages,
        limits=settings.job_limits,
        aids=RunAids(programs=programs),
        home=settings.home,
        job_users=job_users,
        usage_interval_seconds=settings.usage_interval_seconds,
        failpoint=this_failpoint(),
        allow_compose=settings.allow_compose,
        prepare_seconds=settings.prepare_seconds,
        runners=settings.runners,
        secrets=_secrets(settings),
    )


def _secrets(settings: WorkerSettings) -> SecretSources:
    from tidewheel.runners.secret_values import SecretSources

    folder = ENVIRON.get("CREDENTIALS_DIRECTORY")
    return SecretSources(
        directory=settings.secrets and settings.secrets.absolute(),
        credentials=Path(folder) if folder else None,
        command=settings.secrets_command,
    )


def _neighbourhood(home: Path) -> tuple[HostProcess, IsAlive]:
    """Returns this process, and a function that says whether another worker's process lives.

    The jobs of a dead worker may be taken over.

    Only workers of one home know each other: the jobs and files that another worker keeps
    elsewhere cannot be found from here, and would be taken for jobs that never started.
    """
    from tidewheel.runners.job_environment import home_id

    place = f"@{home_id(home)}"
    own = this_process()

    def is_alive(process: HostProcess) -> bool:
        plain = replace(process, boot_id=process.boot_id.removesuffix(place))
        return is_process_alive(plain)

    return replace(own, boot_id=own.boot_id + place), is_alive


def _supply(store: Store, home: Path) -> Supply:
    """Returns a function that fetches the files of a run for its jobs, where the folder of the
    run is not on this host."""
    from tidewheel.core.operator.definition import read_job_name
    from tidewheel.services.definition_sync import Supplies

    async def fetch(task: Claimed) -> StoredDefinition:
        return await run_door(store, home).definition(read_job_name(task.id).run)

    return Supplies(fetch, store.store_id)


def _afar(
    where: Where, store: Store, home: Path
) -> tuple[ServerWays | None, SpeakingFor | None]:
    """Returns how a worker reaches the server that its store is behind, and how it speaks there
    for its jobs; None for both if it reaches the store directly."""
    if not is_remote(where):
        return None, None
    from tidewheel.runners.job_environment import known_home_id
    from tidewheel.runners.job_logs import read_part
    from tidewheel.store.remote import RemoteStore
    from tidewheel.store.remote.workers import JobVoices, LogSender, channel
    from tidewheel.worker.log_upload import LogWay, Receipt
    from tidewheel.worker.worker import ServerWays

    assert isinstance(store, RemoteStore), store
    voices = JobVoices(store_settings(where))
    sender = LogSender(store.transport, lambda: known_home_id(home))

    async def read(directory: Path, stream: str, offset: int, count: int) -> tuple[bytes, int]:
        return await asyncio.to_thread(read_part, directory, stream, offset, count)

    async def send(*chunk: object) -> Receipt:
        return Receipt(*await sender.send(*chunk))  # type: ignore[arg-type]

    ways = ServerWays(
        open_channel=lambda worker: channel(store.transport, worker),
        log_way=LogWay(read, send),
        tell_job=voices.environment,
    )
    return ways, voices.speaking_for
