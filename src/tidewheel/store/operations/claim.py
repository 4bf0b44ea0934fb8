"""Hands tasks to workers: the oldest of the highest priority that fit and may run."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace
from operator import attrgetter
from typing import NamedTuple

from tidewheel.core.operator.views import WITHDRAWN_STATUSES
from tidewheel.core.queue.lease import check_lease_seconds
from tidewheel.core.queue.limits import WHOLE_QUEUE, Bucket, Limit, allowance, spent
from tidewheel.core.queue.requests import Claimed, ClaimedTasks, ClaimRequest
from tidewheel.core.queue.status import Signal, Status
from tidewheel.core.queue.steps import step
from tidewheel.core.queue.task import Instant, TaskId, TaskState, WorkerId
from tidewheel.errors import BadSetting, NotDue, NotFound, NotRunning, RunStopping, WrongStatus
from tidewheel.store.operations.queries import views_of
from tidewheel.store.operations.runs import get_run
from tidewheel.store.operations.transitions import lock_task, write_changes
from tidewheel.store.rows import (
    RESOURCE_COLUMNS,
    ClaimedRow,
    Now,
    labels_text,
    resources,
    worker_number,
)
from tidewheel.store.transaction import Transaction

CLAIM_COUNT_MAX = 10_000


class ClaimPlan(NamedTuple):
    """Holds one row of plan_claim: what the queue and the worker's row say."""

    worker_known: bool
    paused: bool
    aging: bool
    limited: bool
    fence_kill: bool
    lease_seconds: float
    next_due_seconds: float | None  # until the next delayed task can be claimed


def claim(tx: Transaction, request: ClaimRequest) -> ClaimedTasks:
    """Leases up to ``count`` tasks of one queue to the worker, highest priority first."""
    plan = plan_claim(tx, request.queue, request.worker, request.lease_seconds)
    if plan.paused:
        return ClaimedTasks()
    next_due = plan.next_due_seconds
    if next_due is not None and next_due <= 0.0:
        # Delayed tasks stay out of the claim index until they are due, so that a million of
        # them cost a claim nothing; the first claim after the time puts them in.
        tx.rows("promote_due_tasks", queue=request.queue)
        next_due = tx.rows("get_next_due", queue=request.queue)[0][0]
    if plan.limited:
        rows = _claim_limited(tx, request, plan)
    elif plan.aging:
        given = _wanted(request) | _NO_LIMITS
        rows = tx.claim("claim_tasks_by_rules", plan.lease_seconds, aging=True, **given)
    else:
        rows = tx.claim("claim_tasks", plan.lease_seconds, **_wanted(request))
        # By the rules they are in order, which aging may change. Equals stay in their order.
        rows.sort(key=attrgetter("seq"))
        rows.sort(key=attrgetter("priority"), reverse=True)
    return ClaimedTasks([claimed(row, plan) for row in rows], next_due)


def claim_by_id(
    tx: Transaction, task_id: TaskId, worker: WorkerId, lease_seconds: float | None = None
) -> Claimed:
    """Leases one task by name (R002-34); its queue's pause and limits are for those who take
    any."""
    task = lock_task(tx, task_id)
    plan = plan_claim(tx, task.queue, worker, lease_seconds)
    if task.status is not Status.READY:
        raise WrongStatus(task_id, Signal.CLAIM, task.status, [Status.READY])
    _refuse_withdrawn(tx, task)
    due_at = views_of(tx, [task.seq])[0].due_at
    if due_at is not None:
        raise NotDue(task.id, due_at - tx.rows("get_now")[0][0])
    change = replace(
        step(task, Signal.CLAIM), attempt=task.attempt + 1, owner=worker, worker=worker
    )
    write_changes(tx, [change])
    rows = tx.records("get_claimed", ClaimedRow, seq=task.seq)
    tx.rows("take_leases", seqs=[task.seq], lease_seconds=plan.lease_seconds)
    return claimed(rows[0], plan)


_TOLD = tuple(one.name for one in fields(Claimed) if one.name in ClaimedRow._fields)
_told, _asked = attrgetter(*_TOLD), attrgetter(*RESOURCE_COLUMNS)


def claimed(row: ClaimedRow, plan: ClaimPlan) -> Claimed:
    """Makes a claimed task of its row and of what the queue says about leases."""
    return Claimed(
        **dict(zip(_TOLD, _told(row), strict=True)),
        deadline_at=Instant(row.now + plan.lease_seconds),
        lease_seconds=plan.lease_seconds,
        resources=resources(*_asked(row)),
        fence_kill=bool(plan.fence_kill),
        limited=bool(plan.limited),
    )


def _refuse_withdrawn(tx: Transaction, task: TaskState) -> None:
    if task.run is None:
        return
    [(_, status)] = tx.rows("lock_runs", runs=[task.run])
    if status in WITHDRAWN_STATUSES:
        run = get_run(tx, task.run)
        if status == "stopping" and run.owner is not None:
            raise RunStopping(run.name)
        raise NotRunning(run.name, status)


def plan_claim(
    tx: Transaction, queue: str, worker: WorkerId, lease_seconds: float | None = None
) -> ClaimPlan:
    """Returns what the queue and the worker's row say, with the lease that is asked for."""
    asked = {"queue": queue, "worker_number": worker_number(worker)}
    [plan] = tx.records("plan_claim", ClaimPlan, **asked)
    if not plan.worker_known:
        raise NotFound("worker", worker)
    if lease_seconds is None:
        return plan
    return plan._replace(lease_seconds=check_lease_seconds(lease_seconds))


_NO_LIMITS = {"each_key": CLAIM_COUNT_MAX, "by_key": []}


def _wanted(request: ClaimRequest) -> dict[str, object]:
    if not 1 <= request.count <= CLAIM_COUNT_MAX:
        raise BadSetting("count", request.count, f"1 to {CLAIM_COUNT_MAX}")
    free, handlers = request.free, request.handlers
    return {
        "queue": request.queue,
        "worker": request.worker,
        "count": request.count,
        "cpu": free.cpu,
        "memory_bytes": free.memory_bytes,
        "gpu": free.gpu,
        "labels": labels_text(free.labels) or "[]",
        "nodes": free.nodes,
        "idle_nodes": free.idle_nodes,
        "buffer_bytes": free.buffer_bytes,
        "commands": request.commands,
        "any_handler": handlers is None,
        "handlers": sorted(handlers or ()),
        "bare": request.bare,
    }


def _claim_limited(tx: Transaction, request: ClaimRequest, plan: ClaimPlan) -> list[ClaimedRow]:
    """Claims under limits, whose rows are locked first, so that claims count one by one."""
    locked = tx.pairs("lock_limits", Now, Limit, queue=request.queue)
    now, limits = locked[0][0].now, [limit for _, limit in locked]
    running = Counter(
        {key: count for key, count in tx.rows("count_leases", queue=request.queue)}
    )
    running[WHOLE_QUEUE] = sum(running.values())
    buckets = tx.records("list_buckets", Bucket, queue=request.queue)
    allowed = allowance(limits, running, buckets, now)
    wanted = _wanted(request) | {"count": min(request.count, allowed.whole_queue)}
    rows = tx.claim(
        "claim_tasks_by_rules",
        plan.lease_seconds,
        **wanted,
        aging=plan.aging,
        each_key=allowed.each_key,
        by_key=[{"key": key, "count": count} for key, count in allowed.by_key.items()],
    )
    taken = Counter(key for row in rows if (key := row.limit_key) is not None)
    taken[WHOLE_QUEUE] = len(rows)
    after = spent(limits, buckets, taken, now)
    if after:
        tx.rows("save_buckets", queue=request.queue, buckets=after)
    return rows
