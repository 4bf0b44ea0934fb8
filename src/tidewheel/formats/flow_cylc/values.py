"""Reads the values of items by their kind: texts in quotes, lists, numbers, durations."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from enum import Enum
from textwrap import dedent

from tidewheel.core.graph.definition import ELEMENTS_DEFAULT, ELEMENTS_MAX
from tidewheel.errors import Refused
from tidewheel.lazy_dataclasses import NamedTuple, pattern

LIST_ITEMS_MAX = 10_000
PARAMETER_VALUES_MAX = 10_000  # of one parameter, which may also be given as a list

# Quotes, comments, lists and durations: the text of a value as the person meant it.

DURATION_ACCEPTED = "write an ISO 8601 duration such as PT10M, PT1H30M or P1D"

DURATION_SECONDS_MAX = 1000 * 366 * 86400.0

_LONG = {
    '"""': re.compile(r'"""(.*?)"""\s*(?:#.*)?\Z', re.DOTALL),
    "'''": re.compile(r"'''(.*?)'''\s*(?:#.*)?\Z", re.DOTALL),
}
_SHORT = {
    '"': re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"\s*(?:#.*)?\Z', re.DOTALL),
    "'": re.compile(r"'([^'\\]*(?:\\.[^'\\]*)*)'\s*(?:#.*)?\Z", re.DOTALL),
}
# One item of a list: quoted text, parameters in angle brackets, or anything but a comma.
_PIECE = pattern(
    r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|<\w[^<>\n]*>|[^,#"'<]+|(?P<comma>,)|(?P<end>\#)|.""",
    re.DOTALL,
)
_DURATION = pattern(
    r"(?P<sign>[-+]?)P(?=.)(?:(?P<weeks>\d+(?:[.,]\d+)?)W"
    r"|(?:(?P<years>\d+)Y)?(?:(?P<months>\d+)M)?(?:(?P<days>\d+(?:[.,]\d+)?)D)?"
    r"(?:T(?=.)(?:(?P<hours>\d+(?:[.,]\d+)?)H)?(?:(?P<minutes>\d+(?:[.,]\d+)?)M)?"
    r"(?:(?P<seconds>\d+(?:[.,]\d+)?)S)?)?)"
)
# A year and a month of a duration are taken as 365 and 30 days, as Cylc takes them.
_SECONDS = {
    "weeks": 604800.0,
    "years": 365 * 86400.0,
    "months": 30 * 86400.0,
    "days": 86400.0,
    "hours": 3600.0,
    "minutes": 60.0,
    "seconds": 1.0,
}


class BadValue(Refused):
    """A value is not what its item accepts."""

    code = "bad_value"

    def __init__(self, message: str, hint: str = "") -> None:
        self.hint = hint
        super().__init__(message)


def plain_text(raw: str) -> str:
    """Returns the text without quotes, comment and common indentation."""
    first = raw[:1]
    if first not in _SHORT:
        if "#" in raw:
            raw = raw.split("#", 1)[0]
        return raw.strip()
    inner = unquoted(raw)
    return (dedent(inner) if "\n" in inner else inner).strip()


def unquoted(raw: str) -> str:
    """Returns what stands between the quotes, with its indentation."""
    quotes = raw[:3] if raw[:3] in _LONG else raw[:1]
    match = (_LONG.get(quotes) or _SHORT[quotes]).match(raw)
    if match is None:
        seen = f"the quotes of {_shown(raw)} are not closed, or something follows them"
        raise BadValue(seen, f"close the text with {quotes}; only a comment may follow")
    return match[1]


def list_items(raw: str) -> list[str]:
    """Returns the items of a list, trimmed; commas in quotes and in `<m,n>` do not split it."""
    if not any(sign in raw for sign in "\"'#<"):
        items = [piece.strip() for piece in raw.split(",")]
    else:
        items = _quoted_items(raw)
    if items and not items[-1]:
        items.pop()
    if len(items) > LIST_ITEMS_MAX:
        raise BadValue(
            f"the list has {len(items)} items; at most {LIST_ITEMS_MAX} are accepted"
        )
    return items


def _quoted_items(raw: str) -> list[str]:
    if raw[:3] in _LONG:
        raw = unquoted(raw)
    items: list[list[str]] = [[]]
    for match in _PIECE.finditer(raw):
        if match["end"]:
            break
        if match["comma"]:
            items.append([])
        else:
            items[-1].append(match[0])
    return [_item_text("".join(pieces).strip()) for pieces in items]


def _item_text(item: str) -> str:
    if len(item) > 1 and item[0] == item[-1] and item[0] in _SHORT:
        match = _SHORT[item[0]].match(item)
        if match is not None:
            return match[1].strip()
    return item


def span_seconds(text: str) -> float:
    """Returns the seconds of an ISO 8601 duration; BadValue if it is negative."""
    seconds = duration_seconds(text)
    if seconds < 0:
        raise BadValue(f"{_shown(text)} is negative", f"write {text.removeprefix('-')}")
    return seconds


def duration_seconds(text: str) -> float:
    """Returns the seconds of an ISO 8601 duration, which may be negative; else BadValue."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise BadValue(f"{_shown(text)} is not a valid duration", _duration_advice(text))
    sign = match["sign"]
    seconds = sum(
        float(match[unit].replace(",", ".")) * size
        for unit, size in _SECONDS.items()
        if match[unit]
    )
    if seconds > DURATION_SECONDS_MAX:
        raise BadValue(f"{_shown(text)} is longer than 1000 years")
    return -seconds if sign == "-" else seconds


_TIMES = pattern(r"(\d+) ?[x×X] ?(P\S+)")


def _duration_advice(text: str) -> str:
    if text.isdigit():
        seconds = "1 second is" if text == "1" else f"{text} seconds are"
        return f"{DURATION_ACCEPTED}; {seconds} PT{text}S"
    upper = text.upper()
    if upper != text and _DURATION.fullmatch(upper):
        return f"write {upper}: durations are written in capitals"
    timed = f"PT{upper.removeprefix('P')}"
    if _DURATION.fullmatch(timed):
        return f"write {timed}: ISO 8601 puts a T before hours, minutes and seconds"
    if times := _TIMES.fullmatch(text):
        return f"write {times[1]}*{times[2]}, as in 3*PT1M for PT1M three times"
    return DURATION_ACCEPTED


def multiplied(items: list[str]) -> list[str]:
    """Returns the items with `3*PT1M` replaced by the three items that it stands for."""
    result: list[str] = []
    for item in items:
        count, star, value = item.partition("*")
        if not star:
            result.append(item)
            continue
        if not re.fullmatch(r"\s*\d{1,9}\s*", count):
            raise BadValue(
                f"{_shown(item)}: {count.strip()!r} is not a number", "write 3*PT10M"
            )
        if len(result) + int(count) > LIST_ITEMS_MAX:
            raise BadValue(f"{_shown(item)} makes more than {LIST_ITEMS_MAX} items")
        result += [value.strip()] * int(count)
    return result


def _shown(text: str) -> str:
    first_line, more, _ = text.partition("\n")
    return repr(first_line[:60] + ("…" if more or len(first_line) > 60 else ""))  # noqa: PLR2004


# The kinds of values.

# So long that nobody means it: Python itself refuses to read longer numbers.
_INTEGER = pattern(r"[+-]?\d{1,18}")
_RANGE = pattern(r"([+-]?\d{1,18})\s*\.\.\s*([+-]?\d{1,18})(?:\s*\.\.\s*(\d{1,18}))?")
_PARAMETER_VALUE = pattern(r"[\w\-+%@]+")


class ValueKind(Enum):
    """Names the kinds of values that an item accepts; each value is how people call it."""

    TEXT = "a string"
    TEXTS = "a list"
    NAMES = "a list of names"
    INTEGER = "a whole number"
    NUMBER = "a number"
    BOOLEAN = "True or False"
    DURATION = "a duration"
    DURATIONS = "a list of durations"
    POINT = "a cycle point"  # stays text: what it means depends on the cycling mode
    PARAMETER = "values of a parameter"
    XTRIGGER = "a function call"
    GRAPH = "a graph"  # stays as it is written: its lines have places of their own


def read_names(raw: str) -> object:
    names = list_items(raw)
    for name in names:
        if " " in name and "<" not in name:
            raise BadValue(f"{name!r} is read as one name", "separate names by commas")
    return tuple(names)


def read_integer(raw: str) -> object:
    text = plain_text(raw)
    if not text:
        return None
    if not _INTEGER.fullmatch(text):
        raise BadValue(f"{text[:60]!r} is not a whole number")
    return int(text)


def read_number(raw: str) -> object:
    text = plain_text(raw)
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise BadValue(f"{text[:60]!r} is not a number")
    return number


_BOOLEANS = {"True": True, "true": True, "False": False, "false": False, "": None}
_BOOLEAN_SLIPS = {"yes": "True", "on": "True", "1": "True", "no": "False", "off": "False"}


def read_boolean(raw: str) -> object:
    text = plain_text(raw)
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    meant = _BOOLEAN_SLIPS.get(text.lower(), "True or False")
    if text.lower() in ("true", "false"):
        meant = text.capitalize()
    raise BadValue(f"{text[:60]!r} is neither True nor False", f"write {meant}")


def read_duration(raw: str) -> object:
    text = plain_text(raw)
    return span_seconds(text) if text else None


class ListSource(NamedTuple):
    """Names the list that a parameter takes its values from at run time: `list.files`."""

    task: str
    value: str
    elements_max: int = ELEMENTS_DEFAULT


_LIST_SOURCE = pattern(
    r"(?P<task>[A-Za-z_][\w\-+%@]*)\.(?P<value>[\w-]+)(?:\s+max\s+(?P<max>\d{1,9}))?"
)

_LIST_ELSEWHERE = pattern(r"[A-Za-z_][\w\-+%@]*\[[^\]]*\]\.[\w-]+.*")


def read_parameter(raw: str) -> object:
    """Returns the values of a parameter: all whole numbers, also from ranges, or all texts; or
    the list that they are taken from at run time."""
    if match := _LIST_SOURCE.fullmatch(plain_text(raw)):
        most = int(match["max"] or ELEMENTS_DEFAULT)
        if not 0 < most <= ELEMENTS_MAX:
            raise BadValue(f"max {most} is out of range", f"write 1 to {ELEMENTS_MAX}")
        return ListSource(match["task"], match["value"], most)
    if _LIST_ELSEWHERE.fullmatch(plain_text(raw)):
        raise BadValue(
            f"{raw.strip()[:60]!r} names a list of another point",
            "write TASK.NAME; to use one list at all points, let a task return the list at "
            "each point",
        )
    values: list[str | int] = []
    numbers_only = texts_only = False
    for item in list_items(raw):
        match = _RANGE.fullmatch(item)
        if match is not None:
            values += _range(match)
            numbers_only = True
        elif not _PARAMETER_VALUE.fullmatch(item):
            seen = f"{item[:60]!r} cannot be a value of a parameter"
            raise BadValue(seen, "use letters, digits and _ - + % @, or a range such as 1..5")
        else:
            values.append(item)
            texts_only = texts_only or "_" in item or not _INTEGER.fullmatch(item)
    if numbers_only and texts_only:
        raise BadValue(
            "a range of numbers is mixed with names", "use only numbers, or only names"
        )
    if len(values) > PARAMETER_VALUES_MAX:
        raise BadValue(
            f"{len(values)} values are too many; at most {PARAMETER_VALUES_MAX} are accepted"
        )
    return tuple(values) if texts_only else tuple(int(value) for value in values)


def _range(match: re.Match[str]) -> range:
    low, high, step = int(match[1]), int(match[2]), int(match[3] or 1)
    if step == 0:
        raise BadValue(f"{match[0]!r} has a step of 0", "write for example 1..10..2")
    values = range(low, high + 1, step)
    # Not len(): that overflows beyond the machine's integers.
    if (high - low) // step + 1 > PARAMETER_VALUES_MAX:
        raise BadValue(
            f"{match[0]!r} is too large; at most {PARAMETER_VALUES_MAX} values are accepted"
        )
    return values


READERS: dict[ValueKind, Callable[[str], object]] = {
    ValueKind.TEXT: plain_text,
    ValueKind.TEXTS: lambda raw: tuple(list_items(raw)),
    ValueKind.NAMES: read_names,
    ValueKind.INTEGER: read_integer,
    ValueKind.NUMBER: read_number,
    ValueKind.BOOLEAN: read_boolean,
    ValueKind.DURATION: read_duration,
    ValueKind.DURATIONS: lambda raw: tuple(map(span_seconds, multiplied(list_items(raw)))),
    ValueKind.POINT: plain_text,
    ValueKind.PARAMETER: read_parameter,
    ValueKind.GRAPH: lambda raw: raw,
}
