"""Holds the state of a run: pooled tasks, what is remembered, and counters derived from both.

Theory of operation. Only `step` and the rules that it calls change a pool. What is stored
are the tasks, the memories, the chains, the absolute atoms, the flows and the run's own
settings; everything else (counters, queues, group counts) is derived from these and rebuilt on
restart (`persistence.rebuild`). Each counter exists so that a step need not look at tasks which
it does not touch: `standings` for idleness, `counted` for the runahead base, `population` for
what may be evicted, `flow_counts` for flows that end. `PointCounter` counts by point, so that
the earliest point which holds something is known without a search; `GroupCount` counts the
members of a family by their values.

A `StepContext` is what one step touched, what it wants done and what is still to be looked at;
every rule is handed it. Rules change the pool in place and say what they touched; the
frozen changes are made from that afterwards, once for all steps of a batch
(`persistence.changes`).
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import field
from enum import StrEnum
from heapq import heapify, heappop, heappush
from typing import Protocol

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.cycling.style import PointWords
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.dependency_index import Ask, AtomMeaning, DependencyIndex, IndexedNode
from tidewheel.core.sched.events import Effect, Notice
from tidewheel.core.sched.task_state import (
    FIRST_FLOW,
    AtomValue,
    Flows,
    Key,
    PooledTask,
    PoolState,
    TaskHistory,
    VerdictKind,
)
from tidewheel.lazy_dataclasses import dataclass

_WAITING, _UNRELEASED = PoolState.WAITING, PoolState.UNRELEASED

AbsoluteKey = AtomMeaning  # of an atom at a fixed point


NOTHING_RAN = "completed without running anything: no task was ready at any point"


class RunStatus(StrEnum):
    """Says what a run as a whole is doing (SEMANTICS §9)."""

    RUNNING = "running"
    PAUSED = "paused"
    WAITING_FOR_RELEASE = "waiting for release"
    STALLED = "stalled"
    STOPPING = "stopping"
    STOPPED = "stopped"
    COMPLETED = "completed"


class Past(Protocol):
    """Answers for tasks whose histories the pool has dropped; it is only ever read.

    A step does no I/O: its caller has fetched what it may need before (`neighbourhood` of
    `dependents`), and fetches more if that was not enough.
    """

    def recall(self, point: Point, name: str) -> TaskHistory | None:
        """Returns all that was last known of a task, for the pool to keep and change.

        Raises PastNeeded if that was not fetched.
        """
        ...


class PastNeeded(Exception):
    """A step needs the past of a task that was not fetched.

    What the step had decided by then stands in its pool, which is of no use any more: it is
    made again from what is stored, and the events are applied to that with more of the past.
    """

    def __init__(self, key: Key) -> None:
        super().__init__(f"the past of {key} was not fetched")
        self.key = key


class NoPast:
    """Is the past of a run that has forgotten nothing yet."""

    def recall(self, point: Point, name: str) -> TaskHistory | None:  # noqa: ARG002
        return None


@dataclass(slots=True)
class FlowState:
    """Holds a flow and how far it may go. A `stopped` flow spawns nothing."""

    number: int
    until: Point | None = None
    until_tasks: frozenset[Key] = frozenset()
    # Dependence on points before this one counts as met in this flow.
    ignore_before: Point | None = None
    # Chains that an absolute parent starts in this flow begin here.
    chains_from: Point | None = None
    stopped: bool = False
    text: str = ""


@dataclass(slots=True)
class RunState:
    """Holds the state of a run besides its tasks: status, bounds, what operators asked for."""

    start: Point
    stop: Point | None = None
    hold_after: Point | None = None
    stop_after: Key | None = None
    paused: bool = False
    stopping: str = ""  # how: clean, now, kill
    status: RunStatus = RunStatus.RUNNING
    prune_across_points: bool = False
    held_tasks: dict[Key, None] = field(default_factory=dict)  # also those not yet spawned
    # Nobody spawns them any more: a reload brought them too late, or their flow was stopped.
    missed: dict[Key, None] = field(default_factory=dict)
    flows_made: int = 1
    order: int = 0  # of becoming ready
    has_submitted: bool = False
    # Below this point everything was forgotten that the graph cannot reach any more.
    horizon: Point | None = None
    # From which point to which tasks were looked for that ask for parents who are never there.
    looked_at: tuple[Point, Point] | None = None
    # How its points are written, for those who look at many runs and read no definition. None:
    # an earlier version stored the run.
    point_words: PointWords | None = None


@dataclass(slots=True)
class LimitQueue:
    """Holds the tasks of a limit group that are ready, and how many are active."""

    limit: int
    active: int = 0
    heap: list[tuple[Point, int, Key]] = field(default_factory=list)


class TaskPool:
    """Holds the state of a run in memory: its stored parts, and what is derived from them."""

    def __init__(self, plan: DependencyIndex, run: RunState, past: Past | None = None) -> None:
        self.plan = plan
        self.run = run
        run.point_words = plan.graph.cycling.style.words
        self.past: Past = past or NoPast()
        # Stored.
        self.tasks: dict[Key, PooledTask] = {}
        self.memory: dict[Point, dict[str, TaskHistory]] = {}
        self.chains: dict[tuple[str, int], Point] = {}
        self.absolute: dict[AbsoluteKey, dict[int, AtomValue]] = {}
        self.flows: dict[int, FlowState] = {1: FlowState(1)}
        # Derived.
        self.everyone_counts = plan.policy.every_task_counts
        # In which ways parents are asked for that may be off their sequences.
        prunes = plan.policy.prunes_unreachable
        self.asks = [one for one in plan.asks if prunes and _may_be_in_vain(one, run.start)]
        self.standings = [0] * len(PoolState)
        self.counted = PointCounter()
        self.population = PointCounter()
        self.beyond_limit: dict[Point, dict[Key, PooledTask]] = {}
        self.beyond_limit_heap: list[Point] = []
        self.may_admit = True  # whether looking for tasks to release can find any
        self.flow_counts: dict[int, int] = {}
        self.waiting_for: dict[AbsoluteKey, dict[Key, None]] = {}
        self.hearing: dict[Key, None] = {}  # tasks that have `heard` something
        self.serving: dict[Key, None] = {}  # services whose jobs run
        self.groups: dict[tuple[int, Point], dict[int, GroupCount]] = {}
        self.queues = [LimitQueue(limit) for limit in plan.limits]
        self.base: Point | None = None
        self.limit: Point | None = None  # the last point that may be admitted
        self.scratch: StepContext | None = None  # of the last step, to be used again
        self.window: list[Point] = []  # the points from the base to the limit
        # What was to be evaluated too far ahead, until the run comes there: (task, flow).
        self.ahead: dict[tuple[Key, int], None] = {}
        # The last point of each flow up to which dead atoms of fixed points were evaluated.
        self.fronts: dict[int, Point] = {}

    def recall(self, point: Point, name: str) -> TaskHistory | None:
        """Returns a task's history, from the past if it was dropped; None if there is none."""
        there = self.memory.get(point)
        memory = None if there is None else there.get(name)
        if memory is None and self.run.horizon is not None and point < self.run.horizon:
            return self.past.recall(point, name)
        return memory

    def begin(self, point: Point, name: str, flows: Flows) -> TaskHistory:
        """Returns the history of a task that is spawned in these flows; begins it, if there is
        none. What it says then is said by the task's row in the pool, too."""
        there = self.memory.get(point)
        if there is None:
            there = self.memory[point] = {}
        horizon = self.run.horizon
        if name not in there and (horizon is None or point >= horizon):
            memory = there[name] = TaskHistory(flows)
            return memory
        memory = self.remember(point, name)
        if memory.is_blank:
            memory.spawned = flows
        return memory

    def remember(self, point: Point, name: str) -> TaskHistory:
        """Returns the history of a task, to be changed; begins an empty one if it has none."""
        there = self.memory.get(point)
        if there is None:
            there = self.memory[point] = {}
        memory = there.get(name)
        if memory is None:
            horizon = self.run.horizon
            if horizon is not None and point < horizon:
                memory = self.past.recall(point, name)
            memory = there[name] = memory or TaskHistory()
        return memory

    def stand(self, task: PooledTask, standing: PoolState) -> None:
        """Gives a task another standing, and changes the counters that depend on it."""
        old = task.standing
        self.standings[old] -= 1
        self.standings[standing] += 1
        task.standing = standing
        if standing is _UNRELEASED:
            self.may_admit = True
        if not self.everyone_counts:
            if old is _WAITING:
                self.counted.add(task.point)
                if self.base is not None and task.point < self.base:
                    self.may_admit = True
            elif standing is _WAITING:
                self.counted.remove(task.point)

    def add(self, task: PooledTask) -> None:
        """Puts a task into the pool, to wait beyond the limit unless it was admitted."""
        point, standing = task.point, task.standing
        self.tasks[task.key] = task
        try:  # as nearly always: a call costs more than the counting
            self.population.counts[point] += 1
        except KeyError:
            self.population.add(point)
        self.standings[standing] += 1
        if standing is not _WAITING or self.everyone_counts:
            try:
                self.counted.counts[point] += 1
            except KeyError:
                self.counted.add(point)
        counts, flows = self.flow_counts, task.flows
        if flows is FIRST_FLOW and 1 in counts:
            counts[1] += 1
        else:
            for flow in flows:
                counts[flow] = counts.get(flow, 0) + 1
        if not task.admitted:
            self.put_beyond_limit(task)

    def put_beyond_limit(self, task: PooledTask) -> None:
        there = self.beyond_limit.get(task.point)
        if there is None:
            there = self.beyond_limit[task.point] = {}
            heappush(self.beyond_limit_heap, task.point)
        there[task.key] = task
        self.may_admit = True

    def dismiss(self, task: PooledTask) -> None:
        """Takes a task out of the pool."""
        key, point, standing = task.key, task.point, task.standing
        del self.tasks[key]
        there = self.population.counts
        count = there[point]
        if count > 1:
            there[point] = count - 1
        else:
            self.population.remove(point)
        self.standings[standing] -= 1
        if standing is not _WAITING or self.everyone_counts:
            there = self.counted.counts
            count = there[point]
            if count > 1:
                there[point] = count - 1
            else:
                self.counted.remove(point)
        counts, flows = self.flow_counts, task.flows
        if flows is FIRST_FLOW:
            counts[1] -= 1
        else:
            for flow in flows:
                counts[flow] -= 1
        if not task.admitted:
            self.beyond_limit[point].pop(key, None)
        if self.hearing:
            self.hearing.pop(key, None)
        if task.plan.waits_for_absolute:
            for waiting in self.waiting_for.values():
                waiting.pop(key, None)

    def flows_without(self, task: PooledTask) -> list[int]:
        """Returns the flows that have tasks, but not this one."""
        return [flow for flow in self.flow_counts if flow not in task.flows]

    def last_admitted(self) -> Point:
        """Returns the last point that holds an admitted task; the start if none is."""
        beyond_limit = self.beyond_limit
        return max(
            (
                point
                for point, count in self.population.counts.items()
                if count > len(beyond_limit.get(point, ()))
            ),
            default=self.run.start,
        )

    def node(self, name: str) -> IndexedNode:
        return self.plan.nodes[name]


def _may_be_in_vain(ask: Ask, start: Point) -> bool:
    """Says whether a parent may be off its sequence at all, in a run that starts there. On the
    child's own sequence none is that lies some of its steps before the child."""
    shift, first = ask.leaf.shift, ask.sequence.sequence.first
    return (
        shift is None
        or shift > 0
        or first is None
        or first > start
        or ask.sequence not in ask.parents
        or not ask.sequence.sequence.repeats_after(-shift)
    )


class PointCounter:
    """Counts how many things lie at each point. The heap may hold points that became empty."""

    __slots__ = ("_heap", "counts", "emptied")

    def __init__(self) -> None:
        self.counts: dict[Point, int] = {}
        self.emptied = False  # whether a point became empty since somebody looked
        self._heap: list[Point] = []

    def add(self, point: Point) -> None:
        counts = self.counts
        if point in counts:
            counts[point] += 1
        else:
            counts[point] = 1
            heappush(self._heap, point)

    def remove(self, point: Point) -> None:
        count = self.counts[point] - 1
        if count:
            self.counts[point] = count
        else:
            del self.counts[point]
            self.emptied = True
            if len(self._heap) > 2 * len(self.counts) + 64:
                self._heap = list(self.counts)
                heapify(self._heap)

    def earliest(self) -> Point | None:
        heap, counts = self._heap, self.counts
        while heap:
            if heap[0] in counts:
                return heap[0]
            heappop(heap)
        return None


class GroupCount:
    """Counts the members of a family by their values, at one point in one flow."""

    __slots__ = ("counts", "values")

    def __init__(self, members: int) -> None:
        self.values: dict[str, AtomValue] = {}
        self.counts = [0, 0, members, 0]

    def put(self, member: str, value: AtomValue) -> None:
        self.counts[self.values.get(member, AtomValue.OPEN)] -= 1
        self.counts[value] += 1
        self.values[member] = value

    def value(self, every: bool) -> AtomValue:
        """Returns the family's value: its members' least if all must count, else the most.

        All of no elements are there, any is not.
        """
        order = (0, 1, 2, 3) if every else (3, 2, 1, 0)
        return next((AtomValue(one) for one in order if self.counts[one]), AtomValue(order[-1]))


@dataclass(slots=True, eq=False, repr=False)
class Touched:
    """Holds the keys of what a step, or several, may have changed; values only if forgotten.

    What is in `memory` as well was changed before it was forgotten, or is remembered again.
    """

    # One is made for each step: a parameter for each of these would cost as much as its dict.
    tasks: dict[Key, None] = field(init=False, default_factory=dict)
    memory: dict[Key, None] = field(init=False, default_factory=dict)
    chains: dict[tuple[str, int], None] = field(init=False, default_factory=dict)
    absolute: dict[AbsoluteKey, None] = field(init=False, default_factory=dict)
    flows: dict[int, None] = field(init=False, default_factory=dict)
    forgotten: dict[Key, TaskHistory] = field(init=False, default_factory=dict)
    run: bool = field(init=False, default=False)

    def add(self, other: Touched) -> None:
        """Adds what another step touched: a batch has touched what its steps have."""
        self.tasks |= other.tasks
        self.memory |= other.memory
        if other.forgotten:
            self.forgotten |= other.forgotten
        if other.chains:
            self.chains |= other.chains
        if other.absolute or other.flows:
            self.absolute |= other.absolute
            self.flows |= other.flows
        self.run = self.run or other.run


@dataclass(slots=True, eq=False, repr=False)
class StepContext:
    """Is the step that is being made, with its agenda: what is still to be done before it ends.

    The agenda has a list for each kind of work. `step._follow_up` takes the kinds in one order,
    and a whole list at a time: suicides, evaluations and searches for blocked tasks,
    chains; then suicides again, flows that arrived and tasks to be spawned. So what is decided
    does not depend on which rule was first to ask for it. Tasks that became ready, and limit
    groups that were freed, wait until nothing else is left.
    """

    pool: TaskPool
    # Anew for each step: what was to be looked at has been when one ends.
    plan: DependencyIndex = field(init=False)
    now: Instant = field(init=False)
    touched: Touched = field(init=False)
    effects: list[Effect] = field(init=False)
    # Whether nothing in this step can lead to a task before the runahead base.
    base_is_firm: bool = False
    # Tasks into which a suicide arrow leads from an output that was made.
    suicides: list[tuple[IndexedNode, Point, Flows]] = field(default_factory=list)
    # Tasks of which an atom became unreachable, or reachable again: (task, flow).
    to_evaluate: list[tuple[Key, int]] = field(default_factory=list)
    # Nodes of which the next task is sought that a lost atom at a fixed point blocks:
    # (node, flow, the last point that was evaluated, how many more may be).
    to_seek_blocked: list[tuple[IndexedNode, int, Point, int]] = field(default_factory=list)
    # Heads of chains that left, and chains to be begun: (node, flow, first point).
    chains_to_advance: list[PooledTask] = field(default_factory=list)
    chains_to_start: list[tuple[IndexedNode, int, Point]] = field(default_factory=list)
    # Tasks that ran with --wait, and the flows that have now arrived there.
    flows_arrived: list[tuple[IndexedNode, Point, Flows]] = field(default_factory=list)
    # Tasks that are spawned whatever they lack.
    to_spawn: list[tuple[IndexedNode, Point, Flows]] = field(default_factory=list)
    # Elements that left: in another flow, with another list, it is their turn now.
    elements_left: list[tuple[IndexedNode, Point]] = field(default_factory=list)
    # Tasks that became ready, in order, and limit groups in which there may be room again.
    ready: list[PooledTask] = field(default_factory=list)
    freed: dict[int, None] = field(default_factory=dict)

    def evaluate(self, key: Key, flows: Iterable[int]) -> None:
        """Has a task evaluated again in each of these flows."""
        self.to_evaluate.extend([(key, flow) for flow in flows])

    def evaluate_pruned(
        self, key: Key, memory: TaskHistory | None, flows: AbstractSet[int]
    ) -> None:
        """Has a task evaluated again in those of these flows in which it was pruned."""
        if memory is not None:
            for flow in flows & memory.verdicts.keys():
                if memory.verdicts[flow].kind is VerdictKind.PRUNED:
                    self.to_evaluate.append((key, flow))

    def notice(self, event: str, task: Key | None, text: str) -> None:
        self.effects.append(Notice(event, task, text))
