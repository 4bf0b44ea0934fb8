"""Defines the life of a task as one table, from which everything else is derived.

Theory of operation
-------------------
A task has exactly one status. It changes only by a signal, only along TRANSITIONS, and each
change leaves one row of history. Whatever else people call a state (held, delayed, paused,
blocked by resources) is an attribute with a reason, never a status.

``CANCELLING`` exists because a cancelled job may still run on some worker: from then on
every end of the attempt leads to CANCELLED, whatever it was ("cancel wins", seed 002).
The SQL CHECK on ``history`` and the diagram in docs/GLOSSARY.md are compared with this
table by tests.
"""

from __future__ import annotations

from enum import StrEnum

from tidewheel.errors import WrongStatus


class Status(StrEnum):
    """Says where a task stands in its life; beside each stands who moves the task on."""

    WAITING = "waiting"  # the store, when the last open dependency is met or the task is armed
    READY = "ready"  # a worker, by a claim
    RUNNING = "running"  # its owner by a report, or the monitor when the lease lapses
    CANCELLING = "cancelling"  # its owner by any end, or the monitor when the lease lapses
    SUCCEEDED = "succeeded"  # nobody: final
    FAILED = "failed"  # nobody: final
    CANCELLED = "cancelled"  # nobody: final


class Signal(StrEnum):
    """The things that can happen to a task."""

    SATISFY = "satisfy"  # the last open dependency was met, or the task was armed
    SKIP = "skip"  # there is nothing to execute
    CLAIM = "claim"  # a worker took the lease
    SUCCEED = "succeed"  # the owner reported success
    RETRY = "retry"  # the owner reported a failure, and retries are left
    FAIL = "fail"  # the owner reported a failure, and no retry is left
    ABORT = "abort"  # the owner reported a failure that must not be retried
    YIELD = "yield"  # the owner gave the lease back
    ADOPT = "adopt"  # a worker took over the lease of its dead predecessor on the same host
    LAPSE = "lapse"  # the lease ran out
    LAPSE_OUT = "lapse_out"  # the lease ran out once too often
    TIME_OUT = "time_out"  # the task ran longer than its time limit
    CANCEL = "cancel"  # a client, or the death of a dependency, ended it


_S, _G = Status, Signal

# Every signal that ends an attempt, for statuses in which any end means the same.
_ANY_END = (
    _G.SUCCEED,
    _G.RETRY,
    _G.FAIL,
    _G.ABORT,
    _G.YIELD,
    _G.LAPSE,
    _G.LAPSE_OUT,
    _G.TIME_OUT,
)

TRANSITIONS: dict[Status, dict[Signal, Status]] = {
    _S.WAITING: {_G.SATISFY: _S.READY, _G.SKIP: _S.SUCCEEDED, _G.CANCEL: _S.CANCELLED},
    _S.READY: {_G.CLAIM: _S.RUNNING, _G.SKIP: _S.SUCCEEDED, _G.CANCEL: _S.CANCELLED},
    _S.RUNNING: {
        _G.SUCCEED: _S.SUCCEEDED,
        _G.RETRY: _S.READY,
        _G.FAIL: _S.FAILED,
        _G.ABORT: _S.FAILED,
        _G.YIELD: _S.READY,
        _G.ADOPT: _S.RUNNING,
        _G.LAPSE: _S.READY,
        _G.LAPSE_OUT: _S.FAILED,
        _G.TIME_OUT: _S.FAILED,
        _G.CANCEL: _S.CANCELLING,
    },
    _S.CANCELLING: {_G.ADOPT: _S.CANCELLING} | dict.fromkeys(_ANY_END, _S.CANCELLED),
    _S.SUCCEEDED: {},
    _S.FAILED: {},
    _S.CANCELLED: {},
}

# A new task enters here; the rest of its life is TRANSITIONS.
INITIAL = frozenset({_S.WAITING, _S.READY})
FINAL = frozenset(status for status, row in TRANSITIONS.items() if not row)
# A lease exists exactly in these.
LEASED = frozenset({_S.RUNNING, _S.CANCELLING})


def next_status(task_id: str, status: Status, signal: Signal) -> Status:
    """Returns the status that a signal leads to; raises WrongStatus if it is illegal.

    The table alone decides that: nothing else in the core moves a task on.
    """
    following = TRANSITIONS[status].get(signal)
    if following is None:
        raise WrongStatus(task_id, signal.value, status.value, allowed_for(signal))
    return following


def allowed_for(signal: Signal) -> tuple[str, ...]:
    """Returns the statuses in which a signal is accepted, for messages."""
    return tuple(status.value for status, row in TRANSITIONS.items() if signal in row)


def legal_steps() -> frozenset[tuple[str, str, str]]:
    """Returns every (from, signal, to) of the table; history may hold nothing else."""
    return frozenset(
        (status.value, signal.value, following.value)
        for status, row in TRANSITIONS.items()
        for signal, following in row.items()
    )
