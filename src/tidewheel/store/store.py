"""Implements the Store port over any database that can run operations in transactions.

A database gives two things: ``transact`` runs a script, which is a function of a transaction,
and commits it, ``look`` runs one that changes nothing. What a store can be asked is listed in
``DatabaseStore``, each operation with the function of ``operations/`` that does it: ``reads``
changes nothing, ``writes`` does, and ``tells`` also notes whom the change concerns. These are
told after the commit, and only then.

A worker of this process that has room leaves a standing claim. A write that makes tasks of its
queue ready carries it out before it commits, so from the end of one task to the start of the
next lies one commit less. A worker without room leaves one for the slots of those that end: its
report of ends takes the next tasks along. If the write fails, so does the claim.

Most processes need only tasks. Operations on anything else are loaded when one is first asked
for: a store that is opened for tasks alone would start half as slowly again with them.
"""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from tidewheel.api.tasks import Figure, Resubmitted, Task, Violation
from tidewheel.core.queue.requests import (
    Amendment,
    ClaimedTasks,
    JobMessage,
    QueueSettings,
    Report,
    Reported,
    Submitted,
    Wake,
)
from tidewheel.core.queue.submission import SubmitLimits, message_refusal
from tidewheel.core.queue.task import NewTask, TaskId
from tidewheel.errors import ForkedProcess, StoreUnreachable
from tidewheel.failpoints import Failpoint, go_on
from tidewheel.ports.store import Attendance, StandingClaim, StandingClaims, TakeReports
from tidewheel.store.operations import Later, LaterFunction, leases, queries, task_admin
from tidewheel.store.operations import submit as submit_operations
from tidewheel.store.operations import workers as worker_operations
from tidewheel.store.operations.transitions import Effects
from tidewheel.store.transaction import News, Result, Script, Transaction, no_news

P = ParamSpec("P")
R = TypeVar("R")
STORE_CLOSED = "the store is closed"
Conclude = Callable[[bool], None]  # is told whether a write was committed


if TYPE_CHECKING:
    from tidewheel.core.operator.requests import RunBatch, RunLease
    from tidewheel.core.queue.access import AuditEntry, JobWords
    from tidewheel.core.sched.pool import Past
    from tidewheel.store.operations import (
        access,
        event_stream,
        leased_records,
        registry,
        resubmission,
        run_batch,
        run_grid,
        statistics,
    )
    from tidewheel.store.operations import blocks as block_operations
    from tidewheel.store.operations import runs as run_operations

    # A change that wakes nobody is one, too.
    Read = Callable[Concatenate[Transaction, P], R] | LaterFunction
    Change = Callable[Concatenate[Transaction, Effects, P], R] | LaterFunction
    Look = Callable[[Script[R]], Coroutine[Any, Any, R]]
    Method = Callable[Concatenate["DatabaseStore", P], Coroutine[Any, Any, R]]
else:
    access, event_stream, leased_records, registry, run_batch, statistics = map(
        Later,
        ("access", "event_stream", "leased_records", "registry", "run_batch", "statistics"),
    )
    block_operations, run_operations, run_grid = map(Later, ("blocks", "runs", "run_grid"))
    resubmission = Later("resubmission")

_write_batch = Later("run_batch").write_batch
_changed_rows = Later("change_rows", "tidewheel.store").changed_rows


def _loaded(operation: Callable[P, R] | LaterFunction) -> Callable[P, R]:
    return operation.load() if isinstance(operation, LaterFunction) else operation


def _reads_by(way: Callable[[DatabaseStore], Look[R]], operation: Read[P, R]) -> Method[P, R]:
    async def method(self: DatabaseStore, /, *args: P.args, **kwargs: P.kwargs) -> R:
        run = _loaded(operation)
        return await way(self)(lambda tx: run(tx, *args, **kwargs))

    method.operation = operation  # type: ignore[attr-defined]
    return method


def reads(operation: Read[P, R]) -> Method[P, R]:
    """Returns a method of a store that runs an operation which changes nothing."""
    return _reads_by(lambda store: store.look, operation)


def glances(operation: Read[P, R]) -> Method[P, R]:
    """Returns a method of a store that reads a few rows by their keys."""
    return _reads_by(lambda store: store.glance, operation)


def looks_up(operation: Read[P, R]) -> Method[P, R]:
    """Returns a method of a store that reads a few rows by their keys, by one query."""
    return _reads_by(lambda store: store.look_up, operation)


def writes(name: str, operation: Read[P, R]) -> Method[P, R]:
    """Returns a method of a store that runs an operation whose change wakes nobody."""

    async def method(self: DatabaseStore, /, *args: P.args, **kwargs: P.kwargs) -> R:
        run = _loaded(operation)
        return await self._write(name, lambda tx, _: run(tx, *args, **kwargs))

    method.operation = operation  # type: ignore[attr-defined]
    return method


def tells(name: str, operation: Change[P, R]) -> Method[P, R]:
    """Returns a method of a store that runs an operation which notes whom its change wakes."""

    async def method(self: DatabaseStore, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._write(name, _loaded(operation), *args, **kwargs)

    method.operation = operation  # type: ignore[attr-defined]
    return method


class CarriedOut:
    """Holds the claims that one write carries out, each time its script runs."""

    def __init__(self, standing: StandingClaims) -> None:
        self._standing = standing
        self._tasks: dict[StandingClaim, ClaimedTasks | None] = {}

    def carry_out(self, tx: Transaction, effects: Effects) -> None:
        """Carries out the claims that a write is for; if its script runs again, once more."""
        taken = self._standing.take(effects.queues, effects.ended)
        self._tasks = dict.fromkeys((*self._tasks, *taken))
        for claim in self._tasks:
            claim.begin()
            request = claim.request
            if claim.for_ends:
                count = min(request.count, effects.ended[request.worker])
                request = replace(request, count=count)
                if effects.ended[request.worker] >= claim.idle_after:
                    # As a claim by itself would find it: an exclusive task may wait for that.
                    free = replace(request.free, idle_nodes=request.free.nodes)
                    request = replace(request, free=free)
            # In another run of the script no end may have been taken: then there is no room.
            is_small = not claim.for_ends
            self._tasks[claim] = (
                leases.claim_along(tx, request, is_small=is_small) if request.count else None
            )

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def settle(self) -> None:
        """Hands over what was claimed, after the commit."""
        for claim, tasks in self._tasks.items():
            claim.settle(tasks)

    def fail(self) -> None:
        """Tells the workers that nobody knows whether they have tasks."""
        for claim in self._tasks:
            claim.settle(None, unsure=True)


class DatabaseStore(ABC):
    """Is a Store whose operations are transactions of a database."""

    waits = True  # for the database: a caller may be cancelled meanwhile

    def __init__(
        self, limits: SubmitLimits, chance: Callable[[], float], failpoint: Failpoint = go_on
    ) -> None:
        self._limits = limits
        self._chance = chance
        self._failpoint = failpoint
        self._process, self._is_closed = os.getpid(), False
        self._listeners: list[Callable[[Wake], None]] = []
        self._standing = StandingClaims()
        self._attendance = Attendance()

    @abstractmethod
    async def transact(self, script: Script[Result], news: News = no_news) -> Result:
        """Runs a script in one transaction; again, if others changed the same rows first.

        After the script ``news`` is asked what changed. Listeners in other processes are told
        of it once it is committed, or find out by themselves.
        """

    @abstractmethod
    async def look(self, script: Script[Result]) -> Result:
        """Runs a script that only reads."""

    async def glance(self, script: Script[Result]) -> Result:
        """Runs a script that reads a few rows by their keys. A database in this process answers
        sooner than another thread would have been woken."""
        return await self.look(script)

    async def look_up(self, script: Script[Result]) -> Result:
        """Runs a script as ``glance`` does that asks one query; it may be run again."""
        return await self.glance(script)

    @abstractmethod
    def look_now(self, script: Script[Result]) -> Result:
        """Runs a script that reads a few rows, for a caller who cannot await."""

    @abstractmethod
    async def close(self) -> None:
        """Closes files and connections, but not those of a process of which this is a fork."""

    def _require_open(self) -> None:
        """Raises an error in a fork, too: the threads that would answer are not there, and the
        connections are the parent's."""
        if os.getpid() != self._process:
            raise ForkedProcess(self._process)
        if self._is_closed:
            raise StoreUnreachable(STORE_CLOSED)

    # ---- tasks: clients ----

    async def submit(
        self, tasks: Sequence[NewTask], *, atomic: bool = True
    ) -> Sequence[Submitted]:
        script = submit_operations.submission(tasks, self._limits, atomic=atomic)
        return await self._write("submit", script)

    def submit_here(self, task: NewTask) -> Submitted | None:
        """Stores a task as ``submit`` does, in the thread that calls, which need not wake
        another one for it. None: that cannot be, nothing was done."""
        del task
        return None

    async def submit_audited(
        self,
        tasks: Sequence[NewTask],
        entries_of: Callable[[Sequence[Submitted]], Sequence[AuditEntry]],
    ) -> tuple[Sequence[Submitted], AuditEntry | None]:
        """Stores tasks, each by itself, and in the same transaction what the audit is to tell
        of the outcome; returns the last entry, too, None if there is nothing to tell."""
        store = submit_operations.submission(tasks, self._limits, atomic=False)
        add_audit = _loaded(access.add_audit)

        def audited(
            tx: Transaction, effects: Effects
        ) -> tuple[Sequence[Submitted], list[AuditEntry]]:
            answers, last = store(tx, effects), []
            if entries := entries_of(answers):
                # Nobody else can add to the audit until this is committed.
                effects.at_last = lambda: last.append(add_audit(tx, entries))
            return answers, last

        answers, last = await self._write("submit", audited)
        return answers, last[0] if last else None

    async def resubmit(
        self,
        task_ids: Sequence[TaskId],
        *,
        with_children: bool = False,
        dry_run: bool = False,
    ) -> list[Resubmitted]:
        """Submits tasks that have ended again, or says what that would do."""
        given, children = (task_ids, self._limits), with_children
        if dry_run:
            look = _loaded(resubmission.try_to_resubmit)
            return await self.look(lambda tx: look(tx, *given, with_children=children))
        operation = _loaded(resubmission.resubmit)
        return await self._write("resubmit", operation, *given, with_children=children)

    async def arm(self, task_id: TaskId) -> Task:
        await self._write("arm", task_admin.arm, task_id)
        return await self.get(task_id)

    async def amend(self, task_id: TaskId, amendment: Amendment) -> Task:
        limits = self._limits
        await self._write(
            "amend", lambda tx, _: task_admin.amend(tx, task_id, amendment, limits)
        )
        return await self.get(task_id)

    async def configure_queue(self, queue: str, settings: QueueSettings) -> None:
        change = task_admin.configure_queue
        await self.forget_places(await self._write("configure_queue", change, queue, settings))

    async def forget_places(self, moved: int) -> None:
        """Forgets where so many ready tasks stood, if claims would pass by their old places."""
        del moved

    cancel = tells("cancel", task_admin.cancel)
    cancel_matching = tells("cancel_matching", task_admin.cancel_matching)
    add_edges = writes("add_edges", submit_operations.add_edges)
    remove_edges = tells("remove_edges", submit_operations.remove_edges)
    pause_queue = tells("pause_queue", task_admin.pause_queue)

    # ---- tasks: workers ----

    register_worker = writes("register_worker", worker_operations.register)
    stop_worker = writes("stop_worker", worker_operations.stop)
    set_trouble = writes("set_trouble", worker_operations.set_trouble)
    claim = writes("claim", leases.claim)
    claim_by_id = writes("claim_by_id", leases.claim_by_id)
    heartbeat = writes("heartbeat", leases.heartbeat)
    heartbeats = writes("heartbeat", leases.heartbeats)
    cancelling = reads(leases.cancelling)
    orphans = reads(queries.orphans)
    adopt = writes("adopt", leases.adopt)

    async def report(self, reports: Sequence[Report]) -> list[Reported]:
        refused = {
            position: Reported(task_id=one.holder.task_id, refused=why)
            for position, one in enumerate(reports)
            if one.messages and (why := message_refusal(one, self._limits))
        }
        good = (
            [one for k, one in enumerate(reports) if k not in refused] if refused else reports
        )
        answers = await self._write("report", leases.report, good, self._chance)
        if not refused:
            return answers
        rest = iter(answers)
        return [refused.get(k) or next(rest) for k in range(len(reports))]

    async def hear_job(self, words: JobWords) -> None:
        """Stores what a job said by itself, not through its worker.

        Raises LeaseLost if the attempt has no lease. Of several requests with the same key, for
        which an answer is kept, only the first counts.
        """
        said = JobMessage(number=1, text=words.text)
        if why := message_refusal(Report(holder=words.holder, messages=(said,)), self._limits):
            raise why
        await self._write("hear_job", leases.hear_job, words)

    # ---- tasks: monitors ----

    take_back_lapsed_leases = tells(
        "take_back_lapsed_leases", worker_operations.take_back_lapsed_leases
    )
    expired_tasks = reads(worker_operations.expired_tasks)
    delete_tasks = writes("delete_tasks", worker_operations.delete_tasks)
    delete_workers = writes("delete_workers", worker_operations.delete_workers)

    # ---- tasks: looking ----

    get = looks_up(queries.get)
    get_many = reads(queries.get_many)
    find_each = looks_up(queries.find_each)
    list_tasks = reads(queries.list_tasks)
    peek = reads(queries.peek)
    history = reads(queries.history)
    attempts = reads(queries.attempts)
    outputs = reads(queries.outputs)
    values_of = reads(queries.values_of)
    inputs = reads(queries.inputs)
    usage = reads(queries.usage)
    edges = reads(queries.edges)
    ended_attempts = reads(statistics.ended_attempts)
    queues = reads(queries.queues)
    ready_queues = reads(queries.ready_queues)
    workers = reads(queries.workers)
    now = reads(queries.now)
    store_id = reads(queries.store_id)

    async def verify(self) -> list[Violation]:
        found = await self.look(queries.verify)
        return found + await self.look(_loaded(access.audit_violations))

    # ---- definitions and runs ----

    save_definition = writes("save_definition", run_operations.save_definition)
    definition = reads(run_operations.definition)
    create_run = writes("create_run", run_operations.create_run)
    run = reads(run_operations.get_run)
    runs = reads(run_operations.list_runs)
    find_run = reads(run_operations.find_run)
    status_since = reads(run_operations.status_since)
    delete_run_part = writes("delete_run", run_operations.delete_part)
    expired_runs = reads(run_operations.expired_runs)
    delete_definitions = writes("delete_definitions", run_operations.delete_definitions)

    async def delete_run(self, number: int) -> None:
        """Deletes a run with all that is its own; raises RunHeld while a scheduler holds it."""
        while not await self.delete_run_part(number):
            pass

    # ---- runs: schedulers ----

    claim_run = writes("claim_run", run_operations.claim_run)
    claimable_runs = reads(run_operations.claimable_runs)
    nested_count = reads(run_operations.nested_count)
    undelivered_runs = reads(run_operations.undelivered_runs)
    offer_run = writes("offer_run", run_operations.offer_run)
    renew_run = writes("scheduler_lease_renew", run_operations.renew_run)
    read_run = reads(run_batch.read_run)
    read_inbox = looks_up(run_batch.read_inbox)
    withdrawn = reads(run_batch.withdrawn)
    undelivered = reads(run_batch.undelivered)
    histories = reads(run_batch.histories)
    run_values = glances(run_batch.run_values)
    last_values = reads(run_batch.last_values)
    delivered = writes("delivered", run_batch.delivered)
    submit_code = tells("submit_code", run_batch.submit_code)
    take_code = writes("take_code", run_batch.take_code)

    async def write_batch(self, lease: RunLease, batch: RunBatch) -> None:
        """Writes a batch; raises RunLost if the epoch is not the current one, Overtaken if it
        was decided upon reports that cannot be accepted. A batch that was written already is
        left alone; the lease is renewed, or given back if the batch says so."""
        # Loaded once: an import in each call takes longer than the call.
        write, changed_rows = _write_batch.load(), _changed_rows.load()
        rows = changed_rows(batch.changes)  # here, where the writer need not wait for it
        await self._write("write_batch", write, lease, batch, rows, self._failpoint)

    def past(self, number: int) -> Past:
        """Returns a reader of what is known of tasks that the pool has forgotten."""
        from tidewheel.store.operations.run_batch import StoredPast  # noqa: PLC0415

        return StoredPast(self.look_now, number)

    # ---- runs: operators, looking ----

    post_command = tells("post_command", run_operations.post_command)
    narrow_run = writes("narrow_run", run_operations.narrow_run)
    command = reads(run_batch.command)
    commands = reads(run_batch.commands)
    run_versions = reads(run_batch.run_versions)
    submissions = reads(run_batch.submissions)
    run_attempts = reads(run_batch.run_attempts)
    run_changes = reads(run_batch.run_changes)
    forgotten = reads(run_batch.forgotten)
    grid_runs = reads(run_grid.grid_runs)
    grid_facts = reads(run_grid.grid_facts)
    grid_tasks = reads(run_grid.grid_tasks)
    grid_due = reads(run_grid.grid_due)

    # ---- blocks and objects ----

    create_sbi = writes("create_sbi", block_operations.create_sbi)
    sbi = reads(block_operations.get_sbi)
    sbis = reads(block_operations.list_sbis)
    block = reads(block_operations.get_block)
    blocks = reads(block_operations.list_blocks)
    needs_of = reads(block_operations.needs_of)
    statuses_of = reads(block_operations.statuses_of)
    stop_run = tells("stop_run", block_operations.stop_run)
    post_objects = tells("post_objects", block_operations.post_objects)
    objects = reads(block_operations.list_objects)
    objects_there = reads(block_operations.objects_there)
    remove_object = writes("remove_object", block_operations.remove_object)

    # ---- registry ----

    register = writes("register", registry.register)
    workflow = reads(registry.get_workflow)
    workflows = reads(registry.list_workflows)
    remove_workflow = writes("remove_workflow", registry.remove_workflow)

    # ---- who may use it, and what happened ----

    create_token = writes("create_token", access.create_token)
    token = looks_up(access.token)
    tokens = reads(access.tokens)
    sessions = reads(access.sessions)
    end_session = writes("end_session", access.end_session)
    revoke_token = writes("revoke_token", access.revoke_token)
    spend_token = writes("spend_token", access.spend_token)
    touch_token = writes("touch_token", access.touch_token)
    assign_worker = writes("assign_worker", access.assign_worker)
    worker_token = looks_up(access.worker_token)
    add_audit = writes("add_audit", access.add_audit)
    audit = reads(access.audit)
    hold_attempt_key = writes("hold_attempt_key", access.hold_attempt_key)
    leave_attempt_key = writes("leave_attempt_key", access.leave_attempt_key)
    kept_answer = looks_up(access.kept_answer)
    keep_answer = writes("keep_answer", access.keep_answer)
    events_after = reads(event_stream.events_after)
    events_head = reads(event_stream.events_head)

    async def figures(self) -> list[Figure]:
        """Returns the size of each run's pool, and the figures of the database itself."""
        return await self.look(queries.figures)

    # ---- records under a lease ----

    claim_notebook = writes("claim_notebook", leased_records.claim)
    write_notebook = writes("write_notebook", leased_records.write)
    leave_notebook = writes("leave_notebook", leased_records.leave)
    notebook = reads(leased_records.get)

    # ---- being told ----

    def listen(self, listener: Callable[[Wake], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def tell_listeners(self, wake: Wake) -> None:
        """Calls all listeners in this process; may be called from any thread."""
        for listener in tuple(self._listeners):
            listener(wake)

    def post_claim(self, claim: StandingClaim) -> bool:
        """Keeps a claim for the next write that makes tasks of its queue ready. Returns False
        if no write of this process can: the store is another's."""
        self._standing.post(claim)
        return True

    def attend(self, run: str, take: TakeReports) -> Callable[[], None]:
        """Has the scheduler of a run offered reports; returns a function that ends that."""
        return self._attendance.attend(run, take)

    def offer_reports(self, reports: Sequence[Report]) -> Awaitable[bool] | None:
        """Offers reports to the scheduler of their run (``Attendance``); None: to nobody."""
        return self._attendance.offer(reports)

    async def _write(
        self,
        name: str,
        operation: Callable[Concatenate[Transaction, Effects, P], R],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        # Fresh effects for each run of the script: one that is undone must wake nobody.
        effects = Effects()
        # A claim that is left later is woken for what is written, as all others are.
        takes_claims, claims = bool(self._standing), CarriedOut(self._standing)

        def attempt(tx: Transaction) -> R:
            nonlocal effects
            effects = Effects()
            answer = operation(tx, effects, *args, **kwargs)
            if takes_claims and (effects.queues or effects.ended or claims):
                claims.carry_out(tx, effects)
            if effects.at_last is not None:
                effects.at_last()
            self._failpoint(f"{name}_before_commit")
            return answer

        def news() -> Wake | None:
            return effects.wake()  # of the run of the script that counts

        def conclude(is_written: bool) -> None:
            if not is_written:
                claims.fail()
                return
            self._failpoint(f"{name}_after_commit")
            claims.settle()
            if wake := effects.wake():
                self.tell_listeners(wake)

        return await self.carry_through(attempt, news, conclude, has_claims=takes_claims)

    async def carry_through(
        self, script: Script[Result], news: News, conclude: Conclude, *, has_claims: bool
    ) -> Result:
        """Runs a script as ``transact`` does, and concludes it in this loop when it is over.

        A write that may carry out claims is concluded even if its caller goes away meanwhile.
        """
        if self.waits and has_claims:
            return await _written(self.transact(script, news), conclude)
        try:
            result = await self.transact(script, news)
        except BaseException:
            conclude(False)
            raise
        conclude(True)
        return result


async def _written(writing: Coroutine[Any, Any, R], conclude: Conclude) -> R:
    """Returns the answer of a write, which goes on if its caller goes away: it is concluded
    when it is over."""
    task = asyncio.ensure_future(writing)

    def is_over(_: object = None) -> None:
        conclude(not task.cancelled() and task.exception() is None)

    try:
        await asyncio.wait((task,))
    except asyncio.CancelledError:
        task.add_done_callback(is_over)
        raise
    is_over()
    return task.result()
