"""How far a workflow is rehearsed that would go on for ever."""

from __future__ import annotations

from heapq import merge

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.graph import Graph

POINTS_DEFAULT = 10


def last_of(graph: Graph, count: int = POINTS_DEFAULT) -> Point | None:
    """The last of so many points over all sequences; None if the workflow ends by itself."""
    cycling = graph.cycling
    if cycling.final is not None or cycling.stop is not None:
        return None
    first = cycling.initial if cycling.start is None else cycling.start
    last = first
    # From the start on; no sequence is walked further than it is asked for.
    for point in merge(*(sequence.points(first) for sequence in graph.sequences())):
        if point > last:
            count -= 1
            if count < 1:
                break
            last = point
    return last
