"""Which tasks a request is about, in words of any vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, Unpack

from tidewheel.core.queue.requests import TaskFilter
from tidewheel.core.queue.task import WorkerId
from tidewheel.vocabulary import Vocabulary, statuses_named


class Filters(TypedDict, total=False):
    """Everything given must match; None matches all."""

    status: str | Sequence[str] | None  # one word, or any of several
    queue: str | None
    worker: str | None
    tag: str | None
    name: str | None
    estimated_runtime_seconds_max: float | None
    memory_bytes_min: int | None  # asks for at least so much
    vocabulary: Vocabulary | str  # whose meaning an ambiguous status has


def task_filter(**which: Unpack[Filters]) -> TaskFilter:
    """The store's filter."""
    if unknown := which.keys() - Filters.__annotations__.keys():
        # A filter that is not heard would find, or cancel, too much.
        raise TypeError(f"there is no filter {sorted(unknown)[0]!r}")
    status, worker = which.get("status"), which.get("worker")
    words = [status] if isinstance(status, str) else status
    vocabulary = Vocabulary(which.get("vocabulary", Vocabulary.TIDEWHEEL))
    return TaskFilter(
        statuses=statuses_named(words, vocabulary) if words else None,
        queue=which.get("queue"),
        worker=None if worker is None else WorkerId(worker),
        tag=which.get("tag"),
        name=which.get("name"),
        estimated_runtime_seconds_max=which.get("estimated_runtime_seconds_max"),
        memory_bytes_min=which.get("memory_bytes_min"),
    )
