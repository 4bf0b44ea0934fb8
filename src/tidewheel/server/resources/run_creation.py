"""Begins runs from definitions that are sent, shows these, carries runs on, deletes them.

A caller who may begin a run may have commands executed by its scheduler and its workers, as any
workflow can say: scope submit, for its workflow and for the queue of its jobs.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from tidewheel.api.runs import RunCreated, RunDeleted
from tidewheel.core.operator.definition import (
    SIP,
    NewRun,
    RunOptions,
    StoredDefinition,
    StoredFile,
)
from tidewheel.core.operator.registry import RunRequest
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.access import RUN_QUEUE, Scope, workflow_of_queue
from tidewheel.core.queue.submission import name_finding
from tidewheel.errors import NotFound
from tidewheel.quantities import parse_duration
from tidewheel.server.call import Answer, Call
from tidewheel.server.errors import BadRequest
from tidewheel.server.operation_routes import registry_door, run_door
from tidewheel.server.resources.runs import OPERATES, READS, RUN
from tidewheel.server.routes import API, Needs, Route, workflow_of_run
from tidewheel.server.wire.validation import Duration, In, Out, read

CREATED = 201
SECONDS_MAX = 60.0  # a long definition takes its time to be read
TEXT_BYTES_MAX = 5_000_000
FILES_MAX = 10_000
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
Text = Annotated[str, msgspec.Meta(max_length=TEXT_BYTES_MAX)]
Path = Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]
Point = Annotated[str, msgspec.Meta(max_length=100)]
Texts = Annotated[tuple[Text, ...], msgspec.Meta(max_length=1_000)]


class FileIn(In):
    """A file that lies beside the definition, and is there for its jobs."""

    path: Path  # relative
    content: str = ""  # in base64
    executable: bool = False


class DefinitionIn(In):
    """A definition as a client captured it."""

    workflow: Name
    text: Text  # as rendered; of a SIP definition the name of its file
    kind: Literal["flow.cylc", "python", "sip"] = "flow.cylc"
    variables: Texts = ()  # template variables, as NAME=LITERAL
    files: Annotated[tuple[FileIn, ...], msgspec.Meta(max_length=FILES_MAX)] = ()


class OptionsIn(In):
    """The options of a run beside its definition; points are texts."""

    compat: Literal["", "cylc8"] = ""
    mode: Literal["", "live", "simulation", "dummy", "skip"] = ""
    initial: Point = ""
    final: Point = ""
    start: Point = ""
    start_tasks: Annotated[tuple[Name, ...], msgspec.Meta(max_length=1_000)] = ()
    stop: Point = ""
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
    definition that was captured."""

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
    """The new options of a run that goes on; an option that is not given stays as it was."""

    options: OptionsIn = msgspec.field(default_factory=OptionsIn)


class SavedOut(Out):
    """A definition that is kept."""

    digest: str


class FileOut(Out):
    """A file of a definition, in base64."""

    path: str
    content: str
    executable: bool


class DefinitionOut(Out):
    """The definition of a run."""

    digest: str
    workflow: str
    kind: str
    text: str
    variables: msgspec.Raw  # a list of texts
    files: tuple[FileOut, ...]


def run_options(given: OptionsIn, stall_timeout_seconds: float | None) -> RunOptions:
    """Returns the options as runs have them."""
    said = msgspec.structs.asdict(given)
    del said["stall_timeout"]
    if given.job_commands is None:
        del said["job_commands"]
    return RunOptions(**said, stall_timeout_seconds=stall_timeout_seconds)


def definition_out(found: StoredDefinition) -> DefinitionOut:
    """Returns a definition with all of its files."""
    return DefinitionOut(
        digest=found.digest,
        workflow=found.workflow,
        kind=found.kind,
        text=found.text,
        variables=msgspec.Raw(found.variables.encode()),
        files=tuple(map(_file_out, found.files)),
    )


def _file_out(one: StoredFile) -> FileOut:
    return FileOut(
        path=one.path.encode(errors="replace").decode(),  # JSON is Unicode, a name need not be
        content=base64.b64encode(one.content).decode(),
        executable=one.executable,
    )


class DefinitionQuery(In):
    """One file of it, as it is; without a path, all of it as JSON."""

    path: str = ""


class Begin(NamedTuple):
    """Holds a run that is asked for; the text is rendered only for a caller who may do this."""

    form: RunIn
    options: RunOptions
    sent: StoredDefinition | None
    workflow: str


def parse(call: Call) -> Begin:
    form = read(call.raw or b"{}", RunIn)
    options = _options(form.options)
    found = _name_findings(form)
    found += _definition_findings(form)
    if found:
        raise BadRequest(found)
    sent = None if form.definition is None else _sent(form.definition)
    return Begin(form, options, sent, form.workflow if sent is None else sent.workflow)


def _definition_findings(form: RunIn) -> list[str]:
    if form.flow is None and form.definition is None:
        if not form.workflow:
            return [
                "name a registered workflow, or give flow, the text of a flow.cylc, or a "
                "captured definition"
            ]
        if form.variables:
            return ["variables go with flow; a registered workflow has parameters"]
        return []
    found: list[str] = []
    if form.flow is not None and form.definition is not None:
        found.append("give either flow, the text of a flow.cylc, or a captured definition")
    if form.flow is not None and not form.workflow:
        found.append("workflow is missing: what shall it be called?")
    if form.definition is not None and (form.variables or form.workflow):
        found.append("variables and workflow go with flow; a definition has its own")
    takes_parameters = form.definition is not None and form.definition.kind == SIP
    if form.version or (form.parameters and not takes_parameters):
        found.append("version and parameters are of registered workflows; leave out the text")
    return found


def _name_findings(form: RunIn) -> list[str]:
    given = {"workflow": form.workflow, "queue": form.queue}
    found = [name_finding(what, text) for what, text in given.items() if text]
    return [finding for finding in found if finding]


def _options(given: OptionsIn) -> RunOptions:
    timeout = given.stall_timeout
    seconds = None if timeout is None else parse_duration(timeout, "stall_timeout")
    return run_options(given, seconds)


def _sent(form: DefinitionIn) -> StoredDefinition:
    if len(form.text.encode()) > TEXT_BYTES_MAX:
        raise BadRequest([f"definition.text has more than {TEXT_BYTES_MAX} bytes"])
    try:
        files = tuple(
            StoredFile(one.path, base64.b64decode(one.content, validate=True), one.executable)
            for one in form.files
        )
    except (binascii.Error, ValueError):
        raise BadRequest(["definition.files: content is not base64"]) from None
    return StoredDefinition(
        digest="",
        workflow=form.workflow,
        kind=form.kind,
        text=form.text,
        variables=msgspec.json.encode(form.variables).decode(),
        files=files,
    )


async def begin(call: Call) -> object:
    """Begins a run; a mistake in its definition is found here, not by its scheduler."""
    asked = call.body_as(Begin)
    options = replace(asked.options, mode=asked.options.mode or "live")
    if asked.form.flow is not None and asked.form.options.job_commands is None:
        options = replace(options, job_commands=False)  # it came from nobody's folder
    if not options.now:
        options = replace(options, now=float(await call.store.now()))
    if asked.sent is not None and asked.form.parameters:
        options = replace(options, parameters=json.dumps(asked.form.parameters, sort_keys=True))
    async with call.doors.beginning:
        run = await _begun(call, asked, options)
    call.targets.append(run.name)
    return await _told(call, run)


async def _begun(call: Call, asked: Begin, options: RunOptions) -> RunView:
    from tidewheel.services.definitions import upload

    if asked.sent is None and asked.form.flow is None:
        return await registry_door(call).begin(_registered(call, asked.form, options))
    if asked.sent is None:
        assert asked.form.flow is not None
        definition = await asyncio.to_thread(
            upload.definition_of_text,
            asked.form.flow,
            asked.workflow,
            asked.form.variables,
            options,
        )
    else:
        definition = upload.sealed_definition(asked.sent)
    new = NewRun(
        workflow=asked.workflow,
        definition=definition.digest,
        name=asked.form.name,
        options=options,
        folder=asked.form.folder,
        queue=asked.form.queue,
        request=_request(call),
    )
    return await run_door(call).begin(new, definition)


def _registered(call: Call, form: RunIn, options: RunOptions) -> RunRequest:
    return RunRequest(
        workflow=form.workflow,
        version=form.version,
        parameters=form.parameters,
        name=form.name,
        options=options,
        queue=form.queue,
        request=_request(call),
    )


def _request(call: Call) -> str:
    """Returns the digest of a request with a key, so that the same again makes no new run."""
    if call.key is None or call.token is None:
        return ""
    said = f"{call.token.number}\0{call.key}\0".encode() + call.raw
    return hashlib.sha256(said).hexdigest()


async def _told(call: Call, run: RunView) -> Answer:
    facts = await run_door(call).look("facts", {"run": run.name})
    return Answer(body=facts, status=CREATED)


async def carry_on(call: Call) -> object:
    run = await call.found_run()
    given = _options(call.body_as(CarryOnIn).options)
    await call.doors.apart(run_door(call).carry_on(run.name, given))
    return await run_door(call).look("facts", {"run": run.name})


async def save_definition(call: Call) -> object:
    """Saves a definition for `reload`, which names it by its digest."""
    from tidewheel.services.definitions import upload

    run = await call.found_run()
    sent = _sent(call.body_as(DefinitionIn))
    if sent.workflow != run.workflow:
        raise BadRequest([f"{run.name} is a run of {run.workflow}, not of {sent.workflow}"])
    definition = upload.sealed_definition(sent)
    await run_door(call).save_definition(run.name, definition)
    return Answer(body=SavedOut(digest=definition.digest), status=CREATED)


async def delete(call: Call) -> object:
    run = await call.found_run()
    await run_door(call).delete(run.name)
    return {"deleted": run.name}


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


async def _new_queue(call: Call) -> Iterable[str]:
    """Returns the queue of the new run's jobs; it has the run's name unless it is given."""
    asked = call.body_as(Begin)
    named = asked.form.name or f"{asked.workflow}/run"
    return (asked.form.queue or f"{RUN_QUEUE}{named}",)


async def _new_workflow(call: Call) -> Iterable[str]:
    asked = call.body_as(Begin)
    # A name says to whom a run belongs as well as its workflow does.
    named = {workflow_of_queue(f"{RUN_QUEUE}{asked.form.name}")} if asked.form.name else set()
    return {asked.workflow} | named


async def _queue_of_run(call: Call) -> Iterable[str]:
    return ((await call.found_run()).queue,)


ROUTES = (
    Route(
        method="GET",
        path=f"{RUN}/definition",
        guard=replace(READS, workflows=_workflow_unless_served),
        handler=definition,
        says="What the run runs: its text and files, or one file.",
        query=DefinitionQuery,
        answers=DefinitionOut,
    ),
    Route(
        method="POST",
        path=f"{API}/runs",
        guard=Needs(scopes=(Scope.SUBMIT,), queues=_new_queue, workflows=_new_workflow),
        handler=begin,
        says="Begin a run: of a registered workflow, of a flow.cylc as it is written, or of a "
        "captured definition.",
        body=RunIn,
        parse=parse,
        answers=RunCreated,
        status=CREATED,
        seconds_max=SECONDS_MAX,
    ),
    Route(
        method="POST",
        path=f"{RUN}/carry-on",
        guard=Needs(
            scopes=(Scope.SUBMIT, Scope.OPERATE),
            queues=_queue_of_run,
            workflows=workflow_of_run,
        ),
        handler=carry_on,
        says="Ask any scheduler to go on with a run that nobody drives.",
        body=CarryOnIn,
        answers=RunCreated,
        seconds_max=SECONDS_MAX,
    ),
    Route(
        method="POST",
        path=f"{RUN}/definitions",
        guard=OPERATES,
        handler=save_definition,
        says="Keep a definition for reload, which names it by its digest.",
        body=DefinitionIn,
        answers=SavedOut,
        status=CREATED,
    ),
    Route(
        method="DELETE",
        path=RUN,
        guard=OPERATES,
        handler=delete,
        says="Delete a run that nobody drives, with its logs and files.",
        answers=RunDeleted,
    ),
)
