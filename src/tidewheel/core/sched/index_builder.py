"""Builds the scheduler's dependency index of a compiled graph.

In which order arrows and their terms get their numbers is of no consequence: numbers never
leave the process. Tests make plans with another `Order` and go on with runs under them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

from tidewheel.core.cycling.calendar import SECONDS_PER_DAY
from tidewheel.core.cycling.offset import Offset, Relative, Truncated
from tidewheel.core.cycling.sequence import Sequence
from tidewheel.core.graph.definition import (
    DEFAULT_GROUP,
    AllOf,
    Atom,
    Condition,
    Group,
    MappedOver,
    XtriggerTerm,
)
from tidewheel.core.graph.graph import CompiledArrow, Graph
from tidewheel.core.graph.outputs import EXPIRED, FAILED, SUBMIT_FAILED, SUCCEEDED
from tidewheel.core.sched.dependency_index import (
    POLICIES,
    Any,
    Ask,
    AtomMeaning,
    DependencyIndex,
    Every,
    Expression,
    IndexedArrow,
    IndexedAtom,
    IndexedElements,
    IndexedFamily,
    IndexedLink,
    IndexedNode,
    IndexedSequence,
    MappedTasks,
    PreviousInstance,
    names_of,
    shift_of,
)

BAD_ENDS = frozenset({FAILED, SUBMIT_FAILED, EXPIRED})
# At least and at most, in any calendar.
_DAYS_PER_MONTH = (28, 31)
_DAYS_PER_YEAR = (360, 366)

One = TypeVar("One")


class Order(Protocol):
    """Says in which order things of one kind are numbered."""

    def __call__(self, things: tuple[One, ...], /) -> Iterable[One]: ...


class _Planner:
    """Holds what is shared between arrows while they are read."""

    def __init__(self, graph: Graph, order: Order) -> None:
        self.graph = graph
        self.order = order
        self.sequences: dict[Sequence, IndexedSequence] = {}
        self.groups: dict[tuple[str, tuple[str, ...], bool], IndexedFamily] = {}
        self.nodes: dict[str, IndexedNode] = {
            name: self._node(name, rank) for rank, name in enumerate(graph.nodes)
        }
        self.arrows: list[IndexedArrow] = []
        self.reach_back = 0
        self.reach_ahead = 0
        # How far beyond each node the furthest of its parents lies.
        self.ahead: dict[str, int] = {}

    def sequence(self, sequence: Sequence) -> IndexedSequence:
        if sequence not in self.sequences:
            self.sequences[sequence] = IndexedSequence(sequence)
        return self.sequences[sequence]

    def _node(self, name: str, rank: int) -> IndexedNode:
        node = self.graph.nodes[name]
        special = self.graph.special
        return IndexedNode(
            name=name,
            definition=node.definition,
            completion=node.completion,
            sequences=tuple(self.sequence(one) for one in node.sequences),
            rank=rank,
            success_suffices=frozenset({SUCCEEDED}) in node.completion.alternatives,
            xtriggers=[(self.sequence(one), label) for one, label in node.xtriggers],
            in_sequence=frozenset(
                label for _, label in node.xtriggers if self._is_sequential(label)
            ),
            clock=special.wait_for_clock.get(name),
            expiry=special.expire_after.get(name),
            message=special.wait_for_message.get(name, ""),
            waits_for_more=bool(node.xtriggers)
            or name in special.wait_for_clock
            or name in special.wait_for_message,
        )

    def _is_sequential(self, label: str) -> bool:
        """Says whether an xtrigger is sequential. One that nobody defines is the wall clock
        itself, and that only goes forward."""
        known = self.graph.xtriggers.get(label)
        return known is None or known.sequential

    def read_arrow(self, index: int, arrow: CompiledArrow) -> None:
        found: dict[Atom | Group, IndexedAtom] = {}
        expression = self._expression(arrow.condition, found)
        self.add_arrow(
            IndexedArrow(
                index=index,
                sequence=self.sequence(arrow.sequence),
                leaves=tuple(found.values()),
                expression=expression,
                is_conjunction=_is_conjunction(arrow.condition),
                suicide=arrow.suicide,
            ),
            arrow.targets,
        )

    def add_arrow(self, plan: IndexedArrow, targets: tuple[str, ...]) -> None:
        plan.full = (1 << len(plan.leaves)) - 1
        self.arrows.append(plan)
        ahead = 0
        for leaf in plan.leaves:
            self._link(IndexedLink(plan, leaf))
            ahead = max(ahead, self._measure(leaf.offset))
        for target in targets:
            node = self.nodes[target]
            if ahead:
                self.ahead[target] = max(ahead, self.ahead.get(target, 0))
            if plan.suicide:
                node.suicides.append(plan)
                plan.targets.append((node, 0))
            else:
                base = node.atoms
                node.atoms += len(plan.leaves)
                node.arrows.append((plan, base))
                plan.targets.append((node, base))
                for leaf in plan.leaves:
                    # It may lie beyond the end, off its sequence or before the start.
                    node.may_be_born_dead |= leaf.offset is not None or leaf.group is not None
                    node.waits_for_absolute |= leaf.absolute is not None

    def _expression(
        self, condition: Condition, found: dict[Atom | Group, IndexedAtom]
    ) -> Expression:
        if isinstance(condition, Atom | Group):
            if condition not in found:
                found[condition] = self._leaf(condition, len(found))
            return found[condition].number
        assert not isinstance(condition, XtriggerTerm), (
            "xtriggers are kept apart from prerequisites"
        )
        terms = tuple(self._expression(term, found) for term in self.order(condition.terms))
        return Every(terms) if isinstance(condition, AllOf) else Any(terms)

    def _leaf(self, term: Atom | Group, number: int) -> IndexedAtom:
        initial = self.graph.cycling.initial
        offset, shift = term.offset, shift_of(term.offset)
        absolute = None
        if offset is not None and offset.is_absolute:
            absolute = offset.parent_point(initial, initial)
        if isinstance(term, Atom):
            return IndexedAtom(number, term.node, term.output, offset, shift, absolute)
        group = self._group(term)
        return IndexedAtom(number, "", term.outputs[0], offset, shift, absolute, group)

    def _group(self, term: Group) -> IndexedFamily:
        key = (term.family, term.outputs, term.every)
        if key not in self.groups:
            members = self.graph.families[term.family].members
            group = IndexedFamily(
                len(self.groups), term.family, members, term.outputs, term.every
            )
            self.groups[key] = group
            for member in members:
                for output in term.outputs:
                    self.nodes[member].groups.setdefault(output, []).append(group)
                    self.nodes[member].heard[output] = None
        return self.groups[key]

    def _link(self, link: IndexedLink) -> None:
        leaf = link.leaf
        if leaf.group is not None:
            leaf.group.links.append(link)
            return
        parent = self.nodes[leaf.node]
        parent.heard[leaf.output] = None
        if leaf.absolute is not None:
            parent.absolute.setdefault((leaf.absolute, leaf.output), []).append(link)
        else:
            parent.links.setdefault(leaf.output, []).append(link)

    def _measure(self, offset: Offset | PreviousInstance | None) -> int:
        """Returns how far beyond its child a parent may lie; widens the graph's reach by it."""
        if not isinstance(offset, Relative | Truncated):
            return 0
        first = last = 0  # where it leads, at the earliest and at the latest
        for interval in offset.intervals:
            for count, days in (
                (interval.years, _DAYS_PER_YEAR),
                (interval.months, _DAYS_PER_MONTH),
            ):
                least, most = sorted(count * one * SECONDS_PER_DAY for one in days)
                first, last = first + least, last + most
            first, last = first + interval.units, last + interval.units
        if isinstance(offset, Truncated):
            last += max(_DAYS_PER_YEAR) * SECONDS_PER_DAY
        self.reach_back = max(self.reach_back, -first)
        self.reach_ahead = max(self.reach_ahead, last)
        return max(last, 0)


def build_index(graph: Graph, order: Order = iter) -> DependencyIndex:
    """Returns the dependency index of a graph; a run makes one, and another after a reload."""
    planner = _Planner(graph, order)
    for index, arrow in order(tuple(enumerate(graph.arrows))):
        planner.read_arrow(index, arrow)
    for name in sorted(graph.special.sequential & planner.nodes.keys()):
        sequences = graph.nodes[name].sequences
        for sequence in sequences:
            leaf = IndexedAtom(0, name, SUCCEEDED, PreviousInstance(sequences), None)
            plan = IndexedArrow(-1, planner.sequence(sequence), (leaf,), 0, True, False)
            planner.add_arrow(plan, (name,))
    absolute = _absolute(planner)
    for node in planner.nodes.values():
        if all(arrow.is_conjunction for arrow, _ in node.arrows):
            node.suffices = (1 << node.atoms) - 1
    limits, asks, concerned = _limits(planner), _asks(planner), _concerned(planner)
    mapped = _mapped(planner, asks) if graph.mapped else ()
    return DependencyIndex(
        graph=graph,
        policy=POLICIES[graph.policy.name],
        nodes=planner.nodes,
        groups=list(planner.groups.values()),
        sequences=[planner.sequence(one) for one in graph.sequences()],
        limits=limits,
        reach_back=planner.reach_back,
        reach_ahead=planner.reach_ahead,
        expires=bool(graph.special.expire_after),
        lead=sum(planner.ahead.values()),
        absolute=absolute,
        concerned=concerned,
        asks=asks,
        leads_forward=not planner.reach_ahead and not absolute,
        final=graph.cycling.final,
        mapped=mapped,
    )


def _mapped(planner: _Planner, asks: list[Ask]) -> tuple[MappedTasks, ...]:
    """Takes the mapped tasks out of the nodes: of them nothing runs but elements."""
    graph, nodes = planner.graph, planner.nodes
    by_list: dict[MappedOver, dict[str, IndexedNode]] = {}
    for name, over in graph.mapped.items():
        if name in nodes and over.source in nodes:
            by_list.setdefault(over, {})[name] = nodes[name]
    for ask in asks:
        ask.nodes = {name: node for name, node in ask.nodes.items() if name not in graph.mapped}
    kept = IndexedElements(
        {name: node for name, node in nodes.items() if name not in graph.mapped}, graph
    )
    found = []
    for over, templates in by_list.items():
        pairwise = _pairwise(planner, templates)
        tasks = MappedTasks(over, templates, pairwise, {}, kept)
        _join(planner, tasks)
        kept.mapped.update(dict.fromkeys(templates, tasks))
        found.append(tasks)
    planner.nodes = kept
    return tuple(found)


def _pairwise(planner: _Planner, templates: Mapping[str, IndexedNode]) -> list[IndexedArrow]:
    """Returns the arrows from element to element; of others, elements become the targets."""
    arrows = {id(one): one for node in templates.values() for one, _ in node.arrows}
    pairwise = []
    for arrow in arrows.values():
        if any(leaf.node in templates for leaf in arrow.leaves):
            pairwise.append(arrow)
            _unlink(planner, arrow)
        else:
            arrow.targets = [one for one in arrow.targets if one[0].name not in templates]
    for node in templates.values():
        # What died before there were elements is seen by none of them when it dies.
        node.may_be_born_dead |= node.atoms > 1
    return pairwise


def _join(planner: _Planner, tasks: MappedTasks) -> None:
    """Lets the groups of elements hear of the source of their list."""
    source = planner.nodes[tasks.over.source]
    # A group of no mapped task hears when elements come that are in no other group.
    key = ("", (tasks.over.source, tasks.over.value, tasks.over.parameter), True)
    planner.groups[key] = IndexedFamily(len(planner.groups), "", [], (), every=True)
    for group in planner.groups.values():
        if group.family in tasks.templates or group is planner.groups[key]:
            group.elements, group.members = tasks, [tasks.over.source]
            source.groups.setdefault(SUCCEEDED, []).append(group)
            tasks.groups.setdefault(group.family, []).append(group)
    source.heard[SUCCEEDED] = None
    source.lists = (*source.lists, tasks)


def _unlink(planner: _Planner, arrow: IndexedArrow) -> None:
    """Takes away the links to an arrow of which copies are made."""
    for leaf in arrow.leaves:
        if leaf.group is not None:
            leaf.group.links = [one for one in leaf.group.links if one.arrow is not arrow]
        else:
            links = planner.nodes[leaf.node].links
            links[leaf.output] = [one for one in links[leaf.output] if one.arrow is not arrow]


def _absolute(planner: _Planner) -> list[tuple[IndexedAtom, tuple[IndexedNode, ...]]]:
    """Returns the atoms at fixed points, each once, with the nodes that wait for it."""
    found: dict[AtomMeaning, tuple[IndexedAtom, dict[str, IndexedNode]]] = {}
    for arrow in planner.arrows:
        for leaf in arrow.leaves:
            if leaf.absolute is None:
                continue
            _, nodes = found.setdefault((leaf.absolute, *leaf.term), (leaf, {}))
            if not arrow.suicide:
                nodes.update((node.name, node) for node, _ in arrow.targets)
    return [(leaf, tuple(nodes.values())) for leaf, nodes in found.values()]


def _asks(planner: _Planner) -> list[Ask]:
    """Returns the asks for parents at other points; nodes that ask alike share one."""
    found: dict[tuple[object, ...], Ask] = {}
    for arrow in planner.arrows:
        for leaf in arrow.leaves if not arrow.suicide else ():
            if not isinstance(leaf.offset, Relative | Truncated) or leaf.absolute is not None:
                continue
            for name in names_of(leaf):
                parents = planner.nodes[name].sequences
                key = (id(arrow.sequence), leaf.offset, *map(id, parents))
                ask = found.setdefault(key, Ask(arrow.sequence, leaf, parents))
                ask.nodes.update((node.name, node) for node, _ in arrow.targets)
    return list(found.values())


def _concerned(planner: _Planner) -> frozenset[str]:
    """Returns the nodes that a settled atom at a fixed point may concern, and their parents."""
    todo = [
        arrow
        for arrow in planner.arrows
        if any(leaf.absolute is not None for leaf in arrow.leaves)
    ]
    seen = {id(arrow) for arrow in todo}
    evaluated: dict[str, IndexedNode] = {}
    while todo:
        for node, _ in todo.pop().targets:
            if node.name in evaluated:
                continue
            evaluated[node.name] = node
            for link in _links_from(node):
                if not link.arrow.suicide and id(link.arrow) not in seen:
                    seen.add(id(link.arrow))
                    todo.append(link.arrow)
    into = {
        id(arrow): arrow
        for node in evaluated.values()
        for arrow in (*(arrow for arrow, _ in node.arrows), *node.suicides)
    }
    parents = {
        name for arrow in into.values() for leaf in arrow.leaves for name in names_of(leaf)
    }
    return frozenset(evaluated.keys() | parents)


def _links_from(node: IndexedNode) -> list[IndexedLink]:
    """Returns the links from a node's outputs, those through its families included."""
    found = [link for links in node.links.values() for link in links]
    found += [link for links in node.absolute.values() for link in links]
    groups = dict.fromkeys(group for found in node.groups.values() for group in found)
    return found + [link for group in groups for link in group.links]


def _limits(planner: _Planner) -> list[int]:
    """Returns the limit of each limit group, and puts nodes into theirs; 0 has the others."""
    limits = [0]
    for number, group in enumerate(planner.graph.limit_groups, 1):
        limits.append(group.limit)
        everyone = planner.nodes if group.name == DEFAULT_GROUP else ()
        for member in (*everyone, *group.members):
            if member in planner.nodes:
                planner.nodes[member].limit = number
    return limits


def _is_conjunction(condition: Condition) -> bool:
    if isinstance(condition, AllOf):
        return all(map(_is_conjunction, condition.terms))
    return isinstance(condition, Atom | Group)
