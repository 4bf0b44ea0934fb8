"""Writes the changes of a run as rows with a body of JSON, and reads equal changes from them.

A row of the tables ``pool``, ``memory`` and ``facts`` holds one thing whole in its body, as the
core gave it. The log of changes holds the same bodies, batch by batch, each with its kind.

Bodies name their fields and leave out what has its default. So a version that knows one field
more reads rows that lack it, and one that knows one less reads past it. Bodies of format 1 were
arrays, by position; they are read as they were, and never written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import field
from functools import lru_cache
from typing import Any, TypeVar, get_type_hints

import msgspec

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.outputs import SUCCEEDED
from tidewheel.core.sched.persistence import (
    Change,
    DropTask,
    ForgetMemory,
    ForgetStored,
    PooledTaskRow,
    PutAbsolute,
    PutChain,
    PutFlow,
    PutMemory,
    PutRun,
    PutTask,
)
from tidewheel.core.sched.pool import FlowState, RunState
from tidewheel.core.sched.task_state import (
    AtomValue,
    Flows,
    JobPhase,
    Key,
    Verdict,
    VerdictKind,
)
from tidewheel.lazy_dataclasses import NamedTuple, dataclass

FLOWS_KNOWN_MAX = 1_024  # sets of flows; nearly all tasks are in the first alone
HISTORIES_KNOWN_MAX = 1_024  # what is told of tasks besides their names
_NO_KEY = (0, "")
Record = dict[str, Any]
_encode = msgspec.json.Encoder(order="deterministic").encode

_TASKS = ("held_tasks", "missed")  # of a run's state


class _RunOfFormat1(NamedTuple):
    state: dict[str, Any]
    held_tasks: tuple[Key, ...]


def _run_body(change: PutRun) -> bytes:
    """Returns the state of a run as JSON; tasks, whose keys are tuples, become lists."""
    state = {name: getattr(change.run, name) for name in RunState.__slots__}
    return _encode(state | {name: tuple(state[name]) for name in _TASKS})


def _read_run(body: str | bytes) -> RunState:
    if body[:1] in ("[", b"["):
        state, held_tasks = msgspec.json.decode(body, type=_RunOfFormat1)
        state["held_tasks"] = held_tasks
    else:
        state = msgspec.json.decode(body)
    tasks = {name: msgspec.convert(state.pop(name, ()), tuple[Key, ...]) for name in _TASKS}
    run: RunState = msgspec.convert(state, RunState)
    for name, keys in tasks.items():
        setattr(run, name, dict.fromkeys(keys))
    return run


Thing = TypeVar("Thing", bound=NamedTuple)


def _named(thing: type[NamedTuple], **otherwise: tuple[Any, Any]) -> type[msgspec.Struct]:
    """Returns a type with the fields of a tuple type, which JSON holds as an object.
    ``otherwise`` gives a field another (type, default); (None, None) leaves it out."""
    hints = get_type_hints(thing)
    defaults: dict[str, Any] = thing._field_defaults
    fields: list[Any] = []
    for name in thing._fields:
        kind, default = hints[name], defaults.get(name, msgspec.NODEFAULT)
        kind, default = otherwise.get(name, (kind, default))
        if kind is not None:
            fields.append((name, kind, default))
    return msgspec.defstruct(thing.__name__, fields, omit_defaults=True, frozen=True)


# Nearly all that is ever remembered is a task that finished because it succeeded.
_Verdict = _named(
    Verdict,
    kind=(VerdictKind, VerdictKind.FINISHED),
    death=(AtomValue, AtomValue.NOT_TAKEN),
    ended=(str, SUCCEEDED),
)
_Task = _named(PooledTaskRow, bits=(None, None))
_Memory = _named(
    PutMemory,
    made=(tuple[tuple[str, Flows], ...], ()),
    verdicts=(tuple[tuple[int, _Verdict], ...], ()),  # type: ignore[valid-type]
    submits=(int, 0),
)
_Chain, _Absolute, _Stored = _named(PutChain), _named(PutAbsolute), _named(ForgetStored)


def _task_body(row: PooledTaskRow) -> bytes:
    return _encode(_Task(*row[:-1]))


def _memory_body(memory: PutMemory) -> bytes:
    return b'{"key":%b%b' % (_encode(memory[0]), _behind_key(memory[1:]))


@lru_cache(maxsize=HISTORIES_KNOWN_MAX)
def _behind_key(history: tuple[Any, ...]) -> bytes:
    """Returns what a body of `memory` has behind its key, which nearly all tasks have alike."""
    spawned, made, found, submits, held_back = history
    verdicts = tuple((flow, _Verdict(*verdict)) for flow, verdict in found)
    body = _encode(_Memory(_NO_KEY, spawned, made, verdicts, submits, held_back))
    return body.removeprefix(b'{"key":%b' % _encode(_NO_KEY))


class _TaskOfFormat1(NamedTuple):
    point: Point
    name: str
    flows: Flows
    stage: JobPhase
    true: int  # bits of the compiler's numbering: `core.sched.old_numbering` knows it
    missing: int
    waits: tuple[str, ...]
    outputs: tuple[str, ...]
    by_hand: tuple[str, ...]
    released: bool
    held: bool
    blocked: bool
    manual: bool
    satisfied_by_hand: bool
    flow_wait: bool
    ended: str
    submit: int
    try_number: int
    submit_try: int
    order: int


def _reader(thing: type[Thing], body: type[msgspec.Struct]) -> Callable[[str | bytes], Thing]:
    """Returns a function that reads a body of either format. A body of format 1 is an array,
    with the fields of the tuple in their order."""
    named, positional = msgspec.json.Decoder(body), msgspec.json.Decoder(thing)

    def read(text: str | bytes) -> Thing:
        if text[:1] in ("[", b"["):
            return positional.decode(text)
        return thing(*msgspec.structs.astuple(named.decode(text)))

    return read


_named_task = msgspec.json.Decoder(_Task)
_task_of_format_1 = msgspec.json.Decoder(_TaskOfFormat1)


def _read_task(text: str | bytes) -> PooledTaskRow:
    if text[:1] not in ("[", b"["):
        return PooledTaskRow(*msgspec.structs.astuple(_named_task.decode(text)))
    old = _task_of_format_1.decode(text)
    return PooledTaskRow(
        **old._asdict() | {"true": (), "missing": old.missing > 0, "bits": old.true}
    )


_any_memory = _reader(PutMemory, _Memory)


def memory_of(text: str | bytes) -> PutMemory:
    """Returns what a body of the table ``memory`` says of a task."""
    memory = _any_memory(text)
    read = ((flow, _verdict(verdict)) for flow, verdict in memory.verdicts)
    return memory._replace(verdicts=tuple(read))


def _verdict(found: Verdict | msgspec.Struct) -> Verdict:
    return found if isinstance(found, Verdict) else Verdict(*msgspec.structs.astuple(found))


_read_flow: Callable[[str | bytes], FlowState] = msgspec.json.Decoder(FlowState).decode
_read_key: Callable[[str | bytes], Key] = msgspec.json.Decoder(tuple[Point, str]).decode


class _Kind(NamedTuple):
    name: str
    body: Callable[[Any], bytes]  # of the thing that a change is about
    read: Callable[[str | bytes], Change]


_KINDS: dict[type, _Kind] = {
    PutTask: _Kind(
        "task",
        lambda change: _task_body(change.row),
        lambda body: PutTask(_read_task(body)),
    ),
    DropTask: _Kind(
        "drop", lambda change: _encode(change.key), lambda body: DropTask(_read_key(body))
    ),
    PutMemory: _Kind("memory", _memory_body, memory_of),
    ForgetMemory: _Kind(
        "forget",
        lambda change: _memory_body(change.row),
        lambda body: ForgetMemory(memory_of(body)),
    ),
    ForgetStored: _Kind(
        "forget stored",
        lambda change: _encode(_Stored(*change)),
        _reader(ForgetStored, _Stored),
    ),
    PutChain: _Kind(
        "chain", lambda change: _encode(_Chain(*change)), _reader(PutChain, _Chain)
    ),
    PutAbsolute: _Kind(
        "absolute", lambda change: _encode(_Absolute(*change)), _reader(PutAbsolute, _Absolute)
    ),
    PutFlow: _Kind(
        "flow", lambda change: _encode(change.flow), lambda body: PutFlow(_read_flow(body))
    ),
    PutRun: _Kind("run", _run_body, lambda body: PutRun(_read_run(body))),
}
_READERS = {kind.name: kind.read for kind in _KINDS.values()}


def read_change(kind: str, body: str | bytes) -> Change:
    """Returns the change of this kind that a body holds.

    Bodies are found in the log of changes, and in the rows of pool, memory and facts.
    """
    return _READERS[kind](body)


def read_changes(text: str) -> list[Change]:
    """Returns what a batch changed, from the JSON that ``run_changes`` shows."""
    pairs = msgspec.json.decode(text, type=list[tuple[str, msgspec.Raw]])
    return [read_change(kind, bytes(body)) for kind, body in pairs]


Facts = dict[tuple[str, str], str | None]  # bodies by kind and key; None: it is gone


@dataclass(slots=True)
class ChangedRows:
    """Holds the rows of a batch by table.

    Each thing has only its last row, because one statement may touch a row only once.
    """

    pool: dict[Key, Record | None] = field(default_factory=dict)  # None: it left
    memory: dict[Key, Record] = field(default_factory=dict)
    # What is forgotten as it is stored, before rows of `memory` are written.
    forgotten: list[Record] = field(default_factory=list)
    facts: Facts = field(default_factory=dict)
    text: str = "[]"  # for the log of changes


@lru_cache(maxsize=FLOWS_KNOWN_MAX)
def _flows_text(flows: Flows) -> str:
    return _encode(flows).decode()


def changed_rows(changes: Iterable[Change]) -> ChangedRows:
    """Returns the rows that hold a batch's changes, and the text of all of them for the log."""
    rows = ChangedRows()
    log: list[str] = []
    for change in changes:
        # Tasks and memories by type, since there are thousands; patterns would cost more.
        if type(change) is PutMemory:
            body = _memory_body(change).decode()
            log.append(f'["memory",{body}]')
            rows.memory[change[0]] = _memory_record(change, body, forgotten=False)
            continue
        if type(change) is ForgetMemory:
            body = _memory_body(change[0]).decode()
            log.append(f'["forget",{body}]')
            rows.memory[change[0][0]] = _memory_record(change[0], body, forgotten=True)
            continue
        if type(change) is PutTask:
            (row,) = change
            body = _task_body(row).decode()
            log.append(f'["task",{body}]')
            rows.pool[row[:2]] = _task_record(row, body)
            continue
        kind = _KINDS[type(change)]
        body = kind.body(change).decode()
        log.append(f'["{kind.name}",{body}]')
        if type(change) is DropTask:
            rows.pool[change[0]] = None
        elif type(change) is ForgetStored:
            _forget(rows, change)
        else:
            _add_fact(rows.facts, kind.name, change, body)
    rows.text = f"[{','.join(log)}]"
    return rows


def _forget(rows: ChangedRows, change: ForgetStored) -> None:
    point, names = change
    for name in names:
        if (known := rows.memory.get((point, name))) is not None:
            known["forgotten"] = True
    rows.forgotten += [{"point": point, "name": name} for name in names]


def _task_record(row: PooledTaskRow, body: str) -> Record:
    point, name, flows, stage, *_ = row
    return {
        "point": point,
        "name": name,
        "stage": int(stage),
        "submit": row.submit,
        "flows": _flows_text(flows),
        "body": body,
    }


def _memory_record(memory: PutMemory, body: str, *, forgotten: bool) -> Record:
    (point, name), _, _, _, submits, _ = memory
    return {
        "point": point,
        "name": name,
        "submits": submits,
        "forgotten": forgotten,
        "body": body,
    }


def _add_fact(facts: Facts, kind: str, change: Change, body: str) -> None:
    match change:
        case PutChain():
            chain = json.dumps([change.name, change.flow])
            facts[kind, chain] = None if change.point is None else body
        case PutAbsolute(absolute, values):
            facts[kind, json.dumps(absolute)] = body if values else None
        case PutFlow(flow_state):
            facts[kind, str(flow_state.number)] = body
        case _:
            assert isinstance(change, PutRun), change
            facts[kind, ""] = body
