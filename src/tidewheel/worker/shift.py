"""A worker's time from its registration to its end: the services it is made of, wired."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

from tidewheel.config import WorkerSettings
from tidewheel.core.queue.lease import LEASE_SECONDS_DEFAULT
from tidewheel.core.queue.requests import ANY_TASKS, Abilities, HeldLease, HostProcess, Wake
from tidewheel.core.queue.steps import End
from tidewheel.core.queue.task import WorkerId
from tidewheel.ports.runners import Job, Runner
from tidewheel.ports.tasks import TaskStore
from tidewheel.services.service import BACKOFF_DEFAULT, Backoff, Surroundings
from tidewheel.services.task_group import TaskGroup
from tidewheel.worker.adoption import Adoption, Fate, IsAlive
from tidewheel.worker.attempts import Attempt, StopReason
from tidewheel.worker.cancellations import Cancellations
from tidewheel.worker.channel import Channel, OpenChannel
from tidewheel.worker.claims import Claims
from tidewheel.worker.heartbeats import (
    BEATS_PER_LEASE,
    Heartbeats,
    OpenStore,
    StopJob,
)
from tidewheel.worker.jobs import NEVER_STARTED, Hearers, Jobs
from tidewheel.worker.log_streaming import LogStreams, LogWay
from tidewheel.worker.reports import Reporter
from tidewheel.worker.room import Machine, Room
from tidewheel.worker.threads import in_loop, run_in_thread
from tidewheel.worker.workplace import JobFolders, Supply, TellJob, Workplace

Tell = Callable[..., None]
Persist = Callable[[Callable[[], Awaitable[Fate]]], Awaitable[Fate | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerWays:
    """What a worker has to do with a server that stands before its store."""

    open_channel: OpenChannel
    log_way: LogWay
    tell_job: TellJob  # how its job can speak to the server itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The process a worker lives in, and what it can do there."""

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
    """All that a worker was given."""

    store: TaskStore
    settings: WorkerSettings
    runners: Sequence[Runner]
    host: Host
    surroundings: Surroundings


class Shift:
    """The services of one registered worker; ``on_change`` hears of every end."""

    def __init__(
        self,
        equipment: Equipment,
        worker: WorkerId,
        tasks: Path,
        crew: TaskGroup,
        on_change: Callable[[], None],
        tell: Tell,
    ) -> None:
        store, settings, host = equipment.store, equipment.settings, equipment.host
        surroundings = equipment.surroundings
        self.worker = worker
        self._equipment = equipment
        self._on_change = on_change
        self.tell = tell
        self.reporter = Reporter(store, surroundings, self._on_over, self._on_lost)
        self._workplace = Workplace(
            worker,
            JobFolders(
                settings.home.absolute(),
                tasks,
                host.supply,
                None if host.server is None else host.server.tell_job,
            ),
            host.new_secret,
            Room(settings.slots, host.machine or Machine(settings.capacity)),
            self.reporter.outbox,
        )
        self._adoption = Adoption(store, equipment.runners, self._workplace)
        self._logs: LogStreams | None = None
        if host.server is not None:
            self._logs = LogStreams(host.server.log_way, surroundings, on_change)
        self.jobs = Jobs(
            equipment.runners,
            self._workplace,
            crew,
            surroundings.clock,
            Hearers(
                begin=self._on_begin, end=self._on_end, trouble=self._hear_trouble, log=tell
            ),
        )
        self.claims = Claims(
            store, settings, host.abilities, self._workplace, self.jobs, surroundings
        )
        self._workplace.room.machine.tell_room_to(self.claims.hear_room)
        self.cancellations = Cancellations(store, worker, self.jobs, surroundings)

    def keep_leases(self) -> Coroutine[object, object, None]:
        """Heartbeats, in a thread of their own if they have a store of their own."""
        own_store = self._equipment.host.heartbeat_store
        surroundings = self._surroundings_of_heartbeats()
        if own_store is None:
            store = self._equipment.store
            return self._heartbeats(
                lambda: nullcontext(store), self.jobs.stop, surroundings
            ).run()
        loop = asyncio.get_running_loop()
        surroundings = replace(
            surroundings,
            chance=Random(surroundings.chance.random()),
            on_report=in_loop(loop, surroundings.on_report),
        )
        stop_job = in_loop(loop, self.jobs.stop)
        return run_in_thread(self._heartbeats(own_store, stop_job, surroundings))

    async def adopt(self, lease: HeldLease, persist: Persist) -> None:
        """Go on with a job that a dead worker left, if the store agrees."""
        asked_at = self._equipment.surroundings.clock.monotonic()
        fate = await persist(lambda: self._adoption.ask_for(lease))
        if fate is None or fate is Fate.THEIRS:
            return
        attempt = self._workplace.attempt(lease.task, asked_at)
        attempt.messages_stored = lease.messages
        attempt.spoke_last = fate is Fate.NOBODYS
        try:
            job = await self._adoption.find_job(attempt)
        except Exception as error:  # one that cannot be adopted keeps nobody from work
            attempt.spoke_last = True
            self.tell("lease.left", task=lease.task.id, error=repr(error))
            return
        self._go_on(attempt, job, fate)

    def _go_on(self, attempt: Attempt, job: Job | None, fate: Fate) -> None:
        if job is None and fate is Fate.NOBODYS:
            return
        self._workplace.take([attempt])
        if job is None:
            attempt.ended = True
            self._on_end(attempt, NEVER_STARTED)
            return
        self.jobs.go_on(attempt, job)
        if fate is Fate.NOBODYS:
            self.jobs.stop(attempt, StopReason.LOST, 0.0)
        else:
            self.tell("lease.adopted", task=attempt.task.id)

    def speak_with_server(self) -> list[Coroutine[object, object, None]]:
        """Hear its news and send it logs, if there is one."""
        server = self._equipment.host.server
        if server is None or self._logs is None:
            return []
        channel = Channel(
            server.open_channel,
            self.worker,
            self._equipment.surroundings,
            partial(self.claims.hear, Wake(everything=True)),
            lambda key: self.jobs.stop_by_key(key, StopReason.CANCEL),
        )
        return [channel.run(), self._logs.run()]

    def hear(self, wake: Wake) -> None:
        """From any thread."""
        self.claims.hear(wake)
        if wake.everything or self.worker in wake.workers:
            self.cancellations.wake()

    @property
    def settled(self) -> bool:
        """Whether no job is left, the store knows all ends, and the server has all logs."""
        is_quiet = not len(self.jobs) and self.reporter.idle
        return is_quiet and (self._logs is None or self._logs.idle)

    def _heartbeats(
        self, open_store: OpenStore, stop_job: StopJob, surroundings: Surroundings
    ) -> Heartbeats:
        book = self._workplace.book
        return Heartbeats(open_store, self.worker, book, stop_job, surroundings)

    def _surroundings_of_heartbeats(self) -> Surroundings:
        """After an outage a worker must be heard within one lease, so it asks more often."""
        lease_seconds = self._equipment.settings.lease_seconds or LEASE_SECONDS_DEFAULT
        longest = min(BACKOFF_DEFAULT.seconds_max, lease_seconds / BEATS_PER_LEASE)
        patience = Backoff(seconds_max=longest)
        return replace(self._equipment.surroundings, backoff=patience)

    def _on_begin(self, attempt: Attempt, adopted: bool) -> None:
        if self._logs is not None:
            directory = self._workplace.directory(attempt.task)
            self._logs.begin(attempt, directory, adopted=adopted)

    def _on_end(self, attempt: Attempt, end: End | None) -> None:
        self._equipment.surroundings.failpoint("job_exited_before_report")
        if self._logs is not None:
            self._logs.end(attempt)
        if end is not None:
            self.reporter.outbox.put(attempt, end)
        else:
            attempt.spoke_last = True
            self._on_over([attempt])

    def _on_over(self, attempts: Sequence[Attempt]) -> None:
        self._workplace.let_go(attempts)
        self._workplace.room.machine.tell_room(attempts)
        self._on_change()

    def _hear_trouble(self, text: str | None) -> None:
        self.claims.hear_trouble(text)

    def _on_lost(self, attempt: Attempt) -> None:
        self.jobs.stop(attempt, StopReason.LOST, 0.0)
