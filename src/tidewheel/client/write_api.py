"""Offers the requests that change tasks and queues, and makes ids for new tasks."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict, Unpack

from tidewheel.api.tasks import Task
from tidewheel.client.connection import Connection
from tidewheel.client.fields import (
    QUEUE_DEFAULT,
    Filters,
    TaskFields,
    amendment,
    check_spec,
    new_task,
    task_filter,
)
from tidewheel.client.results import Batch
from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.requests import Cancelled, QueueSettings, Submitted
from tidewheel.core.queue.task import NewTask, TaskId
from tidewheel.errors import InvalidTask, PayloadTooLarge

_TICKS_PER_MS = 4096  # twelve bits of a version 7 UUID hold the fraction of a millisecond


class TimeOrderedIds:
    """UUIDs of version 7 (RFC 9562): sorted as text they are sorted by time.

    The clock only orders them, it decides nothing; a clock that is set back is waited out by
    counting on from the last id.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last_ticks = 0

    def __call__(self) -> str:
        ticks = time.time_ns() * _TICKS_PER_MS // 1_000_000
        with self._lock:
            self._last_ticks = ticks = max(ticks, self._last_ticks + 1)
        milliseconds, fraction = divmod(ticks, _TICKS_PER_MS)
        chance = int.from_bytes(os.urandom(8)) & (2**62 - 1) | 2**63
        digits = f"{milliseconds:012x}7{fraction:03x}{chance:016x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


new_id = TimeOrderedIds()


# The requests.


class QueueChanges(TypedDict, total=False):
    """The settings of a queue that can be changed; one that is not given stays as it is."""

    paused: bool
    aging: bool
    fence_kill: bool
    lease_seconds: float
    limits: tuple[Limit, ...]


class WriteApi(Connection):
    """The methods of a client that change tasks and queues."""

    async def submit(self, queue: str = QUEUE_DEFAULT, **task: Unpack[TaskFields]) -> Submitted:
        """Store one task; the answer has its id and whether it is new."""
        answers = await self.store.submit([new_task(queue, task, new_id)])
        return answers[0]

    async def submit_many(
        self, tasks: Sequence[NewTask | Mapping[str, Any]], *, atomic: bool = False
    ) -> Batch:
        """Store many; each by itself, or with ``atomic`` all or none (the refusal is raised).

        A task is a dictionary of the fields of ``submit``, with ``queue`` among them.
        """
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
        """Let a task that was created unarmed run."""
        return await self.store.arm(TaskId(task_id))

    async def amend(self, task_id: str, **changed: Unpack[TaskFields]) -> Task:
        """Change a task that waits: name, command, retries, estimated_runtime,
        max_termination; cpu, memory, gpu, labels, nodes, exclusive and buffer together."""
        return await self.store.amend(TaskId(task_id), amendment(task_id, changed))

    async def add_continuations(self, task_id: str, continuations: Sequence[str]) -> None:
        """Let these tasks wait for this one."""
        await self.store.add_edges([(TaskId(task_id), TaskId(c)) for c in continuations])

    async def remove_continuations(self, task_id: str, continuations: Sequence[str]) -> None:
        """Let these tasks no longer wait for this one."""
        await self.store.remove_edges([(TaskId(task_id), TaskId(c)) for c in continuations])

    async def cancel(self, *task_ids: str) -> list[Cancelled]:
        """Cancel tasks and everything that needs them; again changes nothing."""
        return await self.store.cancel([TaskId(task_id) for task_id in task_ids])

    async def cancel_matching(
        self, *, count_max: int = 1000, **which: Unpack[Filters]
    ) -> list[Cancelled]:
        """Cancel what the filters of ``list`` find and has not ended, oldest first."""
        return await self.store.cancel_matching(task_filter(**which), count_max)

    async def pause_queue(self, queue: str) -> None:
        """No task of the queue is leased until it is resumed; what runs goes on."""
        await self.store.pause_queue(queue, paused=True)

    async def resume_queue(self, queue: str) -> None:
        """Let tasks of the queue be leased again."""
        await self.store.pause_queue(queue, paused=False)

    async def configure_queue(
        self, queue: str, **changes: Unpack[QueueChanges]
    ) -> QueueSettings:
        """Set how a queue behaves."""
        stored = {view.queue: view.settings for view in await self.store.queues()}
        settings = replace(stored.get(queue, QueueSettings()), **changes)
        await self.store.configure_queue(queue, settings)
        return settings


def _built(task: NewTask | Mapping[str, Any]) -> NewTask:
    if isinstance(task, NewTask):
        check_spec(task)
        return task
    given = dict(task)
    return new_task(given.pop("queue", QUEUE_DEFAULT), given, new_id)


def _batch(answers: Sequence[Submitted], invalid: Sequence[Submitted]) -> Batch:
    refused = [answer for answer in answers if answer.refused is not None]
    broken = [a for a in refused if isinstance(a.refused, InvalidTask | PayloadTooLarge)]
    return Batch(
        inserted=tuple(answer.id for answer in answers if answer.created),
        present=tuple(a.id for a in answers if a.refused is None and not a.created),
        failed=tuple(answer for answer in refused if answer not in broken),
        invalid=(*invalid, *broken),
    )
