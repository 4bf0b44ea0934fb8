"""Executes the jobs of a worker, until they end by themselves or because they were stopped.

An end goes to the reporter by way of the queue of job events; where the lease is not this
worker's any more, the store is not told, and the attempt is let go at once.

A full disk is the worker's trouble, not the task's. The task goes back without a failure; the
worker takes no other until a back-off has passed, and then one, to see whether it can. A worker
whose launcher is lost ends, as if it had been killed: the next one adopts its jobs.

Claimed ahead
-------------
A worker beside the scheduler of a run spends as much on the bookkeeping of a short job (report,
step, claim, commit) as on the job, and a slot waits for that commit before its next job starts.
While jobs are short, such a worker leases some tasks more than it has slots. A slot that is
free begins the next of them at once, and the reporter holds ends back until there are several,
as long as others wait to be begun: one report, step, claim and commit then serve them all.

Nobody is harmed by that for long: what was not begun within ``WAIT_SECONDS_MAX`` is given back,
so that others may take it, and nothing is claimed ahead until jobs are seen to be short again.
A task that waits here has a lease as any other, which is renewed, lost, cancelled and adopted
like that of a running job; it has no process and no folder.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from functools import partial

from tidewheel.core.queue.requests import Claimed, End, Ending
from tidewheel.core.queue.values import may_have_files
from tidewheel.errors import LauncherLost, RunnerUnable, Unavailable
from tidewheel.ports.clock import Clock
from tidewheel.ports.runners import Job, PreparedJob, PromptRunner, Runner
from tidewheel.services.service import Backoff, ServiceReport, Surroundings, TaskGroup, Wakeup
from tidewheel.worker.attempts import (
    Attempt,
    AttemptKey,
    AttemptTable,
    StopReason,
    end_to_report,
    failure,
    is_poll,
)
from tidewheel.worker.log_upload import LogUpload

CLAIMS = "claims"  # the service that rests while the host is in trouble
PATIENCE = Backoff(first_seconds=2.0, seconds_max=60.0)


class HostHealth:
    """Remembers what keeps a worker from starting jobs, and when it tries again.

    Jobs and runners tell it of trouble, the claimer asks it; all in the worker's loop.
    """

    def __init__(self, surroundings: Surroundings) -> None:
        self._clock = surroundings.clock
        self._chance = surroundings.chance
        self._on_report = surroundings.on_report
        self.claims_wakeup = Wakeup(surroundings.clock)  # rung when a claim may be tried
        self._failures = 0
        self._retry_at = -math.inf  # a local clock may begin anywhere
        self.text: str | None = None  # None: all is well
        self.text_told: str | None = None  # what the store knows

    def hear(self, text: str | None) -> None:
        """Notes that a job could not be started on this host, or could again (None)."""
        is_news = (text is None) != (self.text is None)
        self.text = text
        if text is None:
            self._failures, self._retry_at = 0, -math.inf
        elif is_news:
            self.try_later()
        if not is_news:
            return
        event, facts = (
            ("worker.able", {})
            if text is None
            else ("worker.unable", {"error": text, "delay_seconds": self.rest_seconds})
        )
        self._on_report(ServiceReport(service=CLAIMS, event=event, facts=facts))
        self.claims_wakeup.ring()

    def try_later(self) -> None:
        """Puts off the next try as if the last one had failed, since its outcome is unknown."""
        self._failures += 1
        delay = PATIENCE.delay_seconds(self._failures, self._chance)
        self._retry_at = self._clock.monotonic() + delay

    @property
    def rest_seconds(self) -> float:
        """Returns the time until the next try."""
        return max(0.0, self._retry_at - self._clock.monotonic())


AHEAD_PER_SLOT = 2
SHORT_SECONDS = 0.05  # of a job: so what is claimed ahead waits for some twice as long
SHORT_ENDS_PER_SLOT = 2  # in a row, before anything is claimed ahead
WAIT_SECONDS_MAX = 0.25


def may_wait(task: Claimed) -> bool:
    """Says whether a killed worker's successor would give a task back that has not begun, so
    that it costs no lapse."""
    return task.command is not None and not task.fence_kill


class ClaimedAhead:
    """Holds attempts that wait for a slot of their worker, in the order of their claims; it is
    used from the worker's event loop alone."""

    def __init__(self, slots: int, clock: Clock, give_back: Callable[[], None]) -> None:
        self.slots = slots  # how many jobs run at once
        self.count = 0  # how many tasks may be leased beyond the slots
        self.leases_max = slots
        self.is_worth_it = False  # the last jobs were short
        self._short_ends = 0
        self._short_since = 0.0  # by the local clock: the first of them began
        self._clock = clock
        self._give_back = give_back
        self.waiting: dict[Attempt, float] = {}  # since when, by the local clock
        self._is_watched = False

    def hear_end(self, attempt: Attempt) -> None:
        """Notes whether a job was short. Only those count that would be adopted, or given back,
        if this worker died: a lease that runs out costs its task a lapse."""
        task = attempt.task
        now = self._clock.monotonic()
        is_short = may_wait(task) and now - attempt.begun_at < SHORT_SECONDS
        if is_short and not self._short_ends:
            self._short_since = attempt.begun_at
        self._short_ends = self._short_ends + 1 if is_short else 0
        self.is_worth_it = self._short_ends >= SHORT_ENDS_PER_SLOT * self.slots

    def begin(self) -> int:
        """Allows tasks to be claimed ahead; returns how many."""
        # As many as begin in half of the time for which they may wait: most slots may have
        # long jobs.
        seconds = max(self._clock.monotonic() - self._short_since, 0.001)
        soon = int(self._short_ends * WAIT_SECONDS_MAX / 2 / seconds)
        self.count = max(1, min(AHEAD_PER_SLOT * self.slots, soon))
        self.leases_max = self.slots + self.count
        return self.count

    def end(self) -> int:
        """Allows none; returns how many were allowed."""
        count, self.count = self.count, 0
        self.leases_max = self.slots
        return count

    def add(self, attempt: Attempt) -> None:
        self.waiting[attempt] = self._clock.monotonic()
        if not self._is_watched:
            self._is_watched = True
            self._clock.call_later(WAIT_SECONDS_MAX, self._look)

    def take(self) -> Attempt:
        """Takes out the one that was claimed first."""
        attempt = next(iter(self.waiting))
        del self.waiting[attempt]
        return attempt

    def take_all(self) -> list[Attempt]:
        waiting = list(self.waiting)
        self.waiting.clear()
        return waiting

    def remove(self, attempt: Attempt) -> bool:
        """Takes out this one; says whether it was here."""
        return self.waiting.pop(attempt, None) is not None

    def _look(self) -> None:
        """Gives back what waits, if that is for too long."""
        self._is_watched = bool(self.waiting)
        if not self.waiting:
            return
        since = next(iter(self.waiting.values()))
        rest = since + WAIT_SECONDS_MAX - self._clock.monotonic()
        if rest > 0.0:
            self._clock.call_later(rest, self._look)
        else:
            self._is_watched = False
            self._give_back()


START_FAILED = "start"
RUNNER_FAILED = "runner"
NEVER_STARTED = End(ending=Ending.YIELDED)

Tell = Callable[..., None]  # an event of the worker's log, and its facts


class Jobs:
    """Executes the attempts of a worker; it is used from the worker's event loop alone."""

    def __init__(
        self,
        runners: Sequence[Runner],
        attempts: AttemptTable,
        health: HostHealth,
        logs: LogUpload | None,
        group: TaskGroup,
        tell: Tell,
    ) -> None:
        self._runners = [(r, r if isinstance(r, PromptRunner) else None) for r in runners]
        self._attempts = attempts
        self._folders = attempts.folders
        self.health = health
        self._logs = logs  # None: the store itself is within reach
        self._group = group
        self._clock, self._failpoint = attempts.clock, attempts.failpoint
        self._tell = tell
        self._live: dict[AttemptKey, Attempt] = {}
        self.ahead = ClaimedAhead(attempts.slots, attempts.clock, self.give_back_waiting)
        self._is_filling = False

    def __len__(self) -> int:
        return len(self._live)

    def begin(self, attempt: Attempt) -> None:
        """Starts a job as soon as a slot is free, unless it has a reason to be stopped."""
        self._live[attempt.key] = attempt
        begun = len(self._live) - len(self.ahead.waiting)  # with this one
        if attempt.reason is None and begun > self.ahead.slots:
            self.ahead.add(attempt)
            if not may_wait(attempt.task):
                self.give_back_waiting()
        else:
            self._start(attempt)

    def _start(self, attempt: Attempt) -> None:
        task = attempt.task
        attempt.begun_at = self._clock.monotonic()
        if self._logs is not None:
            attempt.follow_log = self._follow_handler
        for runner, prompt in self._runners:
            if runner.accepts(task):
                if prompt is None or self._has_to_wait(attempt):
                    self._group.add(self._execute(attempt, runner))
                else:
                    self._start_now(attempt, prompt)
                return
        self._not_started(attempt, "this worker has no runner for this kind of task")

    def go_on(self, attempt: Attempt, job: Job) -> None:
        """Goes on with an adopted job, which a dead worker left behind."""
        self._live[attempt.key] = attempt
        self._follow_logs(attempt, adopted=True)
        self._group.add(self._watch(attempt, job))

    def _fill_slots(self) -> None:
        """Starts jobs that were claimed ahead, in the slots that are free now."""
        if self._is_filling:  # one that could not be started has ended in the loop below
            return
        self._is_filling = True
        ahead = self.ahead
        try:
            while ahead.waiting and len(self._live) - len(ahead.waiting) < ahead.slots:
                attempt = ahead.take()
                if self._clock.monotonic() - attempt.confirmed_at > attempt.task.lease_seconds:
                    attempt.reason = StopReason.YIELD  # too late: it goes back without a start
                self._start(attempt)
        finally:
            self._is_filling = False

    def give_back_waiting(self) -> None:
        """Gives back what was claimed ahead and not begun, and has no more claimed ahead."""
        self._attempts.machine.withdraw_for_ends()  # or the same would come again
        self.claim_none_ahead()
        for attempt in self.ahead.take_all():
            self._over(attempt, NEVER_STARTED)

    def claim_none_ahead(self) -> None:
        """Has no more tasks claimed ahead, until that is worth it again."""
        if self.ahead.count:
            self._attempts.slots -= self.ahead.end()

    def give_back(self, attempt: Attempt) -> None:
        """Gives back an adopted attempt whose job was never started."""
        self._live[attempt.key] = attempt
        self._over(attempt, NEVER_STARTED)

    def stop(self, attempt: Attempt, reason: StopReason, grace_seconds: float) -> None:
        """Stops a job, or keeps it from starting.

        The first reason counts, except that a lost lease overrules all, and the shortest grace;
        asking again for the same changes nothing.
        """
        if attempt.ended:
            return
        if attempt.reason is None or reason is StopReason.LOST:
            attempt.reason = reason
        if grace_seconds >= attempt.grace_seconds:
            return
        attempt.grace_seconds = grace_seconds
        facts = {"attempt": attempt.task.attempt, "grace_seconds": grace_seconds}
        self._tell("job.stopping", task=attempt.task.id, reason=reason.value, **facts)
        if attempt.job is not None:
            self._group.add(self._stop_job(attempt, attempt.job))
        elif self.ahead.remove(attempt):
            self._over(attempt, NEVER_STARTED)

    def stop_by_key(self, key: AttemptKey, reason: StopReason) -> None:
        """Stops a job, if it is here, with the grace that its task asks for."""
        attempt = self._live.get(key)
        if attempt is not None:
            self.stop(attempt, reason, attempt.task.max_termination_seconds)

    def stop_all(self, reason: StopReason, grace_seconds_max: float) -> None:
        for attempt in list(self._live.values()):
            grace_seconds = min(attempt.task.max_termination_seconds, grace_seconds_max)
            self.stop(attempt, reason, grace_seconds)

    def _has_to_wait(self, attempt: Attempt) -> bool:
        """Says whether something is to be awaited for a job, which then has a coroutine of its
        own: a limit of time, values, files that are elsewhere, or logs that go elsewhere."""
        task = attempt.task
        if attempt.reason is not None or task.timeout_seconds or task.has_inputs:
            return True
        if task.command is None:
            return False
        return self._logs is not None or not self._folders.is_prepared(task)

    def _start_now(self, attempt: Attempt, runner: PromptRunner) -> None:
        task = attempt.task
        assign = partial(self._folders.assignment, task, self._attempts.worker)
        try:
            job = runner.start_now(task, assign, attempt, partial(self._over, attempt))
        except RunnerUnable as unable:
            self._unable(attempt, unable)
        except Exception as error:  # the task's failure, never the worker's end
            self._not_started(attempt, str(error) or repr(error))
        else:
            if job is None:
                self._group.add(self._execute(attempt, runner))
                return
            if task.command is not None:
                self.health.hear(None)
            if not attempt.ended:
                attempt.job = job

    async def _execute(self, attempt: Attempt, runner: Runner) -> None:
        if attempt.reason is not None:
            self._over(attempt, NEVER_STARTED)
            return
        try:
            await self._folders.prepare(attempt.task)
            self._follow_logs(attempt, adopted=False)
            inputs = await self._folders.inputs(attempt.task)
            assignment = self._folders.assignment(attempt.task, self._attempts.worker, inputs)
            job = await runner.start(assignment, attempt)
        except RunnerUnable as unable:
            self._unable(attempt, unable)
            return
        except Unavailable:  # the store is, so that nobody knows the values: not a failure
            self._over(attempt, NEVER_STARTED)
            return
        except Exception as error:  # the task's failure, never the worker's end
            self._not_started(attempt, str(error) or repr(error))
            return
        self.health.hear(None)
        await self._watch(attempt, job)

    def _unable(self, attempt: Attempt, unable: RunnerUnable) -> None:
        """Gives an attempt back for the worker's own trouble: another may do it."""
        if isinstance(unable, LauncherLost):
            self._group.add(_end_worker(unable))
            return
        self.health.hear(str(unable))
        self.give_back_waiting()
        self._over(attempt, NEVER_STARTED)

    def _not_started(self, attempt: Attempt, description: str) -> None:
        self._tell("job.not_started", task=attempt.task.id, error=description)
        self._over(attempt, failure(START_FAILED, description))

    async def _watch(self, attempt: Attempt, job: Job) -> None:
        attempt.job = job
        if attempt.reason is not None:  # somebody wanted it to end while it was started
            self._group.add(self._stop_job(attempt, job))
        limit = None
        if attempt.task.timeout_seconds is not None:
            limit = self._group.member(self._enforce_limit(attempt, job))
        try:
            end = await job.wait()
        except Exception as error:  # its runner broke, and no other job suffers from that
            end = failure(RUNNER_FAILED, f"the runner lost this job: {error!r}")
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():  # it is this worker that ends
                raise
            words = "the runner lost this job: the runner cancelled itself"
            end = failure(RUNNER_FAILED, words)
        if limit is not None:
            limit.cancel()
        self._over(attempt, end)

    def _over(self, attempt: Attempt, end: End) -> None:
        """Hands the end of an attempt to the reporter; one without a lease is let go."""
        if end.values is not None and may_have_files(end.values) and not attempt.is_recorded:
            self._group.add(self._record_files(attempt, end))
            return
        attempt.ended = True
        attempt.job = None  # it refers back to the attempt: only the collector would free both
        del self._live[attempt.key]
        if self._logs is not None:
            self._logs.end(attempt)
        self._failpoint("job_exited_before_report")
        told: End | None = end
        if attempt.reason is not None:
            told = end_to_report(end, attempt.reason, attempt.task)
        if told is not None:
            self._attempts.events.put(attempt, told)
        else:
            attempt.spoke_last = True
            self._attempts.let_go([attempt])
        if self.ahead.is_worth_it or attempt.task.command is not None:
            self.ahead.hear_end(attempt)
        if self.ahead.waiting:
            self._fill_slots()

    async def _record_files(self, attempt: Attempt, end: End) -> None:
        """Records the files that a job returns, apart from all others: they may be large."""
        from tidewheel.runners.file_values import with_recorded_files  # noqa: PLC0415 - few do

        attempt.is_recorded = True
        where = self._folders.file_folders(attempt.task)
        self._over(attempt, await asyncio.to_thread(with_recorded_files, end, *where))

    def _follow_logs(self, attempt: Attempt, *, adopted: bool) -> None:
        """Has the files of a job sent to the server; a handler has none until it prints."""
        task = attempt.task
        if self._logs is not None and task.command is not None and not is_poll(task):
            self._logs.begin(attempt, self._folders.directory(task), adopted=adopted)

    def _follow_handler(self, attempt: Attempt) -> None:
        assert self._logs is not None
        self._logs.begin(attempt, self._folders.directory(attempt.task), adopted=False)

    async def _enforce_limit(self, attempt: Attempt, job: Job) -> None:
        """Stops a job that runs too long. An adopted one that tells nobody since when it runs
        has all of its time again, unless the store ends it, which knows."""
        assert attempt.task.timeout_seconds is not None
        prepared = job if isinstance(job, PreparedJob) else None
        run_seconds = 0.0 if prepared is None else await prepared.begun()
        await self._clock.sleep(max(0.0, attempt.task.timeout_seconds - run_seconds))
        if prepared is not None and prepared.is_ending:
            return
        self.stop(attempt, StopReason.TIME_LIMIT, attempt.task.max_termination_seconds)

    async def _stop_job(self, attempt: Attempt, job: Job) -> None:
        try:
            await job.stop(attempt.grace_seconds)
        except LauncherLost:
            raise
        except Exception as error:  # the job goes on, and the next request is tried again
            attempt.grace_seconds = math.inf
            self._tell("job.not_stopped", task=attempt.task.id, error=repr(error))


async def _end_worker(lost: LauncherLost) -> None:
    """Ends the worker whose group this is a member of."""
    raise lost
