"""Writes tasks as JSON lines: each with its history, attempts, outputs, usage and edges.

A file only grows, and what was written is on the disk before the caller goes on. After a
crash between writing and deleting, a task is in the file twice; a line that a crash tore
apart is followed by a new one, so a reader skips what it cannot read.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tidewheel.api.tasks import HistoryEntry, Task
from tidewheel.ports.tasks import TaskStore

HISTORY_PER_CALL = 1_000


async def task_line(store: TaskStore, task: Task) -> bytes:
    """Returns everything about one task, as one line of JSON."""
    fields = msgspec.to_builtins(task, order="deterministic")
    fields["spec"] = fields.pop("spec_text")  # as files of earlier versions have it
    parts = {
        "task": fields,
        "history": await _whole_history(store, task),
        "attempts": await store.attempts(task.id),
        "outputs": await store.outputs(task.id),
        "values": (await store.values_of([task.id])).get(task.id),
        "usage": await store.usage(task.id),
        "edges": await store.edges(task.id),
    }
    return msgspec.json.encode(parts, order="deterministic") + b"\n"


def append_lines(path: Path, lines: Sequence[bytes]) -> None:
    """Add lines at the end of a file, and return when they are on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    is_new = not path.exists()
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        separator = b"\n" if _is_torn(descriptor) else b""
        _write_all(descriptor, separator + b"".join(lines))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if is_new:
        _sync_directory(path.parent)


async def _whole_history(store: TaskStore, task: Task) -> list[HistoryEntry]:
    entries: list[HistoryEntry] = []
    while True:
        after = entries[-1].seq if entries else 0
        page = await store.history(task.id, after=after, count=HISTORY_PER_CALL)
        entries += page
        if len(page) < HISTORY_PER_CALL:
            return entries


def _is_torn(descriptor: int) -> bool:
    size = os.fstat(descriptor).st_size
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
