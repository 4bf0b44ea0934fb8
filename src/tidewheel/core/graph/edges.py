"""The graph between two points, task by task: what drawings and comparisons are made from.

Suicide arrows are left out unless asked for. A parent before the first point of the window is
not drawn, its child is; a parent beyond the last point is, because it will be waited for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.cycling.sequence import Sequence
from tidewheel.core.graph.graph import CompiledArrow, Graph, atoms_of

EDGES_MAX = 1_000_000  # of one drawing (RELIABILITY S17)
POINTS_BY_DEFAULT = 3  # of the drawing when no last point is given


class TaskAt(NamedTuple):
    """A task; an xtrigger has the name `@label`."""

    node: str
    point: Point


class Edge(NamedTuple):
    """Leads from a parent to a child."""

    parent: TaskAt
    child: TaskAt
    suicide: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    """The tasks and edges between two points; `cut` if there were more than are shown."""

    tasks: frozenset[TaskAt]
    edges: frozenset[Edge]
    cut: bool = False


def window(
    graph: Graph, start: Point, stop: Point | None = None, *, suicides: bool = False
) -> Window:
    """Everything from `start` to `stop`; without one, the first few points."""
    last = _last_point(graph, start, stop)
    first = _first_point(graph, start)
    tasks: set[TaskAt] = set()
    edges: set[Edge] = set()
    for found in _walk(graph, start, last, suicides=suicides):
        if len(edges) + len(tasks) > EDGES_MAX:
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
        points = sorted(
            {point for sequence in graph.sequences() for point in _few(sequence, start)}
        )
        bounds.extend(points[:POINTS_BY_DEFAULT][-1:])
    return min(bounds, default=None)


def _few(sequence: Sequence, start: Point) -> Iterator[Point]:
    point = sequence.first_from(start)
    for _ in range(POINTS_BY_DEFAULT):
        if point is None:
            return
        yield point
        point = sequence.next_after(point)


def reference_lines(graph: Graph, shown: Window) -> Iterator[str]:
    """The window in the format that `cylc graph --reference` prints."""
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
