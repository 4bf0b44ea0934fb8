"""Drives one run: reads what happened, has it decided on, writes one batch, tells people.

Theory of operation
-------------------
This is the loop of DESIGN §5. A pass takes everything that has happened to the run (reports of
workers, commands, xtriggers, timers that are due), steps the core through it, and writes all
that follows in one transaction. Under load a pass takes much at once, so one commit serves
many tasks; when idle it runs as soon as something happens. Decisions are made outside of the
transaction: it is valid only if the epoch and the number of the last batch are still ours, so
nobody else can have decided anything meanwhile.

A step that raises is a bug. The run is read again from the store, where nothing of the failed
pass was written, and tried again; the third time in a row it is put aside with the cause
(status "error") and no other run is harmed.
"""

from __future__ import annotations

import asyncio
import math
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

from tidewheel.core.graph.outputs import EXPIRED
from tidewheel.core.operator import requests
from tidewheel.core.operator.definition import (
    SIP,
    RunOptions,
    StoredDefinition,
    read_job_name,
)
from tidewheel.core.operator.run_log import RunLogLine
from tidewheel.core.operator.selection import named_tasks
from tidewheel.core.operator.verbs import ends_jobs, read_command
from tidewheel.core.operator.views import RunView, Undone, sees_object, with_undone
from tidewheel.core.queue.requests import Report, Wake
from tidewheel.core.queue.status import Status
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched import dependents
from tidewheel.core.sched.events import (
    JobEnd,
    JobEnded,
    RunStopped,
    StopMode,
    TimerFired,
    XtriggerSatisfied,
)
from tidewheel.core.sched.missed import count_missed
from tidewheel.core.sched.pool import PastNeeded, RunStatus, TaskPool
from tidewheel.core.sched.services import end_of_service
from tidewheel.core.sched.task_state import AtomValue, Key, TaskHistory, VerdictKind
from tidewheel.errors import Refused, RunLost, Unavailable
from tidewheel.lazy_dataclasses import pattern
from tidewheel.ports.store import Store
from tidewheel.scheduler.deferred_submissions import RENDERING
from tidewheel.scheduler.inbox import (
    UNSTORED,
    answer_command,
    hear_values,
    job_failed,
    job_said,
    job_started,
    tell_failure,
    tell_sizes,
    told_by,
)
from tidewheel.scheduler.nested_runs import NESTED, ended_report
from tidewheel.scheduler.pending_batch import HistoryCache, OfferedReports, PendingBatch
from tidewheel.scheduler.run_engine import OVER, RunEngine
from tidewheel.scheduler.simulated_jobs import PLAYED
from tidewheel.services.service import Service, ServiceReport, Surroundings

INBOX_MAX = 2_000
STEPS_PER_BATCH_MAX = 1_000
FAILURES_MAX = 3  # in a row, before a run is put aside
# Without a failure for so long, the next one is the first. What fails beside the passes, such
# as an xtrigger, lets one pass succeed in between.
CALM_SECONDS = 60.0
RENEWALS_PER_LEASE = 3
NEARLY_SECONDS = 0.001  # too short to rest for
ERROR = "error"

T = TypeVar("T")
OpenEngine = Callable[[], Awaitable[RunEngine]]
OnBatch = Callable[[RunEngine, PendingBatch], None]


class RunDriver(Service):
    """Advances one run until it is over, or taken over by another scheduler."""

    def __init__(
        self,
        store: Store,
        run: RunView,
        lease: requests.RunLease,
        open_engine: OpenEngine,
        surroundings: Surroundings,
        on_batch: OnBatch | None = None,
    ) -> None:
        super().__init__(f"scheduler of {run.name}", surroundings)
        self.run_name = run.name
        self._number = run.number
        self._lease = lease  # as it was claimed
        self._store = store
        self._open_engine = open_engine
        self._on_batch = on_batch
        self._engine: RunEngine | None = None
        self._failures = 0
        self._failed_at = 0.0
        self._read_at = 0.0  # by the local clock
        self._now = Instant(0.0)  # what the database's clock showed then
        self._written_at = 0.0
        self._trouble = ""  # with the run's logs
        self._is_cut = False  # a batch was full, and more is waiting
        self._is_half_done = False  # decisions were made that are not written
        self._is_at_rest = False  # the last pass went well, and the next has not begun
        self._offer: OfferedReports | None = None
        self.past = HistoryCache()
        self._status_written = run.status
        self.pace_seconds = 0.0  # at least between two passes
        self._passed_at = -math.inf
        self.status = ""  # how it ended
        self.reason = ""

    # ---- the shape of a service ----

    async def run(self) -> None:
        deafen = self._store.listen(self._hear_wake)
        leave = self._store.attend(self.run_name, self.take_reports)
        try:
            await super().run()
        finally:
            leave()
            deafen()
            self._settle_offer(are_written=False)
            await self.close()
        if not self.status:  # not after a cancellation, which stands for a crash
            # The next scheduler need not wait for the end of the lease.
            with suppress(Refused, Unavailable):
                await self._store.renew_run(replace(self._lease, lease_seconds=0.0))

    @property
    def is_open(self) -> bool:
        """Says whether commands are heard: the run was read, and its folder can be written."""
        return self._engine is not None

    async def close(self) -> None:
        """Closes the run's engine; in the store nothing changes."""
        if self._engine is not None:
            await self._engine.close(is_hurried=not self.status)
            self._engine = None

    def _hear_wake(self, wake: Wake) -> None:
        if wake.everything or self._number in wake.runs:
            self.wake()

    def rest_seconds(self) -> float | None:
        engine = self._engine
        if engine is None or self._is_cut:
            return 0.0
        renewal = engine.lease.lease_seconds / RENEWALS_PER_LEASE
        rest = renewal - (self._clock.monotonic() - self._written_at)
        next_at = engine.timers.next_at()
        if next_at is not None:
            estimated_now = self._now + (self._clock.monotonic() - self._read_at)
            rest = min(rest, next_at - estimated_now)
        return max(0.0, rest)

    async def run_once(self) -> Sequence[ServiceReport]:
        """Makes a pass; if a step needs more of the past, fetches that and makes it again.

        That ends: each time at least one task more of a finite past is known.
        """
        missed: list[Key] = []
        self._is_at_rest = False
        while True:
            try:
                if missed:
                    await self._fetch_missed(missed)
                await self._pass()
                self._is_at_rest = True
            except requests.Overtaken:
                await self._drop_what_was_half_done()
                continue
            except PastNeeded as needed:
                missed.append(needed.key)
                continue
            except Unavailable:
                await self._drop_what_was_half_done()
                raise
            except RunLost as lost:
                self.status, self.reason = "lost", str(lost)
                self.ask_stop()
                return [self.report("run.lost", run=self.run_name, reason=str(lost))]
            except Exception as error:
                return await self._fail(error)
            finally:
                self._settle_offer(are_written=False)  # unless they are by now
            return ()

    # ---- one pass ----

    async def _pass(self) -> None:
        if self._engine is None:
            self._engine = await self._keeping(self._lease, self._open_engine())
            self._surroundings.failpoint("run_opened")
        engine = self._engine
        early = self._passed_at + self.pace_seconds - self._clock.monotonic()
        if self.pace_seconds and early > 0.0:
            await self._clock.sleep(early)
        self._passed_at = self._clock.monotonic()
        inbox = await self._store.read_inbox(self._number, INBOX_MAX)
        now = inbox.now
        reports: Sequence[Report] = ()
        if self._offer is not None and len(inbox.happenings) < INBOX_MAX:
            # Behind all that was said before, by the same jobs, too.
            reports = self._offer.reports
            inbox.happenings.extend(map(partial(told_by, now), reports))
        self._now, self._read_at = now, self._clock.monotonic()
        if engine.pool.run.horizon is not None:
            await self._fetch_past(engine, inbox.happenings)
        self._is_half_done = True  # what follows is written, or dropped with the engine
        engine.batch.job_reports = reports
        is_all = await apply_inbox(engine, inbox, self._store)
        self._is_cut = len(inbox.happenings) == INBOX_MAX or not is_all
        if engine.due:
            submitting = engine.deferred.submit(engine, now)
            # Values of earlier tasks are here, or read by their keys: nothing takes long.
            await (self._keeping(engine.lease, submitting) if engine.is_slow else submitting)
        if self._status_written == RunStatus.STOPPING:
            await stop_if_nothing_has_begun(engine, now, self._store)
        engine.run_timers.after_steps(engine, now)
        await self._write(engine, now)
        if self._clock.monotonic() - self._failed_at >= CALM_SECONDS:
            self._failures = 0

    # ---- ends that a worker of this process offers ----

    def take_reports(self, reports: Sequence[Report]) -> Awaitable[bool] | None:
        """Takes starts and successes of jobs into the next batch, if nothing else is under way
        that they would have to wait for (docs/decisions/0049)."""
        engine = self._engine
        if engine is None or not self._is_at_rest or self._stop_asked or self.pace_seconds:
            return None
        ids = {one.holder.task_id for one in reports}
        is_plain = len(ids) == len(reports) and ids <= engine.jobs.keys()
        if not (is_plain and all(one.is_mere_step for one in reports)) or engine.is_slow:
            return None
        self._is_at_rest = False
        self._offer = OfferedReports(reports, asyncio.get_running_loop().create_future())
        self.wake()
        return self._offer.answer

    def _settle_offer(self, *, are_written: bool) -> None:
        offer, self._offer = self._offer, None
        if offer is not None and not offer.answer.done():  # else its worker has gone away
            offer.answer.set_result(are_written)

    # ---- the past ----

    async def _fetch_past(
        self, engine: RunEngine, happenings: Sequence[requests.Happening]
    ) -> None:
        """Fetches what the steps of this pass may need of tasks that the pool has evicted. Only
        steps behind the horizon, where operators have sent tasks, need it."""
        pool = engine.pool
        keys, last = dependents.near_the_horizon(pool), dependents.last_near_the_horizon(pool)
        assert last is not None
        for one in happenings:
            if isinstance(one, requests.CommandGiven):
                with suppress(Refused):
                    named = named_tasks(pool, read_command(one.body))
                    keys += [key for key in named if key[0] <= last]
        if keys:
            await self.past.fetch(
                self._store, self._number, dependents.neighbourhood(pool, keys)
            )

    async def _fetch_missed(self, missed: Sequence[Key]) -> None:
        """Fetches the history that the last pass lacked, and each time more around it."""
        wanted = {missed[-1]}
        if self._engine is not None:
            wanted |= dependents.neighbourhood(self._engine.pool, wanted, len(missed))
        await self._drop_what_was_half_done()
        await self.past.fetch(self._store, self._number, wanted)

    # ---- writing ----

    async def _write(self, engine: RunEngine, now: Instant) -> None:
        """Writes what was decided as one batch, until the store takes it; tells people then.

        Nothing else happens to the run meanwhile. Where nothing was decided, only the lease is
        renewed, if that is due.
        """
        pending = engine.batch
        heard = pending.consumed or pending.job_reports or pending.answers
        happened = pending.steps or heard or pending.broadcasts
        is_over = engine.gave_up or engine.pool.run.status in OVER
        if not (happened or pending.submissions or is_over):
            await self._renew_if_due(engine)
            return
        batch = engine.close_batch(now)
        if batch.status == RunStatus.COMPLETED:
            reason = await self._reason_with_undone(engine, batch.reason)
            batch = replace(batch, reason=reason)
        if engine.run.parent is not None:
            was = self._status_written
            batch.report = await engine.nested.report(engine, batch, was)
        self._surroundings.failpoint("batch_before_write")

        async def write() -> bool:
            await self._store.write_batch(engine.lease, batch)
            return True

        if not await self.persist(write):
            return
        if batch.job_reports:
            self._surroundings.failpoint("report_after_commit")
            self._settle_offer(are_written=True)
        self._surroundings.failpoint("batch_written")
        self._written_at = self._clock.monotonic()
        self._status_written = batch.status
        self._is_half_done = False
        pending.seconds = self._written_at - self._read_at
        engine.written(now)
        trouble = engine.files.trouble
        if trouble != self._trouble:  # told once that a log cannot be written, or can again
            self._trouble = trouble
            self.tell("log.unwritten" if trouble else "log.written", error=trouble)
        self._surroundings.failpoint("batch_told")
        if self._on_batch is not None:
            self._on_batch(engine, pending)
        if batch.ends:
            self.status, self.reason = batch.status, batch.reason
            self.ask_stop()

    async def _renew_if_due(self, engine: RunEngine) -> None:
        """Renews the lease of a run to which nothing has happened, if it is time."""
        self._is_half_done = False
        due = engine.lease.lease_seconds / RENEWALS_PER_LEASE - NEARLY_SECONDS
        if self._clock.monotonic() - self._written_at >= due:
            await self._store.renew_run(engine.lease)
            self._written_at = self._clock.monotonic()

    async def _reason_with_undone(self, engine: RunEngine, reason: str) -> str:
        """Returns why a run is completed, with how many of its tasks were lost or skipped."""
        rows = await self._store.forgotten(self._number, only_undone=True)
        forgotten = {row.key: row.memory() for row in rows}
        forgotten |= engine.batch.touched.forgotten
        inside = await engine.nested.undone(engine)
        return with_undone(reason, _undone(engine.pool, forgotten) + inside)

    async def _keeping(self, lease: requests.RunLease, doing: Awaitable[T]) -> T:
        """Returns what something answers that may take longer than the lease lasts, and renews
        the lease meanwhile: another scheduler would need as long to read the run or to render
        its templates."""
        making = asyncio.ensure_future(doing)
        try:
            while not making.done():
                due = asyncio.ensure_future(
                    self._clock.sleep(lease.lease_seconds / RENEWALS_PER_LEASE)
                )
                try:
                    await asyncio.wait({making, due}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    due.cancel()
                if not making.done():
                    await self._store.renew_run(lease)
            return await making
        finally:
            making.cancel()

    # ---- trouble ----

    async def _drop_what_was_half_done(self) -> None:
        """Drops the engine if a pass ended in the middle, so that the run is read again.
        Otherwise what had been decided so far would be decided again on top of itself."""
        if self._is_half_done and self._engine is not None:
            engine, self._engine = self._engine, None
            self._is_half_done = False
            self.past.evicted.clear()
            await engine.close()

    async def _fail(self, error: Exception) -> list[ServiceReport]:
        self._failures += 1
        self._failed_at = self._clock.monotonic()
        cause = "".join(traceback.format_exception(error))
        engine, self._engine = self._engine, None
        self.past.written()
        try:
            if self._failures >= FAILURES_MAX:
                await self._put_aside(engine, error, cause)
        finally:
            if engine is not None:
                await engine.close()
        facts = {"summary": _in_words(error), "error": cause}
        return [self.report("step.failed", run=self.run_name, **facts)]

    async def _put_aside(self, engine: RunEngine | None, error: Exception, cause: str) -> None:
        """Ends the run with the status "error", and writes the cause where people will look.

        So it does not fail for ever. Nothing of the run itself is needed for that: it may be
        what cannot be read.
        """
        reason = (
            f"not tried again after {FAILURES_MAX} failures of the scheduler: "
            f"{_in_words(error)}"
        )
        run = await self._store.run(self._number)
        if run.epoch == self._lease.epoch and run.owner is not None:
            batch = requests.RunBatch(
                number=run.batch + 1, at=self._now, status=ERROR, reason=reason, ends=True
            )
            if run.parent is not None:
                batch.report = ended_report(run, ERROR, reason)
            await self.persist(lambda: self._store.write_batch(self._lease, batch))
        if engine is not None:
            engine.files.write_log(
                [RunLogLine("CRITICAL", cause), RunLogLine("CRITICAL", reason)], self._now
            )
        self.status, self.reason = ERROR, reason
        self.ask_stop()


def _undone(pool: TaskPool, forgotten: Mapping[Key, TaskHistory]) -> Undone:
    """Counts the lost and the skipped tasks of a run, with those that the pool forgot."""
    known = dict(forgotten)
    for point, there in pool.memory.items():
        known |= {(point, name): memory for name, memory in there.items()}
    nodes = pool.plan.nodes
    known = {key: one for key, one in known.items() if key[1] in nodes}
    last = [one.verdicts[max(one.verdicts)] for one in known.values() if one.verdicts]
    lost = sum((one.kind, one.death) == (VerdictKind.PRUNED, AtomValue.LOST) for one in last)
    skipped = count_missed(pool, known)
    skipped += sum(one.kind is VerdictKind.REMOVED for one in last)
    skipped += sum(one.kind is VerdictKind.FINISHED and one.ended == EXPIRED for one in last)
    # Without a verdict: taken out by `remove --forget`, or with its only flow.
    left = (key for key, one in known.items() if one.spawned and not one.verdicts)
    skipped += sum(nodes[name].is_at(point) for point, name in left)
    return Undone(lost=lost, skipped=skipped)


def _in_words(error: Exception) -> str:
    """Returns an error in words: a refusal as it is, anything else as a bug in tidewheel."""
    return str(error) if isinstance(error, Refused) else f"a bug in tidewheel, {error!r}"


CYLC_PACE_SECONDS = 0.5

_CALL = pattern(rb"\b(cylc|tidewheel)[ _]")  # cylc__job__… waits for the log of the run


def at_once(_options: RunOptions, _definition: StoredDefinition) -> float:
    """Returns 0, the pace of a run that makes a pass whenever something happens."""
    return 0.0


def as_compatible(options: RunOptions, definition: StoredDefinition) -> float:
    """Returns the least time between two passes of a run: none, or half a second.

    Cylc looks at its tasks once a second, and existing workflows rely on it without saying so:
    a job that calls `cylc trigger` expects that what it triggers has not been overtaken by the
    rest of its own flow while the command was starting. Under `--compat cylc8` a run decides
    twice a second, which is slow enough for such a command to arrive, and still quicker than
    Cylc. Where nothing in a definition calls such a command, nobody can be overtaken.
    """
    texts = (definition.text.encode(), *(file.content for file in definition.files))
    return CYLC_PACE_SECONDS if options.compat and any(map(_CALL.search, texts)) else 0.0


# What has happened to a run is applied to its engine in this order: commands, reports, what
# somebody outside has posted or found, timers that are due. Commands come first: the operator
# who gave one saw the run without what was reported since.


async def apply_inbox(engine: RunEngine, inbox: requests.Inbox, store: Store) -> bool:
    """Applies all that happened, beginning the run if need be.

    Returns False if some timers have to wait for the next batch.
    """
    begins = not engine.begun
    happened = inbox.happenings  # it is consumed with the batch of this pass
    commands = [one for one in happened if isinstance(one, requests.CommandGiven)]
    if begins:
        engine.begin(inbox.now, only_ends=_only_ends_jobs(engine, commands))
    reports = [one for one in happened if not isinstance(one, requests.CommandGiven)]
    engine.batch.consumed += [one.seq for one in happened if one.seq != UNSTORED]
    for one in (*commands, *reports):
        match one:
            case requests.JobStarted():
                job_started(engine, one)
            case requests.JobSaid():
                job_said(engine, one)
            case requests.JobOver():
                _job_over(engine, one)
            case requests.CommandGiven():
                engine.batch.answers.append(await answer_command(engine, one, store))
        if engine.todo:
            engine.drain()
    if begins:
        engine.drop_passing_notices()
    if engine.xtriggers.is_used or engine.definition.kind == SIP:
        await _apply_xtriggers(engine, inbox.now, store)
    next_at = engine.timers.next_at()
    return next_at is None or next_at > inbox.now or _fire_timers(engine, inbox.now)


def _only_ends_jobs(engine: RunEngine, given: Sequence[requests.CommandGiven]) -> bool:
    """Says whether a run that was stopped is only taken up to end jobs that run on."""
    if engine.run.status != RunStatus.STOPPED:
        return False
    since = [one for one in given if one.at > (engine.run.ended_at or 0.0)]
    try:
        return bool(since) and all(ends_jobs(read_command(one.body)) for one in since)
    except Refused:  # it is answered with that
        return False


def _job_over(engine: RunEngine, one: requests.JobOver) -> None:
    """Tells the core that a job has ended; jobs that the run does not wait for are ignored."""
    job = engine.jobs.pop(one.task_id, None)
    if job is None:
        if read_job_name(one.task_id).is_code:
            engine.delivery.tell_failed_task(one)
        return
    engine.nested.over(engine, job[0])
    is_success = one.status == Status.SUCCEEDED
    if is_success and one.text is not None:
        hear_values(engine, job, one.text)
    task = engine.pool.tasks.get(job[0])
    if is_success and task is not None and task.plan.lists:
        is_success = tell_sizes(engine, job, one)
    if is_success:
        if one.error:  # of a run that is a task: why its values were not passed on
            line = f"[{engine.pool.plan.name_of(job[0])}/{job[1]:02d}] {one.error}"
            engine.batch.log.append(RunLogLine("WARNING", line))
        ended = JobEnded(*job, JobEnd.SUCCEEDED, one.at)
        if task is not None and (why := end_of_service(task, ended).why):
            tell_failure(engine, *job, f"{engine.pool.plan.name_of(job[0])} {why}")
        engine.step(ended)
    elif one.status != Status.SUCCEEDED:
        job_failed(engine, job, one)


async def _apply_xtriggers(engine: RunEngine, now: Instant, store: Store) -> None:
    """Applies what was found for tasks that wait for something besides their parents."""
    xtriggers = engine.xtriggers
    # The buffer objects that stages wait for: in SIP nothing else comes from outside. Posting
    # one wakes this run.
    names = xtriggers.awaited_messages() if engine.definition.kind == SIP else ()
    if names:
        run = await store.run(engine.run.number)
        for there in await store.objects_there([one for one in names if sees_object(run, one)]):
            xtriggers.hear(there.name, there.name)
    for one in xtriggers.take_satisfied():
        # Broadcast first, so that a task that this step submits finds the results.
        engine.broadcast(xtriggers.broadcasts(one))
        engine.step(XtriggerSatisfied(one.label, one.keys, now))
        engine.drain()
    engine.batch.xtriggers += xtriggers.take_rows()


def _fire_timers(engine: RunEngine, now: Instant) -> bool:
    """Fires the timers that are due; returns False if the batch is full and more are due."""
    for key in engine.timers.due(now):
        point, name, timer = key
        if point is None:
            engine.run_timers.fire(engine, key, now)
        elif timer == PLAYED:
            engine.simulated.end(engine, key, now)
        elif timer == NESTED:
            engine.nested.time_is_over(engine, key)
        elif timer == RENDERING:
            engine.deferred.take_up(engine, key, now)
        elif not engine.task_timers.fire(engine, key):
            engine.step(TimerFired((point, name), timer, now))
        engine.drain()
        if engine.batch.steps >= STEPS_PER_BATCH_MAX:
            return False
    return True


async def stop_if_nothing_has_begun(engine: RunEngine, now: Instant, store: Store) -> None:
    """Stops at once if no job has begun for which a clean stop would wait.

    What no worker had taken was withdrawn with the batch that told the run to stop (SEMANTICS
    §9). Once it is withdrawn, nobody but this scheduler can offer it again: no lock is needed.
    """
    pool = engine.pool
    if pool.run.stopping != StopMode.CLEAN:
        return
    active = [task for task in pool.tasks.values() if task.is_active]
    withdrawn = await store.withdrawn(engine.run.number)
    if all(engine.task_id(task.key, task.submit) in withdrawn for task in active):
        engine.step(RunStopped(StopMode.NOW, now))
