"""Every route of the server: what is not here cannot be called."""

from __future__ import annotations

from tidewheel.server.resources import (
    channels,
    documentation,
    execution_info,
    health,
    queues,
    reports,
    runs,
    sessions,
    statistics,
    task_changes,
    task_edges,
    task_looks,
    task_submission,
    tokens,
    workers,
)
from tidewheel.server.routes import Route

# A path with fixed words comes before one that names something in the same place.
ROUTES: tuple[Route, ...] = (
    *health.ROUTES,
    *documentation.ROUTES,
    *task_submission.ROUTES,
    *task_edges.ROUTES,
    *task_changes.ROUTES,
    *reports.ROUTES,
    *execution_info.ROUTES,
    *task_looks.ROUTES,
    *queues.ROUTES,
    *workers.ROUTES,
    *channels.ROUTES,
    *runs.ROUTES,
    *statistics.ROUTES,
    *tokens.ROUTES,
    *sessions.ROUTES,
)
