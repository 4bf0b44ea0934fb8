"""What schedulers know as rows: changes of the core as JSON and back, equal to what they were.

A row of the pool, of the memory or of a fact holds in its body all of one thing, as the core
gave it. The log of changes holds the same bodies, batch by batch, each with its kind.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from tidewheel.core.cycling.calendar import Point
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

RUN, FLOW, CHAIN, ABSOLUTE = "run", "flow", "chain", "absolute"

Record = dict[str, Any]
_encode = msgspec.json.Encoder(order="deterministic").encode


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


_KINDS: dict[type, str] = {
    PutTask: "task",
    DropTask: "drop",
    PutMemory: "memory",
    ForgetMemory: "forget",
    PutChain: CHAIN,
    PutAbsolute: ABSOLUTE,
    PutFlow: FLOW,
    PutRun: RUN,
}


def _body(change: Change) -> bytes:
    """The thing that a change is about."""
    match change:
        case PutRun(run):
            return _run_body(run)
        case PutTask(thing) | DropTask(thing) | ForgetMemory(thing) | PutFlow(thing):
            return _encode(thing)
        case _:
            return _encode(change)


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
        kind, body = _KINDS[type(change)], _body(change)
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
