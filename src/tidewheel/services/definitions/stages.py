"""Tells stages as JSON: what a definition says of each, and what each would execute.

Nothing is read here: all of it was found when the definition was validated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from tidewheel.config import SWARM
from tidewheel.core.graph.findings import Findings
from tidewheel.core.operator.definition import StoredDefinition, StoredFile
from tidewheel.formats.sip.keys import RESOURCES
from tidewheel.formats.sip.model import (
    NEEDS,
    PRESENT,
    Dependency,
    ForEach,
    ListGiven,
    ListReturned,
    ListToCome,
    ObjectDependency,
    Resource,
    SameElements,
    Stage,
)
from tidewheel.formats.sip.parameters import ParameterSource, StagePart, Values
from tidewheel.formats.sip.stage_folder import StageFolder
from tidewheel.formats.sip.stage_renderer import RenderedStage
from tidewheel.formats.sip.validation import Validation, validate
from tidewheel.ports.runs import Document
from tidewheel.runners.containers.needs import (
    asked_of_host,
    compose_2_keys,
    runner_for,
)
from tidewheel.services.definitions.sip import must_exist, source_of

# More is told by the definition itself, which is sent whole.
FILE_TEXT_BYTES_MAX = 64 * 1024
TEXTS_BYTES_MAX = 4 * 1024 * 1024  # of all files of one answer
ITEMS_MAX = 100  # of one list


def stages_document(
    kept: StoredDefinition, request: Values | None, findings: Findings
) -> Document | None:
    """Returns each stage of a SIP definition; None, after findings, if none can be read.

    Without a request they are told as they are for any.
    """
    source = source_of(kept.text, kept.files)
    seen = validate(source, request, elements_checked_max=0)
    for one in seen.all_findings():
        findings.add(one)
    definition = seen.definition
    if definition is None or not definition.stages:
        return None
    places = {
        one.id: place
        for one in definition.stages
        if (place := source.folder_of(one.id, one.version)) is not None
    }
    files = _files_by_folder(kept, frozenset(places.values()))
    return {
        "stages": [
            _said(one)
            | _made_of(one, seen, request or {})
            | {"files": files.get(places.get(one.id, ""), [])}
            for one in definition.stages
        ]
    }


def _said(stage: Stage) -> Document:
    """Returns what the definition says of a stage."""
    return {
        "id": stage.id,
        "version": stage.version,
        "type": stage.type.value,
        "timeout_seconds": stage.timeout_seconds,
        "resources": [_resource(one) for one in stage.resources],
        "dependencies": [_dependency(one) for one in stage.dependencies],
        "when": stage.is_on,
        "for_each": None
        if stage.for_each is None
        else _elements(stage.for_each, stage.elements_max),
        "until": [one.stage for one in stage.until],
    }


def _resource(needed: Resource) -> Document:
    """Returns what a stage asks for, under the keys of the definition; sizes are bytes."""
    kind = next(name for name, one in NEEDS.items() if isinstance(needed, one))
    keys = ((name, key.to) for name, key in RESOURCES[kind].items() if key.to)
    return {"type": kind, **{name: getattr(needed, field) for name, field in keys}}


def _dependency(one: Dependency) -> Document:
    if isinstance(one, ObjectDependency):
        return {"type": "buffer_object", "value": one.name, "condition": PRESENT}
    return {"type": "stage", "value": one.stage, "condition": one.condition.value}


def _elements(over: ForEach, most: int) -> Document:
    told: Document = {"max": most}
    match over:
        case ListGiven(items):
            return told | {"count": len(items), "items": list(items[:ITEMS_MAX])}
        case ListToCome(parameter):
            return told | {"parameter": parameter}
        case ListReturned(stage, output):
            return told | {"stage": stage, "output": output}
        case SameElements(stage):
            return told | {"stage": stage}


def _made_of(stage: Stage, seen: Validation, request: Values) -> Document:
    """Returns what the files of a stage say: what is executed, what that needs, and values."""
    source, rendered = seen.parameters, seen.rendered.get(stage.id)
    folder = None if source is None else source.folders.get(stage.id)
    allow: list[str] = []
    newer: tuple[str, ...] = ()
    needed: list[str] = []
    if rendered is not None:
        runner = runner_for(rendered.document, is_for_swarm=stage.is_for_swarm)
        swarm = runner == SWARM
        needed = must_exist(rendered, stage.id, runner)
        allow = asked_of_host(rendered.document, stage.id, is_for_swarm=swarm)
        newer = compose_2_keys(rendered.document, rendered.newer, is_for_swarm=swarm)
    told: Document = {
        "executes": None,
        "allow": allow,
        "compose_2": list(newer),
        "externals": needed,
        "parameters": [],
        "outputs": [],
    }
    if source is None or folder is None:
        return told
    executed = folder.compose or folder.command or folder.script
    return told | {
        "executes": None if executed is None else executed.path,
        "parameters": list(_parameters(stage, folder, source, request)),
        "outputs": list(folder.outputs),
    }


def _parameters(
    stage: Stage, folder: StageFolder, source: ParameterSource, request: Values
) -> Iterator[Document]:
    values = source.values_for(StagePart(stage=stage), request)
    for name in chain(folder.defaults, folder.required):
        told: Document = {
            "name": name,
            "required": name in values.missing,
            "provided_by": values.to_come.get(name),
        }
        yield told | ({"value": values.known[name]} if name in values.known else {})


# The files of stages, as text where they are text.


def _files_by_folder(
    kept: StoredDefinition, folders: frozenset[str]
) -> Mapping[str, list[Document]]:
    """Returns the files below each of these folders, as JSON."""
    found: dict[str, list[Document]] = {}
    left = TEXTS_BYTES_MAX
    for file in kept.files:
        folder = file.path.rpartition("/")[0]
        while folder and folder not in folders:
            folder = folder.rpartition("/")[0]
        if folder:
            text = _text_of(file) if len(file.content) <= left else None
            left -= len(file.content) if text is not None else 0
            told = {"path": file.path, "size": len(file.content), "text": text}
            found.setdefault(folder, []).append(told | {"executable": file.executable})
    return found


def _text_of(file: StoredFile) -> str | None:
    """Returns the text of a file; None if it is none, or too long."""
    if len(file.content) > FILE_TEXT_BYTES_MAX or b"\0" in file.content:
        return None
    try:
        return file.content.decode()
    except UnicodeDecodeError:
        return None


# What a stage would execute.


def rendered_document(stage: RenderedStage) -> Document:
    """Returns a rendered stage as JSON.

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
