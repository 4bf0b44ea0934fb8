"""Answers browsers: with the web page and its files, documentation, and what REST can do.

Where the page was not built, a plain one stands in for it.
"""

from __future__ import annotations

import asyncio

from starlette.responses import RedirectResponse

from tidewheel.core.queue.access import Scope
from tidewheel.errors import NotFound
from tidewheel.server import static_page
from tidewheel.server.call import Answer, Call
from tidewheel.server.openapi import OpenApiDocument, document
from tidewheel.server.openapi import html as openapi_html
from tidewheel.server.resources.health import seen_by
from tidewheel.server.routes import API, Needs, Open, Route, no_queue

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
    """Returns the page, which holds nothing of anybody's: what it shows, it asks for."""
    built = await asyncio.to_thread(static_page.index_page, call.settings.web)
    if built is None:
        return RedirectResponse(STATUS_PAGE)
    return Answer(body=built, media_type=HTML)


async def status(call: Call) -> object:
    return Answer(body=static_page.html(await seen_by(call)), media_type=HTML)


async def asset(call: Call) -> object:
    name = call.path["name"]
    found = await asyncio.to_thread(
        static_page.asset, call.settings.web, name, compressed=call.takes_gzip
    )
    if found is None:
        raise NotFound("file", name)
    return Answer(body=found.content, media_type=found.media_type, headers=found.headers)


PAGE_ROUTES = (
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


# The description of all requests.


async def openapi(call: Call) -> object:
    return document(call.routes)


async def rest_page(call: Call) -> object:
    return Answer(body=openapi_html(call.routes), media_type="text/html; charset=utf-8")


_GUARD = Needs(scopes=(Scope.READ,), queues=no_queue)


# The documentation, for all who reach the server: it says nothing about anybody.


ROOT = "/docs"
LEVELS = "abcd"[: static_page.DEPTH_MAX]
# One path for each depth: no route of the table takes paths of any length.
DOCS_PATHS = tuple(
    ROOT + "".join(f"/{{{name}}}" for name in LEVELS[:depth])
    for depth in range(1, static_page.DEPTH_MAX + 1)
)


async def root(call: Call) -> object:
    del call
    return RedirectResponse(f"{ROOT}/")


async def docs_page(call: Call) -> object:
    folder, names = call.settings.manual, tuple(call.path.values()) or (static_page.INDEX,)
    found = await asyncio.to_thread(static_page.docs_page, folder, names)
    if found is not None:
        return Answer(body=found.content, media_type=found.media_type, headers=found.headers)
    told = static_page.NO_SUCH_PAGE if static_page.is_built(folder) else static_page.NOT_BUILT
    return Answer(body=told, status=404, media_type=static_page.DOCS_MEDIA_TYPES[".html"])


_FOR_EVERYBODY = Open(because="the documentation is the same in every copy of tidewheel")
DOCS_ROUTES = (
    Route(
        method="GET",
        path=ROOT,
        guard=_FOR_EVERYBODY,
        handler=root,
        media_type="text/html",
        says="Leads to the documentation.",
        answers=str,
        page=True,
    ),
    *(
        Route(
            method="GET",
            path=path,
            guard=_FOR_EVERYBODY,
            handler=docs_page,
            media_type="text/html",
            says="A page of the documentation, or a file of it.",
            answers=str,
            page=True,
        )
        for path in (f"{ROOT}/", *DOCS_PATHS)
    ),
)
REFERENCE_ROUTES = (
    Route(
        method="GET",
        path=f"{API}/openapi.json",
        guard=_GUARD,
        handler=openapi,
        says="This interface as an OpenAPI 3.1 document.",
        answers=OpenApiDocument,
    ),
    Route(
        method="GET",
        path=f"{API}/docs",
        guard=_GUARD,
        handler=rest_page,
        media_type="text/html",
        says="This interface as a page to read.",
        answers=str,
    ),
    *DOCS_ROUTES,
)
ROUTES = (*PAGE_ROUTES, *REFERENCE_ROUTES)
