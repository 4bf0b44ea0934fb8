"""Indexes a graph for the scheduler: which tasks wait for an output, as which of their bits.

Theory of operation. The compiled `Graph` says which arrows wait for an output. A step needs one
thing more: *which atom* of the child that is. So every leaf of an arrow gets a number, every
arrow into a node a base, and `base + number` is the bit of that atom in `PooledTask.true`.
Leaves belong to arrows and not to targets, so an arrow of N atoms into M tasks is N + M here,
too. A family on the left is one leaf, however many members it has (SEMANTICS §2).

Bits live in memory only: another version may number the same graph otherwise. What is stored of
a task are its atoms by what they mean (`persistence.atoms_of`, `mask_of`): the point and the
name of a task, and its output; for a family its name, and what of all or any of its members.

The policy of a run says where Cylc 8 and tidewheel schedule differently (SEMANTICS §14). The
rules read these values by what they mean; no rule asks which policy it is under.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Sequence as Sequenced
from dataclasses import field, replace
from typing import TypeVar, overload

from tidewheel.core.cycling.calendar import Interval, Point
from tidewheel.core.cycling.offset import Offset, Relative
from tidewheel.core.cycling.sequence import Sequence
from tidewheel.core.graph import shown_names
from tidewheel.core.graph.completion import Completion
from tidewheel.core.graph.definition import (
    CYLC8,
    TIDEWHEEL,
    MappedOver,
    NodeDef,
    element_name,
)
from tidewheel.core.graph.graph import Graph, element_definition, element_of
from tidewheel.core.graph.outputs import ENDS, FINISHED
from tidewheel.core.sched.task_state import AtomValue, Key
from tidewheel.lazy_dataclasses import dataclass

Other = TypeVar("Other")
POINTS_KNOWN_MAX = 4096  # of one sequence; forgotten all at once
# What is waited for, by what it means: point of the parent, task or family, output or outputs.
AtomMeaning = tuple[Point, str, str]
ANY_END = Completion(tuple(frozenset({end}) for end in ENDS), marked=False)


class IndexedSequence:
    """Wraps a sequence and remembers which points lie on it, and which comes after which."""

    __slots__ = ("_following", "_known", "sequence")

    def __init__(self, sequence: Sequence) -> None:
        self.sequence = sequence
        self._known: dict[Point, bool] = {}
        self._following: dict[Point, Point | None] = {}

    def has(self, point: Point) -> bool:
        known = self._known.get(point)
        if known is None:
            if len(self._known) >= POINTS_KNOWN_MAX:
                self._known.clear()
            known = self._known[point] = self.sequence.contains(point)
        return known

    def next_after(self, point: Point) -> Point | None:
        following = self._following
        if point not in following:
            if len(following) >= POINTS_KNOWN_MAX:
                following.clear()
            following[point] = self.sequence.next_after(point)
        return following[point]


@dataclass(frozen=True, slots=True)
class PreviousInstance:
    """Is the offset to a node's previous instance, for which `sequential` tasks wait."""

    sequences: tuple[Sequence, ...]

    def parent_point(self, child_point: Point, initial: Point) -> Point:
        found = (one.last_before(child_point) for one in self.sequences)
        return max((one for one in found if one is not None), default=Point(initial - 1))

    def child_points(
        self, parent_point: Point, _sequence: Sequence, _initial: Point | None = None
    ) -> Iterator[Point]:
        found = (one.next_after(parent_point) for one in self.sequences)
        yield from sorted({one for one in found if one is not None})[:1]


@dataclass(slots=True, eq=False)
class IndexedAtom:
    """Holds one atom or family term of an arrow."""

    number: int  # of its bit within the arrow
    node: str  # empty for a group
    output: str
    offset: Offset | PreviousInstance | None
    # Where the parent lies, seen from the child, if that is the same everywhere.
    shift: int | None
    absolute: Point | None = None
    group: IndexedFamily | None = None
    # What it means besides the point of the parent: (task, output), or a family's.
    term: tuple[str, str] = field(init=False)

    def __post_init__(self) -> None:
        term = (self.node, self.output) if self.group is None else self.group.term
        self.term = term if self.absolute is None else fixed_term(*term)

    @property
    def wanted(self) -> str:
        """Returns the output that is waited for; `finished` for `:finish` of a family."""
        return (
            FINISHED if self.group is not None and len(self.group.outputs) > 1 else self.output
        )

    def parent_point(self, point: Point, initial: Point) -> Point:
        if self.shift is not None:
            return Point(point + self.shift)
        assert self.offset is not None
        return self.offset.parent_point(point, initial)


def names_of(leaf: IndexedAtom) -> Sequenced[str]:
    """Returns the names of the tasks that a leaf asks for."""
    return (leaf.node,) if leaf.group is None else leaf.group.members


@dataclass(frozen=True, slots=True)
class Every:
    """Is true if every term is."""

    terms: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """Is true if one of the terms is."""

    terms: tuple[Expression, ...]


Expression = int | Every | Any  # an int is the number of a leaf


@dataclass(slots=True, eq=False)
class IndexedArrow:
    """Holds a condition with numbered leaves, and its targets."""

    index: int
    sequence: IndexedSequence
    leaves: tuple[IndexedAtom, ...]
    expression: Expression
    is_conjunction: bool
    suicide: bool
    full: int = 0  # the mask of all leaves
    targets: list[tuple[IndexedNode, int]] = field(default_factory=list)  # with bases


@dataclass(frozen=True, slots=True, eq=False)
class IndexedLink:
    """Holds an arrow that waits for an output, with the leaf by which it does."""

    arrow: IndexedArrow
    leaf: IndexedAtom


@dataclass(slots=True, eq=False)
class IndexedFamily:
    """Holds a family of which each or any member must make one of the outputs."""

    index: int
    family: str
    members: Sequenced[str]
    outputs: tuple[str, ...]
    every: bool
    links: list[IndexedLink] = field(default_factory=list)
    # Of all elements of a mapped task: `members` are its source and the elements made so far.
    elements: MappedTasks | None = None

    @property
    def term(self) -> tuple[str, str]:
        """Returns the family and its outputs as one term, in a form that no task's atom has."""
        return group_term(self.family, self.outputs, every=self.every)


@dataclass(slots=True, eq=False)
class Ask:
    """Holds the nodes that wait with one offset for parents on the same sequences.

    Where the parents are not on their sequences, a task that waits for them is lost. Nodes that
    ask alike are kept together, so that one look at a point serves them all.
    """

    sequence: IndexedSequence
    leaf: IndexedAtom
    parents: tuple[IndexedSequence, ...]
    nodes: dict[str, IndexedNode] = field(default_factory=dict)

    def is_in_vain(self, point: Point, plan: DependencyIndex, start: Point) -> bool:
        """Says whether parents of a task at this point would be off their sequences.

        It is False for parents before the start or beyond the final point: those have a value.
        """
        parent = self.leaf.parent_point(point, plan.initial)
        inside = parent >= start and (plan.final is None or parent <= plan.final)
        return inside and not any(one.has(parent) for one in self.parents)


@dataclass(slots=True, eq=False)
class IndexedNode:
    """Holds a node with the arrows into it and the links from its outputs."""

    name: str
    definition: NodeDef
    completion: Completion
    sequences: tuple[IndexedSequence, ...]
    rank: int  # position in the definition: the last word where order must be decided
    success_suffices: bool
    limit: int = 0  # its limit group
    atoms: int = 0  # leaves of all arrows into it
    arrows: list[tuple[IndexedArrow, int]] = field(default_factory=list)  # with bases
    suicides: list[IndexedArrow] = field(default_factory=list)
    links: dict[str, list[IndexedLink]] = field(default_factory=dict)
    groups: dict[str, list[IndexedFamily]] = field(default_factory=dict)
    # Of its outputs, those that are waited for at a fixed point: (point, output) -> links.
    absolute: dict[tuple[Point, str], list[IndexedLink]] = field(default_factory=dict)
    heard: dict[str, None] = field(default_factory=dict)  # outputs somebody waits for
    xtriggers: list[tuple[IndexedSequence, str]] = field(default_factory=list)
    # Those of them that must be met before the next instance comes.
    in_sequence: frozenset[str] = frozenset()
    clock: Interval | None = None
    expiry: Interval | None = None
    message: str = ""  # of an external trigger
    waits_for_more: bool = False  # than parents: xtriggers, its clock or its message
    # Whether an atom of it may be dead although no parent of it ended.
    may_be_born_dead: bool = False
    # The mask with which nothing is missing at any of its points; 0 if that depends on more.
    suffices: int = 0
    waits_for_absolute: bool = False
    # Of an element of a mapped task: the mapped tasks over its list, and its index.
    element: tuple[MappedTasks, int] | None = None
    # The mapped tasks over lists that it returns.
    lists: tuple[MappedTasks, ...] = ()
    # What its bits stand for at (point, initial point), with so many arrows.
    meanings: tuple[tuple[Point, Point, int], tuple[list[AtomMeaning], bool]] | None = field(
        default=None, init=False
    )

    @property
    def order(self) -> tuple[int, int]:
        """Returns its place among all nodes; elements come in the order of their list."""
        return self.rank, 0 if self.element is None else self.element[1]

    def is_at(self, point: Point) -> bool:
        return any(sequence.has(point) for sequence in self.sequences)

    def arrows_at(self, point: Point) -> list[tuple[IndexedArrow, int]]:
        """Returns the arrows into this node that apply at a point, each with its base."""
        return [pair for pair in self.arrows if pair[0].sequence.has(point)]

    def leaves_at(self, point: Point) -> Iterator[tuple[IndexedAtom, int]]:
        """Yields the leaves of the arrows that apply at a point, each with its bit."""
        for arrow, base in self.arrows:
            if arrow.sequence.has(point):
                for leaf in arrow.leaves:
                    yield leaf, 1 << (base + leaf.number)

    def next_after(self, point: Point) -> Point | None:
        if len(self.sequences) == 1:
            return self.sequences[0].next_after(point)
        found = (one.next_after(point) for one in self.sequences)
        return min((one for one in found if one is not None), default=None)

    def points(self, first: Point, last: Point) -> Iterator[Point]:
        """Yields the points of the node from one to another, both included."""
        point = self.next_after(Point(first - 1))
        while point is not None and point <= last:
            yield point
            point = self.next_after(point)

    def mask_of(self, point: Point, atoms: Iterable[AtomMeaning], initial: Point) -> int:
        """Returns the bits of these atoms at a point; atoms that no arrow asks for get none."""
        wanted = frozenset(atoms)
        return sum(
            bit
            for leaf, bit in (self.leaves_at(point) if wanted else ())
            if (leaf.parent_point(point, initial), *leaf.term) in wanted
        )


@dataclass(slots=True, eq=False)
class MappedTasks:
    """Holds the mapped tasks over one list, of which elements are made when they are needed.

    An element is a node like any other. Its arrows from tasks that are not mapped are those of
    the mapped task, to which it is added as a target; an arrow from element to element is made
    for each index. Who is visited along an arrow are the elements made so far, for whichever
    point; whether one is at a point in a flow is decided when it is spawned (`elements.py`).
    """

    over: MappedOver
    templates: dict[str, IndexedNode]
    pairwise: list[IndexedArrow]  # from element to element
    groups: dict[str, list[IndexedFamily]]  # by mapped task
    nodes: dict[str, IndexedNode]  # of the whole graph
    made: dict[int, dict[str, IndexedNode]] = field(default_factory=dict)

    def make(self, size: int) -> None:
        """Makes the elements of all these tasks up to a size, unless they are there."""
        for index in range(size):
            if index not in self.made:
                self.elements(index)

    def elements(self, index: int) -> dict[str, IndexedNode]:
        """Returns the elements with an index, by their names; they are made together."""
        found = self.made.get(index)
        if found is None:
            found = self.made[index] = self._made(index)
            self.nodes.update(found)
            for arrow in self.pairwise:
                self._pair(arrow, index, found)
        return found

    def _made(self, index: int) -> dict[str, IndexedNode]:
        made = {}
        for template in self.templates.values():
            name = element_name(template.name, index)
            definition = element_definition(template.definition, name)
            node = made[name] = replace(
                template,
                name=name,
                definition=definition,
                arrows=[],
                links={},
                element=(self, index),
            )
            for arrow, base in template.arrows:
                if arrow not in self.pairwise:
                    node.arrows.append((arrow, base))
                    arrow.targets.append((node, base))
            for group in self.groups.get(template.name, ()):
                assert isinstance(group.members, list)
                group.members.append(name)
        return made

    def _pair(self, arrow: IndexedArrow, index: int, made: Mapping[str, IndexedNode]) -> None:
        leaves = tuple(
            replace(leaf, node=element_name(leaf.node, index))
            if leaf.node in self.templates
            else leaf
            for leaf in arrow.leaves
        )
        pair = replace(arrow, leaves=leaves, targets=[])
        for template, base in arrow.targets:
            node = made[element_name(template.name, index)]
            node.arrows.append((pair, base))
            pair.targets.append((node, base))
        for leaf in leaves:
            link = IndexedLink(pair, leaf)
            if leaf.group is not None:
                leaf.group.links.append(link)
            else:
                parent = self.nodes[leaf.node]
                parent.links.setdefault(leaf.output, []).append(link)


class IndexedElements(dict[str, IndexedNode]):
    """Holds the nodes of a graph with mapped tasks; elements are made when they are asked for.

    Those that nobody asked for are not listed.
    """

    def __init__(self, nodes: Mapping[str, IndexedNode], graph: Graph) -> None:
        super().__init__(nodes)
        self._graph = graph
        self.mapped: dict[str, MappedTasks] = {}  # by mapped task

    def copy(self) -> IndexedElements:
        other = IndexedElements(self, self._graph)
        other.mapped = self.mapped
        return other

    def __missing__(self, name: str) -> IndexedNode:
        found = element_of(self._graph.mapped, name)
        if found is None or found[0] not in self.mapped:
            raise KeyError(name)
        return self.mapped[found[0]].elements(found[1])[name]

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name):
            return True
        found = element_of(self._graph.mapped, str(name))
        return found is not None and found[0] in self.mapped

    @overload
    def get(self, name: str, default: None = None, /) -> IndexedNode | None: ...
    @overload
    def get(self, name: str, default: IndexedNode, /) -> IndexedNode: ...
    @overload
    def get(self, name: str, default: Other, /) -> IndexedNode | Other: ...
    def get(self, name: str, default: object = None, /) -> object:
        try:
            return self[name]
        except KeyError:
            return default


@dataclass(slots=True, eq=False)
class DependencyIndex:
    """Holds the index of a whole graph; later, only nodes that a reload removed are added."""

    graph: Graph
    policy: SchedulingPolicy
    nodes: dict[str, IndexedNode]
    groups: list[IndexedFamily]
    sequences: list[IndexedSequence]
    limits: list[int]  # how many members of each limit group may be active; 0: any number
    # How far a parent may lie before and beyond its child.
    reach_back: int
    reach_ahead: int
    # How far beyond a task another may lie that matters to it through others.
    lead: int
    # What is waited for at fixed points: each atom once, with the nodes that wait for it.
    absolute: list[tuple[IndexedAtom, tuple[IndexedNode, ...]]]
    # The nodes that an atom at a fixed point may still concern, and those that they wait for.
    concerned: frozenset[str]
    # In which ways parents at other points are asked for.
    asks: list[Ask]
    expires: bool  # whether any task does
    # Whether no task has a child at an earlier point.
    leads_forward: bool
    final: Point | None
    mapped: tuple[MappedTasks, ...] = ()

    initial: Point = field(init=False)
    texts: shown_names.WrittenPoints = field(init=False)
    is_of_stages: bool = field(init=False)  # then nobody has written a point

    def __post_init__(self) -> None:
        self.is_of_stages = self.graph.cycling.style.is_unwritten
        self.initial = self.graph.cycling.initial
        self.texts = shown_names.WrittenPoints(self.graph.cycling.style)

    def text(self, point: Point) -> str:
        return self.texts[point]

    def id_of(self, key: Key) -> str:
        """Returns the id of a task: POINT/NAME."""
        return f"{self.texts[key[0]]}/{key[1]}"

    def word_of(self, key: Key) -> str:
        """Returns a task as people type it: its id, or in a run of stages its name."""
        return key[1] if self.is_of_stages else f"{self.texts[key[0]]}/{key[1]}"

    def name_of(self, key: Key) -> str:
        """Returns a task as people read it: its id, or in a run of stages its stage."""
        if self.is_of_stages:
            return shown_names.task_text(self.graph, *key)
        return f"{self.texts[key[0]]}/{key[1]}"

    def output_of(self, key: Key, output: str) -> str:
        """Returns an output as people read it: `1/a:succeeded`, `the success of a`."""
        if not self.is_of_stages:
            return f"{self.id_of(key)}:{output}"
        return shown_names.stage_output(self.graph, key, output)

    def in_flow(self, flow: object) -> str:
        """Returns ` in flow N`, behind what happened to a task; "" in a run of stages."""
        return "" if self.is_of_stages else f" in flow {flow}"

    def child_points(self, link: IndexedLink, point: Point) -> Iterator[Point]:
        """Yields the points of the children that a parent at this point has along a link."""
        shift = link.leaf.shift
        if shift is not None:
            child = Point(point - shift)
            if link.arrow.sequence.has(child):
                yield child
        else:
            assert link.leaf.offset is not None
            yield from link.leaf.offset.child_points(
                point, link.arrow.sequence.sequence, self.initial
            )


def fixed_term(name: str, output: str) -> tuple[str, str]:
    """Returns the term of an atom at a fixed point: it has its own value (SEMANTICS §4.6)."""
    return (name, f"fixed:{output}")


def group_term(family: str, outputs: tuple[str, ...], *, every: bool) -> tuple[str, str]:
    """Returns the name and the outputs of a family's atom, as they are stored."""
    return (family, f"{'all' if every else 'any'}:{'|'.join(sorted(outputs))}")


def shift_of(offset: Offset | PreviousInstance | None) -> int | None:
    """Returns the distance from child to parent, if it is the same at every point."""
    if offset is None:
        return 0
    if isinstance(offset, Relative) and offset.is_exact:
        return sum(interval.units for interval in offset.intervals)
    return None


def orphan(name: str, rank: int) -> IndexedNode:
    """Returns a stand-in for a node that a reload took out of the graph.

    A job of it that is active may end in any way, and nothing follows. The stand-in is made
    from its name alone, since after a restart nothing else is known of it.
    """
    return IndexedNode(
        name=name,
        definition=NodeDef(name=name),
        completion=ANY_END,
        sequences=(),
        rank=rank,
        success_suffices=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulingPolicy:
    """Says how a run is scheduled; the defaults are tidewheel's own."""

    name: str = TIDEWHEEL.name
    # The value of `failed`, `submit-failed` and `expired` of a task before the start.
    bad_end_before_start: AtomValue = AtomValue.NOT_TAKEN
    # Tasks that are placed before the start by hand need each other as anywhere else.
    earned_before_the_start: bool = True
    # The value of anything beyond the final point.
    beyond_final: AtomValue = AtomValue.NOT_TAKEN
    # Whether what can no longer happen is evaluated at all (SEMANTICS §5).
    prunes_unreachable: bool = True
    # A suicide condition applies whenever the task waits, not only when an output arrives.
    suicide_is_a_level: bool = True
    # Tasks that only wait for parents hold the runahead base back, too.
    every_task_counts: bool = False
    limit_raised_by_future_offset: bool = False
    # Parentless is what has no other parents than before the start, or only absolute ones,
    # whatever those are worth; without it truth decides.
    parentless_by_shape: bool = False
    # An absolute output spawns its child at the first point of the arrow, whatever it lacks.
    absolute_spawns_first_child: bool = False
    # The first member of a family that makes the output spawns the family's children, as if the
    # members were written out; without it they come when the family as a whole decides.
    any_member_spawns_children: bool = False
    # Without it a task any atom of which lies beyond the stop or final point never comes.
    spawns_what_needs_beyond_the_end: bool = True
    # An incomplete task that a new flow meets need not wait for that flow's prerequisites.
    met_incomplete_runs_at_once: bool = False
    # Where `trigger` without options puts a task that is not in the pool.
    trigger_joins_active_flows: bool = False
    # What ran with --wait flows on with whichever flow arrives first; without it only with its
    # own, and others run it again.
    any_flow_ends_waiting: bool = True
    # A flow that an operator names and that was never there begins by being named.
    naming_a_flow_starts_it: bool = False
    # A killed job was one try: the task, which is held, goes on with the next when released.
    killed_keeps_its_retries: bool = False
    # What a command names and is not there is left out if it names anything else that is.
    leaves_out_what_is_not_there: bool = False
    # A task without parents that a reload adds comes by itself, at its nearest valid point.
    reload_spawns_new_tasks: bool = True


OURS = SchedulingPolicy()
AS_CYLC8 = SchedulingPolicy(
    name=CYLC8.name,
    bad_end_before_start=AtomValue.TRUE,
    earned_before_the_start=False,
    beyond_final=AtomValue.OPEN,
    prunes_unreachable=False,
    suicide_is_a_level=False,
    every_task_counts=True,
    limit_raised_by_future_offset=True,
    parentless_by_shape=True,
    absolute_spawns_first_child=True,
    any_member_spawns_children=True,
    spawns_what_needs_beyond_the_end=False,
    met_incomplete_runs_at_once=True,
    trigger_joins_active_flows=True,
    any_flow_ends_waiting=False,
    naming_a_flow_starts_it=True,
    killed_keeps_its_retries=True,
    leaves_out_what_is_not_there=True,
    reload_spawns_new_tasks=False,
)
POLICIES = {policy.name: policy for policy in (OURS, AS_CYLC8)}
