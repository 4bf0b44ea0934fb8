"""Translates between the words of tidewheel and those of two other systems, Scylla and Banyan.

They are from seeds 002 and 003. Tables first; the functions below only look things up in them.
What a foreign word cannot tell apart is shown by the nearest one: Scylla has no word for a task
that waits, so it is ``ready`` with ``eligible: false``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum

from tidewheel.api.tasks import AttemptView, EdgeView, HistoryEntry, Task, UsageView
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.status import Signal, Status
from tidewheel.core.queue.task import Instant, TaskError
from tidewheel.errors import BadSetting
from tidewheel.exact_json import decode_stored
from tidewheel.quantities import show_instant


class Vocabulary(StrEnum):
    """The vocabularies in which tasks can be described."""

    TIDEWHEEL = "tidewheel"
    SCYLLA = "scylla"
    BANYAN = "banyan"


_S, _V = Status, Vocabulary

STATUS_WORDS: dict[Vocabulary, dict[Status, str]] = {
    _V.TIDEWHEEL: {status: status.value for status in Status},
    _V.SCYLLA: {
        _S.WAITING: "ready",  # with eligible: false
        _S.READY: "ready",
        _S.RUNNING: "running",
        _S.CANCELLING: "cancelled",
        _S.SUCCEEDED: "completed",
        _S.FAILED: "aborted",
        _S.CANCELLED: "cancelled",
    },
    _V.BANYAN: {
        _S.WAITING: "inactive",
        _S.READY: "available",
        _S.RUNNING: "running",
        _S.CANCELLING: "pending_cancellation",
        _S.SUCCEEDED: "terminated",
        _S.FAILED: "terminated",
        _S.CANCELLED: "cancelled",  # terminated if the attempt ended by itself
    },
}
# Words that a vocabulary also accepts.
STATUS_ALIASES: dict[str, Status] = {"unknown": _S.CANCELLING}

FIELD_WORDS: dict[Vocabulary, dict[str, str]] = {
    _V.TIDEWHEEL: {},
    _V.SCYLLA: {
        "id": "rn",
        "created_at": "created",
        "updated_at": "updated",
        "deadline_at": "deadline",
    },
    _V.BANYAN: {
        "id": "_id",
        "status": "state",
        "children": "continuations",
        "open_needs": "pending_dependency_count",
        "attempt": "retry_count",
        "max_retries": "max_retry_count",
        "resources": "requested_resources",
        "estimated_runtime_seconds": "estimated_runtime",
        "max_termination_seconds": "max_termination_time",
        "attempts": "history",
    },
}

# What leaves an entry in Scylla's history; every other step is told by the status alone.
HISTORY_TYPES: dict[Signal, str] = {
    Signal.CLAIM: "TaskAssignment",
    Signal.ADOPT: "TaskAssignment",
    Signal.YIELD: "TaskYield",
    Signal.LAPSE: "TaskTimeout",
    Signal.LAPSE_OUT: "TaskTimeout",
}
# Scylla's owner is set in these statuses and kept after the end; a deadline only while running.
_SCYLLA_OWNED = frozenset({_S.RUNNING, _S.SUCCEEDED, _S.FAILED})
# A job that SIGTERM or SIGKILL ended did not end by itself (003, cancel_task of the worker).
_STOPPED_BY_SIGNAL = frozenset({-15, -9, 128 + 15, 128 + 9})

Document = dict[str, object]


def statuses_named(
    words: Iterable[str], vocabulary: Vocabulary = Vocabulary.TIDEWHEEL
) -> tuple[Status, ...]:
    """Returns the statuses that words of any vocabulary stand for; raises BadSetting for an
    unknown word.

    A word of several vocabularies means what it means in ``vocabulary``, else what it means in
    tidewheel. Banyan's ``terminated`` finds the tasks that succeeded or failed; a cancelled
    task is found as cancelled, however its attempt ended.
    """
    found: dict[Status, None] = {}
    for word in words:
        found |= dict.fromkeys(_statuses_of(word.strip().lower(), vocabulary))
    return tuple(status for status in Status if status in found)


def _statuses_of(word: str, vocabulary: Vocabulary) -> list[Status]:
    for one in dict.fromkeys((vocabulary, *Vocabulary)):
        found = [status for status, name in STATUS_WORDS[one].items() if name == word]
        if found:
            return found
    if word in STATUS_ALIASES:
        return [STATUS_ALIASES[word]]
    known = {name for words in STATUS_WORDS.values() for name in words.values()}
    near = get_close_matches(word, sorted(known), n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    raise BadSetting("status", word, f"one of {', '.join(Status)}{meant}")


def time_text(instant: Instant | None) -> str | None:
    """Returns a time as both systems write it: ISO 8601 in UTC; None stays None."""
    return None if instant is None else show_instant(instant)


def scylla_task(task: Task, history: Sequence[HistoryEntry] = ()) -> Document:
    """Returns a task as Scylla's clients know it."""
    fields = {
        "id": task.id,
        "spec": task.spec,
        "queue": task.queue,
        "priority": task.priority,
        "status": STATUS_WORDS[Vocabulary.SCYLLA][task.status],
        "eligible": task.status is Status.READY and task.due_at is None,
        "progress": task.progress,
        "created_at": time_text(task.created_at),
        "updated_at": time_text(task.updated_at),
        "errors": [error_document(error) for error in task.errors],
        "owner": task.owner if task.status in _SCYLLA_OWNED else None,
        "deadline_at": time_text(task.deadline_at) if task.status is Status.RUNNING else None,
        "history": scylla_history(history),
    }
    return _renamed(fields, Vocabulary.SCYLLA)


def _renamed(fields: Mapping[str, object], vocabulary: Vocabulary) -> Document:
    words = FIELD_WORDS[vocabulary]
    return {words.get(name, name): value for name, value in fields.items()}


def scylla_history(history: Iterable[HistoryEntry]) -> list[Document]:
    """Returns the entries of Scylla's history in the order of ours: assignments, yields and
    timeouts; other steps have no entry."""
    found: list[Document] = []
    for entry in history:
        if entry.signal in HISTORY_TYPES:
            typ = HISTORY_TYPES[entry.signal]
            progress = {} if typ == "TaskAssignment" else {"progress": entry.progress}
            at = {"time": time_text(entry.at)}
            found.append({"_typ": typ, "worker": entry.worker, **progress, **at})
    return found


def error_document(error: TaskError) -> Document:
    """Returns an error as Scylla and tidewheel both show it: code, arguments and
    description."""
    return {
        "code": error.code,
        "args": decode_stored(error.args),
        "description": error.description,
    }


def banyan_task(
    task: Task,
    attempts: Sequence[AttemptView] = (),
    edges: Sequence[EdgeView] = (),
    usage: Sequence[UsageView] = (),
) -> Document:
    """Returns a task as Banyan's clients know it."""
    infos = [execution_info(attempt, usage) for attempt in attempts]
    fields = {
        "id": task.id,
        "name": task.name,
        "command": task.command,
        "status": banyan_state(task, attempts),
        "children": [edge.child for edge in edges if edge.parent == task.id],
        "resources": requested_resources(task.resources),
        "estimated_runtime_seconds": task.estimated_runtime_seconds,
        "max_termination_seconds": task.max_termination_seconds,
        "max_retries": task.max_retries,
        "attempt": task.attempt,
        "open_needs": task.open_needs,
        "execution_info": infos[-1] if infos else None,
        "attempts": infos,
    }
    return _renamed(fields, Vocabulary.BANYAN)


def banyan_state(task: Task, attempts: Sequence[AttemptView]) -> str:
    """Returns Banyan's word for the status of a task.

    A cancelled task whose attempt had ended by itself is terminated (R003-46).
    """
    if task.status is Status.CANCELLED and attempts and _ended_by_itself(attempts[-1]):
        return "terminated"
    return STATUS_WORDS[Vocabulary.BANYAN][task.status]


def _ended_by_itself(attempt: AttemptView) -> bool:
    if attempt.ended_by is Signal.SUCCEED:
        return True
    return attempt.exit_status is not None and attempt.exit_status not in _STOPPED_BY_SIGNAL


def execution_info(attempt: AttemptView, usage: Iterable[UsageView] = ()) -> Document:
    """Returns an attempt as Banyan's execution_info: worker, exit status, times, and its usage
    over time."""
    samples = [
        (time_text(point.at), point.sample)
        for point in usage
        if point.attempt == attempt.attempt
    ]
    return {
        "worker": attempt.worker,
        "exit_status": attempt.exit_status,
        "time_started": time_text(attempt.started_at),
        "time_terminated": time_text(attempt.ended_at),
        "memory_usage": [
            {"time": at, "bytes": one.memory_bytes}
            for at, one in samples
            if one.memory_bytes is not None
        ],
        "cpu_utilization": [
            {"time": at, "percent": one.cpu_percent}
            for at, one in samples
            if one.cpu_percent is not None
        ],
        "gpu_usage": [
            {"time": at, "percent": one.gpu_percent, "bytes": one.gpu_memory_bytes}
            for at, one in samples
            if one.gpu_percent is not None or one.gpu_memory_bytes is not None
        ],
    }


def requested_resources(asked: Resources) -> Document:
    """Returns what a task asks of a machine, under Banyan's names; half a core is 0.5."""
    return {"memory": asked.memory_bytes, "cores": asked.cpu, "gpus": asked.gpu}
