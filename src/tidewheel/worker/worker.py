"""Leases tasks, has runners execute them, and tells the store how they ended: a worker.

Theory of operation
-------------------
A worker is made of services that share one event loop (``runtime``): the claimer takes tasks
while there is capacity, jobs execute them, the reporter tells the store, heartbeats keep the
leases (in a thread of their own, if given a store of their own), and cancellations ask which
jobs are to end. The store may vanish at any time: jobs go on, reports wait. The worker may
vanish at any time: its leases run out or are adopted.

A first request to stop winds down as asked: ``YIELD`` ends the jobs and gives the tasks back,
``DRAIN`` lets them finish, ``LEAVE`` lets them run on without it. A second one kills what is
left, and so does the end of the grace. ``run`` returns when everything has been reported, or
could not be within the grace.
Requests come from signal handlers, which belong to the command line.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from functools import partial

from tidewheel.config import OnStop, WorkerSettings
from tidewheel.core.queue.access import Served
from tidewheel.core.queue.requests import NewWorker
from tidewheel.errors import Unavailable
from tidewheel.ports.runners import Runner, TidyRunner
from tidewheel.ports.tasks import TaskStore
from tidewheel.services.paths import store_name, tasks_directory
from tidewheel.services.service import Service, ServiceReport, Surroundings, TaskGroup
from tidewheel.services.wakeup import Wakeup, within
from tidewheel.worker.adoption import (
    dead_workers_with_leases,
    orphans_of_the_dead,
    remove_leftovers,
)
from tidewheel.worker.attempts import StopReason
from tidewheel.worker.runtime import Equipment, Host, Runtime

FLUSH_SECONDS_MIN = 1.0
FLUSH_SECONDS_MAX = 5.0
LEAVING_LOOK_SECONDS = 0.05  # how often a worker that leaves looks whether all is reported


class Worker(Service):
    """Executes tasks until it is asked to stop."""

    def __init__(
        self,
        store: TaskStore,
        settings: WorkerSettings,
        runners: Sequence[Runner],
        host: Host,
        surroundings: Surroundings,
    ) -> None:
        super().__init__(settings.name, surroundings)
        self._store = store
        self._settings = settings
        self._equipment = Equipment(
            store=store,
            settings=settings,
            runners=runners,
            host=host,
            surroundings=surroundings,
        )
        self._runtime: Runtime | None = None
        self._changed = Wakeup(surroundings.clock)  # rung when attempts are over
        self._mode = settings.on_stop
        self._at_once = False

    def ask_stop(self, mode: OnStop | None = None) -> None:
        """Asks to wind down the first time, and again to kill what is left.

        It is called from the worker's loop.
        """
        self._at_once = self._stop_asked
        self._mode = mode or self._mode
        super().ask_stop()
        self._changed.ring()

    async def stop(self, mode: OnStop | None = None) -> None:
        """Asks to stop, and waits for the end."""
        self.ask_stop(mode)
        if self._running is not None:
            await self._running

    def hear_trouble(self, text: str | None) -> None:
        """Notes what a runner cannot reach now, or that it can again (None); from the worker's
        loop."""
        if self._runtime is not None:
            self._runtime.health.hear(text)

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
        await self._remove_leftovers()
        group.add(runtime.reporter.run())
        group.add(runtime.cancellations.run())
        for speaking in runtime.speak_with_server():
            group.add(speaking)
        deafen = self._store.listen(runtime.hear)
        try:
            claiming = group.member(runtime.claimer.run())
            claiming.add_done_callback(lambda _: self._changed.ring())
            await self._attend(runtime)
            await self._wind_down(runtime, claiming)
        finally:
            deafen()
        jobs = len(runtime.jobs)
        self.tell("worker.stopped", settled=runtime.settled, jobs=jobs, leaves=self._leaves())

    async def _register(self, group: TaskGroup) -> Runtime:
        settings, host = self._settings, self._equipment.host
        store_id = await self._store.store_id()
        worker = await self._store.register_worker(
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
        return Runtime(self._equipment, worker, tasks, group, self._changed, self.tell)

    async def _adopt_orphans(self, runtime: Runtime, served: Served | None = None) -> None:
        """Adopts jobs of dead workers: only those in these queues, if any are named.

        Jobs that are tied died with their worker.
        """
        host = self._equipment.host
        if self._settings.tie_jobs:
            return
        find = partial(orphans_of_the_dead, self._store, host.process, host.is_alive)
        for lease in await self.persist(find) or []:
            if served is None or lease.task.queue in served:
                await runtime.adoption.adopt(lease, self.persist)

    async def _remove_leftovers(self) -> None:
        """Removes the leftovers of attempts; what cannot be removed now is tried again later,
        and keeps the worker from nothing."""
        runners = [r for r in self._equipment.runners if isinstance(r, TidyRunner)]
        if not runners:
            return
        try:
            name = store_name(await self._store.store_id())
            for removed in await remove_leftovers(self._store, runners, name):
                self.tell("leftover.removed", task=removed.task_id, attempt=removed.attempt)
        except Unavailable as error:
            self.tell("leftover.kept", error=str(error))

    async def _attend(self, runtime: Runtime) -> None:
        """Waits until asked to stop; looks now and then whether a worker beside this one has
        died."""
        rest = self._settings.adopt_interval_seconds
        look_at = self._clock.monotonic() + rest
        while not self._stop_asked:
            await self._alarm.wait(max(0.0, look_at - self._clock.monotonic()))
            if self._clock.monotonic() >= look_at:
                await self._adopt_from_the_dead(runtime)
                await self._remove_leftovers()
                look_at = self._clock.monotonic() + rest

    async def _adopt_from_the_dead(self, runtime: Runtime) -> None:
        """Adopts jobs of workers that have died, only in our queues: workers of other queues
        may keep their files elsewhere."""
        host = self._equipment.host
        look = partial(dead_workers_with_leases, self._store, host.process, host.is_alive)
        if not self._settings.tie_jobs and await self.persist(look):
            await self._adopt_orphans(runtime, Served(self._settings.queues))

    async def _wind_down(self, runtime: Runtime, claiming: asyncio.Task[None]) -> None:
        grace_seconds = self._settings.grace_seconds
        # This time is kept for the last reports, once all jobs are killed.
        flush_seconds = min(max(FLUSH_SECONDS_MIN, grace_seconds / 4), FLUSH_SECONDS_MAX)
        grace_seconds = max(0.0, grace_seconds - flush_seconds)
        runtime.claimer.ask_stop()
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
        """Leaves without a report of jobs that run: a worker that adopts them will."""
        await self._wait_until(
            lambda: runtime.reporter.idle and claiming.done(), seconds_max, LEAVING_LOOK_SECONDS
        )
        if not len(runtime.jobs):
            await self._say_goodbye(runtime, seconds_max)

    async def _wait_until(
        self, is_done: Callable[[], bool], seconds_max: float, look_seconds: float = math.inf
    ) -> None:
        """Waits for the time given, or until asked again to stop."""
        end_at = self._clock.monotonic() + seconds_max
        while not is_done() and not self._at_once:
            rest = end_at - self._clock.monotonic()
            if rest <= 0.0:
                return
            await self._changed.wait(min(rest, look_seconds))

    async def _say_goodbye(self, runtime: Runtime, seconds_max: float) -> None:
        leave = partial(self._store.stop_worker, runtime.worker)
        await self.persist(lambda: within(self._clock, seconds_max, leave()))
