"""Answers with the description of all requests, and with the documentation for people."""

from __future__ import annotations

import asyncio

from starlette.responses import RedirectResponse

from tidewheel.core.queue.access import Scope
from tidewheel.server import docs_site
from tidewheel.server.call import Answer, Call
from tidewheel.server.openapi import OpenApiDocument, document, html
from tidewheel.server.routes import API, Needs, Open, Route, no_queue


async def openapi(call: Call) -> object:
    return document(call.routes)


async def page(call: Call) -> object:
    return Answer(body=html(call.routes), media_type="text/html; charset=utf-8")


_GUARD = Needs(scopes=(Scope.READ,), queues=no_queue)


# The documentation, for whoever reaches the server: it says nothing about anybody.


ROOT = "/docs"
LEVELS = "abcd"[: docs_site.DEPTH_MAX]
# One path for each depth: no route of the table takes paths of any length.
PATHS = tuple(
    ROOT + "".join(f"/{{{name}}}" for name in LEVELS[:depth])
    for depth in range(1, docs_site.DEPTH_MAX + 1)
)


async def root(call: Call) -> object:
    del call
    return RedirectResponse(f"{ROOT}/")


async def docs_page(call: Call) -> object:
    folder, names = call.settings.manual, tuple(call.path.values()) or (docs_site.INDEX,)
    found = await asyncio.to_thread(docs_site.page, folder, names)
    if found is not None:
        return Answer(body=found.content, media_type=found.media_type, headers=found.headers)
    told = docs_site.NO_SUCH_PAGE if docs_site.is_built(folder) else docs_site.NOT_BUILT
    return Answer(body=told, status=404, media_type=docs_site.MEDIA_TYPES[".html"])


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
        for path in (f"{ROOT}/", *PATHS)
    ),
)
ROUTES = (
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
        handler=page,
        media_type="text/html",
        says="This interface as a page to read.",
        answers=str,
    ),
    *DOCS_ROUTES,
)
