"""Scheduling block instances, their processing blocks, and the objects that stages wait for.

An instance begins runs: scope submit, for the workflow and the name of each of its blocks.
Objects belong to nobody: a caller who may submit or operate anything may post and remove them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from tidewheel.api.blocks import (
    AbortedBlock,
    BlockDocument,
    BlockList,
    BufferObject,
    ObjectList,
    SbiAnswer,
    SbiDocument,
    SbiList,
)
from tidewheel.core.queue.access import RUN_QUEUE, Scope, covers_workflow
from tidewheel.errors import NotFound
from tidewheel.server.call import Answer, Call
from tidewheel.server.resources.runs import run_door
from tidewheel.server.routes import API, Needs, Route, no_queue
from tidewheel.server.wire.blocks import (
    AbortIn,
    BlocksQuery,
    ObjectsIn,
    ObjectsQuery,
    SbiIn,
    SbiQuery,
    SbisQuery,
)

if TYPE_CHECKING:
    from tidewheel.formats.sip.scheduling_block import SbiRequest
    from tidewheel.services.blocks.service import BlockService

MEDIA_TYPES = ("application/json", "application/yaml")
CREATED = 201
SECONDS_MAX = 60.0  # many blocks take their time to be judged

SBIS = f"{API}/sbis"
BLOCKS = f"{API}/processing-blocks"
BLOCK = f"{BLOCKS}/{{block}}"
OBJECTS = f"{API}/objects"


def block_door(call: Call) -> BlockService:
    """Returns the service for blocks with this caller's rights; no definition's code runs."""
    from tidewheel.services.blocks.service import BlockService, Rights

    def permit(request: SbiRequest) -> None:
        call.require_workflows(one.workflow for one in request.blocks)
        call.require_queues(f"{RUN_QUEUE}{one.id}" for one in request.blocks)

    return BlockService(
        call.store,
        run_door(call),
        call.settings.state_directory,
        code_trusted=False,
        rights=Rights(permit=permit, sees=partial(covers_workflow, call.grant)),
    )


# ---- instances ----


async def submit(call: Call) -> object:
    """The text itself is read, so that findings have lines."""
    file = call.query_as(SbiQuery).file
    async with call.doors.beginning:
        told = await block_door(call).submit_sbi(file, call.raw, who=call.who)
    call.targets.append(str(told["id"]))
    return Answer(body=told, status=CREATED if told["is_new"] else 200)


async def list_sbis(call: Call) -> object:
    """Returns the scheduling block instances of which the caller may see every block."""
    told = await block_door(call).sbis(call.query_as(SbisQuery).limit)
    if call.covers_everything:
        return told
    found: Any = told["sbis"]
    return {"sbis": [one for one in found if await _sees_all(call, one["id"])]}


async def _sees_all(call: Call, sbi_id: str) -> bool:
    try:
        workflows = await _workflows_of_sbi(call, sbi_id)
    except NotFound:  # its last block was deleted since it was listed
        return False
    return all(covers_workflow(call.grant, one) for one in workflows)


async def show_sbi(call: Call) -> object:
    return await block_door(call).sbi(call.path["sbi"])


async def _workflows_of_sbi(call: Call, sbi_id: str) -> Iterable[str]:
    return [one.run.workflow for one in (await call.asking.sbi(sbi_id)).blocks]


async def _of_sbi(call: Call) -> Iterable[str]:
    return await _workflows_of_sbi(call, call.path["sbi"])


# ---- blocks ----


async def list_blocks(call: Call) -> object:
    """Returns the blocks that the caller may see."""
    query = call.query_as(BlocksQuery)
    told = await block_door(call).blocks(sbi=query.sbi, count=query.limit)
    found: Any = told["blocks"]
    seen = [one for one in found if covers_workflow(call.grant, str(one["workflow"]))]
    return {"blocks": seen}


async def show_block(call: Call) -> object:
    return await call.doors.apart(block_door(call).block(call.path["block"]))


async def abort(call: Call) -> object:
    block_id = call.path["block"]
    call.targets.append(block_id)
    reason = call.body_as(AbortIn).reason
    return await block_door(call).abort(block_id, who=call.who, reason=reason)


async def _of_block(call: Call) -> Iterable[str]:
    return ((await call.asking.block(call.path["block"])).run.workflow,)


# ---- objects ----


async def post_objects(call: Call) -> object:
    posted = {one.name: one.facts for one in call.body_as(ObjectsIn).objects}
    call.targets += list(posted)
    return await block_door(call).post_objects(posted, who=call.who)


async def list_objects(call: Call) -> object:
    query = call.query_as(ObjectsQuery)
    return await block_door(call).objects(after=query.after, count=query.limit)


async def remove_object(call: Call) -> object:
    return await block_door(call).remove_object(call.path["name"])


_READS = (Scope.READ,)
_CHANGES_OBJECTS = Needs(scopes=(Scope.SUBMIT, Scope.OPERATE), queues=no_queue)
ROUTES = (
    Route(
        method="POST",
        path=SBIS,
        guard=Needs(scopes=(Scope.SUBMIT,), queues=no_queue),
        handler=submit,
        says="Ask for every block of a scheduling block instance, or for none: JSON or YAML.",
        query=SbiQuery,
        raw=MEDIA_TYPES,
        body=SbiIn,
        answers=SbiAnswer,
        status=CREATED,
        seconds_max=SECONDS_MAX,
    ),
    Route(
        method="GET",
        path=SBIS,
        guard=Needs(scopes=_READS, queues=no_queue),
        handler=list_sbis,
        says="Scheduling block instances, newest first.",
        query=SbisQuery,
        answers=SbiList,
    ),
    Route(
        method="GET",
        path=f"{SBIS}/{{sbi}}",
        guard=Needs(scopes=_READS, queues=no_queue, workflows=_of_sbi),
        handler=show_sbi,
        says="A scheduling block instance: as it was asked for, and its blocks.",
        answers=SbiDocument,
    ),
    Route(
        method="GET",
        path=BLOCKS,
        guard=Needs(scopes=_READS, queues=no_queue),
        handler=list_blocks,
        says="Processing blocks, newest first.",
        query=BlocksQuery,
        answers=BlockList,
    ),
    Route(
        method="GET",
        path=BLOCK,
        guard=Needs(scopes=_READS, queues=no_queue, workflows=_of_block),
        handler=show_block,
        says="A processing block: what it waits for, and each stage with its events.",
        answers=BlockDocument,
    ),
    Route(
        method="POST",
        path=f"{BLOCK}/abort",
        guard=Needs(scopes=(Scope.OPERATE,), queues=no_queue, workflows=_of_block),
        handler=abort,
        says="End the stages of a block that run, and start no more.",
        body=AbortIn,
        answers=AbortedBlock,
        seconds_max=SECONDS_MAX,
    ),
    Route(
        method="POST",
        path=OBJECTS,
        guard=_CHANGES_OBJECTS,
        handler=post_objects,
        says="Objects that are there from now on: stages that wait for them begin.",
        body=ObjectsIn,
        answers=ObjectList,
    ),
    Route(
        method="GET",
        path=OBJECTS,
        guard=Needs(scopes=_READS, queues=no_queue),
        handler=list_objects,
        says="Objects that are there, by name.",
        query=ObjectsQuery,
        answers=ObjectList,
    ),
    Route(
        method="DELETE",
        path=f"{OBJECTS}/{{name}}",
        guard=_CHANGES_OBJECTS,
        handler=remove_object,
        says="An object is there no more; whoever has seen it goes on.",
        answers=BufferObject,
    ),
)
