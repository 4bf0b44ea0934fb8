"""Runs as rows: the scheduling core's changes as JSON and back, equal to what they were."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import msgspec

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.runs.definition import RunOptions, StoredDefinition, StoredFile
from tidewheel.core.runs.requests import (
    CommandGiven,
    Happening,
    JobOver,
    JobSaid,
    JobStarted,
)
from tidewheel.core.runs.views import CommandView, RunView, SubmissionView
from tidewheel.core.sched.pool import FlowState, RunState
from tidewheel.core.sched.records import (
    Change,
    DropTask,
    ForgetMemory,
    PutAbsolute,
    PutChain,
    PutFlow,
    PutMemory,
    PutRun,
    PutTask,
    TaskRow,
)
from tidewheel.core.sched.states import Key
from tidewheel.core.tasks.requests import HostProcess
from tidewheel.core.tasks.task import Instant, TaskId

RUN, FLOW, CHAIN, ABSOLUTE = "run", "flow", "chain", "absolute"

Record = dict[str, Any]
_encode = msgspec.json.Encoder(order="deterministic").encode


# ---- runs ----


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


# ---- what a scheduler knows ----


class _Run(NamedTuple):
    """A RunState as JSON can hold it: no keys that are tuples."""

    state: dict[str, Any]
    held_tasks: tuple[Key, ...]


_RUN_FIELDS = tuple(name for name in RunState.__slots__ if name != "held_tasks")


def _run_body(run: RunState) -> bytes:
    state = {name: getattr(run, name) for name in _RUN_FIELDS}
    return _encode(_Run(state, tuple(run.held_tasks)))


def _read_run(body: str | bytes) -> RunState:
    read = msgspec.json.decode(body, type=_Run)
    run: RunState = msgspec.convert(read.state, RunState)
    run.held_tasks = dict.fromkeys(read.held_tasks)
    return run


_read_task: Callable[[str | bytes], TaskRow] = msgspec.json.Decoder(TaskRow).decode
_read_memory: Callable[[str | bytes], PutMemory] = msgspec.json.Decoder(PutMemory).decode
_read_flow: Callable[[str | bytes], FlowState] = msgspec.json.Decoder(FlowState).decode
_read_chain: Callable[[str | bytes], PutChain] = msgspec.json.Decoder(PutChain).decode
_read_absolute: Callable[[str | bytes], PutAbsolute] = msgspec.json.Decoder(PutAbsolute).decode
_read_key: Callable[[str | bytes], Key] = msgspec.json.Decoder(tuple[Point, str]).decode


def _body(change: Change) -> tuple[str, bytes]:
    """What a change is called in the log of changes, and the thing that it is about."""
    match change:
        case PutTask(row):
            return "task", _encode(row)
        case DropTask(key):
            return "drop", _encode(key)
        case PutMemory():
            return "memory", _encode(change)
        case ForgetMemory(row):
            return "forget", _encode(row)
        case PutChain():
            return CHAIN, _encode(change)
        case PutAbsolute():
            return ABSOLUTE, _encode(change)
        case PutFlow(flow):
            return FLOW, _encode(flow)
        case PutRun(run):
            return RUN, _run_body(run)


_READERS: dict[str, Callable[[str | bytes], Change]] = {
    "task": lambda body: PutTask(_read_task(body)),
    "drop": lambda body: DropTask(_read_key(body)),
    "memory": _read_memory,
    "forget": lambda body: ForgetMemory(_read_memory(body)),
    CHAIN: _read_chain,
    ABSOLUTE: _read_absolute,
    FLOW: lambda body: PutFlow(_read_flow(body)),
    RUN: lambda body: PutRun(_read_run(body)),
}


def task_of(body: str) -> PutTask:
    """From the body of a row of the pool."""
    return PutTask(_read_task(body))


def memory_of(body: str) -> PutMemory:
    """From the body of a row of the memory."""
    return _read_memory(body)


def fact_of(kind: str, body: str) -> Change:
    """From a row of run_fact."""
    return _READERS[kind](body)


def read_changes(text: str) -> list[Change]:
    """What a batch changed, from the JSON that ``run_changes`` shows."""
    pairs = msgspec.json.decode(text, type=list[tuple[str, msgspec.Raw]])
    return [_READERS[kind](bytes(body)) for kind, body in pairs]


@dataclass(slots=True)
class ChangedRows:
    """The rows of a batch by table: the last of each thing, as one statement may touch it."""

    pool: dict[Key, Record | None] = field(default_factory=dict)  # None: it left
    memory: dict[Key, Record] = field(default_factory=dict)
    facts: dict[tuple[str, str], str | None] = field(default_factory=dict)
    text: str = "[]"  # for the log of changes


def changed_rows(changes: Iterable[Change]) -> ChangedRows:
    """Every change in its row and in the log."""
    rows = ChangedRows()
    log: list[tuple[str, msgspec.Raw]] = []
    for change in changes:
        kind, body = _body(change)
        log.append((kind, msgspec.Raw(body)))
        _put(rows, change, kind, body)
    rows.text = msgspec.json.encode(log).decode()
    return rows


def _put(rows: ChangedRows, change: Change, kind: str, body: bytes) -> None:
    match change:
        case PutTask(row):
            rows.pool[row.point, row.name] = {
                "point": row.point,
                "name": row.name,
                "stage": int(row.stage),
                "submit": row.submit,
                "flows": _encode(row.flows).decode(),
                "body": body.decode(),
            }
        case DropTask(key):
            rows.pool[key] = None
        case PutMemory():
            rows.memory[change.key] = _memory_row(change, body, forgotten=False)
        case ForgetMemory(memory):
            rows.memory[memory.key] = _memory_row(memory, body, forgotten=True)
        case PutChain(name, flow, point):
            chain = json.dumps([name, flow])
            rows.facts[kind, chain] = None if point is None else body.decode()
        case PutAbsolute(absolute):
            rows.facts[kind, json.dumps(absolute)] = body.decode()
        case PutFlow(flow_state):
            rows.facts[kind, str(flow_state.number)] = body.decode()
        case PutRun():
            rows.facts[kind, ""] = body.decode()


def _memory_row(memory: PutMemory, body: bytes, *, forgotten: bool) -> Record:
    point, name = memory.key
    return {
        "point": point,
        "name": name,
        "submits": memory.submits,
        "forgotten": forgotten,
        "body": body.decode(),
    }
