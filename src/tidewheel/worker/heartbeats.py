"""Sends signs of life for every lease that a worker holds, and fences those that need it.

Theory of operation
-------------------
The worker writes leases into the book when it claimed them and strikes them out when the
store has taken their end. Heartbeats read the book and send what is due in one call, a third
of a lease after the store last granted it. In production they run in a thread with an event
loop and a store connection of its own, so that nothing which keeps the worker's loop busy
delays them; in a simulation they are one more coroutine.

A lease counts as granted from the moment before the request was sent, which is never later
than the moment at which the database granted it. The fence rests on that: a job that must
not overlap with its successor is stopped by the local monotonic clock while its lease, by
the database's clock, still has a quarter to go.

Progress travels with the beats. Where a third of a lease is long, news of it are sent a second
after the last beat: however many jobs tell however much, it is one call a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import ParamSpec

from tidewheel.core.queue.lease import SIGN_SECONDS_MAX, LeaseAnswer
from tidewheel.core.queue.requests import Beat
from tidewheel.core.queue.task import WorkerId
from tidewheel.ports.store import Store
from tidewheel.services.service import Service, ServiceReport, Surroundings, TaskGroup, within
from tidewheel.worker.attempts import FENCE_MARGIN, Attempt, LeaseBook, StopReason, fence_at

P = ParamSpec("P")


def in_loop(loop: asyncio.AbstractEventLoop, call: Callable[P, object]) -> Callable[P, None]:
    """Returns a function that makes the call soon in ``loop``, from whichever thread."""

    def make_call(*args: P.args, **kwargs: P.kwargs) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to call
            loop.call_soon_threadsafe(lambda: call(*args, **kwargs))

    return make_call


async def run_in_thread(service: Service) -> None:
    """Runs a service in a thread to its end, and raises its failure here.

    Cancelling this call ends the service.
    """
    here = asyncio.get_running_loop()
    ended: asyncio.Future[None] = here.create_future()
    cancel: asyncio.Future[Callable[[], None]] = here.create_future()

    async def work() -> None:
        task = asyncio.current_task()
        assert task is not None
        in_loop(here, cancel.set_result)(in_loop(asyncio.get_running_loop(), task.cancel))
        await service.run()

    def body() -> None:
        try:
            asyncio.run(work())
        except asyncio.CancelledError:
            in_loop(here, ended.set_result)(None)
        except BaseException as error:
            in_loop(here, ended.set_exception)(error)
        else:
            in_loop(here, ended.set_result)(None)

    threading.Thread(target=body, name=service.name, daemon=True).start()
    try:
        await asyncio.wait((ended,))
    finally:
        (await cancel)()
        await asyncio.wait((ended,))
    ended.result()


OpenStore = Callable[[], AbstractAsyncContextManager[Store]]
StopJob = Callable[[Attempt, StopReason, float], None]  # attempt, why, grace in seconds


class Heartbeats(Service):
    """Extends the leases in the book and passes on what the store answers."""

    def __init__(
        self,
        open_store: OpenStore,
        worker: WorkerId,
        book: LeaseBook,
        stop_job: StopJob,
        surroundings: Surroundings,
    ) -> None:
        super().__init__("heartbeats", surroundings, book.beat_wakeup)
        self._open_store = open_store
        self._worker = worker
        self._book = book
        self._stop_job = stop_job
        self._store: Store | None = None
        self._idle_until = 0.0

    async def run(self) -> None:
        group = TaskGroup()
        group.add(self._keep_fence())
        await group.oversee(self._run_connected())

    async def run_once(self) -> Sequence[ServiceReport]:
        assert self._store is not None, "heartbeats need a store"
        now = self._clock.monotonic()
        due = self._book.due(now)
        if not due and now < self._idle_until:
            return ()
        # A lease that is claimed while this call hangs must be renewed in time, too.
        shortest = min((a.task.lease_seconds for a in due), default=SIGN_SECONDS_MAX)
        patience = min(shortest, SIGN_SECONDS_MAX) / 2
        beats = [
            Beat(task_id=a.task.id, attempt=a.task.attempt, progress=a.latest_progress)
            for a in due
        ]
        call = self._store.heartbeat(self._worker, beats)
        answers = await within(self._clock, patience, call)
        self._idle_until = now + SIGN_SECONDS_MAX
        return self._heed(due, beats, answers, now)

    def rest_seconds(self) -> float | None:
        return max(0.0, self._book.next_due_at(self._idle_until) - self._clock.monotonic())

    def _heed(
        self, due: list[Attempt], beats: list[Beat], answers: list[LeaseAnswer], sent_at: float
    ) -> list[ServiceReport]:
        assert len(answers) == len(due), (len(answers), len(due))
        for attempt, beat, answer in zip(due, beats, answers, strict=True):
            match answer:
                case LeaseAnswer.GO_ON:
                    self._book.confirm(attempt, sent_at, beat.progress)
                case LeaseAnswer.CANCEL:
                    self._book.confirm(attempt, sent_at, beat.progress)
                    grace_seconds = attempt.task.max_termination_seconds
                    self._stop_job(attempt, StopReason.CANCEL, grace_seconds)
                case LeaseAnswer.LOST:
                    self._book.strike_out([attempt])
                    self._stop_job(attempt, StopReason.LOST, 0.0)
        return [self.report("heartbeats.sent", count=len(due))] if due else []

    async def _run_connected(self) -> None:
        opened = await self.persist(self._connect)
        if opened is None:
            return
        try:
            await super().run()
        finally:
            self._store = None
            await opened.aclose()

    async def _connect(self) -> AsyncExitStack:
        async with AsyncExitStack() as stack:
            self._store = await stack.enter_async_context(self._open_store())
            return stack.pop_all()
        raise AssertionError("an exit stack swallows no exception")

    async def _keep_fence(self) -> None:
        while True:
            now = self._clock.monotonic()
            rest = None
            for attempt in self._book.fenced():
                rest = fence_at(attempt) - now
                if rest > 0.0:
                    break
                rest = None
                grace_seconds = attempt.task.lease_seconds * FENCE_MARGIN / 2
                self._stop_job(attempt, StopReason.FENCE, grace_seconds)
            await self._book.fence_wakeup.wait(rest)
