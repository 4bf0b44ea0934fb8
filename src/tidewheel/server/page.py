"""The OpenAPI document as a page for people: plain HTML, nothing fetched from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from tidewheel.server.routes import Needs, Route
from tidewheel.server.wire.forms import field_names

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
    return _HEAD + "".join(_row(route) for route in routes) + _FOOT


def _row(route: Route) -> str:
    scopes = (
        " or ".join(route.guard.scopes) if isinstance(route.guard, Needs) else "nobody asks"
    )
    query = ", ".join(field_names(route.query)) if route.query is not None else ""
    cells = (scopes, query, _body(route))
    return (
        f"<tr><td><code>{escape(route.verb)}</code></td><td>{escape(route.says)}</td>"
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + "</tr>\n"
    )


def _body(route: Route) -> str:
    if isinstance(route.body, type) and hasattr(route.body, "__struct_fields__"):
        return ", ".join(field_names(route.body))
    return "" if route.body is None else "one object, or a list of them"
