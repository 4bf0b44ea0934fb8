"""Defines the compiled workflow: what the scheduler steps through, immutable and picklable.

Theory of operation. An arrow is kept once, whatever its number of targets. A parent knows, for
each of its outputs, the arrows that wait for it; an arrow knows its sequence and its targets.
So "who hears of this output" is a look-up and a little arithmetic on points, and nothing is
ever searched for (SEMANTICS §2). A family on the left is a group: each member knows its groups
and a group its arrows, N + M links for N × M edges.

A `Window` is the graph between two points, task by task: drawings and comparisons are made from
it. Suicide arrows are left out unless asked for. A parent before the first point of the window
is not drawn, its child is; a parent beyond the last point is, because it will be waited for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from itertools import islice
from typing import TypeVar, overload

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.cycling.offset import Offset
from tidewheel.core.cycling.sequence import Sequence
from tidewheel.core.graph import definition as definitions
from tidewheel.core.graph.completion import Completion
from tidewheel.core.graph.findings import NOWHERE, Position
from tidewheel.lazy_dataclasses import NamedTuple, dataclass

Other = TypeVar("Other")
PARAMETER_VARIABLES = ("CYLC_TASK_PARAM_", "TIDEWHEEL_TASK_PARAM_")


class ChildTask(NamedTuple):
    """Names a task that waits for an output; `arrow` is the index of the arrow it waits by."""

    node: str
    point: Point
    arrow: int


@dataclass(frozen=True, slots=True)
class CompiledArrow:
    """Holds a condition, the tasks it leads to, and the points at which it holds."""

    sequence: Sequence
    condition: definitions.Condition
    targets: tuple[str, ...]
    suicide: bool = False
    position: Position = field(default=NOWHERE, compare=False)


class Link(NamedTuple):
    """Holds the index of an arrow that waits for an output, and the parent's offset in it."""

    arrow: int
    offset: Offset | None = None


@dataclass(frozen=True, slots=True)
class CountedGroup:
    """Holds a family of which every or any member must make an output, and who waits for it."""

    family: str
    outputs: tuple[str, ...]
    every: bool
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """Holds a named step: its sequences, the arrows into it and those that wait for it."""

    name: str
    definition: definitions.NodeDef
    completion: Completion
    sequences: tuple[Sequence, ...]
    arrows: tuple[int, ...] = ()  # into it; all of them must be true
    suicides: tuple[int, ...] = ()
    links: Mapping[str, tuple[Link, ...]] = field(default_factory=dict)  # by output
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # by output
    xtriggers: tuple[tuple[Sequence, str], ...] = ()
    implicit: bool = False

    def is_at(self, point: Point) -> bool:
        return any(sequence.contains(point) for sequence in self.sequences)

    def first_from(self, point: Point) -> Point | None:
        """Returns the first point of the node at or after this one; None if there is none."""
        found = (sequence.first_from(point) for sequence in self.sequences)
        return min((one for one in found if one is not None), default=None)

    def next_after(self, point: Point) -> Point | None:
        found = (sequence.next_after(point) for sequence in self.sequences)
        return min((one for one in found if one is not None), default=None)


class NodesWithElements(dict[str, Node]):
    """Holds nodes by name and answers for the elements of mapped tasks, too.

    Elements are no part of it when it is listed: how many there are is known at run time.
    """

    def __init__(
        self, nodes: Mapping[str, Node], mapped: Mapping[str, definitions.MappedOver]
    ) -> None:
        super().__init__(nodes)
        self._mapped = mapped
        self._elements: dict[str, Node] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return (NodesWithElements, (dict(self), self._mapped))

    def __missing__(self, name: str) -> Node:
        known = self._elements.get(name)
        if known is None:
            found = element_of(self._mapped, name)
            if found is None or found[0] not in self:
                raise KeyError(name)
            template = self[found[0]]
            definition = element_definition(template.definition, name)
            known = self._elements[name] = replace(template, name=name, definition=definition)
        return known

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or element_of(self._mapped, str(name)) is not None

    @overload
    def get(self, name: str, default: None = None, /) -> Node | None: ...
    @overload
    def get(self, name: str, default: Node, /) -> Node: ...
    @overload
    def get(self, name: str, default: Other, /) -> Node | Other: ...
    def get(self, name: str, default: object = None, /) -> object:
        try:
            return self[name]
        except KeyError:
            return default


def element_definition(template: definitions.NodeDef, name: str) -> definitions.NodeDef:
    """Returns what is said about one element: the mapped task is its nearest family."""
    return replace(template, name=name, lineage=(name, *template.lineage))


def element_of(
    mapped: Mapping[str, definitions.MappedOver], name: str
) -> tuple[str, int] | None:
    """Returns the mapped task and the index that a name stands for; None for other names."""
    head = name.rstrip("0123456789")
    number = name[len(head) :]
    if not number or (number[0] == "0" and number != "0") or len(number) > INDEX_DIGITS_MAX:
        return None
    for template, over in mapped.items():
        if definitions.element_name(template, 0)[:-1] == head:
            return (template, int(number)) if int(number) < over.elements_max else None
    return None


INDEX_DIGITS_MAX = len(str(definitions.ELEMENTS_MAX))


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Holds a whole workflow, ready to be run."""

    name: str
    cycling: definitions.CyclingDef
    nodes: Mapping[str, Node]
    arrows: tuple[CompiledArrow, ...]
    groups: tuple[CountedGroup, ...]
    families: Mapping[str, definitions.FamilyDef]
    xtriggers: Mapping[str, definitions.XtriggerDef]
    limit_groups: tuple[definitions.LimitGroup, ...]
    special: definitions.SpecialNodes
    # Arrows that wait for one output at one fixed point, at whichever of their own points.
    absolute_links: Mapping[tuple[str, Point, str], tuple[int, ...]]
    policy: definitions.Policy
    # By node: the values of tasks before it that its jobs get as variables.
    inputs: Mapping[str, tuple[definitions.NodeInput, ...]] = field(default_factory=dict)
    mapped: Mapping[str, definitions.MappedOver] = field(default_factory=dict)  # by its node

    def inputs_of(self, node: str) -> tuple[definitions.NodeInput, ...]:
        """Returns the values that jobs of a node get as variables; an element also its own."""
        found = element_of(self.mapped, node) if self.mapped else None
        if found is None:
            return self.inputs.get(node, ())
        template, index = found
        over = self.mapped[template]
        prefixes = PARAMETER_VARIABLES if over.size is None else ()
        own = (
            definitions.NodeInput(
                variable=f"{prefix}{over.parameter}",
                node=over.source,
                path=(over.value, str(index)),
                text=f"{over.source}.{over.value}.{index}",
            )
            for prefix in prefixes
        )
        others = self.inputs.get(template, ())
        return (*own, *(self._of_element(one, over, index) for one in others))

    def _of_element(
        self, one: definitions.NodeInput, over: definitions.MappedOver, index: int
    ) -> definitions.NodeInput:
        if self.mapped.get(one.node) != over or one.offset is not None:
            return one
        return replace(one, node=definitions.element_name(one.node, index))

    def children(self, node: str, point: Point, output: str) -> Iterator[ChildTask]:
        """Yields each task that waits for this output at a point that depends on the parent's.

        Suicide arrows are among them; arrows with an absolute parent are in `absolute_links`.
        """
        step = self.nodes[node]
        for link in step.links.get(output, ()):
            yield from self._along(link, point)
        for index in step.groups.get(output, ()):
            for link in self.groups[index].links:
                yield from self._along(link, point)

    def _along(self, link: Link, point: Point) -> Iterator[ChildTask]:
        arrow = self.arrows[link.arrow]
        for child_point in self.child_points(link.offset, point, arrow.sequence):
            for target in arrow.targets:
                yield ChildTask(target, child_point, link.arrow)

    def child_points(
        self, offset: Offset | None, point: Point, sequence: Sequence
    ) -> Iterator[Point]:
        """Yields the points of a sequence whose parent, at this offset, is the given point."""
        if offset is None:
            if sequence.contains(point):
                yield point
        else:
            yield from offset.child_points(point, sequence, self.cycling.initial)

    def parent_point(self, offset: Offset | None, point: Point) -> Point:
        """Returns the point at which the parent of a child at this point lies."""
        return point if offset is None else offset.parent_point(point, self.cycling.initial)

    def prerequisites(self, node: str, point: Point) -> Iterator[CompiledArrow]:
        """Yields the arrows into a task that hold at this point."""
        for index in self.nodes[node].arrows:
            if self.arrows[index].sequence.contains(point):
                yield self.arrows[index]

    def parents(self, node: str, point: Point) -> Iterator[tuple[Point, str]]:
        """Yields the tasks that arrows into a task ask for, by point and name; some twice."""
        element = element_of(self.mapped, node) if self.mapped else None
        over = None if element is None else self.mapped[element[0]]
        for arrow in self.prerequisites(node, point):
            for leaf in definitions.leaves(arrow.condition):
                for atom in atoms_of(leaf, self.families):
                    name = atom.node
                    is_pair = over is not None and isinstance(leaf, definitions.Atom)
                    if element is not None and is_pair and self.mapped.get(name) == over:
                        name = definitions.element_name(name, element[1])
                    yield self.parent_point(atom.offset, point), name

    def sequences(self) -> Iterator[Sequence]:
        """Yields every sequence that places a node, once."""
        yield from dict.fromkeys(one for node in self.nodes.values() for one in node.sequences)


def meaning(graph: Graph) -> frozenset[object]:
    """Returns what a graph says, however written: it is equal for two texts of one workflow."""
    facts: set[object] = {
        (name, sequence) for name, node in graph.nodes.items() for sequence in node.sequences
    }
    facts |= {(name, node.completion) for name, node in graph.nodes.items()}
    facts |= {
        (name, sequence, label)
        for name, node in graph.nodes.items()
        for sequence, label in node.xtriggers
    }
    for arrow in graph.arrows:
        condition = arrow.condition
        terms = condition.terms if isinstance(condition, definitions.AllOf) else (condition,)
        facts |= {
            (arrow.sequence, term, target, arrow.suicide)
            for term in terms
            for target in arrow.targets
        }
    return frozenset(facts)


def atoms_of(
    condition: definitions.Condition, families: Mapping[str, definitions.FamilyDef]
) -> Iterator[definitions.Atom]:
    """Yields every atom of an arrow's condition; a group is replaced by the atoms of its
    members."""
    for leaf in definitions.leaves(condition):
        if isinstance(leaf, definitions.Atom):
            yield leaf
            continue
        assert isinstance(leaf, definitions.Group), (
            "xtriggers are kept apart from prerequisites"
        )
        for member in families[leaf.family].members:
            for output in leaf.outputs:
                yield definitions.Atom(member, output, leaf.offset)


PARTS_MAX = 1_000_000  # tasks and edges of one drawing (RELIABILITY S17)
POINTS_BY_DEFAULT = 3  # of the drawing when no last point is given


class TaskAt(NamedTuple):
    """Names a task at a point; an xtrigger has the name `@label`."""

    node: str
    point: Point


class Edge(NamedTuple):
    """Holds an edge from a parent task to a child task, each at its point."""

    parent: TaskAt
    child: TaskAt
    suicide: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    """Holds the tasks and edges between two points; `cut` if there were more than are shown."""

    tasks: frozenset[TaskAt]
    edges: frozenset[Edge]
    cut: bool = False


def window(
    graph: Graph,
    start: Point,
    stop: Point | None = None,
    *,
    suicides: bool = False,
    parts_max: int = PARTS_MAX,
) -> Window:
    """Returns the tasks and edges from `start` to `stop`.

    Without `stop` they are those of the first few points.
    """
    last = _last_point(graph, start, stop)
    first = _first_point(graph, start)
    tasks: set[TaskAt] = set()
    edges: set[Edge] = set()
    for found in _walk(graph, start, last, suicides=suicides):
        if len(edges) + len(tasks) > parts_max:
            return Window(frozenset(tasks), frozenset(edges), cut=True)
        if isinstance(found, TaskAt):
            tasks.add(found)
        elif first is not None and found.parent.point >= first:
            edges.add(found)
            tasks.update((found.parent, found.child))
    return Window(frozenset(tasks), frozenset(edges))


def _walk(
    graph: Graph, start: Point, last: Point | None, *, suicides: bool
) -> Iterator[TaskAt | Edge]:
    if last is None:
        return
    for node in graph.nodes.values():
        for sequence in node.sequences:
            for point in sequence.points(start, last):
                yield TaskAt(node.name, point)
        for sequence, label in node.xtriggers:
            for point in sequence.points(start, last):
                yield Edge(TaskAt(f"@{label}", point), TaskAt(node.name, point))
    for arrow in graph.arrows:
        if suicides or not arrow.suicide:
            yield from _edges_of(graph, arrow, start, last)


def _edges_of(graph: Graph, arrow: CompiledArrow, start: Point, last: Point) -> Iterator[Edge]:
    atoms = list(
        dict.fromkeys((a.node, a.offset) for a in atoms_of(arrow.condition, graph.families))
    )
    for point in arrow.sequence.points(start, last):
        for name, offset in atoms:
            # As if the workflow began at the start of the window, so `[^]` is that point.
            at = point if offset is None else offset.parent_point(point, start)
            for target in arrow.targets:
                yield Edge(TaskAt(name, at), TaskAt(target, point), arrow.suicide)


def _first_point(graph: Graph, start: Point) -> Point | None:
    found = (sequence.first_from(start) for sequence in graph.sequences())
    return min((point for point in found if point is not None), default=None)


def _last_point(graph: Graph, start: Point, stop: Point | None) -> Point | None:
    bounds = [point for point in (stop, graph.cycling.final) if point is not None]
    if stop is None:
        few = (islice(one.points(start), POINTS_BY_DEFAULT) for one in graph.sequences())
        points = sorted({point for some in few for point in some})
        bounds.extend(points[:POINTS_BY_DEFAULT][-1:])
    return min(bounds, default=None)


def reference_lines(graph: Graph, shown: Window) -> Iterator[str]:
    """Yields the window in the format that `cylc graph --reference` prints."""
    style = graph.cycling.style
    texts = {point: style.text(point) for point in {task.point for task in shown.tasks}}

    def identity(task: TaskAt) -> str:
        return f"{texts[task.point]}/{task.node}"

    def order(task: TaskAt) -> tuple[object, ...]:
        if graph.cycling.is_integer:
            return (task.node, task.point)
        return (identity(task),)

    edges = sorted(
        {(e.parent, e.child) for e in shown.edges}, key=lambda e: (*order(e[0]), *order(e[1]))
    )
    for parent, child in edges:
        yield f'edge "{identity(parent)}" "{identity(child)}"'
    yield "graph"
    for task in sorted(shown.tasks, key=order):
        yield f'node "{identity(task)}" "{task.node}\\n{texts[task.point]}"'
    yield "stop"
