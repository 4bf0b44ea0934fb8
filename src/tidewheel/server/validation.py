"""Reads what callers send: unknown fields are refused, and every finding is named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from enum import Enum
from functools import cache
from typing import Any, TypeVar, get_args

import msgspec

from tidewheel.api import wire
from tidewheel.exact_json import check_numbers
from tidewheel.server.errors import BadBody, BadRequest

Form = TypeVar("Form", bound=msgspec.Struct)
Duration = int | float | str  # seconds, or a text such as "10m"
Size = int | str  # bytes, or a text such as "2GiB"
Out = wire.Out
FINDINGS_MAX = 20  # of one body: nobody reads more, and to word them takes time


class In(msgspec.Struct, forbid_unknown_fields=True):
    """Is the base of the types of everything that callers send; unknown fields are refused."""


def read(raw: bytes, form: type[Form], where: str = "") -> Form:
    """Returns the value of a JSON text; raises BadRequest with everything that is wrong."""
    check_body(raw)
    try:
        return _read(raw, form, where)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _no_json(raw, error) from None


def check_body(raw: bytes) -> None:
    """Raises BadBody if the body holds a number that would take too long to read."""
    try:
        check_numbers(raw)
    except ValueError as error:
        raise BadBody(f"the body is not accepted: {error}") from None


def _no_json(raw: bytes, error: Exception) -> BadBody:
    if not raw.strip():
        return BadBody("the body is empty; send JSON")
    return BadBody(f"the body is not valid JSON: {error}")


def _read(raw: bytes, form: type[Form], where: str) -> Form:
    try:
        return msgspec.json.decode(raw, type=form)
    except msgspec.ValidationError as error:
        # Behind the first mistake there may be what is no JSON at all, so this may fail, too.
        raise BadRequest(_findings(raw, form, where) or [f"{where}{error}"]) from None


def read_many(raw: bytes) -> list[msgspec.Raw]:
    """Returns the elements of a JSON array; raises BadRequest or BadBody if it is none."""
    check_body(raw)
    try:
        return msgspec.json.decode(raw, type=list[msgspec.Raw])
    except msgspec.ValidationError:
        raise BadRequest(["the body is neither an object nor a list of objects"]) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _no_json(raw, error) from None


def read_query(given: Sequence[tuple[str, str]], form: type[Form]) -> Form:
    """Returns the parameters of a URL as a form; numbers and booleans are read from their
    texts. Raises BadRequest with everything that is wrong."""
    nothing_asked: Form | None = None if given else _without_parameters(form)
    if nothing_asked is not None:
        return nothing_asked
    values: dict[str, str] = {}
    for name, value in given:
        # Given twice is either of two, as in status=ready&status=running.
        values[name] = f"{values[name]},{value}" if name in values else value
    try:
        return msgspec.convert(values, form, strict=False)
    except msgspec.ValidationError as error:
        raise BadRequest(_query_findings(values, form) or [str(error)]) from None


@cache
def _without_parameters(form: type[Form]) -> Form | None:
    """Returns a form in which nothing is given; None if something has to be."""
    try:
        return msgspec.convert({}, form)
    except msgspec.ValidationError:
        return None


def field_names(form: type[msgspec.Struct]) -> list[str]:
    """Returns the names of a type's fields as they are written in JSON."""
    return [field.encode_name for field in _fields(form)]


@cache
def _fields(form: type[msgspec.Struct]) -> tuple[Any, ...]:
    """Returns a type's fields, cached: to look them up takes longer than to read a task."""
    return msgspec.structs.fields(form)


def _findings(raw: bytes, form: type[msgspec.Struct], where: str) -> list[str]:
    """Returns what is wrong in each field, because a decoder stops at the first mistake."""
    try:
        given = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError:
        return [f"{where}expected an object"]
    found = _name_findings(given, form, f"{where}there is no field")
    for field in _fields(form):
        if field.encode_name in given:
            found += _field_findings(given[field.encode_name], field, where)
        elif field.required:
            found.append(f"{where}{field.encode_name} is missing")
    return found


def _field_findings(raw: msgspec.Raw, field: Any, where: str) -> list[str]:  # noqa: ANN401 - msgspec's FieldInfo
    try:
        msgspec.json.decode(bytes(raw), type=field.type)
    except msgspec.ValidationError as error:
        text = _said(error, field.type).replace(" - at `$", f" - at `{field.encode_name}")
        return [f"{where}{field.encode_name}: {text}"]
    return []


def _query_findings(given: dict[str, str], form: type[msgspec.Struct]) -> list[str]:
    found = _name_findings(given, form, "there is no parameter")
    for field in _fields(form):
        if field.encode_name in given:
            try:
                msgspec.convert(given[field.encode_name], field.type, strict=False)
            except msgspec.ValidationError as error:
                found.append(f"{field.encode_name}: {_said(error, field.type)}")
        elif field.required:
            found.append(f"{field.encode_name} is missing")
    return found


def _name_findings(
    given: dict[str, Any], form: type[msgspec.Struct], missing: str
) -> list[str]:
    known = field_names(form)
    found: list[str] = []
    for name in given:
        if len(found) == FINDINGS_MAX:
            break
        if name not in known:
            near = get_close_matches(name[:100], known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "expected " + ", ".join(known)
            found.append(f"{missing} {name[:100]!r}; {hint}")
    return found


def _said(error: msgspec.ValidationError, kind: object) -> str:
    """Returns the decoder's message, with the values it accepts where that is a short list."""
    text = str(error)
    if text.startswith("Invalid enum value") and (choices := list(_choices(kind))):
        return f"{text}; expected one of {', '.join(choices)}"
    return text


def _choices(kind: object) -> Iterator[str]:
    """Yields the words that a type allows, wherever in the type they are."""
    if isinstance(kind, type) and issubclass(kind, Enum):
        yield from (str(one.value) for one in kind)
    for part in get_args(kind):
        if isinstance(part, str):
            yield part
        elif part is not kind:
            yield from _choices(part)


def object_text(raw: msgspec.Raw) -> str | None:
    """Returns values as they were sent, for the store to judge; None if there are none."""
    return None if bytes(raw) in (b"", b"null") else bytes(raw).decode()
