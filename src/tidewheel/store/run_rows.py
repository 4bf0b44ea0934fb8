"""Converts rows of runs, definitions, commands and happenings to core values and back."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, fields
from typing import Any, NamedTuple

import msgspec

from tidewheel.core.operator.blocks import BlockCondition, NeedView
from tidewheel.core.operator.definition import (
    NewRun,
    RunOptions,
    StoredDefinition,
    StoredFile,
)
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
from tidewheel.store.rows import filled, row_type

Record = dict[str, Any]


# Holds one row of get_run, find_run_named, list_runs and what else finds runs.
RunRow = row_type(RunView, owner=("host", "boot_id", "pid", "process_started"))


def run_view(r: Any) -> RunView:  # noqa: ANN401 - a RunRow
    """Returns a run as people see it."""
    owner = None
    if r.host is not None:
        owner = HostProcess(
            host=r.host, boot_id=r.boot_id, pid=r.pid, started=r.process_started
        )
    return filled(
        RunView,
        r,
        options=msgspec.json.decode(r.options, type=RunOptions),
        owner=owner,
        given=None if r.given is None else msgspec.json.decode(r.given, type=RunOptions),
    )


def new_run_row(new: NewRun, name: str) -> Record:
    """Returns the row that insert_run stores; the lease of its tasks is its queue's."""
    row = {one.name: getattr(new, one.name) for one in fields(new)}
    del row["lease_seconds"]
    return row | {
        "name": name,
        "options": options_text(new.options),
        "queue": new.queue or f"run:{name}",
        "given": None if new.given is None else options_text(new.given),
        "request": new.request or None,
        "priority": new.options.priority or 0,
    }


def options_text(options: RunOptions) -> str:
    return json.dumps(asdict(options))


def definition_row(definition: StoredDefinition) -> Record:
    """Returns the row that save_definition stores; files may hold any bytes."""
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


DefinitionRow = row_type(StoredDefinition)


def stored_definition(r: Any) -> StoredDefinition:  # noqa: ANN401 - a DefinitionRow
    """Returns a definition with its files."""
    files = tuple(
        StoredFile(path, base64.b64decode(content), executable)
        for path, content, executable in json.loads(r.files)
    )
    return filled(StoredDefinition, r, files=files)


NeedRow = row_type(NeedView, aborted=())  # which the run's own status says


def need_view(r: Any) -> NeedView:  # noqa: ANN401 - a NeedRow
    """Returns a need: what a run waits for."""
    return filled(
        NeedView,
        r,
        condition=BlockCondition(r.condition),
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
    """Returns the happening, of which a scheduler is told, that a row of its inbox holds."""
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
