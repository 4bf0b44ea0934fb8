"""The application: the table of routes behind the gateway, behind the doorman."""

from __future__ import annotations

import secrets

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp

from tidewheel.config import ServerSettings
from tidewheel.server import problems
from tidewheel.server.doorman import Doorman
from tidewheel.server.gateway import Gateway
from tidewheel.server.routes import Route

WORDS = {404: ("not_found", "there is nothing at this path"), 405: ("method", "")}


def build_app(gateway: Gateway, settings: ServerSettings) -> ASGIApp:
    """An ASGI application of the gateway's routes."""
    application = Starlette(
        routes=[_mounted(gateway, route) for route in gateway.routes],
        exception_handlers={HTTPException: _not_routed},
    )
    application.router.redirect_slashes = False
    return Doorman(application, settings)


def _mounted(gateway: Gateway, route: Route) -> StarletteRoute:
    async def endpoint(request: Request) -> Response:
        return await gateway.answer(route, request)

    mounted = StarletteRoute(route.path, endpoint, methods=[route.method])
    mounted.methods = {route.method}  # no HEAD that nobody asked for
    return mounted


async def _not_routed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code, words = WORDS.get(error.status_code, ("refused", ""))
    if error.status_code == problems.METHOD_NOT_ALLOWED:
        words = f"{request.method} is not possible here"
    told = problems.plain(error.status_code, code, words, secrets.token_hex(8))
    for name, value in (error.headers or {}).items():
        told.headers[name] = value
    return told
