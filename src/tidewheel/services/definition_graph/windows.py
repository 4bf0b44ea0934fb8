"""Which part of a graph somebody asked for: START and STOP."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from heapq import merge
from typing import TYPE_CHECKING, NamedTuple

from tidewheel.core.graph.edges import Window, window
from tidewheel.errors import Refused

if TYPE_CHECKING:
    from tidewheel.core.cycling.calendar import Point
    from tidewheel.core.cycling.sequence import Sequence
    from tidewheel.core.graph.graph import Graph
    from tidewheel.formats.flow_cylc.workflow import LoadedWorkflow

TASKS_MAX = 200_000  # for programs
TASKS_READ_MAX = 5_000  # for people


class BadWindow(Refused):
    """START and STOP enclose nothing, or too much."""

    code = "bad_window"


class Shown(NamedTuple):
    """A graph, and the part of it between two points."""

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
) -> Shown:
    """START may be relative to the initial point, STOP to START; what is too much is cut."""
    graph, reader = loaded.graph, loaded.reader
    assert graph is not None
    assert reader is not None
    first = graph.cycling.initial
    if start:
        first = reader.relative_point(start, first, graph.cycling.final)
    if not stop:
        return Shown(graph, first, None, window(graph, first, suicides=suicides))
    last = reader.relative_point(stop, first, graph.cycling.final)
    if last < first:
        text = graph.cycling.style.text
        raise BadWindow(
            f"STOP {text(last)} is before START {text(first)}; give the earlier point first"
        )
    nearer = _nearer_stop(graph, first, last, tasks_max)
    shown = window(graph, first, nearer, suicides=suicides)
    return Shown(graph, first, nearer, replace(shown, cut=shown.cut or nearer < last))


def _nearer_stop(graph: Graph, start: Point, stop: Point, tasks_max: int) -> Point:
    """The last point until which there are not too many tasks; one point there is always."""
    if graph.cycling.final is not None:
        stop = min(stop, graph.cycling.final)
    weights = Counter(one for node in graph.nodes.values() for one in node.sequences)
    placed = (_weighted(sequence, weight, start, stop) for sequence, weight in weights.items())
    total, before, here = 0, None, None
    for point, weight in merge(*placed):
        if point != here:
            before, here = here, point
        total += weight
        if total > tasks_max:
            return point if before is None else before
    return stop


def _weighted(
    sequence: Sequence, weight: int, start: Point, stop: Point
) -> Iterator[tuple[Point, int]]:
    for point in sequence.points(start, stop):
        yield point, weight
