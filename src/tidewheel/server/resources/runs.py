"""Runs of workflows: look at them, and give commands to whoever drives one.

What is shown are the documents of ``services.run_views``, the same that the command line
prints; what can be asked are the verbs of ``core.runs.commands``.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec

from tidewheel.client.asynchronous import AsyncClient
from tidewheel.client.runs import Runs
from tidewheel.config import home_directory
from tidewheel.core.runs.commands import VERBS, Trigger, read_command
from tidewheel.core.tasks.access import Scope, covers_workflow
from tidewheel.errors import NotFound, Refused
from tidewheel.server.call import Call
from tidewheel.server.log_parts import PartQuery, log_answer
from tidewheel.server.refusals import BadBody, BadRequest
from tidewheel.server.routes import API, Handler, Needs, Route, no_queue, workflow_of_run
from tidewheel.server.wire.forms import In, Out

ANSWER_SECONDS_MAX = 25.0  # for a scheduler to obey; less than a request may take
Count = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
Document = dict[str, Any]


class RunsQuery(In):
    """Which runs."""

    workflow: str | None = None
    limit: Count = 100


class TasksQuery(In):
    """Which tasks of the run, separated by commas: 2/model, globs, families."""

    ids: str = ""


class TreeQuery(TasksQuery):
    """A window shows everything within so many edges of the pool."""

    n: Annotated[int, msgspec.Meta(ge=0, le=100)] | None = None
    all: bool = False


class HistoryQuery(In):
    limit: Count = 100


class LogQuery(PartQuery):
    """Which log: of the run, or of a job (the latest submission and attempt)."""

    id: str = ""
    file: str = "out"
    submit: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | None = None
    attempt: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | None = None


class CommandQuery(In):
    """With dry_run nothing is done; the answer is what would be."""

    dry_run: bool = False


class ObeyedOut(Out):
    """A command that was obeyed; its number is that of the history."""

    run: str
    number: int
    verb: str
    answer: Document


def runs(call: Call) -> Runs:
    """The views of this server's store."""
    return Runs(AsyncClient(call.store), call.settings.home)


async def list_runs(call: Call) -> object:
    query = call.query_as(RunsQuery)
    found = await runs(call).list(workflow=query.workflow, count=query.limit)
    listed = found["runs"]
    assert isinstance(listed, list)
    shown = [one for one in listed if covers_workflow(call.grant, one["workflow"])]
    return found | {"runs": shown}


def _looking(view: Callable[[Call, Runs, str], Awaitable[Document]]) -> Handler:
    async def handler(call: Call) -> object:
        return await view(call, runs(call), (await call.found_run()).name)

    return handler


async def _show(call: Call, door: Runs, run: str) -> Document:
    return await door.show(run, *_ids(call))


async def _why(call: Call, door: Runs, run: str) -> Document:
    if not _ids(call):
        raise BadRequest(["ids is missing: which tasks?"])
    return await door.why(run, *_ids(call))


async def _tree(call: Call, door: Runs, run: str) -> Document:
    query = call.query_as(TreeQuery)
    return await door.tree(run, *_ids(call), window=query.n, everything=query.all)


async def _pool(call: Call, door: Runs, run: str) -> Document:
    query = call.query_as(TreeQuery)
    return await door.tree(run, *_ids(call), window=1 if query.n is None else query.n)


async def _history(call: Call, door: Runs, run: str) -> Document:
    return await door.history(run, call.query_as(HistoryQuery).limit)


def _ids(call: Call) -> list[str]:
    given = call.query_as(TasksQuery).ids
    return [text for one in given.split(",") if (text := one.strip())]


async def log(call: Call) -> object:
    """Only files of the run's own folder are opened."""
    query, run = call.query_as(LogQuery), await call.found_run()
    what = " ".join(filter(None, (run.name, query.id, query.file)))
    home = call.settings.home or home_directory()
    try:
        found = await runs(call).look(
            "log",
            run=run.name,
            id=query.id,
            file=query.file,
            submit=query.submit,
            attempt=query.attempt,
            bytes_max=1,
            awaited=True,
        )
    except (Refused, OSError):
        # Why it is not there may be told with paths of this host.
        raise NotFound("log", what) from None
    return await log_answer(home / "runs", Path(str(found["path"])), query, what)


# ---- commands ----


def _parsing(verb: str) -> Callable[[Call], object]:
    def parse(call: Call) -> object:
        try:
            given = json.loads(call.raw or b"{}")
        except (ValueError, RecursionError) as error:
            raise BadBody(f"the body is not valid JSON: {error}") from None
        if not isinstance(given, dict) or "verb" in given:
            raise BadRequest([f"an object with the fields of {verb} is wanted"])
        try:
            return read_command(json.dumps({"verb": verb} | given))
        except Refused as error:
            raise BadRequest([str(error)]) from None

    return parse


async def give(call: Call) -> object:
    assert call.token is not None
    run, door = await call.found_run(), runs(call)
    if call.query_as(CommandQuery).dry_run:
        if not isinstance(call.body, Trigger):
            raise BadRequest([f"only trigger can be tried, not {call.body.verb}"])
        return await door.dry_run(run.name, call.body)
    who = f"{call.token.name} (token {call.token.number})"
    done = await door.give(run.name, call.body, who=who, seconds_max=ANSWER_SECONDS_MAX)
    return ObeyedOut(run=done.run, number=done.number, verb=done.verb, answer=done.document)


_RUN = f"{API}/runs/{{run}}"
_READS = Needs(scopes=(Scope.READ,), queues=no_queue, workflows=workflow_of_run)
_OPERATES = Needs(scopes=(Scope.OPERATE,), queues=no_queue, workflows=workflow_of_run)
_VIEWS: tuple[tuple[str, Handler, type[In], str], ...] = (
    ("", _looking(_show), TasksQuery, "A run, or some of its tasks in full."),
    ("/why", _looking(_why), TasksQuery, "Why these tasks do not run."),
    ("/tree", _looking(_tree), TreeQuery, "A run as a tree: points, families, tasks."),
    ("/pool", _looking(_pool), TreeQuery, "Everything within n edges of the live tasks."),
    ("/history", _looking(_history), HistoryQuery, "What was asked of the run, newest first."),
)
ROUTES = (
    Route(
        method="GET",
        path=f"{API}/runs",
        guard=Needs(scopes=(Scope.READ,), queues=no_queue),
        handler=list_runs,
        says="Runs, newest first.",
        query=RunsQuery,
        answers=Document,
    ),
    *(
        Route(
            method="GET",
            path=_RUN + part,
            guard=_READS,
            handler=handler,
            says=says,
            query=query,
            answers=Document,
        )
        for part, handler, query, says in _VIEWS
    ),
    Route(
        method="GET",
        path=f"{_RUN}/log",
        guard=_READS,
        handler=log,
        media_type="text/plain",
        says="The log of a run or of a job: its end, or a part by offset and limit.",
        query=LogQuery,
        answers=str,
    ),
    *(
        Route(
            method="POST",
            path=f"{_RUN}/{verb}",
            guard=_OPERATES,
            handler=give,
            says=(kind.__doc__ or verb).splitlines()[0],
            query=CommandQuery,
            body=kind,
            parse=_parsing(verb),
            answers=(ObeyedOut, Document),
        )
        for verb, kind in VERBS.items()
    ),
)
