"""Children and parents against an expander that knows nothing of sequences or links.

The oracle walks every point, evaluates `(point - start) % step` and collects pairs; it shares
no code with the product and would be far too slow for it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.flows import flow, load
from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.graph import Graph, atoms_of

FINAL = 14
NAMES = ("a", "b", "c", "d")
OUTPUTS = ("succeeded", "failed", "started")
MEMBERS = {"FAM": ("m1", "m2", "m3"), "KIN": ("k1", "k2")}
RUNTIME = "\n".join(
    f"[[{family}]]\n[[{', '.join(members)}]]\n    inherit = {family}"
    for family, members in MEMBERS.items()
)

Task = tuple[str, int]


@dataclass(frozen=True)
class Parent:
    """A task or family with an output, so many points away."""

    name: str
    output: str
    offset: int

    @property
    def text(self) -> str:
        offset = (
            f"[{'+' if self.offset > 0 else '-'}P{abs(self.offset)}]" if self.offset else ""
        )
        short = {"succeeded": "succeed", "failed": "fail", "started": "start"}[self.output]
        return f"{self.name}{offset}:{short}{'-all' if self.name in MEMBERS else ''}"

    @property
    def tasks(self) -> tuple[str, ...]:
        return MEMBERS.get(self.name, (self.name,))


@dataclass(frozen=True)
class Line:
    """`R/start/Pstep = parents => child`."""

    start: int
    step: int
    parents: tuple[Parent, ...]
    operator: str
    child: str

    @property
    def text(self) -> str:
        left = f" {self.operator} ".join(parent.text for parent in self.parents)
        return f"R/{self.start}/P{self.step} = {left} => {self.child}"

    @property
    def points(self) -> list[int]:
        return [
            point
            for point in range(1, FINAL + 1)
            if point >= self.start and (point - self.start) % self.step == 0
        ]


parents = st.builds(
    Parent,
    st.sampled_from([*NAMES, *MEMBERS]),
    st.sampled_from(OUTPUTS),
    st.integers(-3, 2),
)
line_values = st.builds(
    Line,
    st.integers(1, 4),
    st.integers(1, 4),
    st.lists(parents, min_size=1, max_size=3, unique=True).map(tuple),
    st.sampled_from(["&", "|"]),
    st.sampled_from([*NAMES, *MEMBERS]),
)
graphs = st.lists(line_values, min_size=1, max_size=5)


def expected_children(lines: list[Line]) -> dict[tuple[str, int, str], set[Task]]:
    found: dict[tuple[str, int, str], set[Task]] = defaultdict(set)
    for line in lines:
        for point in line.points:
            for parent in line.parents:
                for task in parent.tasks:
                    for child in MEMBERS.get(line.child, (line.child,)):
                        found[task, point + parent.offset, parent.output].add((child, point))
    return found


def expected_places(lines: list[Line]) -> dict[str, set[int]]:
    places: dict[str, set[int]] = defaultdict(set)
    for line in lines:
        named = [parent.name for parent in line.parents if not parent.offset] + [line.child]
        for name in named:
            for task in MEMBERS.get(name, (name,)):
                places[task] |= set(line.points)
    return places


def compiled(lines: list[Line]) -> Graph:
    """Whether the graph makes sense (circles, missing parents) is no matter here."""
    text = "\n".join(line.text for line in lines)
    graph = load(flow(text, RUNTIME, final=str(FINAL))).graph
    assert graph is not None
    return graph


@pytest.mark.slow
@given(lines=graphs)
def test_children_are_those_of_a_walk_over_every_point(lines: list[Line]) -> None:
    graph = compiled(lines)
    expected = expected_children(lines)
    for name in graph.nodes:
        for point in range(-3, FINAL + 4):
            for output in OUTPUTS:
                found = graph.children(name, Point(point), output)
                assert {(child.node, child.point) for child in found} == expected.get(
                    (name, point, output), set()
                )


@pytest.mark.slow
@given(lines=graphs)
def test_parents_are_the_children_turned_round(lines: list[Line]) -> None:
    graph = compiled(lines)
    expected = expected_children(lines)
    found: dict[tuple[str, int, str], set[Task]] = defaultdict(set)
    for name in graph.nodes:
        for point in range(1, FINAL + 1):
            for arrow in graph.prerequisites(name, Point(point)):
                for atom in atoms_of(arrow.condition, graph.families):
                    at = graph.parent_point(atom.offset, Point(point))
                    found[atom.node, at, atom.output].add((name, point))
    assert found == expected


@pytest.mark.slow
@given(lines=graphs)
def test_tasks_stand_where_they_are_named_without_an_offset(lines: list[Line]) -> None:
    graph = compiled(lines)
    places = {
        name: {point for point in range(-3, FINAL + 4) if node.is_at(Point(point))}
        for name, node in graph.nodes.items()
    }
    assert {name: points for name, points in places.items() if points} == expected_places(lines)
