"""Answers browsers: with the web page if it was built, else with a plain one, and its files."""

from __future__ import annotations

import asyncio

from starlette.responses import RedirectResponse

from tidewheel.core.queue.access import Scope
from tidewheel.errors import NotFound
from tidewheel.server import static_page
from tidewheel.server.call import Answer, Call
from tidewheel.server.resources.health import seen_by
from tidewheel.server.routes import Needs, Open, Route, no_queue
from tidewheel.server.static_page import html

STATUS_PAGE = "/status"
HTML = "text/html; charset=utf-8"
# Every address of the web page (web/src/pages): a reload finds the same page again.
PAGES = (
    "/",
    "/runs",
    "/runs/{run}",
    "/workflows",
    "/workflows/{workflow}",
    "/workflows/{workflow}/{version}",
    "/requests",
    "/tasks",
    "/tasks/{task}",
    "/queues/{queue}",
    "/workers",
    "/workers/{worker}",
    "/statistics",
    "/tokens",
    "/notifications",
)


async def page(call: Call) -> object:
    """The page holds nothing of anybody's: what it shows, it asks for."""
    built = await asyncio.to_thread(static_page.index_page, call.settings.web)
    if built is None:
        return RedirectResponse(STATUS_PAGE)
    return Answer(body=built, media_type=HTML)


async def status(call: Call) -> object:
    return Answer(body=html(await seen_by(call)), media_type=HTML)


async def asset(call: Call) -> object:
    name = call.path["name"]
    found = await asyncio.to_thread(
        static_page.asset, call.settings.web, name, compressed=call.takes_gzip
    )
    if found is None:
        raise NotFound("file", name)
    return Answer(body=found.content, media_type=found.media_type, headers=found.headers)


ROUTES = (
    Route(
        method="GET",
        path=STATUS_PAGE,
        guard=Needs(scopes=(Scope.READ,), queues=no_queue),
        handler=status,
        media_type="text/html",
        says="Runs, queues and workers as a plain page to look at.",
        answers=str,
    ),
    Route(
        method="GET",
        path="/assets/{name}",
        guard=Open(because="the files of the web page are in every copy of tidewheel"),
        handler=asset,
        media_type="application/octet-stream",
        says="A file of the web page.",
        answers=bytes,
        page=True,
    ),
    *(
        Route(
            method="GET",
            path=path,
            guard=Open(because="the web page itself says how to log in; it holds no data"),
            handler=page,
            media_type="text/html",
            says="The web page; a plain one where it was not built.",
            answers=str,
            page=True,
        )
        for path in PAGES
    ),
)
