"""The kinds of values that items have, and how each is read."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from enum import Enum

from tidewheel.formats.flow_cylc.limits import LIST_ITEMS_MAX, PARAMETER_VALUES_MAX
from tidewheel.formats.flow_cylc.value_text import (
    BadValue,
    list_items,
    multiplied,
    plain_text,
    span_seconds,
)
from tidewheel.formats.flow_cylc.xtriggers import read_xtrigger

# So long that nobody means it: Python itself refuses to read longer numbers.
_INTEGER = re.compile(r"[+-]?\d{1,18}")
_RANGE = re.compile(r"([+-]?\d{1,18})\s*\.\.\s*([+-]?\d{1,18})(?:\s*\.\.\s*(\d{1,18}))?")
_PARAMETER_VALUE = re.compile(r"[\w\-+%@]+")


class ValueKind(Enum):
    """The kinds of values that an item accepts; each value is how a person would call it."""

    TEXT = "a text"
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


def read_text(raw: str) -> object:
    return plain_text(raw)


def read_texts(raw: str) -> object:
    return tuple(list_items(raw))


def read_names(raw: str) -> object:
    names = list_items(raw)
    for name in names:
        if " " in name and "<" not in name:
            raise BadValue(f"{name!r} is one item of the list", "separate names by commas")
    return tuple(names)


def read_integer(raw: str) -> object:
    text = plain_text(raw)
    if not text:
        return None
    if not _INTEGER.fullmatch(text):
        raise BadValue(f"{text[:60]!r} is no whole number")
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
        raise BadValue(f"{text[:60]!r} is no number")
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


def read_durations(raw: str) -> object:
    return tuple(span_seconds(item) for item in multiplied(list_items(raw)))


def read_point(raw: str) -> object:
    return plain_text(raw)


def read_parameter(raw: str) -> object:
    """Reads whole numbers, or texts; a range is whole numbers."""
    values: list[str | int] = []
    numbers_only = texts_only = False
    for item in list_items(raw):
        match = _RANGE.fullmatch(item)
        if match is not None:
            values += _range(match)
            numbers_only = True
        elif not _PARAMETER_VALUE.fullmatch(item):
            raise BadValue(
                f"{item[:60]!r} cannot be a value of a parameter",
                "use letters, digits and _ - + % @, or a range such as 1..5",
            )
        else:
            values.append(item)
            texts_only = texts_only or "_" in item or not _INTEGER.fullmatch(item)
    if numbers_only and texts_only:
        raise BadValue("a range of numbers is mixed with texts", "give either numbers or texts")
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
    ValueKind.TEXT: read_text,
    ValueKind.TEXTS: read_texts,
    ValueKind.NAMES: read_names,
    ValueKind.INTEGER: read_integer,
    ValueKind.NUMBER: read_number,
    ValueKind.BOOLEAN: read_boolean,
    ValueKind.DURATION: read_duration,
    ValueKind.DURATIONS: read_durations,
    ValueKind.POINT: read_point,
    ValueKind.PARAMETER: read_parameter,
    ValueKind.XTRIGGER: lambda raw: read_xtrigger(plain_text(raw)),
    ValueKind.GRAPH: lambda raw: raw,
}

assert LIST_ITEMS_MAX >= PARAMETER_VALUES_MAX  # a parameter may also be given as a list
