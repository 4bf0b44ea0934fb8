"""Reads and writes durations, sizes and times as people do.

Durations: a number of seconds, or a number with ``ms s m h d``, or ISO 8601 (``PT1H30M``); in
Python a timedelta as well. Retries: how often, or the delays before them.
Sizes: a number of bytes, or a number with ``B kB MB GB TB`` (powers of 1000) or
``KiB MiB GiB TiB`` (powers of 1024). Times are shown in UTC, as ISO 8601.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

from tidewheel.errors import BadSetting
from tidewheel.lazy_dataclasses import pattern

DURATIONS_ACCEPTED = "seconds, a number with ms, s, m, h or d (90s, 10m), or ISO 8601 (PT1H30M)"
SIZES_ACCEPTED = "bytes, or a number with kB, MB, GB, TB, KiB, MiB, GiB or TiB (512MiB)"

# Just under 1 and 10, so that rounding never shows "1000ms" or "10.0s".
_SHOWN_AS_MS_BELOW = 0.9995
_SHOWN_WITH_TENTHS_BELOW = 9.95

_SECONDS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {
    "": 1,
    "b": 1,
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgt", 1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", 1)},
    # One letter alone: 1024, as free, ls and Slurm take it.
    **{letter: 1024**power for power, letter in enumerate("kmgt", 1)},
}
_NUMBER = pattern(r"(\d+(?:\.\d*)?|\.\d+)\s*([A-Za-z]*)")
_ISO = pattern(
    r"P(?:(?P<w>\d+)W)?(?:(?P<d>\d+(?:\.\d+)?)D)?"
    r"(?:T(?:(?P<h>\d+(?:\.\d+)?)H)?(?:(?P<m>\d+(?:\.\d+)?)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?"
)
_ISO_SECONDS = {"w": 604800.0, "d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}


def parse_duration(text: str | float | timedelta, what: str = "duration") -> float:
    """Returns the seconds of a duration; raises BadSetting if the text is no duration."""
    if isinstance(text, timedelta):
        seconds = text.total_seconds()
    elif isinstance(text, int | float) and not isinstance(text, bool):
        try:
            seconds = float(text)
        except OverflowError:  # hundreds of digits
            seconds = math.inf
    else:
        seconds = _parse_duration_text(str(text).strip(), what)
    if not (math.isfinite(seconds) and seconds >= 0):
        raise BadSetting(what, text, DURATIONS_ACCEPTED)
    return seconds


def _parse_duration_text(text: str, what: str) -> float:
    number = _NUMBER.fullmatch(text)
    if number is not None and number[2] in _SECONDS:
        return float(number[1]) * _SECONDS[number[2]]
    iso = _ISO.fullmatch(text.upper())
    if iso is not None and any(iso.groupdict().values()):
        return sum(
            float(value) * _ISO_SECONDS[unit] for unit, value in iso.groupdict("0").items()
        )
    raise BadSetting(what, text, DURATIONS_ACCEPTED)


RETRIES_ACCEPTED = (
    "a number of retries (3), the delay before one retry (1m, PT1M, a timedelta), or a list of "
    "delays"
)
REPEATED_MAX = 10_000
_REPEATED = pattern(r"(\d{1,5}) ?\* ?(.+)")  # 3*PT1M


def parse_retries(
    given: object, what: str = "retries", duration: Callable[..., float] = parse_duration
) -> int | tuple[float, ...]:
    """Returns how often to try again, or the delay in seconds before each retry.

    ``duration`` reads one delay. Raises BadSetting for a value that says neither.
    """
    match given:
        case bool() | float():
            raise BadSetting(what, given, RETRIES_ACCEPTED)
        case int() if given >= 0:
            return given
        case str() if not given.strip().isdigit():  # "3" may mean 3 s, or 3 times
            return _delays([given], what, duration)
        case timedelta():
            return _delays([given], what, duration)
        case Iterable() if not isinstance(given, str | bytes):
            return _delays(given, what, duration)
        case _:
            raise BadSetting(what, given, RETRIES_ACCEPTED)


def _delays(
    given: Iterable[object], what: str, duration: Callable[..., float]
) -> tuple[float, ...]:
    delays: list[float] = []
    for one in given:
        repeated = _REPEATED.fullmatch(one.strip()) if isinstance(one, str) else None
        times, delay = (int(repeated[1]), repeated[2]) if repeated else (1, one)
        if len(delays) + times > REPEATED_MAX:
            raise BadSetting(what, one, f"at most {REPEATED_MAX} delays")
        delays += [duration(delay, what)] * times
    return tuple(delays)


def parse_size(text: str | int, what: str = "size") -> int:
    """Returns the bytes of a size, without fractions of a byte; raises BadSetting if the text
    is no size."""
    number = _NUMBER.fullmatch(str(text).strip())
    if isinstance(text, bool) or number is None or number[2].lower() not in _BYTES:
        raise BadSetting(what, text, SIZES_ACCEPTED)
    unit = _BYTES[number[2].lower()]
    try:
        # Whole numbers stay whole: a float would round sizes above 2**53.
        return int(number[1]) * unit if number[1].isdigit() else int(float(number[1]) * unit)
    except (ValueError, OverflowError):  # thousands of digits
        raise BadSetting(what, text, SIZES_ACCEPTED) from None


def show_duration(seconds: float) -> str:
    """Returns a duration as a person would say it: 350ms, 4.2s, 3m 20s, 2h 5m, 3d 4h."""
    if seconds < _SHOWN_AS_MS_BELOW:
        return f"{max(0.0, seconds) * 1000:.0f}ms"
    if seconds < _SHOWN_WITH_TENTHS_BELOW:
        return f"{seconds:.1f}".removesuffix(".0") + "s"
    whole = round(seconds)
    for unit, size, lower, lower_size in (
        ("d", 86400, "h", 3600),
        ("h", 3600, "m", 60),
        ("m", 60, "s", 1),
    ):
        if whole >= size:
            rest = whole % size // lower_size
            return f"{whole // size}{unit}" + (f" {rest}{lower}" if rest else "")
    return f"{whole}s"


def show_iso_duration(seconds: float) -> str:
    """Returns a duration as flow.cylc writes it: PT1M30S, P1DT6H."""
    rest, parts = seconds, {}
    for unit, length in (("D", 86_400), ("H", 3_600), ("M", 60)):
        count, rest = divmod(rest, length)
        parts[unit] = f"{count:g}{unit}" if count else ""
    clock = parts["H"] + parts["M"] + (f"{rest:g}S" if rest else "")
    if not parts["D"] and not clock:
        clock = "0S"
    return f"P{parts['D']}" + (f"T{clock}" if clock else "")


def show_size(count: float) -> str:
    """Returns a size in the largest binary unit of which it has at least one: 512 B, 1.5
    GiB."""
    for power, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if count >= 1024**power:
            return f"{count / 1024**power:.1f}".removesuffix(".0") + f" {unit}"
    return f"{count:.0f} B"


def exact_size(count: int) -> str:
    """Returns a number of bytes as options take it, in the largest unit that leaves no
    fraction: 1500KB, 2GiB."""
    whole = [(size, unit) for size, unit in _UNITS if count and count % size == 0]
    size, unit = max(whole, default=(1, ""))
    return f"{count // size}{unit}"


_UNITS = tuple(
    (base**power, letter + ending)
    for base, ending in ((1000, "B"), (1024, "iB"))
    for power, letter in enumerate("KMGT", 1)
)


def show_instant(instant: float) -> str:
    """Returns a time as ISO 8601 in UTC, with a fraction of a second only if it has one."""
    return datetime.fromtimestamp(instant, UTC).isoformat().replace("+00:00", "Z")


def show_moment(instant: float) -> str:
    """Returns a time as ISO 8601 in UTC to the millisecond, for things that follow each other
    quickly."""
    text = datetime.fromtimestamp(instant, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
