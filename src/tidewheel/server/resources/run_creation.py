"""Begins runs from definitions that are sent, carries them on, and deletes them.

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
from typing import NamedTuple

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
from tidewheel.quantities import parse_duration
from tidewheel.server.call import Answer, Call
from tidewheel.server.errors import BadRequest
from tidewheel.server.operation_routes import registry_door, run_door
from tidewheel.server.resources.run_commands import OPERATES
from tidewheel.server.resources.runs import RUN
from tidewheel.server.routes import API, Needs, Route, workflow_of_run
from tidewheel.server.wire.runs import (
    TEXT_BYTES_MAX,
    CarryOnIn,
    DefinitionIn,
    OptionsIn,
    RunIn,
    SavedOut,
    run_options,
)
from tidewheel.server.wire.validation import read

CREATED = 201
SECONDS_MAX = 60.0  # a long definition takes its time to be read


class Begin(NamedTuple):
    """A run that is asked for; the text is rendered only for somebody who may do this."""

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
