"""What can be asked of this server, for machines and for people."""

from __future__ import annotations

from typing import Any

from tidewheel.core.queue.access import Scope
from tidewheel.server.call import Answer, Call
from tidewheel.server.openapi import document
from tidewheel.server.page import html
from tidewheel.server.routes import API, Needs, Route, no_queue


async def openapi(call: Call) -> object:
    return document(call.routes)


async def page(call: Call) -> object:
    return Answer(body=html(call.routes), media_type="text/html; charset=utf-8")


_GUARD = Needs(scopes=(Scope.READ,), queues=no_queue)
ROUTES = (
    Route(
        method="GET",
        path=f"{API}/openapi.json",
        guard=_GUARD,
        handler=openapi,
        says="This interface as an OpenAPI 3.1 document.",
        answers=dict[str, Any],
    ),
    Route(
        method="GET",
        path=f"{API}/docs",
        guard=_GUARD,
        handler=page,
        media_type="text/html",
        says="This interface as a page to read.",
        answers=str,
    ),
)
