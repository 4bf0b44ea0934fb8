"""The documentation, for whoever reaches the server: it says nothing about anybody."""

from __future__ import annotations

import asyncio

from starlette.responses import RedirectResponse

from tidewheel.server import manual
from tidewheel.server.call import Answer, Call
from tidewheel.server.routes import Open, Route

ROOT = "/docs"
LEVELS = "abcd"[: manual.DEPTH_MAX]
# One path for each depth: no route of the table takes paths of any length.
PATHS = tuple(
    ROOT + "".join(f"/{{{name}}}" for name in LEVELS[:depth])
    for depth in range(1, manual.DEPTH_MAX + 1)
)


async def root(call: Call) -> object:
    del call
    return RedirectResponse(f"{ROOT}/")


async def page(call: Call) -> object:
    folder, names = call.settings.manual, tuple(call.path.values()) or (manual.INDEX,)
    found = await asyncio.to_thread(manual.page, folder, names)
    if found is not None:
        return Answer(body=found.content, media_type=found.media_type, headers=found.headers)
    told = manual.NO_SUCH_PAGE if manual.is_built(folder) else manual.NOT_BUILT
    return Answer(body=told, status=404, media_type=manual.MEDIA_TYPES[".html"])


_GUARD = Open(because="the documentation is the same in every copy of tidewheel")
ROUTES = (
    Route(
        method="GET",
        path=ROOT,
        guard=_GUARD,
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
            guard=_GUARD,
            handler=page,
            media_type="text/html",
            says="A page of the documentation, or a file of it.",
            answers=str,
            page=True,
        )
        for path in (f"{ROOT}/", *PATHS)
    ),
)
