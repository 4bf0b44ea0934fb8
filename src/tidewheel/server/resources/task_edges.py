"""Ties tasks together and apart: continuations, of one task or of many, as Banyan has them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec

from tidewheel.core.queue.access import Scope
from tidewheel.core.queue.task import TaskId
from tidewheel.server.call import Call
from tidewheel.server.errors import BadRequest
from tidewheel.server.routes import API, Needs, Route
from tidewheel.server.wire.validation import In, Out, read, read_many

EDGES_MAX = 10_000
Ids = Annotated[list[str], msgspec.Meta(min_length=1, max_length=EDGES_MAX)]
Edges = list[tuple[TaskId, TaskId]]


class ContinuationsIn(In):
    """The tasks that shall, or shall no longer, wait for this one."""

    values: Ids


class BulkContinuationsIn(In):
    """Each of the values is a continuation of each of the targets."""

    targets: Ids
    values: Ids


class EdgesOut(Out):
    """The number of edges that the request named; those that were there already count, too."""

    edges: int


def one(call: Call) -> Edges:
    """Returns the edges from the task that the path names."""
    parent = TaskId(call.path["id"])
    return [(parent, TaskId(child)) for child in read(call.raw, ContinuationsIn).values]


def many(call: Call) -> Edges:
    """Returns the edges that a list of objects, or one object, describes."""
    listed = call.raw.lstrip()[:1] == b"["
    raws = [bytes(raw) for raw in read_many(call.raw)] if listed else [call.raw]
    forms = [read(raw, BulkContinuationsIn, f"[{index}]: ") for index, raw in enumerate(raws)]
    if sum(len(form.targets) * len(form.values) for form in forms) > EDGES_MAX:
        raise BadRequest([f"more than {EDGES_MAX} edges; send several requests"])
    return [
        (TaskId(parent), TaskId(child))
        for form in forms
        for parent in form.targets
        for child in form.values
    ]


async def queues_of_both_ends(call: Call) -> Iterable[str]:
    """Returns the queues of all tasks that are tied or untied."""
    if call.covers_everything:
        return ()
    ids = list(dict.fromkeys(end for edge in call.body_as(list) for end in edge))
    portions = [ids[start : start + EDGES_MAX] for start in range(0, len(ids), EDGES_MAX)]
    found = [task for some in portions for task in await call.store.get_many(some)]
    return {task.queue for task in found}


async def add(call: Call) -> object:
    edges: Edges = call.body_as(list)
    call.targets.append(f"{len(edges)} edges")
    await call.store.add_edges(edges)
    return EdgesOut(edges=len(edges))


async def remove(call: Call) -> object:
    edges: Edges = call.body_as(list)
    call.targets.append(f"{len(edges)} edges")
    await call.store.remove_edges(edges)
    return EdgesOut(edges=len(edges))


_GUARD = Needs(scopes=(Scope.SUBMIT,), queues=queues_of_both_ends)
_VERBS = (
    ("add_continuation", add, "Let tasks wait for {}."),
    ("remove_continuation", remove, "Let tasks no longer wait for {}."),
)
ROUTES = tuple(
    route
    for verb, handler, says in _VERBS
    for name in (f"{verb}s", verb)  # the seed uses both
    for route in (
        Route(
            method="POST",
            path=f"{API}/tasks/{name}",
            guard=_GUARD,
            handler=handler,
            says=says.format("others, for many at once"),
            body=list[BulkContinuationsIn],
            parse=many,
            answers=EdgesOut,
        ),
        Route(
            method="POST",
            path=f"{API}/tasks/{{id}}/{name}",
            guard=_GUARD,
            handler=handler,
            says=says.format("this one"),
            body=ContinuationsIn,
            parse=one,
            answers=EdgesOut,
        ),
    )
)
