"""Reads the cycling texts of a workflow: points, expressions, offsets and recurrences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import islice

from tidewheel.core.cycling.calendar import (
    HOURS_PER_DAY,
    SECONDS_PER_DAY,
    BadCycling,
    Calendar,
    Interval,
    Point,
    add,
    add_all,
    date_from_days,
    days_from_date,
    days_in_month,
)
from tidewheel.core.cycling.offset import (
    Absolute,
    FromInitial,
    Offset,
    Relative,
    Truncated,
    TruncatedPoint,
)
from tidewheel.core.cycling.sequence import WALKED_STEPS_MAX, Reckoning, Sequence, steps_back
from tidewheel.core.cycling.style import PointStyle
from tidewheel.formats.cycling.iso8601 import (
    FOR_DATES,
    POINTS_ACCEPTED,
    DateTimeText,
    Form,
    RecurrenceKind,
    Written,
    read_chain,
    read_form,
    read_interval,
    split_exclusions,
    split_recurrences,
)
from tidewheel.lazy_dataclasses import dataclass, pattern

# Works out point expressions in their context: ^+P1D, T06, min(T00,T06)+PT1H, -P1, $.

NO_FINAL_POINT = "set a final cycle point, or give the recurrence an end"


@dataclass(frozen=True, slots=True)
class Found:
    """Holds a point, how its date was written and, if it was truncated, how often it recurs."""

    point: Point
    utc_offset_minutes: int = 0
    reckoning: Reckoning = Reckoning.MONTH
    period: Interval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expressions:
    """Works out what a text means, given the initial and the final point of a workflow."""

    style: PointStyle
    read_point: Callable[[str], Written | TruncatedPoint]
    initial: Point
    final: Point | None = None
    # What excludes a day excludes it at the time at which the recurrence would have its point:
    # P1D!W-1 means no Mondays, whatever the time of the initial point.
    days_at_time_of_context: bool = False

    def find(self, text: str, context: Point | None) -> Found:
        """Returns the point that an expression means.

        One that is relative or truncated starts from the context, which is None if it is a
        final point that is not set.
        """
        if text.startswith("min("):
            return self._find_smallest(text, context)
        base, intervals = read_chain(self.style.calendar, text)
        return self._move(text, self._find_base(text, base, context), intervals)

    def _find_smallest(self, text: str, context: Point | None) -> Found:
        inside, closed, after = text.removeprefix("min(").partition(")")
        if not closed:
            raise BadCycling(f"{text!r} has no closing parenthesis")
        base, intervals = read_chain(self.style.calendar, after)
        if base:
            raise BadCycling(f"{text!r} has {base!r} after min()", "only intervals may follow")
        found = min(
            (self.find(entry, context) for entry in split_recurrences(inside)),
            key=lambda one: one.point,
        )
        return self._move(text, found, intervals)

    def _find_base(self, text: str, base: str, context: Point | None) -> Found:
        if base == "^":
            return self._here(self.initial)
        if base in ("$", ""):
            return self._here(self._known(text, self.final if base else context))
        written = self.read_point(base)
        if isinstance(written, Written):
            return Found(written.point, written.utc_offset_minutes, written.reckoning)
        here = self._known(text, context)
        if self.days_at_time_of_context and not written.has_time:
            written = written.at_time_of(here)
        point = written.next_from(here)
        reckoning = Reckoning.MONTH if written.day_of_year is None else Reckoning.ORDINAL
        if written.week is not None or written.day_of_week is not None:
            reckoning = Reckoning.WEEK
        return replace(self._here(point), reckoning=reckoning, period=written.period)

    def _move(self, text: str, found: Found, intervals: tuple[Interval, ...]) -> Found:
        point = add_all(self.style.calendar, found.point, intervals, found.utc_offset_minutes)
        if not self.style.first_point <= point <= self.style.last_point:
            seen = f"{text!r} leads to a point that cannot be written as {self.style.format}"
            hint = "set 'cycle point num expanded year digits' for years beyond 0000 to 9999"
            raise BadCycling(seen, "" if self.style.calendar is Calendar.INTEGER else hint)
        return replace(found, point=point)

    def _here(self, point: Point) -> Found:
        return Found(point, self.style.written_offset_minutes)

    def _known(self, text: str, point: Point | None) -> Point:
        if point is None:
            seen = repr(text) if text else "the end of the recurrence"
            raise BadCycling(f"{seen} needs a final cycle point", NO_FINAL_POINT)
        return point


# Works out initial points that start from the clock: now, next(T00), previous(--0101).

INITIAL_POINTS_ACCEPTED = (
    "write a cycle point, now, an interval from now such as -P1D, a truncated date-time such "
    "as T00, next(T00;T12)-PT1H, or previous(--0101)"
)

_CALL = pattern(r"(next|previous)\(([^()]*)\)(.*)")


def now_in(calendar: Calendar, now: float) -> Point:
    """Returns the clock's time in a calendar; a day that the month lacks becomes its last."""
    days, second = divmod(int(now // 1), SECONDS_PER_DAY)
    year, month, day = date_from_days(Calendar.GREGORIAN, days)
    day = min(day, days_in_month(calendar, year, month))
    return Point(days_from_date(calendar, year, month, day) * SECONDS_PER_DAY + second)


def find_initial(text: str, now: Point, expressions: Expressions) -> Point:
    """Returns the point that an initial point, written without blanks, means at this moment."""
    found = _CALL.fullmatch(text)
    if found is None:
        if "(" in text:
            raise BadCycling(
                f"{text!r} is not a valid initial cycle point", INITIAL_POINTS_ACCEPTED
            )
        signed = "+" + text if text.startswith("P") else text
        return expressions.find(signed, now).point
    direction, times, after = found.groups()
    signed = "+" + after if after.startswith("P") else after
    base, intervals = read_chain(expressions.style.calendar, signed)
    if base:
        raise BadCycling(
            f"{text!r} has {base!r} after its parentheses", "only intervals may follow"
        )
    points = [_nearest(text, direction, time, now, expressions) for time in times.split(";")]
    point = min(points) if direction == "next" else max(points)
    return add_all(
        expressions.style.calendar, point, intervals, expressions.style.written_offset_minutes
    )


def _nearest(
    text: str, direction: str, time: str, now: Point, expressions: Expressions
) -> Point:
    written = expressions.read_point(time)
    if not isinstance(written, TruncatedPoint):
        hint = "write truncated date-times such as T00 or --0101, separated by ';'"
        raise BadCycling(f"{text!r} has a complete date-time in its parentheses", hint)
    return written.next_from(now) if direction == "next" else written.last_before(now)


# Makes a sequence of a recurrence's text.

_POINTS_CHECKED = 3


@dataclass(frozen=True, slots=True)
class _Span:
    """Holds what a recurrence means: its first point, step (None: one point) and last bound."""

    start: Found
    step: Interval | None
    end: Point | None


def read_recurrence(text: str, expressions: Expressions) -> Sequence:
    """Returns the points of a recurrence between the initial and the final point."""
    body, excluded = split_exclusions("".join(text.split()))
    span = _Recurrence(read_form(body), expressions).span(
        expressions.initial, expressions.final
    )
    style = expressions.style
    ends = (span.end, expressions.final, style.last_point)
    sequence = replace(
        _sequence(span, style.calendar),
        lower=max(expressions.initial, style.first_point),
        upper=min(point for point in ends if point is not None),
        endless=span.end is None and expressions.final is None,
        text=text.strip(),
    )
    if not sequence.endless and sequence.is_cut_short:
        raise _too_many(body)
    if excluded:
        sequence = _excluding(sequence, excluded, expressions, span)
    for point in islice(sequence.points(), _POINTS_CHECKED):
        if style.rounded(point) != point:  # then points that are written the same may follow
            seen = (
                f"{sequence.text!r} has points that cannot be written exactly as {style.format}"
            )
            raise BadCycling(seen, "set a 'cycle point format' with smaller units")
    return sequence


def _excluding(
    sequence: Sequence, excluded: Iterable[str], expressions: Expressions, span: _Span
) -> Sequence:
    """Returns a sequence without what is excluded. The exclusions are read between the start
    and the end of the recurrence."""
    expressions = replace(expressions, days_at_time_of_context=True)
    start = span.start.point
    end = expressions.final if span.end is None else span.end
    points: set[Point] = set()
    sequences: list[Sequence] = []
    for text in excluded:
        if "/" not in text and not text.startswith(("P", "R")):
            found = expressions.find(text, start)
            if found.period is None:
                points.add(found.point)
                continue
        inner = _Recurrence(read_form(text), expressions).span(start, end)
        sequences.append(_sequence(inner, sequence.calendar))
    return replace(sequence, excluded_points=frozenset(points), exclusions=tuple(sequences))


def _sequence(span: _Span, calendar: Calendar) -> Sequence:
    return Sequence(
        calendar=calendar,
        start=span.start.point,
        step=span.step,
        upper=span.end,
        utc_offset_minutes=span.start.utc_offset_minutes,
        reckoning=span.start.reckoning,
    )


@dataclass(frozen=True, slots=True)
class _Recurrence:
    """Works out the span of one recurrence, without its exclusions."""

    form: Form
    expressions: Expressions

    def span(self, context_start: Point, context_end: Point | None) -> _Span:
        form, find = self.form, self.expressions.find
        if form.kind is RecurrenceKind.TO_END:
            end = find(form.end, context_end)
            return self._to_end(end, self._step(end), context_start)
        start = find(form.start, context_start)
        if form.kind is RecurrenceKind.FROM_START:
            return self._from_start(start, self._step(start))
        if form.repetitions == 1:
            return self._from_start(start, None)
        return self._between(start, find(form.end, context_end))

    @property
    def _is_integer(self) -> bool:
        return self.expressions.style.calendar is Calendar.INTEGER

    def _step(self, anchor: Found) -> Interval | None:
        """Returns the interval between two points; None if there is only one point."""
        form, interval = self.form, anchor.period
        if form.interval is not None:
            interval = read_interval(self.expressions.style.calendar, form.interval)
        if form.repetitions == 1:
            return None
        if interval is None:
            # R/5 is accepted for R1/5 in integer cycling, as Cylc does.
            if form.repeats and form.repetitions is None and self._is_integer:
                return None
            each = f"{form.start or '^'}/P1{'' if self._is_integer else 'D'}"
            hint = f"write R1/{form.start or form.end}, or an interval: {each}"
            raise BadCycling(f"{form.text!r} does not say how often it repeats", hint)
        return interval or None  # repeating without moving on is one point

    def _moved(self, anchor: Found, step: Interval, count: int) -> Point:
        """Returns the point some steps away. They are added at once, as metomi does to find the
        other end of a bounded recurrence."""
        calendar = self.expressions.style.calendar
        return add(calendar, anchor.point, step * count, anchor.utc_offset_minutes)

    def _from_start(self, start: Found, step: Interval | None) -> _Span:
        if step is None:
            return _Span(start, None, start.point)
        count = self.form.repetitions
        return _Span(
            start, step, None if count is None else self._moved(start, step, count - 1)
        )

    def _to_end(self, end: Found, step: Interval | None, until: Point) -> _Span:
        if step is None:
            return _Span(end, None, end.point)
        if self.form.repetitions is not None:
            first = self._moved(end, step, 1 - self.form.repetitions)
            return _Span(replace(end, point=first), step, end.point)
        found = steps_back(
            self.expressions.style.calendar,
            end.point,
            step,
            until,
            utc_offset_minutes=end.utc_offset_minutes,
            reckoning=end.reckoning,
        )
        if found is None:
            raise _too_many(self.form.text)
        start = replace(end, point=found[0])
        return _Span(start, step, self._moved(start, step, found[1]))

    def _between(self, start: Found, end: Found) -> _Span:
        """Returns the span between two points. Of date-times the end is the second point; of
        integers it is the last of n (Cylc)."""
        distance, count = end.point - start.point, self.form.repetitions
        if not distance:
            return _Span(start, None, start.point)
        if distance < 0:
            raise BadCycling(f"{self.form.text!r} has its end before its start")
        if not self._is_integer:
            return self._from_start(start, Interval(units=distance))
        if count is None or distance % (count - 1):
            seen = f"{self.form.text!r} " + (
                "does not say how often it repeats"
                if count is None
                else "cannot be divided into equal whole steps"
            )
            hint = (
                "write Rn/start/interval, or Rn/start/end where n - 1 divides the distance "
                "from start to end"
            )
            raise BadCycling(seen, hint)
        return _Span(start, Interval(units=distance // (count - 1)), end.point)


def _too_many(text: str) -> BadCycling:
    return BadCycling(
        f"{text!r} has more than {WALKED_STEPS_MAX} points",
        "shorten the time from its start to its end, or write an interval that does not mix "
        "years or months with smaller units",
    )


# Reads everything about cycling in one workflow: points, intervals, offsets, recurrences.
#
# The time zone is UTC unless the workflow sets one, as in Cylc 8; `UTC mode` does not change
# that. Whatever cannot be used is refused as BadCycling, and nothing else is ever raised.

__all__ = ["BadCycling", "CyclingReader", "split_recurrences"]

NOW = "now"
UTC = "Z"
MODES = {
    **{calendar.value: calendar for calendar in Calendar},
    "360_day": Calendar.DAYS_360,
    "365_day": Calendar.DAYS_365,
    "366_day": Calendar.DAYS_366,
}

_TIME_ZONE = pattern(r"([+-])(\d\d)(?::?([0-5]\d))?", re.ASCII)
_NOT_IN_FORMATS = pattern(r"[/:\s]")


class CyclingReader:
    """Reads the notation of one workflow; readers of several calendars can be used at once."""

    def __init__(
        self,
        mode: str = Calendar.INTEGER.value,
        *,
        time_zone: str | None = None,
        point_format: str | None = None,
        expanded_year_digits: int = 0,
    ) -> None:
        if mode not in MODES:
            seen, hint = (
                f"cycling mode {mode!r} is unknown",
                f"expected one of {', '.join(MODES)}",
            )
            raise BadCycling(seen, hint)
        self.calendar = MODES[mode]
        if self.calendar is Calendar.INTEGER:
            self.style = PointStyle(calendar=self.calendar)
            return
        zone, minutes = _read_time_zone(time_zone or UTC)
        year = "+XCCYY" if expanded_year_digits else "CCYY"
        if point_format and (found := _NOT_IN_FORMATS.search(point_format)):
            seen = f"cycle point format {point_format!r} has {found[0]!r}"
            raise BadCycling(seen, "points are part of task ids and file names; leave it out")
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
                f"{text!r} is a truncated date-time", "write the complete date-time"
            )
        return self._writable(text, written.point)

    def interval(self, text: str) -> Interval:
        """Reads an interval such as P1, -P2, P1D or PT6H."""
        return read_interval(self.calendar, text.strip())

    def offset(self, text: str) -> Offset:
        """Reads what stands between the brackets of a node in a graph, such as -P1 or ^."""
        stripped = "".join(text.split())
        if stripped.startswith("^"):
            inner = self.offset(stripped[1:])
            if isinstance(inner, Absolute | FromInitial):
                raise BadCycling(f"[{text}] has a point after ^", "write [^] or [^+P1]")
            return FromInitial(inner)
        if stripped.startswith("$"):
            seen = f"[{text}] counts from the final point, which is not possible in a graph"
            raise BadCycling(seen, "write [^], an interval such as [-P1], or a point")
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
            try:
                return self.point(text)
            except BadCycling as bad:
                raise BadCycling(bad.message, f"{bad.hint}; {FOR_DATES}") from None
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
            last, first = self.style.text(point), self.style.text(initial)
            raise BadCycling(
                f"the final cycle point {last} is before the initial one, {first}",
                f"choose an initial point up to {last} (--icp), or a final point from {first} "
                "on (--fcp)",
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


def _read_time_zone(text: str) -> tuple[str, int]:
    """Returns a time zone as it is written behind a point, and its minutes from UTC."""
    if text == UTC:
        return UTC, 0
    found = _TIME_ZONE.fullmatch(text)
    if found is None or int(found[2]) >= HOURS_PER_DAY:
        raise BadCycling(
            f"cycle point time zone {text!r} is not valid",
            "write Z, +hh or +hhmm, such as -0330",
        )
    minutes = int(found[2]) * 60 + int(found[3] or 0)
    return text.replace(":", ""), -minutes if found[1] == "-" else minutes
