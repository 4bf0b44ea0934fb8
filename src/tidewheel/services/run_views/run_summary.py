"""A run in one row: how far it is, and what a person should look at first."""

from __future__ import annotations

from tidewheel.services.run_views.loading import Looked
from tidewheel.services.run_views.run_document import run_document
from tidewheel.services.run_views.run_facts import Document

CAUSES_MAX = 5


def summary_document(looked: Looked) -> Document:
    """From the same document as the whole run; `to_come` are points that have not begun."""
    whole = run_document(looked, {})
    points, causes = whole["points"], whole["causes"]
    lost, held, bounds = whole["lost"], whole["held"], whole["bounds"]
    assert isinstance(points, list) and isinstance(causes, list) and isinstance(bounds, dict)
    assert isinstance(lost, list) and isinstance(held, list)
    return {
        "run": whole["run"],
        "batch": looked.view.batch,
        "counts": whole["counts"],
        "tasks": sum(one["tasks"] for one in points),
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
