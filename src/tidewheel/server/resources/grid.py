"""Answers for the home of the page: many runs point by point, in one request."""

from __future__ import annotations

from collections import Counter

from tidewheel.api.runs import RunGrid
from tidewheel.api.views import GRID_QUERY
from tidewheel.core.queue.access import run_name
from tidewheel.server.call import Call
from tidewheel.server.routes import READS, RouteList

ROUTES = RouteList()


@ROUTES.add(
    "GET /grid",
    READS,
    "Runs by need for action, with how many tasks are in which state at each point.",
    RunGrid,
    query=GRID_QUERY,
)
async def grid(call: Call) -> object:
    from tidewheel.views.grid import fitting, grid_row  # noqa: PLC0415 - loads the core

    query, store = call.query, call.store
    # Those of others are not counted either: by that one would learn of them.
    seen = [one for one in await store.grid_runs() if call.covers(run_name(one.name))]
    fit = fitting(seen, query.name, query.status)
    chosen = [one.number for one in fit[: query.limit]]
    found = await store.grid_facts(chosen) if chosen else []
    now = await store.now()
    shown = await call.doors.cells.of(store, found, query.points)
    return {
        "runs": [grid_row(run, facts, shown[run.number], now) for run, facts in found],
        "counts": dict(Counter(one.status for one in seen)),
        "left_out": len(fit) - len(chosen),
    }
