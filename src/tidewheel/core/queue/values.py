"""Values are what an attempt that ended well hands on: a JSON object of bounded size."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping

from tidewheel.errors import BadValues, Refused
from tidewheel.lazy_dataclasses import NamedTuple, pattern

VALUES_BYTES_MAX = 64 * 1024
INPUTS_BYTES_MAX = 1024 * 1024  # of all tasks before one
RETURN = "return"  # the name of a value that is no object
FILE = "$file"  # the name in an object that stands for a file
_SHA256 = pattern(r"[0-9a-f]{64}\Z")
DEPTH_MAX = 100  # of objects and arrays; their readers may have little room left
DIGITS_MAX = 20  # of an integer, with its sign


def values_text(text: str) -> str:
    """Returns values as they are stored, stripped; raises BadValues if they cannot be stored.

    What is accepted any JSON reader can read: no halves of surrogate pairs, no numbers beyond
    64 bits. Letters and numbers stay as they were written.
    """
    kept = text.strip()
    size = len(kept.encode(errors="replace"))
    if size > VALUES_BYTES_MAX:
        raise BadValues(
            f"they have {size} bytes; at most {VALUES_BYTES_MAX} are accepted. Write larger "
            f'values to a file and return {{"{FILE}": "PATH"}}'
        )
    try:
        found = json.loads(
            kept, parse_int=_integer, parse_float=_number, parse_constant=_refuse_constant
        )
    except RecursionError:
        raise BadValues(_TOO_DEEP) from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise BadValues(f"not valid JSON ({error.msg} at {where}); {_ACCEPTED}") from None
    if not isinstance(found, dict):
        kind = _KINDS.get(type(found), "a number")
        raise BadValues(f"{kind} instead of an object; {_ACCEPTED}")
    if _is_too_deep(found):
        raise BadValues(_TOO_DEEP)
    if "\\u" in kept or not kept.isascii():
        try:
            json.dumps(found, ensure_ascii=False).encode()
        except UnicodeEncodeError:  # Python reads halves; most other programs refuse the text
            raise BadValues(_HALF) from None
    return kept


class FileValue(NamedTuple):
    """Describes a file that is a value: ``{"$file": PATH}``, as it was when it was told."""

    path: str
    size: int
    sha256: str


def files_in(value: object) -> Iterator[dict[str, object]]:
    """Yields the objects in a value that stand for files."""
    if isinstance(value, dict):
        if FILE in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from files_in(one)


def may_have_files(text: str) -> bool:
    """Says whether a JSON text may have such objects in it."""
    return FILE in text or "\\u0024" in text


def file_value(told: Mapping[str, object]) -> FileValue:
    """Returns a file as it was recorded; raises Refused if it was not."""
    path, size, sha256 = told.get(FILE), told.get("size"), told.get("sha256")
    is_recorded = isinstance(size, int) and isinstance(sha256, str) and _SHA256.match(sha256)
    if not isinstance(path, str) or not is_recorded:
        raise Refused(
            f"the file {path!r:.200} has no size and sha256: they are recorded only for files "
            "that a task returns when it succeeds, not for files that it announces earlier"
        )
    assert isinstance(size, int) and isinstance(sha256, str)
    return FileValue(path, size, sha256)


def merged(told: str, more: str) -> str:
    """Returns two objects, JSON texts, as one; of a name in both the later value counts."""
    return json.dumps(json.loads(told) | json.loads(more), ensure_ascii=False)


def inputs_text(told: Mapping[str, str]) -> str:
    """Returns the values of several tasks, JSON texts by name, as one JSON text; "" for none.

    Raises Refused if they are too many for a job.
    """
    if not told:
        return ""
    named = (f"{json.dumps(name, ensure_ascii=False)}: {body}" for name, body in told.items())
    said = "{" + ", ".join(named) + "}"
    if (size := len(said.encode())) > INPUTS_BYTES_MAX:
        raise Refused(
            f"the tasks before it returned {size} bytes of values; at most {INPUTS_BYTES_MAX} "
            "are passed on: return the path of a file instead"
        )
    return said


def read_value(text: str) -> tuple[str, object]:
    """Returns name and value of `NAME=VALUE`; what is no JSON is a text."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise Refused(f"the value {text!r} has no name; write NAME=VALUE")
    try:
        return name.strip(), json.loads(value, parse_constant=str)
    except (ValueError, RecursionError):
        return name.strip(), value


_TOO_DEEP = f"they are nested too deeply; at most {DEPTH_MAX} levels are accepted"
_HALF = "a string has half of a surrogate pair (\\ud800 to \\udfff alone)"
_ACCEPTED = 'expected one object, for example {"beams": 4}'
_KINDS: dict[type, str] = {
    list: "an array",
    str: "a string",
    bool: "true or false",
    type(None): "null",
}


def _is_too_deep(found: dict[str, object]) -> bool:
    level: list[dict[str, object] | list[object]] = [found]
    for _ in range(DEPTH_MAX):
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _integer(digits: str) -> int:
    """Returns an integer that fits into 64 bits, so that any program can hold it. Raises
    BadValues for a larger one."""
    if len(digits) > DIGITS_MAX or not -(2**63) <= int(digits) < 2**64:
        raise BadValues(f"{digits[:DIGITS_MAX]}… needs more than 64 bits; write it as a string")
    return int(digits)


def _number(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise BadValues(f"{digits[:DIGITS_MAX]} is too large a number; write it as a string")
    return number


def _refuse_constant(name: str) -> None:
    raise BadValues(f"{name} is not a JSON number; use null or a string")
