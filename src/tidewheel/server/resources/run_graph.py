"""The graph of a run as pages follow it: the whole of it once, then what has changed."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tidewheel.ports.runs import VIEWS
from tidewheel.server.call import Call
from tidewheel.server.resources.run_queries import TreeQuery
from tidewheel.server.resources.runs import READS, RUN, Document, in_window, run_door
from tidewheel.server.routes import Route


class GraphQuery(TreeQuery):
    """`since`: the `version` of an answer that the caller has; only differences are told."""

    since: Annotated[str, msgspec.Meta(max_length=100)] = ""


async def graph(call: Call) -> object:
    """Whoever is told the whole because nobody remembers what he has loses nothing."""
    run, since = await call.found_run(), call.query_as(GraphQuery).since
    asked = in_window(call)
    window = (run.number, asked["window"], *asked["ids"])

    async def told() -> Document:
        found = await run_door(call).look("graph", {"run": run.name} | asked)
        return call.doors.graphs.told(window, found, since)

    return await call.doors.apart(told())


ROUTES = (
    Route(
        method="GET",
        path=RUN + VIEWS["graph"],
        guard=READS,
        handler=graph,
        says="Tasks and edges around the live tasks; with since= what has changed of them.",
        query=GraphQuery,
        answers=Document,
    ),
)
