"""Every route of the server: what is not here cannot be called."""

from __future__ import annotations

from tidewheel.server.resources import (
    adoption,
    channels,
    documentation,
    events,
    execution_info,
    health,
    home,
    job_words,
    log_intake,
    manual_pages,
    queues,
    reports,
    run_commands,
    run_making,
    runs,
    sessions,
    statistics,
    task_changes,
    task_edges,
    task_looks,
    task_submission,
    tokens,
    whole_store,
    workers,
)
from tidewheel.server.routes import Route

# A path with fixed words comes before one that names something in the same place.
ROUTES: tuple[Route, ...] = (
    *health.ROUTES,
    *home.ROUTES,
    *documentation.ROUTES,
    *manual_pages.ROUTES,
    *task_submission.ROUTES,
    *whole_store.ROUTES,
    *task_edges.ROUTES,
    *task_changes.ROUTES,
    *reports.ROUTES,
    *log_intake.ROUTES,
    *job_words.ROUTES,
    *execution_info.ROUTES,
    *task_looks.ROUTES,
    *queues.ROUTES,
    *workers.ROUTES,
    *adoption.ROUTES,
    *channels.ROUTES,
    *runs.ROUTES,
    *run_making.ROUTES,
    *run_commands.ROUTES,
    *events.ROUTES,
    *statistics.ROUTES,
    *tokens.ROUTES,
    *sessions.ROUTES,
)
