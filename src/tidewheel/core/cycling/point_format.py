"""A `cycle point format`, compiled: what to write for each part of it, and how to read it back.

Two notations, as Cylc has them: ISO letters (CCYYMMDDThhmmZ, +XCCYY-MM-DDThh+01) and, with a %
in it, some of strftime's (%Y%m%d%H). Everything else in a format is written as it stands.

A format must be readable: it has the year, and nothing is left out between the largest and the
smallest unit that it names, or points would be written that mean something else when read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from tidewheel.core.cycling.calendar import SECONDS_PER_MINUTE, BadCycling

FORMAT_LENGTH_MAX = 100
EXPANDED_YEAR_DIGITS_MAX = 6
FORMATS_ACCEPTED = (
    "write a year and then as many smaller units as needed, for example CCYYMMDDThhmmZ, "
    "CCYY-MM-DD, CCYYDDD, CCYYWwwD, +XCCYYMMDDThhmm+0100 or %Y%m%d%H"
)


class FormatPart(IntEnum):
    """Says what can be written; the number is its place among the values of a point."""

    YEAR = 0  # of four digits, the whole years of 10,000 and the sign left out
    MONTH = 1
    DAY = 2
    HOUR = 3
    MINUTE = 4
    SECOND = 5
    SIGN = 6
    EXPANDED = 7
    ORDINAL = 8
    WEEK = 9
    WEEKDAY = 10
    ZONE_SIGN = 11
    ZONE_HOUR = 12
    ZONE_MINUTE = 13
    EPOCH = 14


# (part, how it is written, how it is read), by the letters that stand for it.
_Piece = tuple[FormatPart, str, str]
_TWO = r"(\d\d)"
_DATE: dict[str, _Piece] = {
    "+": (FormatPart.SIGN, "%s", r"([-+])"),
    "CCYY": (FormatPart.YEAR, "%04d", r"(\d{4})"),
    "MM": (FormatPart.MONTH, "%02d", _TWO),
    "DDD": (FormatPart.ORDINAL, "%03d", r"(\d{3})"),
    "DD": (FormatPart.DAY, "%02d", _TWO),
    "Www": (FormatPart.WEEK, "W%02d", r"W(\d\d)"),
    "D": (FormatPart.WEEKDAY, "%d", r"(\d)"),
}
_TIME: dict[str, _Piece] = {
    "hh": (FormatPart.HOUR, "%02d", _TWO),
    "mm": (FormatPart.MINUTE, "%02d", _TWO),
    "ss": (FormatPart.SECOND, "%02d", _TWO),
}
_ZONE: dict[str, _Piece] = {
    "+": (FormatPart.ZONE_SIGN, "%s", r"([-+])"),
    "hh": (FormatPart.ZONE_HOUR, "%02d", _TWO),
    "mm": (FormatPart.ZONE_MINUTE, "%02d", _TWO),
}
_STRFTIME: dict[str, tuple[str | _Piece, ...]] = {
    "%Y": (_DATE["CCYY"],),
    "%m": (_DATE["MM"],),
    "%d": (_DATE["DD"],),
    "%j": (_DATE["DDD"],),
    "%H": (_TIME["hh"],),
    "%M": (_TIME["mm"],),
    "%S": (_TIME["ss"],),
    "%F": (_DATE["CCYY"], "-", _DATE["MM"], "-", _DATE["DD"]),
    "%X": (_TIME["hh"], ":", _TIME["mm"], ":", _TIME["ss"]),
    "%z": (_ZONE["+"], _ZONE["hh"], _ZONE["mm"]),
    "%s": ((FormatPart.EPOCH, "%d", r"(-?\d{1,18})"),),
}
_DATE_LETTERS = re.compile(r"\+(?=X)|X|CCYY|CC|YY|MM|DDD|DD|Www|D|z")
_TIME_LETTERS = re.compile(r"hh|mm|ss|ii|nn|tt")
_ZONE_LETTERS = re.compile(r"hh|mm|\+")
_ZONE_AT_END = re.compile(r"(?P<zone>Z|[+-](?:hh(?::?mm)?|\d\d(?::?\d\d)?))$")
_STRFTIME_LETTERS = re.compile(r"%.?")
_CHAINS = (
    (
        FormatPart.YEAR,
        FormatPart.MONTH,
        FormatPart.DAY,
        FormatPart.HOUR,
        FormatPart.MINUTE,
        FormatPart.SECOND,
    ),
    (
        FormatPart.YEAR,
        FormatPart.ORDINAL,
        FormatPart.HOUR,
        FormatPart.MINUTE,
        FormatPart.SECOND,
    ),
    (
        FormatPart.YEAR,
        FormatPart.WEEK,
        FormatPart.WEEKDAY,
        FormatPart.HOUR,
        FormatPart.MINUTE,
        FormatPart.SECOND,
    ),
    (FormatPart.EPOCH,),
)
_UNITS = frozenset(part for chain in _CHAINS for part in chain)


@dataclass(frozen=True, slots=True)
class PointFormat:
    """A template for `%`, the parts it takes in order, and the expression that reads it."""

    template: str
    parts: tuple[FormatPart, ...]
    pattern: re.Pattern[str]
    zone_minutes: int | None  # written in this time zone, whatever the workflow's


@lru_cache(maxsize=64)
def compile_format(text: str, expanded_year_digits: int) -> PointFormat:
    """Refuses what could not be read back."""
    if not 0 <= expanded_year_digits <= EXPANDED_YEAR_DIGITS_MAX:
        raise BadCycling(
            f"the number of expanded year digits is {expanded_year_digits}",
            f"give 0 to {EXPANDED_YEAR_DIGITS_MAX}",
        )
    if len(text) > FORMAT_LENGTH_MAX or not text.isascii() or not text.isprintable():
        raise _bad(text, f"has more than {FORMAT_LENGTH_MAX} or unprintable characters")
    zone_minutes = None
    if "%" in text:
        pieces = _strftime_pieces(text)
    else:
        pieces, zone_minutes = _iso_pieces(text, expanded_year_digits)
    taken = [piece for piece in pieces if not isinstance(piece, str)]
    parts = tuple(part for part, _, _ in taken)
    _check_readable(text, parts, expanded_year_digits)
    return PointFormat(
        template="".join(
            piece.replace("%", "%%") if isinstance(piece, str) else piece[1] for piece in pieces
        ),
        parts=parts,
        pattern=re.compile(
            "".join(
                re.escape(piece) if isinstance(piece, str) else piece[2] for piece in pieces
            ),
            re.ASCII,
        ),
        zone_minutes=zone_minutes,
    )


def zone_minutes_from(sign: str, hour: int, minute: int) -> int:
    """+0530 is 330, -0330 is -210."""
    minutes = hour * SECONDS_PER_MINUTE + minute
    return -minutes if sign == "-" else minutes


def _iso_pieces(text: str, digits: int) -> tuple[list[str | _Piece], int | None]:
    date, has_time, rest = text.partition("T")
    pieces = _split(text, date, _DATE_LETTERS, _date_pieces(digits))
    if not has_time:
        return pieces, None
    zone = _ZONE_AT_END.search(rest)
    time = rest[: zone.start()] if zone else rest
    pieces += ["T", *_split(text, time, _TIME_LETTERS, _TIME)]
    if zone is None:
        return pieces, None
    written = zone["zone"]
    if written == "Z":
        return [*pieces, "Z"], 0
    if "hh" in written:
        return pieces + _split(text, written, _ZONE_LETTERS, _ZONE), None
    numbers = written[1:].replace(":", "")
    minutes = zone_minutes_from(written[0], int(numbers[:2]), int(numbers[2:] or 0))
    return [*pieces, written], minutes


def _date_pieces(digits: int) -> dict[str, _Piece]:
    return {**_DATE, "X": (FormatPart.EXPANDED, f"%0{digits}d", rf"(\d{{{digits}}})")}


def _split(
    text: str, piece: str, letters: re.Pattern[str], known: dict[str, _Piece]
) -> list[str | _Piece]:
    pieces: list[str | _Piece] = []
    end = 0
    for found in letters.finditer(piece):
        if found[0] not in known:
            raise _bad(text, f"has {found[0]!r}, which points cannot be read back from")
        pieces += [piece[end : found.start()], known[found[0]]]
        end = found.end()
    return [*pieces, piece[end:]]


def _strftime_pieces(text: str) -> list[str | _Piece]:
    pieces: list[str | _Piece] = []
    end = 0
    for found in _STRFTIME_LETTERS.finditer(text):
        if found[0] not in _STRFTIME:
            raise _bad(text, f"has {found[0]!r}, which is none of {', '.join(_STRFTIME)}")
        pieces += [text[end : found.start()], *_STRFTIME[found[0]]]
        end = found.end()
    return [*pieces, text[end:]]


def _check_readable(text: str, parts: tuple[FormatPart, ...], digits: int) -> None:
    units = [part for part in parts if part in _UNITS]
    if len(set(parts)) != len(parts):
        raise _bad(text, "names a unit twice")
    if not any(set(units) == set(chain[: len(units)]) for chain in _CHAINS if units):
        raise _bad(text, "leaves out a unit, so that points could not be told apart")
    signs = {FormatPart.SIGN, FormatPart.EXPANDED} & set(parts)
    if len(signs) != (2 if digits else 0):
        raise _bad(
            text,
            f"must {'have' if digits else 'not have'} +X before CCYY, as 'cycle point num "
            f"expanded year digits' is {digits}",
        )


def _bad(text: str, why: str) -> BadCycling:
    return BadCycling(f"cycle point format {text!r} {why}", FORMATS_ACCEPTED)
