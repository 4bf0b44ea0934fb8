"""Builds the services of a registered worker, each with those that it calls.

Theory of operation
-------------------
A task goes round: the claimer takes it and begins its job; the job puts what happens to it into
the queue of job events; the reporter brings that to the store, and lets go of an attempt whose
end the store has taken; so there is capacity again, and the claimer is told. Each service is
made after those that it calls. What lies behind is reached by what both know: the attempt table
with its queue of job events, the capacity of the machine, the health of the host. Each of these
knows the wake-up of the service that waits for it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from tidewheel.config import WorkerSettings
from tidewheel.core.queue.lease import LEASE_SECONDS_DEFAULT
from tidewheel.core.queue.requests import ANY_TASKS, Abilities, HostProcess, Wake
from tidewheel.core.queue.task import TaskId, WorkerId
from tidewheel.errors import Refused
from tidewheel.ports.runners import Runner
from tidewheel.ports.tasks import TaskStore
from tidewheel.services.service import (
    BACKOFF_DEFAULT,
    Backoff,
    Service,
    ServiceReport,
    Surroundings,
    TaskGroup,
)
from tidewheel.services.wakeup import Wakeup
from tidewheel.worker.adoption import Adoption, IsAlive
from tidewheel.worker.attempts import (
    BEATS_PER_LEASE,
    AttemptTable,
    JobFolders,
    Machine,
    StopReason,
    Supply,
    TellJob,
)
from tidewheel.worker.claimer import Claimer
from tidewheel.worker.heartbeats import (
    Heartbeats,
    OpenStore,
    in_loop,
    run_in_thread,
)
from tidewheel.worker.jobs import HostHealth, Jobs, Tell
from tidewheel.worker.log_upload import LogUpload, LogWay
from tidewheel.worker.reporter import Reporter

REOPEN_SECONDS_MAX = 1.0  # after a server closed a channel, each worker at a time of its own
REFUSED_SECONDS = 30.0

# Yields attempts to cancel, as (id, attempt), and None when there may be work.
OpenChannel = Callable[[WorkerId], AsyncIterator[tuple[TaskId, int] | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerWays:
    """Holds the ways in which a worker speaks with a server that stands before its store."""

    open_channel: OpenChannel
    log_way: LogWay
    tell_job: TellJob  # how its job can speak to the server itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """Describes the process that a worker lives in, and what the worker can do there."""

    process: HostProcess
    is_alive: IsAlive
    abilities: Abilities = ANY_TASKS
    new_secret: Callable[[], str] = secrets.token_urlsafe
    # Gives heartbeats a thread with a connection of its own; None: they share the worker's.
    heartbeat_store: OpenStore | None = None
    supply: Supply | None = None  # brings the files of runs here; None: they are here
    server: ServerWays | None = None  # None: the store itself is within reach
    machine: Machine | None = None  # None: the worker shares what it offers with no other


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """Holds all that a worker was given."""

    store: TaskStore
    settings: WorkerSettings
    runners: Sequence[Runner]
    host: Host
    surroundings: Surroundings


class Channel(Service):
    """Hears from a server what to cancel and of new work, where the store is out of reach.

    A channel that broke, or was never opened, costs nothing but time: the next poll and the
    next heartbeat say the same. Whenever it is opened, the server begins with all that is to be
    cancelled, and says that there may be work, since nobody knows what was said meanwhile.
    """

    def __init__(
        self,
        open_channel: OpenChannel,
        worker: WorkerId,
        claimer: Claimer,
        jobs: Jobs,
        surroundings: Surroundings,
    ) -> None:
        super().__init__("channel", surroundings)
        self._open = open_channel
        self._worker = worker
        self._claimer = claimer
        self._jobs = jobs
        self._rest_seconds = 0.0

    def rest_seconds(self) -> float | None:
        return self._rest_seconds

    async def run_once(self) -> Sequence[ServiceReport]:
        """Opens one connection and hears it to its end."""
        try:
            async for news in self._open(self._worker):
                if news is None:
                    self._claimer.hear(Wake(everything=True))
                else:
                    self._jobs.stop_by_key(news, StopReason.CANCEL)
        except Refused as refused:  # the worker goes on without a channel
            self._rest_seconds = REFUSED_SECONDS
            return [self.report("channel.refused", code=refused.code, error=str(refused))]
        self._rest_seconds = REOPEN_SECONDS_MAX * self._surroundings.chance.random()
        return ()


class Cancellations(Service):
    """Stops the jobs of cancelled tasks as soon as the store says that there are some.

    The push may get lost; then the next heartbeat says the same.
    """

    def __init__(
        self, store: TaskStore, worker: WorkerId, jobs: Jobs, surroundings: Surroundings
    ) -> None:
        super().__init__("cancellations", surroundings)
        self._store = store
        self._worker = worker
        self._jobs = jobs

    def rest_seconds(self) -> float | None:
        return None

    async def run_once(self) -> Sequence[ServiceReport]:
        if not len(self._jobs):
            return ()
        for key in await self._store.cancelling(self._worker):
            self._jobs.stop_by_key(key, StopReason.CANCEL)
        return ()


class Runtime:
    """Holds the services of a registered worker; rings ``changed`` when attempts are over."""

    def __init__(
        self,
        equipment: Equipment,
        worker: WorkerId,
        tasks: Path,
        group: TaskGroup,
        changed: Wakeup,
        tell: Tell,
    ) -> None:
        store, settings, host = equipment.store, equipment.settings, equipment.host
        runners, surroundings = equipment.runners, equipment.surroundings
        server = host.server
        self.worker = worker
        self._equipment = equipment
        self.health = HostHealth(surroundings)
        self._logs: LogUpload | None = None
        if server is not None:
            self._logs = LogUpload(server.log_way, surroundings, changed)
        attempts = AttemptTable(
            worker,
            JobFolders(
                settings.home.absolute(),
                tasks,
                host.new_secret,
                host.supply,
                None if server is None else server.tell_job,
            ),
            settings.slots,
            host.machine or Machine(settings.capacity),
            surroundings,
            changed,
        )
        self._book = attempts.book
        self.jobs = Jobs(runners, attempts, self.health, self._logs, group, tell)
        self.reporter = Reporter(store, attempts, self.jobs, surroundings)
        self.claimer = Claimer(
            store, settings, host.abilities, attempts, self.jobs, surroundings
        )
        self.cancellations = Cancellations(store, worker, self.jobs, surroundings)
        self.adoption = Adoption(store, runners, attempts, self.jobs, surroundings.clock, tell)

    def keep_leases(self) -> Coroutine[object, object, None]:
        """Runs the heartbeats, in a thread of their own if they have a store of their own."""
        equipment = self._equipment
        # After an outage a worker must be heard within one lease, so it asks more often.
        lease_seconds = equipment.settings.lease_seconds or LEASE_SECONDS_DEFAULT
        longest = min(BACKOFF_DEFAULT.seconds_max, lease_seconds / BEATS_PER_LEASE)
        around = replace(equipment.surroundings, backoff=Backoff(seconds_max=longest))
        worker, book, stop_job = self.worker, self._book, self.jobs.stop
        own_store = equipment.host.heartbeat_store
        if own_store is None:
            store = equipment.store
            return Heartbeats(lambda: nullcontext(store), worker, book, stop_job, around).run()
        loop = asyncio.get_running_loop()
        around = replace(
            around,
            chance=Random(around.chance.random()),
            on_report=in_loop(loop, around.on_report),
        )
        stop_there = in_loop(loop, stop_job)
        return run_in_thread(Heartbeats(own_store, worker, book, stop_there, around))

    def speak_with_server(self) -> list[Coroutine[object, object, None]]:
        """Returns the services that hear a server's news and send it logs, if there is one."""
        server = self._equipment.host.server
        if server is None or self._logs is None:
            return []
        channel = Channel(
            server.open_channel,
            self.worker,
            self.claimer,
            self.jobs,
            self._equipment.surroundings,
        )
        return [channel.run(), self._logs.run()]

    def hear(self, wake: Wake) -> None:
        """Wakes the services that a change in the store concerns; from any thread."""
        self.claimer.hear(wake)
        if wake.everything or self.worker in wake.workers:
            self.cancellations.wake()

    @property
    def settled(self) -> bool:
        """Says whether no job is left, the store knows all ends, and the server has all
        logs."""
        is_quiet = not len(self.jobs) and self.reporter.idle
        return is_quiet and (self._logs is None or self._logs.idle)
