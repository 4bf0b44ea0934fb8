"""What a browser finds at the root: how things are, or how to log in."""

from __future__ import annotations

from tidewheel.core.tasks.access import Scope
from tidewheel.server.call import Answer, Call
from tidewheel.server.resources.health import seen_by
from tidewheel.server.routes import Needs, Route, no_queue
from tidewheel.server.status_page import html


async def page(call: Call) -> object:
    return Answer(body=html(await seen_by(call)), media_type="text/html; charset=utf-8")


ROUTES = (
    Route(
        method="GET",
        path="/",
        guard=Needs(scopes=(Scope.READ,), queues=no_queue),
        handler=page,
        media_type="text/html",
        says="Runs, queues and workers as a page to look at.",
        answers=str,
    ),
)
