"""Finds how long jobs took in earlier runs; apart, since statistics are slow to import."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from statistics import median
from typing import Any

from tidewheel.core.queue.status import Status
from tidewheel.ports.runs import RunDoor

LISTED_MAX = 100
RUNS_MAX = 5  # the newest ones are looked at
SUBMISSIONS_MAX = 10_000  # of each


async def learnt_lengths(
    door: RunDoor, workflow: str, folders: Collection[str]
) -> dict[str, float]:
    """Returns the median seconds by node, of jobs that succeeded, in the newest runs.

    A folder has several names: a server is told on which machine it is.
    """
    taken: dict[str, list[float]] = {}
    listed: Any = await door.look("runs", {"workflow": workflow, "count": LISTED_MAX})
    runs = [one["name"] for one in listed["runs"] if one["folder"] in folders]
    for run in runs[:RUNS_MAX]:
        shown: Any = await door.look("submissions", {"run": run, "count": SUBMISSIONS_MAX})
        for one in shown["submissions"]:
            if one["status"] == Status.SUCCEEDED and one["started_at"] and one["ended_at"]:
                name = one["id"].partition("/")[2]
                taken.setdefault(name, []).append(_seconds(one["started_at"], one["ended_at"]))
    return {name: median(seconds) for name, seconds in taken.items()}


def _seconds(started: str, ended: str) -> float:
    between = datetime.fromisoformat(ended) - datetime.fromisoformat(started)
    return max(0.0, between.total_seconds())
