"""Reads a window of a definition's graph: the points asked for, its edges, and both as JSON.

An edge is certain if its child cannot run before the parent has made one of the outputs, and
every way in which the parent can be complete makes one of them. All others are drawn dashed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from heapq import merge
from itertools import islice, repeat
from operator import attrgetter
from typing import TYPE_CHECKING

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.cycling.offset import Offset
from tidewheel.core.cycling.sequence import Sequence
from tidewheel.core.graph.definition import AllOf, AnyOf, Atom, Condition, FamilyDef, Group
from tidewheel.core.graph.graph import CompiledArrow, Edge, Graph, Node, TaskAt, Window, window
from tidewheel.core.graph.outputs import FAILED, FINISHED, IMPLIED, SUCCEEDED
from tidewheel.errors import Refused
from tidewheel.formats.flow_cylc.families import ROOT
from tidewheel.lazy_dataclasses import NamedTuple, dataclass

if TYPE_CHECKING:
    from tidewheel.formats.flow_cylc.workflow import LoadedWorkflow

# Edges: which outputs of the parent each stands for, and whether the child can do without.

_Parent = tuple[str, Offset | None]


@dataclass(frozen=True, slots=True)
class Use:
    """Says which outputs of one parent a condition names, and if it needs one of them."""

    outputs: frozenset[str] = frozenset()
    needed: bool = False


@dataclass(frozen=True, slots=True)
class EdgeFact:
    """Holds the outputs that an edge stands for, over all its arrows, and if it is certain."""

    outputs: frozenset[str] = frozenset()
    certain: bool = False

    @property
    def label(self) -> str:
        """Returns the outputs as the label of the edge; "" for success, which is expected."""
        if self.outputs <= {SUCCEEDED}:
            return ""
        if self.outputs == {SUCCEEDED, FAILED}:
            return FINISHED
        return ", ".join(sorted(self.outputs))


def edge_facts(graph: Graph, shown: Window, start: Point) -> dict[Edge, EdgeFact]:
    """Returns a fact for each edge of the window; one from an xtrigger is certain."""
    facts = {edge: EdgeFact(certain=edge.parent.node.startswith("@")) for edge in shown.edges}
    points: dict[str, list[Point]] = {}
    for task in sorted(shown.tasks):
        points.setdefault(task.node, []).append(task.point)
    for arrow in graph.arrows:
        uses = uses_of(arrow.condition, graph.families)
        for edge, use in _edges(arrow, uses, points, start):
            known = facts.get(edge)
            if known is not None:
                facts[edge] = EdgeFact(
                    known.outputs | use.outputs,
                    known.certain
                    or (use.needed and _is_sure(graph.nodes[edge.parent.node], use)),
                )
    return facts


def uses_of(condition: Condition, families: Mapping[str, FamilyDef]) -> dict[_Parent, Use]:
    """Returns how a condition uses each parent, by the parent's name and offset."""
    match condition:
        case Atom(node, output, offset):
            return {(node, offset): Use(frozenset({output}), needed=True)}
        case Group(family, outputs, every, offset):
            members = families[family].members
            use = Use(frozenset(outputs), needed=every or len(members) == 1)
            return {(member, offset): use for member in members}
        case AllOf(terms) | AnyOf(terms):
            found = [uses_of(term, families) for term in terms]
            enough = len(terms) if isinstance(condition, AnyOf) else 1
            return {
                parent: _joined([one.get(parent, Use()) for one in found], enough)
                for parent in dict.fromkeys(parent for one in found for parent in one)
            }
        case _:
            return {}


def _joined(uses: list[Use], enough: int) -> Use:
    outputs = frozenset[str]().union(*(use.outputs for use in uses))
    return Use(outputs, needed=sum(use.needed for use in uses) >= enough)


def _edges(
    arrow: CompiledArrow,
    uses: Mapping[_Parent, Use],
    points: Mapping[str, list[Point]],
    start: Point,
) -> Iterator[tuple[Edge, Use]]:
    for target in arrow.targets:
        for point in points.get(target, ()):
            if not arrow.sequence.contains(point):
                continue
            for (name, offset), use in uses.items():
                # As in the window: `[^]` is the start of it.
                at = point if offset is None else offset.parent_point(point, start)
                yield Edge(TaskAt(name, at), TaskAt(target, point), arrow.suicide), use


def _is_sure(parent: Node, use: Use) -> bool:
    for alternative in parent.completion.alternatives:
        made = set(alternative).union(*(IMPLIED.get(output, ()) for output in alternative))
        if made.isdisjoint(use.outputs):
            return False
    return True


# Windows: the part of a graph between START and STOP.

TASKS_MAX = 200_000  # for programs
TASKS_READ_MAX = 5_000  # for people
RUN_TASKS_READ_MAX = 300  # of a run to come, of which all is counted
POINTS_COUNTED_MAX = 100_000  # of all sequences of a graph together


class BadWindow(Refused):
    """START and STOP enclose nothing, or too much."""

    code = "bad_window"


class ShownWindow(NamedTuple):
    """Holds a graph, and the part of it between two points."""

    graph: Graph
    start: Point
    stop: Point | None
    window: Window

    @property
    def is_empty(self) -> bool:
        return not self.window.tasks


def read_window(
    loaded: LoadedWorkflow,
    start: str | None,
    stop: str | None,
    *,
    tasks_max: int = TASKS_MAX,
    suicides: bool = False,
) -> ShownWindow:
    """Returns the part of a graph from START to STOP.

    START may be relative to the initial point, STOP to START; a window with too many tasks is
    cut.
    """
    graph, reader = loaded.graph, loaded.reader
    assert graph is not None
    assert reader is not None
    first = graph.cycling.initial
    if start:
        first = reader.relative_point(start, first, graph.cycling.final)
    if not stop:
        return ShownWindow(graph, first, None, window(graph, first, suicides=suicides))
    last = reader.relative_point(stop, first, graph.cycling.final)
    return _between(graph, first, last, tasks_max, suicides=suicides)


def run_window(graph: Graph, *, tasks_max: int = RUN_TASKS_READ_MAX) -> ShownWindow:
    """Returns the part of a graph that a run goes through, by the points that it was given."""
    first, last = run_ends(graph)
    if last is None:
        return ShownWindow(graph, first, None, window(graph, first, suicides=True))
    return _between(graph, first, last, tasks_max, suicides=True)


def run_ends(graph: Graph) -> tuple[Point, Point | None]:
    """Returns the points between which a run goes; without an end, None for it."""
    cycling = graph.cycling
    first = cycling.initial if cycling.start is None else cycling.start
    ends = [point for point in (cycling.stop, cycling.final) if point is not None]
    return first, min(ends, default=None)


def _between(
    graph: Graph, first: Point, last: Point, tasks_max: int, *, suicides: bool
) -> ShownWindow:
    if last < first:
        text = graph.cycling.style.text
        raise BadWindow(
            f"STOP {text(last)} is before START {text(first)}; give the earlier point first"
        )
    nearer = _nearer_stop(graph, first, last, tasks_max)
    shown = window(graph, first, nearer, suicides=suicides)
    return ShownWindow(graph, first, nearer, replace(shown, cut=shown.cut or nearer < last))


def _nearer_stop(graph: Graph, start: Point, stop: Point, tasks_max: int) -> Point:
    """Returns the last point up to which there are at most ``tasks_max`` tasks. If the first
    point alone has more, it is that one."""
    if graph.cycling.final is not None:
        stop = min(stop, graph.cycling.final)
    weights = Counter(one for node in graph.nodes.values() for one in node.sequences)
    placed = (zip(one.points(start, stop), repeat(weight)) for one, weight in weights.items())
    total, before, here = 0, None, None
    for point, weight in merge(*placed):
        if point != here:
            before, here = here, point
        total += weight
        if total > tasks_max:
            return point if before is None else before
    return stop


# A window of a definition's graph as JSON: `tidewheel graph --json`, and over HTTP.


def drawn_in(loaded: LoadedWorkflow) -> dict[str, str]:
    """Returns the family that each task and family is drawn in, by name; root is left out."""
    first_parents = loaded.settings.families.first_parents
    return {name: family for name, family in first_parents.items() if family != ROOT}


def graph_document(shown: ShownWindow, families: Mapping[str, str]) -> dict[str, object]:
    """Returns the window as JSON for programs: points, tasks, edges, and whether it was cut."""
    style = shown.graph.cycling.style
    texts = {point: style.text(point) for point in {task.point for task in shown.window.tasks}}
    facts = edge_facts(shown.graph, shown.window, shown.start)
    return {
        "workflow": shown.graph.name,
        "points": [texts[point] for point in sorted(texts)],
        "tasks": [
            {
                "id": f"{texts[task.point]}/{task.node}",
                "name": task.node,
                "point": texts[task.point],
                "family": families.get(task.node),
            }
            for task in sorted(shown.window.tasks, key=lambda one: (one.point, one.node))
        ],
        "edges": [
            {
                "parent": f"{texts[edge.parent.point]}/{edge.parent.node}",
                "child": f"{texts[edge.child.point]}/{edge.child.node}",
                "outputs": sorted(facts[edge].outputs),
                "certain": facts[edge].certain,
                "suicide": edge.suicide,
            }
            for edge in sorted(facts, key=_BY_CHILD)
        ],
        "cut": shown.window.cut,
    }


def range_document(graph: Graph) -> dict[str, object]:
    """Returns which points a run goes through, and how often each task is there."""
    first, last = run_ends(graph)
    left, found = POINTS_COUNTED_MAX, dict[Sequence, list[Point]]()
    for one in graph.sequences() if last is not None else ():
        found[one] = list(islice(one.points(first, last), left + 1))
        left = max(0, left - len(found[one]))
    points: set[Point] = set().union(*found.values())
    counts = {
        name: len(set().union(*(found.get(one, ()) for one in node.sequences)))
        for name, node in graph.nodes.items()
    }
    text = graph.cycling.style.text
    return {
        "first": text(first),
        "last": None if last is None else text(last),
        "points": len(points),
        "tasks": {name: counts[name] for name in sorted(counts) if counts[name]},
        "cut": left == 0,
    }


_BY_CHILD = attrgetter("child.point", "child.node", "parent.point", "parent.node", "suicide")
