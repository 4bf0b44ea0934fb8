"""Reads intervals, and points with intervals behind them such as T00+P1D-PT6H."""

from __future__ import annotations

import re
from fractions import Fraction

from tidewheel.core.cycling.calendar import (
    SECONDS_PER_DAY,
    SECONDS_PER_HOUR,
    SECONDS_PER_MINUTE,
    BadCycling,
    Calendar,
)
from tidewheel.core.cycling.interval import Interval

INTERVALS_IN_A_ROW_MAX = 8
INTEGER_INTERVALS_ACCEPTED = "write P and a whole number, such as P1 or -P2"
INTERVALS_ACCEPTED = "write ISO 8601 such as P1D, PT6H, P1Y2M, P1W or P1DT12H30M"

_NUMBER = r"\d{1,15}"
_DECIMAL = rf"{_NUMBER}(?:[.,]\d{{1,15}})?"
_INTEGER = re.compile(rf"P({_NUMBER})", re.ASCII)
_WEEKS = re.compile(rf"P({_NUMBER})W", re.ASCII)
_UNITS = re.compile(
    rf"P(?=.)(?:({_NUMBER})Y)?(?:({_NUMBER})M)?(?:({_NUMBER})D)?"
    rf"(?:T(?=.)(?:({_DECIMAL})H)?(?:({_DECIMAL})M)?(?:({_DECIMAL})S)?)?",
    re.ASCII,
)
# The form of ISO 8601 that looks like a date: P0001-02-03T04:05:06.
_LIKE_A_DATE = re.compile(
    r"P(\d{4})-?(\d\d)-?(\d\d)(?:T(\d\d):?(\d\d)(?::?(\d\d))?)?", re.ASCII
)
_SIGNED = re.compile(r"([+-])(P[^+-]*)")


def read_interval(calendar: Calendar, text: str) -> Interval:
    """An interval with or without a sign."""
    sign = -1 if text.startswith("-") else 1
    unsigned = text.removeprefix("-") if sign < 0 else text.removeprefix("+")
    if calendar is Calendar.INTEGER:
        number = _INTEGER.fullmatch(unsigned)
        if number is None:
            raise BadCycling(f"{text!r} is no integer interval", INTEGER_INTERVALS_ACCEPTED)
        return Interval(units=sign * int(number[1]))
    return _read_date_time_interval(text, unsigned) * sign


def read_chain(calendar: Calendar, text: str) -> tuple[str, tuple[Interval, ...]]:
    """The text before the first signed interval, and the intervals in their order."""
    start = re.search(r"[+-]P", text)
    if start is None:
        return text, ()
    base, rest = text[: start.start()], text[start.start() :]
    pieces = _SIGNED.findall(rest)
    if "".join(sign + piece for sign, piece in pieces) != rest:
        raise BadCycling(
            f"{rest!r} is no row of intervals",
            "write each with its sign, such as +P1D or -P1M+P1D",
        )
    if len(pieces) > INTERVALS_IN_A_ROW_MAX:
        raise BadCycling(
            f"{text[:100]!r} has {len(pieces)} intervals in a row",
            f"write at most {INTERVALS_IN_A_ROW_MAX}",
        )
    return base, tuple(read_interval(calendar, sign + piece) for sign, piece in pieces)


def _read_date_time_interval(text: str, unsigned: str) -> Interval:
    if weeks := _WEEKS.fullmatch(unsigned):
        return Interval(units=int(weeks[1]) * 7 * SECONDS_PER_DAY)
    found = _UNITS.fullmatch(unsigned) or _LIKE_A_DATE.fullmatch(unsigned)
    if found is None or not any(found.groups()):
        raise BadCycling(f"{text[:100]!r} is no interval", INTERVALS_ACCEPTED)
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
