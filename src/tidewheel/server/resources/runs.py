"""Runs of workflows as they are seen: the documents that the command line prints, too."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from tidewheel.core.queue.access import Scope, covers_workflow
from tidewheel.errors import NotFound, Refused
from tidewheel.ports.runs import VIEWS, LogPart, RunDoor
from tidewheel.server.call import Answer, Call
from tidewheel.server.errors import BadRequest
from tidewheel.server.job_rules import own_run
from tidewheel.server.long_poll import unless_stopping
from tidewheel.server.resources.runs import (
    AttemptsQuery,
    ChangesQuery,
    DefinitionQuery,
    HistoryQuery,
    PastGraphQuery,
    PastQuery,
    PathQuery,
    RunLogQuery,
    RunsQuery,
    SelectQuery,
    StateQuery,
    SubmissionsQuery,
    TasksQuery,
    TreeQuery,
)
from tidewheel.server.routes import API, Handler, Needs, Route, no_queue, workflow_of_run
from tidewheel.server.wire.runs import DefinitionOut, definition_out
from tidewheel.server.wire.validation import In
from tidewheel.services.paths import runs_directory

Document = dict[str, Any]

RUN = f"{API}/runs/{{run}}"
READS = Needs(scopes=(Scope.READ,), queues=no_queue, workflows=workflow_of_run, job=own_run)


def run_door(call: Call) -> RunDoor:
    """The runs of this server's store."""
    return call.doors.of(call.store)


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
    """None for a run that cannot be looked into: the others are shown all the same."""
    try:
        looking = run_door(call).look("summary", {"run": run})
        return {**await call.doors.apart(looking), "run": run}
    except (Refused, OSError):
        return None


def _looking(name: str, arguments: Callable[[Call], Document]) -> Handler:
    async def handler(call: Call) -> object:
        run = await call.found_run()
        looking = run_door(call).look(name, {"run": run.name} | arguments(call))
        return await call.doors.apart(looking)

    return handler


def _ids(call: Call) -> Document:
    given = call.query_as(TasksQuery).ids
    return {"ids": [text for one in given.split(",") if (text := one.strip())]}


def _needed_ids(call: Call) -> Document:
    found = _ids(call)
    if not found["ids"]:
        raise BadRequest(["ids is missing: which tasks?"])
    return found


def _tree(call: Call) -> Document:
    query = call.query_as(TreeQuery)
    return _ids(call) | {"window": query.n, "all": query.all}


def in_window(call: Call) -> Document:
    query = call.query_as(TreeQuery)
    return _ids(call) | {"window": 1 if query.n is None else query.n}


def _past_graph(call: Call) -> Document:
    query = call.query_as(PastGraphQuery)
    return _ids(call) | {"window": query.n, "batch": query.batch}


def _counted(call: Call) -> Document:
    """The parameters as they are; how many is `limit` here and `count` there."""
    said: Document = msgspec.structs.asdict(call.query)
    return {"count": said.pop("limit")} | said


def _select(call: Call) -> Document:
    return _needed_ids(call) | {"all_at_point": call.query_as(SelectQuery).all_at_point}


def _as_given(call: Call) -> Document:
    return msgspec.structs.asdict(call.query)


def _nothing(call: Call) -> Document:
    del call
    return {}


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
    """With the reason, unless it tells paths of this host."""
    missing = NotFound("log", what)
    if isinstance(error, Refused) and str(home) not in str(error):
        missing.args = error.args
    return missing


async def _workflow_unless_served(call: Call) -> Iterable[str]:
    """Whoever may take the jobs of a run may have its files, too."""
    run = await call.found_run()
    return () if call.allows((Scope.WORKER,)) and call.covers(run.queue) else (run.workflow,)


async def definition(call: Call) -> object:
    """What the run runs, for whoever runs its jobs."""
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


_View = tuple[str, Callable[[Call], Document], type[In] | None, str]
_VIEWS: tuple[_View, ...] = (
    ("show", _ids, TasksQuery, "A run, or some of its tasks in full."),
    ("facts", _nothing, None, "A run without its tasks: status and options."),
    ("why", _needed_ids, TasksQuery, "Why these tasks do not run."),
    ("tree", _tree, TreeQuery, "A run as a tree: points, families, tasks."),
    (
        "tasks",
        _nothing,
        None,
        "Every task as a row; cursor: where events go on.",
    ),
    ("summary", _nothing, None, "How far a run is, and what keeps it back."),
    ("dump", _nothing, None, "Every task of the pool, one by one."),
    ("select", _select, SelectQuery, "The tasks that some ids mean."),
    ("broadcasts", _nothing, None, "Settings that were changed by hand."),
    (
        "workflow-state",
        _as_given,
        StateQuery,
        "Which tasks have got so far, as other workflows ask.",
    ),
    (
        "history",
        _counted,
        HistoryQuery,
        "What was asked of the run, newest first.",
    ),
    (
        "submissions",
        _counted,
        SubmissionsQuery,
        "Every job: when it was queued, began and ended, and who ran it.",
    ),
    (
        "attempts",
        _counted,
        AttemptsQuery,
        "Every attempt: when it waited and ran, what it asked for and what it used.",
    ),
    (
        "critical-path",
        _as_given,
        PathQuery,
        "The chain of jobs that made the run take as long as it took.",
    ),
    (
        "changes",
        _counted,
        ChangesQuery,
        "What happened to tasks, batch by batch, oldest first.",
    ),
    ("past", _counted, PastQuery, "The run as it was, and what happened then."),
    (
        "past-graph",
        _past_graph,
        PastGraphQuery,
        "Tasks and edges around those that were live behind a batch.",
    ),
)
ROUTES = (
    Route(
        method="GET",
        path=f"{API}/runs",
        guard=Needs(scopes=(Scope.READ,), queues=no_queue),
        handler=list_runs,
        says="Runs, newest first, page by page; with summary=true how far each is.",
        query=RunsQuery,
        answers=Document,
    ),
    *(
        Route(
            method="GET",
            path=RUN + VIEWS[name],
            guard=READS,
            handler=_looking(name, arguments),
            says=says,
            query=query,
            answers=Document,
        )
        for name, arguments, query, says in _VIEWS
    ),
    Route(
        method="GET",
        path=f"{RUN}/pool",
        guard=READS,
        handler=_looking("tree", in_window),
        says="Everything within n edges of the live tasks.",
        query=TreeQuery,
        answers=Document,
    ),
    Route(
        method="GET",
        path=RUN + VIEWS["log"],
        guard=READS,
        handler=log,
        media_type="text/plain",
        says="The log of a run or of a job: its end, or a part by offset and limit.",
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
