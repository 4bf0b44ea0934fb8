"""Answers browsers and monitors: the web page, documentation, REST, health, figures.

Where the page was not built, a plain one stands in for it.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

from starlette.responses import RedirectResponse

from tidewheel.core.queue.access import run_name
from tidewheel.errors import NotFound, TidewheelError
from tidewheel.ports.store import Store
from tidewheel.server import metrics, static_page
from tidewheel.server.call import Answer, Call
from tidewheel.server.load_shedding import Urgency
from tidewheel.server.openapi import OpenApiDocument, document
from tidewheel.server.openapi import html as openapi_html
from tidewheel.server.routes import READS, Open, RouteList
from tidewheel.server.validation import Out

READY_SECONDS_MAX = 2.0
RUNS_MAX = 1_000
STATUS_PAGE = "/status"
HTML = "text/html; charset=utf-8"
# Every address of the web page (web/src/pages): a reload finds the same page again.
PAGES = (
    *("/", "/runs", "/runs/{run}", "/workflows", "/workflows/{workflow}"),
    *("/workflows/{workflow}/{version}", "/requests", "/tasks", "/tasks/{task}"),
    *("/queues/{queue}", "/workers", "/workers/{worker}", "/statistics", "/tokens"),
    *("/notifications", "/definition"),
)
DOCS = "/docs"
# One path for each depth: no route of the table takes paths of any length.
DOCS_PATHS = tuple(
    DOCS + "".join(f"/{{{name}}}" for name in "abcd"[:depth])
    for depth in range(1, static_page.DEPTH_MAX + 1)
)
ROUTES = RouteList()


class Health(Out):
    """The health of the server: "ok", or what is wrong."""

    status: str


@ROUTES.add(
    "GET /healthz",
    Open(because="a program that watches the server, such as systemd, has no token"),
    "Whether the process answers.",
    Health,
    root="",
    urgency=Urgency.REPORT,  # else a server that has much to do would be ended for it
)
async def live(call: Call) -> object:
    del call
    return Health(status="ok")


@ROUTES.add(
    "GET /readyz",
    Open(because="a load balancer has no token"),
    "Whether the store answers; 503 if not.",
    Health,
    root="",
    urgency=Urgency.REPORT,
)
async def ready(call: Call) -> object:
    try:
        async with asyncio.timeout(READY_SECONDS_MAX):
            await call.store.now()
    except (TidewheelError, TimeoutError):
        return Answer(body=Health(status="the store does not answer"), status=503)
    return Health(status="ok")


@ROUTES.add(
    "GET /metrics",
    READS,
    "Metrics for Prometheus: queues, workers, runs, database, requests.",
    str,
    root="",
    media_type="text/plain",
)
async def figures(call: Call) -> object:
    of_server = call.server.metrics if call.grant.covers_everything else None
    body = metrics.text(of_server, await _seen_by(call))
    return Answer(body=body, media_type=metrics.MEDIA_TYPE)


async def _seen_by(call: Call) -> metrics.StoreFigures:
    """Returns the figures of the store, up to a second old, that this caller may see."""
    seen = await call.server.metrics.seen(partial(_look, call.store))
    return replace(
        seen,
        queues=[one for one in seen.queues if call.covers_queue(one.queue)],
        workers=[one for one in seen.workers if call.sees(one)],
        runs=[one for one in seen.runs if call.covers(run_name(one.name))],
        figures=[
            one
            for one in seen.figures
            if call.grant.covers_everything or one.name == metrics.POOL
        ],
    )


async def _look(store: Store) -> metrics.StoreFigures:
    return metrics.StoreFigures(
        queues=await store.queues(),
        workers=await store.workers(),
        runs=await store.runs(count=RUNS_MAX, nested=True),
        figures=await store.figures(),
    )


@ROUTES.add(
    f"GET {STATUS_PAGE}",
    READS,
    "Runs, queues and workers as a plain page to look at.",
    str,
    root="",
    media_type="text/html",
)
async def status(call: Call) -> object:
    return Answer(body=static_page.html(await _seen_by(call)), media_type=HTML)


@ROUTES.add(
    "GET /assets/{name}",
    Open(because="the files of the web page are in every copy of tidewheel"),
    "A file of the web page.",
    bytes,
    root="",
    media_type="application/octet-stream",
    page=True,
)
async def asset(call: Call) -> object:
    name = call.path["name"]
    found = await asyncio.to_thread(
        static_page.asset, call.server.settings.web, name, compressed=call.takes_gzip
    )
    if found is None:
        raise NotFound("file", name)
    return Answer(body=found.content, media_type=found.media_type, headers=found.headers)


async def page(call: Call) -> object:
    """Answers with the web page, which holds no data: it asks the API for what it shows. Where
    it was not built, leads to the plain page."""
    built = await asyncio.to_thread(static_page.index_page, call.server.settings.web)
    if built is None:
        return RedirectResponse(STATUS_PAGE)
    return Answer(body=built, media_type=HTML)


for path in PAGES:
    ROUTES.add(
        f"GET {path}",
        Open(because="the web page itself says how to log in; it holds no data"),
        "The web page; a plain page if the web page was not built.",
        str,
        root="",
        media_type="text/html",
        page=True,
    )(page)


@ROUTES.add(
    "GET /openapi.json", READS, "This interface as an OpenAPI 3.1 document.", OpenApiDocument
)
async def openapi(call: Call) -> object:
    return document(call.server.routes)


@ROUTES.add(
    "GET /docs", READS, "This interface as a page to read.", str, media_type="text/html"
)
async def rest_page(call: Call) -> object:
    return Answer(body=openapi_html(call.server.routes), media_type=HTML)


# The documentation, for all who reach the server: it says nothing about anybody.


async def docs_page(call: Call) -> object:
    folder = call.server.settings.manual
    names = tuple(call.path.values()) or (static_page.INDEX,)
    found = await asyncio.to_thread(static_page.docs_page, folder, names)
    if found is not None:
        return Answer(body=found.content, media_type=found.media_type, headers=found.headers)
    told = static_page.NO_SUCH_PAGE if static_page.is_built(folder) else static_page.NOT_BUILT
    return Answer(body=told, status=404, media_type=HTML)


async def docs_root(call: Call) -> object:
    del call
    return RedirectResponse(f"{DOCS}/")


for path in (DOCS, f"{DOCS}/", *DOCS_PATHS):
    ROUTES.add(
        f"GET {path}",
        Open(because="the documentation is the same in every copy of tidewheel"),
        "Redirects to the documentation."
        if path == DOCS
        else "A page of the documentation, or a file of it.",
        str,
        root="",
        media_type="text/html",
        page=True,
    )(docs_root if path == DOCS else docs_page)
