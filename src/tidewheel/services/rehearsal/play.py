"""The loop of a rehearsal: the next thing that would happen happens at once.

Theory of operation. What lies ahead is a heap of (time, order): ends of jobs, timers, checks
of xtriggers. The earliest is taken, the clock jumps to it, the core is told, and what the core
wants done because of it is put on the heap. Jobs wait for a slot of the one worker in the order
of their submission. The same definition and assumptions give the same rehearsal.

`_occasion` is what is being told to the core: whatever the core submits meanwhile was let go by
it. A timer remembers what will have let its task go when it fires.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.graph import Graph
from tidewheel.core.graph.outputs import FAILED, STARTED, SUCCEEDED
from tidewheel.core.queue.task import Instant
from tidewheel.services.rehearsal.assumptions import Assumptions, Jobs
from tidewheel.services.rehearsal.core_run import (
    CancelTimer,
    CheckXtrigger,
    DropXtrigger,
    Key,
    Notice,
    PoolState,
    RunStatus,
    Scheduling,
    SetTimer,
    Submitted,
    Wanted,
)
from tidewheel.services.rehearsal.play import (
    Agenda,
    Clocks,
    Occasion,
    Slots,
    Timer,
    occasion_of_clock,
)
from tidewheel.services.rehearsal.record import Rehearsal, Submission, WaitedFor

SUBMISSIONS_MAX = 1_000_000  # that are kept in memory
STEPS_BETWEEN_NEWS = 2_000
OVER = (RunStatus.COMPLETED, RunStatus.STOPPED)


class Progress(NamedTuple):
    """How far a rehearsal is."""

    at: Instant
    point: Point
    submissions: int


def rehearse(
    graph: Graph,
    assumptions: Assumptions | None = None,
    *,
    at: Instant | None = None,
    until: Point | None = None,
    submissions_max: int = SUBMISSIONS_MAX,
    on_progress: Callable[[Progress], None] | None = None,
) -> Rehearsal:
    """Play a workflow from its start. `at`: what the clock shows then, else the first point."""
    cycling = graph.cycling
    first = cycling.initial if cycling.start is None else cycling.start
    if at is None:
        at = Instant(0.0 if cycling.is_integer else float(first))
    play = _Play(graph, assumptions or Assumptions(), at, until)
    return play.to_the_end(submissions_max, on_progress or (lambda _: None))


class _Remarks:
    """What is said beside the submissions."""

    def __init__(self) -> None:
        self.lost: dict[Key, str] = {}
        self.expired: list[Key] = []
        self.assumed: dict[str, None] = {}

    def note(self, event: str, key: Key, text: str) -> None:
        if event == "lost":
            self.lost[key] = text
        elif event == "back":
            self.lost.pop(key, None)
        elif event == "expired":
            self.expired.append(key)


class _Play:
    """One rehearsal in the making."""

    def __init__(
        self, graph: Graph, assumptions: Assumptions, at: Instant, until: Point | None
    ) -> None:
        self._graph = graph
        self._core = Scheduling(graph, until)
        self._jobs = Jobs(graph, assumptions, graph.cycling.style.text)
        self._clocks = Clocks(graph)
        self._begins_at = self._now = at
        self._agenda = Agenda()
        self._slots = Slots(assumptions.slots)
        self._started: deque[Submission] = deque()  # of which the core is to be told
        self._submissions: list[Submission] = []
        self._occasion = Occasion(WaitedFor.START)
        self._remarks = _Remarks()

    def to_the_end(
        self, submissions_max: int, on_progress: Callable[[Progress], None]
    ) -> Rehearsal:
        core = self._core
        self._do(core.begins(self._now))
        news_at = STEPS_BETWEEN_NEWS
        while core.status not in OVER and len(self._submissions) <= submissions_max:
            if not self._next():
                break
            if core.steps > news_at and self._submissions:
                news_at = core.steps + STEPS_BETWEEN_NEWS
                last = self._submissions[-1]
                on_progress(Progress(self._now, last.key[0], len(self._submissions)))
        return self._result(is_cut=len(self._submissions) > submissions_max)

    # What happens.

    def _next(self) -> bool:
        """The next thing that happens, if any does; that a job started is known at once."""
        core = self._core
        if self._started:
            job = self._started.popleft()
            self._occasion = Occasion(WaitedFor.PARENT, job, job.key)
            self._do(core.job_makes(job.key, job.submit, STARTED, self._now))
            return True
        found = self._agenda.next()
        if found is None:
            return False
        self._now, what = found
        if isinstance(what, Submission):
            self._end(what)
            return True
        self._occasion = what.occasion
        if what.is_xtrigger:
            self._do(core.xtrigger_is_met(what.name, what.key, self._now))
        else:
            self._do(core.timer_fires(what.key, what.name, self._now))
        return True

    def _end(self, job: Submission) -> None:
        """A job is over."""
        core, now = self._core, self._now
        job.end_at = now
        self._slots.give_back(job)
        self._occasion = Occasion(WaitedFor.PARENT, job, job.key)
        if job.fails:
            job.ended = FAILED
            self._do(core.job_fails(job.key, job.submit, now))
        else:
            for output in self._jobs.part(job.key[1]).outputs:
                self._do(core.job_makes(job.key, job.submit, output, now))
            job.ended = SUCCEEDED
            self._do(core.job_succeeds(job.key, job.submit, now))

    # What the core wants.

    def _do(self, wanted: list[Wanted]) -> None:
        for one in wanted:
            if isinstance(one, Submitted):
                self._submit(one)
            else:
                self._do_other(one)
        while (job := self._slots.take()) is not None:
            self._start(job)

    def _do_other(self, wanted: Wanted) -> None:
        match wanted:
            case SetTimer(task, name, at) if task is not None:
                waits = at > self._now
                occasion = occasion_of_clock(self._occasion, task, name, waits=waits)
                self._agenda.put(Timer(task, name, False, occasion), max(at, self._now))
            case CheckXtrigger(task, label):
                self._check(task, label)
            case CancelTimer(task, name) | DropXtrigger(task, name) if task is not None:
                self._agenda.take_back(task, name)
            case Notice(event, task, text) if task is not None:
                self._remarks.note(event, task, text)
            case _:
                pass  # about the run itself: nobody waits for that here

    def _check(self, key: Key, label: str) -> None:
        check = self._clocks.check(label, key[0], self._now)
        occasion = self._occasion
        if check.is_clock:
            occasion = occasion_of_clock(occasion, key, label, waits=check.at > self._now)
        else:
            occasion = Occasion(WaitedFor.XTRIGGER, occasion.blocker, occasion.key)
        if check.assumed:
            self._remarks.assumed[check.assumed] = None
        self._agenda.put(Timer(key, label, True, occasion), check.at)

    def _submit(self, one: Submitted) -> None:
        job = Submission(
            one.key, one.submit, one.try_number, one.flows, one.parents, one.ready_at
        )
        job.waited_for, job.blocker, job.blocker_key = self._occasion
        if job.waited_for is WaitedFor.PARENT:
            job.waited_for = _last_wait(one, job.blocker_key)
        elif one.stood is PoolState.READY:
            job.waited_for = WaitedFor.LIMIT
        job.submitted_at = self._now
        self._submissions.append(job)
        self._slots.ask(job)

    def _start(self, job: Submission) -> None:
        job.start_at = self._now
        freed_by = self._slots.freed_by
        if self._now > job.submitted_at and freed_by is not None:
            job.waited_for = WaitedFor.SLOT
            job.blocker, job.blocker_key = freed_by, freed_by.key
        point, name = job.key
        part = self._jobs.part(name)
        self._agenda.put(job, self._now + part.seconds)
        # Who succeeds has started; the core need only be told if somebody waits for that.
        job.fails = self._jobs.fails(point, name, job.try_number)
        if part.is_heard_at_start or job.fails:
            self._started.append(job)

    def _result(self, *, is_cut: bool) -> Rehearsal:
        remarks = self._remarks
        return Rehearsal(
            graph=self._graph,
            status=self._core.status,
            begins_at=self._begins_at,
            ends_at=self._now,
            submissions=self._submissions,
            causes=self._core.causes(),
            lost=list(remarks.lost.values()),
            expired=remarks.expired,
            assumed=list(remarks.assumed),
            unused_failures=sorted(map(str, self._jobs.unused)),
            steps=self._core.steps,
            is_cut=is_cut,
        )


def _last_wait(one: Submitted, reporter: Key | None) -> WaitedFor:
    """What a task waited for that was let go by a report of another, or of itself."""
    if one.stood is PoolState.READY:
        return WaitedFor.LIMIT
    if one.stood is PoolState.UNRELEASED or reporter not in one.parents:
        return WaitedFor.RUNAHEAD
    return WaitedFor.PARENT
