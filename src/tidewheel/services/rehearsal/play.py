"""Plays a workflow without running it: the next thing that would happen happens at once.

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
from heapq import merge
from typing import NamedTuple

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.graph import Graph
from tidewheel.core.graph.outputs import FAILED, STARTED, SUCCEEDED
from tidewheel.core.queue.task import Instant
from tidewheel.scheduler.timers import TimerHeap
from tidewheel.services.clock_triggers import ClockTriggers
from tidewheel.services.rehearsal.assumptions import AssumedJobs, Assumptions
from tidewheel.services.rehearsal.core_run import (
    EXPIRY,
    RETRY,
    CancelTimer,
    CheckXtrigger,
    CoreRun,
    DropXtrigger,
    Key,
    Notice,
    PoolState,
    RunStatus,
    SetTimer,
    SubmittedTask,
    Wanted,
)
from tidewheel.services.rehearsal.record import PlayedSubmission, Rehearsal, WaitedFor

SUBMISSIONS_MAX = 1_000_000  # that are kept in memory
STEPS_BETWEEN_NEWS = 2_000
OVER = (RunStatus.COMPLETED, RunStatus.STOPPED)


class Progress(NamedTuple):
    """Says how far a rehearsal is."""

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
    """Plays a workflow from its start. `at` is what the clock shows then, else the point's."""
    cycling = graph.cycling
    first = cycling.initial if cycling.start is None else cycling.start
    if at is None:
        at = Instant(0.0 if cycling.is_integer else float(first))
    play = _Play(graph, assumptions or Assumptions(), at, until)
    return play.to_the_end(submissions_max, on_progress or (lambda _: None))


class _Remarks:
    """Collects what is said beside the submissions."""

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
        self._core = CoreRun(graph, until)
        self._jobs = AssumedJobs(graph, assumptions, graph.cycling.style.text)
        self._clocks = Clocks(graph)
        self._begins_at = self._now = at
        # Ends of jobs, and timers of the core by task and name.
        self._ahead: TimerHeap[PlayedSubmission | tuple[Key, str]] = TimerHeap()
        self._awaited: dict[tuple[Key, str], AwaitedTimer] = {}
        self._slots = Slots(assumptions.slots)
        self._started: deque[PlayedSubmission] = deque()  # of which the core is to be told
        self._submissions: list[PlayedSubmission] = []
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
        at = self._ahead.next_at()
        if at is None:
            return False
        self._now, due = at, self._ahead.pop()
        if isinstance(due, PlayedSubmission):
            self._end(due)
            return True
        what = self._awaited.pop(due)
        self._occasion = what.occasion
        if what.is_xtrigger:
            self._do(core.xtrigger_is_met(what.name, what.key, self._now))
        else:
            self._do(core.timer_fires(what.key, what.name, self._now))
        return True

    def _end(self, job: PlayedSubmission) -> None:
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
            if isinstance(one, SubmittedTask):
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
                self._wait(AwaitedTimer(task, name, False, occasion), max(at, self._now))
            case CheckXtrigger(task, label):
                self._check(task, label)
            case CancelTimer(task, name) | DropXtrigger(task, name) if task is not None:
                self._ahead.cancel((task, name))
                self._awaited.pop((task, name), None)
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
        self._wait(AwaitedTimer(key, label, True, occasion), check.at)

    def _wait(self, timer: AwaitedTimer, at: Instant) -> None:
        key = (timer.key, timer.name)
        self._awaited[key] = timer
        self._ahead.set(key, at)

    def _submit(self, one: SubmittedTask) -> None:
        job = PlayedSubmission(
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

    def _start(self, job: PlayedSubmission) -> None:
        job.start_at = self._now
        freed_by = self._slots.freed_by
        if self._now > job.submitted_at and freed_by is not None:
            job.waited_for = WaitedFor.SLOT
            job.blocker, job.blocker_key = freed_by, freed_by.key
        point, name = job.key
        part = self._jobs.part(name)
        self._ahead.set(job, Instant(self._now + part.seconds))
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


def _last_wait(one: SubmittedTask, reporter: Key | None) -> WaitedFor:
    """Returns what a task waited for last, before a report of a task let it go."""
    if one.stood is PoolState.READY:
        return WaitedFor.LIMIT
    if one.stood is PoolState.UNRELEASED or reporter not in one.parents:
        return WaitedFor.RUNAHEAD
    return WaitedFor.PARENT


class Occasion(NamedTuple):
    """The reason why a task may go: what it waited for, and whose report ended that."""

    waited_for: WaitedFor
    blocker: PlayedSubmission | None = None
    key: Key | None = None


class AwaitedTimer(NamedTuple):
    """Something that the core waits for; `occasion` is what will have let its task go then."""

    key: Key
    name: str
    is_xtrigger: bool
    occasion: Occasion


def occasion_of_clock(now: Occasion, key: Key, name: str, *, waits: bool) -> Occasion:
    """Returns the occasion of a timer that was set on another one; `waits`: it is to come."""
    if name == EXPIRY:
        return Occasion(WaitedFor.PARENT, None, key)  # of those that wait for `expired`
    if name == RETRY:
        return Occasion(WaitedFor.RETRY, now.blocker, key)
    if waits:
        return Occasion(WaitedFor.CLOCK)  # no task can change what a clock shows
    kind = WaitedFor.START if now.blocker is None else WaitedFor.RUNAHEAD
    return Occasion(kind, now.blocker, now.key)


MESSAGE = "message/"  # how the core names an external trigger
INTERVAL_SECONDS = 10.0  # of what has none of its own


class Check(NamedTuple):
    """The time at which a check ends well; `assumed` says what was taken for granted."""

    at: Instant
    is_clock: bool
    assumed: str = ""


class Clocks:
    """Knows when xtriggers of a graph are satisfied: clocks in time, others after a check."""

    def __init__(self, graph: Graph) -> None:
        self._triggers = ClockTriggers(graph.xtriggers, graph.cycling)
        self._is_integer = graph.cycling.is_integer

    def check(self, label: str, point: Point, now: Instant) -> Check:
        """Returns how a check goes that begins now."""
        xtrigger = self._triggers.find(label)
        if xtrigger is None:
            text = f"the message {label.removeprefix(MESSAGE)!r} comes after "
            return Check(
                Instant(now + INTERVAL_SECONDS), False, f"{text}{INTERVAL_SECONDS:g} s"
            )
        due_at = self._triggers.due_at(label, point)
        if due_at is not None and not self._is_integer:
            return Check(Instant(max(now, due_at)), True)
        seconds = xtrigger.interval_seconds
        text = f"xtrigger {label} ({xtrigger.function}) is satisfied after {seconds:g} s"
        return Check(Instant(now + seconds), False, text)


class Slots:
    """The slots of the one worker: jobs take them in the order of submission."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: deque[PlayedSubmission] = deque()
        self.freed_by: PlayedSubmission | None = None

    def ask(self, job: PlayedSubmission) -> None:
        self._waiting.append(job)

    def give_back(self, job: PlayedSubmission) -> None:
        self._free += 1
        self.freed_by = job

    def take(self) -> PlayedSubmission | None:
        """Returns the next job that gets a slot; None: there is none."""
        if not self._waiting or not self._free:
            return None
        self._free -= 1
        return self._waiting.popleft()


POINTS_DEFAULT = 10


def last_of(graph: Graph, count: int = POINTS_DEFAULT) -> Point | None:
    """Returns the last of so many points of all sequences; None if the workflow ends itself."""
    cycling = graph.cycling
    if cycling.final is not None or cycling.stop is not None:
        return None
    first = cycling.initial if cycling.start is None else cycling.start
    last = first
    # From the start on; no sequence is walked further than it is asked for.
    for point in merge(*(sequence.points(first) for sequence in graph.sequences())):
        if point > last:
            count -= 1
            if count < 1:
                break
            last = point
    return last
