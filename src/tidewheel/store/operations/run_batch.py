"""Reads and writes for a scheduler: its inbox, one batch, and the run as it is stored.

Decisions are made outside of the transaction. They count only if the run is still held under
the same epoch and the batch is the next one: ``advance_run`` is the first statement, and
everything else follows from it (docs/decisions/0014).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from operator import attrgetter
from typing import Any

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.operator import requests, views
from tidewheel.core.operator.verbs import reopens
from tidewheel.core.queue.requests import PAGE_COUNT_MAX
from tidewheel.core.queue.status import FINAL, Status
from tidewheel.core.queue.task import Instant, NewTask, TaskId
from tidewheel.core.sched.persistence import Change, PutMemory
from tidewheel.core.sched.task_state import Key, TaskHistory
from tidewheel.errors import NotFound
from tidewheel.failpoints import Failpoint
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.store.change_rows import ChangedRows, Record, memory_of, read_change
from tidewheel.store.operations.leases import report
from tidewheel.store.operations.queries import page_count, values_of, views_of
from tidewheel.store.operations.runs import (
    create_run,
    erase_tasks,
    get_run,
    lost,
    options_text,
    reopen_run,
)
from tidewheel.store.operations.task_admin import cancel
from tidewheel.store.operations.transitions import (
    COMMAND,
    Effects,
    EventRow,
    lock_tasks,
    nested_end,
    nested_news,
    tell_runs,
    withdraw,
)
from tidewheel.store.rows import new_task_row
from tidewheel.store.transaction import (
    Script,
    Transaction,
    found_one,
    in_chunks,
    rows_in_chunks,
)

SUBMITS_PER_LOOK = 1_000
PLACES_PER_BATCH = 1_000_000  # more broadcasts than fit into a command
VERSIONS_MAX = 50  # definitions of one run that are kept: each has all its files
# A batch is known by its number: its submissions need nothing by which to be known again, and
# no client submits what has no digest.
NO_DIGEST = ""


class InboxRow(NamedTuple):
    """Holds one row of list_events: an event that waits for its run's scheduler."""

    seq: int | None  # None: there is no event, and the row has nothing but the time
    at: Instant
    kind: str
    task_id: TaskId
    attempt: int
    text: str
    output: str | None
    status: str
    error_code: str | None
    error: str | None
    exit_status: int | None
    told: str | None
    number: int  # of a command, with the next two
    who: str
    body: str
    now: Instant  # what the database's clock shows


# What a scheduler is told by a row of each kind, and what of the row that holds.
_HAPPENINGS = {
    name: (kind, attrgetter(*kind._fields))
    for name, kind in (
        *(
            ("started", requests.JobStarted),
            ("said", requests.JobSaid),
            ("over", requests.JobOver),
        ),
        ("command", requests.CommandGiven),
    )
}


def read_inbox(tx: Transaction, number: int, count_max: int) -> requests.Inbox:
    """Returns what happened to a run and its scheduler has not handled yet, oldest first."""
    rows = tx.records("list_events", InboxRow, run=number, count=page_count(count_max))
    if not rows:
        get_run(tx, number)  # says that there is none
    happenings = []
    for row in rows:
        if row.seq is not None:
            kind, told = _HAPPENINGS[row.kind]
            happenings.append(kind._make(told(row)))
    return requests.Inbox(rows[0].now, happenings)


def write_batch(
    tx: Transaction,
    effects: Effects,
    lease: requests.RunLease,
    batch: requests.RunBatch,
    rows: ChangedRows,
    failpoint: Failpoint,
) -> None:
    """Writes everything that a scheduler decided in a batch, or nothing.

    A batch that was written already is left alone; raises RunLost if the epoch is out of date,
    Overtaken if it was decided upon reports that cannot be accepted.
    """
    if not _advance(tx, lease, batch):
        return
    run = lease.run
    _strike_out(tx, run, batch, effects)
    if batch.job_reports:
        failpoint("report_before_commit")
    failpoint("output_recorded")
    _write_changes(tx, run, batch.number, rows)
    failpoint("children_spawned")
    if batch.submissions:
        _submit(tx, batch.submissions, effects)
    failpoint("child_enqueued")
    if batch.cancellations:
        cancel(tx, effects, batch.cancellations)
    if batch.goes_on:
        _offer_again(tx, run, effects)
    if batch.status in views.WITHDRAWN_STATUSES:
        # Nobody drives the run: what no worker has taken is withdrawn (SEMANTICS §9).
        withdraw(tx, [row[0] for row in tx.rows("find_ready_of_run", run=run)])
    if batch.timers_gone or batch.timers:
        _write_timers(tx, run, batch)
    failpoint("retry_scheduled")
    if batch.xtriggers or batch.broadcasts or batch.outbox or batch.values:
        _write_around_the_pool(tx, run, batch)
    is_told = batch.answers or batch.ends or batch.report is not None
    if is_told or batch.nested or batch.nested_commands:
        _tell_others(tx, run, batch, effects)


def _advance(tx: Transaction, lease: requests.RunLease, batch: requests.RunBatch) -> bool:
    """Advances a run by a batch; returns False if it was advanced by this batch before.

    Then the answer to the first request got lost, or a copy of the request was on its way for
    so long that later batches overtook it.
    """
    advanced = tx.rows(
        "advance_run",
        run=lease.run,
        epoch=lease.epoch,
        batch=batch.number,
        status=str(batch.status),
        reason=batch.reason,
        options=None if batch.options is None else options_text(batch.options),
        ends=batch.ends,
        lease_seconds=lease.lease_seconds,
    )
    if advanced:
        if batch.definition is not None:
            _redefine(tx, lease.run, batch.definition, batch.answers)
        return True
    run = get_run(tx, lease.run)
    if run.epoch != lease.epoch:
        raise lost(tx, lease)
    assert run.batch >= batch.number, f"batch {batch.number} after {run.batch} of {run.name}"
    return False


def _redefine(
    tx: Transaction, run: int, definition: str, answers: Iterable[requests.CommandAnswer]
) -> None:
    """Changes the definition of a run; the one that it had is kept as an earlier version."""
    named = [one.number for one in answers if one.refused is None and definition in one.answer]
    tx.rows("add_first_version", run=run, definition=definition)
    by = named[-1] if named else None
    tx.rows("add_run_version", run=run, definition=definition, command=by)
    tx.rows("drop_run_versions", run=run, count=VERSIONS_MAX)
    tx.rows("redefine_run", run=run, definition=definition)


def _strike_out(tx: Transaction, run: int, batch: requests.RunBatch, effects: Effects) -> None:
    """Deletes the happenings that a batch was decided upon, and applies the reports, as if
    their worker had brought them.

    Raises Overtaken if one of these is refused, as its lease is lost or its task was cancelled,
    or if the run was told something of such a task that the batch does not know of: a message,
    or values that go with those of its end.
    """
    if batch.consumed:
        _put(tx, "delete_events", run, "seqs", batch.consumed)
    if not batch.job_reports:
        return
    ids = [one.holder.task_id for one in batch.job_reports]
    effects.known = {
        one.holder.task_id: None if one.end is None else one.end.values
        for one in batch.job_reports
    }
    answers = report(tx, effects, batch.job_reports, _no_chance)
    effects.known = {}
    pairs = zip(batch.job_reports, answers, strict=True)
    is_so = all(
        answer.refused is None and (one.end is None or answer.status is Status.SUCCEEDED)
        for one, answer in pairs
    )
    if not is_so or tx.rows("find_unheard", run=run, ids=ids):
        raise requests.Overtaken(ids)


def _no_chance() -> float:
    """Returns 0: what has succeeded is not tried again after a random time."""
    return 0.0


def _put(tx: Transaction, query: str, run: int, parameter: str, rows: Sequence[object]) -> None:
    for chunk in in_chunks(rows):
        tx.rows(query, run=run, **{parameter: chunk})


def _put_or_drop(tx: Transaction, run: int, what: str, rows: Sequence[Record], by: str) -> None:
    """Writes the rows whose column ``by`` has a value, and deletes those where it is None."""
    _put(tx, f"put_{what}", run, what, [row for row in rows if row[by] is not None])
    _put(tx, f"drop_{what}", run, what, [row for row in rows if row[by] is None])


def _write_changes(tx: Transaction, run: int, batch: int, rows: ChangedRows) -> None:
    if not (rows.pool or rows.memory or rows.forgotten or rows.facts):
        return
    stay = [row for row in rows.pool.values() if row is not None]
    gone = [{"point": p, "name": n} for (p, n), row in rows.pool.items() if row is None]
    tx.each("put_pool", "tasks", stay, run=run)
    tx.each("drop_pool", "tasks", gone, run=run)
    tx.each("forget_memory", "tasks", rows.forgotten, run=run)
    tx.each("put_memory", "memories", list(rows.memory.values()), run=run)
    if rows.facts:
        facts = [
            {"kind": kind, "key": key, "body": body} for (kind, key), body in rows.facts.items()
        ]
        tx.each(
            "put_facts", "facts", [one for one in facts if one["body"] is not None], run=run
        )
        tx.each("drop_facts", "facts", [one for one in facts if one["body"] is None], run=run)
    tx.rows("add_run_change", run=run, batch=batch, changes=rows.text)


def _submit(tx: Transaction, tasks: Sequence[NewTask], effects: Effects) -> None:
    """Stores tasks as ready at once: the scheduler has seen to everything that they needed."""
    for task in tasks:
        assert task.run is not None and task.executes and task.armed, task
        assert not task.needs and not task.continuations, task
        effects.queues.add(task.queue)
    stored = [new_task_row(task, Status.READY, NO_DIGEST) for task in tasks]
    for chunk in in_chunks(stored):
        seqs = tx.insert(chunk)
        assert len(seqs) == len(chunk), "a submit number was used twice"


def _offer_again(tx: Transaction, run: int, effects: Effects) -> None:
    """Lets workers claim again what was withdrawn from them. The tasks are the same
    submissions, under the same numbers."""
    rows = tx.rows("find_withdrawn", run=run)
    seqs = [row[0] for row in rows]
    # A cancel at this moment waits for the lock, or came first: add_ready skips such a task.
    rows_in_chunks(tx, "lock_tasks_by_seq", "seqs", seqs)
    rows_in_chunks(tx, "add_ready", "seqs", seqs)
    tx.rows("drop_withdrawn", run=run)
    effects.queues.update(row[1] for row in rows)


def _tell_nested(
    tx: Transaction, run: int, commands: Sequence[requests.NestedCommand], effects: Effects
) -> None:
    """Gives commands to runs that are tasks of this one; those that have ended need none."""
    names = list(dict.fromkeys(one.run for one in commands))
    open_runs = {
        name: number
        for chunk in in_chunks(names)
        for number, name in tx.rows("lock_nested_runs", run=run, names=chunk)
    }
    who = f"the run {get_run(tx, run).name}, of which this run is a task"
    events: list[EventRow] = []
    for one in commands:
        if (nested := open_runs.get(one.run)) is not None:
            [(number,)] = tx.rows("keep_command", run=nested, who=who, body=one.body)
            events.append({"run": nested, "kind": COMMAND, "command": number})
    tell_runs(tx, events, effects)


def _report_to_parent(
    tx: Transaction, run: int, report: requests.ParentReport, effects: Effects
) -> None:
    """Tells the run whose task this one is what it would hear of a job, with this batch. One
    that goes on at once, as a command came too late for its last batch, has not ended."""
    if report.status is None:
        tell_runs(tx, [nested_news(report)], effects)
    elif get_run(tx, run).given is None:
        said = [nested_news(report)] if report.said else []
        tell_runs(tx, [*said, nested_end(report)], effects)


def _reopen_if_asked(tx: Transaction, run: int) -> None:
    """Reopens a run for commands that came too late for its last batch."""
    unheard = [row[0] for row in tx.rows("list_unheard_commands", run=run)]
    if any(reopens(body) for body in unheard) and not get_run(tx, run).is_aborted:
        reopen_run(tx, run)


def _write_timers(tx: Transaction, run: int, batch: requests.RunBatch) -> None:
    """Writes timers; deletes first, since a timer may be replaced by one of its name."""
    gone = [_timer_key(key) for key in dict.fromkeys(batch.timers_gone)]
    _put(tx, "drop_timers", run, "timers", gone)
    last = {requests.TimerKey(t.point, t.name, t.timer): t.at for t in batch.timers}
    _put(
        tx,
        "put_timers",
        run,
        "timers",
        [_timer_key(key) | {"at": at} for key, at in last.items()],
    )


def _write_around_the_pool(tx: Transaction, run: int, batch: requests.RunBatch) -> None:
    """Writes results of xtriggers, broadcasts, values, and the events for the outbox."""
    calls = {one.signature: one for one in batch.xtriggers}
    results = [one._asdict() | {"result": one.result or None} for one in calls.values()]
    _put_or_drop(tx, run, "xtriggers", results, "result")
    broadcasts = {
        one[:3]: one._asdict() | {"place": batch.number * PLACES_PER_BATCH + number}
        for number, one in enumerate(batch.broadcasts)
    }
    _put_or_drop(tx, run, "broadcasts", list(broadcasts.values()), "value")
    values = {one[:3]: one._asdict() for one in batch.values}
    _put(tx, "put_run_values", run, "values", list(values.values()))
    events = enumerate(batch.outbox)
    outbox = [{"batch": batch.number, "place": at, "body": body} for at, body in events]
    _put(tx, "put_outbox", run, "events", outbox)


def _tell_others(tx: Transaction, run: int, batch: requests.RunBatch, effects: Effects) -> None:
    """Writes what concerns others: operators, runs in this one, and the one around it."""
    for new in batch.nested:
        create_run(tx, new)
    if batch.nested_commands:
        _tell_nested(tx, run, batch.nested_commands, effects)
    if batch.answers or batch.ends:
        _answer(tx, run, batch)
        effects.runs.add(run)  # those who asked, or wait for the end, can look now
    if batch.report is not None:
        _report_to_parent(tx, run, batch.report, effects)


def _answer(tx: Transaction, run: int, batch: requests.RunBatch) -> None:
    answers = [answer._asdict() for answer in batch.answers]
    _put(tx, "answer_commands", run, "answers", answers)
    if batch.ends:
        _reopen_if_asked(tx, run)


def _timer_key(key: requests.TimerKey) -> Record:
    assert (key.point is None) == (key.name == ""), key
    return {"point": key.point or 0, "name": key.name, "timer": key.timer}


# ---- looking ----


def read_run(tx: Transaction, number: int) -> requests.StoredRun:
    """Returns the stored state of a run, all of it as of one moment."""
    get_run(tx, number)
    changes: list[Change] = [
        read_change(kind, body) for kind, body in tx.rows("list_facts", run=number)
    ]
    changes += [memory_of(row[0]) for row in tx.rows("list_memory", run=number)]
    changes += [read_change("task", row[0]) for row in tx.rows("list_pool", run=number)]
    return requests.StoredRun(
        changes=changes,
        timers=[
            requests.RunTimer(Point(point) if name else None, name, timer, at)
            for point, name, timer, at in tx.rows("list_timers", run=number)
        ],
        xtriggers=tx.records("list_xtriggers", requests.XtriggerResult, run=number),
        broadcasts=tx.records("list_broadcasts", requests.StoredBroadcast, run=number),
        has_values=bool(tx.rows("find_run_values", run=number)),
    )


def run_values(tx: Transaction, run: int, keys: Collection[Key]) -> list[requests.StoredValues]:
    """Returns the values that each submission of these tasks returned, those set included."""
    tasks = [{"point": point, "name": name} for point, name in keys]
    return [
        row
        for chunk in in_chunks(tasks)
        for row in tx.records("list_run_values", requests.StoredValues, run=run, tasks=chunk)
    ]


def last_values(tx: Transaction, run: int) -> list[tuple[Point, str, int]]:
    """Returns for each task that has returned values the last point at which it has, its name,
    and how many characters they have."""
    rows = tx.rows("list_last_values", run=run, count=page_count(PAGE_COUNT_MAX))
    return [(Point(point), name, size) for point, name, size in rows]


def withdrawn(tx: Transaction, number: int) -> set[TaskId]:
    """Returns the ready tasks of a run that no worker may claim before the run goes on."""
    return {TaskId(row[2]) for row in tx.rows("find_withdrawn", run=number)}


def undelivered(tx: Transaction, number: int) -> list[requests.Undelivered]:
    """Returns the events of a run that no event handler was told of yet, oldest first."""
    return tx.records("list_outbox", requests.Undelivered, run=number)


def delivered(tx: Transaction, number: int, events: Sequence[requests.Undelivered]) -> None:
    """Deletes events of a run from the outbox, because they were delivered.

    This counts even if another scheduler drives the run by now.
    """
    places: list[Record] = [{"batch": one.batch, "place": one.place} for one in events]
    _put(tx, "drop_outbox", number, "events", places)


# ---- code of the definition, as tasks ----


def submit_code(
    tx: Transaction, effects: Effects, number: int, tasks: Sequence[NewTask]
) -> None:
    """Stores tasks in which code of a run's definition runs; those that are there stay.

    The run may be over. Raises NotFound if it is being deleted.
    """
    run = get_run(tx, number)
    [(_, status)] = tx.rows("lock_runs", runs=[number])
    if status == "deleted":
        raise NotFound("run", run.name)
    for task in tasks:
        assert task.run == number and task.executes, task
        effects.queues.add(task.queue)
    tx.insert([new_task_row(task, Status.READY, NO_DIGEST) for task in tasks])


def take_code(
    tx: Transaction, number: int, ids: Sequence[TaskId], *, unended: bool = False
) -> list[requests.CodeEnd]:
    """Deletes those of these tasks of a run that have ended, and returns how they ended.

    With ``unended`` it deletes all of them, whatever they are doing.
    """
    tasks = [one for one in lock_tasks(tx, sorted(ids)).values() if one.run == number]
    gone = [one for one in tasks if unended or one.status in FINAL]
    seqs = [one.seq for one in gone]
    values = values_of(tx, [one.id for one in gone])
    views = views_of(tx, seqs) if gone else []
    errors = {one.id: "; ".join(why.description for why in one.errors) for one in views}
    erase_tasks(tx, seqs)
    return [
        requests.CodeEnd(one.id, one.status, values.get(one.id), errors.get(one.id) or None)
        for one in gone
    ]


def forgotten(
    tx: Transaction, run: int, count: int = 10_000, *, only_undone: bool = False
) -> list[PutMemory]:
    """Returns what is stored of tasks that the pool has forgotten, newest points first.

    With ``only_undone`` only of those that were lost, removed (also with --forget), or expired.
    """
    get_run(tx, run)
    rows = tx.rows("list_forgotten", run=run, count=page_count(count), only_undone=only_undone)
    return [memory_of(row[0]) for row in rows]


class StoredPast:
    """Reads for views what a store remembers of a run; its callers need not await anything."""

    def __init__(self, look_now: Callable[[Script[Any]], Any], run: int) -> None:
        self._look_now, self._run = look_now, run

    def recall(self, point: Point, name: str) -> TaskHistory | None:
        """Returns what is known of a task that the pool has forgotten; None if nothing is."""
        key = (point, name)
        found: TaskHistory | None
        found = self._look_now(lambda tx: histories(tx, self._run, [key])[key])
        return found


def histories(
    tx: Transaction, run: int, keys: Collection[Key]
) -> dict[Key, TaskHistory | None]:
    """Returns what is known of each of these tasks, whether the pool has forgotten it or not.

    Each has its highest submit number; None stands for a task of which nothing is known.
    """
    found: dict[Key, TaskHistory | None] = dict.fromkeys(keys)
    tasks = [{"point": point, "name": name} for point, name in found]
    for chunk in in_chunks(tasks):
        for point, name, submits, body in tx.rows("find_memory", run=run, tasks=chunk):
            memory = found[point, name] = memory_of(body).memory()
            memory.submits = submits
    return found


def submissions(  # noqa: PLR0913 - each says which
    tx: Transaction,
    run: int,
    *,
    point: str | None = None,
    name: str | None = None,
    ids: Sequence[str] | None = None,
    count: int = 1000,
    before: int | None = None,
) -> list[views.SubmissionView]:
    """Returns submissions of a run, newest first, of all tasks or of some; with `ids` these.

    Those of one task are found by their ids, which is fast however many the run has. Of others
    ``before`` begins a page behind that seq.
    """
    of = get_run(tx, run)
    page_count(count)
    if ids is not None:
        asked = list(ids[:count])
        return tx.records("get_submissions", views.SubmissionView, run=run, ids=asked)
    if point is None or name is None:
        return tx.records(
            "list_submissions",
            views.SubmissionView,
            run=run,
            point=point,
            name=name,
            skip=len(of.name) + 1,
            count=count,
            before=before,
        )
    found: list[views.SubmissionView] = []
    first = 1
    while True:
        numbers = range(first, first + SUBMITS_PER_LOOK)
        ids = [f"{of.name}/{point}/{name}/{submit}" for submit in numbers]
        part = tx.records("get_submissions", views.SubmissionView, run=run, ids=ids)
        found = part + found
        if len(part) < SUBMITS_PER_LOOK:
            return found[:count]
        first += SUBMITS_PER_LOOK


def run_attempts(tx: Transaction, run: int, count: int) -> list[views.RunAttempt]:
    """Returns the attempts at the newest submissions, newest first."""
    get_run(tx, run)
    return tx.records("list_run_attempts", views.RunAttempt, run=run, count=page_count(count))


def command(tx: Transaction, number: int) -> views.CommandView:
    """Returns a command by its number; raises NotFound if there is none."""
    found = tx.records("get_command", views.CommandView, number=number)
    return found_one(found, "command", str(number))


def commands(tx: Transaction, run: int, count: int = 100) -> list[views.CommandView]:
    """Returns the commands of a run, newest first."""
    get_run(tx, run)
    return tx.records("list_commands", views.CommandView, run=run, count=page_count(count))


def run_versions(tx: Transaction, run: int) -> list[views.DefinitionVersion]:
    """Returns the definitions that a run had, newest first; of one that was never reloaded, the
    one that it has."""
    found = tx.records("list_run_versions", views.DefinitionVersion, run=run)
    view = get_run(tx, run)
    return found or [
        views.DefinitionVersion(
            version=1, definition=view.definition, at=view.created_at, who=""
        )
    ]


def run_changes(
    tx: Transaction, run: int, after: int = 0, count: int = 100
) -> list[views.ChangesView]:
    """Returns what batches of a run after number ``after`` changed, oldest first."""
    get_run(tx, run)
    asked = {"run": run, "after": after, "count": page_count(count)}
    return tx.records("list_run_changes", views.ChangesView, **asked)
