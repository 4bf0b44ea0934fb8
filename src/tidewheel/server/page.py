"""The OpenAPI document as a page for people: plain HTML, nothing fetched from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from html import escape
from typing import get_args, get_origin

import msgspec

from tidewheel.server.routes import Needs, Route
from tidewheel.server.wire.validation import field_names

_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>tidewheel: REST API</title>
<meta name="viewport" content="width=device-width, initial-scale=1"></head><body>
<h1>tidewheel: REST API</h1>
<p>The same as an <a href="/api/v1/openapi.json">OpenAPI 3.1 document</a>. Send the header
<code>Authorization: Bearer TOKEN</code>; bodies are JSON; errors are
<code>application/problem+json</code> with <code>code</code>, <code>message</code>,
<code>status</code>, <code>allowed</code>, <code>findings</code> and <code>id</code>. A slash
within an id is written <code>%2F</code>.</p>
<table border="1" cellpadding="4"><thead><tr><th>Request</th><th>What it does</th>
<th>Scope</th><th>Parameters</th><th>Body</th></tr></thead><tbody>
"""
_FOOT = "</tbody></table></body></html>\n"


def html(routes: Iterable[Route]) -> str:
    """One row per route."""
    return _HEAD + "".join(_row(route) for route in routes if not route.page) + _FOOT


def _row(route: Route) -> str:
    scopes = " or ".join(route.guard.scopes) if isinstance(route.guard, Needs) else "no token"
    query = ", ".join(field_names(route.query)) if route.query is not None else ""
    cells = (scopes, query, _body(route))
    return (
        f"<tr><td><code>{escape(route.verb)}</code></td><td>{escape(route.says)}</td>"
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + "</tr>\n"
    )


def _body(route: Route) -> str:
    return "" if route.body is None else _fields(route.body)


def _fields(kind: object) -> str:
    """The names in an object, or in each of a list; of one or the other, those of the first."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return ", ".join(field_names(kind))
    if is_dataclass(kind):
        return ", ".join(field.name for field in fields(kind))
    several = "a list of: " if get_origin(kind) is list else "one, or a list of: "
    return several + _fields(get_args(kind)[0])
