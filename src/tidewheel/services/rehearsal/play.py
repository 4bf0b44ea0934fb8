"""Plays a workflow without running it: the next thing that would happen happens at once.

Theory of operation. What lies ahead is a heap of (time, order): ends of jobs, timers, checks
of xtriggers. The earliest is taken, the clock jumps to it, the core is told, and what the core
wants done because of it is put on the heap. Jobs wait for a slot of the one worker in the order
of their submission. The same definition and assumptions give the same rehearsal.

`_occasion` is what is being told to the core: whatever the core submits meanwhile was let go by
it. A timer remembers what will have let its task go when it fires. What a submission waited for
last is read off the core's own standings: after each step the standing of every task that the
step touched is noted, so at a submission it is known why the task had still been waiting.

It shares `step`, timers and assumptions with a simulated run, not its `RunEngine`: see decision
0038.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from heapq import merge

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.definition import ELEMENTS_ASSUMED, NodeInput
from tidewheel.core.graph.graph import PARAMETER_VARIABLES, Graph, element_of
from tidewheel.core.graph.outputs import FAILED, STARTED, SUBMIT_FAILED, SUCCEEDED
from tidewheel.core.operator.requests import StoredValues
from tidewheel.core.operator.run_log import triggered_off
from tidewheel.core.operator.task_inputs import inputs_of, sizes_in, sizes_told
from tidewheel.core.queue.task import Instant
from tidewheel.core.queue.values import RETURN
from tidewheel.core.sched import events
from tidewheel.core.sched.explain import why
from tidewheel.core.sched.lifecycle import left_over, root_causes
from tidewheel.core.sched.pool import RunStatus, TaskPool
from tidewheel.core.sched.spawn import EXPIRY, RETRY
from tidewheel.core.sched.step import new_pool, step
from tidewheel.core.sched.task_state import FIRST_FLOW, Key, PoolState, TaskHistory
from tidewheel.errors import Refused
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.scheduler.timers import TimerHeap
from tidewheel.services.clock_triggers import ClockTriggers
from tidewheel.services.rehearsal.assumptions import AssumedEnd, AssumedJobs, Assumptions
from tidewheel.services.rehearsal.record import Cause, PlayedSubmission, Rehearsal, WaitedFor

SUBMISSIONS_MAX = 1_000_000  # that are kept in memory
STEPS_BETWEEN_NEWS = 2_000
CAUSES_MAX = 1_000  # of a stall that are explained
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
    """Plays a workflow from its start to its end, or up to `until`, and returns the record.

    `at` is what the virtual clock shows at the start; None is the time of the first point.
    """
    cycling = graph.cycling
    first = cycling.initial if cycling.start is None else cycling.start
    if at is None:
        at = Instant(0.0 if cycling.is_integer else float(first))
    play = _Play(graph, assumptions or Assumptions(), at, until)
    return play.to_the_end(submissions_max, on_progress or (lambda _: None))


class _Play:
    """Plays one rehearsal; it also tells the pool what it has forgotten (`recall`)."""

    def __init__(
        self, graph: Graph, assumptions: Assumptions, at: Instant, until: Point | None
    ) -> None:
        self._graph = graph
        if until is not None:
            graph = replace(graph, cycling=replace(graph.cycling, stop=until))
        self._played = graph  # up to where it is played
        self._pool = new_pool(graph, past=self)
        self._steps = 0
        self._submits: dict[Key, int] = {}
        self._stood: dict[Key, PoolState] = {}  # how tasks stood after the last step
        self._ready_at: dict[Key, Instant] = {}
        self._jobs = AssumedJobs(graph, assumptions, graph.cycling.style.text)
        self._triggers = ClockTriggers(graph.xtriggers, graph.cycling)
        self._begins_at = self._now = at
        # Ends of jobs, and timers of the core by task and name.
        self._ahead: TimerHeap[PlayedSubmission | tuple[Key, str]] = TimerHeap()
        self._awaited: dict[tuple[Key, str], AwaitedTimer] = {}
        self._free_slots = assumptions.slots
        self._waiting: deque[PlayedSubmission] = deque()  # for a slot, in order of submission
        self._freed_by: PlayedSubmission | None = None  # whose slot was given back last
        self._started: deque[PlayedSubmission] = deque()  # of which the core is to be told
        self._not_started: deque[tuple[PlayedSubmission, str]] = deque()  # and why
        self._hindered: dict[Key, str] = {}  # why the last job of a task could not start
        self._others_return = assumptions.others_return
        self._values: dict[Key, StoredValues] = {}  # of the last submission of each task
        self._submissions: list[PlayedSubmission] = []
        self._serving: dict[Key, PlayedSubmission] = {}  # services that are not let go yet
        self._occasion = Occasion(WaitedFor.START)
        # What is said beside the submissions.
        self._lost: dict[Key, str] = {}
        self._expired: list[Key] = []
        self._assumed: dict[str, None] = {}

    def to_the_end(
        self, submissions_max: int, on_progress: Callable[[Progress], None]
    ) -> Rehearsal:
        self._step(events.RunStarted(self._now))
        news_at = STEPS_BETWEEN_NEWS
        while self._pool.run.status not in OVER and len(self._submissions) <= submissions_max:
            if not self._next():
                break
            if self._steps > news_at and self._submissions:
                news_at = self._steps + STEPS_BETWEEN_NEWS
                last = self._submissions[-1]
                on_progress(Progress(self._now, last.key[0], len(self._submissions)))
        return self._result(is_cut=len(self._submissions) > submissions_max)

    # What happens.

    def _next(self) -> bool:
        """Plays the next thing that happens, if any does; says whether there was one. That a
        job started, or cannot start, is known at once, without a step of time."""
        if self._not_started:
            job, why = self._not_started.popleft()
            self._occasion = Occasion(WaitedFor.PARENT, job, job.key)
            how = events.JobEnd.NOT_STARTED
            self._step(events.JobEnded(job.key, job.submit, how, self._now, why=why))
            return True
        if self._started:
            job = self._started.popleft()
            self._occasion = Occasion(WaitedFor.PARENT, job, job.key)
            self._step(events.OutputMade(job.key, job.submit, STARTED, self._now))
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
            self._step(events.XtriggerSatisfied(what.name, (what.key,), at))
        else:
            self._step(events.TimerFired(what.key, what.name, at))
        return True

    def _end(self, job: PlayedSubmission) -> None:
        """Ends a job, and gives its slot back."""
        now = job.end_at = self._now
        self._free_slots += 1
        self._freed_by = job
        self._occasion = Occasion(WaitedFor.PARENT, job, job.key)
        outputs = None if job.end is None else job.end.outputs
        if outputs is None:
            outputs = () if job.fails else self._jobs.part(job.key[1]).outputs
        for output in outputs:
            self._step(events.OutputMade(job.key, job.submit, output, now))
        # As in a run: a failure hides what an earlier submission returned.
        self._values.pop(job.key, None)
        sizes: tuple[str, ...] = ()
        try:
            sizes = () if job.fails else self._sizes(job.key)
        except Refused as refused:
            self._hindered[job.key] = str(refused)
            job.end = AssumedEnd("", "")
            self._step(events.OutputMade(job.key, job.submit, STARTED, now))
        if job.fails:
            job.ended = FAILED
            self._step(events.JobEnded(job.key, job.submit, events.JobEnd.FAILED, now))
            return
        job.ended = SUCCEEDED
        if body := self._jobs.body(*job.key):
            flows = json.dumps(sorted(job.flows))
            self._values[job.key] = StoredValues(*job.key, job.submit, flows, body)
        for output in sizes:
            self._step(events.OutputMade(job.key, job.submit, output, now))
        self._step(events.JobEnded(job.key, job.submit, events.JobEnd.SUCCEEDED, now))

    def _sizes(self, key: Key) -> tuple[str, ...]:
        """Returns the outputs by which a job says how many elements its lists have; raises
        Refused if it is known to return no list that can be used."""
        lists, part = self._pool.plan.nodes[key[1]].lists, self._jobs.part(key[1])
        if not lists or (self._others_return and not part.values):
            return part.sizes
        values = json.loads(self._jobs.body(*key) or "{}")
        return sizes_told(lists, values)

    # What the core wants.

    def _step(self, event: events.Event) -> None:
        """Tells the core of an event, does what it wants, and notes how tasks stand then."""
        outcome = step(self._played, self._pool, event)
        self._steps += 1
        for effect in outcome.effects:
            if isinstance(effect, events.Submit):
                self._submit(effect)
            else:
                self._do_other(effect)
        self._note_standings(outcome.touched.tasks)
        while self._waiting and self._free_slots:
            self._free_slots -= 1
            self._start(self._waiting.popleft())

    def _note_standings(self, touched: Iterable[Key]) -> None:
        tasks, stood = self._pool.tasks, self._stood
        for key in touched:
            task = tasks.get(key)
            if task is None:
                stood.pop(key, None)
                self._ready_at.pop(key, None)
                continue
            standing = task.standing
            stood[key] = standing
            if standing is PoolState.READY:
                self._ready_at.setdefault(key, self._now)

    def _do_other(self, effect: events.Effect) -> None:
        match effect:
            case events.SetTimer(task, name, at) if task is not None:
                waits = at > self._now
                occasion = occasion_of_clock(self._occasion, task, name, waits=waits)
                self._wait(AwaitedTimer(task, name, False, occasion), max(at, self._now))
            case events.CheckXtrigger(task, label):
                self._check(task, label)
            case events.CancelTimer(task, name) | events.DropXtrigger(task, name) if (
                task is not None
            ):
                self._ahead.cancel((task, name))
                self._awaited.pop((task, name), None)
            case events.KillJob(task):
                self._let_go(task)
            case events.Notice("lost", task, text) if task is not None:
                self._lost[task] = text
            case events.Notice("back", task) if task is not None:
                self._lost.pop(task, None)
            case events.Notice("expired", task) if task is not None:
                self._expired.append(task)
            case _:
                pass  # about the run itself: nobody waits for that here

    def _check(self, key: Key, label: str) -> None:
        """Sets when an xtrigger will be satisfied: a clock at its time, others after a check.
        For those others it notes that this is an assumption."""
        xtrigger, now = self._triggers.find(label), self._now
        due_at = self._triggers.due_at(label, key[0])
        if due_at is not None and not self._graph.cycling.is_integer:
            at = Instant(max(now, due_at))
            occasion = occasion_of_clock(self._occasion, key, label, waits=at > now)
        else:
            seconds = INTERVAL_SECONDS if xtrigger is None else xtrigger.interval_seconds
            at = Instant(now + seconds)
            _, blocker, blocker_key = self._occasion
            occasion = Occasion(WaitedFor.XTRIGGER, blocker, blocker_key)
            what = f"the message {label.removeprefix(MESSAGE)!r} arrives"
            if xtrigger is not None:
                what = f"xtrigger {label} ({xtrigger.function}) is satisfied"
            self._assumed[f"{what} after {seconds:g} s"] = None
        self._wait(AwaitedTimer(key, label, True, occasion), at)

    def _wait(self, timer: AwaitedTimer, at: Instant) -> None:
        key = (timer.key, timer.name)
        self._awaited[key] = timer
        self._ahead.set(key, at)

    def _submit(self, one: events.Submit) -> None:
        key = one.task
        self._submits[key] = one.submit
        task = self._pool.tasks.get(key)
        parents = () if task is None else triggered_off(self._pool, task)
        ready_at = self._ready_at.pop(key, self._now)
        job = PlayedSubmission(
            key, one.submit, one.try_number, one.flows, parents, ready_at, self._now
        )
        job.waited_for, job.blocker, job.blocker_key = self._occasion
        stood = self._stood.get(key)
        if stood is PoolState.READY:
            job.waited_for = WaitedFor.LIMIT
        elif job.waited_for is WaitedFor.PARENT and (
            stood is PoolState.UNRELEASED or job.blocker_key not in parents
        ):
            job.waited_for = WaitedFor.RUNAHEAD
        self._submissions.append(job)
        submit_try = 1 if task is None else task.submit_try
        job.end = self._jobs.end(*key, job.try_number, submit_try)
        why = self._hindrance(job)
        if why is None:
            self._waiting.append(job)
            self._hindered.pop(key, None)
            return
        job.ended = SUBMIT_FAILED
        self._not_started.append((job, why))
        self._hindered[key] = why

    def _hindrance(self, job: PlayedSubmission) -> str | None:
        """Gives a job its values; returns why it cannot start, None if it can."""
        if job.end is not None and not job.end.is_submitted:
            return "is not started: its job could not be submitted"
        asked = self._known(job.key[1])
        try:
            sizes = sizes_in(self._pool, job.flows)
            job.inputs = inputs_of(self._graph, job.key, self._values, sizes, asked)
        except Refused as refused:
            return f"is not started: {refused}"
        return None

    def _known(self, name: str) -> tuple[NodeInput, ...]:
        """Returns the inputs of a task that are not assumed: by those of which it is said what
        they return, or by all."""
        asked = self._graph.inputs_of(name)
        if not self._others_return:
            return asked
        known = []
        for one in asked:
            if self._jobs.part(one.node).values:
                known.append(one)
                continue
            element = element_of(self._graph.mapped, one.node)
            task = one.node if element is None else element[0]
            if one.variable.startswith(PARAMETER_VARIABLES):
                named = f"{one.path[0]}, " if one.path[0] != RETURN else ""
                what = f"{named}a list of {ELEMENTS_ASSUMED} elements"
            else:
                what = f"the value {'.'.join(one.path)}" if one.path else "values"
            self._assumed[f"{task} returns {what}"] = None
        return tuple(known)

    def _start(self, job: PlayedSubmission) -> None:
        job.start_at = self._now
        freed_by = self._freed_by
        if self._now > job.submitted_at and freed_by is not None:
            job.waited_for = WaitedFor.SLOT
            job.blocker, job.blocker_key = freed_by, freed_by.key
        part = self._jobs.part(job.key[1])
        node = self._graph.nodes[job.key[1]].definition
        if serves := bool(node.until) and not job.fails:  # until it is let go
            self._serving[job.key] = job
        else:
            seconds = node.simulation.run_seconds if node.until else part.seconds
            self._ahead.set(job, Instant(self._now + seconds))
        # Who succeeds has started; the core need only be told if somebody waits for that.
        if part.is_heard_at_start or job.fails or serves:
            self._started.append(job)

    def _let_go(self, key: Key) -> None:
        """Ends the job of a service that is not needed any more, at this time."""
        job = self._serving.pop(key, None)
        if job is not None:
            self._ahead.set(job, self._now)

    # What came of it.

    def recall(self, point: Point, name: str) -> TaskHistory | None:
        """Returns the history of a task that ran, else None, for the pool that forgot it.

        That it ran, and how often, is enough: here nobody intervenes.
        """
        if (point, name) not in self._submits:
            return None
        memory = TaskHistory()
        memory.spawned, memory.submits = FIRST_FLOW, self._submits[point, name]
        return memory

    def _result(self, *, is_cut: bool) -> Rehearsal:
        return Rehearsal(
            graph=self._graph,
            status=RunStatus(self._pool.run.status),
            begins_at=self._begins_at,
            ends_at=self._now,
            submissions=self._submissions,
            causes=_causes(self._pool, self._hindered),
            lost=list(self._lost.values()),
            expired=self._expired,
            assumed=list(self._assumed),
            unused_ends=sorted(map(str, self._jobs.unused)),
            steps=self._steps,
            is_cut=is_cut,
        )


def _causes(pool: TaskPool, hindered: Mapping[Key, str]) -> list[Cause]:
    """Returns the tasks that keep a stalled run from going on, or that are held, with reasons.
    It is empty for a run of any other status."""
    if pool.run.status == RunStatus.WAITING_FOR_RELEASE:
        found = [one for one in pool.tasks.values() if one.standing is PoolState.HELD]
    elif pool.run.status == RunStatus.STALLED:
        found = root_causes(pool) or left_over(pool)
    else:
        found = []
    found.sort(key=lambda task: (task.point, task.plan.order))
    causes = []
    for task in found[:CAUSES_MAX]:
        reasons = why(pool, task.key)
        commands = dict.fromkeys(reason.command for reason in reasons if reason.command)
        known = (hindered[task.key],) if task.key in hindered else ()
        texts = (*known, *(one.text for one in reasons))
        causes.append(Cause(task.key, texts, tuple(commands)))
    return causes


class Occasion(NamedTuple):
    """Says what lets tasks go: what they waited for last, and which job's report ended that.

    `key` names that job's task, also where it has no submission.
    """

    waited_for: WaitedFor
    blocker: PlayedSubmission | None = None
    key: Key | None = None


class AwaitedTimer(NamedTuple):
    """Holds a timer or xtrigger; `occasion` is what its task has waited for when it fires."""

    key: Key
    name: str
    is_xtrigger: bool
    occasion: Occasion


def occasion_of_clock(now: Occasion, key: Key, name: str, *, waits: bool) -> Occasion:
    """Returns what a task has waited for when its timer fires.

    `now` is the occasion on which the timer was set; `waits`: its time was still to come then.
    """
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


POINTS_DEFAULT = 10


def last_of(graph: Graph, count: int = POINTS_DEFAULT) -> Point | None:
    """Returns the last of the first `count` points of a workflow, for one without an end.

    None is returned if it has a final point or a stop point.
    """
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
