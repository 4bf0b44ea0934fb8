"""Runs a case through the scheduling core in a random order."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from random import Random

from tests.kit.scenario import Scenario, compile_flow
from tests.sim.sched_oracle import (
    BAD_ENDS,
    FAILED,
    STARTED,
    SUBMIT_FAILED,
    SUBMITTED,
    SUCCEEDED,
    ByHand,
    Condition,
    Every,
    Graph,
    Key,
    Leaf,
    Try,
    is_element,
    leaves,
)
from tests.sim.sched_oracle_flow import flow_text
from tests.sim.sched_oracle_graphs import Case
from tests.sim.sched_oracle_lists import size_text, with_sizes
from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched import events
from tidewheel.core.sched.events import CancelTimer, Event, JobEnd, SetTimer, Submit
from tidewheel.errors import Refused

STEPS_MAX = 2_000
ENDS = {SUCCEEDED: JobEnd.SUCCEEDED, FAILED: JobEnd.FAILED, SUBMIT_FAILED: JobEnd.NOT_STARTED}


class Broken(Exception):
    """Something that must hold did not."""


class Driven:
    """A run of a case. `choose` picks which of several things happens next."""

    def __init__(
        self,
        case: Case,
        choose: Callable[[int], int],
        *,
        reports: int | None = None,
        restart: Callable[[], bool] = lambda: False,
    ) -> None:
        self.history: list[str] = []
        self._choose = choose
        self._reports = reports
        self._late = Random(reports)
        self._restart = restart
        self._jobs: dict[Key, list[Event]] = {}
        self._timers: dict[tuple[Key, str], Event] = {}
        self._past: list[Event] = []
        self._read = 0
        self._made: defaultdict[Key, set[str]] = defaultdict(set)
        self.submitted: Counter[Key] = Counter()
        self.by_hand = ByHand()
        self._incomplete: set[Key] = set()
        self._follow(case)
        graph = compile_flow(flow_text(case.graph))
        self.run = Scenario(graph, start=case.graph.start, start_jobs=False)
        self._take_effects()

    def _follow(self, case: Case) -> None:
        """Judge by this case from now on."""
        self.case = case
        self._killers: dict[Key, list[Condition]] = {}
        for arrow in case.graph.arrows:
            for point in arrow.points if arrow.suicide and arrow.condition else ():
                assert arrow.condition is not None
                for name in arrow.targets:
                    self._killers.setdefault((point, name), []).append(arrow.condition)
        self.points = sorted({point for one in case.graph.arrows for point in one.points})
        self._check_runahead = case.graph.runahead is not None and not steps_back(case.graph)

    def reloads(self, case: Case) -> None:
        """Go on with another definition."""
        self._follow(case)
        graph = compile_flow(flow_text(case.graph))
        self._apply(events.RunReloaded(graph, self.run.now))

    def runs_again(self, key: Key, job: Try, size: int = 0) -> None:
        """Forget that a task ran, and run it once more: its job does this then. A list has so
        many elements this time."""
        self._made.pop(key, None)
        self._apply(events.TasksRemoved(tasks=(_core_key(key),), at=self.run.now))
        part, graph = self.case.graph.list, self.case.graph
        if part is not None and key[1] == part.source:
            graph = with_sizes(graph, {**part.sizes, key[0]: size})
        self._follow(Case(graph, self.case.outcomes))
        self.mends(key, job)

    def mends(self, key: Key, job: Try) -> None:
        """Run a task that has run once more: its job does this then."""
        outcomes = {**self.case.outcomes, key: (*self.case.outcomes[key], job)}
        self._follow(Case(self.case.graph, outcomes))
        self._apply(events.TasksTriggered(tasks=(_core_key(key),), at=self.run.now))

    def ran_once(self, key: Key) -> None:
        """What a task did before it ran for the last time is no part of the run."""
        outcomes = {**self.case.outcomes, key: self.case.outcomes[key][-1:]}
        self._follow(Case(self.case.graph, outcomes))
        self.submitted[key] = 1

    def triggers(self, key: Key) -> None:
        """Run a task that has not run, whatever it needs."""
        done = self.by_hand
        self.by_hand = replace(done, triggered=done.triggered | {key})
        self._apply(events.TasksTriggered(tasks=(_core_key(key),), at=self.run.now))

    def sets(self, key: Key) -> None:
        """Let a task that has not run count as run."""
        done = self.by_hand
        self.by_hand = replace(done, succeeded=done.succeeded | {key})
        self._made[key].update((SUBMITTED, STARTED, SUCCEEDED))
        outputs = (*self._sizes(key), SUCCEEDED)
        self._apply(events.OutputsSet(task=_core_key(key), at=self.run.now, outputs=outputs))

    def removes(self, key: Key) -> None:
        """Take a task out of the pool; of one that is not there nothing is forgotten."""
        if key in self.pool:
            done = self.by_hand
            self.by_hand = replace(done, removed=done.removed | {key})
        self._apply(events.TasksRemoved(tasks=(_core_key(key),), at=self.run.now))

    def is_refused(self, key: Key) -> bool:
        """Whether nobody may trigger, set, remove or hold a task."""
        core, now = _core_key(key), self.run.now
        for event in (
            events.TasksTriggered(tasks=(core,), at=now),
            events.OutputsSet(task=core, at=now, outputs=(SUCCEEDED,)),
            events.TasksRemoved(tasks=(core,), at=now),
            events.TasksHeld((core,), now),
        ):
            try:
                self.run.happens(event)
            except Refused:
                continue
            return False
        return True

    def holds(self, key: Key) -> None:
        self._apply(events.TasksHeld((_core_key(key),), self.run.now))

    def releases_all(self) -> None:
        self._apply(events.AllReleased(self.run.now))

    def to_the_end(self) -> Driven:
        for _ in range(STEPS_MAX):
            if not self.happens_next():
                return self
        raise Broken(f"still running after {STEPS_MAX} steps")

    def happens_next(self) -> bool:
        """One thing that can happen, perhaps a restart before it; False if nothing can."""
        if self._restart():
            self.history.append("restart")
            # With mapped tasks by another process, which has made no elements yet.
            self.run.restarts(None if self.case.graph.list is None else tuple)
        keys: list[tuple[Key, str]] = [(key, "") for key in sorted(self._jobs)]
        keys += sorted(self._timers)
        if not keys:
            return False
        key, timer = keys[self._choose(len(keys))]
        if timer:
            event = self._timers.pop((key, timer))
        else:
            event = self._jobs[key].pop(0)
            if not self._jobs[key]:
                del self._jobs[key]
                self._past.append(event)
        self._record(event)
        self._apply(event)
        if self._past and self._reports is not None and self._late.random() < 0.03:
            self._say_again(self._late.choice(self._past))
        return True

    def _say_again(self, event: Event) -> None:
        before = len(self.run.submitted)
        self._apply(event)
        if len(self.run.submitted) != before:
            raise Broken(f"a late report was believed: {_said(event)}")

    def _apply(self, event: Event) -> None:
        self.history.append(_said(event))
        self.run.happens(event)
        self._take_effects()
        self._check_suicides()

    def _take_effects(self) -> None:
        new = self.run.effects[self._read :]
        self._read = len(self.run.effects)
        self._incomplete = {
            self.run.key(one)
            for one, word in self.run.pool.items()
            if word in (FAILED, SUBMIT_FAILED, SUCCEEDED, "blocked")
        }
        for effect in new:
            if isinstance(effect, Submit):
                self._begin(effect)
            elif isinstance(effect, SetTimer) and effect.task is not None:
                key = effect.task
                self._timers[(key, effect.name)] = events.TimerFired(
                    key, effect.name, effect.at
                )
            elif isinstance(effect, CancelTimer) and effect.task is not None:
                self._timers.pop((effect.task, effect.name), None)
        limit = self.case.graph.limit
        if limit is not None and len(self._jobs) > limit:
            raise Broken(f"{len(self._jobs)} tasks are active, {limit} may be")

    def _begin(self, submit: Submit) -> None:
        key = submit.task
        name = f"{key[0]}/{key[1]}"
        if key in self._jobs:
            raise Broken(f"{name} was submitted while it was active")
        self.submitted[key] += 1
        if submit.submit != self.submitted[key]:
            raise Broken(
                f"submission {self.submitted[key]} of {name} has number {submit.submit}"
            )
        tries = self.case.outcomes[key]
        if submit.submit > len(tries):
            raise Broken(f"{name} was submitted again after it had ended")
        self._jobs[key] = self._job(key, submit.submit, tries[submit.submit - 1])
        self._check_limit(key)
        self._check_prerequisites(key)

    def _job(self, key: Key, submit: int, job: Try) -> list[Event]:
        """What its job will report; what is implied is not always said."""
        core, now = _core_key(key), self.run.now
        found: list[Event] = []
        # Of its own: the order of two submissions in one step must not matter.
        rng = Random(f"{self._reports}/{key}/{submit}")
        talks = self._reports is None or rng.random() < 0.6
        if job.end != SUBMIT_FAILED:
            if self._reports is not None and rng.random() < 0.3:
                found.append(events.JobSubmitted(core, submit, now))
            if talks or job.end == FAILED:
                found.append(events.OutputMade(core, submit, STARTED, now))
            found += [events.OutputMade(core, submit, one, now) for one in job.customs]
        for size in self._sizes(key) if job.end == SUCCEEDED else ():
            found.append(events.OutputMade(core, submit, size, now))
        return [*found, events.JobEnded(core, submit, ENDS[job.end], now)]

    def _sizes(self, key: Key) -> tuple[str, ...]:
        """What a task tells of its list before it succeeds, if it has one."""
        part = self.case.graph.list
        if part is None or key[1] != part.source:
            return ()
        return (size_text(part.sizes[key[0]]),)

    def has_come(self, key: Key) -> bool:
        """Whether there is such a task by now: an element comes with its list."""
        part = self.case.graph.list
        if part is None or not is_element(key[1]):
            return True
        return part.has(key) and SUCCEEDED in self._made[(key[0], part.source)]

    def _check_limit(self, key: Key) -> None:
        """P12, from what is seen outside: who is active, incomplete or blocked."""
        runahead = self.case.graph.runahead
        if runahead is None or not self._check_runahead:
            return
        base = min(point for point, _ in (*self._jobs, *self._incomplete))
        window = [point for point in self.points if point >= base][: runahead + 1]
        if key[0] not in window:
            raise Broken(
                f"{key[0]}/{key[1]} was submitted with base {base} and limit P{runahead}"
            )

    def _check_prerequisites(self, key: Key) -> None:
        """P3, and that nobody runs whom a suicide had removed: by what was made until now."""
        point, name = key
        if key in self.by_hand.triggered:
            return
        for arrow in self.case.graph.arrows:
            if (
                arrow.condition is None
                or name not in arrow.targets
                or point not in arrow.points
            ):
                continue
            if not arrow.suicide and not self._holds(arrow.condition, point, early=True):
                raise Broken(f"{point}/{name} was submitted before its parents were done")
        if self._is_killed(key):
            raise Broken(f"{point}/{name} was submitted after a suicide had removed it")

    def _is_killed(self, key: Key) -> bool:
        conditions = self._killers.get(key)
        return bool(conditions) and all(
            self._holds(one, key[0], early=False) for one in conditions or ()
        )

    def _is_killed_from_afar(self, key: Key) -> bool:
        return any(
            leaf.absolute is not None
            for condition in self._killers.get(key, ())
            for leaf in leaves(condition)
        )

    def _check_suicides(self) -> None:
        """A suicide is a level: nobody whom it concerns waits or stays incomplete.

        One by an absolute atom concerns points without end: there it is applied at release.
        """
        for key in self.pool if self._killers else ():
            if not self.run.core.tasks[key].admitted and self._is_killed_from_afar(key):
                continue
            if key not in self._jobs and self._is_killed(key):
                raise Broken(f"{key[0]}/{key[1]} is in the pool and a suicide holds")

    def _holds(self, condition: Condition, point: int, *, early: bool) -> bool:
        """Whether a condition is true by now; `early` is what it is worth before the start."""
        if not isinstance(condition, Leaf):
            held = [self._holds(term, point, early=early) for term in condition.terms]
            return all(held) if isinstance(condition, Every) else any(held)
        parent = condition.parent_point(point)
        if parent < self.case.graph.start:
            return early and not BAD_ENDS.issuperset(condition.outputs)
        part, names = self.case.graph.list, condition.names
        if condition.source and part is not None:
            if SUCCEEDED not in self._made[(parent, condition.source)]:
                return False
            names = tuple(name for name in names if part.has((parent, name)))
        made = [not self._made[(parent, n)].isdisjoint(condition.outputs) for n in names]
        return all(made) if condition.every else any(made)

    def _record(self, event: Event) -> None:
        """What an event makes true for everybody."""
        match event:
            case events.JobSubmitted(task=key):
                self._made[key].add(SUBMITTED)
            case events.OutputMade(task=key, output=output):
                self._made[key].update((SUBMITTED, STARTED, output))
            case events.JobEnded(task=key, submit=submit):
                tries = self.case.outcomes[key]
                if tries[submit - 1].end == SUCCEEDED:
                    self._made[key].update((SUBMITTED, STARTED, SUCCEEDED))
                elif submit == len(tries):
                    self._made[key].add(tries[-1].end)

    # The end, in the oracle's words.

    @property
    def verdicts(self) -> dict[Key, str]:
        return {self.run.key(one): word for one, word in self.run.verdicts.items()}

    @property
    def pool(self) -> dict[Key, str]:
        return {self.run.key(one): word for one, word in self.run.pool.items()}

    def end_state(self) -> dict[str, object]:
        return {
            "status": self.run.status,
            "submissions": sorted(self.run.submitted),
            "verdicts": self.verdicts,
            "pool": self.pool,
            "causes": self.run.causes,
        }


def steps_back(graph: Graph) -> bool:
    """Whether the runahead base may step back (SEMANTICS §4.3)."""
    return any(
        leaf.absolute is not None or leaf.offset > 0
        for arrow in graph.arrows
        for leaf in leaves(arrow.condition)
    )


def _core_key(key: Key) -> tuple[Point, str]:
    return (Point(key[0]), key[1])


def _said(event: Event) -> str:
    match event:
        case events.JobEnded(key, submit, how):
            return f"{key[0]}/{key[1]}/{submit} {how}"
        case events.OutputMade(key, submit, output):
            return f"{key[0]}/{key[1]}/{submit} makes {output}"
        case events.JobSubmitted(key, submit):
            return f"{key[0]}/{key[1]}/{submit} submitted"
        case events.TimerFired(key, name):
            return f"timer {name} of {key}"
        case events.RunReloaded():
            return "reload"
        case _:
            return str(event)
