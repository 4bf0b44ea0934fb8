"""Judges runs in which an operator triggers several tasks at once (SEMANTICS §8).

Theory of operation. From the text alone: what a task of the group needs of the group must be
made by a job that was active then or began since; everything else that it needs counts as met.
So nobody of the group begins before that, whatever had happened before, and whoever has all of
it begins. The judge counts outputs as jobs tell them, by task, and knows nothing of flows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from tests.kit.scenario import Scenario, compile_flow
from tests.sim.sched_oracle import (
    FAILED,
    STARTED,
    SUBMIT_FAILED,
    SUBMITTED,
    SUCCEEDED,
    Condition,
    Every,
    Key,
    Leaf,
    Oracle,
    leaves,
)
from tests.sim.sched_oracle_flow import flow_text
from tests.sim.sched_oracle_graphs import draw
from tests.sim.sched_oracle_runs import ENDS, STEPS_MAX, Broken
from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched import events
from tidewheel.core.sched.events import Event, FlowChoice, Submit

IMPLIED = {SUCCEEDED: (SUBMITTED, STARTED), FAILED: (SUBMITTED, STARTED), STARTED: (SUBMITTED,)}
FLOWS = (*[FlowChoice.DEFAULT] * 5, FlowChoice.NEW, FlowChoice.ALL, frozenset({1}))


class GroupRun:
    """A run of a random workflow in which one group is triggered."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        drawn = draw(seed).graph
        arrows = tuple(one for one in drawn.arrows if not one.suicide)
        self.graph = replace(drawn, arrows=arrows, retries={}, limit=None, runahead=None)
        self.history: list[str] = []
        self._failing = self.rng.choice((0.0, 0.2, 0.5))
        self._rules = Oracle(self.graph, {})
        self._jobs: dict[Key, list[Event]] = {}
        self._made: defaultdict[Key, set[str]] = defaultdict(set)  # by jobs that count
        self._ever: defaultdict[Key, set[str]] = defaultdict(set)
        self._begun: Counter[Key] = Counter()
        self.group: frozenset[Key] = frozenset()
        self._owed: set[Key] = set()  # of the group, who has not begun since
        self._read = 0
        self.run = Scenario(
            compile_flow(flow_text(self.graph)), start=self.graph.start, start_jobs=False
        )
        self._take_effects()

    def plays(self) -> bool:
        """Says whether some of the group needed others of it."""
        for _ in range(self.rng.randint(0, 40)):
            self._ends_something()
        known = {*self._begun, *((int(point), name) for point, name in self.run.core.tasks)}
        known |= {child for one in self._begun for child in self._children(one)}
        among = sorted(key for key in known if key[0] >= self.graph.start)
        self._triggers(self.rng.sample(among, min(len(among), self.rng.randint(2, 4))))
        for _ in range(STEPS_MAX):
            if not self._jobs:
                break
            self._ends_something()
        self._ever.clear()  # of members beside the group, perhaps in other flows
        left_out = [one for one in self._owed if self._may_begin(one) and self._is_near(one)]
        if left_out:
            raise Broken(f"{sorted(left_out)} of {sorted(self.group)} did not run")
        return any(self._needs_group(key) for key in self.group)

    def _is_near(self, key: Key) -> bool:
        """Who waits for the group waits for the runahead limit, too."""
        task = self.run.core.tasks.get(_core(key))
        return task is None or task.admitted

    def _triggers(self, keys: list[Key]) -> None:
        flow = self.rng.choice(FLOWS)
        self.group = frozenset(keys)
        self.history.append(f"trigger {keys} {flow}")
        self._owed = self.group - self._jobs.keys()
        for key in self._owed:
            self._made.pop(key, None)
        self._failing = self.rng.choice((0.0, 0.0, 0.3))
        tasks = tuple(map(_core, keys))
        self._apply(events.TasksTriggered(tasks=tasks, at=self.run.now, flow=flow))

    def _ends_something(self) -> None:
        if self.rng.random() < 0.05:
            self.history.append("restart")
            self.run.restarts()
        if not self._jobs:
            return
        key = self.rng.choice(sorted(self._jobs))
        event = self._jobs[key].pop(0)
        if not self._jobs[key]:
            del self._jobs[key]
        output = event.output if isinstance(event, events.OutputMade) else ""
        if isinstance(event, events.JobEnded):
            output = next(word for word, how in ENDS.items() if how is event.how)
        self.history.append(f"{key[0]}/{key[1]} {output}")
        for into in (self._made[key], self._ever[key]):
            into.update((*IMPLIED.get(output, ()), output))
        self._apply(event)

    def _apply(self, event: Event) -> None:
        self.run.happens(event)
        self._take_effects()

    def _take_effects(self) -> None:
        new, self._read = self.run.effects[self._read :], len(self.run.effects)
        for effect in new:
            if isinstance(effect, Submit):
                key = (int(effect.task[0]), effect.task[1])
                self.history.append(f"{key[0]}/{key[1]} begins in {sorted(effect.flows)}")
                if key in self._owed and not self._may_begin(key):
                    raise Broken(f"{key[0]}/{key[1]} begins before its group: {self.group}")
                self._owed.discard(key)
                self._begun[key] += 1
                if key not in self.group:
                    self._made[key].clear()
                self._jobs[key] = list(self._job(key, effect.submit))

    def _job(self, key: Key, submit: int) -> Iterator[Event]:
        failed = self.rng.random() < self._failing
        end = self.rng.choice((FAILED, FAILED, SUBMIT_FAILED)) if failed else SUCCEEDED
        core, now = _core(key), self.run.now
        if end != SUBMIT_FAILED:
            yield events.OutputMade(core, submit, STARTED, now)
            for one in self.graph.customs.get(key[1], ()):
                if not failed or self.rng.random() < 0.5:
                    yield events.OutputMade(core, submit, one, now)
        yield events.JobEnded(core, submit, ENDS[end], now)

    # What the text says.

    def _may_begin(self, key: Key) -> bool:
        return all(self._is_met(one, key[0]) for one in self._rules.conditions(key))

    def _needs_group(self, key: Key) -> bool:
        return any(
            (leaf.parent_point(key[0]), name) in self.group
            for condition in self._rules.conditions(key)
            for leaf in leaves(condition)
            for name in leaf.names
        )

    def _is_met(self, condition: Condition, point: int) -> bool:
        if not isinstance(condition, Leaf):
            met = [self._is_met(term, point) for term in condition.terms]
            return all(met) if isinstance(condition, Every) else any(met)
        parent = condition.parent_point(point)
        asked = [(parent, name) for name in condition.names]
        if parent < self.graph.start or self.group.isdisjoint(asked):
            return True
        # Of a family the members count as they are that are not of the group.
        made = [
            not (self._made if one in self.group else self._ever)[one].isdisjoint(
                condition.outputs
            )
            for one in asked
        ]
        return all(made) if condition.every else any(made)

    def _children(self, key: Key) -> Iterator[Key]:
        for arrow in self.graph.arrows:
            for leaf in leaves(arrow.condition):
                for point in arrow.points if key[1] in leaf.names else ():
                    if leaf.parent_point(point) == key[0]:
                        yield from ((point, name) for name in arrow.targets)


def _core(key: Key) -> tuple[Point, str]:
    return (Point(key[0]), key[1])
