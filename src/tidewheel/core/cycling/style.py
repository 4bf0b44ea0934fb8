"""A point style says how points are written in a workflow, and reads such a text again.

Task ids are made of these texts, so both ways are quick, and a text is never ambiguous: a point
that the format cannot express is refused or, by `rounded`, moved to the last one that it can.

A `PointFormat` is a `cycle point format`, compiled: what to write for each part of it, and how
to read it back. There are two notations, as Cylc has them: ISO letters (CCYYMMDDThhmmZ,
+XCCYY-MM-DDThh+01) and, with a % in it, some of strftime's (%Y%m%d%H). Everything else in a
format is written as it stands.

A format must be readable: it has the year, and nothing is left out between the largest and the
smallest unit that it names, or points would be written that mean something else when read.
"""

from __future__ import annotations

import re
from dataclasses import field
from enum import IntEnum
from functools import lru_cache

from tidewheel.core.cycling.calendar import (
    DAYS_PER_WEEK,
    HOURS_PER_DAY,
    MONTHS_PER_YEAR,
    SECONDS_PER_DAY,
    SECONDS_PER_HOUR,
    SECONDS_PER_MINUTE,
    BadCycling,
    Calendar,
    Point,
    date_from_days,
    day_of_year,
    days_from_date,
    days_in_month,
    days_in_year,
    first_day_of_week_year,
    week_date,
    weeks_in_year,
)
from tidewheel.lazy_dataclasses import NamedTuple, dataclass, pattern

FORMAT_LENGTH_MAX = 100
EXPANDED_YEAR_DIGITS_MAX = 6
FORMATS_ACCEPTED = (
    "write a year and then as many smaller units as needed, for example CCYYMMDDThhmmZ, "
    "CCYY-MM-DD, CCYYDDD, CCYYWwwD, +XCCYYMMDDThhmm+0100 or %Y%m%d%H"
)


class FormatPart(IntEnum):
    """Names the parts of a written point; each number is the index of the part's value."""

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
_DATE_LETTERS = pattern(r"\+(?=X)|X|CCYY|CC|YY|MM|DDD|DD|Www|D|z")
_TIME_LETTERS = pattern(r"hh|mm|ss|ii|nn|tt")
_ZONE_LETTERS = pattern(r"hh|mm|\+")
_ZONE_AT_END = pattern(r"(?P<zone>Z|[+-](?:hh(?::?mm)?|\d\d(?::?\d\d)?))$")
_STRFTIME_LETTERS = pattern(r"%.?")
_OF_A_DAY = (FormatPart.HOUR, FormatPart.MINUTE, FormatPart.SECOND)
_CHAINS = (
    (FormatPart.YEAR, FormatPart.MONTH, FormatPart.DAY, *_OF_A_DAY),
    (FormatPart.YEAR, FormatPart.ORDINAL, *_OF_A_DAY),
    (FormatPart.YEAR, FormatPart.WEEK, FormatPart.WEEKDAY, *_OF_A_DAY),
    (FormatPart.EPOCH,),
)
_UNITS = frozenset(part for chain in _CHAINS for part in chain)


@dataclass(frozen=True, slots=True)
class PointFormat:
    """Holds a template for Python's `%`, its parts in order, and the pattern that reads it."""

    template: str
    parts: tuple[FormatPart, ...]
    pattern: re.Pattern[str]
    zone_minutes: int | None  # written in this time zone, whatever the workflow's


@lru_cache(maxsize=64)
def compile_format(text: str, expanded_year_digits: int) -> PointFormat:
    """Returns a `cycle point format`, compiled; refuses one that could not be read back."""
    if not 0 <= expanded_year_digits <= EXPANDED_YEAR_DIGITS_MAX:
        raise BadCycling(
            f"the number of expanded year digits is {expanded_year_digits}",
            f"give 0 to {EXPANDED_YEAR_DIGITS_MAX}",
        )
    if len(text) > FORMAT_LENGTH_MAX or not text.isascii() or not text.isprintable():
        raise _bad(
            text,
            f"has more than {FORMAT_LENGTH_MAX} characters, or characters that are not "
            "printable ASCII",
        )
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
    """Returns a time zone in minutes: +0530 is 330, -0330 is -210."""
    minutes = hour * SECONDS_PER_MINUTE + minute
    return -minutes if sign == "-" else minutes


def _iso_pieces(text: str, digits: int) -> tuple[list[str | _Piece], int | None]:
    date, has_time, rest = text.partition("T")
    expanded = (FormatPart.EXPANDED, f"%0{digits}d", rf"(\d{{{digits}}})")
    pieces = _split(text, date, _DATE_LETTERS, {**_DATE, "X": expanded})
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


def _split(
    text: str, piece: str, letters: re.Pattern[str], known: dict[str, _Piece]
) -> list[str | _Piece]:
    pieces: list[str | _Piece] = []
    end = 0
    for found in letters.finditer(piece):
        if found[0] not in known:
            raise _bad(text, f"has {found[0]!r}, which cannot be read back as part of a point")
        pieces += [piece[end : found.start()], known[found[0]]]
        end = found.end()
    return [*pieces, piece[end:]]


def _strftime_pieces(text: str) -> list[str | _Piece]:
    pieces: list[str | _Piece] = []
    end = 0
    for found in _STRFTIME_LETTERS.finditer(text):
        if found[0] not in _STRFTIME:
            raise _bad(text, f"has {found[0]!r}, which is not one of {', '.join(_STRFTIME)}")
        pieces += [text[end : found.start()], *_STRFTIME[found[0]]]
        end = found.end()
    return [*pieces, text[end:]]


def _check_readable(text: str, parts: tuple[FormatPart, ...], digits: int) -> None:
    units = [part for part in parts if part in _UNITS]
    if len(set(parts)) != len(parts):
        raise _bad(text, "names a unit twice")
    if not any(set(units) == set(chain[: len(units)]) for chain in _CHAINS if units):
        raise _bad(text, "leaves out a unit, so different points would look the same")
    signs = {FormatPart.SIGN, FormatPart.EXPANDED} & set(parts)
    if len(signs) != (2 if digits else 0):
        raise _bad(
            text,
            f"must {'have' if digits else 'not have'} +X before CCYY, as 'cycle point num "
            f"expanded year digits' is {digits}",
        )


def _bad(text: str, why: str) -> BadCycling:
    return BadCycling(f"cycle point format {text!r} {why}", FORMATS_ACCEPTED)


FORMAT_DEFAULT = "CCYYMMDDThhmmZ"
INTEGER_POINT_MAX = 10**17  # well inside what every database stores exactly

_INTEGER = pattern(r"[-+]?[0-9]{1,18}")
_YEARS_WRITTEN = 10_000


STYLES_KNOWN_MAX = 256


class PointWords(NamedTuple):
    """Holds how a workflow writes its points, to be stored with a run of it."""

    calendar: Calendar
    utc_offset_minutes: int
    format: str
    expanded_year_digits: int
    is_unwritten: bool


@lru_cache(maxsize=STYLES_KNOWN_MAX)
def style_of(words: PointWords) -> PointStyle:
    """Returns the style that these words are of."""
    return PointStyle(**words._asdict())


@dataclass(frozen=True, slots=True, kw_only=True)
class PointStyle:
    """Holds the calendar, time zone and format of a workflow's points.

    ``utc_offset_minutes`` is the workflow's time zone; a format that names another one is
    written in that.
    """

    calendar: Calendar
    utc_offset_minutes: int = 0
    format: str = FORMAT_DEFAULT
    expanded_year_digits: int = 0
    # Nothing repeats and nobody wrote a point: people know tasks by their names alone.
    is_unwritten: bool = False

    _format: PointFormat = field(init=False, compare=False, repr=False)
    _shift: int = field(init=False, compare=False, repr=False)
    _in_order: int = field(init=False, compare=False, repr=False)
    first_point: Point = field(init=False, compare=False, repr=False)
    last_point: Point = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        compiled = compile_format(self.format, self.expanded_year_digits)
        zone = compiled.zone_minutes
        minutes = self.utc_offset_minutes if zone is None else zone
        put(self, "_format", compiled)
        put(self, "_shift", minutes * SECONDS_PER_MINUTE)
        is_in_order = compiled.parts == tuple(FormatPart)[: len(compiled.parts)]
        put(self, "_in_order", len(compiled.parts) if is_in_order else 0)
        put(self, "first_point", self._limit(first=True))
        put(self, "last_point", self._limit(first=False))

    @property
    def words(self) -> PointWords:
        """Returns all by which `style_of` makes the same style again."""
        return PointWords(
            self.calendar,
            self.utc_offset_minutes,
            self.format,
            self.expanded_year_digits,
            self.is_unwritten,
        )

    @property
    def written_offset_minutes(self) -> int:
        """Returns the time zone that points are written in, in minutes."""
        return self._shift // SECONDS_PER_MINUTE

    def text(self, point: Point) -> str:
        """Returns the point as people and task ids have it; BadCycling if out of range."""
        if self.calendar is Calendar.INTEGER:
            return str(point)
        if not self.first_point <= point <= self.last_point:
            raise BadCycling(
                f"a point {point} seconds from 1970 cannot be written as {self.format}",
                "set 'cycle point num expanded year digits' for years beyond 0000 to 9999",
            )
        days, second = divmod(point + self._shift, SECONDS_PER_DAY)
        year, month, day = date_from_days(self.calendar, days)
        minute, second = divmod(second, SECONDS_PER_MINUTE)
        values = (year, month, day, minute // 60, minute % 60, second)
        if self._in_order:
            return self._format.template % values[: self._in_order]
        return self._text_of_all(point, days, values)

    def read(self, text: str) -> Point:
        """Returns the point that `text` writes as this text; BadCycling if there is none."""
        if self.calendar is Calendar.INTEGER:
            if not _INTEGER.fullmatch(text) or abs(int(text)) > INTEGER_POINT_MAX:
                most = INTEGER_POINT_MAX
                hint = f"write a whole number between -{most} and {most}"
                raise BadCycling(f"{text!r} is not an integer cycle point", hint)
            return Point(int(text))
        found = self._format.pattern.fullmatch(text)
        if found is None:
            raise BadCycling(f"{text!r} is not written as {self.format}")
        values = dict(zip(self._format.parts, found.groups(), strict=True))
        if FormatPart.EPOCH in values:
            return Point(int(values[FormatPart.EPOCH]))
        days = self._read_date(text, values)
        hour, minute, second = (int(values.get(part, 0)) for part in _OF_A_DAY)
        if hour >= HOURS_PER_DAY or max(minute, second) >= SECONDS_PER_MINUTE:
            raise BadCycling(f"{text!r}: there is no such time of day")
        time = hour * SECONDS_PER_HOUR + minute * SECONDS_PER_MINUTE + second
        return Point(days * SECONDS_PER_DAY + time - self._read_shift(values))

    def rounded(self, point: Point) -> Point:
        """Returns the last point not after this one that the format can express."""
        return self.read(self.text(point))

    def _text_of_all(self, point: Point, days: int, values: tuple[int, ...]) -> str:
        year, ordinal = day_of_year(self.calendar, days)
        week_year, week, weekday = week_date(self.calendar, days)
        if FormatPart.WEEK in self._format.parts:
            year = week_year
        expanded, written = divmod(abs(year), _YEARS_WRITTEN)
        zone_hour, zone_minute = divmod(abs(self.written_offset_minutes), SECONDS_PER_MINUTE)
        sign, zone_sign = ("-" if number < 0 else "+" for number in (year, self._shift))
        of_year = (sign, expanded, ordinal, week, weekday)
        every = (written, *values[1:], *of_year, zone_sign, zone_hour, zone_minute, point)
        return self._format.template % tuple([every[part] for part in self._format.parts])

    def _read_date(self, text: str, values: dict[FormatPart, str]) -> int:
        """Returns the date in a text as days since 1970-01-01; BadCycling if it is none."""
        year = int(values[FormatPart.YEAR])
        year += int(values.get(FormatPart.EXPANDED) or 0) * _YEARS_WRITTEN
        if values.get(FormatPart.SIGN) == "-":
            year = -year
        if FormatPart.ORDINAL in values:
            first = days_from_date(self.calendar, year, 1, 1)
            day = int(values[FormatPart.ORDINAL])
            day_max = days_in_year(self.calendar, year)
        elif FormatPart.WEEK in values:
            week, weekday = int(values[FormatPart.WEEK]), int(values.get(FormatPart.WEEKDAY, 1))
            first = first_day_of_week_year(self.calendar, year)
            day = (week - 1) * DAYS_PER_WEEK + weekday if 1 <= weekday <= DAYS_PER_WEEK else 0
            day_max = weeks_in_year(self.calendar, year) * DAYS_PER_WEEK
        else:
            month = int(values.get(FormatPart.MONTH, 1))
            day = int(values.get(FormatPart.DAY, 1))
            if not 1 <= month <= MONTHS_PER_YEAR:
                raise BadCycling(f"{text!r}: there is no such month")
            first = days_from_date(self.calendar, year, month, 1)
            day_max = days_in_month(self.calendar, year, month)
        if not 1 <= day <= day_max:
            raise BadCycling(f"{text!r} is not a date of the {self.calendar.value} calendar")
        return first + day - 1

    def _read_shift(self, values: dict[FormatPart, str]) -> int:
        if FormatPart.ZONE_SIGN not in values:
            return self._shift
        minutes = zone_minutes_from(
            values[FormatPart.ZONE_SIGN],
            int(values.get(FormatPart.ZONE_HOUR, 0)),
            int(values.get(FormatPart.ZONE_MINUTE, 0)),
        )
        return minutes * SECONDS_PER_MINUTE

    def _limit(self, *, first: bool) -> Point:
        """Returns the first or the last point that can be written."""
        if self.calendar is Calendar.INTEGER:
            return Point(-INTEGER_POINT_MAX if first else INTEGER_POINT_MAX)
        years = _YEARS_WRITTEN * 10**self.expanded_year_digits
        has_sign = FormatPart.SIGN in self._format.parts
        if FormatPart.EPOCH in self._format.parts:
            years, has_sign = _YEARS_WRITTEN, False
        edge = (1 - years if has_sign else 0) if first else years
        days = days_from_date(self.calendar, edge, 1, 1)
        if FormatPart.WEEK in self._format.parts:
            # A week year begins and ends up to some days away from the year.
            days = first_day_of_week_year(self.calendar, edge)
        return Point(days * SECONDS_PER_DAY - self._shift - (0 if first else 1))
