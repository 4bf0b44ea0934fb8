"""Runs of workflows as they are seen: the documents that the command line prints, too."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import msgspec

from tidewheel.api.run_details import RunTree
from tidewheel.api.runs import RunList
from tidewheel.api.views import VIEWS, GraphQuery, Number, RunsQuery, TreeQuery, View
from tidewheel.core.queue.access import Scope, covers_workflow
from tidewheel.errors import NotFound, Refused
from tidewheel.ports.runs import LogPart
from tidewheel.server.call import Answer, Call
from tidewheel.server.errors import BadRequest
from tidewheel.server.job_rules import own_run
from tidewheel.server.long_poll import unless_stopping
from tidewheel.server.operation_routes import run_door
from tidewheel.server.resources.logs import PartQuery
from tidewheel.server.routes import API, Handler, Needs, Route, no_queue, workflow_of_run
from tidewheel.server.wire.runs import DefinitionOut, definition_out
from tidewheel.server.wire.validation import In
from tidewheel.services.paths import runs_directory

Document = dict[str, Any]

WAIT_SECONDS_MAX = 25.0  # for more of a log; less than a request may take
RUN = f"{API}/runs/{{run}}"
READS = Needs(scopes=(Scope.READ,), queues=no_queue, workflows=workflow_of_run, job=own_run)


class RunLogQuery(PartQuery):
    """The log that is asked for: of the run, or of a job (the latest submission and attempt).

    With an offset behind which there is nothing yet, wait_s is how long to wait for more.
    """

    id: str = ""
    file: str = "out"
    submit: Number | None = None
    attempt: Number | None = None
    wait_s: Annotated[float, msgspec.Meta(ge=0, le=WAIT_SECONDS_MAX)] = 0.0


class DefinitionQuery(In):
    """One file of it, as it is; without a path, all of it as JSON."""

    path: str = ""


async def list_runs(call: Call) -> object:
    query = call.query_as(RunsQuery)
    asked = {"workflow": query.workflow, "count": query.limit, "before": query.before}
    found = await run_door(call).look("runs", asked)
    listed: Any = found["runs"]
    shown = [one for one in listed if covers_workflow(call.grant, one["workflow"])]
    if not query.summary:
        return found | {"runs": shown}
    known = call.doors.summaries
    shown, left = await known.added(shown, lambda run: _summary(call, run))
    return found | {"runs": shown, "summaries_left": left}


async def _summary(call: Call, run: str) -> Document | None:
    """Returns the summary of a run; None if it cannot be looked into.

    The other runs are shown all the same.
    """
    try:
        looking = run_door(call).look("summary", {"run": run})
        return {**await call.doors.apart(looking), "run": run}
    except (Refused, OSError):
        return None


def _showing(view: View) -> Handler:
    async def handler(call: Call) -> object:
        run, asked = await call.found_run(), call.query
        arguments = {} if asked is None else asked.arguments()
        if view.needs_ids and not arguments["ids"]:
            raise BadRequest(["ids is missing: which tasks?"])
        looking = run_door(call).look(view.name, {"run": run.name} | arguments)
        return await call.doors.apart(looking)

    return handler


async def pool(call: Call) -> object:
    """Shows the tree of what is within some edges of the live tasks."""
    run, asked = await call.found_run(), in_window(call.query_as(TreeQuery))
    return await call.doors.apart(run_door(call).look("tree", {"run": run.name} | asked))


async def graph(call: Call) -> object:
    """Answers with the graph, or with its differences to the version that the caller has.

    The whole is told where that version is not remembered.
    """
    run, query = await call.found_run(), call.query_as(GraphQuery)
    asked = in_window(query)
    window = (run.number, asked["window"], *asked["ids"])

    async def told() -> Document:
        found = await run_door(call).look("graph", {"run": run.name} | asked)
        return call.doors.graphs.told(window, found, query.since)

    return await call.doors.apart(told())


def in_window(query: TreeQuery) -> Document:
    """Returns the arguments of a view that shows one edge around, unless more are asked for."""
    asked = query.arguments()
    return {"ids": asked["ids"], "window": 1 if query.n is None else query.n}


async def log(call: Call) -> object:
    """Only files of the run's own folder are opened."""
    query, run = call.query_as(RunLogQuery), await call.found_run()
    what = " ".join(filter(None, (run.name, query.id, query.file)))
    part = await _log_part(call, query, run.name, what)
    # A job's log that is not there yet may come; whoever waits for it is told so.
    if not part.found and not query.wait_s:
        raise NotFound("log", what)
    return Answer(
        body=part.content,
        media_type="text/plain; charset=utf-8",
        headers=_log_headers(part, call.settings.state_directory),
    )


def _log_headers(part: LogPart, home: Path) -> dict[str, str]:
    """Names are percent-encoded: a header holds no other letters."""
    place = part.place
    facts = {
        "offset": str(part.offset),
        "size": str(part.size),
        "found": str(part.found).lower(),
        "over": str(part.over).lower(),
        "path": quote(str(Path(place.path).relative_to(runs_directory(home)))),
        "id": quote(place.id or ""),
        "submit": str(place.submit or ""),
        "attempt": str(place.attempt or ""),
    }
    return {f"x-log-{name}": value for name, value in facts.items() if value}


async def _log_part(call: Call, query: RunLogQuery, run: str, what: str) -> LogPart:
    door, wait = run_door(call), query.wait_s
    wish = {
        "id": query.id,
        "file": query.file,
        "submit": query.submit,
        "attempt": query.attempt,
    }
    span: Any = {"offset": query.offset, "bytes_max": query.limit}
    try:
        part = await call.doors.apart(door.log_part(run, wish, **span))
        if part.content or part.over or not wait:
            return part
        more = door.log_part(run, wish, **span, wait_seconds=wait)
        return await unless_stopping(call, call.doors.apart(more)) or part
    except (Refused, OSError) as error:
        raise _no_log(error, what, call.settings.state_directory) from None


def _no_log(error: Refused | OSError, what: str, home: Path) -> NotFound:
    """Returns the error for a missing log, with the reason unless it tells local paths."""
    missing = NotFound("log", what)
    if isinstance(error, Refused) and str(home) not in str(error):
        missing.args = error.args
    return missing


async def _workflow_unless_served(call: Call) -> Iterable[str]:
    """Returns the workflow to judge by; none if the caller may take the jobs of the run."""
    run = await call.found_run()
    return () if call.allows((Scope.WORKER,)) and call.covers(run.queue) else (run.workflow,)


async def definition(call: Call) -> object:
    """Answers with the definition of a run, or one of its files, for the worker of its jobs."""
    path = call.query_as(DefinitionQuery).path
    found = await run_door(call).definition((await call.found_run()).name)
    if not path:
        return definition_out(found)
    for one in found.files:
        if one.path == path:
            headers = {"x-executable": str(one.executable).lower()}
            return Answer(
                body=one.content, media_type="application/octet-stream", headers=headers
            )
    raise NotFound("file of the definition", path)


def _view_route(view: View, handler: Handler) -> Route:
    return Route(
        method="GET",
        path=RUN + view.path,
        guard=READS,
        handler=handler,
        says=view.says,
        query=view.query,
        answers=view.answer,
    )


ROUTES = (
    Route(
        method="GET",
        path=f"{API}/runs",
        guard=Needs(scopes=(Scope.READ,), queues=no_queue),
        handler=list_runs,
        says="Runs, newest first, page by page; with summary=true how far each is.",
        query=RunsQuery,
        answers=RunList,
    ),
    *(_view_route(view, _showing(view)) for view in VIEWS.values() if view.is_plain),
    _view_route(VIEWS["graph"], graph),
    Route(
        method="GET",
        path=f"{RUN}/pool",
        guard=READS,
        handler=pool,
        says="Everything within n edges of the live tasks.",
        query=TreeQuery,
        answers=RunTree,
    ),
    Route(
        method="GET",
        path=RUN + VIEWS["log"].path,
        guard=READS,
        handler=log,
        media_type="text/plain",
        says=VIEWS["log"].says,
        query=RunLogQuery,
        answers=str,
    ),
    Route(
        method="GET",
        path=f"{RUN}/definition",
        guard=replace(READS, workflows=_workflow_unless_served),
        handler=definition,
        says="What the run runs: its text and files, or one file.",
        query=DefinitionQuery,
        answers=DefinitionOut,
    ),
)
