"""Does `cylc cycle-point`, which moves points; alone, as no other call loads the calendar."""

from __future__ import annotations

import os
import re
from importlib import import_module
from typing import Any

from tidewheel.cli.cylc.arguments import Arguments, BadUsage, options

OPTIONS = options(
    "--offset=, --offset-hours=, --offset-days=, --offset-months=, --offset-years=, --equal=, "
    "--template=, --time-zone=, --num-expanded-year-digits=, --print-year, --print-month, "
    "--print-day, --print-hour"
)
_PRINTED = {"print-year": "CCYY", "print-month": "MM", "print-day": "DD", "print-hour": "%H"}
_UNITS = ("hours", "days", "months", "years")
_INTEGER = re.compile(r"[+-]?\d+")
_INTEGER_OFFSET = re.compile(r"([+-]?)P?(\d+)")
_TIME_PARTS = ("CCYY", "MM", "DD", "%")


def cycle_point(said: Arguments) -> tuple[str, int]:
    """Returns what `cylc cycle-point` prints, and its exit status."""
    point = said.words[0] if said.words else os.environ.get("CYLC_TASK_CYCLE_POINT", "")
    if not point:
        raise BadUsage("cylc cycle-point: name a point, or set CYLC_TASK_CYCLE_POINT")
    if "equal" in said:
        return "", 0 if _parsed(point) == _parsed(said.last("equal")) else 1
    for unit in _UNITS:
        amount = said.last(f"offset-{unit}")
        if amount and not _INTEGER.fullmatch(amount):
            raise BadUsage(f"cylc cycle-point: --offset-{unit} takes a number, not {amount!r}")
        if amount:
            sign, time = "-" if int(amount) < 0 else "", "T" if unit == "hours" else ""
            point = moved(point, f"{sign}P{time}{abs(int(amount))}{unit[0].upper()}")
    if "offset" in said:
        point = moved(point, said.last("offset"))
    chosen = [template for name, template in _PRINTED.items() if name in said]
    if "template" in said:
        chosen.append(os.environ.get(said.last("template"), said.last("template")))
    if len(chosen) > 1:
        raise BadUsage("cylc cycle-point: give only one of --template and --print-…")
    return (_formatted(point, chosen[0]) if chosen else point), 0


def moved(point: str, offset: str) -> str:
    """Returns a point moved by an interval, in the same notation."""
    if _INTEGER.fullmatch(point) and (found := _INTEGER_OFFSET.fullmatch(offset)):
        distance = int(found[2])
        return str(int(point) + (-distance if found[1] == "-" else distance))
    try:
        duration = _isodatetime("parsers").DurationParser().parse(offset.lstrip("+-"))
    except _isodatetime("exceptions").IsodatetimeError as error:
        raise BadUsage(
            f"{offset!r} is not a valid interval: {error}; write P1D or -PT6H"
        ) from None
    return str(_parsed(point) + duration * (-1 if offset.startswith("-") else 1))


def _formatted(point: str, template: str) -> str:
    dumper = _isodatetime("dumpers").TimePointDumper()
    time = _parsed(point)
    if any(part in template for part in _TIME_PARTS):
        return str(dumper.dump(time, template))
    # A time without a date is understood after a T alone.
    found = str(dumper.dump(time, f"T{template}"))
    return found[1:] if found != f"T{template}" else template


def _isodatetime(part: str) -> Any:  # noqa: ANN401 - it has no types
    """Loads a part of the library isodatetime, only when dates are asked for."""
    return import_module(f"metomi.isodatetime.{part}")


def _parsed(point: str) -> Any:  # noqa: ANN401 - as above
    mode = os.environ.get("ISODATETIMECALENDAR", "gregorian")
    _isodatetime("data").Calendar.default().set_mode(mode)
    try:
        return _isodatetime("parsers").TimePointParser().parse(point, dump_as_parsed=True)
    except _isodatetime("exceptions").IsodatetimeError as error:
        raise BadUsage(f"{point!r} is not a valid date-time: {error}") from None
