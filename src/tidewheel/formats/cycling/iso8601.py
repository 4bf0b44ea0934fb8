"""Reads the texts of ISO 8601 as Cylc users write them: date-times, intervals, recurrences.

metomi knows the many notations; only its tables are used. Its date-times are not, as their
calendar is one for the whole process and their arithmetic walks day by day.

A recurrence has up to three parts between slashes, in one of these forms (n, and often R with
it, may be left out; so may a start, which is then the initial point, and an end, which is then
the final point):

    Rn/start/interval     start/interval     interval     Rn//interval     R1     R1/start
    Rn/interval/end       interval/end       Rn/interval  Rn//end
    Rn/start/end

A start or end never begins with P, an interval always does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING

from tidewheel.core.cycling.calendar import (
    DAYS_PER_WEEK,
    HOURS_PER_DAY,
    SECONDS_PER_DAY,
    SECONDS_PER_HOUR,
    SECONDS_PER_MINUTE,
    BadCycling,
    Calendar,
    Interval,
    Point,
    days_from_date,
    days_in_month,
    days_in_year,
    first_day_of_week_year,
    weeks_in_year,
)
from tidewheel.core.cycling.offset import TruncatedPoint
from tidewheel.core.cycling.sequence import Reckoning
from tidewheel.lazy_dataclasses import dataclass, pattern

if TYPE_CHECKING:
    from metomi.isodatetime.parsers import TimePointParser

# Reads a date-time in ISO 8601, whole or truncated, as Cylc users write it.

TEXT_LENGTH_MAX = 100
POINTS_ACCEPTED = (
    "write a date-time such as 2000, 20000101T00Z or 2000-01-01T06:00+01:00, or a "
    "truncated date-time such as T06, T-30, 01T00, --0229 or W-1T00"
)

_LEAP_YEAR = 2000
_ZONE_MINUTES_MAX = 24 * 60
_NOT_ASCII_OR_LONG = f"a cycle point has at most {TEXT_LENGTH_MAX} ASCII characters"
# The dashes that people leave out where nothing else could be meant.
_LEFT_OUT = (
    (re.compile(r"\d\dT"), "---"),
    (re.compile(r"\d{4}T"), "--"),
    (re.compile(r"\d{3}T|\d?W"), "-"),
)


@dataclass(frozen=True, slots=True)
class Written:
    """Holds a whole date-time, with the time zone and kind of date it was written with."""

    point: Point
    utc_offset_minutes: int
    reckoning: Reckoning = Reckoning.MONTH


class DateTimeText:
    """Reads date-times by a workflow's calendar, time zone and number of year digits."""

    def __init__(
        self, calendar: Calendar, utc_offset_minutes: int, expanded_year_digits: int
    ) -> None:
        self._calendar = calendar
        self._utc_offset_minutes = utc_offset_minutes
        self._digits = expanded_year_digits
        self._parser = _parser(expanded_year_digits)

    def read(self, text: str) -> Written | TruncatedPoint:
        """Returns what the text stands for; raises BadCycling if it is no date-time."""
        if len(text) > TEXT_LENGTH_MAX or not text.isascii():
            seen = f"{text[:TEXT_LENGTH_MAX]!r} is too long or not ASCII"
            raise BadCycling(seen, _NOT_ASCII_OR_LONG)
        if re.fullmatch(r"\d\d", text):
            seen = f"{text!r} is a century of two digits, which is not accepted"
            raise BadCycling(seen, f"write T{text} for the hour or {text}00 for the year")
        date, time = self._parts(text)
        utc_offset_minutes = self._zone(text, time)
        if date.get("truncated") or ("century" not in date and "year_of_century" in date):
            return self._truncated(text, date, time, utc_offset_minutes)
        return self._whole(text, date, time, utc_offset_minutes)

    def _parts(self, text: str) -> tuple[dict[str, str], dict[str, str]]:
        completed = text + "00" if text.endswith("T") else text
        dashes = [dashes for start, dashes in _LEFT_OUT if start.match(completed)]
        for prefix in ("", *dashes):
            try:
                date, time, _ = self._parser.get_info(  # type: ignore[no-untyped-call]
                    prefix + completed
                )
            except ValueError:
                continue
            return (
                {name: str(value) for name, value in date.items() if value is not None},
                {name: str(value) for name, value in time.items() if value is not None},
            )
        hint = POINTS_ACCEPTED
        if text[:1] in ("+", "-"):
            hint += (
                f"; for a year with a sign, set 'cycle point num expanded year digits' "
                f"(now {self._digits})"
            )
        raise BadCycling(f"{text!r} is not a valid date-time", hint)

    def _zone(self, text: str, time: Mapping[str, str]) -> int:
        if "time_zone_utc" in time:
            return 0
        if "time_zone_hour" not in time:
            return self._utc_offset_minutes
        minutes = int(time["time_zone_hour"]) * 60 + int(time.get("time_zone_minute", 0))
        if abs(minutes) > _ZONE_MINUTES_MAX:
            raise BadCycling(f"{text!r} has a time zone more than a day from UTC")
        return minutes

    def _whole(
        self, text: str, date: Mapping[str, str], time: Mapping[str, str], utc_offset: int
    ) -> Written:
        year = self._year(text, date)
        calendar = self._calendar
        reckoning = Reckoning.MONTH
        if "day_of_year" in date:
            reckoning = Reckoning.ORDINAL
            first, day = days_from_date(calendar, year, 1, 1), int(date["day_of_year"])
            day_max = days_in_year(calendar, year)
        elif "week_of_year" in date:
            reckoning = Reckoning.WEEK
            weekday = int(date.get("day_of_week", 1))
            first = first_day_of_week_year(calendar, year)
            day = (int(date["week_of_year"]) - 1) * DAYS_PER_WEEK + weekday
            day_max = weeks_in_year(calendar, year) * DAYS_PER_WEEK
            _check(text, "day of the week", weekday, 1, DAYS_PER_WEEK)
        else:
            month, day = int(date.get("month_of_year", 1)), int(date.get("day_of_month", 1))
            _check(text, "month", month, 1, 12)
            first = days_from_date(calendar, year, month, 1)
            day_max = days_in_month(calendar, year, month)
        if not 1 <= day <= day_max:
            raise BadCycling(f"{text!r} is not a date of the {calendar.value} calendar")
        hour, minute, second = (part or 0 for part in _time_fields(text, time))
        seconds = (first + day - 1) * SECONDS_PER_DAY + hour * SECONDS_PER_HOUR + second
        seconds += (minute - utc_offset) * SECONDS_PER_MINUTE
        return Written(Point(seconds), utc_offset, reckoning)

    def _year(self, text: str, date: Mapping[str, str]) -> int:
        if "year_sign" in date and not self._digits:
            raise BadCycling(
                f"{text!r} has a year with a sign",
                "set 'cycle point num expanded year digits', or write the year without a sign",
            )
        year = int(date["century"]) * 100 + int(date.get("year_of_century", 0))
        year += int(date.get("expanded_year") or 0) * 10_000
        return -year if date.get("year_sign") == "-" else year

    def _truncated(
        self, text: str, date: Mapping[str, str], time: Mapping[str, str], utc_offset: int
    ) -> TruncatedPoint:
        fields = {name: int(value) for name, value in date.items() if name in _DATE_FIELDS}
        for name, value in fields.items():
            _check(text, name.replace("_", " "), value, *_DATE_FIELDS[name][1:])
        month_days = days_in_month(self._calendar, _LEAP_YEAR, fields.get("month_of_year", 1))
        _check(text, "day of the month", fields.get("day_of_month", 1), 1, month_days)
        year_days = days_in_year(self._calendar, _LEAP_YEAR)
        _check(text, "day of the year", fields.get("day_of_year", 1), 1, year_days)
        hour, minute, second = _time_fields(text, time)
        return TruncatedPoint(
            calendar=self._calendar,
            utc_offset_minutes=utc_offset,
            hour=hour,
            minute=minute,
            second=second,
            **{_DATE_FIELDS[name][0]: value for name, value in fields.items()},
        )


# By metomi's name: the field of a truncated point, its first and last value.
_DATE_FIELDS = {
    "year_of_century": ("year_of_century", 0, 99),
    "year_of_decade": ("year_of_decade", 0, 9),
    "month_of_year": ("month", 1, 12),
    "week_of_year": ("week", 1, 53),
    "day_of_year": ("day_of_year", 1, 366),
    "day_of_month": ("day_of_month", 1, 31),
    "day_of_week": ("day_of_week", 1, 7),
}


@lru_cache(maxsize=8)
def _parser(expanded_year_digits: int) -> TimePointParser:
    """Returns metomi's parser; it is kept, since making it compiles a hundred expressions."""
    from metomi.isodatetime.parsers import TimePointParser

    # metomi declares itself typed and has untyped functions; here and above.
    return TimePointParser(  # type: ignore[no-untyped-call]
        num_expanded_year_digits=expanded_year_digits,
        allow_truncated=True,
        default_to_unknown_time_zone=True,
    )


def _check(text: str, what: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise BadCycling(f"{text!r} has {what} {value}", f"expected {low} to {high}")


def _time_fields(
    text: str, time: Mapping[str, str]
) -> tuple[int | None, int | None, int | None]:
    """Returns hour, minute and second, None if not given; fractions go into smaller units."""
    hour, minute, second = (
        int(time[name]) if name in time else None
        for name in ("hour_of_day", "minute_of_hour", "second_of_minute")
    )
    _check(text, "hour", hour or 0, 0, HOURS_PER_DAY)
    _check(text, "minute", minute or 0, 0, 59)
    _check(text, "second", second or 0, 0, 59)
    if hour == HOURS_PER_DAY and (minute or second):
        raise BadCycling(f"{text!r} is later than 24:00")
    if "hour_of_day_decimal" in time:
        whole = _fraction(text, time["hour_of_day_decimal"], SECONDS_PER_HOUR)
        minute, second = divmod(whole, SECONDS_PER_MINUTE)
    if "minute_of_hour_decimal" in time:
        second = _fraction(text, time["minute_of_hour_decimal"], SECONDS_PER_MINUTE)
    if "second_of_minute_decimal" in time:
        _fraction(text, time["second_of_minute_decimal"], 1)
    return hour, minute, second


def _fraction(text: str, digits: str, unit_seconds: int) -> int:
    from fractions import Fraction

    seconds = Fraction(f"0.{digits}") * unit_seconds
    if seconds.denominator != 1:
        raise BadCycling(f"{text!r} has a fraction of a second", "points are whole seconds")
    return int(seconds)


# Reads intervals, and points with intervals behind them such as T00+P1D-PT6H.

INTERVALS_IN_A_ROW_MAX = 8
FOR_DATES = 'for dates, set cycling mode = gregorian (Python: cycling="gregorian")'
INTEGER_INTERVALS_ACCEPTED = f"write P and a whole number, such as P1 or -P2; {FOR_DATES}"
INTERVALS_ACCEPTED = "write ISO 8601 such as P1D, PT6H, P1Y2M, P1W or P1DT12H30M"

_NUMBER = r"\d{1,15}"
_DECIMAL = rf"{_NUMBER}(?:[.,]\d{{1,15}})?"
_INTEGER = pattern(rf"P({_NUMBER})", re.ASCII)
_WEEKS = pattern(rf"P({_NUMBER})W", re.ASCII)
_UNITS = pattern(
    rf"P(?=.)(?:({_NUMBER})Y)?(?:({_NUMBER})M)?(?:({_NUMBER})D)?"
    rf"(?:T(?=.)(?:({_DECIMAL})H)?(?:({_DECIMAL})M)?(?:({_DECIMAL})S)?)?",
    re.ASCII,
)
# The form of ISO 8601 that looks like a date: P0001-02-03T04:05:06.
_LIKE_A_DATE = pattern(r"P(\d{4})-?(\d\d)-?(\d\d)(?:T(\d\d):?(\d\d)(?::?(\d\d))?)?", re.ASCII)
_SIGNED = pattern(r"([+-])(P[^+-]*)")


def read_interval(calendar: Calendar, text: str) -> Interval:
    """Returns the interval of a text, which may have a sign; BadCycling if it is none."""
    sign = -1 if text.startswith("-") else 1
    unsigned = text.removeprefix("-") if sign < 0 else text.removeprefix("+")
    if calendar is Calendar.INTEGER:
        number = _INTEGER.fullmatch(unsigned)
        if number is None:
            raise BadCycling(f"{text!r} is not an integer interval", INTEGER_INTERVALS_ACCEPTED)
        return Interval(units=sign * int(number[1]))
    return _read_date_time_interval(text, unsigned) * sign


def read_chain(calendar: Calendar, text: str) -> tuple[str, tuple[Interval, ...]]:
    """Returns the text before the first signed interval, and the intervals in their order."""
    start = re.search(r"[+-]P", text)
    if start is None:
        return text, ()
    base, rest = text[: start.start()], text[start.start() :]
    pieces = _SIGNED.findall(rest)
    if "".join(sign + piece for sign, piece in pieces) != rest:
        seen = f"{rest!r} is not a list of intervals"
        raise BadCycling(seen, "write each with its sign, such as +P1D or -P1M+P1D")
    if len(pieces) > INTERVALS_IN_A_ROW_MAX:
        seen = f"{text[:100]!r} has {len(pieces)} intervals in a row"
        raise BadCycling(seen, f"write at most {INTERVALS_IN_A_ROW_MAX}")
    return base, tuple(read_interval(calendar, sign + piece) for sign, piece in pieces)


def _read_date_time_interval(text: str, unsigned: str) -> Interval:
    from fractions import Fraction

    if weeks := _WEEKS.fullmatch(unsigned):
        return Interval(units=int(weeks[1]) * 7 * SECONDS_PER_DAY)
    found = _UNITS.fullmatch(unsigned) or _LIKE_A_DATE.fullmatch(unsigned)
    if found is None or not any(found.groups()):
        raise BadCycling(f"{text[:100]!r} is not a valid interval", INTERVALS_ACCEPTED)
    years, months, days, hours, minutes, seconds = (
        Fraction((group or "0").replace(",", ".")) for group in found.groups()
    )
    exact = (
        days * SECONDS_PER_DAY
        + hours * SECONDS_PER_HOUR
        + minutes * SECONDS_PER_MINUTE
        + seconds
    )
    if exact.denominator != 1:
        raise BadCycling(f"{text!r} has a fraction of a second", "intervals are whole seconds")
    return Interval(years=int(years), months=int(months), units=int(exact))


# Takes the text of recurrences apart: lists, exclusions, and the forms of ISO 8601.

RECURRENCE_LENGTH_MAX = 10_000
RECURRENCES_MAX = 1000  # in one list, of recurrences or of exclusions
RECURRENCES_ACCEPTED = (
    "write R1, an interval (P1D), a repeating time (T00), or [R[n]/]start/interval, "
    "R[n]/interval/end or R[n]/start/end, where a start or end may be ^ or $"
)

CRON_ACCEPTED = (
    "write T02 for every day at 02:00, T-30 for every hour at half past, PT6H for every six "
    "hours, or W-1T02 for every Monday"
)

# Neither daily, @daily nor a line of cron is mistaken for a date-time.
_OF_OTHERS = pattern(r"@?[A-Za-z]{4,}|@.*|.*\*.*")
_REPETITIONS = pattern(r"R(\d{0,15})", re.ASCII)


class RecurrenceKind(Enum):
    """Names the forms of a recurrence: each says from where its points are counted."""

    FROM_START = "start and steps"
    TO_END = "steps back from the end"
    BETWEEN = "start and end"


# The parts in a row: R if it is written, P an interval, T a point, - nothing.
_FORMS: dict[str, tuple[RecurrenceKind, tuple[str, ...]]] = {
    "T": (RecurrenceKind.FROM_START, ("start",)),
    "TP": (RecurrenceKind.FROM_START, ("start", "interval")),
    "P": (RecurrenceKind.FROM_START, ("interval",)),
    "PT": (RecurrenceKind.TO_END, ("interval", "end")),
    "R": (RecurrenceKind.FROM_START, ()),
    "R-": (RecurrenceKind.FROM_START, ()),
    "RT": (RecurrenceKind.FROM_START, ("start",)),
    "RTP": (RecurrenceKind.FROM_START, ("start", "interval")),
    "R-P": (RecurrenceKind.FROM_START, ("interval",)),
    "RP": (RecurrenceKind.TO_END, ("interval",)),
    "RPT": (RecurrenceKind.TO_END, ("interval", "end")),
    "R-T": (RecurrenceKind.TO_END, ("end",)),
    "RTT": (RecurrenceKind.BETWEEN, ("start", "end")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Holds a recurrence in parts; an empty start or end stands for that of its context.

    The context is the workflow, or the recurrence from which this one is excluded.
    """

    text: str
    kind: RecurrenceKind
    repetitions: int | None = None
    repeats: bool = True  # whether R was written
    start: str = ""
    interval: str | None = None
    end: str = ""


def split_recurrences(text: str) -> list[str]:
    """Returns the recurrences of a heading: separated by commas that no parentheses enclose."""
    if len(text) > RECURRENCE_LENGTH_MAX:
        seen = f"{text[:50]!r}… is a recurrence of {len(text)} characters"
        raise BadCycling(seen, f"write at most {RECURRENCE_LENGTH_MAX}")
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            break
        if letter == "," and not depth:
            parts.append(text[start:index].strip())
            start = index + 1
    if depth:
        raise BadCycling(f"{text!r} has parentheses that do not match")
    parts.append(text[start:].strip())
    if "" in parts:
        raise BadCycling(f"{text!r} has an empty recurrence", RECURRENCES_ACCEPTED)
    if len(parts) > RECURRENCES_MAX:
        raise BadCycling(
            f"{len(parts)} recurrences in a list", f"write at most {RECURRENCES_MAX}"
        )
    return parts


def split_exclusions(text: str) -> tuple[str, list[str]]:
    """Returns a recurrence without its exclusions, and the recurrences and points excluded."""
    body, mark, rest = text.partition("!")
    if not mark:
        return body, []
    if "!" in rest:
        raise BadCycling(
            f"{text!r} has more than one '!'", "exclude several at once: !(T00,T06)"
        )
    if rest.startswith("(") and rest.endswith(")"):
        return body, split_recurrences(rest[1:-1])
    exclusions = split_recurrences(rest)
    if len(exclusions) > 1:
        raise BadCycling(
            f"{text!r} excludes a list without parentheses", "write it as !(T00,T06)"
        )
    return body, exclusions


def read_form(text: str) -> Form:
    """Returns the parts of a recurrence, written without exclusions and blanks."""
    parts = text.split("/")
    repetitions, repeats = None, False
    if found := _REPETITIONS.fullmatch(parts[0]):
        repeats = True
        repetitions = int(found[1]) if found[1] else None
        parts = parts[1:]
    if len(parts) > 1 and parts[-1] == "":
        parts.pop()
    kinds = "".join("P" if part[:1] == "P" else "T" if part else "-" for part in parts)
    form = _FORMS.get(("R" if repeats else "") + kinds)
    is_foreign = _OF_OTHERS.fullmatch(text) is not None
    if form is None or is_foreign or any(part.startswith("R") for part in parts):
        accepted = CRON_ACCEPTED if is_foreign else RECURRENCES_ACCEPTED
        raise BadCycling(f"{text!r} is not a valid recurrence", accepted)
    if repetitions == 0:
        raise BadCycling(f"{text!r} has no cycle point", "write R1 for one cycle point")
    kind, names = form
    if not names and repetitions != 1:
        raise BadCycling(f"{text!r} has neither a point nor an interval", RECURRENCES_ACCEPTED)
    named = dict(zip(names, parts[-len(names) :], strict=True)) if names else {}
    return Form(
        text=text,
        kind=kind,
        repetitions=repetitions,
        repeats=repeats,
        start=named.get("start", ""),
        interval=named.get("interval"),
        end=named.get("end", ""),
    )
