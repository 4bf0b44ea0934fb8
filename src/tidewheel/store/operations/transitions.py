"""Applies changes of tasks, and what they mean for the tasks that depend on them.

Theory of operation
-------------------
``apply`` is the only writer of a status. It writes a batch of decided Changes, then looks at
the open edges of every task that made an output or can make no more: an edge is met or dies,
a child whose last open edge was met becomes ready, a child with a dead edge is cancelled.
Those are changes too, so it repeats, level by level, until nothing follows. A level costs
five statements however many tasks it holds, so a fan of 10,000 is not 10,000 round trips.

The caller holds the lock of each task graph concerned (``lock_graphs``), which is what
keeps two ends in one graph from waiting for each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from tidewheel.core.operator.definition import read_job_name
from tidewheel.core.operator.requests import Overtaken, ParentReport
from tidewheel.core.operator.views import WITHDRAWN_STATUSES
from tidewheel.core.queue.access import CODE
from tidewheel.core.queue.dependency import EdgeState, edge_state, status_from_edges
from tidewheel.core.queue.requests import JobMessage, Report, Wake
from tidewheel.core.queue.status import FINAL, LEASED, Status
from tidewheel.core.queue.steps import become_ready, cancel
from tidewheel.core.queue.task import Change, TaskId, TaskState, WorkerId
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.store.rows import storable
from tidewheel.store.transaction import (
    Conflict,
    Transaction,
    found_one,
    in_chunks,
    records_in_chunks,
    rows_in_chunks,
)


@dataclass(slots=True)
class Effects:
    """Gathers the queues, workers and runs to be woken once the transaction is committed."""

    queues: set[str] = field(default_factory=set)
    workers: set[WorkerId] = field(default_factory=set)
    runs: set[int] = field(default_factory=set)
    # How many attempts of each worker are over, by its own report: it has so many slots again.
    ended: Counter[WorkerId] = field(default_factory=Counter)
    # Tasks of whose ends their run need not be told, and the values that they return: its batch
    # here was decided upon them.
    known: Mapping[TaskId, str | None] = field(default_factory=dict)
    # What locks out others and is done after all else, claims that are carried out included.
    at_last: Callable[[], None] | None = None

    def wake(self) -> Wake | None:
        if not self.queues and not self.workers and not self.runs:
            return None
        return Wake(
            queues=frozenset(self.queues),
            workers=frozenset(self.workers),
            runs=frozenset(self.runs),
        )


def lock_tasks(tx: Transaction, task_ids: Sequence[str]) -> dict[TaskId, TaskState]:
    """Returns the tasks with these ids; their graphs and rows are locked until the commit."""
    graphs = _lock_graphs(tx, task_ids)
    while True:
        locked = rows_in_chunks(tx, "lock_tasks", "ids", task_ids)
        if {graph for _, graph in locked} <= graphs | {None}:
            return {task.id: task for task in read_tasks(tx, [seq for seq, _ in locked])}
        # A new edge joined two graphs between the two statements: lock what it is now.
        graphs |= _lock_graphs(tx, task_ids)


def lock_task(tx: Transaction, task_id: TaskId) -> TaskState:
    """Returns one task, locked as by ``lock_tasks``; raises NotFound if there is none."""
    return found_one(list(lock_tasks(tx, [task_id]).values()), "task", task_id)


def read_tasks(tx: Transaction, seqs: Sequence[int]) -> list[TaskState]:
    """Returns the facts about tasks whose rows are locked.

    This is a statement of its own, after the lock: one that waits for a row gets the row as it
    is then, but what is joined to it, the lease, as it was when the statement began
    (PostgreSQL).
    """
    return records_in_chunks(tx, "read_tasks", TaskState, "seqs", seqs)


def _lock_graphs(tx: Transaction, task_ids: Sequence[str]) -> set[int | None]:
    return {row[0] for row in rows_in_chunks(tx, "lock_graphs", "ids", task_ids)}


def apply(
    tx: Transaction,
    decided: Iterable[tuple[TaskState, Change]],
    effects: Effects,
    outputs: Mapping[int, set[str]] | None = None,
) -> None:
    """Writes changes and everything that follows from them.

    ``outputs`` are the custom outputs that tasks (by seq) made just now without ending.
    """
    level = list(decided)
    made = {seq: (Status.RUNNING, names) for seq, names in (outputs or {}).items()}
    while level or made:
        write_changes(tx, [change for _, change in level])
        _withdraw_of_runs_let_go(tx, level)
        tell_runs(tx, overs(level), effects)
        for task, change in level:
            if change.to_status is Status.READY:
                effects.queues.add(task.queue)
            if change.to_status in LEASED and task.owner is not None:
                effects.workers.add(task.owner)
            if task.graph is not None and change.to_status in FINAL | {Status.CANCELLING}:
                _, named = made.get(task.seq, (None, set()))
                made[task.seq] = (change.to_status, named)
        children = _settle_edges(tx, made)
        level, made = _decide_children(tx, children), {}


def write_changes(tx: Transaction, changes: Sequence[Change]) -> None:
    """Writes changes with their history; raises Conflict if a row has changed meanwhile."""
    for chunk in in_chunks(changes):
        moved = tx.rows("change_tasks", changes=chunk)
        if len(moved) != len(chunk):
            raise Conflict("a task changed while a decision about it was being written")
        ended = [change for change in chunk if change.ends_lease]
        if ended:
            tx.rows("add_attempts", changes=ended)
            tx.rows("drop_leases", seqs=[change.seq for change in ended])
        left = [c.seq for c in chunk if c.from_status is Status.READY]
        if left:
            tx.rows("remove_ready", seqs=left)
        entered = [c.seq for c in chunk if c.to_status is Status.READY]
        if entered:
            tx.rows("add_ready", seqs=entered)
        tx.rows("add_history", changes=chunk)


def _withdraw_of_runs_let_go(
    tx: Transaction, changed: Sequence[tuple[TaskState, Change]]
) -> None:
    """Keeps tasks that were given back from being claimed while nobody drives their run.

    The run is locked first: a scheduler that lets the run go at this moment sees what was given
    back, or has let it go before this looks.
    """
    given_back = {
        task.seq: task.run
        for task, change in changed
        if task.run is not None
        and change.to_status is Status.READY
        and not read_job_name(task.id).is_code
    }
    if not given_back:
        return
    let_go = {
        number
        for number, status in tx.rows("lock_runs", runs=sorted(set(given_back.values())))
        if status in WITHDRAWN_STATUSES
    }
    withdraw(tx, [seq for seq, run in given_back.items() if run in let_go])


def withdraw(tx: Transaction, seqs: Sequence[int]) -> None:
    """Keeps ready tasks from being claimed until their runs go on."""
    rows_in_chunks(tx, "add_withdrawn", "seqs", seqs)
    rows_in_chunks(tx, "remove_ready", "seqs", seqs)


def _settle_edges(
    tx: Transaction, made: Mapping[int, tuple[Status, set[str]]]
) -> dict[int, set[EdgeState]]:
    """Settles the open edges of these parents; returns, by child, the states that they got."""
    children: dict[int, set[EdgeState]] = {}
    settled = []
    found = rows_in_chunks(tx, "lock_open_edges", "parents", list(made))
    for parent, child, output, place in found:
        status, outputs = made[parent]
        state = edge_state(output, status, outputs)
        if state is not EdgeState.OPEN:
            settled.append({"place": place, "state": state})
            children.setdefault(child, set()).add(state)
    rows_in_chunks(tx, "settle_edges", "edges", settled)
    return children


def _decide_children(
    tx: Transaction, children: Mapping[int, set[EdgeState]]
) -> list[tuple[TaskState, Change]]:
    """Returns the changes of children whose edges were settled. A dead edge cancels its child;
    a child becomes ready with the last of its edges that is met."""
    if not children:
        return []
    seqs = sorted(children)
    rows_in_chunks(tx, "lock_tasks_by_seq", "seqs", seqs)
    tasks = read_tasks(tx, seqs)
    still_open = {row[0] for row in rows_in_chunks(tx, "list_open_children", "seqs", seqs)}
    decided = []
    for task in tasks:
        change = None
        if EdgeState.DEAD in children[task.seq]:
            change = cancel(task)
        elif task.status is Status.WAITING and task.seq not in still_open:
            change = become_ready(task)
        if change is not None:
            decided.append((task, change))
    _close_other_edges(tx, [task.seq for task, change in decided if change.to_status in FINAL])
    return decided


def _close_other_edges(tx: Transaction, cancelled: Sequence[int]) -> None:
    """Closes the edges of cancelled children, which wait for nobody any more (R003-50)."""
    rows_in_chunks(tx, "close_edges_of_children", "seqs", cancelled)


def become_what_edges_say(
    tx: Transaction, task: TaskState, states: Sequence[EdgeState], effects: Effects
) -> None:
    """Makes a waiting task ready, or cancels it, if the states of its edges ask for that."""
    match status_from_edges(states, armed=task.armed):
        case Status.READY:
            apply(tx, [(task, become_ready(task))], effects)
        case Status.CANCELLED:
            change = cancel(task)
            assert change is not None
            _close_other_edges(tx, [task.seq])
            apply(tx, [(task, change)], effects)
        case _:
            pass


# ---- what runs hear of their submissions ----
#
# An event is inserted by the transaction that makes it true, so none is lost and none is early.
# The end of a submission is told once. A start may be told again when its report was sent
# again. A success that says nothing else is one event: it was started, or it could not have
# succeeded.


STARTED, SAID, OVER, COMMAND = "started", "said", "over", "command"

EventRow = dict[str, Any]  # what add_events stores; what is not said is NULL


def tell_runs(tx: Transaction, events: Sequence[EventRow], effects: Effects) -> None:
    """Writes events for runs in this order, and has the schedulers of these runs woken.

    Of code of a definition that is no job of the graph, a run hears only that a handler failed.
    """
    if effects.known:
        events = [event for event in events if not _is_known(event, effects.known)]
    if events:
        heard = [event for event in events if _is_heard(event)]
        if heard:
            rows_in_chunks(tx, "add_events", "events", heard)
        effects.runs.update(event["run"] for event in events)


def _is_known(event: EventRow, known: Mapping[TaskId, str | None]) -> bool:
    """Says whether a scheduler has decided upon an event before it was told; raises Overtaken
    if it knows other values of the task: what that has told before counts, too."""
    task_id: TaskId | None = event.get("task_id")
    if task_id is None or task_id not in known:
        return False
    if event.get("text") != known[task_id]:
        raise Overtaken([task_id])
    return True


def _is_heard(event: EventRow) -> bool:
    if event["kind"] == COMMAND or f"/{CODE}/" not in event["task_id"]:
        return True
    name = read_job_name(event["task_id"])
    is_failure = event["kind"] == OVER and event["status"] != Status.SUCCEEDED.value
    return not name.is_code or (is_failure and not name.is_poll)


def _event(kind: str, run: int | None, task_id: str, attempt: int, **told: object) -> EventRow:
    return {"run": run, "kind": kind, "task_id": task_id, "attempt": attempt, **told}


def start(run: int, task_id: str, attempt: int) -> EventRow:
    """Returns the event that tells a run of the start of an attempt."""
    return _event(STARTED, run, task_id, attempt)


def success(run: int, report: Report, values: str | None) -> EventRow:
    """Returns the event that tells a run of a success, of which nothing else is to be said but
    the values that it returned."""
    assert report.end is not None
    return {
        "run": run,
        "kind": OVER,
        "task_id": report.holder.task_id,
        "attempt": report.holder.attempt,
        "status": Status.SUCCEEDED.value,
        "exit_status": report.end.exit_status,
        "text": values,
    }


def nested_news(report: ParentReport) -> EventRow:
    """Returns the event that tells a run what one that is its task says, or that it began."""
    if not report.said:
        return start(report.run, report.task_id, 1)
    text = storable(report.said)
    return _event(SAID, report.run, report.task_id, 1, text=text)


def nested_end(report: ParentReport) -> EventRow:
    """Returns the event that tells a run of the end of one that is its task."""
    assert report.status is not None
    is_success = report.status is Status.SUCCEEDED
    return _event(
        *(OVER, report.run, report.task_id, 1),
        status=report.status.value,
        error=storable(report.error),
        exit_status=0 if is_success else 1,
        text=report.values,
    )


def spoken(
    task: TaskState, report: Report, fresh: Sequence[JobMessage], change: Change | None
) -> list[EventRow]:
    """Returns the events for what a report tells a run besides the end: start and messages."""
    assert task.run is not None and task.lease is not None
    events = []
    succeeds = change is not None and change.to_status is Status.SUCCEEDED
    if report.started and task.lease.started_at is None and (fresh or not succeeds):
        events.append(start(task.run, task.id, task.attempt))
    for message in fresh:
        said = {
            "text": storable(message.text),
            "output": storable(message.output),
            "told": message.values,
        }
        events.append(_event(SAID, task.run, task.id, task.attempt, **said))
    return events


def overs(decided: Iterable[tuple[TaskState, Change]]) -> list[EventRow]:
    """Returns the events that tell runs which of their tasks ended by these changes."""
    return [
        _event(
            *(OVER, task.run, task.id, change.attempt),
            status=change.to_status.value,
            error_code=change.error_code,
            error=change.error_description,
            exit_status=change.exit_status,
            text=change.values,
        )
        for task, change in decided
        if task.run is not None and change.to_status in FINAL
    ]
