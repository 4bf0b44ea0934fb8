"""Finds tasks that a reload brings too late: nothing spawns them any more (SEMANTICS §8).

A task is spawned by an output of a parent or by its chain. Where its parents had made what it
needs before a definition had the task, or its point had passed, neither happens again: such
tasks come on demand. So do those that need an output which is new with the reload, of a parent
that had ended before: no job has decided that they are not to run. They are told with the
reload, and the newest are kept, so that the end of the run tells them, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.definition import element_name
from tidewheel.core.graph.outputs import STANDARD
from tidewheel.core.sched.dependency_index import (
    DependencyIndex,
    IndexedAtom,
    IndexedNode,
    names_of,
)
from tidewheel.core.sched.elements import is_there, size_at
from tidewheel.core.sched.evaluation import leaf_value, worth
from tidewheel.core.sched.flows import active_flows, may_spawn, stopped_flows
from tidewheel.core.sched.index_builder import BAD_ENDS
from tidewheel.core.sched.limits import is_parentless
from tidewheel.core.sched.pool import PastNeeded, TaskPool
from tidewheel.core.sched.reachability import chain_text
from tidewheel.core.sched.task_state import (
    NO_FLOW,
    AtomValue,
    Flows,
    Key,
    TaskHistory,
    VerdictKind,
)
from tidewheel.lazy_dataclasses import NamedTuple

TOLD_MAX = 10  # of one name, in one sentence; the rest are counted
ValueOfAtom = Callable[[IndexedAtom, Flows], AtomValue]
POINTS_MAX = 10_000  # looked at of one node; of more only those that are still remembered


class Missed(NamedTuple):
    """Holds the tasks of one name that a reload brought too late, the oldest first.

    `before`: so did all that come before this point, which were not looked at.
    """

    keys: tuple[Key, ...]
    before: Point | None
    has_parents: bool
    comes_later: bool  # at later points
    where: str  # " in flow 1", if another flow may still bring some of them
    lacks: str  # an output that is new with the reload, and that the newest needs; or ""

    def to_keep(self, pool: TaskPool) -> tuple[Key, ...]:
        """Returns those that somebody may take for done at the end of the run: at points that
        are still remembered; of tasks without parents that come later, none; of those that
        never come, at least the newest."""
        if self.comes_later and not self.has_parents:
            return ()
        horizon = pool.run.start if pool.run.horizon is None else pool.run.horizon
        kept = tuple(key for key in self.keys if key[0] >= horizon)
        return kept if kept or self.comes_later else self.keys[-1:]

    def text(self, plan: DependencyIndex) -> str:
        """Returns which these are, why they do not run, and the command that runs them."""
        shown = self.keys[-TOLD_MAX:]
        names = ", ".join(map(plan.name_of, shown))
        if more := len(self.keys) - len(shown):
            names += f" and {more:,} before"
        if self.before is not None:
            names += f" and all before {plan.text(self.before)}"
        one = len(self.keys) == 1 and self.before is None
        itself, they = ("itself", "it needs") if one else ("themselves", "they need")
        why = f"what {they} was done before this reload"
        if self.lacks:
            why = f"{they} outputs that are new with this reload, such as {self.lacks}"
            if one:
                why = f"it needs {self.lacks}, which is new with this reload"
        elif not self.has_parents:
            why = f"{'its point' if one else 'their points'} had passed before this reload"
        run = (
            f"; to run {'it' if one else 'them'}: trigger {' '.join(map(plan.word_of, shown))}"
        )
        return f"{names} will not run by {itself}{self.where}: {why}{run}"


def missed_text(pool: TaskPool, key: Key) -> str:
    """Returns why a task does not run that a reload brought too late, or whose flow was
    stopped. It asks nobody for a past that is not at hand: the end of a run is told, too."""
    node, name = pool.node(key[1]), pool.plan.name_of(key)
    why = "what it needs was done" if node.arrows else "its point had passed"
    late, flow_ended = f"{why} before a reload added it", ""
    if stopped := stopped_flows(pool):
        flow_ended = f"{_named(stopped)} was stopped before it reached the task"
    try:
        memory = pool.recall(*key) if node.arrows else None
        if memory is not None and (not_taken := _not_taken_in(memory)):
            return chain_text(pool, key, min(not_taken))
        flows = met_in(pool, node, key[0])
    except PastNeeded:
        either = f"{late}, or {flow_ended}" if flow_ended else late
        return f"{name} does not run by itself: {either}"
    if not flows and flow_ended:
        return f"{name} does not run by itself: {flow_ended}"
    return f"{name} does not run by itself{_in_flows(pool, flows)}: {late}"


def missed_texts(pool: TaskPool) -> dict[str, str]:
    """Returns of each task that nobody spawns any more and is kept, why it does not run."""
    return {pool.plan.id_of(key): missed_text(pool, key) for key in pool.run.missed}


def count_missed(pool: TaskPool, known: Mapping[Key, TaskHistory]) -> int:
    """Returns how many tasks nobody spawned that were due; those that are lost or removed have
    another verdict, and are counted with that."""
    return sum(
        key not in known or not known[key].verdicts or bool(_not_taken_in(known[key]))
        for key in pool.run.missed
    )


def comes_by_chain(pool: TaskPool, node: IndexedNode, point: Point, flow: int) -> bool:
    """Says whether a task will be spawned by those at the points before it."""
    head = pool.chains.get((node.name, flow))
    if head is None or head > point:
        return False
    return is_parentless(pool, node, point, frozenset({flow}))


def find_missed(pool: TaskPool, old: DependencyIndex) -> Iterator[Missed]:
    """Yields what the pool's definition has, the old one had not, and nothing spawns."""
    seen = [*pool.memory, *(point for point, _ in pool.tasks)]
    if not seen:
        return
    for name, nodes in _by_name(pool).items():
        first, before = pool.run.start, None
        is_known = name in old.graph.nodes or nodes[0].element is not None
        if is_known and pool.run.horizon is not None:
            first = max(first, pool.run.horizon)
        points = list(islice(nodes[0].points(first, max(seen)), POINTS_MAX + 1))
        if len(points) > POINTS_MAX and pool.run.horizon is not None:
            before = pool.run.horizon
            points = list(islice(nodes[0].points(before, max(seen)), POINTS_MAX))
        if is_known and nodes[0].next_after(max(seen)) is None:
            points = [*_moved_back(pool, old, nodes[0]), *points]
        found = {
            (point, node.name): flows
            for point in points
            for node in nodes
            if is_there(pool, node, point)
            and needs_differ(pool, old, node, point)
            and (flows := _missed_in(pool, old, node, point))
        }
        if found:
            where = _in_flows(pool, frozenset(pool.flows).intersection(*found.values()))
            keys = tuple(found)
            comes_later = _comes_after(pool, nodes[0], keys[-1][0])
            lacks = _first_new_output(pool, old, keys[-1])
            yield Missed(keys, before, bool(nodes[0].arrows), comes_later, where, lacks)


def _moved_back(pool: TaskPool, old: DependencyIndex, node: IndexedNode) -> Iterator[Point]:
    """Yields the forgotten points that a task of the old definition did not have."""
    known, horizon = old.nodes.get(node.name), pool.run.horizon
    if known is not None and horizon is not None:
        points = node.points(pool.run.start, Point(horizon - 1))
        yield from (point for point in islice(points, POINTS_MAX) if not known.is_at(point))


def _comes_after(pool: TaskPool, node: IndexedNode, point: Point) -> bool:
    """Says whether a task comes at a later point: by its chain, or after its parents there."""
    if node.arrows:
        return node.next_after(point) is not None
    chained = any(name == node.name for name, _ in pool.chains)
    return chained or any(key[0] > point and key[1] == node.name for key in pool.tasks)


def _by_name(pool: TaskPool) -> dict[str, list[IndexedNode]]:
    """Returns the nodes of the graph by their names; of a mapped task, the elements it has."""
    for tasks in pool.plan.mapped:
        for point in pool.memory:
            size_at(pool, tasks, point, frozenset(pool.flows))
    found: dict[str, list[IndexedNode]] = {}
    for node in pool.plan.nodes.values():
        name = node.name
        if node.element is not None:
            tasks, index = node.element
            name = next(one for one in tasks.templates if element_name(one, index) == name)
        if name in pool.plan.graph.nodes and not node.definition.is_gate:
            found.setdefault(name, []).append(node)
    for nodes in found.values():
        nodes.sort(key=lambda node: node.element[1] if node.element is not None else 0)
    return found


def needs_differ(pool: TaskPool, old: DependencyIndex, node: IndexedNode, point: Point) -> bool:
    """Says whether a task has needs under the old definition that it has not now, or the other
    way about: else it is as it was for other reasons than a reload."""
    known = old.nodes.get(node.name)
    if known is None or not known.is_at(point):
        return True
    return _needs(pool.plan, node, point) != _needs(old, known, point)


def _needs(plan: DependencyIndex, node: IndexedNode, point: Point) -> set[tuple[object, ...]]:
    return {
        (leaf.parent_point(point, plan.initial), *leaf.term, *_members(leaf))
        for leaf, _ in node.leaves_at(point)
    }


def _members(leaf: IndexedAtom) -> list[str]:
    """Returns the members of a family; of a mapped task none, as its elements come and go."""
    is_family = leaf.group is not None and leaf.group.elements is None
    return sorted(names_of(leaf)) if is_family else []


def _missed_in(pool: TaskPool, old: DependencyIndex, node: IndexedNode, point: Point) -> Flows:
    """Returns the flows, ended ones too, in which what a task needs is there and yet nothing
    will spawn it; none if it has run, or still comes by its chain."""
    if (point, node.name) in pool.tasks:
        return NO_FLOW
    memory = pool.memory.get(point, {}).get(node.name)
    horizon = pool.run.horizon
    if horizon is not None and point < horizon and node.name in old.graph.nodes:
        memory = pool.recall(point, node.name)
    not_taken = NO_FLOW if memory is None else _not_taken_in(memory)
    if memory is not None and (
        memory.submits or memory.spawned.union(memory.verdicts) - not_taken
    ):
        return NO_FLOW
    if any(comes_by_chain(pool, node, point, flow) for flow in active_flows(pool)):
        return NO_FLOW

    def value(leaf: IndexedAtom, flows: Flows) -> AtomValue:
        parent = leaf.parent_point(point, pool.plan.initial)
        is_behind = horizon is not None and pool.run.start <= parent < horizon
        is_back = not pool.memory.get(parent, {}).keys().isdisjoint(names_of(leaf))
        if leaf.absolute is None and is_behind and not is_back:
            return _of_dropped(old, leaf)
        return leaf_value(pool, leaf, point, flows)

    def open_if_new(leaf: IndexedAtom, flows: Flows) -> AtomValue:
        seen = value(leaf, flows)
        return max(seen, AtomValue.OPEN) if _is_new_output(old, leaf) else seen

    late = frozenset(
        flow
        for flow in not_taken
        if all(
            seen > AtomValue.NOT_TAKEN
            for seen in _arrow_values(node, point, frozenset({flow}), open_if_new)
        )
    )
    return late | (_met_in(pool, node, point, value) - not_taken)


def _not_taken_in(memory: TaskHistory) -> Flows:
    """Returns the flows in which a task does not run, and nobody was told of it."""
    return frozenset(
        flow
        for flow, verdict in memory.verdicts.items()
        if (verdict.kind, verdict.death) == (VerdictKind.PRUNED, AtomValue.NOT_TAKEN)
    )


def _first_new_output(pool: TaskPool, old: DependencyIndex, key: Key) -> str:
    """Returns an output for want of which a task does not run, and that is new with a reload;
    "" if there is none."""
    memory = pool.recall(*key)
    if memory is None or not _not_taken_in(memory):
        return ""
    plan = pool.plan
    new = (
        plan.output_of((leaf.parent_point(key[0], plan.initial), leaf.node), leaf.output)
        for leaf, _ in pool.node(key[1]).leaves_at(key[0])
        if _is_new_output(old, leaf)
    )
    return next(new, "")


def _is_new_output(old: DependencyIndex, leaf: IndexedAtom) -> bool:
    """Says whether no task that an atom names had its output in the old definition."""
    outputs = {leaf.output} if leaf.group is None else {*leaf.group.outputs}
    known = (old.nodes[name].definition for name in names_of(leaf) if name in old.nodes)
    return outputs.isdisjoint(STANDARD) and not any(
        own in outputs for one in known for own, _ in one.outputs
    )


def met_in(pool: TaskPool, node: IndexedNode, point: Point) -> Flows:
    """Returns the flows in which everything that a task needs is there."""
    return _met_in(pool, node, point, lambda leaf, flows: leaf_value(pool, leaf, point, flows))


def _met_in(pool: TaskPool, node: IndexedNode, point: Point, value: ValueOfAtom) -> Flows:
    return frozenset(
        flow
        for flow in pool.flows
        if may_spawn(pool, flow, point)
        and all(
            seen is AtomValue.TRUE
            for seen in _arrow_values(node, point, frozenset({flow}), value)
        )
    )


def _arrow_values(
    node: IndexedNode, point: Point, flows: Flows, value: ValueOfAtom
) -> Iterator[AtomValue]:
    """Yields the value of each arrow into a task, if its atoms have these values."""
    for arrow, _ in node.arrows_at(point):
        yield worth(arrow.expression, [value(leaf, flows) for leaf in arrow.leaves])


def _in_flows(pool: TaskPool, flows: Flows) -> str:
    """Returns in which flows a task was missed, if an active one of the others may bring it."""
    if not pool.tasks or not flows or active_flows(pool) <= flows:
        return ""
    return pool.plan.in_flow(", ".join(map(str, sorted(flows))))


def _named(flows: Flows) -> str:
    return f"flow {', '.join(map(str, sorted(flows)))}"


def _of_dropped(old: DependencyIndex, leaf: IndexedAtom) -> AtomValue:
    """Returns the value of an atom of parents whose histories were dropped: as if they lay
    before the start, unless they are new, too."""
    if not old.graph.nodes.keys() & set(names_of(leaf)):
        return AtomValue.OPEN
    return AtomValue.NOT_TAKEN if leaf.output in BAD_ENDS else AtomValue.TRUE
