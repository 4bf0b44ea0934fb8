"""Reads everything about cycling in one workflow: points, intervals, offsets, recurrences.

The time zone is UTC unless the workflow sets one, as in Cylc 8; `UTC mode` does not change
that. Whatever cannot be used is refused as BadCycling, and nothing else is ever raised.
"""

from __future__ import annotations

import re

from tidewheel.core.cycling.calendar import HOURS_PER_DAY, BadCycling, Calendar, Point
from tidewheel.core.cycling.interval import Interval
from tidewheel.core.cycling.offset import Absolute, FromInitial, Offset, Relative, Truncated
from tidewheel.core.cycling.sequence import Sequence
from tidewheel.core.cycling.style import PointStyle
from tidewheel.core.cycling.truncated import TruncatedPoint
from tidewheel.formats.cycling.expression import Expressions, find_initial, now_in
from tidewheel.formats.cycling.iso8601 import (
    POINTS_ACCEPTED,
    DateTimeText,
    Written,
    read_chain,
    read_interval,
    split_recurrences,
)
from tidewheel.formats.cycling.recurrence import read_recurrence

__all__ = ["BadCycling", "CyclingReader", "split_recurrences"]

NOW = "now"
UTC = "Z"
MODES = {
    **{calendar.value: calendar for calendar in Calendar},
    "360_day": Calendar.DAYS_360,
    "365_day": Calendar.DAYS_365,
    "366_day": Calendar.DAYS_366,
}

_TIME_ZONE = re.compile(r"([+-])(\d\d)(?::?([0-5]\d))?", re.ASCII)
_NOT_IN_FORMATS = re.compile(r"[/:\s]")


class CyclingReader:
    """One workflow's notation. Readers of different calendars do not disturb each other."""

    def __init__(
        self,
        mode: str = Calendar.INTEGER.value,
        *,
        utc_mode: bool = False,  # noqa: ARG002 - a setting that Cylc 8 no longer looks at here
        time_zone: str | None = None,
        point_format: str | None = None,
        expanded_year_digits: int = 0,
    ) -> None:
        self.calendar = _read_mode(mode)
        if self.calendar is Calendar.INTEGER:
            self.style = PointStyle(calendar=self.calendar)
            return
        zone, minutes = _read_time_zone(time_zone or UTC)
        year = "+XCCYY" if expanded_year_digits else "CCYY"
        if point_format and (found := _NOT_IN_FORMATS.search(point_format)):
            raise BadCycling(
                f"cycle point format {point_format!r} has {found[0]!r}",
                "points are part of task ids and file names; leave it out",
            )
        self.style = PointStyle(
            calendar=self.calendar,
            utc_offset_minutes=minutes,
            format=point_format or f"{year}MMDDThhmm{zone}",
            expanded_year_digits=expanded_year_digits,
        )
        self._texts = DateTimeText(self.calendar, minutes, expanded_year_digits)

    def point(self, text: str) -> Point:
        """Reads a whole cycle point, such as 3 or 20000101T00Z."""
        written = self._read_point(text.strip())
        if isinstance(written, TruncatedPoint):
            raise BadCycling(
                f"{text!r} is only the end of a date-time", "write the whole of it"
            )
        return self._writable(text, written.point)

    def interval(self, text: str) -> Interval:
        """Reads an interval such as P1, -P2, P1D or PT6H."""
        return read_interval(self.calendar, text.strip())

    def offset(self, text: str) -> Offset:
        """Reads what stands between the brackets of a graph node."""
        stripped = "".join(text.split())
        if stripped.startswith("^"):
            inner = self.offset(stripped[1:])
            if isinstance(inner, Absolute | FromInitial):
                raise BadCycling(f"[{text}] has a point after ^", "write [^], [^+P1] or so")
            return FromInitial(inner)
        if stripped.startswith("$"):
            raise BadCycling(
                f"[{text}] starts from the final point, which no dependency can",
                "write [^], an interval such as [-P1], or a point",
            )
        if stripped.startswith("P"):
            stripped = "+" + stripped
        base, intervals = read_chain(self.calendar, stripped)
        return self._offset(text, base, intervals)

    def recurrence(self, text: str, initial: Point, final: Point | None = None) -> Sequence:
        """Reads one recurrence, from initial to final; `split_recurrences` splits lists."""
        return read_recurrence(text, self._expressions(initial, final))

    def relative_point(self, text: str, base: Point, final: Point | None = None) -> Point:
        """Reads a point, or an expression that starts from another: +P1D, T06, 2010."""
        stripped = "".join(text.split())
        if stripped.startswith("P"):
            stripped = "+" + stripped
        found = self._expressions(base, final).find(stripped, base)
        return self._writable(text, found.point)

    def initial_point(self, text: str, now: float) -> Point:
        """Reads an initial point; now, next(…), previous(…), -P1D, T00 start from the clock."""
        if self.calendar is Calendar.INTEGER:
            return self.point(text)
        here = now_in(self.calendar, now)
        stripped = "".join(text.split())
        if stripped == NOW:
            return self._writable(text, here)
        return self._writable(text, find_initial(stripped, here, self._expressions(here)))

    def start_point(self, text: str, initial: Point, final: Point | None, now: float) -> Point:
        """Reads where a warm start begins: now, or a point, maybe relative to the initial."""
        if text.strip() == NOW and self.calendar is not Calendar.INTEGER:
            return self._writable(text, now_in(self.calendar, now))
        return self.relative_point(text, initial, final)

    def final_point(self, text: str, initial: Point) -> Point:
        """Reads where the graph ends; it may be relative to the initial point."""
        point = self.relative_point(text, initial)
        if point < initial:
            raise BadCycling(
                f"the final cycle point {self.style.text(point)} is before the initial one, "
                f"{self.style.text(initial)}"
            )
        return point

    def _offset(self, text: str, base: str, intervals: tuple[Interval, ...]) -> Offset:
        zone = self.style.written_offset_minutes
        if not base:
            return Relative(intervals, self.calendar, zone)
        written = self._read_point(base)
        if isinstance(written, Written):
            found = self._expressions(written.point).find(base, None)
            point = Relative(intervals, self.calendar, found.utc_offset_minutes).parent_point(
                found.point, found.point
            )
            return Absolute(self._writable(text, point))
        if written.week is not None and written.day_of_week is None:
            raise BadCycling(
                f"[{text}] names a week without a day", "write the day, too: -W05-1"
            )
        return Truncated(written, intervals, self.calendar, zone)

    def _expressions(self, initial: Point, final: Point | None = None) -> Expressions:
        return Expressions(
            style=self.style, read_point=self._read_point, initial=initial, final=final
        )

    def _read_point(self, text: str) -> Written | TruncatedPoint:
        if self.calendar is Calendar.INTEGER:
            return Written(self.style.read(text), 0)
        try:
            # What tidewheel wrote comes first: CCYYMM is not YYMMDD.
            return Written(self.style.read(text), self.style.written_offset_minutes)
        except BadCycling:
            return self._texts.read(text)

    def _writable(self, text: str, point: Point) -> Point:
        try:
            return self.style.rounded(point)
        except BadCycling as error:
            raise BadCycling(
                f"{text!r}: {error.message}", error.hint or POINTS_ACCEPTED
            ) from None


def _read_mode(mode: str) -> Calendar:
    if mode not in MODES:
        raise BadCycling(
            f"cycling mode {mode!r} is unknown", f"accepted are {', '.join(MODES)}"
        )
    return MODES[mode]


def _read_time_zone(text: str) -> tuple[str, int]:
    """Returns a time zone as it is written behind a point, and in minutes."""
    if text == UTC:
        return UTC, 0
    found = _TIME_ZONE.fullmatch(text)
    if found is None or int(found[2]) >= HOURS_PER_DAY:
        raise BadCycling(
            f"cycle point time zone {text!r} is none", "write Z, +hh or +hhmm, such as -0330"
        )
    minutes = int(found[2]) * 60 + int(found[3] or 0)
    return text.replace(":", ""), -minutes if found[1] == "-" else minutes
