"""A run in one row: how far it is, and what a person should look at first."""

from __future__ import annotations

from collections import Counter
from itertools import islice

from tidewheel.core.cycling.calendar import Point
from tidewheel.views.loading import Looked
from tidewheel.views.run_document import known_tasks, run_document
from tidewheel.views.run_facts import Document

CAUSES_MAX = 5
POINTS_TO_COME_MAX = 1_000  # counted of a recurrence; of a run with more the total is not known


def summary_document(looked: Looked) -> Document:
    """Returns the run in short; `tasks` counts points that have begun, `total` all points."""
    whole = run_document(looked, {})
    points, causes = whole["points"], whole["causes"]
    lost, held, bounds = whole["lost"], whole["held"], whole["bounds"]
    assert isinstance(points, list) and isinstance(causes, list) and isinstance(bounds, dict)
    assert isinstance(lost, list) and isinstance(held, list)
    known = sum(one["tasks"] for one in points)
    to_come = _tasks_to_come(looked)
    return {
        "run": whole["run"],
        "batch": looked.view.batch,
        "counts": whole["counts"],
        "tasks": known,
        "total": None if to_come is None else known + to_come,
        "done": sum(one["done"] for one in points),
        "points": {
            "known": len(points),
            "oldest": bounds["oldest"],
            "newest": points[-1]["point"] if points else None,
            "final": bounds["stop"] or bounds["final"],
            "to_come": bounds["points_to_stop"],
        },
        "stall": whole["stall"],
        "causes": causes[:CAUSES_MAX],
        "causes_count": len(causes),
        "lost": len(lost),
        "held": len(held),
    }


def _tasks_to_come(looked: Looked) -> int | None:
    """Counts the tasks of points that have not begun; None if the run has no end, or a far one.

    Counted by recurrence: nodes on the same ones are as many at each point of them.
    """
    pool = looked.pool
    ends = [end for end in (pool.run.stop, pool.plan.final) if end is not None]
    if not ends:
        return None
    newest = max(known_tasks(looked), default=Point(pool.run.start - 1))
    nodes_on = Counter(node.sequences for node in pool.plan.nodes.values())
    total = 0
    for sequences, nodes in nodes_on.items():
        points: set[Point] = set()
        for one in sequences:
            first = one.sequence.next_after(newest)
            if first is not None:
                to_come = one.sequence.points(first, min(ends))
                points.update(islice(to_come, POINTS_TO_COME_MAX))
        if len(points) >= POINTS_TO_COME_MAX:
            return None
        total += nodes * len(points)
    return total
