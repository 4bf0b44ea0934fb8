"""Makes runs of registered workflows, from what is kept, never from the folder it came from.

Every request is validated anew, with its parameters, before anything is stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import cast

from tidewheel.core.graph.findings import (
    Finding,
    Findings,
    InvalidDefinition,
    Severity,
    finding_document,
    nearest,
)
from tidewheel.core.operator.definition import (
    FLOW_CYLC,
    PYTHON,
    SIP,
    NewRun,
    RunOptions,
    StoredDefinition,
)
from tidewheel.core.operator.registry import (
    RunRequest,
    WorkflowView,
    highest,
    in_order,
    registry_text,
)
from tidewheel.errors import Refused, UnknownWorkflow
from tidewheel.formats.flow_cylc.template_variables import VariableTexts, read_variables
from tidewheel.formats.flow_cylc.workflow import LoadedWorkflow
from tidewheel.formats.sip.parameters import Values
from tidewheel.formats.sip.stage_renderer import RenderedStage
from tidewheel.formats.sip.validation import validate
from tidewheel.ports.runs import Document
from tidewheel.ports.store import Store
from tidewheel.services.definitions.graph import (
    TASKS_READ_MAX,
    drawn_in,
    graph_document,
    read_window,
)
from tidewheel.services.definitions.sip import load_sip, source_of, warn_of_scripts
from tidewheel.services.definitions.snapshot import capture, check_definition
from tidewheel.services.registry.validation import load_flow, validate_sip

# Lookup of the registered workflow that a name and a version mean.

WORKFLOWS_MAX = 10_000  # versions of all workflows that are listed


async def found_workflow(store: Store, name: str, version: str) -> WorkflowView:
    """Returns a version of a workflow, by default the highest; raises UnknownWorkflow."""
    versions = await store.workflows(name, WORKFLOWS_MAX)
    if not versions:
        raise await _unknown(store, name)
    if not version:
        return highest(versions)
    for one in versions:
        if one.version == version:
            return one
    known = ", ".join(one.version for one in in_order(versions)[:10])
    raise UnknownWorkflow(f"{name}/{version}", f"registered versions: {known}")


async def _unknown(store: Store, name: str) -> UnknownWorkflow:
    names = sorted({one.name for one in await store.workflows(None, WORKFLOWS_MAX)})
    near = nearest(name, names)
    if near is not None:
        return UnknownWorkflow(name, f"did you mean {near!r}?")
    if names:
        return UnknownWorkflow(name, "those that are: tidewheel workflows")
    return UnknownWorkflow(name, "register it first: tidewheel register PATH")


async def only_workflow(store: Store, name: str, version: str) -> WorkflowView:
    """Returns a workflow where nothing may be guessed: refuses if it has several versions."""
    if version:
        return await found_workflow(store, name, version)
    versions = in_order(await store.workflows(name, WORKFLOWS_MAX))
    if len(versions) > 1:
        known = ", ".join(one.version for one in versions[:10])
        raise Refused(f"there are several versions of {name!r}; say which: {known}")
    return await found_workflow(store, name, version)


async def request_run(
    store: Store, asked: RunRequest, findings: Findings | None = None
) -> tuple[NewRun, StoredDefinition]:
    """Returns what the run is made of, if it can be made; nothing is written.

    InvalidDefinition has every finding: no such workflow or version, a parameter that is
    missing, whatever keeps this request from running. The definition may be a new one, which
    has to be kept before the run is made. ``findings`` gets what refuses nothing, too.
    """
    findings = Findings() if findings is None else findings
    try:
        view = await found_workflow(store, asked.workflow, asked.version)
    except UnknownWorkflow as unknown:
        known = unknown.name == asked.workflow
        code = "unknown-workflow" if known else "unknown-version"
        findings.error(code, f"no workflow {unknown.name!r} is registered", unknown.advice)
        raise InvalidDefinition(str(asked), findings) from None
    kept = await store.definition(view.definition)
    if not asked.options.now:
        options = replace(asked.options, now=float(await store.now()))
        asked = replace(asked, options=options)
    definition, options = await asyncio.to_thread(_made, kept, asked, findings)
    new = NewRun(
        workflow=definition.workflow,
        definition=definition.digest,
        name=asked.name,
        options=options,
        folder=registry_text(str(view)),
        queue=asked.queue,
        request=asked.request,
    )
    return new, definition


def _made(
    kept: StoredDefinition, asked: RunRequest, findings: Findings
) -> tuple[StoredDefinition, RunOptions]:
    """Returns the definition and the options of a run; raises InvalidDefinition."""
    options = asked.options
    if kept.kind == SIP:
        source = source_of(kept.text, kept.files)
        load_sip(source, Path(), _values(asked), findings)
        if not findings.has_errors:  # else they may be no JSON
            options = replace(options, parameters=asked.parameters_text)
    elif kept.kind == FLOW_CYLC:
        with _flow_of(kept, asked, findings) as (loaded, folder):
            if loaded.graph is not None and not findings.has_errors:
                variables = read_variables(VariableTexts(values=asked.parameters), findings)
                trusted = asked.code_trusted and kept.is_trusted
                kept = capture(loaded, folder, variables, trusted=trusted).definition
    else:
        _check_python(kept, asked, findings)
    if findings.has_errors:
        raise InvalidDefinition(str(asked), findings.sorted())
    return kept, options


def _values(asked: RunRequest) -> Values:
    """Returns the parameters of a SIP definition; a value that is no JSON is a finding."""
    return cast("Values", dict(asked.parameters))


def _flow_of(
    kept: StoredDefinition, asked: RunRequest, findings: Findings
) -> AbstractContextManager[tuple[LoadedWorkflow, Path]]:
    trusted = asked.code_trusted
    return load_flow(kept, asked.options, findings, asked.parameters, code_trusted=trusted)


def _check_python(kept: StoredDefinition, asked: RunRequest, findings: Findings) -> None:
    if asked.parameters:
        findings.error(
            "no-parameters",
            f"{asked} is written in Python, which takes no parameters",
            "leave them out; the file itself may read the environment",
        )
    if not asked.code_trusted:
        findings.error(
            "python-definition",
            "a server reads no definition in Python: to read it is to execute it",
            f"run it where the store is: tidewheel run {asked} --store URL",
        )
    if not findings.has_errors:
        check_definition(kept, asked.options)


def checked(kept: StoredDefinition, asked: RunRequest, *, is_request: bool) -> Document:
    """Says whether a run could begin; without a request, whether any run could."""
    if kept.kind == SIP:
        source = source_of(kept.text, kept.files)
        validation = validate(source, _values(asked) if is_request else None)
        warn_of_scripts(validation)
        return validate_sip(source, validation).document()
    findings = Findings()
    try:
        _made(kept, asked, findings)
        found: Sequence[Finding] = findings.sorted()
    except InvalidDefinition as refused:
        found = refused.findings
    return {
        "registrable": True,
        "runnable": all(one.severity is not Severity.ERROR for one in found),
        "findings": [finding_document(one) for one in found],
    }


def rendered(kept: StoredDefinition, asked: RunRequest) -> Document:
    """Returns what a run would execute, with every value in its place."""
    findings = Findings()
    if kept.kind == PYTHON:
        findings.error(
            "python-definition",
            f"{asked} is written in Python: there is nothing to render",
            "its files: tidewheel workflows show",
        )
        raise InvalidDefinition(str(asked), findings)
    if kept.kind == FLOW_CYLC:
        with _flow_of(kept, asked, findings) as (loaded, _):
            text = loaded.source.text
            stages: dict[str, Document] = {}
    else:
        source = source_of(kept.text, kept.files)
        validated = load_sip(source, Path(), _values(asked), findings)
        text = validated.loaded.source.text
        found = validated.validation.rendered if validated.validation is not None else {}
        stages = {name: _stage_document(one) for name, one in found.items()}
    if findings.has_errors:
        raise InvalidDefinition(str(asked), findings.sorted())
    return {"text": text, "stages": stages}


def graphed(kept: StoredDefinition, asked: RunRequest, start: str, stop: str) -> Document:
    """Returns the graph between two points, even of a workflow that could not run."""
    findings, drawn = Findings(), None
    if kept.kind == PYTHON:
        _check_python(kept, asked, findings)
    elif kept.kind == FLOW_CYLC:
        with _flow_of(kept, asked, findings) as (loaded, _):
            drawn = _drawn(loaded, start, stop)
    else:
        source = source_of(kept.text, kept.files)
        loaded = load_sip(source, Path(), _values(asked) or None, findings).loaded
        drawn = _drawn(loaded, start, stop)
    if drawn is None:
        raise InvalidDefinition(str(asked), findings.sorted())
    return drawn | {"findings": [finding_document(one) for one in findings.sorted()]}


def _drawn(loaded: LoadedWorkflow, start: str, stop: str) -> Document | None:
    """Returns the graph to draw; None where there is nothing to draw."""
    if loaded.graph is None or not loaded.graph.nodes:
        return None
    shown = read_window(loaded, start, stop, tasks_max=TASKS_READ_MAX, suicides=True)
    return graph_document(shown, drawn_in(loaded))


def _stage_document(stage: RenderedStage) -> Document:
    """Returns a stage as JSON.

    `is_whole` says that the stage has to wait for no value of an earlier stage; `to_come` are
    those values.
    """
    command = None if stage.command is None else list(stage.command)
    executed = {"compose": stage.compose, "command": command, "script": stage.script}
    return {
        "parameters": dict(stage.parameters),
        "args": stage.args,
        **{name: one for name, one in executed.items() if one is not None},
        "is_whole": stage.is_whole,
        "to_come": [{"name": name, "stage": by} for name, by in stage.to_come.items()],
    }
