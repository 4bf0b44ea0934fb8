"""Answers for runs of workflows: the views that the command line prints, too, and commands."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import msgspec

from tidewheel.api.operation import OPERATE, READ
from tidewheel.api.run_details import DryRun, RunTree
from tidewheel.api.runs import RunGrid, RunList
from tidewheel.api.views import (
    GRID_QUERY,
    RUNS_QUERY,
    TREE_QUERY,
    VIEWS,
    Number,
    View,
    ViewQuery,
)
from tidewheel.api.wire import answer
from tidewheel.core.operator import verbs
from tidewheel.core.operator.definition import read_job_name
from tidewheel.core.operator.views import RUN_STATES, TasksDue
from tidewheel.core.queue.access import ANY_TEXT, run_name
from tidewheel.core.queue.filters import read_filter
from tidewheel.errors import NoAnswer, NotFound, Refused
from tidewheel.ports.runs import LogPart
from tidewheel.server.call import Answer, Call, covered_page
from tidewheel.server.errors import BadBody, BadRequest, Overloaded
from tidewheel.server.event_broadcaster import EventStream
from tidewheel.server.load_shedding import Urgency
from tidewheel.server.operation_routes import run_door
from tidewheel.server.resources.events import unless_stopping
from tidewheel.server.resources.logs import LOG_BYTES_MAX, Offset, PartBytes
from tidewheel.server.routes import (
    READS,
    Handler,
    Needs,
    RouteList,
    looking,
    operating_own_run,
    run_and_queue,
    run_of_job,
    run_of_path,
)
from tidewheel.server.validation import In, check_body, read
from tidewheel.services.job_api import caller_name
from tidewheel.services.paths import runs_directory
from tidewheel.services.run_service import awaited_answer, post_command, would_reopen

Document = dict[str, Any]

FILE_NAME_LENGTH_MAX = 150
PACKED_BYTES_MIN = 50_000  # a tenth of the bytes for 3 ms a megabyte
WAIT_SECONDS_MAX = 25.0  # for more of a log; less than a request may take
RUN = "/runs/{run}"
READS_RUN = Needs(READ, run_of_path, job=looking)
ROUTES, COMMAND_ROUTES = RouteList(), RouteList()


class LogFileQuery(In):
    """Says which log is asked for: of the run, or of a job (the latest submission and
    attempt)."""

    id: str = ""
    file: str = "out"
    submit: Number | None = None
    attempt: Number | None = None


class RunLogQuery(LogFileQuery):
    """Says which part of which log is asked for; without an offset it is the end.

    If the file has nothing after the offset yet, the request waits up to wait_s for more.
    """

    offset: Offset | None = None
    limit: PartBytes = LOG_BYTES_MAX
    wait_s: Annotated[float, msgspec.Meta(ge=0, le=WAIT_SECONDS_MAX)] = 0.0


async def _as_job(call: Call) -> None:
    call.run = await run_of_job(call)


@ROUTES.add(
    "GET /runs",
    replace(READS, job=_as_job),
    "Runs, newest first, page by page; with `summary=true` also the progress of each run.",
    RunList,
    query=RUNS_QUERY,
)
async def list_runs(call: Call) -> object:
    query = call.query

    async def read(before: int | None, count: int) -> list[Any]:
        asked = {"workflow": query.workflow, "count": count, "before": before}
        asked |= {"nested": query.nested}
        asked["sees"] = call.readable
        found: Any = (await run_door(call).look("runs", asked))["runs"]
        return list(found)

    sought = read_filter(query.matching, RUN_STATES)

    def covers(one: Document) -> bool:
        if not sought.fits((one["name"],), (one["status"],)):
            return False
        is_own = call.run is not None and one["name"] == call.run.name
        return is_own or call.covers(run_name(one["name"]))

    shown, following = await covered_page(
        read, covers, itemgetter("number"), query.limit, query.before
    )
    found: Document = {"runs": shown, "next": following}
    if not query.summary:
        return found
    known = call.doors.summaries
    shown, left = await known.added(shown, lambda run: _summary(call, run), call.readable)
    return found | {"runs": shown, "summaries_left": left}


@ROUTES.add(
    "GET /grid",
    READS,
    "Runs, those that need action first, with the number of tasks in each state at each point.",
    RunGrid,
    query=GRID_QUERY,
)
async def grid(call: Call) -> object:
    from tidewheel.views.grid import fitting, grid_row  # noqa: PLC0415 - loads the core

    query, store = call.query, call.store
    # Those of others are not counted either: by that one would learn of them.
    seen = [one for one in await store.grid_runs() if call.covers(run_name(one.name))]
    fit = fitting(seen, query.name, query.status)
    chosen = [one.number for one in fit[: query.limit]]
    found = await store.grid_facts(chosen) if chosen else []
    now = await store.now()
    shown = await call.doors.cells.of(store, found, query.points)
    due: dict[int, list[TasksDue]] = {number: [] for number in chosen}
    for one in await store.grid_due(chosen) if chosen else ():
        due[one.run].append(one)
    return {
        "runs": [
            grid_row(run, facts, shown[run.number], due[run.number], now)
            for run, facts in found
        ],
        "counts": dict(Counter(one.status for one in seen)),
        "left_out": len(fit) - len(chosen),
    }


async def _summary(call: Call, run: str) -> Document | None:
    """Returns the summary of a run; None if it cannot be looked into. The other runs are shown
    all the same."""
    try:
        return {**await look(call, "summary", {"run": run}), "run": run}
    except (Refused, OSError):
        return None


def _showing(view: View) -> Handler:
    async def handler(call: Call) -> object:
        run, asked = await call.found_run(), call.query
        arguments = {} if asked is None else asked.arguments()
        if view.needs_ids and not arguments["ids"]:
            raise BadRequest(["ids is missing: name the tasks"])
        return await _packed(call, await show(call, view.name, arguments | {"run": run.name}))

    return handler


async def _packed(call: Call, shown: Document | bytes) -> object:
    """Returns a view as it is sent: a large one compressed, if the caller takes that."""
    if not call.takes_gzip:
        return shown
    body = shown if isinstance(shown, bytes) else msgspec.json.encode(shown)
    headers = {"vary": "accept-encoding"}
    if len(body) >= PACKED_BYTES_MIN:
        body = await asyncio.to_thread(gzip.compress, body, 1, mtime=0)
        headers["content-encoding"] = "gzip"
    return Answer(body=body, headers=headers)


async def look(call: Call, view: str, arguments: Document) -> Document:
    """Returns a view of a run as this caller may see it: it names nothing of others."""
    return await call.doors.look(call.store, view, arguments | {"sees": call.readable})


async def show(call: Call, view: str, arguments: Document) -> Document | bytes:
    """Returns a view of a run as ``look`` does, that of a giant as JSON."""
    return await call.doors.shown(call.store, view, arguments | {"sees": call.readable})


def _show(view: View, **rest: Any) -> Callable[[Handler], Handler]:  # noqa: ANN401 - of a Route
    told: Any = {"query": view.query, "answers": view.answer} | rest
    return ROUTES.add(f"GET {RUN}{view.path}", READS_RUN, view.says, **told)


for _view in VIEWS.values():
    if _view.is_plain:
        _show(_view)(_showing(_view))


@_show(VIEWS["graph"])
async def graph(call: Call) -> object:
    """Answers with the graph, or with its differences to the version that the caller has.

    If that version is not remembered, the whole graph is sent.
    """
    run, query = await call.found_run(), call.query
    asked = in_window(query)
    window = (run.number, asked["window"], *asked["ids"])

    found = await look(call, "graph", {"run": run.name} | asked)

    async def told() -> Document:
        return call.doors.graphs.told(window, found, query.since)

    return await call.doors.apart(told())


@ROUTES.add(
    f"GET {RUN}/pool",
    READS_RUN,
    "The tasks of the pool, and all within n edges of them, as a tree.",
    RunTree,
    query=TREE_QUERY,
)
async def pool(call: Call) -> object:
    """Answers with the tree of the tasks of the pool and of those within some edges of them."""
    run, asked = await call.found_run(), in_window(call.query)
    return await show(call, "tree", {"run": run.name} | asked)


def in_window(query: ViewQuery) -> Document:
    """Returns the arguments of a view of a window, one edge wide unless more are asked for."""
    asked = query.arguments()
    return {"ids": asked["ids"], "window": 1 if asked["window"] is None else asked["window"]}


@_show(VIEWS["log"], query=RunLogQuery, answers=str, media_type="text/plain")
async def log(call: Call) -> object:
    """Returns a part of a log; only files of the run's own folder are opened."""
    query, run = call.query_as(RunLogQuery), await call.found_run()
    what = " ".join(filter(None, (run.name, query.id, query.file)))
    part = await _log_part(call, query, run.name, what)
    # A job's log that is not there yet may come; a caller that waits is told so.
    if not part.found and not query.wait_s:
        raise NotFound("log", what)
    # Names are percent-encoded, because a header holds no other letters.
    place, root = part.place, runs_directory(call.server.settings.state_directory)
    facts = {
        "offset": str(part.offset),
        "size": str(part.size),
        "found": str(part.found).lower(),
        "over": str(part.over).lower(),
        "path": quote(str(Path(place.path).relative_to(root))),
        "id": quote(place.id or ""),
        "submit": str(place.submit or ""),
        "attempt": str(place.attempt or ""),
    }
    headers = {f"x-log-{name}": value for name, value in facts.items() if value}
    return Answer(body=part.content, media_type="text/plain; charset=utf-8", headers=headers)


async def _log_part(call: Call, query: RunLogQuery, run: str, what: str) -> LogPart:
    door, wait = run_door(call), query.wait_s
    span: Any = {"offset": query.offset, "bytes_max": query.limit}
    try:
        wish = await _exact_log(call, query, run)
        part = await call.doors.apart(door.log_part(run, wish, **span))
        if part.content or part.over or not wait:
            return part
        more = door.log_part(run, wish, **span, wait_seconds=wait)
        return await unless_stopping(call, call.doors.apart(more)) or part
    except (Refused, OSError) as error:
        missing = NotFound("log", what)  # with the reason, unless it tells local paths
        home = str(call.server.settings.state_directory)
        if isinstance(error, Refused) and home not in str(error):
            missing.args = error.args
        raise missing from None


async def _exact_log(call: Call, query: LogFileQuery, run: str) -> Document:
    """Returns what names a log; of a job with its submission and attempt."""
    wish = {name: getattr(query, name) for name in ("id", "file", "submit", "attempt")}
    if query.id and None in (query.submit, query.attempt):
        # Which is the latest has to be looked for in the whole run; the rest is quick.
        asked = wish | {"run": run, "bytes_max": 1, "awaited": True}
        latest = await call.doors.look(call.store, "log", asked)
        wish |= {name: latest[name] for name in ("id", "submit", "attempt")}
    return wish


class LogDownload(EventStream):
    """Sends a whole log, part by part; one who reads too slowly is cut off."""

    media_type = "text/plain; charset=utf-8"


@ROUTES.add(
    f"GET {RUN}/log/file",
    READS_RUN,
    "A whole log as a file to keep, unchanged, as it is at the time of the request.",
    str,
    query=LogFileQuery,
    media_type="text/plain",
)
async def log_file(call: Call) -> object:
    """Answers with all bytes of a log. It is text to be saved, and is shown by no browser."""
    assert call.token is not None
    if (
        call.server.metrics.streams >= call.server.settings.followers_max
        or call.server.stopping.is_set()
    ):
        raise Overloaded()
    run, asked = await call.found_run(), call.query_as(LogFileQuery)
    what = " ".join(filter(None, (run.name, asked.id, asked.file)))
    given = msgspec.structs.asdict(asked)
    first = await _log_part(call, RunLogQuery(offset=0, **given), run.name, what)
    if not first.found:
        raise NotFound("log", what)
    place = first.place
    exact = {"file": asked.file, "submit": place.submit, "attempt": place.attempt}
    wish = {"id": place.id or ""} | exact
    call.server.quotas.check_stream(call.token)
    held = call.server.quotas.held_stream(call.token)
    download = LogDownload(_parts(call, run.name, wish, first), call.server.metrics, held)
    names = (run.name, place.id, place.submit and f"{place.submit:02d}", Path(place.path).name)
    download.headers["content-length"] = str(first.size - first.offset)
    download.headers["content-disposition"] = f'attachment; filename="{file_name(*names)}"'
    return download


async def _parts(
    call: Call, run: str, wish: Document, part: LogPart
) -> AsyncGenerator[bytes, None]:
    """Yields a log part by part, up to where it ended when it was asked for.

    If it was cut meanwhile, the connection is: nobody takes a part for the whole.
    """
    size = part.size
    while part.content:
        yield part.content[: size - part.offset]
        if part.next_offset >= size:
            return
        following = run_door(call).log_part(run, wish, offset=part.next_offset)
        expected = part.next_offset
        part = await call.doors.apart(following)
        if part.offset != expected or not part.content:
            raise TimeoutError(f"the log of {run} was cut while it was sent")


def file_name(*parts: str | int | None) -> str:
    """Returns a name for a file to be saved: letters, digits and signs that mean nothing in a
    header, a path or a shell."""
    plain = (re.sub("[^A-Za-z0-9._-]+", "_", str(one)) for one in parts if one)
    return "-".join(plain).lstrip(".-_")[-FILE_NAME_LENGTH_MAX:] + ".txt"


# Commands to the scheduler of a run: the verbs of ``core.operator.verbs``.

WAIT_SECONDS_DEFAULT = 25.0  # for a scheduler to obey
COMMAND_SECONDS_MAX = 60.0
REQUEST_SECONDS_MAX = COMMAND_SECONDS_MAX + 10.0
ACCEPTED = 202
NAMED_MAX = 5  # tasks, in the audit

BRINGS_CODE = (verbs.Broadcast, verbs.Reload)  # commands that bring code of whoever gives them
OPERATES = Needs(OPERATE, run_and_queue)


class CommandQuery(In):
    """Holds the parameters of a command; with dry_run the answer is what would be done.

    wait_s is how long to wait until the scheduler has obeyed; 0: not at all.
    """

    dry_run: bool = False
    wait_s: Annotated[float, msgspec.Meta(ge=0, le=COMMAND_SECONDS_MAX)] = WAIT_SECONDS_DEFAULT


ObeyedOut = answer(
    "ObeyedOut",
    """A command that was carried out; `number` is its number in the history.

    With status 202, no scheduler has carried out the command yet. An answer with `kept` says
    that the run has ended, and that the command is carried out when the run resumes; `next` is
    the command that resumes it.
    """,
    **{"run": str, "number": int, "verb": str, "answer": Document},
)


class TriedIn(In):
    """A command whose effect is asked for: its verb and its fields."""

    command: Document


def _parsing(verb: str) -> Callable[[Call], object]:
    def parse(call: Call) -> object:
        check_body(call.raw)
        try:
            given = json.loads(call.raw or b"{}")
        except (ValueError, RecursionError) as error:
            raise BadBody(f"the body is not valid JSON: {error}") from None
        if not isinstance(given, dict) or "verb" in given:
            raise BadRequest([f"expected an object with the fields of {verb}"])
        return _command({"verb": verb} | given)

    return parse


def _command(said: Document) -> verbs.Command:
    try:
        return verbs.read_command(json.dumps(said))
    except Refused as error:
        raise BadRequest([str(error)]) from None


@COMMAND_ROUTES.add(
    f"POST {RUN}{VIEWS['dry-run'].path}",
    READS_RUN,
    VIEWS["dry-run"].says,
    DryRun,
    body=TriedIn,
    parse=lambda call: _command(read(call.raw or b"{}", TriedIn).command),
    audited=False,
    urgency=Urgency.READ,
)
async def _tried(call: Call) -> object:
    return await call.doors.shown(call.store, "dry-run", await _dry_run(call))


async def _dry_run(call: Call) -> Document:
    run, said = await call.found_run(), json.loads(verbs.command_text(call.body))
    return {"run": run.name, "command": said, "sees": call.readable}


async def give(call: Call) -> object:
    assert call.token is not None
    query, run = call.query_as(CommandQuery), await call.found_run()
    command = call.body
    ids = [command.id] if isinstance(command, verbs.Message) else getattr(command, "ids", ())
    call.targets += ids[:NAMED_MAX]
    if len(ids) > NAMED_MAX:
        call.targets.append(f"and {len(ids) - NAMED_MAX} more")
    if query.dry_run:
        call.only_tried = True
        return await _tried(call)
    who = f"{call.token.name} (token {call.token.number})"
    if call.job is not None:  # as history has it for one that asks through its worker
        who = caller_name(read_job_name(call.job.task.id))

    async def dry_run() -> Document:
        return await call.doors.look(call.store, "dry-run", await _dry_run(call))

    reopens = await would_reopen(run, command, await call.store.now(), dry_run)
    if isinstance(command, BRINGS_CODE) and call.job is None and ANY_TEXT not in call.readable:
        # Whoever gives a run code must not see by it what only its submitter may see.
        await call.store.narrow_run(run.number, call.readable)
    number = await post_command(call.store, run, command, who, reopens=reopens)
    if not query.wait_s:
        waiting = {"run": run.name, "number": number, "verb": command.verb, "answer": {}}
        return Answer(body=waiting, status=ACCEPTED)
    answering = awaited_answer(call.store, run, number, command.verb, query.wait_s)
    done = await unless_stopping(call, answering)
    if done is None:
        raise NoAnswer(
            f"this server is stopping; {command.verb} is stored and waits for the scheduler"
        )
    said = dict(zip(("run", "number", "verb", "answer"), done, strict=True))
    return Answer(body=said, status=ACCEPTED) if done.document.get("kept") else said


for _verb, _kind in verbs.VERBS.items():
    COMMAND_ROUTES.add(
        f"POST {RUN}/{_verb}",
        replace(OPERATES, job=operating_own_run),
        (_kind.__doc__ or _verb).splitlines()[0],
        (ObeyedOut, DryRun),
        query=CommandQuery,
        body=_kind,
        parse=_parsing(_verb),
        may_be_later=True,
        seconds_max=REQUEST_SECONDS_MAX,
    )(give)
