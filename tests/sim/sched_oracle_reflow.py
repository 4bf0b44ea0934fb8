"""Judges runs in which operators start new flows: what each flow must have done.

Theory of operation. Which flows meet in one task is a race, so the flows that each task had
are taken from the run. Given those and the ends of the jobs, each flow is judged by itself: a
task that the flow came to has the fate that was seen, every other one is judged by the oracle's
rules (SEMANTICS §2 to §5). As no task waits for itself, there is one solution; so it is enough
to look at each task alone. Nobody may have been left out whose parents are done in the flow,
nobody may have run before them or twice, and whoever waits in several flows is worth what these
know together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from random import Random

from tests.kit.scenario import Scenario, compile_flow
from tests.sim.sched_oracle import (
    FAILED,
    STARTED,
    SUBMIT_FAILED,
    SUBMITTED,
    SUCCEEDED,
    Every,
    Fate,
    Graph,
    Key,
    Leaf,
    Oracle,
    Try,
    Worth,
    is_element,
    leaves,
)
from tests.sim.sched_oracle_flow import flow_text
from tests.sim.sched_oracle_lists import (
    SIZE_MAX,
    draw_with_lists,
    everywhere,
    size_text,
    with_sizes,
)
from tests.sim.sched_oracle_runs import ENDS, Broken
from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched import events
from tidewheel.core.sched.events import Event, FlowChoice, Submit
from tidewheel.errors import Refused

STEPS_MAX = 4_000
IMPLIED = {SUCCEEDED: (SUBMITTED, STARTED), FAILED: (SUBMITTED, STARTED), STARTED: (SUBMITTED,)}
WORDS: Mapping[Worth | None, str] = {Worth.LOST: "lost", Worth.NOT_TAKEN: "not taken"}
Made = defaultdict[Key, defaultdict[str, set[int]]]


class FlowOracle(Oracle):
    """The fates of all tasks in one flow, given those that the flow came to."""

    def __init__(
        self, graph: Graph, seen: Mapping[Key, Fate], borrowed: frozenset[int] = frozenset()
    ) -> None:
        self._seen = seen
        self.borrowed = borrowed  # points at which it has the list of another flow
        super().__init__(graph, {})

    def is_listed(self, point: int) -> Worth:
        return Worth.TRUE if point in self.borrowed else super().is_listed(point)

    def _judge(self, key: Key) -> Fate:
        return self._seen.get(key) or super()._judge(key)

    def _run(self, key: Key) -> Fate:
        del key
        return Fate("due")  # all it needs is there, and the flow did not come to it


class FlowsOracle(FlowOracle):
    """What several flows know together: the best of what each does."""

    def __init__(self, graph: Graph, flows: Iterable[FlowOracle]) -> None:
        self._flows = list(flows)
        super().__init__(self._with_longest_lists(graph), {})

    def _with_longest_lists(self, graph: Graph) -> Graph:
        """Of lists of several flows the longest counts."""
        sizes: dict[int, int] = {}
        for part in (one.graph.list for one in self._flows):
            for point, size in () if part is None else part.sizes.items():
                sizes[point] = max(size, sizes.get(point, 0))
        return with_sizes(graph, sizes)

    def atom(self, point: int, name: str, output: str) -> Worth:
        return max(one.atom(point, name, output) for one in self._flows)

    def is_listed(self, point: int) -> Worth:
        return max(one.is_listed(point) for one in self._flows)


class ReflowRun:
    """A run in which new flows are started; its jobs end as drawn for each submission."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        drawn = everywhere(draw_with_lists(seed).graph)
        arrows = tuple(one for one in drawn.arrows if not one.suicide)
        self.graph = replace(drawn, arrows=arrows, retries={}, limit=None, runahead=None)
        # By flow: how many elements there are at a point; the first number counts.
        self.sizes: defaultdict[int, dict[int, int]] = defaultdict(dict)
        self._told_size: dict[Key, tuple[int, int]] = {}  # by jobs that have not ended
        self._lists: dict[tuple[int, int], int] = {}  # which submission returned them
        self._borrowed: defaultdict[int, set[int]] = defaultdict(set)  # by flow
        self.seed = seed
        self.placed = self.graph.placed()
        self.failing = self.rng.choice((0.0, 0.1, 0.3))
        self.history: list[str] = []
        self.triggered: set[tuple[Key, int]] = set()
        self.finished: dict[tuple[Key, int], Fate] = {}
        self.made: Made = defaultdict(lambda: defaultdict(set))
        self.told: Made = defaultdict(lambda: defaultdict(set))  # so that children are spawned
        self._own: defaultdict[Key, set[str]] = defaultdict(set)  # made since it is pooled
        self._awaited: dict[Key, set[int]] = {}  # by an incomplete task that was met
        self._now: set[Key] = set()  # triggered, and not submitted since
        self._jobs: dict[Key, list[Event]] = {}
        self._read = 0
        self._rules = Oracle(self.graph, {})
        self.run = Scenario(
            compile_flow(flow_text(self.graph)), start=self.graph.start, start_jobs=False
        )
        self._take_effects()

    def plays(self, flows: int) -> None:
        """Starts so many flows, each whenever and wherever, and goes on to the end."""
        keys = list(self._rules.fates)
        if elements := [key for key in keys if is_element(key[1])]:  # as often as others
            keys += elements * (len(keys) // len(elements))
        rate = self.rng.choice((0.02, 0.1, 0.3))
        for _ in range(STEPS_MAX):
            if keys and flows and (not self._jobs or self.rng.random() < rate):
                flows -= 1
                self._reflows(self.rng.choice(keys))
            elif not self._jobs:
                return
            else:
                self._ends_something()
            if self.rng.random() < 0.05:
                self.history.append("restart")
                self.run.restarts(None if self.graph.list is None else tuple)
        raise Broken(f"still running after {STEPS_MAX} steps")

    def _reflows(self, key: Key) -> None:
        core = self.run.core
        flow = core.run.flows_made + 1
        task = core.tasks.get(_core(key))
        if is_element(key[1]) and not self._borrows(key, flow):
            return
        if task is None or not task.is_active:
            self._now.add(key)
            self.triggered.add((key, flow))
        event = events.TasksTriggered(tasks=(_core(key),), at=self.run.now, flow=FlowChoice.NEW)
        self.history.append(f"reflow {key[0]}/{key[1]}")
        self._apply(event)

    def _borrows(self, key: Key, flow: int) -> bool:
        """Whether an element is there in any flow; if so, a new one has the longest list."""
        point, name = key
        task = self.run.core.tasks.get(_core(key))
        among = self.sizes if task is None else task.flows
        found = [(self.sizes[one][point], one) for one in among if point in self.sizes[one]]
        if max(found, default=(0, 0))[0] <= int(name.partition("_f")[2]):
            event = events.TasksTriggered(tasks=(_core(key),), at=self.run.now)
            try:
                self.run.happens(event)
            except Refused:
                return False
            raise Broken(f"{point}/{name} is not there, and was triggered")
        size, of = max(found)
        self.sizes[flow][point], self._lists[flow, point] = size, self._lists[of, point]
        self._borrowed[flow].add(point)
        return True

    def _ends_something(self) -> None:
        key = self.rng.choice(sorted(self._jobs))
        event = self._jobs[key].pop(0)
        if not self._jobs[key]:
            del self._jobs[key]
        output = event.output if isinstance(event, events.OutputMade) else ""
        if isinstance(event, events.JobEnded):
            output = next(word for word, how in ENDS.items() if how is event.how)
        self.history.append(f"{key[0]}/{key[1]} {output}")
        flows = self.run.core.tasks[_core(key)].flows
        if self._is_size(output):
            size, _, submit = output[2:-1].partition("@")
            self._told_size[key] = int(size), int(submit)
        if output == SUCCEEDED and (told := self._told_size.pop(key, None)) is not None:
            for flow in flows:
                self._has_list(flow, key[0], *told)
        for one in (*IMPLIED.get(output, ()), output):
            self.told[key][one] |= flows - self.made[key][one]
            self.made[key][one] |= flows
            self._own[key].add(one)
        ends = isinstance(event, events.JobEnded)
        stays = not ends or not self._finishes(key, output, flows)
        self._apply(event)
        task = self.run.core.tasks.get(_core(key))  # perhaps one of another flow, then
        if stays is not (task is not None and not task.flows.isdisjoint(flows)):
            raise Broken(f"{key[0]}/{key[1]} {output}: {'left' if stays else 'stays'}")

    def _has_list(self, flow: int, point: int, size: int, submit: int) -> None:
        if point in self._borrowed[flow]:  # its own is better
            self._borrowed[flow].remove(point)
            del self.sizes[flow][point]
        if point not in self.sizes[flow]:
            self.sizes[flow][point], self._lists[flow, point] = size, submit

    def _finishes(self, key: Key, end: str, flows: frozenset[int]) -> bool:
        """SEMANTICS §3: who is complete leaves, everybody else stays."""
        own = frozenset(self._own[key])
        succeeded = SUCCEEDED in own  # perhaps in an earlier submission
        ends = {SUCCEEDED, end} if succeeded else {end}
        if not any(self._rules.is_complete(key[1], own, one) for one in ends):
            return False
        del self._own[key]
        death = Worth.NOT_TAKEN if succeeded else Worth.LOST
        for flow in flows:
            made = frozenset(one for one, where in self.made[key].items() if flow in where)
            self.finished[key, flow] = Fate("ran", death, made, end)
        return True

    def _apply(self, event: Event) -> None:
        before = {key: (task.flows, task.ended) for key, task in self.run.core.tasks.items()}
        self.run.happens(event)
        for core_key, task in self.run.core.tasks.items():
            key = (int(core_key[0]), core_key[1])
            old, ended = before.get(core_key, (task.flows, ""))
            new = set(task.flows - old)
            if new and ended:
                self._awaited[key] = new
            elif new and key in self._awaited:
                self._awaited[key] |= new
            elif new and task.is_active and key not in self._now:
                for one in self._own[key]:
                    self.made[key][one] |= new
        self._take_effects()

    def _take_effects(self) -> None:
        for effect in self.run.effects[self._read :]:
            if isinstance(effect, Submit):
                key = (int(effect.task[0]), effect.task[1])
                self._check(key, effect.flows)
                self._jobs[key] = list(self._job(key, effect.submit))
        self._read = len(self.run.effects)

    def _check(self, key: Key, flows: frozenset[int]) -> None:
        """Nobody runs twice in a flow, or before what it needs was made in its flows."""
        again = [flow for flow in flows if (key, flow) in self.finished]
        if again:
            raise Broken(f"{key[0]}/{key[1]} runs again in flow {again}")
        if key in self._now:
            self._now.remove(key)
            self._awaited.pop(key, None)
            return
        awaited = self._awaited.pop(key, set(flows))
        if FlowsOracle(self.graph, map(self.oracle, awaited)).worth_of(key)[0] < Worth.TRUE:
            raise Broken(f"{key[0]}/{key[1]} runs in {sorted(flows)} before its parents")

    def _job(self, key: Key, submit: int) -> Iterator[Event]:
        rng = Random(f"{self.seed}/{key}/{submit}")
        failed = rng.random() < self.failing
        end = rng.choice((FAILED, FAILED, SUBMIT_FAILED)) if failed else SUCCEEDED
        customs = [one for one in self.graph.customs.get(key[1], ()) if rng.random() < 0.7]
        job = Try(end, tuple(customs) if end != SUBMIT_FAILED else ())
        core, now = _core(key), self.run.now
        if end != SUBMIT_FAILED:
            yield events.OutputMade(core, submit, STARTED, now)
        for one in job.customs:
            yield events.OutputMade(core, submit, one, now)
        part = self.graph.list
        if part is not None and key[1] == part.source and end == SUCCEEDED:
            size = rng.choice((part.sizes[key[0]], rng.randint(0, SIZE_MAX)))
            yield events.OutputMade(core, submit, size_text(size, submit), now)
        yield events.JobEnded(core, submit, ENDS[end], now)

    def _is_size(self, output: str) -> bool:
        return output.startswith("l[")

    # What each flow must have done.

    def oracle(self, flow: int) -> FlowOracle:
        graph = with_sizes(self.graph, self.sizes[flow])
        return FlowOracle(graph, self.seen_in(flow), frozenset(self._borrowed[flow]))

    def seen_in(self, flow: int) -> dict[Key, Fate]:
        """The fates of all tasks that a flow came to; of pooled ones, what they have made."""
        found = {key: fate for (key, one), fate in self.finished.items() if one == flow}
        for core_key, task in self.run.core.tasks.items():
            if flow in task.flows:
                key = (int(core_key[0]), core_key[1])
                made = frozenset(one for one, where in self.made[key].items() if flow in where)
                found[key] = Fate("pooled", None, made)
        return found

    def disagreements(self) -> list[str]:
        flows = range(1, self.run.core.run.flows_made + 1)
        oracles = {flow: self.oracle(flow) for flow in flows}
        found = [one for flow in flows for one in self._left_out(flow, oracles[flow])]
        found += self._misjudged(oracles)
        expected = "stalled" if self.run.core.tasks else "completed"
        if self.run.status != expected:
            found.append(f"the run {self.run.status}, expected: {expected}")
        for (key, flow), word in self.run.verdicts_by_flow.items():
            fate = oracles[flow].fates.get((int(key[0]), key[1]))
            if fate is None or (fate.word, WORDS.get(fate.death)) != ("pruned", word):
                found.append(f"{key[0]}/{key[1]} is {word} in flow {flow}, expected: {fate}")
        return found

    def _left_out(self, flow: int, oracle: FlowOracle) -> Iterator[str]:
        for key in sorted(oracle.with_word("due")):
            if self._waits_for_another(key, flow):
                continue
            if self._is_told(oracle, key, flow) or self._is_in_chain(oracle, key, flow):
                yield f"{key[0]}/{key[1]} did not run in flow {flow}"

    def _waits_for_another(self, key: Key, flow: int) -> bool:
        """Whether an element of another list has its name: it comes when that one has left."""
        task = self.run.core.tasks.get(_core(key))
        if task is None or not is_element(key[1]):
            return False
        own = self._lists.get((flow, key[0]))
        return any(self._lists.get((other, key[0])) != own for other in task.flows)

    def _is_told(self, oracle: FlowOracle, key: Key, flow: int) -> bool:
        """Whether an output that the flow made spawns a task."""
        return any(
            leaf.absolute is None and self._tells(oracle, leaf, key[0], flow)
            for leaf in self._leaves(key)
        )

    def _tells(self, oracle: FlowOracle, leaf: Leaf, point: int, flow: int) -> bool:
        """Whether what a task waits for was made in a flow, and not before that came there."""
        parent = leaf.parent_point(point)
        atoms = [((parent, name), one) for name in leaf.names for one in leaf.outputs]
        return (
            self._is_inside(parent)
            and oracle.worth_of_leaf(leaf, point) is Worth.TRUE
            and all(
                flow in self.told[task][one] or flow not in self.made[task][one]
                for task, one in atoms
            )
        )

    def _is_in_chain(self, oracle: FlowOracle, key: Key, flow: int) -> bool:
        """Whether nobody need spawn it, and its chain was begun in the flow."""
        if not self._is_parentless(oracle, key):
            return False
        by_fixed = any(
            leaf.absolute is not None and self._tells(oracle, leaf, key[0], flow)
            for leaf in self._leaves(key)
        )
        by_trigger = any(
            one == flow and name == key[1] and point < key[0]
            for (point, name), one in self.triggered
            if self._is_parentless(oracle, (point, name))
        )
        return flow == 1 or by_fixed or by_trigger

    def _is_parentless(self, oracle: FlowOracle, key: Key) -> bool:
        def holds(condition: object) -> bool:
            if isinstance(condition, Leaf):
                parent = condition.parent_point(key[0])
                counts = condition.absolute is not None or not self._is_inside(parent)
                return counts and oracle.worth_of_leaf(condition, key[0]) is Worth.TRUE
            terms = [holds(term) for term in condition.terms]  # type: ignore[attr-defined]
            return all(terms) if isinstance(condition, Every) else any(terms)

        return all(holds(one) for one in oracle.conditions(key))

    def _is_inside(self, point: int) -> bool:
        return self.graph.start <= point <= self.graph.final

    def _leaves(self, key: Key) -> Iterator[Leaf]:
        for condition in self._rules.conditions(key):
            yield from leaves(condition)

    def _misjudged(self, oracles: Mapping[int, FlowOracle]) -> Iterator[str]:
        """Pooled tasks that are not there for the reason that their flows give."""
        for one, word in self.run.pool.items():
            key = self.run.key(one)
            task = self.run.core.tasks[key]
            plain = (int(key[0]), key[1])
            if word in ENDS:
                continue
            flows = self._awaited.get(plain, task.flows)
            overall, own = FlowsOracle(self.graph, (oracles[flow] for flow in flows)).worth_of(
                plain
            )
            expected = {Worth.OPEN: "waiting", Worth.LOST: "blocked"}.get(overall, "gone")
            if own is Worth.LOST:
                expected = "gone"
            if plain in self._awaited and overall is not Worth.TRUE:
                expected = "waiting"  # it was submitted: nobody prunes it
            if word != expected:
                yield f"{one} is {word} in {sorted(task.flows)}, expected: {expected}"


def _core(key: Key) -> tuple[Point, str]:
    return (Point(key[0]), key[1])
