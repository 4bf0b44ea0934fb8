"""Runs, definitions, commands and happenings as rows, and their conversion to core values."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict
from typing import Any, NamedTuple

import msgspec

from tidewheel.core.operator.blocks import BlockCondition, NeedView
from tidewheel.core.operator.definition import RunOptions, StoredDefinition, StoredFile
from tidewheel.core.operator.requests import (
    CommandGiven,
    Happening,
    JobOver,
    JobSaid,
    JobStarted,
)
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.requests import HostProcess
from tidewheel.core.queue.task import Instant, TaskId

Record = dict[str, Any]


class RunRow(NamedTuple):
    """Holds one row of get_run, find_run_named, list_runs and what else finds runs."""

    number: int
    name: str
    workflow: str
    definition: str
    options: str
    folder: str
    queue: str
    status: str
    reason: str
    epoch: int
    batch: int
    host: str | None
    boot_id: str | None
    pid: int | None
    process_started: float | None
    deadline_at: float | None
    created_at: float
    updated_at: float
    ended_at: float | None
    given: str | None


def run_view(r: RunRow) -> RunView:
    """Returns a run as people see it."""
    owner = None
    if r.host is not None:
        assert r.boot_id is not None and r.pid is not None and r.process_started is not None
        owner = HostProcess(
            host=r.host, boot_id=r.boot_id, pid=r.pid, started=r.process_started
        )
    return RunView(
        number=r.number,
        name=r.name,
        workflow=r.workflow,
        definition=r.definition,
        options=msgspec.json.decode(r.options, type=RunOptions),
        folder=r.folder,
        queue=r.queue,
        status=r.status,
        reason=r.reason,
        epoch=r.epoch,
        batch=r.batch,
        owner=owner,
        deadline_at=None if r.deadline_at is None else Instant(r.deadline_at),
        created_at=Instant(r.created_at),
        updated_at=Instant(r.updated_at),
        ended_at=None if r.ended_at is None else Instant(r.ended_at),
        given=None if r.given is None else msgspec.json.decode(r.given, type=RunOptions),
    )


def options_text(options: RunOptions) -> str:
    return json.dumps(asdict(options))


def definition_row(definition: StoredDefinition) -> Record:
    """The row that save_definition stores; files may hold any bytes."""
    files = [
        (one.path, base64.b64encode(one.content).decode(), one.executable)
        for one in definition.files
    ]
    return {
        "digest": definition.digest,
        "workflow": definition.workflow,
        "kind": definition.kind,
        "text": definition.text,
        "variables": definition.variables,
        "files": json.dumps(files),  # unlike msgspec: a path may be no Unicode
    }


class DefinitionRow(NamedTuple):
    """Holds one row of get_definition."""

    digest: str
    workflow: str
    kind: str
    text: str
    variables: str
    files: str


def stored_definition(r: DefinitionRow) -> StoredDefinition:
    """A definition with its files."""
    return StoredDefinition(
        digest=r.digest,
        workflow=r.workflow,
        kind=r.kind,
        text=r.text,
        variables=r.variables,
        files=tuple(
            StoredFile(path, base64.b64decode(content), executable)
            for path, content, executable in json.loads(r.files)
        ),
    )


class NeedRow(NamedTuple):
    """Holds one row of list_needs."""

    run: int
    parent: str
    condition: str
    status: str
    begun: bool
    going: bool


def need_view(r: NeedRow) -> NeedView:
    """Returns a need: what a run waits for."""
    return NeedView(
        run=r.run,
        parent=r.parent,
        condition=BlockCondition(r.condition),
        status=r.status,
        begun=bool(r.begun),
        going=bool(r.going),
    )


class InboxRow(NamedTuple):
    """Holds one row of list_events."""

    seq: int
    at: Instant
    kind: str
    task_id: TaskId
    attempt: int
    text: str
    output: str | None
    status: str
    error_code: str | None
    error: str | None
    exit_status: int | None
    command: int
    who: str
    body: str


def happening(r: InboxRow) -> Happening:
    """One thing that a scheduler is told of its run."""
    match r.kind:
        case "started":
            return JobStarted(r.seq, r.at, r.task_id, r.attempt)
        case "said":
            return JobSaid(r.seq, r.at, r.task_id, r.attempt, r.text, r.output)
        case "over":
            return JobOver(
                *(r.seq, r.at, r.task_id, r.attempt),
                *(r.status, r.error_code, r.error, r.exit_status),
            )
        case _:
            return CommandGiven(r.seq, r.at, r.command, r.who, r.body)
