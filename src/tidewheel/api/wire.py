"""Turns the things of the API into JSON and back: one rule for each type of a field.

A thing is a frozen dataclass, of `api` or of the core. Its fields, in their order, are the keys
of its JSON; nothing else lists them. The rules by which JSON differs from the fields:

* an instant is a text, ISO 8601 in UTC; a status or a signal is its word;
* a set is a sorted list;
* JSON that is stored as text stands as the value itself, letter by letter. Where the value
  cannot say that (null, or space around it), the text stands beside it, as `spec_text`;
* what belongs to a part of a thing stands beside the thing's own keys (`FLAT`): the host of a
  worker's process is the worker's `host`;
* `NAMES` has the keys that are no good names in Python, `HIDDEN` what nobody outside is told.

`write` makes what msgspec encodes, `document` the plain dictionary for `--json`, `read` the
thing from a server's answer, `out_type` and `answer` the types that the OpenAPI document shows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache, lru_cache
from operator import attrgetter
from types import UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET

from tidewheel.api import tasks
from tidewheel.core.queue.access import AuditEntry, Identity, TokenView
from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.requests import Cancelled, Claimed, HeldLease
from tidewheel.core.queue.resources import NO_RESOURCES, FlavouredNodes, Resources
from tidewheel.core.queue.retry import Exponential, FixedDelays, RetryPolicy
from tidewheel.core.queue.status import Status
from tidewheel.core.queue.task import Instant, TaskError
from tidewheel.exact_json import decode_stored
from tidewheel.lazy_dataclasses import NamedTuple, maker
from tidewheel.quantities import show_instant

Kind = TypeVar("Kind")
Fields = dict[str, msgspec.Raw]
Document = dict[str, Any]

NULL = b"null"
_NULL = msgspec.Raw(NULL)
# Fields that hold JSON as text, with their keys.
JSON_FIELDS = {
    **{"spec_text": "spec", "spec": "spec", "metrics": "metrics", "args": "args"},
    **dict.fromkeys(("environment_text", "environment"), "environment"),
    "values_text": "values",
}
EXACT = frozenset({"spec", "metrics"})  # of these, with their texts where that is needed
BESIDE = frozenset(f"{key}_text" for key in EXACT)
NAMES = {"from_status": "from", "to_status": "to"}
FLAT = frozenset({"settings", "process", "abilities", "sample", "grant"})
HIDDEN = frozenset({"digest", "idle_nodes"})
# Of a queue, the tasks that have not ended are counted, be there any or not.
_COUNTED = (Status.WAITING, Status.READY, Status.RUNNING, Status.CANCELLING)

# What a type is called in the OpenAPI document, and what that says of it.
_SHOWN: dict[type, tuple[str, str]] = {
    tasks.Task: ("TaskOut", "A task with every field; times are ISO 8601 in UTC."),
    tasks.HistoryEntry: (
        "HistoryOut",
        "One step of a task's life; ``signal`` is null for the creation.",
    ),
    tasks.AttemptView: ("AttemptOut", "An attempt at a task: its times, and how it ended."),
    tasks.OutputView: (
        "OutputOut",
        "A message of a job; ``output`` is the output that it announces.",
    ),
    tasks.UsageView: ("UsageOut", "The resources that an attempt used at one moment."),
    tasks.EdgeView: ("EdgeOut", "A dependency between two tasks."),
    tasks.Resubmitted: (
        "ResubmittedTaskOut",
        "The result of submitting a task again: ``id`` is the id of the new task.",
    ),
    tasks.InputView: ("InputOut", "The values of a task that this task needs."),
    tasks.QueueView: ("QueueOut", "The settings of a queue, and how many tasks it has."),
    tasks.WorkerView: ("WorkerOut", "A worker, and the tasks that it holds."),
    TokenView: ("TokenOut", "A stored token; the secret itself is not stored."),
    Identity: ("IdentityOut", "A person who signed in, and the person's groups at that time."),
    AuditEntry: ("AuditEntryOut", "An entry of the audit as it is exported."),
    Limit: (
        "LimitOut",
        'A limit of a queue. Its key is "" for the whole queue, and "*" for each limit key of '
        "tasks that has no limit of its own.",
    ),
    Resources: ("ResourcesOut", "The resources that a task asks for, or a worker offers."),
    FlavouredNodes: (
        "FlavourOut",
        "Nodes of one flavour. ``idle``, for a worker: how many of them have no task; for a "
        "task: how many of them it does not share with other tasks.",
    ),
    TaskError: ("ErrorOut", "Why a task failed."),
    Cancelled: (
        "CancelledOut",
        "The answer to one request to cancel; repeating the request changes nothing.",
    ),
    Claimed: (
        "ClaimedOut",
        "A task handed to a worker, with everything that the worker needs; every report has to "
        "name ``attempt``.",
    ),
    HeldLease: ("HeldOut", "A lease, and the process that holds it."),
}


class Out(msgspec.Struct):
    """Is the base of the types of everything that the server answers."""


# From things to JSON.


def write(value: Any) -> Any:  # noqa: ANN401 - any thing, and lists and objects of them
    """Returns what msgspec encodes as the JSON of a thing, or of lists and objects of them."""
    kind: Any = type(value)
    if value is NO_RESOURCES:  # as of most tasks
        return _no_resources()
    if kind in _SHOWN:
        return _writer(kind)(value)
    if isinstance(value, dict):
        return {name: write(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [write(one) for one in value]
    return value


def _write_all(values: Iterable[Any]) -> list[Any]:
    return [*map(write, values)]


@cache
def _no_resources() -> Out:
    return _writer(Resources)(NO_RESOURCES)


def document(value: Any) -> Document:  # noqa: ANN401 - any thing
    """Returns the JSON of a thing as a dictionary; its JSON texts are decoded."""
    return _plain_keys(msgspec.structs.asdict(write(value)))


def json_value(text: str | None) -> msgspec.Raw:
    """Returns stored JSON unchanged, to be put into an answer; None becomes null."""
    return _NULL if text is None else msgspec.Raw(text.encode())


@cache
def _writer(kind: type) -> Callable[[Any], Out]:
    """Returns a function that makes the JSON of a thing of this type."""
    return cast("Callable[[Any], Out]", maker(out_type(kind), _made_keys(kind, ())))


def _made_keys(kind: Any, above: tuple[str, ...]) -> Iterator[tuple[str, Any, Any, bool]]:  # noqa: ANN401 - any type
    """Yields each key of a thing: where its value is, and how that is converted."""
    for field in _form(kind):
        place = (*above, field.name)
        if field.part is not None:
            yield from _made_keys(field.part, place)
        for key, convert, takes_none in field.keys:
            yield key, (place,), convert, takes_none


def _plain_keys(told: Document) -> Document:
    """Returns a document with the keys that JSON has, without the texts beside JSON values."""
    return {
        NAMES.get(name, name): _plain(one) for name, one in told.items() if name not in BESIDE
    }


def _plain(value: Any) -> Any:  # noqa: ANN401 - what `_written` made
    if isinstance(value, msgspec.Raw):
        return decode_stored(bytes(value).decode())
    if isinstance(value, msgspec.Struct):
        return _plain_keys(msgspec.structs.asdict(value))
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value


# The types that the OpenAPI document shows.


@cache
def out_type(kind: type) -> type[Out]:
    """Returns the type of a thing's JSON, as the OpenAPI document shows it."""
    return _struct(*_SHOWN[kind], [one for field in _form(kind) for one in field.shown])


def answer(name: str, says: str | None = None, /, **parts: object) -> type[Out]:
    """Returns the type of an answer with these parts, which may be things or lists of them.

    A pair is a type and the default of a part that may be missing.
    """
    return _struct(
        name,
        says,
        [
            (part, _shown(kind[0]), *kind[1:])
            if isinstance(kind, tuple)
            else (part, _shown(kind))
            for part, kind in parts.items()
        ],
    )


def part_type(name: str, says: str, kind: type) -> type[Out]:
    """Returns the type of a thing's JSON in which every key may be missing; keys that hold raw
    JSON are not part of it."""
    shown = [
        (field.encode_name, field.type | msgspec.UnsetType, UNSET)
        for field in msgspec.structs.fields(out_type(kind))
        if field.type is not msgspec.Raw
    ]
    return _struct(name, says, shown)


def _struct(name: str, says: str | None, shown: list[Any]) -> type[Out]:
    namespace = {} if says is None else {"__doc__": says}
    made = msgspec.defstruct(
        name, shown, bases=(Out,), namespace=namespace, rename=NAMES.get, kw_only=True
    )
    return cast("type[Out]", made)


def _shown(hint: Any) -> Any:  # noqa: ANN401, PLR0911 - any type, a line for each
    """Returns the type that a field of this type has in JSON."""
    if hint is Instant:
        return str | None
    if hint == RetryPolicy:
        return dict[str, float | list[float]]
    if isinstance(hint, type) and hint in _SHOWN:
        return out_type(hint)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return str
    origin, given = get_origin(hint), get_args(hint)
    if origin in (tuple, list, frozenset):
        return list[_shown(given[0])]  # type: ignore[misc]
    if origin is dict:
        return dict[_shown(given[0]), _shown(given[1])]  # type: ignore[misc]
    if origin in (Union, UnionType):
        return Union[tuple(_shown(one) for one in given)]  # noqa: UP007 - of types that were made
    return getattr(hint, "__supertype__", hint)


# How each field is written.


class _Key(NamedTuple):
    """Is a key of JSON, and how the value of a field is converted to its own."""

    key: str
    convert: Callable[[Any], Any] | None = None  # without this the value is that of the key
    takes_none: bool = False  # else None stays None


class _Field(NamedTuple):
    """Describes a field of a thing: the keys and types that it has in JSON."""

    name: str
    shown: list[Any]
    keys: tuple[_Key, ...] = ()
    part: Any = None  # the type of a value whose keys stand beside the thing's own


@cache
def _form(kind: type) -> tuple[_Field, ...]:
    hints = get_type_hints(kind)
    return tuple(
        _field(field.name, hints[field.name])
        for field in fields(kind)
        if field.name not in HIDDEN
    )


def _field(name: str, hint: Any) -> _Field:  # noqa: ANN401 - any type
    if name in FLAT:
        inner = [one for field in _form(hint) for one in field.shown]
        return _Field(name, inner, part=hint)
    if name in JSON_FIELDS:
        return _json_field(name)
    return _Field(name, [(name, _shown(hint))], (_Key(name, _converter(name, hint)),))


def _json_field(name: str) -> _Field:
    key = JSON_FIELDS[name]
    if key not in EXACT:
        told = _Key(key, json_value, takes_none=key != name)
        return _Field(name, [(key, msgspec.Raw)], (told,))
    beside = f"{key}_text"
    both = [(key, msgspec.Raw), (beside, str | msgspec.UnsetType, UNSET)]
    keys = _Key(key, json_value, takes_none=True), _Key(beside, _text_beside, takes_none=True)
    return _Field(name, both, keys)


def _text_beside(text: str | None) -> str | msgspec.UnsetType:
    """Returns the exact text of a JSON value if the value does not preserve that."""
    return UNSET if text is None or text == text.strip() != "null" else text


def _converter(  # noqa: PLR0911 - a line for each type
    name: str,
    hint: Any,  # noqa: ANN401 - any type
) -> Callable[[Any], Any] | None:
    """Returns the function that writes a value of this key; None: the value stays as it is."""
    if name == "counts":
        return lambda counts: {one.value: counts.get(one, 0) for one in _COUNTED}
    if hint == RetryPolicy:
        return _retry_out
    parts = {hint} if get_origin(hint) not in (Union, UnionType) else {*get_args(hint)}
    if Instant in parts:
        return _instant_text
    if any(isinstance(one, type) and issubclass(one, StrEnum) for one in parts):
        return attrgetter("_value_")  # `value` is found by a search
    if any(get_origin(one) is frozenset for one in parts):
        return sorted
    if any(get_origin(one) is tuple for one in parts):
        return _write_all
    if parts & _SHOWN.keys():
        return write
    return None


@lru_cache(maxsize=1024)  # a task was created, made ready and changed at one time, or two
def _instant_text(instant: Instant) -> str:
    """Returns what ``show_instant`` does, in a third of the time."""
    quoted = _encoder.encode(datetime.fromtimestamp(instant, UTC))
    return quoted[1:-1].decode()


_encoder = msgspec.json.Encoder()


def time_text(instant: Instant | None) -> str | None:
    """Returns an instant as ISO 8601 in UTC; None stays None."""
    return None if instant is None else show_instant(instant)


@lru_cache(maxsize=1024)  # there are few different ones, and every task has one
def _retry_out(policy: RetryPolicy) -> Document:
    if isinstance(policy, FixedDelays):
        return {"delays": list(policy.seconds)}
    return dict(zip(_BACKOFF, _backoff(policy), strict=True))


_BACKOFF = tuple(field.name for field in fields(Exponential))
_backoff = attrgetter(*_BACKOFF)


# From JSON to things.


def read(kind: type[Kind], given: Fields) -> Kind:
    """Returns the thing that JSON describes; unknown keys are left out, as a newer server may
    say more."""
    values = {name: reader(given) for name, reader in _readers(cast("Hashable", kind))}
    return kind(**{name: value for name, value in values.items() if value is not _MISSING})


def read_all(kind: type[Kind], given: Iterable[Fields]) -> list[Kind]:
    """Returns the things that a list of JSON objects describes."""
    return [read(kind, one) for one in given]


def instant(text: str) -> Instant:
    """Returns the time, of the database's clock, that a text in ISO 8601 names."""
    return Instant(datetime.fromisoformat(text).timestamp())


_MISSING: Any = object()  # the class's default stands in for it
Reader = Callable[[Fields], Any]


@cache
def _readers(kind: type) -> tuple[tuple[str, Reader], ...]:
    hints = get_type_hints(kind)
    return tuple((field.name, _reader(field.name, hints[field.name])) for field in fields(kind))


def _reader(name: str, hint: Any) -> Reader:  # noqa: ANN401 - any type
    if name in JSON_FIELDS:
        key = JSON_FIELDS[name]
        return lambda given: _json_text(key, given)
    if name == "digest":
        return lambda _: ""  # which no server shows
    if isinstance(hint, type) and is_dataclass(hint):
        return lambda given: read(hint, _fields(given[name]) if name in given else given)
    if name == "at" or name.endswith("_at"):
        decode: Callable[[msgspec.Raw], Any] = _instant
    else:
        decode = _SPECIAL.get(name) or msgspec.json.Decoder(hint).decode
    sent = NAMES.get(name, name)
    return lambda given: decode(given[sent]) if sent in given else _MISSING


def _fields(raw: msgspec.Raw) -> Fields:
    return msgspec.json.decode(raw, type=Fields)


def _json_text(key: str, given: Fields) -> Any:  # noqa: ANN401 - it may be missing
    if text := given.get(f"{key}_text"):
        return msgspec.json.decode(text, type=str)
    if key not in given:
        return _MISSING
    found = bytes(given[key])
    return None if found == NULL else found.decode()


def _instant(raw: msgspec.Raw) -> Instant | None:
    text = msgspec.json.decode(raw, type=str | None)
    return None if text is None else instant(text)


def _retry(raw: msgspec.Raw) -> RetryPolicy:
    given = msgspec.json.decode(raw, type=dict[str, Any])
    if "delays" in given:
        return FixedDelays(seconds=tuple(given["delays"]))
    return Exponential(**given)


def _limits(raw: msgspec.Raw) -> tuple[Limit, ...]:
    given = msgspec.json.decode(raw, type=list[dict[str, Any]])
    return tuple(Limit(**{k: v for k, v in one.items() if v is not None}) for one in given)


def _counts(raw: msgspec.Raw) -> dict[Status, int]:
    given = msgspec.json.decode(raw, type=dict[Status, int])
    return {status: count for status, count in given.items() if count}


_SPECIAL: dict[str, Callable[[msgspec.Raw], Any]] = {
    "retry": _retry,
    "limits": _limits,
    "counts": _counts,
    "error": lambda raw: None if bytes(raw) == NULL else read(TaskError, _fields(raw)),
    "errors": lambda raw: tuple(
        read_all(TaskError, msgspec.json.decode(raw, type=list[Fields]))
    ),
}
