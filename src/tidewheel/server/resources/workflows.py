"""Answers for the registry, and for scheduling block instances, their blocks and objects.

Nothing of a bundle is executed here, and nothing is written to a disk by the names in it.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter
from typing import Annotated, Any, Literal

import msgspec

from tidewheel.api.blocks import ObjectList, SbiAnswer
from tidewheel.api.operation import READ, SUBMIT
from tidewheel.api.operations import (
    BLOCKS,
    CHANGES_OBJECTS,
    OBJECTS,
    SECONDS_MAX,
    WORKFLOWS,
    Named,
    Parameters,
)
from tidewheel.api.workflows import DefinitionGraph, RegisteredWorkflows
from tidewheel.core.operator.blocks import (
    BLOCKS_MAX,
    OBJECTS_MAX,
    PRIORITY_MAX,
    PRIORITY_MIN,
    BlockStatus,
    SbiView,
    read_block_status,
)
from tidewheel.core.operator.definition import RunOptions
from tidewheel.core.operator.registry import Bundle, WorkflowSource
from tidewheel.core.queue.access import Name, run_name, workflow_name
from tidewheel.server.call import Answer, Call, covered_page
from tidewheel.server.errors import BadRequest
from tidewheel.server.operation_routes import (
    block_door,
    name_of_path,
    registry_door,
    routes_of,
    sees_blocks,
)
from tidewheel.server.resources.run_creation import (
    FILES_MAX,
    DefinitionOut,
    DefinitionQuery,
    Path,
    Point,
    RunPointsIn,
    Text,
    definition_answer,
)
from tidewheel.server.routes import Needs, RouteList, no_name
from tidewheel.server.validation import In, read

BUNDLES_MAX = 1_000
ROUTES = RouteList()


class BytesIn(In):
    """The content of a file that is not text."""

    base64: str


class SourceIn(In):
    """Says from where the client fetched the files; a server fetches nothing."""

    url: Annotated[str, msgspec.Meta(min_length=1, max_length=2_000)]
    ref: Named = ""
    commit: Annotated[str, msgspec.Meta(max_length=64)] = ""
    folder: Annotated[str, msgspec.Meta(max_length=1_000)] = ""
    sha256: Annotated[str, msgspec.Meta(max_length=64)] = ""


class BundleIn(In):
    """Definitions with everything that belongs to them: ``files`` has the content of each file,
    by its path."""

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
    source: SourceIn | None = None  # for people: where the files came from


class RegisterIn(BundleIn):
    """One bundle, or several as ``bundles``; all of them are registered, or none."""

    bundles: Annotated[tuple[BundleIn, ...], msgspec.Meta(max_length=BUNDLES_MAX)] = ()


class RegisterQuery(In):
    """Holds name and version of an archive, which JSON says itself; `strict` rejects
    warnings."""

    name: Named = ""
    version: Named = ""
    strict: bool = False


class GraphIn(In):
    """The first and the last point of the graph, as for `tidewheel graph`, and the parameters
    of a run. With `options`, the answer also counts the points and tasks of a run with these
    options."""

    parameters: Parameters | None = None
    start: Point = ""
    stop: Point = ""
    options: RunPointsIn | None = None


def _bundle(form: BundleIn) -> Bundle:
    said = {name: getattr(form, name) for name in ("name", "version", "file", "folder")}
    source = form.source
    return Bundle(
        source=None if source is None else WorkflowSource(**msgspec.structs.asdict(source)),
        files={path: _content(path, given) for path, given in form.files.items()},
        executable=frozenset(form.executable) & form.files.keys(),
        folders=frozenset(form.folders),
        **said,
    )


def _content(path: str, given: str | BytesIn) -> bytes:
    wanted = "not Unicode text" if isinstance(given, str) else "not base64"
    try:
        if isinstance(given, str):
            return given.encode()
        return base64.b64decode(given.base64, validate=True)
    except ValueError:  # both kinds are
        raise BadRequest([f"files: {path[:100]!r} is {wanted}"]) from None


@ROUTES.add(
    "POST /workflows",
    Needs(SUBMIT, no_name),
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
    call.server.quotas.take("runs", call.token)
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
    Needs(READ, name_of_path),
    "The graph of one version before any run: which task would wait for which.",
    DefinitionGraph,
    body=GraphIn,
    audited=False,  # it changes nothing
    seconds_max=SECONDS_MAX,
)
async def graph(call: Call) -> object:
    asked, named = call.body_as(GraphIn), (call.path["name"], call.path["version"])
    given, points = asked.parameters or {}, (asked.start, asked.stop)
    ends = asked.options
    bounds = None if ends is None else RunOptions(**msgspec.structs.asdict(ends))
    return await registry_door(call).graph(*named, given, points, bounds)


@ROUTES.add(
    "GET /workflows/{name}/{version}/definition",
    Needs(READ, name_of_path),
    "The stored definition of one version: its text and its files, or one file.",
    DefinitionOut,
    query=DefinitionQuery,
    seconds_max=SECONDS_MAX,
)
async def definition(call: Call) -> object:
    kept = await registry_door(call).definition(call.path["name"], call.path["version"])
    return definition_answer(kept, call.query_as(DefinitionQuery).path)


# Scheduling block instances, their blocks, and the objects that stages wait for.
#
# An instance begins runs: scope submit, for the workflow and the name of each of its blocks.

BlockName = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Version = str | float


class WorkflowIn(In):
    """A registered workflow and its parameters."""

    id: BlockName
    version: Version = ""  # else the highest
    parameters: dict[str, Any] = msgspec.field(default_factory=dict)


class DependencyIn(In):
    """The dependency on another block, and the condition that it must meet."""

    type: Literal["processing_block"]
    value: BlockName
    condition: Literal["complete", "started", "failed", "aborted", "finished"]
    parameters: dict[str, Any] = msgspec.field(default_factory=dict)


class BlockIn(In):
    """A processing block; its id has the form PB-<date>-<project>-<anything>."""

    id: BlockName
    type: Literal["realtime", "offline"]
    workflow: WorkflowIn
    version: Version = ""
    priority: Annotated[int, msgspec.Meta(ge=PRIORITY_MIN, le=PRIORITY_MAX)] = 0
    dependencies: tuple[DependencyIn, ...] = ()


class SbiIn(In):
    """A scheduling block instance; its id has the form SBI-<date>-<project>-<anything>.

    This type only documents the body. The body is read like a file: the answer lists every
    finding with its line.
    """

    id: BlockName
    version: Literal["2.0"]
    processing_blocks: Annotated[tuple[BlockIn, ...], msgspec.Meta(max_length=BLOCKS_MAX)]
    scheduling_block: dict[str, Any] = msgspec.field(default_factory=dict)
    subarray_id: str = ""
    scans: tuple[dict[str, Any], ...] = ()


class SbiQuery(In):
    """Holds the file name of the text, for findings; .yaml or .yml says that it is YAML. With
    dry_run everything is judged and nothing stored."""

    file: Annotated[str, msgspec.Meta(max_length=200)] = "request.json"
    dry_run: bool = False


class ObjectIn(In):
    """An object that is present from now on, and facts about it."""

    name: BlockName
    facts: dict[str, Any] = msgspec.field(default_factory=dict)


class ObjectsIn(In):
    objects: Annotated[tuple[ObjectIn, ...], msgspec.Meta(min_length=1, max_length=OBJECTS_MAX)]


@ROUTES.add(
    "POST /sbis",
    Needs(SUBMIT, no_name),
    "Request a scheduling block instance as JSON or YAML: all of its blocks are accepted, or "
    "none.",
    SbiAnswer,
    query=SbiQuery,
    raw=("application/json", "application/yaml"),
    body=SbiIn,
    status=201,
    seconds_max=SECONDS_MAX,
)
async def submit(call: Call) -> object:
    """Submits a scheduling block instance; its text is read here, so that findings have
    lines."""
    call.server.quotas.take("runs", call.token)
    query = call.query_as(SbiQuery)
    call.only_tried = query.dry_run
    told = await block_door(call).submit_sbi(
        query.file, call.raw, who=call.who, dry_run=query.dry_run
    )
    call.targets.append(str(told["id"]))
    is_stored = told["is_new"] and not query.dry_run
    return Answer(body=told, status=201 if is_stored else 200)


async def list_sbis(call: Call) -> object:
    """Returns the scheduling block instances that the caller may see, each with all its
    blocks."""
    from tidewheel.services.blocks.service import sbi_facts

    hidden: set[str] = set()
    status, subarray = _wanted(call), call.query.subarray

    async def read(before: str | None, count: int) -> list[SbiView]:
        found = await call.server.asking.sbis(count, before, status=status, subarray=subarray)
        if not call.grant.covers_everything:
            own = [one.id for one in found if call.covers(workflow_name(one.id))]
            hidden.update([one for one in own if not await sees_blocks(call, one)])
        return found

    shown, _ = await covered_page(
        read,
        lambda one: call.covers(workflow_name(one.id)) and one.id not in hidden,
        attrgetter("id"),
        call.query.limit,
        None,
    )
    return {"sbis": list(map(sbi_facts, shown))}


def _wanted(call: Call) -> BlockStatus | None:
    """Returns the status that a query asks for; raises BadSetting for any other word."""
    return None if call.query.status is None else read_block_status(call.query.status)


async def list_blocks(call: Call) -> object:
    """Returns the blocks that the caller may see."""
    from tidewheel.services.blocks.service import blocks_document

    status = _wanted(call)
    shown, _ = await covered_page(
        lambda before, count: call.server.asking.blocks(
            sbi=call.query.sbi,
            status=status,
            workflow=call.query.workflow,
            count=count,
            before=before,
        ),
        lambda one: call.covers(run_name(one.id)),
        attrgetter("run.number"),
        call.query.limit,
        None,
    )
    return await blocks_document(call.server.asking, shown, call.readable)


ROUTES += routes_of(BLOCKS, {"sbis": list_sbis, "blocks": list_blocks})


async def objects_posted(call: Call) -> Iterable[Name]:
    """Returns the names of the objects in the body."""
    return [workflow_name(one.name) for one in call.body_as(ObjectsIn).objects]


@ROUTES.add(
    "POST /objects",
    Needs(CHANGES_OBJECTS, objects_posted),
    "Report that objects, such as data sets, exist: stages that wait for them can begin.",
    ObjectList,
    body=ObjectsIn,
)
async def post_objects(call: Call) -> object:
    posted = {one.name: one.facts for one in call.body_as(ObjectsIn).objects}
    call.targets += list(posted)
    return await block_door(call).post_objects(posted, who=call.who)


async def list_objects(call: Call) -> object:
    """Returns the objects that the caller may see; those of others take no place in a page."""

    async def read(after: str, count: int) -> list[Any]:
        found: Any = await block_door(call).objects(after=after, count=count)
        return list(found["objects"])

    shown, _ = await covered_page(
        read,
        lambda one: call.covers(workflow_name(one["name"])),
        itemgetter("name"),
        call.query.limit,
        call.query.after,
    )
    return {"objects": shown}


ROUTES += routes_of(OBJECTS, {"objects": list_objects})
