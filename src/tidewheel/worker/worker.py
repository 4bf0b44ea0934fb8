"""Leases tasks, has runners execute them, and tells the store how they ended: a worker.

Theory of operation
-------------------
A worker is made of services that share one event loop (`Runtime`): the claimer takes tasks
while there is capacity, jobs execute them, the reporter tells the store, heartbeats keep the
leases (in a thread of their own, if given a store of their own), and cancellations ask which
jobs are to end. The store may vanish at any time: jobs go on, reports wait. The worker may
vanish at any time: its leases run out or are adopted.

A task goes round: the claimer takes it and begins its job; the job puts what happens to it into
the queue of job events; the reporter brings that to the store, and lets go of an attempt whose
end the store has taken; so there is capacity again, and the claimer is told. Each service is
made after those that it calls. What lies behind is reached by what both know: the attempt table
with its queue of job events, the capacity of the machine, the health of the host. Each of these
knows the wake-up of the service that waits for it.

A first request to stop winds down as asked: ``YIELD`` ends the jobs and gives the tasks back,
``DRAIN`` lets them finish, ``LEAVE`` lets them run on without it. A second one kills what is
left, and so does the end of the grace. ``run`` returns when everything has been reported, or
could not be within the grace.
Requests come from signal handlers, which belong to the command line.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

from tidewheel.config import OnStop, WorkerSettings
from tidewheel.core.queue.access import Served
from tidewheel.core.queue.lease import LEASE_SECONDS_DEFAULT
from tidewheel.core.queue.requests import ANY_TASKS, Abilities, HostProcess, NewWorker, Wake
from tidewheel.core.queue.task import TaskId, WorkerId
from tidewheel.errors import Refused, Unavailable
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.ports.runners import Runner, TidyRunner
from tidewheel.ports.store import Store
from tidewheel.services.paths import store_name, tasks_directory
from tidewheel.services.service import (
    BACKOFF_DEFAULT,
    Backoff,
    Service,
    ServiceReport,
    Surroundings,
    TaskGroup,
    Wakeup,
    within,
)
from tidewheel.worker import adoption
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
from tidewheel.worker.heartbeats import Heartbeats, OpenStore, in_loop, run_in_thread
from tidewheel.worker.jobs import HostHealth, Jobs
from tidewheel.worker.log_upload import LogUpload, LogWay
from tidewheel.worker.reporter import Reporter

REOPEN_SECONDS_MAX = 1.0  # after a server closed a channel, each worker at a time of its own
REFUSED_SECONDS = 30.0

# Yields attempts to cancel, as (id, attempt), and None when there may be work.
OpenChannel = Callable[[WorkerId], AsyncIterator[tuple[TaskId, int] | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerWays:
    """Holds the functions by which a worker speaks with a server that is before its store."""

    open_channel: OpenChannel
    log_way: LogWay
    tell_job: TellJob  # how its job can speak to the server itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """Describes the process that a worker lives in, and what the worker can do there."""

    process: HostProcess
    is_alive: adoption.IsAlive
    abilities: Abilities = ANY_TASKS
    new_secret: Callable[[], str] = secrets.token_urlsafe
    # Gives heartbeats a thread with a connection of its own; None: they share the worker's.
    heartbeat_store: OpenStore | None = None
    supply: Supply | None = None  # brings the files of runs here; None: they are here
    server: ServerWays | None = None  # None: the store itself is within reach
    machine: Machine | None = None  # None: the worker shares what it offers with no other


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
        self, store: Store, worker: WorkerId, jobs: Jobs, surroundings: Surroundings
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
        owner: Worker,
        worker: WorkerId,
        tasks: Path,
        group: TaskGroup,
    ) -> None:
        store, settings, host, tell = owner.store, owner.settings, owner.host, owner.tell
        runners, surroundings, changed = owner.runners, owner.surroundings, owner.changed
        server = host.server
        self.worker = worker
        self._owner = owner
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
                store.inputs,
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
        self.adoption = adoption.Adoption(
            store, runners, attempts, self.jobs, surroundings.clock, tell
        )

    def keep_leases(self) -> Coroutine[object, object, None]:
        """Returns the heartbeats to be run, in a thread if they have a store of their own."""
        owner = self._owner
        # After an outage a worker must be heard within one lease, so it asks more often.
        lease_seconds = owner.settings.lease_seconds or LEASE_SECONDS_DEFAULT
        longest = min(BACKOFF_DEFAULT.seconds_max, lease_seconds / BEATS_PER_LEASE)
        around = replace(owner.surroundings, backoff=Backoff(seconds_max=longest))
        worker, book, stop_job = self.worker, self._book, self.jobs.stop
        own_store = owner.host.heartbeat_store
        if own_store is None:
            store = owner.store
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
        server = self._owner.host.server
        if server is None or self._logs is None:
            return []
        channel = Channel(
            server.open_channel,
            self.worker,
            self.claimer,
            self.jobs,
            self._owner.surroundings,
        )
        return [channel.run(), self._logs.run()]

    def hear(self, wake: Wake) -> None:
        """Wakes the services that a change in the store concerns; from any thread."""
        self.claimer.hear(wake)
        if wake.everything or self.worker in wake.workers:
            self.cancellations.wake()

    @property
    def settled(self) -> bool:
        """Says whether no job is left and all ends are stored, and all logs with the server."""
        is_quiet = not len(self.jobs) and self.reporter.idle
        return is_quiet and (self._logs is None or self._logs.idle)


FLUSH_SECONDS_MIN = 1.0
FLUSH_SECONDS_MAX = 5.0
LEAVING_LOOK_SECONDS = 0.05  # how often a worker that leaves looks whether all is reported


class Worker(Service):
    """Executes tasks until it is asked to stop."""

    def __init__(
        self,
        store: Store,
        settings: WorkerSettings,
        runners: Sequence[Runner],
        host: Host,
        surroundings: Surroundings,
    ) -> None:
        super().__init__(settings.name, surroundings)
        self.store = store
        self.settings = settings
        self.runners, self.host, self.surroundings = runners, host, surroundings
        self._runtime: Runtime | None = None
        self.changed = Wakeup(surroundings.clock)  # rung when attempts are over
        self._has_adopted = False  # whether it has looked for jobs of dead workers
        self._mode = settings.on_stop
        self._at_once = False

    def ask_stop(self, mode: OnStop | None = None) -> None:
        """Asks the worker to wind down; the second call asks it to kill what is left.

        It is called from the worker's loop.
        """
        self._at_once = self._stop_asked
        self._mode = mode or self._mode
        super().ask_stop()
        self.changed.ring()

    async def stop(self, mode: OnStop | None = None) -> None:
        """Asks to stop, and waits for the end."""
        self.ask_stop(mode)
        if self._running is not None:
            await self._running

    def hear_trouble(self, text: str | None) -> None:
        """Notes what a runner cannot reach now, or that it can again (None).

        It is called from the worker's loop.
        """
        if self._runtime is not None:
            self._runtime.health.hear(text)

    @property
    def is_idle(self) -> bool:
        """Says whether it has no job, whatever its queue, and has adopted what it could."""
        return self._has_adopted and self._runtime is not None and not len(self._runtime.jobs)

    def rest_seconds(self) -> float | None:
        return None

    async def run_once(self) -> Sequence[ServiceReport]:
        """Makes one round of claims; the other services of a worker have their own rounds."""
        assert self._runtime is not None, f"{self.name} is not registered yet"
        return await self._runtime.claimer.run_once()

    async def run(self) -> None:
        group = TaskGroup()
        await group.oversee(self._work(group))

    async def _work(self, group: TaskGroup) -> None:
        runtime = self._runtime = await self.persist(partial(self._register, group))
        if runtime is None:
            return
        group.add(runtime.keep_leases())
        await self._adopt_orphans(runtime)
        self._has_adopted = True
        # Beside the claims: Slurm or an engine may take a second to answer, and a runner ends
        # earlier attempts of a task itself before it starts the next.
        tidying = group.member(self._remove_leftovers())
        group.add(runtime.reporter.run())
        group.add(runtime.cancellations.run())
        for speaking in runtime.speak_with_server():
            group.add(speaking)
        deafen = self.store.listen(runtime.hear)
        try:
            claiming = group.member(runtime.claimer.run())
            claiming.add_done_callback(lambda _: self.changed.ring())
            await self._attend(runtime, tidying)
            await self._wind_down(runtime, claiming)
            await tidying
        finally:
            deafen()
        jobs = len(runtime.jobs)
        self.tell("worker.stopped", settled=runtime.settled, jobs=jobs, leaves=self._leaves())

    async def _register(self, group: TaskGroup) -> Runtime:
        settings, host = self.settings, self.host
        store_id = await self.store.store_id()
        worker = await self.store.register_worker(
            NewWorker(
                name=settings.name,
                process=host.process,
                queues=settings.queues,
                slots=settings.slots,
                capacity=settings.capacity,
                abilities=host.abilities,
            )
        )
        tasks = tasks_directory(settings.home, store_id)
        self.tell("worker.registered", worker=worker)
        return Runtime(self, worker, tasks, group)

    async def _adopt_orphans(self, runtime: Runtime, served: Served | None = None) -> None:
        """Adopts jobs of dead workers: only those in these queues, if any are named. A worker
        that ties jobs to itself adopts none: tied jobs died with their worker."""
        host = self.host
        if self.settings.tie_jobs:
            return
        find = partial(adoption.orphans_of_the_dead, self.store, host.process, host.is_alive)
        for lease in await self.persist(find) or []:
            if served is None or lease.task.queue in served:
                await runtime.adoption.adopt(lease, self.persist)

    async def _remove_leftovers(self) -> None:
        """Removes the leftovers of attempts that have no lease any more. What cannot be removed
        now is tried again later, and keeps the worker from nothing."""
        runners = [r for r in self.runners if isinstance(r, TidyRunner)]
        if not runners:
            return
        try:
            name = store_name(await self.store.store_id())
            for removed in await adoption.remove_leftovers(self.store, runners, name):
                self.tell("leftover.removed", task=removed.task_id, attempt=removed.attempt)
        except Unavailable as error:
            self.tell("leftover.kept", error=str(error))

    async def _attend(self, runtime: Runtime, tidying: asyncio.Task[None]) -> None:
        """Waits until asked to stop; now and then adopts jobs of dead workers on this host."""
        rest, host = self.settings.adopt_interval_seconds, self.host
        look = partial(
            adoption.dead_workers_with_leases, self.store, host.process, host.is_alive
        )
        look_at = self._clock.monotonic() + rest
        while not self._stop_asked:
            await self._alarm.wait(max(0.0, look_at - self._clock.monotonic()))
            if self._clock.monotonic() >= look_at:
                if not self.settings.tie_jobs and await self.persist(look):
                    # Only in our queues: workers of others may keep their files elsewhere.
                    await self._adopt_orphans(runtime, Served(self.settings.queues))
                await tidying
                await self._remove_leftovers()
                look_at = self._clock.monotonic() + rest

    async def _wind_down(self, runtime: Runtime, claiming: asyncio.Task[None]) -> None:
        grace_seconds = self.settings.grace_seconds
        # This time is kept for the last reports, once all jobs are killed.
        flush_seconds = min(max(FLUSH_SECONDS_MIN, grace_seconds / 4), FLUSH_SECONDS_MAX)
        grace_seconds = max(0.0, grace_seconds - flush_seconds)
        runtime.claimer.ask_stop()
        runtime.jobs.give_back_waiting()
        if self._leaves():
            await self._leave(runtime, claiming, flush_seconds)
            return
        if self._mode is OnStop.YIELD:
            runtime.jobs.stop_all(StopReason.YIELD, grace_seconds)
        await self._wait_until(lambda: runtime.settled and claiming.done(), grace_seconds)
        self._at_once = False
        if self._leaves():  # asked meanwhile
            await self._leave(runtime, claiming, flush_seconds)
            return
        runtime.jobs.stop_all(StopReason.YIELD, 0.0)
        await self._wait_until(lambda: runtime.settled and claiming.done(), flush_seconds / 2)
        await self._say_goodbye(runtime, flush_seconds / 2)

    def _leaves(self) -> bool:
        return self._mode is OnStop.LEAVE

    async def _leave(
        self, runtime: Runtime, claiming: asyncio.Task[None], seconds_max: float
    ) -> None:
        """Ends without reporting the jobs that run: the worker that adopts them will."""
        await self._wait_until(
            lambda: runtime.reporter.idle and claiming.done(), seconds_max, LEAVING_LOOK_SECONDS
        )
        if not len(runtime.jobs):
            await self._say_goodbye(runtime, seconds_max)

    async def _wait_until(
        self, is_done: Callable[[], bool], seconds_max: float, look_seconds: float = math.inf
    ) -> None:
        """Waits until it is done, the time is over, or the worker is asked again to stop."""
        end_at = self._clock.monotonic() + seconds_max
        while not is_done() and not self._at_once:
            rest = end_at - self._clock.monotonic()
            if rest <= 0.0:
                return
            await self.changed.wait(min(rest, look_seconds))

    async def _say_goodbye(self, runtime: Runtime, seconds_max: float) -> None:
        leave = partial(self.store.stop_worker, runtime.worker)
        await self.persist(lambda: within(self._clock, seconds_max, leave()))
