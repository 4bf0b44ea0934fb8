"""Hands tasks to workers under leases, and applies what workers say about their attempts.

A claim takes the oldest tasks of the highest priority that fit and may run. Heartbeats keep the
leases, reports tell of starts, messages, usage and the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from tidewheel.core.operator.definition import read_job_name
from tidewheel.core.operator.views import WITHDRAWN_STATUSES
from tidewheel.core.queue.lease import (
    Holder,
    LeaseAnswer,
    check_holder,
    check_lease_seconds,
    check_progress,
)
from tidewheel.core.queue.requests import (
    Beat,
    Claimed,
    ClaimedTasks,
    ClaimRequest,
    End,
    Ending,
    JobMessage,
    Report,
    Reported,
    WorkerBeats,
)
from tidewheel.core.queue.status import Signal, Status
from tidewheel.core.queue.steps import adopt as adopt_step
from tidewheel.core.queue.steps import end_signal, step
from tidewheel.core.queue.submission import MESSAGES_MAX
from tidewheel.core.queue.task import Change, Instant, TaskId, TaskState, WorkerId
from tidewheel.core.queue.values import values_text
from tidewheel.errors import (
    BadSetting,
    BadValues,
    MessagesMissing,
    NotDue,
    NotFound,
    NotRunning,
    Refused,
    RunStopping,
    WrongStatus,
)
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.store.operations.lanes import ClaimPlan, LockedRule, claim_by_rules
from tidewheel.store.operations.queries import views_of
from tidewheel.store.operations.runs import get_run
from tidewheel.store.operations.told_values import (
    Teller,
    ToldValues,
    add_values,
    hear_values,
    told_before,
)
from tidewheel.store.operations.transitions import (
    Effects,
    EventRow,
    apply,
    lock_task,
    lock_tasks,
    spoken,
    start,
    success,
    tell_runs,
    write_changes,
)
from tidewheel.store.rows import (
    RESOURCE_COLUMNS,
    ClaimedRow,
    labels_text,
    offered_flavours,
    resources,
    storable,
    storable_end,
    worker_number,
)
from tidewheel.store.transaction import (
    Success,
    Transaction,
    in_chunks,
    row_of,
    rows_in_chunks,
)

if TYPE_CHECKING:
    from tidewheel.core.queue.access import JobWords

CLAIM_COUNT_MAX = 10_000


def claim(tx: Transaction, request: ClaimRequest) -> ClaimedTasks:
    """Leases up to ``count`` tasks of one queue to the worker, highest priority first."""
    asked = {"queue": request.queue, "worker_number": worker_number(request.worker)}
    rows = tx.pairs("lock_plan", ClaimPlan, LockedRule, **asked)
    plan = _checked(rows[0][0], request.worker, request.lease_seconds)
    return _claim(tx, request, plan, [rule for _, rule in rows])


def _claim(
    tx: Transaction, request: ClaimRequest, plan: ClaimPlan, rules: Sequence[LockedRule] = ()
) -> ClaimedTasks:
    if plan.paused:
        return ClaimedTasks()
    next_due = plan.next_due_seconds
    if next_due is not None and next_due <= 0.0:
        # Delayed tasks stay out of the claim index until they are due, so that a million of
        # them cost a claim nothing; the first claim after the time puts them in.
        tx.rows("promote_due_tasks", queue=request.queue)
        next_due = tx.rows("get_next_due", queue=request.queue)[0][0]
    wanted = _wanted(request)
    if plan.has_rules:
        rows = claim_by_rules(tx, wanted, plan, rules)
    else:
        rows = tx.claim("claim_tasks", plan.lease_seconds, **wanted)
        _sort(rows)  # by the rules they are in order, which aging may change
    return _leased(tx, rows, plan, next_due)


def _sort(rows: list[ClaimedRow]) -> None:
    rows.sort(key=attrgetter("seq"))
    rows.sort(key=attrgetter("priority"), reverse=True)  # equals stay in their order


def _leased(
    tx: Transaction, rows: Sequence[ClaimedRow], plan: ClaimPlan, next_due: float | None
) -> ClaimedTasks:
    given = _given(tx, rows)
    told = [claimed(row, plan, has_inputs=row.seq in given) for row in rows]
    return ClaimedTasks(told, next_due)


def _given(tx: Transaction, rows: Sequence[ClaimedRow]) -> set[int]:
    """Returns which tasks need others that have told values. Most tasks need none: only for
    those that are tied to others something is read."""
    tied = [row.seq for row in rows if row.graph is not None]
    return {seq for (seq,) in rows_in_chunks(tx, "find_inputs", "seqs", tied)}


def claim_along(
    tx: Transaction, request: ClaimRequest, *, is_small: bool = False
) -> ClaimedTasks | None:
    """Claims in the transaction of a write that has made tasks ready. Returns None if the claim
    has to be made by itself: where rules hold, limits and lanes are locked before tasks, and an
    unknown worker is told so. ``is_small``: statements cost more than the tasks it may find."""
    is_at_once = is_small and tx.claims_at_once
    if is_at_once and (tasks := _claim_at_once(tx, request)) is not None:
        return tasks
    try:
        plan = plan_claim(tx, request.queue, request.worker, request.lease_seconds)
    except NotFound:
        return None
    return None if plan.has_rules else _claim(tx, request, plan)


def _claim_at_once(tx: Transaction, request: ClaimRequest) -> ClaimedTasks | None:
    """Claims by one query, where the database has one for it; None if more is to be asked."""
    wanted = _wanted(request) | {"worker_number": worker_number(request.worker)}
    seconds = request.lease_seconds
    seconds = None if seconds is None else check_lease_seconds(seconds)
    plan, rows = tx.claim_at_once(ClaimPlan, lease_seconds=seconds, **wanted) or (None, [])
    if plan is None or not (rows or plan.is_plain):
        return None
    _sort(rows)
    return _leased(tx, rows, plan, plan.next_due_seconds)


def claim_by_id(
    tx: Transaction, task_id: TaskId, worker: WorkerId, lease_seconds: float | None = None
) -> Claimed:
    """Leases one task by its id (R002-34); raises WrongStatus, NotDue or NotRunning.

    The pause and the limits of its queue do not count: they are for claims of any task.
    """
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
    return claimed(rows[0], plan, has_inputs=bool(_given(tx, rows)))


_asked = attrgetter(*RESOURCE_COLUMNS)


def claimed(row: ClaimedRow, plan: ClaimPlan, *, has_inputs: bool = False) -> Claimed:
    """Returns a claimed task, made of its row and of its queue's settings."""
    # Each by name: made from a dictionary, a task would take a worker twice as long.
    return Claimed(
        seq=row.seq,
        id=TaskId(row.id),
        queue=row.queue,
        name=row.name,
        attempt=row.attempt,
        spec=row.spec,
        command=row.command,
        handler=row.handler,
        priority=row.priority,
        deadline_at=Instant(row.now + plan.lease_seconds),
        lease_seconds=plan.lease_seconds,
        timeout_seconds=row.timeout_seconds,
        max_termination_seconds=row.max_termination_seconds,
        resources=resources(*_asked(row)),
        fence_kill=bool(plan.fence_kill),
        limited=bool(plan.limited),
        run=row.run,
        environment=row.environment,
        has_inputs=has_inputs,
    )


def _refuse_withdrawn(tx: Transaction, task: TaskState) -> None:
    if task.run is None or read_job_name(task.id).is_code:  # that also runs after the end
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
    """Returns what a claim needs to know; raises NotFound if the worker is unknown.

    ``lease_seconds`` is the length of the lease that is asked for; None: as the queue says.
    """
    asked = {"queue": queue, "worker_number": worker_number(worker)}
    [plan] = tx.records("plan_claim", ClaimPlan, **asked)
    return _checked(plan, worker, lease_seconds)


def _checked(plan: ClaimPlan, worker: WorkerId, lease_seconds: float | None) -> ClaimPlan:
    if not plan.worker_known:
        raise NotFound("worker", worker)
    if lease_seconds is None:
        return plan
    return plan._replace(lease_seconds=check_lease_seconds(lease_seconds))


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
        "flavours": offered_flavours(free),
        "commands": request.commands,
        "any_handler": handlers is None,
        "handlers": sorted(handlers or ()),
        "bare": request.bare,
    }


# ---- what workers say ----


@dataclass(slots=True)
class _Writes:
    """Gathers the rows that a round of reports stores, so that each table is written once."""

    started: list[dict[str, object]] = field(default_factory=list)
    messages: list[dict[str, object]] = field(default_factory=list)
    counts: list[dict[str, object]] = field(default_factory=list)
    usage: list[dict[str, object]] = field(default_factory=list)
    outputs: dict[int, set[str]] = field(default_factory=dict)
    values: dict[int, dict[str, Any]] = field(default_factory=dict)  # by task
    decided: list[tuple[TaskState, Change]] = field(default_factory=list)
    events: list[EventRow] = field(default_factory=list)


def heartbeat(tx: Transaction, worker: WorkerId, beats: Sequence[Beat]) -> list[LeaseAnswer]:
    """Extends every lease that is still this worker's; returns one answer per beat."""
    return heartbeats(tx, [WorkerBeats(worker, beats)])[0]


def heartbeats(tx: Transaction, told: Sequence[WorkerBeats]) -> list[list[LeaseAnswer]]:
    """Extends leases of several workers, each of which only its own; returns one answer per
    beat, for each worker in its place."""
    for beat in (beat for one in told for beat in one.beats):
        check_progress(beat.progress)
    tx.rows("touch_workers", numbers=sorted({worker_number(one.worker) for one in told}))
    rows = [
        {
            "worker": worker,
            "id": beat.task_id,
            "attempt": beat.attempt,
            "progress": beat.progress,
        }
        for worker, beats in told
        for beat in beats
    ]
    held = {
        (worker, task_id, attempt): status
        for worker, task_id, attempt, status in rows_in_chunks(
            tx, "extend_leases", "beats", rows
        )
    }
    return [
        [_answer(held.get((worker, beat.task_id, beat.attempt))) for beat in beats]
        for worker, beats in told
    ]


def _answer(status: str | None) -> LeaseAnswer:
    if status is None:
        return LeaseAnswer.LOST
    return LeaseAnswer.CANCEL if status == Status.CANCELLING.value else LeaseAnswer.GO_ON


def report(
    tx: Transaction, effects: Effects, reports: Sequence[Report], chance: Callable[[], float]
) -> list[Reported]:
    """Applies reports and returns an answer for each; one that is refused stops no other."""
    answers: dict[int, Reported] = {}
    if len({one.holder.task_id for one in reports}) == len(reports):
        are_over = [one.end is not None for one in reports]
        if True in are_over:
            answers = _succeed_plainly(tx, reports, effects)
        if False in are_over:
            answers |= _start_plainly(tx, reports, effects)
    waiting = [(k, one) for k, one in enumerate(reports) if k not in answers]
    while waiting:
        # One report per task at a time, so that a second sees what the first has done.
        now: list[tuple[int, Report]] = []
        later: list[tuple[int, Report]] = []
        seen: set[TaskId] = set()
        for position, one in waiting:
            (later if one.holder.task_id in seen else now).append((position, one))
            seen.add(one.holder.task_id)
        answers |= _report_round(tx, now, chance, effects)
        waiting = later
    told = [answers[position] for position in range(len(reports))]
    for one, answer in zip(reports, told, strict=True):
        if one.end is not None and answer.refused is None:
            effects.ended[one.holder.worker] += 1
            # The reporter says in which queue its end made room within a limit, since asking
            # the database would cost the common case a statement.
            if one.frees is not None:
                effects.queues.add(one.frees)
    return told


def _succeed_plainly(
    tx: Transaction, reports: Sequence[Report], effects: Effects
) -> dict[int, Reported]:
    """Ends the attempts of plain successes, the common case, all at once. Returns the answers
    by position. Reports without an answer are left to ``_report_round``."""
    plain, positions, told = _plain_successes(reports)
    answers: dict[int, Reported] = {}
    ended, values, usage = [], [], []
    for worker, ends in plain.items():
        for task_id, seq, run in tx.succeed(worker, ends):
            position = positions[task_id]
            one, body = reports[position], told.get(task_id)
            answers[position] = Reported(task_id=task_id, status=Status.SUCCEEDED)
            if body is not None or one.usage:
                where = {"seq": seq, "attempt": one.holder.attempt}
                values += [] if body is None else [where | {"body": body}]
                usage += [where | row_of(sample) for sample in one.usage]
            if run is not None:
                ended.append((run, one, seq, body))
    whole = add_values(tx, values) if values else {}
    if usage:
        rows_in_chunks(tx, "add_usage", "samples", usage)
    if ended:
        events = [success(run, one, whole.get(seq, said)) for run, one, seq, said in ended]
        tell_runs(tx, events, effects)
    return answers


def _plain_successes(
    reports: Sequence[Report],
) -> tuple[dict[WorkerId, list[Success]], dict[TaskId, int], dict[TaskId, str]]:
    """Returns the successes of each worker whose reports have no messages; by task, where its
    report is, and the values that it tells."""
    plain: dict[WorkerId, list[Success]] = {}
    positions, told = dict[TaskId, int](), dict[TaskId, str]()
    for position, one in enumerate(reports):
        holder, end = one.holder, one.end
        if end is None or end.ending is not Ending.SUCCEEDED or one.messages:
            continue
        if end.values is not None:
            try:
                told[holder.task_id] = values_text(storable(end.values))
            except BadValues:
                continue  # _report_round refuses it, for this or for a lost lease
        positions[holder.task_id] = position
        metrics = None if end.metrics is None else storable(end.metrics)
        ago = one.started_seconds_ago if one.started else None
        row = Success(holder.task_id, holder.attempt, ago, end.exit_status, metrics)
        plain.setdefault(holder.worker, []).append(row)
    return plain, positions, told


def _start_plainly(
    tx: Transaction, reports: Sequence[Report], effects: Effects
) -> dict[int, Reported]:
    """Notes reports that tell of a start and of nothing else; returns the answers by position.
    They decide nothing about their tasks, so only the leases are written."""
    plain: dict[WorkerId, dict[TaskId, int]] = {}
    for position, one in enumerate(reports):
        if one.started and one.end is None and not one.messages and not one.usage:
            plain.setdefault(one.holder.worker, {})[one.holder.task_id] = position
    answers, events = {}, []
    for worker, positions in plain.items():
        rows = [
            {
                "id": task_id,
                "attempt": reports[position].holder.attempt,
                "ago": reports[position].started_ago,
            }
            for task_id, position in positions.items()
        ]
        for chunk in in_chunks(rows):
            for task_id, status, run in tx.rows("start_attempts", worker=worker, starts=chunk):
                position = positions[task_id]
                answers[position] = Reported(task_id=task_id, status=Status(status))
                if run is not None:
                    events.append(start(run, task_id, reports[position].holder.attempt))
    tell_runs(tx, events, effects)
    return answers


def _report_round(
    tx: Transaction,
    reports: Sequence[tuple[int, Report]],
    chance: Callable[[], float],
    effects: Effects,
) -> dict[int, Reported]:
    tasks = lock_tasks(tx, [one.holder.task_id for _, one in reports])
    answers, writes = {}, _Writes()
    known = told_before(tx, ((tasks.get(one.holder.task_id), one) for _, one in reports))
    for position, one in reports:
        task_id = one.holder.task_id
        try:
            task = tasks.get(task_id)
            told = None if task is None else known.get(task.seq)
            status = _accept(task, one, chance, writes, told)
            answers[position] = Reported(task_id=task_id, status=status)
        except Refused as refused:
            answers[position] = Reported(task_id=task_id, refused=refused)
    rows_in_chunks(tx, "mark_started", "leases", writes.started)
    rows_in_chunks(tx, "add_messages", "messages", writes.messages)
    rows_in_chunks(tx, "count_messages", "leases", writes.counts)
    rows_in_chunks(tx, "add_usage", "samples", writes.usage)
    rows_in_chunks(tx, "put_values", "values", list(writes.values.values()))
    tell_runs(tx, writes.events, effects)
    apply(tx, writes.decided, effects, writes.outputs)
    return answers


def _accept(
    task: TaskState | None,
    one: Report,
    chance: Callable[[], float],
    writes: _Writes,
    known: ToldValues | None,
) -> Status:
    """Adds what a report changes to ``writes``, and returns the status of its task after it.
    Everything is checked first, so that a refused report leaves nothing behind."""
    if task is None:
        raise NotFound("task", one.holder.task_id)
    check_holder(task, one.holder, "a report")
    assert task.lease is not None
    fresh = _fresh(task, task.lease.messages, one)
    where: dict[str, object] = {"seq": task.seq, "attempt": task.attempt}
    told = Teller(task, known)
    fresh = [told.heard(message) for message in fresh]
    change = None if one.end is None else _end(task, one.end, chance, told)
    if change is not None:
        writes.decided.append((task, change))
    if told.body is not None:
        writes.values[task.seq] = where | {"body": told.body}
    if one.started and task.lease.started_at is None:
        writes.started.append(where | {"ago": one.started_ago})
    for message in fresh:
        said = {"text": storable(message.text), "output": storable(message.output)}
        writes.messages.append(where | {"number": message.number} | said)
    if fresh:
        writes.counts.append(where | {"messages": task.lease.messages + len(fresh)})
    if task.run is not None:
        writes.events += spoken(task, one, fresh, change)
    made = {output for message in fresh if (output := storable(message.output)) is not None}
    if made and task.graph is not None:
        writes.outputs[task.seq] = made
    writes.usage += [where | row_of(sample) for sample in one.usage]
    return change.to_status if change else task.status


def _fresh(task: TaskState, stored: int, one: Report) -> list[JobMessage]:
    """Returns the messages that are not stored yet; raises MessagesMissing if there is a gap
    before one of them."""
    fresh = [message for message in one.messages if message.number > stored]
    for expected, message in enumerate(fresh, start=stored + 1):
        if message.number != expected:
            raise MessagesMissing(task.id, expected - 1, message.number)
    return fresh


def _end(task: TaskState, given: End, chance: Callable[[], float], told: Teller) -> Change:
    end = storable_end(given)
    if end.values is not None:
        end = replace(end, values=values_text(end.values))
    change = step(task, end_signal(task, end), end=end, chance=chance())
    if change.values is None:
        return change
    return replace(change, values=told.ended(change.values))


def adopt(tx: Transaction, holder: Holder, new_owner: WorkerId) -> Claimed:
    """Gives the lease of a dead worker to another one of its host, and returns the task."""
    task = lock_task(tx, holder.task_id)
    check_holder(task, holder, "adopt")
    plan = plan_claim(tx, task.queue, new_owner)
    write_changes(tx, [replace(adopt_step(task, new_owner), worker=new_owner)])
    [(fence_kill, seconds)] = tx.rows("move_lease", seq=task.seq, owner=new_owner)
    [row] = tx.records("get_claimed", ClaimedRow, seq=task.seq)
    return claimed(row, plan._replace(fence_kill=fence_kill, lease_seconds=seconds))


def cancelling(tx: Transaction, worker: WorkerId) -> list[tuple[TaskId, int]]:
    """Returns (task id, attempt) of each lease of a worker whose job it was told to cancel."""
    return [(TaskId(row[0]), row[1]) for row in tx.rows("list_cancelling", worker=worker)]


# ---- what jobs say with a token of their own, past their worker ----
#
# A worker numbers what it hears from a job 1, 2, … and knows nothing of this. So what comes
# past it has numbers of its own, given here, far above: neither can be taken for the other, and
# each keeps its order. A request that comes again is known by the answer that was kept for its
# key, which is written by the same transaction.


PAST_WORKER = 1_000_000_000  # no worker's message has such a number


def hear_job(tx: Transaction, effects: Effects, words: JobWords) -> None:
    """Stores what a job said, once for each key; raises LeaseLost if its lease is over."""
    # Only servers hear jobs.
    from tidewheel.store.operations.access import keep_answer, kept_answer  # noqa: PLC0415

    task = lock_task(tx, words.holder.task_id)
    check_holder(task, words.holder, "a message")
    if words.kept is not None:
        if kept_answer(tx, words.kept.token, words.kept.key) is not None:
            return
        keep_answer(tx, words.kept)
    if words.progress is not None:
        tx.rows("set_progress", seq=task.seq, progress=words.progress)
    if words.text or words.output is not None or words.values is not None:
        _say(tx, task, words, effects)


def _say(tx: Transaction, task: TaskState, words: JobWords, effects: Effects) -> None:
    place = {"seq": task.seq, "attempt": task.attempt}
    [[last]] = tx.rows("get_last_message", **place, above=PAST_WORKER)
    number = (last or PAST_WORKER) + 1
    if number > PAST_WORKER + MESSAGES_MAX:
        raise Refused(f"this attempt has sent {MESSAGES_MAX} messages; no more are accepted")
    message = JobMessage(
        number=number, text=words.text, output=words.output, values=words.values
    )
    if words.values is not None:
        message = hear_values(tx, task, message)
    said = {"text": storable(message.text), "output": storable(message.output)}
    tx.rows("add_messages", messages=[place | {"number": number} | said])
    if task.run is not None:
        report = Report(holder=words.holder, messages=(message,))
        tell_runs(tx, spoken(task, report, [message], None), effects)
    output = storable(words.output)
    if output is not None and task.graph is not None:
        apply(tx, [], effects, {task.seq: {output}})
