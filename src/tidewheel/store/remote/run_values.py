"""Runs, definitions and logs on their way to a server and back."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any
from urllib.parse import unquote

import msgspec

from tidewheel.api.wire import instant
from tidewheel.core.operator.definition import RunOptions, StoredDefinition, StoredFile
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.requests import HostProcess
from tidewheel.core.queue.task import Instant
from tidewheel.errors import Refused
from tidewheel.ports.runs import Document, LogPart, LogPlace
from tidewheel.store.remote.address import Query
from tidewheel.store.remote.transport import Response

NOT_TOLD = Instant(float("inf"))  # until when a run is held; whether it is, is told
_NAMES = {"count": "limit", "window": "n"}  # as a server calls them


class SentFile(msgspec.Struct):
    """A file of a definition, in base64."""

    path: str
    content: str
    executable: bool


class SentDefinition(msgspec.Struct):
    """What a run runs."""

    digest: str
    workflow: str
    kind: str
    text: str
    variables: list[str]
    files: list[SentFile]


def query_of(arguments: Mapping[str, object]) -> Query:
    """The arguments of a view as parameters of a URL; what says nothing is left out."""
    found: dict[str, str | int | float | bool | None] = {}
    for name, value in arguments.items():
        if name == "ids":
            value = _joined(value)  # noqa: PLW2901 - the same in another form
        if isinstance(value, str | int | float) and value is not False and value != "":
            found[_NAMES.get(name, name)] = value
    return found


def _joined(ids: object) -> str:
    if not isinstance(ids, list | tuple) or not all(isinstance(one, str) for one in ids):
        raise Refused(f"ids must be a list of texts, not {json.dumps(ids)}")
    if any("," in one for one in ids):
        raise Refused("an id has no comma in it; name several as several words")
    return ",".join(ids)


def run_view(facts: Mapping[str, Any]) -> RunView:
    """From what a server tells of a run."""
    options = facts.get("options") or {}
    scheduler = facts["scheduler"]
    return RunView(
        number=facts["number"],
        name=facts["name"],
        workflow=facts["workflow"],
        definition=facts["definition"],
        options=msgspec.convert(options, RunOptions),
        folder=facts["folder"],
        queue=facts["queue"],
        status=facts["status"],
        reason=facts["reason"],
        epoch=0,
        batch=0,
        owner=None
        if scheduler is None
        else HostProcess(host=scheduler["host"], boot_id="", pid=scheduler["pid"], started=0.0),
        deadline_at=NOT_TOLD if facts["driven"] else None,
        created_at=instant(facts["created_at"]),
        updated_at=instant(facts["updated_at"]),
        ended_at=instant(facts["ended_at"]) if facts["ended_at"] else None,
        given=RunOptions(mode="") if facts.get("offered") else None,
    )


def options_body(options: RunOptions) -> Document:
    """What differs from nothing said."""
    said = asdict(options)
    said["stall_timeout"] = said.pop("stall_timeout_seconds")
    unsaid = asdict(RunOptions(mode="")) | {"stall_timeout": None}
    return {name: value for name, value in said.items() if value != unsaid[name]}


def definition_body(definition: StoredDefinition) -> Document:
    for one in definition.files:
        if not one.path.isprintable():  # also what is no Unicode
            raise Refused(f"the name of {one.path!r} cannot be sent; rename the file")
    return {
        "workflow": definition.workflow,
        "kind": definition.kind,
        "text": definition.text,
        "variables": json.loads(definition.variables),
        "files": [
            {
                "path": one.path,
                "content": base64.b64encode(one.content).decode(),
                "executable": one.executable,
            }
            for one in definition.files
        ],
    }


def definition_of(sent: SentDefinition) -> StoredDefinition:
    return StoredDefinition(
        digest=sent.digest,
        workflow=sent.workflow,
        kind=sent.kind,
        text=sent.text,
        variables=json.dumps(sent.variables),
        files=tuple(
            StoredFile(one.path, base64.b64decode(one.content), one.executable)
            for one in sent.files
        ),
    )


def log_part(response: Response) -> LogPart:
    """The headers say which part of which log it is."""
    said = {
        name.removeprefix("x-log-"): unquote(value)
        for name, value in response.headers.items()
        if name.startswith("x-log-")
    }
    numbers = {name: int(said[name]) for name in ("submit", "attempt") if name in said}
    return LogPart(
        LogPlace(
            said.get("id"), numbers.get("submit"), numbers.get("attempt"), said.get("path", "")
        ),
        response.body,
        int(said.get("offset", 0)),
        int(said.get("size", 0)),
        found=said.get("found") == "true",
        over=said.get("over") == "true",
    )
