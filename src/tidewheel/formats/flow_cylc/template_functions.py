"""What a flow.cylc template may call besides Jinja2's own filters and tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, cast

_UNIT_SECONDS = {
    "s": 1.0,
    "seconds": 1.0,
    "m": 60.0,
    "minutes": 60.0,
    "h": 3600.0,
    "hours": 3600.0,
    "d": 86400.0,
    "days": 86400.0,
    "w": 604800.0,
    "weeks": 604800.0,
}


class TemplateRaised(Exception):
    """The template itself said that something is wrong."""


def pad(value: object, length: int | str, fillchar: str = " ") -> str:
    return str(value).rjust(int(length), str(fillchar))


def duration_as(duration: str, units: str) -> float:
    """`'PT1H' | duration_as('m')` is 60.0."""
    from metomi.isodatetime.parsers import DurationParser  # noqa: PLC0415 - slow, seldom used

    seconds = _UNIT_SECONDS.get(units.lower())
    if seconds is None:
        raise ValueError(f"no unit {units!r}; accepted are {', '.join(_UNIT_SECONDS)}")
    parser: Any = DurationParser()  # metomi's functions have no types
    return float(parser.parse(duration).get_seconds()) / seconds


def strftime(date: str, form: str, written: str | None = None) -> str:
    """`'20300101T00Z' | strftime('%Y')`; ``written`` is how an unusual date is to be read."""
    from metomi.isodatetime.parsers import TimePointParser  # noqa: PLC0415 - slow, seldom used

    parser: Any = cast("Any", TimePointParser)()
    point = parser.strptime(date, written) if written else parser.parse(date)
    return str(point.strftime(form))


def raise_(message: object) -> str:
    raise TemplateRaised(str(message))


def assert_(holds: object, message: object) -> str:
    if not holds:
        raise TemplateRaised(str(message))
    return ""


FILTERS: dict[str, Callable[..., object]] = {
    "pad": pad,
    "duration_as": duration_as,
    "strftime": strftime,
}
FUNCTIONS: dict[str, Callable[..., object]] = {"raise": raise_, "assert": assert_}


def environment_names() -> dict[str, str]:
    """`CYLC_…` variables are known by name, except for what describes a Cylc installation."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith("CYLC_") and name not in ("CYLC_VERSION", "CYLC_ENV_NAME")
    }
