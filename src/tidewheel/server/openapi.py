"""Makes the OpenAPI 3.1 document from the table of routes and the types on the wire."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from html import escape
from typing import Any, TypedDict, get_args, get_origin

import msgspec

from tidewheel import __version__
from tidewheel.server.errors import Problem
from tidewheel.server.routes import API, Needs, Route
from tidewheel.server.validation import field_names

Document = dict[str, Any]


class OpenApiDocument(TypedDict):
    """Describes this interface in the form of OpenAPI 3.1."""

    openapi: str
    info: Document
    paths: dict[str, Document]
    components: Document


_REF = "#/components/schemas/{name}"
_WORDS = {
    400: "The body cannot be read.",
    401: "There is no valid token.",
    403: "The token does not allow this.",
    404: "Something that the request names does not exist.",
    408: "The body did not arrive in time.",
    409: "The request conflicts with what is stored.",
    413: "The body is too large.",
    415: "The header Content-Type names a type that this request does not accept.",
    422: "The request has mistakes; the field `findings` lists each of them.",
    429: "Too many wrong tokens came from this address, or a quota or the submit rate of a "
    "queue is used up; Retry-After says when to try again.",
    503: "The server cannot do this now; Retry-After says when to try again.",
}
# Whatever is asked for, before anybody looks at what it is (`middleware`).
_AT_THE_DOOR = {
    414: "The URL is too long.",
    421: "This is not a host name of this server.",
    431: "The headers are too large.",
}


def document(routes: Iterable[Route]) -> OpenApiDocument:
    """Returns the document of all routes in the table but the addresses of the web page."""
    listed = tuple(route for route in routes if not route.page)
    told = [kind for route in listed for kind in (route.body, route.answers)]
    types = [Problem, *(one for kind in told for one in _kinds(kind))]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    by_type = dict(zip(map(repr, types), schemas, strict=True))
    paths: dict[str, Document] = {}
    for route in listed:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, by_type)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "tidewheel",
            "version": __version__,
            "description": "Runs graphs of tasks that repeat over cycle points.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": _for_generators(components),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _for_generators(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """Returns a schema without `items: false`, which generators of clients do not know. The
    length of a tuple says the same."""
    match schema:
        case dict():
            return {
                key: _for_generators(value)
                for key, value in schema.items()
                if not (key == "items" and value is False)
            }
        case list():
            return [_for_generators(value) for value in schema]
        case _:
            return schema


def _kinds(given: object) -> tuple[object, ...]:
    if given is None:
        return ()
    return given if isinstance(given, tuple) else (given,)


def _schema(given: object, schemas: dict[str, Any]) -> Document:
    found = [schemas[repr(kind)] for kind in _kinds(given)]
    return found[0] if len(found) == 1 else {"anyOf": found}


def _operation(route: Route, schemas: dict[str, Any]) -> Document:
    path = route.path.removeprefix(API)
    schema = {"type": "string", "minLength": 1}
    named: list[Document] = [
        {"name": name, "in": "path", "required": True, "schema": schema}
        for name in route.path_names
    ]
    operation: Document = {
        "operationId": "_".join([route.method.lower(), *re.findall(r"\w+", path)]),
        "tags": [_TAGS.get(path.split("/")[1], "server")],
        "summary": route.says,
        "parameters": [*named, *_query_parameters(route)],
        "responses": _responses(route, schemas),
    }
    if isinstance(route.guard, Needs):
        operation["security"] = [{"token": []}]
        operation["description"] = "Scope: " + " or ".join(route.guard.scopes) + "."
    else:
        operation["security"] = []
        operation["description"] = f"No token is needed: {route.guard.because}."
    if route.changes:
        operation["parameters"].append(_IDEMPOTENCY)
    content: Document = {kind: {"schema": {"type": "string"}} for kind in route.raw}
    if route.body is not None:  # of several media types, JSON is one
        content[_JSON] = {"schema": _schema(route.body, schemas)}
    if content:
        operation["requestBody"] = {"required": True, "content": content}
    return operation


_JSON = "application/json"
_IDEMPOTENCY: Document = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same request with the same key is carried out only once.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 256},
}


# The heading under which generators of clients put a route, by the first word of its path.
_TAGS = {
    **{name: name for name in ("tasks", "queues", "runs", "workflows", "events", "tokens")},
    "grid": "runs",
    **dict.fromkeys(("sbis", "processing-blocks", "objects"), "blocks"),
    **dict.fromkeys(("workers", "heartbeats", "reports", "orphans"), "workers"),
    **dict.fromkeys(("ready-queues", "home", "job"), "workers"),
}


def _query_parameters(route: Route) -> list[Document]:
    if route.query is None:
        return []
    schema = msgspec.json.schema(route.query, ref_template=_REF)
    definitions = schema["$defs"]
    form = definitions[schema["$ref"].rsplit("/", 1)[-1]]
    return [
        {
            "name": name,
            "in": "query",
            "required": name in form.get("required", ()),
            "schema": _inlined(one, definitions),
        }
        for name, one in form["properties"].items()
    ]


def _inlined(schema: Any, definitions: Document) -> Any:  # noqa: ANN401 - JSON
    """Returns a schema with its definitions in place: parameters are few and small, so each
    carries its whole schema."""
    match schema:
        case {"$ref": str(name)}:
            return _inlined(definitions[name.rsplit("/", 1)[-1]], definitions)
        case dict():
            return {key: _inlined(value, definitions) for key, value in schema.items()}
        case list():
            return [_inlined(value, definitions) for value in schema]
        case _:
            return schema


def _responses(route: Route, schemas: dict[str, Any]) -> Document:
    good: Document = {"description": "Done."}
    if route.answers is not None:
        good["content"] = {route.media_type: {"schema": _schema(route.answers, schemas)}}
    problem = {"application/problem+json": {"schema": schemas[repr(Problem)]}}
    words = {status: said for status, said in _WORDS.items() if _may_answer(route, status)}
    bad = {
        str(status): {"description": text, "content": problem}
        for status, text in sorted((words | _AT_THE_DOOR).items())
    }
    fine = {route.status, 200} if route.changes else {route.status}
    later = (
        {"202": good | {"description": "The command is stored, and will be carried out later."}}
        if route.may_be_later
        else {}
    )
    return {**{str(status): good for status in sorted(fine)}, **later, **bad}


def _may_answer(route: Route, status: int) -> bool:
    if not isinstance(route.guard, Needs):
        return route.changes or status in (404, 422, 503)
    return route.changes or status in (401, 403, 404, 409, 422, 429, 503)


# The OpenAPI document as a page for people: plain HTML, nothing fetched from elsewhere.

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
    """Returns the page for people, with one row per route."""
    return _HEAD + "".join(_row(route) for route in routes if not route.page) + _FOOT


def _row(route: Route) -> str:
    scopes = " or ".join(route.guard.scopes) if isinstance(route.guard, Needs) else "no token"
    query = ", ".join(field_names(route.query)) if route.query is not None else ""
    cells = (route.says, scopes, query, "" if route.body is None else _fields(route.body))
    told = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    return f"<tr><td><code>{escape(route.verb)}</code></td>{told}</tr>\n"


def _fields(kind: object) -> str:
    """Returns the names of an object's fields; of a list those of its objects, of several types
    those of the first."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return ", ".join(field_names(kind))
    if is_dataclass(kind):
        return ", ".join(field.name for field in fields(kind))
    several = "a list of: " if get_origin(kind) is list else "one, or a list of: "
    return several + _fields(get_args(kind)[0])
