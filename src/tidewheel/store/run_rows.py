"""Runs, definitions, commands and happenings as rows, and their conversion to core values."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
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
from tidewheel.core.operator.views import CommandView, RunAttempt, RunView, SubmissionView
from tidewheel.core.queue.requests import HostProcess
from tidewheel.core.queue.task import Instant, TaskId

Record = dict[str, Any]


class RunRow(NamedTuple):
    """get_run, find_run_named, list_runs, list_claimable_runs."""

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


def run_view(row: Sequence[Any]) -> RunView:
    """From a RunRow."""
    r = RunRow._make(row)
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


def stored_definition(row: Sequence[Any]) -> StoredDefinition:
    """From get_definition."""
    digest, workflow, kind, text, variables, files = row
    return StoredDefinition(
        digest=digest,
        workflow=workflow,
        kind=kind,
        text=text,
        variables=variables,
        files=tuple(
            StoredFile(path, base64.b64decode(content), executable)
            for path, content, executable in json.loads(files)
        ),
    )


def need_view(row: Sequence[Any]) -> NeedView:
    """From list_needs."""
    run, parent, condition, status, begun, going = row
    return NeedView(
        run=run,
        parent=parent,
        condition=BlockCondition(condition),
        status=status,
        begun=bool(begun),
        going=bool(going),
    )


def command_view(row: Sequence[Any]) -> CommandView:
    """From (number, run, at, who, body, answered_at, answer, refused)."""
    number, run, at, who, body, answered_at, answer, refused = row
    return CommandView(
        number=number,
        run=run,
        at=at,
        who=who,
        body=body,
        answered_at=answered_at,
        answer=answer,
        refused=refused,
    )


def submission_view(row: Sequence[Any]) -> SubmissionView:
    """From list_submissions, get_submissions."""
    names = (
        *("task_id", "seq", "status", "attempt", "submitted_at", "started_at", "ended_at"),
        *("exit_status", "error", "worker"),
    )
    return SubmissionView(**dict(zip(names, row, strict=True)))


def run_attempt(row: Sequence[Any]) -> RunAttempt:
    """From list_run_attempts, without the number of the task."""
    names = (
        *("task_id", "submitted_at", "attempt", "worker", "claimed_at", "started_at"),
        *("ended_at", "ended_by", "exit_status"),
        *("cpu_asked", "memory_asked_bytes", "gpu_asked"),
        *("memory_used_bytes", "cpu_used_percent", "gpu_used_percent"),
        "gpu_memory_used_bytes",
    )
    return RunAttempt(**dict(zip(names, row, strict=True)))


def happening(row: Sequence[Any]) -> Happening:
    """From list_events."""
    seq, at, kind, task_id, attempt, text, output, status, code, error, exit_status = row[:11]
    match kind:
        case "started":
            return JobStarted(seq, Instant(at), TaskId(task_id), attempt)
        case "said":
            return JobSaid(seq, Instant(at), TaskId(task_id), attempt, text, output)
        case "over":
            return JobOver(
                *(seq, Instant(at), TaskId(task_id), attempt),
                *(status, code, error, exit_status),
            )
        case _:
            number, who, body = row[11:]
            return CommandGiven(seq, Instant(at), number, who, body)
