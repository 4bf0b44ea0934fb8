"""Answers for scheduling block instances, their blocks, and the objects that stages wait for.

An instance begins runs: scope submit, for the workflow and the name of each of its blocks.
Objects belong to nobody: a caller who may submit or operate anything may post and remove them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from tidewheel.api.blocks import ObjectList, SbiAnswer
from tidewheel.api.operation import SUBMIT
from tidewheel.api.operations import BLOCKS, CHANGES_OBJECTS, OBJECTS, SECONDS_MAX
from tidewheel.core.operator.blocks import BLOCKS_MAX, OBJECTS_MAX, PRIORITY_MAX, PRIORITY_MIN
from tidewheel.core.queue.access import covers_workflow
from tidewheel.errors import NotFound
from tidewheel.server.call import Answer, Call
from tidewheel.server.operation_routes import block_door, routes_of
from tidewheel.server.routes import Needs, RouteList, no_queue
from tidewheel.server.validation import In

ROUTES = RouteList()
Named = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Version = str | float


class WorkflowIn(In):
    """A registered workflow, and what it is given."""

    id: Named
    version: Version = ""  # else the highest
    parameters: dict[str, Any] = msgspec.field(default_factory=dict)


class DependencyIn(In):
    """The dependency on another block, and what must have become of it."""

    type: Literal["processing_block"]
    value: Named
    condition: Literal["complete", "started", "failed", "aborted", "finished"]
    parameters: dict[str, Any] = msgspec.field(default_factory=dict)


class BlockIn(In):
    """One processing block: PB-<date>-<project>-<anything>."""

    id: Named
    type: Literal["realtime", "offline"]
    workflow: WorkflowIn
    version: Version = ""
    priority: Annotated[int, msgspec.Meta(ge=PRIORITY_MIN, le=PRIORITY_MAX)] = 0
    dependencies: tuple[DependencyIn, ...] = ()


class SbiIn(In):
    """A scheduling block instance: SBI-<date>-<project>-<anything>.

    For documentation: the text is read as a file would be, with every finding and its line.
    """

    id: Named
    version: Literal["2.0"]
    processing_blocks: Annotated[tuple[BlockIn, ...], msgspec.Meta(max_length=BLOCKS_MAX)]
    scheduling_block: dict[str, Any] = msgspec.field(default_factory=dict)
    subarray_id: str = ""
    scans: tuple[dict[str, Any], ...] = ()


class SbiQuery(In):
    """The file name of the text in findings; with .yaml or .yml it is read as YAML."""

    file: Annotated[str, msgspec.Meta(max_length=200)] = "request.json"


class ObjectIn(In):
    """An object that is there from now on, and what is known of it."""

    name: Named
    facts: dict[str, Any] = msgspec.field(default_factory=dict)


class ObjectsIn(In):
    objects: Annotated[tuple[ObjectIn, ...], msgspec.Meta(min_length=1, max_length=OBJECTS_MAX)]


@ROUTES.add(
    "POST /sbis",
    Needs(SUBMIT, no_queue),
    "Ask for every block of a scheduling block instance, or for none: JSON or YAML.",
    SbiAnswer,
    query=SbiQuery,
    raw=("application/json", "application/yaml"),
    body=SbiIn,
    status=201,
    seconds_max=SECONDS_MAX,
)
async def submit(call: Call) -> object:
    """Submits an instance; the text itself is read, so that findings have lines."""
    file = call.query_as(SbiQuery).file
    async with call.doors.beginning:
        told = await block_door(call).submit_sbi(file, call.raw, who=call.who)
    call.targets.append(str(told["id"]))
    return Answer(body=told, status=201 if told["is_new"] else 200)


async def list_sbis(call: Call) -> object:
    """Returns the scheduling block instances of which the caller may see every block."""
    told = await block_door(call).sbis(call.query.limit)
    if call.covers_everything:
        return told
    found: Any = told["sbis"]
    return {"sbis": [one for one in found if await _sees_all(call, one["id"])]}


async def _sees_all(call: Call, sbi_id: str) -> bool:
    try:
        sbi = await call.asking.sbi(sbi_id)
    except NotFound:  # its last block was deleted since it was listed
        return False
    return all(covers_workflow(call.grant, one.run.workflow) for one in sbi.blocks)


ROUTES += routes_of(BLOCKS, {"sbis": list_sbis})


@ROUTES.add(
    "POST /objects",
    Needs(CHANGES_OBJECTS, no_queue),
    "Objects that are there from now on: stages that wait for them begin.",
    ObjectList,
    body=ObjectsIn,
)
async def post_objects(call: Call) -> object:
    posted = {one.name: one.facts for one in call.body_as(ObjectsIn).objects}
    call.targets += list(posted)
    return await block_door(call).post_objects(posted, who=call.who)


ROUTES += routes_of(OBJECTS)
