"""Answers for the registry: definitions by name and version, judged before they are kept.

Nothing of a bundle is executed here, and nothing is written to a disk by the names in it.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import msgspec

from tidewheel.api.operation import READ, SUBMIT
from tidewheel.api.operations import SECONDS_MAX, WORKFLOWS, Named, Parameters
from tidewheel.api.workflows import DefinitionGraph, RegisteredWorkflows
from tidewheel.core.operator.registry import Bundle
from tidewheel.server.call import Answer, Call
from tidewheel.server.errors import BadRequest
from tidewheel.server.operation_routes import registry_door, routes_of, workflow_of_path
from tidewheel.server.resources.run_creation import FILES_MAX, Path, Point, Text
from tidewheel.server.routes import Needs, RouteList, no_queue
from tidewheel.server.validation import In, read

BUNDLES_MAX = 1_000
ROUTES = RouteList()


class BytesIn(In):
    """The content of a file that is no text."""

    base64: str


class BundleIn(In):
    """Definitions with the files that belong to them, by their paths."""

    files: Annotated[dict[Path, Text | BytesIn], msgspec.Meta(max_length=FILES_MAX)] = (
        msgspec.field(default_factory=dict)
    )
    executable: Annotated[tuple[Path, ...], msgspec.Meta(max_length=FILES_MAX)] = ()
    name: Named = ""  # of a flow.cylc; a SIP definition says it itself
    version: Named = ""
    file: Annotated[str, msgspec.Meta(max_length=1_000)] = ""  # only this definition
    folder: Annotated[str, msgspec.Meta(max_length=1_000)] = (
        ""  # that they lie in, for findings
    )
    folders: Annotated[tuple[Path, ...], msgspec.Meta(max_length=FILES_MAX)] = ()  # for advice


class RegisterIn(BundleIn):
    """One bundle, or several, of which all or none are registered."""

    bundles: Annotated[tuple[BundleIn, ...], msgspec.Meta(max_length=BUNDLES_MAX)] = ()


class RegisterQuery(In):
    """The name and version of an archive, which JSON says itself; `strict` rejects warnings."""

    name: Named = ""
    version: Named = ""
    strict: bool = False


class GraphIn(In):
    """The points, as `tidewheel graph` takes them, and the parameters of a request."""

    parameters: Parameters | None = None
    start: Point = ""
    stop: Point = ""


def _bundle(form: BundleIn) -> Bundle:
    said = {name: getattr(form, name) for name in ("name", "version", "file", "folder")}
    return Bundle(
        files={path: _content(path, given) for path, given in form.files.items()},
        executable=frozenset(form.executable) & form.files.keys(),
        folders=frozenset(form.folders),
        **said,
    )


def _content(path: str, given: str | BytesIn) -> bytes:
    wanted = "no Unicode text" if isinstance(given, str) else "not base64"
    try:
        if isinstance(given, str):
            return given.encode()
        return base64.b64decode(given.base64, validate=True)
    except ValueError:  # both kinds are
        raise BadRequest([f"files: {path[:100]!r} is {wanted}"]) from None


@ROUTES.add(
    "POST /workflows",
    Needs(SUBMIT, no_queue),
    "Register every definition of a bundle, or none: an archive, or files as JSON.",
    RegisteredWorkflows,
    query=RegisterQuery,
    raw=("application/json", "application/x-tar", "application/gzip", "application/zip"),
    body=RegisterIn,
    status=201,
    seconds_max=SECONDS_MAX,
)
async def register(call: Call) -> object:
    query = call.query_as(RegisterQuery)
    async with call.doors.beginning:
        bundles = await asyncio.to_thread(_bundles, call.raw, query)
        told = await registry_door(call).register(bundles, who=call.who, strict=query.strict)
    made: Any = told["workflows"]
    call.targets += [f"{one['name']}/{one['version']}" for one in made]
    is_new = any(one["is_new"] for one in made)
    return Answer(body=told, status=201 if is_new else 200)


def _bundles(raw: bytes, query: RegisterQuery) -> Sequence[Bundle]:
    if raw.lstrip()[:1] in (b"{", b""):
        form = read(raw or b"{}", RegisterIn)
        if bool(form.files) == bool(form.bundles):
            raise BadRequest(["give either files, by their paths, or bundles of such files"])
        return [_bundle(one) for one in (form.bundles or (form,))]
    from tidewheel.core.graph.findings import Findings, InvalidDefinition
    from tidewheel.services.registry.bundles import read_archive

    findings = Findings()
    bundle = read_archive(raw, findings)
    if bundle is None:
        raise InvalidDefinition(query.name or "archive", findings.sorted())
    return [replace(bundle, name=query.name, version=query.version)]


ROUTES += routes_of(WORKFLOWS)


@ROUTES.add(
    "POST /workflows/{name}/{version}/graph",
    Needs(READ, no_queue, workflow_of_path),
    "The graph of one version before any run: who would wait for whom.",
    DefinitionGraph,
    body=GraphIn,
    audited=False,  # it changes nothing
    seconds_max=SECONDS_MAX,
)
async def graph(call: Call) -> object:
    asked, named = call.body_as(GraphIn), (call.path["name"], call.path["version"])
    given, points = asked.parameters or {}, (asked.start, asked.stop)
    async with call.doors.beginning:
        return await registry_door(call).graph(*named, given, points)
