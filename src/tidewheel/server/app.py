"""The application: the table of routes behind the gateway, behind the doorman."""

from __future__ import annotations

import asyncio
import secrets
from functools import partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp

from tidewheel.config import ServerSettings
from tidewheel.server import problems, site
from tidewheel.server.doorman import Doorman
from tidewheel.server.gateway import Gateway
from tidewheel.server.routes import Route

API = "/api/"
WORDS = {404: ("not_found", "there is nothing at this path"), 405: ("method", "")}


def build_app(gateway: Gateway, settings: ServerSettings) -> ASGIApp:
    """An ASGI application of the gateway's routes."""
    application = Starlette(
        routes=[_mounted(gateway, route) for route in gateway.routes],
        exception_handlers={HTTPException: partial(_not_routed, settings)},
    )
    application.router.redirect_slashes = False
    return Doorman(application, settings)


def _mounted(gateway: Gateway, route: Route) -> StarletteRoute:
    async def endpoint(request: Request) -> Response:
        return await gateway.answer(route, request)

    mounted = StarletteRoute(route.path, endpoint, methods=[route.method])
    mounted.methods = {route.method}  # no HEAD that nobody asked for
    return mounted


async def _not_routed(settings: ServerSettings, request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == problems.NOT_FOUND and _is_for_eyes(request):
        built = await asyncio.to_thread(site.index_page, settings.web)
        if built is not None:  # it says that there is no such page, and where to go
            return HTMLResponse(built, status_code=problems.NOT_FOUND)
    code, words = WORDS.get(error.status_code, ("refused", ""))
    if error.status_code == problems.METHOD_NOT_ALLOWED:
        words = f"{request.method} is not possible here"
    told = problems.plain(error.status_code, code, words, secrets.token_hex(8))
    for name, value in (error.headers or {}).items():
        told.headers[name] = value
    return told


def _is_for_eyes(request: Request) -> bool:
    """Somebody has written an address into a browser; programs want a problem in JSON."""
    accepted = request.headers.get("accept", "")
    is_page = not request.url.path.startswith(API) and "text/html" in accepted
    return request.method == "GET" and is_page
