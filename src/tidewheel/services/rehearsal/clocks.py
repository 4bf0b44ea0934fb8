"""When xtriggers are satisfied in a rehearsal: a clock's in time, others after one check."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.definition import XtriggerDef
from tidewheel.core.graph.graph import Graph
from tidewheel.core.tasks.task import Instant

WALL_CLOCK = "wall_clock"
MESSAGE = "message/"  # how the core names an external trigger
INTERVAL_SECONDS = 10.0  # of what has none of its own

_UNITS = {"Y": 365 * 86400, "M": 30 * 86400, "W": 7 * 86400, "D": 86400}
_TIME_UNITS = {"H": 3600, "M": 60, "S": 1}
_NUMBER = re.compile(r"(\d+(?:[.,]\d+)?)([YMWDHS])")


class Check(NamedTuple):
    """When a check ends well; `assumed` says what was taken for granted."""

    at: Instant
    is_clock: bool
    assumed: str = ""


class Clocks:
    """The xtriggers of a graph."""

    def __init__(self, graph: Graph) -> None:
        self._xtriggers: Mapping[str, XtriggerDef] = graph.xtriggers
        self._is_integer = graph.cycling.is_integer
        self._offsets: dict[str, float] = {}

    def check(self, label: str, point: Point, now: Instant) -> Check:
        """A check that begins now."""
        xtrigger = self._xtriggers.get(label)
        if xtrigger is None and label == WALL_CLOCK:
            xtrigger = XtriggerDef(label, WALL_CLOCK)
        if xtrigger is None:
            text = f"the message {label.removeprefix(MESSAGE)!r} comes after "
            return Check(
                Instant(now + INTERVAL_SECONDS), False, f"{text}{INTERVAL_SECONDS:g} s"
            )
        if xtrigger.function == WALL_CLOCK and not self._is_integer:
            return Check(Instant(max(now, point + self._offset(xtrigger))), True)
        seconds = xtrigger.interval_seconds
        text = f"xtrigger {label} ({xtrigger.function}) is satisfied after {seconds:g} s"
        return Check(Instant(now + seconds), False, text)

    def _offset(self, xtrigger: XtriggerDef) -> float:
        if xtrigger.label not in self._offsets:
            given = xtrigger.arguments[0] if xtrigger.arguments else None
            given = dict(xtrigger.keywords).get("offset", given)
            text = "" if given is None else str(given)
            self._offsets[xtrigger.label] = offset_seconds(text)
        return self._offsets[xtrigger.label]


def offset_seconds(text: str) -> float:
    """Seconds of an ISO 8601 duration that was checked when the definition was read."""
    sign = -1.0 if text.startswith("-") else 1.0
    days, _, times = text.partition("T")
    total = sum(_value(number) * _UNITS[unit] for number, unit in _NUMBER.findall(days))
    total += sum(_value(number) * _TIME_UNITS[unit] for number, unit in _NUMBER.findall(times))
    return sign * total


def _value(number: str) -> float:
    return float(number.replace(",", "."))
