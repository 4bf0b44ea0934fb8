"""Decides which change a signal makes to a task: the decisions of a task's life.

Each function takes the task as stored and answers with a Change, or refuses. The store
applies a Change only if (status, attempt) are still what they were when it was decided.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from tidewheel.core.queue.requests import End, Ending
from tidewheel.core.queue.retry import delay_before_retry
from tidewheel.core.queue.status import FINAL, LEASED, Signal, Status, next_status
from tidewheel.core.queue.task import Change, TaskError, TaskState, WorkerId

LAPSED_OUT = "lease_lapsed"
TIMED_OUT = "timed_out"


def step(
    task: TaskState, signal: Signal, *, end: End | None = None, chance: float = 0.0
) -> Change:
    """Returns the change that a signal makes to a task; raises WrongStatus if it is not legal.

    ``end`` is the owner's last report, if that is the cause; ``chance``, in [0, 1), decides the
    jitter of a retry's delay.
    """
    to_status = next_status(task.id, task.status, signal)
    failures = task.failures + (signal in (Signal.RETRY, Signal.FAIL, Signal.ABORT))
    delay = delay_before_retry(task.retry, failures, chance) if signal is Signal.RETRY else 0.0
    error = _error_of(task, signal, end)
    progress = task.lease.progress if task.lease else 0.0
    return Change(
        seq=task.seq,
        signal=signal,
        from_status=task.status,
        to_status=to_status,
        from_attempt=task.attempt,
        attempt=task.attempt,
        failures=failures,
        lapses=task.lapses + (signal in (Signal.LAPSE, Signal.LAPSE_OUT)),
        owner=None if to_status in (Status.WAITING, Status.READY) else task.owner,
        worker=task.lease.owner if task.lease else None,
        progress=1.0 if to_status is Status.SUCCEEDED else progress,
        delay_seconds=delay,
        ends_lease=task.status in LEASED and to_status not in LEASED,
        exit_status=end.exit_status if end else None,
        metrics=end.metrics if end else None,
        error_code=error.code if error else None,
        error_args=error.args if error else "{}",
        error_description=error.description if error else None,
        values=end.values if end and to_status is Status.SUCCEEDED else None,  # else: cancelled
    )


def end_signal(task: TaskState, end: End) -> Signal:
    """Returns the signal that a reported end stands for.

    For a failure this is RETRY while retries are left, else FAIL.
    """
    match end.ending:
        case Ending.SUCCEEDED:
            return Signal.SUCCEED
        case Ending.ABORTED:
            return Signal.ABORT
        case Ending.YIELDED:
            return Signal.YIELD
        case Ending.FAILED:
            return Signal.RETRY if task.failures < task.max_retries else Signal.FAIL
        case _:
            assert_never(end.ending)


def become_ready(task: TaskState) -> Change:
    """Returns the change of a task that has nothing left to wait for: it becomes ready.

    One with nothing to execute succeeds at once.
    """
    return step(task, Signal.SATISFY if task.executes else Signal.SKIP)


def cancel(task: TaskState) -> Change | None:
    """Returns the change that cancels a task; None if it has ended or is being cancelled.

    So to ask again is no error (R003-39).
    """
    if task.status in FINAL or task.status is Status.CANCELLING:
        return None
    return step(task, Signal.CANCEL)


def adopt(task: TaskState, worker: WorkerId) -> Change:
    """Returns the change by which another worker of the host takes over the lease.

    The attempt stays the same.
    """
    return replace(step(task, Signal.ADOPT), owner=worker)


def _error_of(task: TaskState, signal: Signal, end: End | None) -> TaskError | None:
    if end is not None:
        return end.error
    if signal is Signal.LAPSE_OUT:
        times = "1 time" if task.lapses == 0 else f"{task.lapses + 1} times"
        return TaskError(
            code=LAPSED_OUT,
            description=f"its worker was lost {times}; max_lapses is {task.max_lapses}",
        )
    if signal is Signal.TIME_OUT:
        return TaskError(
            code=TIMED_OUT,
            description=f"it ran longer than its limit of {task.timeout_seconds:g} s",
        )
    return None
