"""Offers every request that an application can make of a store, asynchronously.

Refusals and failures are the errors of ``tidewheel.errors``. A client may be used by any number
of coroutines of one event loop.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from tidewheel.api import tasks as things
from tidewheel.api.tasks import QueueView, Task, TaskList
from tidewheel.client import fields
from tidewheel.client.connection import Connection
from tidewheel.client.fields import QUEUE_DEFAULT, Filters, TaskFields, new_task, task_filter
from tidewheel.client.leases import LeaseApi
from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.requests import (
    AllCreated,
    Cancelled,
    KeysetPage,
    QueueSettings,
    Submitted,
    Wake,
)
from tidewheel.core.queue.task import NewTask, TaskId
from tidewheel.errors import InvalidTask, PayloadTooLarge
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.ports.runs import BringsReasons
from tidewheel.ports.store import Store
from tidewheel.services.explain import reasons

if TYPE_CHECKING:
    from tidewheel.client.runs import Blocks, Runs, Workflows
    from tidewheel.core.operator.stream import FollowedEvent

# ---- waiting for tasks, and looking at them ----


# Progress and changes by other processes may come without a wake-up.
POLL_SECONDS_FIRST = 0.05
POLL_SECONDS_MAX = 0.5
TASKS_PER_CALL_MAX = 1_000


TOLD_MAX = 10  # tasks that a message names


async def wait_for(
    store: Store,
    task_ids: Sequence[TaskId],
    timeout: float | None,
    on_progress: Callable[[Task], None] | None,
) -> list[Task]:
    """Waits until all tasks have ended, and returns them in the order of their ids.

    Raises TimeoutError after ``timeout`` seconds; calls ``on_progress`` with each task that has
    changed.
    """
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def ring(_: Wake) -> None:
        loop.call_soon_threadsafe(changed.set)

    stop_listening = store.listen(ring)
    seen: dict[TaskId, Task] = {}
    try:
        async with asyncio.timeout(timeout):
            return await _watch(store, task_ids, changed, on_progress, seen)
    except TimeoutError:
        left = [
            one for one in dict.fromkeys(task_ids) if one not in seen or not seen[one].ended
        ]
        states = [f"{one} ({seen[one].status if one in seen else 'not seen'})" for one in left]
        more = f" and {len(left) - TOLD_MAX} more" if len(left) > TOLD_MAX else ""
        told = ", ".join(states[:TOLD_MAX]) + more
        raise TimeoutError(f"not ended after {timeout} s: {told}") from None
    finally:
        stop_listening()


async def _watch(
    store: Store,
    task_ids: Sequence[TaskId],
    changed: asyncio.Event,
    on_progress: Callable[[Task], None] | None,
    seen: dict[TaskId, Task],
) -> list[Task]:
    pause = POLL_SECONDS_FIRST
    while True:
        changed.clear()
        # In as few calls as may be: there may be a hundred thousand.
        left = [
            one for one in dict.fromkeys(task_ids) if one not in seen or not seen[one].ended
        ]
        for start in range(0, len(left), TASKS_PER_CALL_MAX):
            for now in await store.get_many(left[start : start + TASKS_PER_CALL_MAX]):
                before, seen[now.id] = seen.get(now.id), now
                if on_progress is not None and _moved(before, now):
                    on_progress(now)
                    pause = POLL_SECONDS_FIRST
        if all(seen[task_id].ended for task_id in task_ids):
            return [seen[task_id] for task_id in task_ids]
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await changed.wait()
        pause = min(pause * 1.5, POLL_SECONDS_MAX)


def _moved(before: Task | None, now: Task) -> bool:
    watched = ("status", "attempt", "progress")
    return before is None or any(getattr(before, n) != getattr(now, n) for n in watched)


HISTORY_PAGE = 1_000


class ReadApi(Connection):
    """Holds the methods of a client that only read."""

    async def get(self, task_id: str) -> Task:
        """Returns the task with this id; raises NotFound if there is no such task."""
        return await self.store.get(TaskId(task_id))

    async def peek(self, queue: str = QUEUE_DEFAULT, count: int = 10) -> list[Task]:
        """Returns the tasks that would be leased next, without taking them."""
        return await self.store.peek(queue, count)

    async def history(self, task_id: str) -> list[things.HistoryEntry]:
        """Returns the whole history of a task, oldest first."""
        entries: list[things.HistoryEntry] = []
        while True:
            after = entries[-1].seq if entries else 0
            page = await self.store.history(TaskId(task_id), after, HISTORY_PAGE)
            entries += page
            if len(page) < HISTORY_PAGE:
                return entries

    async def attempts(self, task_id: str) -> list[things.AttemptView]:
        """Returns every attempt at the task in order; an attempt that still runs is the last.

        The ``error`` of a failed attempt has ``code`` and ``description``. If a handler raised
        an exception, the ``args`` of the error (JSON) have the ``traceback``.
        """
        return await self.store.attempts(TaskId(task_id))

    async def outputs(self, task_id: str) -> list[things.OutputView]:
        """Returns the task's messages and outputs in the order in which they were made."""
        return await self.store.outputs(TaskId(task_id))

    async def values(self, task_id: str) -> dict[str, object] | None:
        """Returns the values that the task passes to later tasks; None if it passes none."""
        found = await self.store.values_of([TaskId(task_id)])
        text = found.get(TaskId(task_id))
        return None if text is None else json.loads(text)

    async def inputs(self, task_id: str) -> dict[str, dict[str, object]]:
        """Returns the values of the tasks that this task needs, by their ids; tasks without
        values are left out."""
        found = await self.store.inputs(TaskId(task_id))
        return {one.id: json.loads(one.values_text) for one in found}

    async def usage(self, task_id: str) -> list[things.UsageView]:
        """Returns the samples of CPU, memory and GPU that the task used over time."""
        return await self.store.usage(TaskId(task_id))

    async def edges(self, task_id: str) -> list[things.EdgeView]:
        """Returns the edges of the task: what it waits for, and what waits for it."""
        return await self.store.edges(TaskId(task_id))

    async def why(self, task_id: str) -> list[str]:
        """Returns why the task does not run, in words; empty if nothing holds it back."""
        if isinstance(self.store, BringsReasons):
            return await self.store.why(TaskId(task_id))
        return await reasons(self.store, TaskId(task_id))

    async def wait(
        self,
        *task_ids: str,
        timeout: float | None = None,
        on_progress: Callable[[Task], None] | None = None,
    ) -> list[Task]:
        """Waits until all these tasks have ended, and returns them in the order of their ids
        in the call.

        Raises TimeoutError if that takes longer than ``timeout`` seconds.

        ``on_progress`` is called with each task once at the beginning, and whenever its
        status, attempt or progress has changed.
        """
        return await wait_for(
            self.store, [TaskId(task_id) for task_id in task_ids], timeout, on_progress
        )

    async def queues(self) -> list[QueueView]:
        """Returns every queue that has settings, has tasks that have not ended, or was used
        lately."""
        return await self.store.queues()

    async def queue(self, name: str) -> QueueView:
        """Returns the queue of this name; a queue that is not in the store yet has the default
        settings."""
        for view in await self.store.queues():
            if view.queue == name:
                return view
        settings = QueueSettings()
        return QueueView(queue=name, settings=settings, counts={}, oldest_ready_seconds=None)

    async def workers(self, *, live_only: bool = True) -> list[things.WorkerView]:
        """Returns the workers that have not stopped, newest first, each with its leases.

        With ``live_only=False`` workers that have stopped are returned, too.
        """
        return await self.store.workers(live_only=live_only)

    async def verify(self) -> list[things.Violation]:
        """Checks every row of the store and returns all inconsistencies; there should be
        none."""
        return await self.store.verify()


# ---- changing tasks and queues ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Holds what became of many tasks that were submitted at once.

    A task that is refused does not keep the others from being stored (002).
    """

    inserted: tuple[TaskId, ...] = ()
    present: tuple[TaskId, ...] = ()  # the same task was there already
    failed: tuple[Submitted, ...] = ()  # taken ids and names, unknown or circular dependencies
    invalid: tuple[Submitted, ...] = ()  # tasks that break a rule by themselves


_TICKS_PER_MS = 4096  # twelve bits of a version 7 UUID hold the fraction of a millisecond


class TimeOrderedIds:
    """Makes UUIDs of version 7 (RFC 9562): sorted as text they are sorted by time.

    Nothing but their order depends on the clock; if it is set back, ids are counted on from the
    last one until it has caught up.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last_ticks = 0

    def __call__(self) -> str:
        return self.many(1)[0]

    def many(self, count: int) -> list[str]:
        """Makes so many ids, each after the one before."""
        ticks = time.time_ns() * _TICKS_PER_MS // 1_000_000
        with self._lock:
            first = max(ticks, self._last_ticks + 1)
            self._last_ticks = last = first + count - 1
        digits = os.urandom(8 * count).hex()
        # Twelve digits of milliseconds; 7 is the version. Most ids have them in common.
        heads = {
            ms: f"{ms >> 16:08x}-{ms & 0xFFFF:04x}-7"
            for ms in range(first // _TICKS_PER_MS, last // _TICKS_PER_MS + 1)
        }
        # Three digits of the fraction, 8 for the variant, fifteen by chance.
        return [
            f"{heads[ticks // _TICKS_PER_MS]}{ticks % _TICKS_PER_MS:03x}"
            f"-8{digits[at : at + 3]}-{digits[at + 3 : at + 15]}"
            for ticks, at in zip(range(first, last + 1), range(0, 16 * count, 16), strict=True)
        ]


new_id = TimeOrderedIds()


class QueueChanges(TypedDict, total=False):
    """Holds the settings of a queue that can be changed; one that is not given stays as it
    is."""

    paused: bool
    aging: bool
    fair: bool
    fence_kill: bool
    lease_seconds: float
    limits: tuple[Limit, ...]


class WriteApi(Connection):
    """Holds the methods of a client that change tasks and queues."""

    async def submit(self, queue: str = QUEUE_DEFAULT, **task: Unpack[TaskFields]) -> Submitted:
        """Stores one task; the answer has its id, and says whether it is new (``created``).

        A task has a ``command`` for bash or a ``handler`` in Python, and may have a ``spec``:
        ``client.submit(handler="resize", spec={"width": 800})``. A task that has none of them,
        only ``needs``, runs nothing: it succeeds as soon as its needs are met. All fields are
        listed below.

        You may repeat a call: if the store already has the task, with the same id and fields,
        it is not stored twice. Raises InvalidTask with a list of all mistakes, Duplicate if
        another task has the same id, name or unique key, and UnknownDependency if the store
        does not have a task in ``needs``.
        """
        return (await self.store.submit([new_task(queue, task, new_id)]))[0]

    async def submit_many(
        self, tasks: Sequence[NewTask | Mapping[str, Any]], *, atomic: bool = False
    ) -> Batch:
        """Stores many tasks: each by itself, or with ``atomic`` all of them or none.

        With ``atomic`` a refused task raises its error, and nothing is stored. Without it, a
        refused task raises no error; the answer lists the refused tasks. Each task is a
        dictionary with the fields of ``submit`` and the key ``queue``; it may need tasks that
        come before it in the list.
        """
        if (alike := fields.alike_tasks(tasks, new_id.many)) is not None:
            return _batch(await self.store.submit(alike, atomic=atomic), ())
        built: list[NewTask] = []
        invalid: list[Submitted] = []
        for task in tasks:
            try:
                built.append(_built(task))
            except InvalidTask as refused:
                if atomic:
                    raise
                invalid.append(Submitted(id=TaskId(refused.task_id), refused=refused))
        return _batch(await self.store.submit(built, atomic=atomic), invalid)

    async def arm(self, task_id: str) -> Task:
        """Arms a task that was created unarmed, so that it can become ready; returns the
        task."""
        return await self.store.arm(TaskId(task_id))

    async def amend(self, task_id: str, **changed: Unpack[TaskFields]) -> Task:
        """Changes fields of a task whose status is waiting: name, command, retries,
        estimated_runtime, max_termination, and its resources. Resources (cpu, memory, gpu,
        labels, nodes, exclusive, buffer and flavours) are only replaced together: a resource
        that is not given gets its default value."""
        return await self.store.amend(TaskId(task_id), fields.amendment(task_id, changed))

    async def add_continuations(self, task_id: str, continuations: Sequence[str]) -> None:
        """Makes the tasks ``continuations`` wait for the task ``task_id``."""
        await self.store.add_edges([(TaskId(task_id), TaskId(c)) for c in continuations])

    async def remove_continuations(self, task_id: str, continuations: Sequence[str]) -> None:
        """Makes the tasks ``continuations`` no longer wait for the task ``task_id``."""
        await self.store.remove_edges([(TaskId(task_id), TaskId(c)) for c in continuations])

    async def cancel(self, *task_ids: str) -> list[Cancelled]:
        """Cancels tasks and all tasks that need them; a second call changes nothing.

        A task that has not started ends at once. A running task is told to end, and has the
        status ``cancelling`` until it has ended. Raises NotFound for an unknown id.
        """
        return await self.store.cancel([TaskId(task_id) for task_id in task_ids])

    async def cancel_matching(
        self, *, count_max: int = 1000, **which: Unpack[Filters]
    ) -> list[Cancelled]:
        """Cancels tasks that match the filters of ``list`` and have not ended, oldest first.

        One call cancels at most ``count_max`` tasks.
        """
        return await self.store.cancel_matching(task_filter(**which), count_max)

    async def resubmit(
        self, *task_ids: str, with_children: bool = False, dry_run: bool = False
    ) -> list[things.Resubmitted]:
        """Submits ended tasks again, each as a new task with the same fields and needs.

        Each task can be resubmitted once: a second call creates nothing, and returns the new
        task of the first call. To try once more, resubmit the new task. If a task that it needs
        has failed as well, the new task waits for the resubmitted copy of the failed task; if
        there is no copy, the answer has the reason in ``refused``. ``with_children`` adds the
        tasks that were cancelled because they need one of these tasks; ``dry_run`` stores
        nothing.
        """
        wanted = [TaskId(task_id) for task_id in task_ids]
        return await self.store.resubmit(wanted, with_children=with_children, dry_run=dry_run)

    async def pause_queue(self, queue: str) -> None:
        """Pauses a queue: workers take none of its tasks until it is resumed. Running tasks
        continue."""
        await self.store.pause_queue(queue, paused=True)

    async def resume_queue(self, queue: str) -> None:
        """Resumes a paused queue: workers may take its tasks again."""
        await self.store.pause_queue(queue, paused=False)

    async def configure_queue(
        self, queue: str, **changes: Unpack[QueueChanges]
    ) -> QueueSettings:
        """Changes the given settings of a queue, and returns all of its settings."""
        stored = {view.queue: view.settings for view in await self.store.queues()}
        settings = replace(stored.get(queue, QueueSettings()), **changes)
        await self.store.configure_queue(queue, settings)
        return settings


def _built(task: NewTask | Mapping[str, Any]) -> NewTask:
    if isinstance(task, NewTask):
        fields.check_spec(task)
        return task
    given = dict(task)
    return new_task(given.pop("queue", QUEUE_DEFAULT), given, new_id)


def _batch(answers: Sequence[Submitted], invalid: Sequence[Submitted]) -> Batch:
    if isinstance(answers, AllCreated):
        return Batch(inserted=tuple(answers.ids))
    refused = [answer for answer in answers if answer.refused is not None]
    broken = [a for a in refused if isinstance(a.refused, InvalidTask | PayloadTooLarge)]
    return Batch(
        inserted=tuple(answer.id for answer in answers if answer.created),
        present=tuple(a.id for a in answers if a.refused is None and not a.created),
        failed=tuple(answer for answer in refused if answer not in broken),
        invalid=(*invalid, *broken),
    )


# ---- all of it ----


class AsyncClient(WriteApi, ReadApi, LeaseApi):
    """Connects code with asyncio to a store (PostgreSQL or SQLite) or a server.

        import asyncio
        from tidewheel import AsyncClient


        async def main():
            async with AsyncClient() as client:
                await client.submit(command="echo hello")


        asyncio.run(main())

    The first argument can be the address of a database or of a server (``https://…``), or an
    open store, which the client does not close. Without it the client uses the store or the
    server of this user (docs/configuration.md).
    """

    @property
    def runs(self) -> Runs:
        """Gives access to runs: to look at them, and act on those that a scheduler drives."""
        # An application that only uses the queue need not load what knows about runs.
        from tidewheel.client.runs import Runs

        return Runs(self)

    @property
    def workflows(self) -> Workflows:
        """Gives access to the registry: definitions by name and version, and runs of them."""
        from tidewheel.client.runs import Workflows

        return Workflows(self)

    @property
    def blocks(self) -> Blocks:
        """Gives access to scheduling block instances, processing blocks and buffer objects."""
        from tidewheel.client.runs import Blocks

        return Blocks(self)

    async def events(
        self,
        *,
        since: str | None = None,
        run: str | None = None,
        queue: str | None = None,
        kind: str | None = None,
    ) -> AsyncGenerator[FollowedEvent, None]:
        """Yields the events of tasks and runs from now on, or after the event ``since``.

        The first event has the kind `start`; its id is the position after which events are
        read. An event of the kind `resync` says that some events were missed and are lost: read
        the state of what you follow again, then continue with the next event. If the server or
        the database does not answer for a while, the call waits for it.
        """
        # An application that only uses the queue need not load what knows about runs.
        from tidewheel.client.runs import follow

        async with aclosing(follow(self.store, since, run, queue, kind)) as events:  # type: ignore[type-var]
            async for event in events:
                yield event

    # Here and not in ReadApi: a method of this name hides the type in its class.
    async def list(
        self, *, limit: int = 100, before: int | None = None, **which: Unpack[Filters]
    ) -> TaskList:
        """Returns tasks, newest first; ``before`` is the last ``seq`` of the previous page.

        All filters that are given must match: ``client.list(status="failed", queue="mail")``.
        Raises TypeError for an unknown filter. With ``matching`` the search ends when
        ``limit`` tasks are found or all tasks were searched.
        """
        asked, found = task_filter(**which), TaskList(next=before)
        while True:
            page = KeysetPage(count=limit - len(found), before=found.next)
            part = await self.store.list_tasks(asked, page)
            found = TaskList([*found, *part], part.next, found.looked + part.looked)
            if part.next is None or len(found) >= limit:
                return found

    async def close(self) -> None:
        """Signs off as a worker, if it was one, and closes a store that it opened itself."""
        try:
            await self.sign_off()
        finally:
            await super().close()
