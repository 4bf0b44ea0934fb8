"""Changes stored tasks and queues for clients: arm, amend, cancel, pause, configure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from tidewheel.core.queue.lease import check_lease_seconds
from tidewheel.core.queue.limits import limit_findings
from tidewheel.core.queue.requests import Amendment, Cancelled, QueueSettings, TaskFilter
from tidewheel.core.queue.status import Status
from tidewheel.core.queue.steps import cancel as cancel_step
from tidewheel.core.queue.submission import SubmitLimits, name_finding, refusal
from tidewheel.core.queue.task import NewTask, TaskId, TaskState
from tidewheel.errors import BadSetting, Duplicate, NotFound, Refused, WrongStatus
from tidewheel.store.operations.lanes import fill_lanes, lay_lanes
from tidewheel.store.operations.queries import (
    filter_parameters,
    get,
    page_count,
    read_sought,
    with_states,
)
from tidewheel.store.operations.submit import list_edge_states
from tidewheel.store.operations.transitions import (
    Effects,
    apply,
    become_what_edges_say,
    lock_task,
    lock_tasks,
)
from tidewheel.store.transaction import Transaction, row_of, rows_in_chunks

PORTION, LOOKED_MAX = 10_000, 100_000  # open tasks that are looked at for a pattern


def cancel(tx: Transaction, effects: Effects, task_ids: Sequence[TaskId]) -> list[Cancelled]:
    """Cancels tasks and all that need them; ``changed`` is False for those that were before."""
    tasks = lock_tasks(tx, list(dict.fromkeys(task_ids)))
    for task_id in task_ids:
        if task_id not in tasks:
            raise NotFound("task", task_id)
    decided = [(task, change) for task in tasks.values() if (change := cancel_step(task))]
    rows_in_chunks(
        tx,
        "close_edges_of_children",
        "seqs",
        [task.seq for task, _ in decided if task.graph is not None],
    )
    apply(tx, decided, effects)
    changed = {task.id: change.to_status for task, change in decided}
    return [
        Cancelled(
            id=task_id,
            status=changed.get(task_id, tasks[task_id].status),
            changed=task_id in changed,
        )
        for task_id in task_ids
    ]


def cancel_matching(
    tx: Transaction, effects: Effects, which: TaskFilter, count_max: int = 1000
) -> list[Cancelled]:
    """Cancels the tasks that a filter finds and that have not ended, oldest first.

    Raises Refused if too many would have to be looked at for a pattern.
    """
    ids = _open_fitting(tx, which, page_count(count_max))
    return cancel(tx, effects, ids)


def _open_fitting(tx: Transaction, which: TaskFilter, count_max: int) -> list[TaskId]:
    """Returns the ids of so many open tasks that a filter finds, oldest first."""
    sought = read_sought(which)
    given = filter_parameters(with_states(which, sought.states))
    portion = count_max if which.matching is None else PORTION
    found: list[TaskId] = []
    looked = after = 0
    while True:
        rows = tx.rows("find_cancellable", **given, after=after, count=portion)
        found += [TaskId(id_) for id_, name, _ in rows if sought.names_fit((id_, name))]
        looked += len(rows)
        if len(found) >= count_max or len(rows) < portion:
            return found[:count_max]
        if looked >= LOOKED_MAX:
            raise Refused(
                f"nothing was cancelled: {which.matching} would have to be looked for among "
                f"more than {LOOKED_MAX} open tasks; name a queue, too"
            )
        after = rows[-1][2]


def arm(tx: Transaction, effects: Effects, task_id: TaskId) -> None:
    """Arms a waiting task, which becomes ready at once if it has no edges.

    A task with edges is made ready by the last of them.
    """
    task = _lock_waiting(tx, task_id, "arm")
    tx.rows("arm_task", seq=task.seq)
    states = list_edge_states(tx, task.seq)
    if not states:
        become_what_edges_say(tx, replace(task, armed=True), states, effects)


def amend(tx: Transaction, task_id: TaskId, amendment: Amendment, limits: SubmitLimits) -> None:
    """Changes fields of a waiting task; their new values keep the rules of a new task.

    Values that no task may have are refused first, whatever the task's status: over the network
    they are refused before the task is looked at.
    """
    task = lock_task(tx, task_id)
    given = {
        f.name: value
        for f in fields(amendment)
        if (value := getattr(amendment, f.name)) is not None
    }
    if amendment.command is not None:
        given["handler"] = get(tx, task_id).handler
    if why := refusal(NewTask(id=task_id, queue=task.queue, **given), limits):
        raise why
    _require_waiting(task, "amend")
    if amendment.name is not None:
        for _, holder in tx.rows("find_task_names", names=[amendment.name]):
            if holder != task_id:
                raise Duplicate("name", amendment.name, holder)
    asks = amendment.resources is not None
    tx.rows("amend_task", seq=task.seq, resources=asks, **row_of(amendment))


def _lock_waiting(tx: Transaction, task_id: TaskId, operation: str) -> TaskState:
    task = lock_task(tx, task_id)
    _require_waiting(task, operation)
    return task


def _require_waiting(task: TaskState, operation: str) -> None:
    if task.status is not Status.WAITING:
        raise WrongStatus(task.id, operation, task.status, [Status.WAITING])


def configure_queue(
    tx: Transaction, effects: Effects, queue: str, settings: QueueSettings
) -> int:
    """Replaces a queue's settings and limits as a whole; returns how many ready tasks were
    moved for it."""
    _check_queue_name(queue)
    check_lease_seconds(settings.lease_seconds)
    for limit in settings.limits:
        if findings := limit_findings(limit):
            named = f"limit {limit.key!r}" if limit.key else "limit"
            fault = f"{named}: {', and '.join(findings)}"
            raise BadSetting("limit", limit, fault=fault)
    keys = [limit.key for limit in settings.limits]
    if len(keys) != len(set(keys)):
        raise BadSetting("limits", keys, "one limit per key")
    lanes = lay_lanes(tx, settings)
    tx.rows("save_queue", queue=queue, lanes=lanes, **row_of(settings))
    tx.rows("delete_limits", queue=queue)
    if settings.limits:
        tx.rows("insert_limits", queue=queue, limits=list(settings.limits))
    moved = fill_lanes(tx, queue, lanes=lanes)
    effects.queues.add(queue)
    return moved


def _check_queue_name(queue: str) -> None:
    if finding := name_finding("queue", queue):
        raise BadSetting("queue", queue, fault=finding)


def pause_queue(tx: Transaction, effects: Effects, queue: str, *, paused: bool) -> None:
    """Stops or resumes the claims from a queue; tasks that run go on."""
    _check_queue_name(queue)
    tx.rows("pause_queue", queue=queue, paused=paused)
    effects.queues.add(queue)
