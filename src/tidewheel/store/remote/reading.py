"""From what a server answers to the values of the core, by the names of their fields.

A value has the fields that its class says. Most are read as their types say; those that look
otherwise in JSON are listed here. What belongs to a value within a value may stand beside it,
as the host of a worker's process does beside its name.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import Any, TypeVar, cast, get_type_hints

import msgspec

from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.retry import Exponential, FixedDelays, RetryPolicy
from tidewheel.core.queue.status import Status
from tidewheel.core.queue.task import Instant, TaskError

Kind = TypeVar("Kind")
Fields = dict[str, msgspec.Raw]

NULL = b"null"
JSON_FIELDS = frozenset({"spec", "metrics", "args"})
# As a server calls them, where that is not the name of the field.
NAMES = {"from_status": "from", "to_status": "to"}


def read(kind: type[Kind], given: Fields) -> Kind:
    """One value; unknown fields are left out, so that a newer server can say more."""
    values = {name: reader(given) for name, reader in _readers(cast("Hashable", kind))}
    return kind(**{name: value for name, value in values.items() if value is not _MISSING})


def read_all(kind: type[Kind], given: Iterable[Fields]) -> list[Kind]:
    """A list of them."""
    return [read(kind, one) for one in given]


def instant(text: str) -> Instant:
    """A time of the database's clock."""
    return Instant(datetime.fromisoformat(text).timestamp())


_MISSING: Any = object()  # the class's default stands in for it
Reader = Callable[[Fields], Any]


@cache
def _readers(kind: type) -> tuple[tuple[str, Reader], ...]:
    hints = get_type_hints(kind)
    return tuple((field.name, _reader(field.name, hints[field.name])) for field in fields(kind))


def _reader(name: str, hint: Any) -> Reader:  # noqa: ANN401 - any type
    if name in JSON_FIELDS:
        return lambda given: _json_text(name, given)
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


def _json_text(name: str, given: Fields) -> Any:  # noqa: ANN401 - it may be missing
    """Letter by letter; where the JSON alone does not say it, its text stands beside it."""
    if text := given.get(f"{name}_text"):
        return msgspec.json.decode(text, type=str)
    if name not in given:
        return _MISSING
    found = bytes(given[name])
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


def _error(raw: msgspec.Raw) -> TaskError | None:
    return None if bytes(raw) == NULL else read(TaskError, _fields(raw))


def _errors(raw: msgspec.Raw) -> tuple[TaskError, ...]:
    return tuple(read_all(TaskError, msgspec.json.decode(raw, type=list[Fields])))


_SPECIAL: dict[str, Callable[[msgspec.Raw], Any]] = {
    "retry": _retry,
    "limits": _limits,
    "counts": _counts,
    "error": _error,
    "errors": _errors,
}
