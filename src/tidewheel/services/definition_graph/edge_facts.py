"""What an edge stands for: which outputs of the parent, and whether the child can do without.

An edge is certain if its child cannot run before the parent has made one of the outputs, and
every way in which the parent can be complete makes one of them. All others are drawn dashed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.cycling.offset import Offset
from tidewheel.core.graph.condition import AllOf, AnyOf, Atom, Condition, Group
from tidewheel.core.graph.definition import FamilyDef
from tidewheel.core.graph.edges import Edge, TaskAt, Window
from tidewheel.core.graph.graph import CompiledArrow, Graph, Node
from tidewheel.core.graph.outputs import FAILED, FINISHED, IMPLIED, SUCCEEDED

_Parent = tuple[str, Offset | None]


@dataclass(frozen=True, slots=True)
class Use:
    """How a condition uses one parent."""

    outputs: frozenset[str] = frozenset()
    needed: bool = False


@dataclass(frozen=True, slots=True)
class EdgeFact:
    """Of one edge, whichever arrows it comes from."""

    outputs: frozenset[str] = frozenset()
    certain: bool = False

    @property
    def label(self) -> str:
        """Nothing for success, which is what everybody expects."""
        if self.outputs <= {SUCCEEDED}:
            return ""
        if self.outputs == {SUCCEEDED, FAILED}:
            return FINISHED
        return ", ".join(sorted(self.outputs))


def edge_facts(graph: Graph, shown: Window, start: Point) -> dict[Edge, EdgeFact]:
    """A fact for each edge of the window; one from an xtrigger is certain."""
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
    """Each parent in a condition, and whether the condition can be true without it."""
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
