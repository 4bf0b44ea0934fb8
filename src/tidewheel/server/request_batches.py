"""Hands to the store in one call what many requests ask of it at the same time.

Theory of operation
-------------------
A call of the store costs a transaction and, unless the database is in this process, a change of
thread and several round trips, whether it is about one task or a hundred. So what is asked
while a call is under way waits for its end, and is handed over together: the busier the server,
the less each request costs; when it is idle, nothing waits. What was asked before a call began
is part of that call or of a later one, never of an earlier one: whoever asks after an answer
came sees what that answer told of.

A call that takes unusually long, because of a lock or a slow disk, holds up nobody for long:
after ``PATIENCE_SECONDS`` those who came since are handed over beside it.

Of a crowd of clients that submit one task after the other, each sends the next one when it has
its answer, and few of them at the very same moment. So as many as came to the last call are
waited for, ``CROWD_SECONDS`` at most: a transaction with sixteen tasks costs little more than
one with five. If fewer come, fewer are expected the next time; who is alone never waits.

Nobody waits for the answer to a heartbeat, and all workers send them all the time. So after a
call with heartbeats the next begins a while later, the later the more they were, up to a tenth
of a second: thousands of workers cost the store ten transactions a second. Who comes alone is
not held up for that, and once a call is full, it begins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from tidewheel.api.tasks import Task
from tidewheel.core.queue.access import AuditEntry
from tidewheel.core.queue.lease import LeaseAnswer, check_progress
from tidewheel.core.queue.requests import Beat, Submitted, WorkerBeats
from tidewheel.core.queue.task import NewTask, TaskId, WorkerId
from tidewheel.errors import Duplicate, NotFound, StoreUnreachable
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.ports.store import Store

Item = TypeVar("Item")
Found = TypeVar("Found")

PATIENCE_SECONDS = 0.05
CALLS_MAX = 4  # at once
TASKS_MAX = 100  # in one call
CROWD_SECONDS = 0.002  # for so long, at most, a call waits for as many as came to the last
BEAT_REST_SECONDS = 0.02  # after a call, for each worker whose heartbeats it had
REST_SECONDS_MAX = 0.1
WORKERS_MAX = 100  # whose heartbeats are in one call
BEATS_MAX = 100  # of a worker; one with more leases than that has a call of its own


class AuditedTask(NamedTuple):
    """Holds a task to be stored, and what the audit is to say of the outcome."""

    task: NewTask
    entry: Callable[[Submitted], AuditEntry]


class GatheredRequests:
    """Holds what requests of one server ask together: tasks by their ids, and to store tasks
    and heartbeats.

    A task is stored together with those of other requests only if it is alone in its own, and
    tied to no other task: then whether it is refused does not depend on those beside it.
    """

    def __init__(
        self,
        asking: Store,
        store: Store,
        reporting: Store | None = None,
        on_audited: Callable[[AuditEntry], None] = lambda _: None,
    ) -> None:
        self._asking, self._store = asking, store
        self._reporting, self._on_audited = reporting or store, on_audited
        self.tasks: Gathering[TaskId, Task] = Gathering(self._found, TASKS_MAX)
        self.submissions: Gathering[AuditedTask, Submitted] = Gathering(
            self._stored, TASKS_MAX, crowd_seconds=CROWD_SECONDS
        )
        self._beats: Gathering[WorkerBeats, list[LeaseAnswer]] = Gathering(
            self._renewed, WORKERS_MAX, rest_seconds=BEAT_REST_SECONDS
        )

    async def heartbeat(self, worker: WorkerId, beats: list[Beat]) -> list[LeaseAnswer]:
        """Extends leases of a worker, as ``Store.heartbeat`` does."""
        for beat in beats:
            check_progress(beat.progress)
        if len(beats) > BEATS_MAX:
            return await self._reporting.heartbeat(worker, beats)
        return await self._beats.ask(WorkerBeats(worker, beats))

    async def _renewed(
        self, told: list[WorkerBeats]
    ) -> Sequence[list[LeaseAnswer] | Exception]:
        try:
            return await self._reporting.heartbeats(told)
        except StoreUnreachable:
            raise  # for none of them
        except Exception:
            if len(told) == 1:
                raise
            # Nothing was extended. Whose fault it is shows when each is taken by itself.
            each = (self._reporting.heartbeat(*one) for one in told)
            return list(map(_told, await asyncio.gather(*each, return_exceptions=True)))

    async def _found(self, ids: list[TaskId]) -> list[Task | Exception]:
        found = {task.id: task for task in await self._asking.find_each(list(set(ids)))}
        return [found.get(one) or NotFound("task", one) for one in ids]

    async def _stored(self, tasks: list[AuditedTask]) -> list[Submitted | Exception]:
        def entries_of(answers: Sequence[Submitted]) -> list[AuditEntry]:
            # A refusal may not be the last word, and is told by whoever hears it.
            return [
                entry(one)
                for (_, entry), one in zip(tasks, answers, strict=True)
                if one.refused is None
            ]

        try:
            answers, last = await self._store.submit_audited(
                [task for task, _ in tasks], entries_of
            )
        except StoreUnreachable:
            raise  # nobody knows what was stored
        except Exception:
            if len(tasks) == 1:
                raise
            # Nothing was stored. Whose fault it is shows when each is stored by itself.
            each = (self._stored([task]) for task in tasks)
            outcomes = map(_told, await asyncio.gather(*each, return_exceptions=True))
            return [one[0] if isinstance(one, list) else one for one in outcomes]
        if last is not None:
            self._on_audited(last)
        # One of these may have been refused for the sake of another that was refused, too.
        found: list[Submitted | Exception] = []
        for task, one in zip(tasks, answers, strict=True):
            is_doubtful = len(tasks) > 1 and isinstance(one.refused, Duplicate)
            found.append(await self._alone(task) if is_doubtful else one.refused or one)
        return found

    async def _alone(self, task: AuditedTask) -> Submitted | Exception:
        try:
            return (await self._stored([task]))[0]
        except Exception as error:
            return error


def _told(outcome: Found | BaseException) -> Found | Exception:
    """Returns what came of a call, its error as well; raises what is not for its asker."""
    if isinstance(outcome, BaseException) and not isinstance(outcome, Exception):
        raise outcome
    return outcome


class Gathering(Generic[Item, Found]):
    """Gathers what is asked in one event loop.

    ``work`` is given up to ``count_max`` items and answers each in its place, with what was
    found or with the error that its asker is told. An error that it raises is told to all.
    """

    def __init__(
        self,
        work: Callable[[list[Item]], Awaitable[Sequence[Found | Exception]]],
        count_max: int,
        calls_max: int = CALLS_MAX,
        *,
        drops_gone: bool = True,
        rest_seconds: float = 0.0,
        crowd_seconds: float = 0.0,
    ) -> None:
        """``drops_gone``: what nobody waits for any more is not begun. ``rest_seconds``: so
        long for each item of a call, up to ``REST_SECONDS_MAX``, the next does not begin,
        unless it is full. ``crowd_seconds``: so long, at most, one waits for as many items as
        the last had."""
        self._work, self._count_max, self._calls_max = work, count_max, calls_max
        self._drops_gone, self._rest_seconds = drops_gone, rest_seconds
        self._crowd_seconds, self._crowd = crowd_seconds, 1  # how many are expected
        self._waiting: list[tuple[Item, asyncio.Future[Found]]] = []
        self._calls: set[asyncio.Task[None] | None] = set()
        self._loop: asyncio.AbstractEventLoop | None = None  # of those who ask
        # By the loop's clock:
        self._patience_ends = 0.0  # of the call that began last
        self._next_begins = 0.0  # at the earliest
        self._resting: asyncio.TimerHandle | None = None

    def ask(self, item: Item) -> asyncio.Future[Found]:
        """Returns what will be found for one item, or the error that it is answered with."""
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
        done: asyncio.Future[Found] = loop.create_future()
        self._waiting.append((item, done))
        if not self._calls:
            if not self._rest_seconds and len(self._waiting) >= self._crowd:
                self._begin()
            elif self._rest_seconds or self._resting is None:
                self._begin_in_time()
        elif loop.time() >= self._patience_ends:  # nobody waited when patience was over
            self._grow_impatient()
        return done

    def _begin_in_time(self) -> None:
        """Begins a call for those who wait, or sees to it that one begins when it may."""
        rest = self._rest()
        if rest <= 0:
            self._begin()
        elif self._resting is None:
            loop = asyncio.get_running_loop()
            self._resting = loop.call_later(rest, self._grow_impatient)

    def _rest(self) -> float:
        """Returns for how many seconds no call need begin, although somebody waits."""
        count = len(self._waiting)
        if count >= self._count_max:
            return 0.0
        if self._rest_seconds:
            return self._next_begins - asyncio.get_running_loop().time()
        return self._crowd_seconds if count < self._crowd else 0.0

    def _begin(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
            self._resting = None
        self._patience_ends = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        call = asyncio.create_task(self._call())
        self._calls.add(call)

    def _grow_impatient(self) -> None:
        self._resting = None
        if self._waiting and len(self._calls) < self._calls_max:
            self._begin()

    async def _call(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            some = self._waiting[: self._count_max]
            del self._waiting[: self._count_max]
            if self._drops_gone and not (some := [one for one in some if not one[1].done()]):
                continue
            patience = loop.call_later(PATIENCE_SECONDS, self._grow_impatient)
            self._patience_ends = loop.time() + PATIENCE_SECONDS
            rest = min(len(some) * self._rest_seconds, REST_SECONDS_MAX)
            self._next_begins = loop.time() + rest
            if self._crowd_seconds:
                # One that has left is soon expected no more; one that is late, still is.
                self._crowd = max(len(some), (self._crowd + len(some)) // 2)
            try:
                answers = await self._work([item for item, _ in some])
            except Exception as error:  # whoever waits for it raises it
                answers = [error] * len(some)
            finally:
                patience.cancel()
            for (_, done), answer in zip(some, answers, strict=True):
                if done.done():  # its asker has gone
                    continue
                if isinstance(answer, Exception):
                    done.set_exception(answer)
                else:
                    done.set_result(answer)
            if self._rest() > 0:
                break
        # In this step of the loop: whoever asks from now on has to begin another.
        self._calls.discard(asyncio.current_task())
        if self._waiting:
            self._begin_in_time()
