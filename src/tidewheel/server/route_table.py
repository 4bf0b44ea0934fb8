"""Lists every route of the server; it stands alone as documentation and tests read it, too."""

from __future__ import annotations

from tidewheel.api.operations import NOTIFICATIONS
from tidewheel.server.operation_routes import routes_of
from tidewheel.server.resources import (
    events,
    execution_info,
    logs,
    queues,
    reports,
    run_creation,
    runs,
    sign_in,
    task_changes,
    task_queries,
    task_submission,
    tokens,
    web_pages,
    workflows,
)
from tidewheel.server.routes import Route

# A path with fixed words comes before one that names something in the same place.
ROUTES: tuple[Route, ...] = (
    *web_pages.ROUTES,
    *task_submission.ROUTES,
    *queues.MANY_ROUTES,
    *task_changes.ROUTES,
    *reports.ROUTES,
    *logs.ROUTES,
    *execution_info.ROUTES,
    *task_queries.ROUTES,
    *queues.ROUTES,
    *events.CHANNEL_ROUTES,
    *runs.ROUTES,
    *run_creation.ROUTES,
    *runs.COMMAND_ROUTES,
    *workflows.ROUTES,
    *events.ROUTES,
    *execution_info.STATISTICS_ROUTES,
    *routes_of(NOTIFICATIONS),
    *tokens.ROUTES,
    *sign_in.ROUTES,
)
