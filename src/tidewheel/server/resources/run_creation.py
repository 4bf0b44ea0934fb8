"""Begins runs from definitions that are sent, shows definitions, carries runs on, deletes them.

A caller who may begin a run may have commands executed by its scheduler and its workers, as any
workflow can say: scope submit, for its workflow and for the queue of its jobs.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal

import msgspec

from tidewheel.api.operation import SUBMIT, WORKER
from tidewheel.api.runs import RunCreated, RunDeleted
from tidewheel.api.wire import answer
from tidewheel.core.operator.definition import (
    SIP,
    NewRun,
    RunOptions,
    StoredDefinition,
    StoredFile,
    code_queue,
)
from tidewheel.core.operator.registry import RunRequest
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.access import (
    RUN_QUEUE,
    Name,
    Scope,
    queue_name,
    run_name,
    workflow_name,
)
from tidewheel.core.queue.submission import name_finding
from tidewheel.errors import AmbiguousRun, NotFound
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.quantities import parse_duration
from tidewheel.server.call import Answer, Call
from tidewheel.server.errors import BadRequest
from tidewheel.server.operation_routes import registry_door, run_door
from tidewheel.server.resources.runs import OPERATES, READS_RUN, RUN
from tidewheel.server.routes import Needs, RouteList, run_and_queue
from tidewheel.server.validation import Duration, In, read
from tidewheel.services.run_service import check_jobs
from tidewheel.wiring.services import carry_on_in_process

ROUTES = RouteList()
SECONDS_MAX = 180.0  # a giant is read twice, each time when it is the turn of its team
TEXT_BYTES_MAX = 5_000_000
FILES_MAX = 10_000
Named = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
Text = Annotated[str, msgspec.Meta(max_length=TEXT_BYTES_MAX)]
Path = Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]
Point = Annotated[str, msgspec.Meta(max_length=100)]
Texts = Annotated[tuple[Text, ...], msgspec.Meta(max_length=1_000)]


class FileIn(In):
    """A file next to the definition; jobs can read it."""

    path: Path  # relative
    content: str = ""  # in base64
    executable: bool = False


class DefinitionIn(In):
    """The text of a definition and its files, as a client read them from a folder."""

    workflow: Named
    text: Text  # as rendered; of a SIP definition the name of its file
    kind: Literal["flow.cylc", "python", "sip"] = "flow.cylc"
    variables: Texts = ()  # template variables, as NAME=LITERAL
    files: Annotated[tuple[FileIn, ...], msgspec.Meta(max_length=FILES_MAX)] = ()


class RunPointsIn(In):
    """The points with which a run would begin."""

    initial: Point = ""
    final: Point = ""
    start: Point = ""
    stop: Point = ""


class OptionsIn(RunPointsIn):
    """The options of a run; points are strings."""

    compat: Literal["", "cylc8"] = ""
    mode: Literal["", "live", "simulation", "dummy", "skip"] = ""
    start_tasks: Annotated[tuple[Named, ...], msgspec.Meta(max_length=1_000)] = ()
    hold_after: Point = ""
    paused: bool = False
    now: Annotated[float, msgspec.Meta(ge=0, le=1e12)] = 0.0  # 0: as the server's clock says
    abort_if_any_task_fails: bool = False
    prune_across_points: bool = False
    job_commands: bool | None = None  # null: for a captured definition, not for a text
    stall_timeout: Duration | None = None
    parameters: Annotated[str, msgspec.Meta(max_length=200_000)] = ""  # JSON, for kind sip
    priority: Annotated[int, msgspec.Meta(ge=-1, le=100)] | None = None


class RunIn(In):
    """A run to begin: of a registered workflow, of a flow.cylc as it is written, or of a
    definition with its files."""

    flow: Text | None = None  # with its templates
    # How a flow shall be called; without one, a workflow of the registry.
    workflow: Annotated[str, msgspec.Meta(max_length=255)] = ""
    version: Annotated[str, msgspec.Meta(max_length=200)] = ""  # else the highest
    # Of what is registered, or of a SIP definition.
    parameters: dict[str, Any] = msgspec.field(default_factory=dict)
    variables: dict[str, Any] = msgspec.field(default_factory=dict)  # of its templates
    definition: DefinitionIn | None = None
    options: OptionsIn = msgspec.field(default_factory=OptionsIn)
    name: Annotated[str, msgspec.Meta(max_length=255)] = ""  # else the next WORKFLOW/runN
    queue: Annotated[str, msgspec.Meta(max_length=255)] = ""  # of its jobs; else run:NAME
    folder: Annotated[str, msgspec.Meta(max_length=4_096)] = ""  # for people


class CarryOnIn(In):
    """The new options of a run that is resumed; an option that is not given is unchanged."""

    options: OptionsIn = msgspec.field(default_factory=OptionsIn)


FileOut: Any = answer(
    "FileOut",
    "A file of a definition, in base64.",
    **{"path": str, "content": str, "executable": bool},
)
DefinitionOut = answer(
    "DefinitionOut",
    "The definition of a run, or of a registered workflow.",
    **{"digest": str, "workflow": str, "kind": str, "text": str},
    variables=msgspec.Raw,  # a list of strings
    files=list[FileOut],
)


class DefinitionQuery(In):
    """Names one file of a definition, sent as it is; without a path, all is sent as JSON."""

    path: str = ""


async def _run_unless_served(call: Call) -> Iterable[Name]:
    """Returns the name of the run, for the guard; none for a worker that may take the run's
    jobs."""
    with suppress(NotFound, AmbiguousRun):
        run = await call.server.asking.find_run(call.path["run"])
        served = {run.queue, code_queue(run.name, run.queue)}
        if call.allows(WORKER) and any(map(call.covers_queue, served)):
            call.run = run
    return (run_name((await call.found_run()).name),) if call.run is None else ()


@ROUTES.add(
    f"GET {RUN}/definition",
    replace(READS_RUN, names=_run_unless_served),
    "The definition of a run: its text and files, or one file.",
    DefinitionOut,
    query=DefinitionQuery,
)
async def definition(call: Call) -> object:
    """Answers with the definition of a run, or one of its files, for the worker of its jobs."""
    found = await run_door(call).definition((await call.found_run()).name)
    return definition_answer(found, call.query_as(DefinitionQuery).path)


def definition_answer(found: StoredDefinition, path: str) -> object:
    """Returns one file of a definition as it is; without a path, all of it as JSON."""
    if not path:
        return definition_document(found)
    for one in found.files:
        if one.path == path:
            headers = {"x-executable": str(one.executable).lower()}
            return Answer(
                body=one.content, media_type="application/octet-stream", headers=headers
            )
    raise NotFound("file of the definition", path)


def definition_document(found: StoredDefinition) -> dict[str, object]:
    """Returns a definition that is kept as `DefinitionOut` has it."""
    said = {name: getattr(found, name) for name in ("digest", "workflow", "kind", "text")}
    files = [
        {
            # JSON is Unicode, a name need not be.
            "path": one.path.encode(errors="replace").decode(),
            "content": base64.b64encode(one.content).decode(),
            "executable": one.executable,
        }
        for one in found.files
    ]
    return said | {"variables": msgspec.Raw(found.variables.encode()), "files": files}


class Begin(NamedTuple):
    """Holds a run that is asked for; its text is rendered only once the caller may begin it."""

    form: RunIn
    options: RunOptions
    sent: StoredDefinition | None
    workflow: str


def parse(call: Call) -> Begin:
    form = read(call.raw or b"{}", RunIn)
    options = _options(form.options)
    named = {"workflow": form.workflow, "queue": form.queue}
    found = [name_finding(what, text) for what, text in named.items() if text]
    if findings := [*filter(None, found), *_definition_findings(form)]:
        raise BadRequest(findings)
    sent = None if form.definition is None else _sent(form.definition)
    return Begin(form, options, sent, form.workflow if sent is None else sent.workflow)


def _definition_findings(form: RunIn) -> list[str]:
    if form.flow is None and form.definition is None:
        if not form.workflow:
            return [
                "name a registered workflow, or give flow (the text of a flow.cylc) or "
                "definition (a definition with its files)"
            ]
        if form.variables:
            return ["variables are only for flow; for a registered workflow, give parameters"]
        return []
    found: list[str] = []
    if form.flow is not None and form.definition is not None:
        found.append(
            "give either flow (the text of a flow.cylc) or definition (a definition with its "
            "files), not both"
        )
    if form.flow is not None and not form.workflow:
        found.append("workflow is missing: give the workflow a name")
    if form.definition is not None and (form.variables or form.workflow):
        found.append("variables and workflow are only for flow; definition contains its own")
    takes_parameters = form.definition is not None and form.definition.kind == SIP
    if form.version or (form.parameters and not takes_parameters):
        found.append(
            "version is only for registered workflows, and parameters only for these and for "
            "SIP definitions; leave them out"
        )
    return found


def _options(given: OptionsIn) -> RunOptions:
    """Returns the options of a run from those in a request."""
    said = msgspec.structs.asdict(given)
    timeout = said.pop("stall_timeout")
    seconds = None if timeout is None else parse_duration(timeout, "stall_timeout")
    if given.job_commands is None:
        del said["job_commands"]
    return RunOptions(**said, stall_timeout_seconds=seconds)


def _sent(form: DefinitionIn) -> StoredDefinition:
    if len(form.text.encode()) > TEXT_BYTES_MAX:
        raise BadRequest([f"definition.text has more than {TEXT_BYTES_MAX} bytes"])
    try:
        files = tuple(
            StoredFile(one.path, base64.b64decode(one.content, validate=True), one.executable)
            for one in form.files
        )
    except ValueError:
        raise BadRequest(["definition.files: content is not base64"]) from None
    return StoredDefinition(
        digest="",
        workflow=form.workflow,
        kind=form.kind,
        text=form.text,
        variables=msgspec.json.encode(form.variables).decode(),
        files=files,
    )


async def _new_names(call: Call) -> Iterable[Name]:
    """Returns the names that a new run takes or uses: its own, those of its workflow and of the
    queue of its jobs."""
    asked = call.body_as(Begin)
    run = asked.form.name or f"{asked.workflow}/run"
    queue = asked.form.queue or f"{RUN_QUEUE}{run}"
    return workflow_name(asked.workflow), run_name(run), queue_name(queue)


@ROUTES.add(
    "POST /runs",
    Needs(SUBMIT, _new_names),
    "Begin a run: of a registered workflow, of a flow.cylc as it is written, or of a "
    "definition with its files.",
    RunCreated,
    body=RunIn,
    parse=parse,
    status=201,
    seconds_max=SECONDS_MAX,
)
async def begin(call: Call) -> object:
    """Begins a run; a mistake in its definition is found here, not by its scheduler."""
    asked = call.body_as(Begin)
    call.server.quotas.take("runs", call.token, 1, [asked.workflow])
    options = replace(asked.options, mode=asked.options.mode or "live")
    if asked.form.flow is not None and asked.form.options.job_commands is None:
        options = replace(options, job_commands=False)  # it came from nobody's folder
    if not options.now:
        options = replace(options, now=float(await call.store.now()))
    if asked.sent is not None and asked.form.parameters:
        options = replace(options, parameters=json.dumps(asked.form.parameters, sort_keys=True))
    run = await _begun(call, asked, options)
    call.targets.append(run.name)
    return Answer(body=await _facts(call, run.name), status=201)


async def _facts(call: Call, run: str) -> object:
    """Returns what a run is that was just written: at once and here, because work that has to
    wait for a place or a turn may be given up, when the caller would not learn of the run."""
    return await run_door(call).look("facts", {"run": run, "sees": call.readable})


async def _begun(call: Call, asked: Begin, options: RunOptions) -> RunView:
    from tidewheel.services.definitions import upload

    form = asked.form
    shared: Any = {
        "workflow": asked.workflow,
        "name": form.name,
        "options": options,
        "queue": form.queue,
        "request": _request(call),
        "sees": call.readable,
    }
    if asked.sent is not None:
        definition = upload.sealed_definition(asked.sent)
    elif form.flow is not None:
        check = partial(check_jobs, call.doors.home)
        given = (form.flow, asked.workflow, form.variables, options, check)
        work = partial(upload.definition_of_text, *given)
        definition = await call.doors.read(asked.workflow, work)
    else:
        request = RunRequest(version=form.version, parameters=form.parameters, **shared)
        return await registry_door(call).begin(request)
    new = NewRun(definition=definition.digest, folder=form.folder, **shared)
    return await run_door(call).begin(new, definition, is_checked=asked.sent is None)


def _request(call: Call) -> str:
    """Returns the digest of a request with an idempotency key, so that the same again makes no
    new run; "" without a key."""
    if call.key is None or call.token is None:
        return ""
    said = f"{call.token.number}\0{call.key}\0".encode() + call.raw
    return hashlib.sha256(said).hexdigest()


@ROUTES.add(
    f"POST {RUN}/carry-on",
    Needs((Scope.SUBMIT, Scope.OPERATE), run_and_queue),
    "Ask any scheduler to resume a run that has no scheduler.",
    RunCreated,
    body=CarryOnIn,
    seconds_max=SECONDS_MAX,
)
async def carry_on(call: Call) -> object:
    run = await call.found_run()
    given = _options(call.body_as(CarryOnIn).options)
    door = run_door(call)
    await call.doors.view(
        run.name,
        lambda: door.carry_on(run.name, given),
        partial(carry_on_in_process, home=call.doors.home, run=run.name, given=given),
        may_end=False,  # it is written at the end
    )
    return await _facts(call, run.name)


@ROUTES.add(
    f"POST {RUN}/definitions",
    OPERATES,
    "Store a definition for the command `reload`, which names it by its digest.",
    answer("SavedOut", "The digest of a stored definition.", digest=str),
    body=DefinitionIn,
    status=201,
)
async def save_definition(call: Call) -> object:
    """Saves a definition for `reload`, which names it by its digest."""
    from tidewheel.services.definitions import upload

    run = await call.found_run()
    sent = _sent(call.body_as(DefinitionIn))
    if sent.workflow != run.workflow:
        raise BadRequest([f"{run.name} is a run of {run.workflow}, not of {sent.workflow}"])
    definition = upload.sealed_definition(sent)
    await run_door(call).save_definition(run.name, definition)
    return Answer(body={"digest": definition.digest}, status=201)


@ROUTES.add(
    f"DELETE {RUN}",
    OPERATES,
    "Delete a run that no scheduler drives, with its logs and files.",
    RunDeleted,
)
async def delete(call: Call) -> object:
    run = await call.found_run()
    await run_door(call).delete(run.name)
    return {"deleted": run.name}
