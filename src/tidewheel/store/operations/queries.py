"""Answers what clients, workers and people ask of tasks; nothing here changes anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from tidewheel.api import tasks
from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.requests import HeldLease, KeysetPage, QueueSettings, TaskFilter
from tidewheel.core.queue.requests import page_count as page_count  # noqa: PLC0414 - for the others here
from tidewheel.core.queue.status import Status
from tidewheel.core.queue.task import Instant, TaskId
from tidewheel.errors import NotFound
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.store.sql import is_common
from tidewheel.store.transaction import (
    Transaction,
    found_one,
    records_in_chunks,
    rows_in_chunks,
)

if TYPE_CHECKING:
    from tidewheel.core.queue.filters import Filter

RECENT_TASKS = 2_000  # whose queues are listed though they are idle
FAILED_TASKS = 5_000  # the newest that failed, which are counted by queue
# Each query answers with (task id, what was seen) for every row that breaks its invariant.
INVARIANTS = {
    "T1": "verify_steps",
    "T2": "verify_ends",
    "T3": "verify_attempts",
    "T5": "verify_leases",
    "T6": "verify_ready",
    "T10": "verify_waiting",
    "T12": "verify_keys",
    "T13": "verify_references",
    "T15": "verify_progress",
    "P1": "verify_pool",
    "P17": "verify_submits",
    "P19": "verify_active",
    "P22": "verify_let_go",
}


def get(tx: Transaction, task_id: TaskId) -> tasks.Task:
    """Returns one task; raises NotFound if there is none."""
    return found_one(find_each(tx, [task_id]), "task", task_id)


def get_many(tx: Transaction, task_ids: Sequence[TaskId]) -> list[tasks.Task]:
    """Returns tasks in the order asked for; raises NotFound with the first that is unknown."""
    page_count(max(1, len(task_ids)))
    wanted = list(dict.fromkeys(task_ids))
    found = {task.id: task for task in find_each(tx, wanted)}
    for task_id in wanted:
        if task_id not in found:
            raise NotFound("task", task_id)
    return [found[task_id] for task_id in task_ids]


def find_each(tx: Transaction, task_ids: Sequence[TaskId]) -> list[tasks.Task]:
    """Returns those of some tasks that are there, in any order."""
    return records_in_chunks(tx, "get_tasks_by_id", tasks.Task, "ids", task_ids)


def _seq_of(tx: Transaction, task_id: TaskId) -> int:
    seq: int = found_one(tx.rows("find_task", id=task_id), "task", task_id)[0]
    return seq


def views_of(tx: Transaction, seqs: Sequence[int]) -> list[tasks.Task]:
    """Returns the tasks with these seqs, in this order; those that are gone are left out."""
    rows = records_in_chunks(tx, "get_tasks", tasks.Task, "seqs", seqs)
    found = {task.seq: task for task in rows}
    return [found[seq] for seq in seqs if seq in found]


_PATTERN = "matching"
_FILTERS = tuple(
    one.name for one in fields(TaskFilter) if one.name not in ("statuses", _PATTERN)
)
LOOKED_AT_ONCE = 1_000
LOOKED_MAX = 10_000  # tasks, for one page of those that a pattern fits


def filter_parameters(which: TaskFilter) -> dict[str, object]:
    """Returns a filter as query parameters; what is None matches everything. A pattern is no
    parameter: see `found_page`."""
    given: dict[str, object] = {name: getattr(which, name) for name in _FILTERS}
    statuses = which.statuses
    given["any_status"] = statuses is None
    given["statuses"] = [status.value for status in statuses or ()]
    return given


def list_tasks(tx: Transaction, which: TaskFilter, page: KeysetPage) -> tasks.TaskList:
    """Returns a page of the tasks that a filter matches, newest first."""
    found = found_page(tx, which, page)
    return tasks.TaskList(views_of(tx, found.seqs), found.next, found.looked)


class FoundPage(NamedTuple):
    """Holds which tasks a filter found, newest first, and where the next page begins."""

    seqs: list[int]
    next: int | None
    looked: int


def found_page(tx: Transaction, which: TaskFilter, page: KeysetPage) -> FoundPage:
    """Returns which tasks a filter matches. For a pattern, the tasks that all else leaves over
    are looked at, newest first, so many and no more: the next page goes on behind them."""
    count = page_count(page.count)
    before = page.before if page.before is not None else 2**62
    if which.matching is None:
        seqs = _seqs(tx, which, before, count)
        return FoundPage(seqs, seqs[-1] if len(seqs) == count else None, len(seqs))
    return _fitting_page(tx, which, read_sought(which), KeysetPage(count=count, before=before))


def read_sought(which: TaskFilter) -> Filter:
    """Returns the pattern of a filter; without one it fits everything."""
    from tidewheel.core.queue.filters import read_filter  # noqa: PLC0415 - few ask for any

    return read_filter(which.matching or "", [*Status])


def _fitting_page(
    tx: Transaction, which: TaskFilter, sought: Filter, page: KeysetPage
) -> FoundPage:
    assert page.before is not None
    count, before = page.count, page.before
    which = with_states(which, sought.states)
    if sought.exact is not None:
        given = filter_parameters(which) | {"before": before, "exact": sought.exact}
        rows = tx.rows("find_tasks_by_exact", **given, count=count)
        return FoundPage([row[0] for row in rows], None, len(rows))
    found: list[int] = []
    looked = 0
    while looked < LOOKED_MAX:
        part = _seqs(tx, which, before, LOOKED_AT_ONCE)
        words = {
            seq: names for seq, *names in rows_in_chunks(tx, "find_task_words", "seqs", part)
        }
        for seq in part:
            looked, before = looked + 1, seq
            if sought.names_fit(words.get(seq, ())):
                found.append(seq)
                if len(found) == count:
                    return FoundPage(found, before, looked)
        if len(part) < LOOKED_AT_ONCE:
            return FoundPage(found, None, looked)
    return FoundPage(found, before, looked)


def with_states(which: TaskFilter, states: frozenset[str] | None) -> TaskFilter:
    """Returns a filter that also asks for one of these states; None is any."""
    if states is None:
        return which
    asked = Status if which.statuses is None else which.statuses
    return replace(which, statuses=tuple(one for one in asked if one in states))


def _seqs(tx: Transaction, which: TaskFilter, before: int, count: int) -> list[int]:
    given = filter_parameters(which) | {"before": before, "count": count}
    found = {
        row[0] for query, extra in _finders(which) for row in tx.rows(query, **(given | extra))
    }
    return sorted(found, reverse=True)[:count]


def _finders(which: TaskFilter) -> list[tuple[str, dict[str, object]]]:
    """Returns the queries that find the tasks of a filter, each with parameters of its own.
    Each follows the index for one condition; the other conditions are tested on the way."""
    for name in _FILTERS:
        if getattr(which, name) is not None and is_common(finder := f"find_tasks_by_{name}"):
            return [(finder, {})]
    all_of_them = "find_queue_tasks" if which.jobs is False else "find_tasks"
    if which.statuses is not None:
        return [_finder_of(status, all_of_them) for status in which.statuses]
    return [(all_of_them, {})]


def _finder_of(status: Status, all_of_them: str) -> tuple[str, dict[str, object]]:
    """Returns the query that finds tasks of a status, and its parameters. Each status but
    succeeded has a table or an index by which it is found."""
    match status:
        case Status.READY:
            return "find_ready_tasks", {}
        case Status.WAITING:
            return "find_waiting_tasks", {}
        case Status.RUNNING | Status.CANCELLING:
            return "find_leased_tasks", {"status": status.value}
        case Status.FAILED | Status.CANCELLED:
            return "find_unwell_tasks", {"status": status.value}
        case Status.SUCCEEDED:
            # They are so many that any walk by seq soon meets a page of them.
            return all_of_them, {"statuses": [status.value]}


def peek(tx: Transaction, queue: str, count: int) -> list[tasks.Task]:
    """Returns the tasks of a queue that would be claimed next, without claiming them."""
    aging = any(name == queue and ages for name, _, ages, *_ in tx.rows("list_queues"))
    query = "find_next_aged_tasks" if aging else "find_next_tasks"
    found = tx.rows(query, queue=queue, count=page_count(count))
    return views_of(tx, [row[0] for row in found])


def history(
    tx: Transaction, task_id: TaskId, after: int = 0, count: int = 100
) -> list[tasks.HistoryEntry]:
    """Returns a page of a task's history, oldest first."""
    seq = _seq_of(tx, task_id)
    asked = {"seq": seq, "after": after, "count": page_count(count)}
    return tx.records("list_history", tasks.HistoryEntry, **asked)


def attempts(tx: Transaction, task_id: TaskId) -> list[tasks.AttemptView]:
    """Returns every attempt of a task, the live one last."""
    return tx.records("list_attempts", tasks.AttemptView, seq=_seq_of(tx, task_id))


def outputs(tx: Transaction, task_id: TaskId) -> list[tasks.OutputView]:
    """Returns the messages of a task, with their outputs, by attempt and number."""
    return tx.records("list_messages", tasks.OutputView, seq=_seq_of(tx, task_id))


def values_of(tx: Transaction, task_ids: Sequence[TaskId]) -> dict[TaskId, str]:
    """Returns the values of tasks as JSON texts, by id; tasks without values are left out."""
    page_count(max(1, len(task_ids)))
    wanted = list(dict.fromkeys(task_ids))
    rows = rows_in_chunks(tx, "list_values", "ids", wanted)
    return {TaskId(task_id): body for task_id, body in rows}


def inputs(tx: Transaction, task_id: TaskId) -> list[tasks.InputView]:
    """Returns the values of the tasks that a task needs; those without any are left out."""
    return tx.records("list_inputs", tasks.InputView, seq=_seq_of(tx, task_id))


def usage(tx: Transaction, task_id: TaskId) -> list[tasks.UsageView]:
    """Returns the samples of what a task used, oldest first."""
    return tx.records("list_usage", tasks.UsageView, seq=_seq_of(tx, task_id))


def edges(tx: Transaction, task_id: TaskId) -> list[tasks.EdgeView]:
    """Returns the edges into and out of a task."""
    return edges_of(tx, [_seq_of(tx, task_id)])


def edges_of(tx: Transaction, seqs: Sequence[int]) -> list[tasks.EdgeView]:
    """Returns the edges into and out of tasks; one between tasks of different chunks comes
    twice."""
    return records_in_chunks(tx, "list_edges", tasks.EdgeView, "seqs", seqs)


class OfQueue(NamedTuple):
    """Holds the queue that a row of list_queues or list_limits is about."""

    queue: str


def queues(tx: Transaction) -> list[tasks.QueueView]:
    """Returns every queue that has settings or tasks that have not ended, and those of the
    newest tasks: one that is idle can be paused before it is used again. Queues of the newest
    tasks that failed are returned, too, so that no failure is in a queue that is not listed."""
    limits: dict[str, list[Limit]] = {}
    for of, limit in tx.pairs("list_limits", OfQueue, Limit):
        limits.setdefault(of.queue, []).append(limit)
    settings = {
        of.queue: replace(said, limits=tuple(limits.get(of.queue, ())))
        for of, said in tx.pairs("list_queues", OfQueue, QueueSettings)
    }
    counts: dict[str, dict[Status, int]] = {}
    ages: dict[str, float] = {}
    for queue, status, count, age in tx.rows("count_tasks"):
        counts.setdefault(queue, {})[Status(status)] = count
        if status == Status.READY.value and age is not None:
            ages[queue] = age
    recent = {row[0] for row in tx.rows("list_recent_queues", count=RECENT_TASKS)}
    failed: dict[str, int] = dict(tx.rows("count_failed_tasks", count=FAILED_TASKS))
    are_more = sum(failed.values()) == FAILED_TASKS
    return [
        tasks.QueueView(
            queue=queue,
            settings=settings.get(queue, QueueSettings()),
            counts=counts.get(queue, {}),
            oldest_ready_seconds=ages.get(queue),
            failed=failed.get(queue, 0),
            failed_more=are_more,
        )
        for queue in sorted(settings.keys() | counts.keys() | recent | failed.keys())
    ]


def workers(tx: Transaction, *, live_only: bool = True) -> list[tasks.WorkerView]:
    """Returns workers with the number of their leases, newest first.

    ``live_only`` leaves out those that have stopped.
    """
    return tx.records("list_workers", tasks.WorkerView, live_only=live_only)


def ready_queues(tx: Transaction) -> dict[str, int]:
    """Returns the highest priority of the ready tasks of each queue that has some."""
    return dict(tx.rows("list_ready_queues"))


def now(tx: Transaction) -> Instant:
    """Returns the time on the database's clock."""
    return Instant(tx.rows("get_now")[0][0])


def store_id(tx: Transaction) -> str:
    """Returns the id that the store was given when it was made."""
    return str(tx.rows("get_store_id")[0][0])


def orphans(tx: Transaction, host: str, boot_id: str) -> list[HeldLease]:
    """Returns every lease that workers of one host and boot hold.

    Which of these workers are dead, the caller finds out.
    """
    return tx.records("list_orphans", HeldLease, host=host, boot_id=boot_id)


def figures(tx: Transaction) -> list[tasks.Figure]:
    """Returns the size of each run's pool, and the figures of the database itself."""
    pools = [("pool", str(run), float(count)) for run, count in tx.rows("count_pool")]
    return [
        tasks.Figure(name=name, label=label, value=value)
        for name, label, value in (*pools, *tx.rows("measure_store"))
    ]


def verify(
    tx: Transaction, invariants: Sequence[str] = tuple(INVARIANTS)
) -> list[tasks.Violation]:
    """Returns every row that breaks an invariant."""
    return [
        tasks.Violation(invariant=invariant, task_id=task_id, seen=seen)
        for invariant in invariants
        for task_id, seen in tx.rows(INVARIANTS[invariant])
    ]
