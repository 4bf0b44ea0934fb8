"""Points as people write them in commands: as the run writes them, as dates, `^` and `$`.

A date may be shortened from its end (`2000`, `20000101`, `2000-01-01T06`), with or without
dashes and colons, with or without a time zone; without one it is in the run's own.
"""

from __future__ import annotations

import re

from tidewheel.core.cycling.calendar import (
    HOURS_PER_DAY,
    MONTHS_PER_YEAR,
    SECONDS_PER_DAY,
    SECONDS_PER_HOUR,
    SECONDS_PER_MINUTE,
    Calendar,
    Point,
    days_from_date,
    days_in_month,
)
from tidewheel.core.cycling.refusal import BadCycling
from tidewheel.core.cycling.style import PointStyle
from tidewheel.core.graph.definition import CyclingDef
from tidewheel.errors import Refused

INITIAL, FINAL = "^", "$"

_DATE = re.compile(
    r"(?P<year>[0-9]{4}|[-+][0-9]{5,})(?:-?(?P<month>[0-9]{2})(?:-?(?P<day>[0-9]{2}))?)?"
    r"(?:T(?P<hour>[0-9]{2})(?::?(?P<minute>[0-9]{2})(?::?(?P<second>[0-9]{2}))?)?)?"
    r"(?P<zone>Z|[-+][0-9]{2}(?::?[0-9]{2})?)?"
)


def read_point(cycling: CyclingDef, text: str) -> Point:
    """The point that is meant; refused if there is none."""
    if text == INITIAL:
        return cycling.initial
    if text == FINAL:
        if cycling.final is None:
            raise Refused("$ is the final point, and this run has none; write the point itself")
        return cycling.final
    found = find_point(cycling.style, text)
    if found is None:
        example = cycling.style.text(cycling.initial)
        raise Refused(f"{text!r} is no point of this run; points look like {example}, ^ or $")
    return found


def find_point(style: PointStyle, text: str) -> Point | None:
    """The point of a text in the run's own form, or of a date; None if it is neither."""
    try:
        return style.read(text)
    except BadCycling:
        found = None if style.calendar is Calendar.INTEGER else _DATE.fullmatch(text)
    return None if found is None else _dated(style, found)


def _dated(style: PointStyle, found: re.Match[str]) -> Point | None:
    year, month, day = (int(found[part] or 1) for part in ("year", "month", "day"))
    hour, minute, second = (int(found[part] or 0) for part in ("hour", "minute", "second"))
    calendar = style.calendar
    if not 1 <= month <= MONTHS_PER_YEAR or not 1 <= day <= days_in_month(
        calendar, year, month
    ):
        return None
    if hour >= HOURS_PER_DAY or max(minute, second) >= SECONDS_PER_MINUTE:
        return None
    time = hour * SECONDS_PER_HOUR + minute * SECONDS_PER_MINUTE + second
    days = days_from_date(calendar, year, month, day)
    shift = _zone_minutes(style, found["zone"]) * SECONDS_PER_MINUTE
    point = Point(days * SECONDS_PER_DAY + time - shift)
    return point if style.first_point <= point <= style.last_point else None


def _zone_minutes(style: PointStyle, zone: str | None) -> int:
    if zone is None:
        return style.written_offset_minutes
    if zone == "Z":
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[3:].lstrip(":") or 0)
    return -minutes if zone[0] == "-" else minutes
