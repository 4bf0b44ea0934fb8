"""One run in the hands of a scheduler: its pool, its timers, and the batch in the making.

Theory of operation. Everything here is synchronous and waits for nothing: what happened is
handed in, `step` decides, effects become rows of the next batch. The pool is ahead of the store
by that batch and no more; whoever drives it writes the batch before anything else happens. If
that cannot be done because another scheduler took over, the whole of it is dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from tidewheel.core.graph.graph import Graph
from tidewheel.core.graph.outputs import EXPIRED
from tidewheel.core.operator.end_reasons import Undone
from tidewheel.core.operator.requests import RunBatch, RunLease, StoredRun, TimerKey
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.task import Instant, NewTask, TaskId
from tidewheel.core.sched.effects import (
    CancelTimer,
    CheckXtrigger,
    DropXtrigger,
    Effect,
    KillJob,
    Notice,
    PollJob,
    SetTimer,
    Submit,
)
from tidewheel.core.sched.events import Event, JobEnd, JobEnded, OutputMade
from tidewheel.core.sched.persistence import changes, outdated
from tidewheel.core.sched.pool import RunStatus, TaskPool
from tidewheel.core.sched.step import Outcome, step
from tidewheel.core.sched.task_state import AtomValue, JobPhase, Key, Verdict, VerdictKind
from tidewheel.scheduler.pending_batch import RecentPast, Work
from tidewheel.scheduler.timers import Agenda

STEPS_PER_BATCH_MAX = 1_000
RENDERING = "late-rendering"  # the timer of a task that is submitted, and made in a later pass
OVER = (RunStatus.COMPLETED, RunStatus.STOPPED)


class Xtriggers(Protocol):
    """Who finds out whether xtriggers are satisfied."""

    def watch(self, key: Key, label: str, now: Instant) -> None: ...
    def drop(self, key: Key, label: str) -> None: ...


class Players(Protocol):
    """Jobs that are played by the scheduler instead of run."""

    def plays(self, key: Key) -> bool: ...
    def play(self, drive: Drive, one: Submit, now: Instant) -> None: ...
    def is_playing(self, drive: Drive, key: Key) -> bool: ...
    def kill(self, drive: Drive, one: KillJob, now: Instant) -> None: ...


@dataclass(slots=True, kw_only=True)
class Surroundings:
    """What a run is driven with."""

    xtriggers: Xtriggers
    players: Players
    new_task: Callable[[Submit], NewTask]
    # Called after every step, before its effects are done: makes lines of the run log.
    log_step: Callable[[Drive, Event, Outcome], None]
    poll: Callable[[Drive, tuple[Key, int], Instant], None]
    log_trigger: Callable[[Drive, Submit], None] | None = None
    # Whether a task cannot be made at once: it waits for the end of the pass.
    is_late: Callable[[Key], bool] | None = None


class Drive:
    """A run that is being driven."""

    def __init__(
        self,
        run: RunView,
        lease: RunLease,
        graph: Graph,
        pool: TaskPool,
        stored: StoredRun,
        around: Surroundings,
    ) -> None:
        self.run = run
        self.lease = lease
        self.graph = graph
        self.pool = pool
        self._past = RecentPast(pool.past)
        pool.past = self._past
        self.agenda = Agenda(stored.timers)
        self.work = Work()
        # What is stored in an old format is written anew with the first batch.
        self.work.touched.add(outdated(pool.plan, stored.changes))
        self.jobs: dict[TaskId, tuple[Key, int]] = {}
        self.todo: deque[Event] = deque()
        self.due: dict[Key, Submit] = {}  # submitted, and not made into tasks yet
        self.stage_before: JobPhase | None = None  # of the task whose job is being heard
        self.failure = "ERR"  # with which signal the job failed that is being heard
        self.gave_up = ""  # why the run ends although it is neither completed nor stopped
        self.aborted = ""  # why, if it was
        self._around = around
        for task in pool.tasks.values():
            if task.is_active:
                self.jobs[self.task_id(task.key, task.submit)] = (task.key, task.submit)

    # ---- names ----

    def text(self, key: Key) -> str:
        return f"{self.graph.cycling.style.text(key[0])}/{key[1]}"

    def task_id(self, key: Key, submit: int) -> TaskId:
        return TaskId(f"{self.run.name}/{self.text(key)}/{submit}")

    # ---- what happens ----

    def step(self, event: Event) -> list[Effect]:
        """One event; what it led to is in the work of this batch."""
        if type(event) is JobEnded or type(event) is OutputMade:
            task = self.pool.tasks.get(event.task)
            self.stage_before = None if task is None else task.stage
        outcome = step(self.graph, self.pool, event)
        work = self.work
        work.steps += 1
        touched = outcome.touched
        work.touched.add(touched)
        if touched.forgotten:
            self._past.forgotten(touched.forgotten)
        effects = outcome.effects
        self._around.log_step(self, event, outcome)
        for effect in effects:
            self._do(effect, event.at)
        return effects

    def abort(self, why: str) -> None:
        """Nothing more is to happen; jobs that run are left alone."""
        self.aborted = self.aborted or why
        self.gave_up = self.gave_up or RunStatus.STOPPED

    def drain(self) -> None:
        """Whatever follows from what was stepped, as far as it happens at once."""
        todo = self.todo
        while todo:
            self.step(todo.popleft())

    @property
    def has_room(self) -> bool:
        """Whether this batch may grow further."""
        return self.work.steps < STEPS_PER_BATCH_MAX

    @property
    def status(self) -> str:
        """Of the run, after this batch."""
        return str(self.gave_up or self.pool.run.status)

    @property
    def is_over(self) -> bool:
        return bool(self.gave_up) or self.pool.run.status in OVER

    # ---- what is wanted ----

    def _do(self, effect: Effect, now: Instant) -> None:
        kind = type(effect)
        if kind is Submit:
            self._submit(effect, now)  # type: ignore[arg-type]
        elif kind is Notice:
            self.work.notices.append(effect)  # type: ignore[arg-type]
        else:
            self._do_other(effect, now)

    def _do_other(self, effect: Effect, now: Instant) -> None:
        match effect:
            case SetTimer(task, name, at):
                self.agenda.set(timer_key(task, name), at)
            case CancelTimer(task, name):
                self.agenda.cancel(timer_key(task, name))
            case CheckXtrigger(task, label):
                self._around.xtriggers.watch(task, label, now)
            case DropXtrigger(task, label):
                self._around.xtriggers.drop(task, label)
            case KillJob():
                self._kill(effect, now)
            case PollJob(task, submit):
                # The store knows how every job is. What a job wrote down is known to its files.
                self._around.poll(self, (task, submit), now)
            case _:
                raise AssertionError(effect)

    def _submit(self, one: Submit, now: Instant) -> None:
        around = self._around
        if around.log_trigger is not None:
            around.log_trigger(self, one)
        if around.players.plays(one.task):
            around.players.play(self, one, now)
            return
        if around.is_late is not None and around.is_late(one.task):
            self.agenda.cancel(timer_key(one.task, RENDERING))  # of an earlier one
            self.due[one.task] = one
            return
        self.enqueue(around.new_task(one), one)

    def enqueue(self, task: NewTask, one: Submit) -> None:
        """With this batch it goes into the queue."""
        self.work.submissions[task.id] = task
        self.jobs[task.id] = (one.task, one.submit)

    def _kill(self, one: KillJob, now: Instant) -> None:
        # Whether it would be played now is another question: the mode may have changed since.
        if self._around.players.is_playing(self, one.task):
            self._around.players.kill(self, one, now)
        elif self.due.pop(one.task, None) is not None or self._was_put_off(one.task):
            self.agenda.cancel(timer_key(one.task, RENDERING))
            self.todo.append(JobEnded(one.task, one.submit, JobEnd.KILLED, now))
        else:
            self.work.cancellations[self.task_id(one.task, one.submit)] = None

    def _was_put_off(self, key: Key) -> bool:
        return timer_key(key, RENDERING) in self.agenda

    # ---- what is written ----

    def batch(self, now: Instant, reason: str = "") -> RunBatch:
        """All that was decided since the last one."""
        work = self.work
        timers, gone = self.agenda.take_changes()
        return RunBatch(
            number=self.lease.batch + 1,
            at=now,
            status=self.status,
            reason=reason,
            consumed=work.consumed,
            changes=changes(self.pool, work.touched),
            submissions=list(work.submissions.values()),
            cancellations=list(work.cancellations),
            timers=timers,
            timers_gone=gone,
            answers=work.answers,
            xtriggers=work.xtriggers,
            broadcasts=work.broadcasts,
            outbox=work.outbox,
            definition=work.definition,
            options=work.options,
            ends=self.is_over,
            goes_on=work.goes_on,
        )

    def written(self) -> Work:
        """The batch is in the store: what people are told now."""
        self.lease = replace(self.lease, batch=self.lease.batch + 1)
        self._past.written()
        work, self.work = self.work, Work()
        return work


def undone(pool: TaskPool, forgotten: Mapping[Key, Mapping[int, Verdict]]) -> Undone:
    """What was not done of a run, counted over all that it remembers or once forgot."""
    known = dict(forgotten)
    for point, there in pool.memory.items():
        known |= {(point, name): memory.verdicts for name, memory in there.items()}
    last = [
        verdicts[max(verdicts)]
        for (_, name), verdicts in known.items()
        if verdicts and name in pool.plan.nodes
    ]
    return Undone(lost=sum(map(_is_lost, last)), skipped=sum(map(_is_skipped, last)))


def _is_lost(verdict: Verdict) -> bool:
    return verdict.kind is VerdictKind.PRUNED and verdict.death is AtomValue.LOST


def _is_skipped(verdict: Verdict) -> bool:
    expired = verdict.kind is VerdictKind.FINISHED and verdict.ended == EXPIRED
    return expired or verdict.kind is VerdictKind.REMOVED


def timer_key(task: Key | None, name: str) -> TimerKey:
    return TimerKey(None, "", name) if task is None else TimerKey(task[0], task[1], name)
