"""Events as documents: what followers of a store are told, in the words of every other view.

A document holds the state after the event, not the way there: applied again, or to a state that
is newer already and followed by what comes after, it leads to the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path

from tidewheel.core.cycling.style import PointStyle
from tidewheel.core.operator.names import read_job_name
from tidewheel.core.operator.stream import Event, RunEvent, TaskEvent
from tidewheel.core.sched.persistence import (
    Change,
    DropTask,
    ForgetMemory,
    PooledTaskRow,
    PutMemory,
    PutTask,
)
from tidewheel.core.sched.task_state import Key
from tidewheel.errors import Refused
from tidewheel.ports.store import Store
from tidewheel.services.definitions.snapshot import restore
from tidewheel.services.paths import run_directory
from tidewheel.views.run_facts import Document
from tidewheel.views.status_text import FUTURE, TaskWords, memory_words, row_words
from tidewheel.vocabulary import time_text

TASKS_MAX = 2_000  # of one batch, told one by one
STYLES_MAX = 100  # runs whose way to write points is remembered
_LEFT = TaskWords(FUTURE)  # it left the pool as if it had never been spawned


class EventDocuments:
    """Makes documents of the events of one store."""

    def __init__(self, store: Store, home: Path) -> None:
        self._store, self._home = store, home
        self._styles: dict[int, PointStyle | None] = {}

    async def of(self, event: Event) -> Document:
        """One event in words."""
        if isinstance(event, TaskEvent):
            return step_document(event)
        changed = changed_tasks(event.changes)
        style = await self.style(event) if changed and len(changed) <= TASKS_MAX else None
        tasks = None if changed and style is None else _tasks(style, changed)
        return batch_document(event) | {"changed": len(changed), "tasks": tasks}

    async def style(self, event: RunEvent) -> PointStyle | None:
        """How this run writes its points; None if nobody can know that any more."""
        if event.number not in self._styles:
            while len(self._styles) >= STYLES_MAX:
                del self._styles[next(iter(self._styles))]
            self._styles[event.number] = await self._read_style(event)
        return self._styles[event.number]

    async def _read_style(self, event: RunEvent) -> PointStyle | None:
        try:
            view = await self._store.run(event.number)
            definition = await self._store.definition(view.definition)
            folder = run_directory(self._home, view.name)
            # To read a large definition takes a second, for which others need not wait.
            restored = await asyncio.to_thread(restore, definition, view.options, folder)
        except (Refused, OSError):
            return None
        return restored.graph.cycling.style


def step_document(event: TaskEvent) -> Document:
    """A step of a task."""
    job = None if event.run is None else read_job_name(event.task_id)
    return {
        "id": event.task_id,
        "queue": event.queue,
        "run": event.run,
        "point": None if job is None else job.point,
        "name": event.name if job is None else job.node,
        "submit": None if job is None else job.submit,
        "signal": None if event.signal is None else event.signal.value,
        "from": None if event.from_status is None else event.from_status.value,
        "to": event.to_status.value,
        "attempt": event.attempt,
        "worker": event.worker,
        "progress": event.progress,
        "exit_status": event.exit_status,
        "at": time_text(event.at),
    }


def batch_document(event: RunEvent) -> Document:
    """A batch of a run, without its tasks."""
    return {
        "run": event.run,
        "number": event.number,
        "workflow": event.workflow,
        "status": event.status,
        "reason": event.reason,
        "batch": event.batch,
        "at": time_text(event.at),
    }


def changed_tasks(changes: Iterable[Change]) -> dict[Key, tuple[TaskWords, int]]:
    """The tasks that came into the pool, moved in it or left it: words and submit number."""
    rows, memories = last_rows(changes)
    return {
        key: _left(memories.get(key)) if row is None else (row_words(row), row.submit)
        for key, row in rows.items()
    }


def last_rows(
    changes: Iterable[Change],
) -> tuple[dict[Key, PooledTaskRow | None], dict[Key, PutMemory]]:
    """The last row of each such task, None if it left, and what is remembered of it."""
    rows: dict[Key, PooledTaskRow | None] = {}
    memories: dict[Key, PutMemory] = {}
    for change in changes:
        match change:
            case PutTask(row):
                rows[row.point, row.name] = row
            case DropTask(key):
                rows[key] = None
            case PutMemory(key=key):
                memories[key] = change
            case ForgetMemory(PutMemory(key=key) as memory):
                memories[key] = memory
            case _:
                pass
    return rows, memories


def _left(memory: PutMemory | None) -> tuple[TaskWords, int]:
    return (_LEFT, 0) if memory is None else (memory_words(memory), memory.submits)


def _tasks(
    style: PointStyle | None, changed: Mapping[Key, tuple[TaskWords, int]]
) -> list[Document]:
    if style is None:
        return []
    return [
        pooled_document(style.text(point), name, words, submit)
        for (point, name), (words, submit) in changed.items()
    ]


def pooled_document(point: str, name: str, words: TaskWords, submit: int) -> Document:
    """A task of a run, in the pool or just out of it."""
    return {
        "id": f"{point}/{name}",
        "point": point,
        "name": name,
        "state": words.state,
        "remarks": list(words.remarks),
        "flows": sorted(words.flows),
        "submit": submit,
        "in_pool": words.pooled,
    }
