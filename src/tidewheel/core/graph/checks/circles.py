"""Finds tasks that wait for each other in a circle, at one point or through later ones.

Theory of operation. A circle needs a way back whose offsets add up to zero or more. Nearly
all workflows have none: within a point their arrows form no circle, and no offset leads into
the future. Both are seen on the names alone. Only where names do form such a circle are tasks
looked at point by point, because arrows of different recurrences may never meet (`T00 = a => b`
and `T12 = b => a` is no circle).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, islice

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.cycling.offset import Offset
from tidewheel.core.graph.definition import Atom, Group, Leaf, leaves
from tidewheel.core.graph.findings import Findings
from tidewheel.core.graph.graph import CompiledArrow, Graph, TaskAt, atoms_of

POINTS_OF_A_SEQUENCE = 4  # at which suspicious arrows are looked at
TASKS_MAX = 50_000  # looked at for one suspicious set of names
PATH_SHOWN_MAX = 12


def check_circles(graph: Graph, findings: Findings) -> None:
    for names in _suspects(graph):
        path = _circle_among(graph, names)
        if path is None:
            continue
        texts = [f"{graph.cycling.style.text(task.point)}/{task.node}" for task in path]
        into_the_future = path[0] != path[-1]
        parent, child = path[:2]
        into = (graph.arrows[index] for index in graph.nodes[child.node].arrows)
        arrow = next(
            one
            for one in into
            if one.sequence.contains(child.point)
            and any(a.node == parent.node for a in atoms_of(one.condition, graph.families))
        )
        findings.error(
            "future-circle" if into_the_future else "circle",
            (
                "a task waits for its own future: "
                if into_the_future
                else "tasks wait for each other: "
            )
            + " => ".join(_shortened(texts)),
            "remove one of these arrows, or give it an offset into the past such as [-P1]",
            arrow.position,
        )


def _shortened(texts: list[str]) -> list[str]:
    if len(texts) <= PATH_SHOWN_MAX:
        return texts
    half = PATH_SHOWN_MAX // 2
    return [*texts[:half], f"({len(texts) - PATH_SHOWN_MAX} more)", *texts[-half:]]


def _suspects(graph: Graph) -> Iterator[frozenset[str]]:
    """Yields the sets of names among which a circle is possible."""
    same_point, elsewhere, leading = _name_graphs(graph)
    forward = set()
    if leading:
        every = {
            vertex: [*same_point.get(vertex, ()), *elsewhere.get(vertex, ())]
            for vertex in same_point | elsewhere
        }
        forward = {
            _only_names(component)
            for component in strong_components(every)
            if any(parent in component and child in component for parent, child in leading)
        }
    yield from forward
    for component in strong_components(_without_beginnings(same_point)):
        names = _only_names(component)
        if not any(names <= other for other in forward):
            yield names


def _only_names(component: frozenset[Hashable]) -> frozenset[str]:
    return frozenset(vertex for vertex in component if isinstance(vertex, str))


_NameGraph = dict[Hashable, list[Hashable]]


def _without_beginnings(children: _NameGraph) -> _NameGraph:
    """Returns the edges that are left when vertices to which none leads are taken away, until
    there are no such. Where there is no circle none is left, and that is seen at less cost."""
    edges_to = Counter(chain.from_iterable(children.values()))
    gone = dict.fromkeys(vertex for vertex in children if vertex not in edges_to)
    waiting = list(gone)
    while waiting:
        for child in children.get(waiting.pop(), ()):
            edges_to[child] -= 1
            if not edges_to[child]:
                gone[child] = None
                waiting.append(child)
    return {vertex: found for vertex, found in children.items() if vertex not in gone}


def _name_graphs(
    graph: Graph,
) -> tuple[_NameGraph, _NameGraph, list[tuple[Hashable, Hashable]]]:
    """Returns the edges between names: within a point, to others, and those not into the past.
    A family is a vertex of its own, and so is an arrow of several terms, to keep the edges
    few."""
    same_point: _NameGraph = defaultdict(list)
    elsewhere: _NameGraph = defaultdict(list)
    forward: list[tuple[Hashable, Hashable]] = []
    families: dict[str, Hashable] = {}  # that are waited for
    is_back = _leads_back(graph)
    for index, arrow in enumerate(graph.arrows):
        if arrow.suicide:
            continue
        condition = arrow.condition
        children: Sequence[Hashable] = arrow.targets
        terms: tuple[Leaf, ...] = (condition,) if type(condition) is Atom else leaves(condition)
        if len(terms) > 1:  # N parents and M children: N + M edges
            same_point[index].extend(children)
            children = (index,)
        for leaf in terms:
            if type(leaf) is Atom:
                parent: Hashable = leaf.node
            else:
                assert isinstance(leaf, Group)
                parent = families[leaf.family] = ("family", leaf.family)
            if leaf.offset is None:
                same_point[parent].extend(children)
                continue
            elsewhere[parent].extend(children)
            if not is_back(leaf.offset):
                forward.extend((parent, child) for child in children)
    for family, vertex in families.items():
        for member in graph.families[family].members:
            same_point[member].append(vertex)
    return same_point, elsewhere, forward


def _leads_back(graph: Graph) -> Callable[[Offset], bool]:
    """Returns a function that says whether an offset leads into the past."""
    here = graph.cycling.initial

    @cache
    def leads_back(offset: Offset) -> bool:
        return not offset.is_absolute and graph.parent_point(offset, here) < here

    return leads_back


def _circle_among(graph: Graph, names: frozenset[str]) -> list[TaskAt] | None:
    """Returns a path from a task to itself or to its own later instance, or None."""
    arrows = [
        arrow for arrow in graph.arrows if not arrow.suicide and names & set(arrow.targets)
    ]
    parents: dict[TaskAt, list[TaskAt]] = defaultdict(list)
    for point in sorted(_sample(graph, arrows)):
        for arrow in arrows:
            if arrow.sequence.contains(point):
                _add_parents(graph, arrow, point, names, parents)
        if len(parents) > TASKS_MAX:
            break
    for task in sorted(parents, key=lambda task: (task.point, task.node)):
        path = _way_back(task, parents)
        if path is not None:
            return path[::-1]
    return None


def _sample(graph: Graph, arrows: Iterable[CompiledArrow]) -> set[Point]:
    cycling = graph.cycling
    return {
        point
        for sequence in {arrow.sequence for arrow in arrows}
        for point in islice(
            sequence.points(cycling.initial, cycling.final), POINTS_OF_A_SEQUENCE
        )
    }


def _add_parents(
    graph: Graph,
    arrow: CompiledArrow,
    point: Point,
    names: frozenset[str],
    parents: dict[TaskAt, list[TaskAt]],
) -> None:
    for atom in atoms_of(arrow.condition, graph.families):
        if atom.node not in names:
            continue
        at = graph.parent_point(atom.offset, point)
        if at < graph.cycling.initial or not graph.nodes[atom.node].is_at(at):
            continue
        for target in arrow.targets:
            if target in names:
                parents[TaskAt(target, point)].append(TaskAt(atom.node, at))


def _way_back(start: TaskAt, parents: Mapping[TaskAt, list[TaskAt]]) -> list[TaskAt] | None:
    """Returns the path through parents from a task to itself or its later instance, or None."""
    came_from: dict[TaskAt, TaskAt | None] = {start: None}
    waiting = [start]
    while waiting:
        task = waiting.pop()
        for parent in parents.get(task, ()):
            if parent.node == start.node and parent.point >= start.point:
                path = [parent]
                step: TaskAt | None = task
                while step is not None:
                    path.append(step)
                    step = came_from[step]
                return path[::-1]
            if parent not in came_from:
                came_from[parent] = task
                waiting.append(parent)
    return None


Children = Mapping[Hashable, Sequence[Hashable]]


def strong_components(children: Children) -> Iterator[frozenset[Hashable]]:
    """Yields each set of vertices that reach one another.

    A single vertex is one only if an edge leads from it to itself.
    """
    search = _Search(children)
    for root in children:
        if root not in search.index:
            yield from search.run(root)


class _Search:
    """Finds strong components by Tarjan's depth-first search, without recursion."""

    def __init__(self, children: Children) -> None:
        self.index: dict[Hashable, int] = {}
        self._children = children
        self._low: dict[Hashable, int] = {}
        self._stack: list[Hashable] = []
        self._on_stack: set[Hashable] = set()
        self._path: list[tuple[Hashable, Iterator[Hashable]]] = []

    def run(self, root: Hashable) -> Iterator[frozenset[Hashable]]:
        self._enter(root)
        while self._path:
            vertex, rest = self._path[-1]
            child = next(rest, None)
            if child is None:
                yield from self._leave(vertex)
            elif child not in self.index:
                self._enter(child)
            elif child in self._on_stack:
                self._low[vertex] = min(self._low[vertex], self.index[child])

    def _enter(self, vertex: Hashable) -> None:
        self.index[vertex] = self._low[vertex] = len(self.index)
        self._stack.append(vertex)
        self._on_stack.add(vertex)
        self._path.append((vertex, iter(self._children.get(vertex, ()))))

    def _leave(self, vertex: Hashable) -> Iterator[frozenset[Hashable]]:
        self._path.pop()
        if self._path:
            parent = self._path[-1][0]
            self._low[parent] = min(self._low[parent], self._low[vertex])
        if self._low[vertex] != self.index[vertex]:
            return
        members: list[Hashable] = []
        while not members or members[-1] != vertex:
            members.append(self._stack.pop())
            self._on_stack.discard(members[-1])
        if len(members) > 1 or vertex in self._children.get(vertex, ()):
            yield frozenset(members)
