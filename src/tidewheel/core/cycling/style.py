"""A point style says how points are written in a workflow, and reads such a text again.

Task ids are made of these texts, so both ways are quick, and a text is never ambiguous: a point
that the format cannot express is refused or, by `rounded`, moved to the last one that it can.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

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
from tidewheel.core.cycling.point_format import (
    FormatPart,
    PointFormat,
    compile_format,
    zone_minutes_from,
)

FORMAT_DEFAULT = "CCYYMMDDThhmmZ"
INTEGER_POINT_MAX = 10**17  # well inside what every database stores exactly

_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_YEARS_WRITTEN = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PointStyle:
    """The calendar, time zone and format of a workflow's points.

    ``utc_offset_minutes`` is the workflow's time zone; a format that names another one is
    written in that.
    """

    calendar: Calendar
    utc_offset_minutes: int = 0
    format: str = FORMAT_DEFAULT
    expanded_year_digits: int = 0

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
    def written_offset_minutes(self) -> int:
        """The time zone that points are written in."""
        return self._shift // SECONDS_PER_MINUTE

    def text(self, point: Point) -> str:
        """The point as people and task ids have it."""
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
        """The point of a text that was written so."""
        if self.calendar is Calendar.INTEGER:
            return self._read_integer(text)
        found = self._format.pattern.fullmatch(text)
        if found is None:
            raise BadCycling(f"{text!r} is not written as {self.format}")
        values = dict(zip(self._format.parts, found.groups(), strict=True))
        if FormatPart.EPOCH in values:
            return Point(int(values[FormatPart.EPOCH]))
        days = self._read_date(text, values)
        hour, minute, second = (
            int(values.get(part, 0))
            for part in (FormatPart.HOUR, FormatPart.MINUTE, FormatPart.SECOND)
        )
        if hour >= HOURS_PER_DAY or max(minute, second) >= SECONDS_PER_MINUTE:
            raise BadCycling(f"{text!r} has no such time of day")
        time = hour * SECONDS_PER_HOUR + minute * SECONDS_PER_MINUTE + second
        return Point(days * SECONDS_PER_DAY + time - self._read_shift(values))

    def rounded(self, point: Point) -> Point:
        """The last point not after this one that the format can express."""
        return self.read(self.text(point))

    def _text_of_all(self, point: Point, days: int, values: tuple[int, ...]) -> str:
        year, ordinal = day_of_year(self.calendar, days)
        week_year, week, weekday = week_date(self.calendar, days)
        if FormatPart.WEEK in self._format.parts:
            year = week_year
        expanded, written = divmod(abs(year), _YEARS_WRITTEN)
        zone_hour, zone_minute = divmod(abs(self.written_offset_minutes), SECONDS_PER_MINUTE)
        every = (
            written,
            *values[1:],
            "-" if year < 0 else "+",
            expanded,
            ordinal,
            week,
            weekday,
            "-" if self._shift < 0 else "+",
            zone_hour,
            zone_minute,
            point,
        )
        return self._format.template % tuple([every[part] for part in self._format.parts])

    def _read_integer(self, text: str) -> Point:
        if not _INTEGER.fullmatch(text) or abs(int(text)) > INTEGER_POINT_MAX:
            raise BadCycling(
                f"{text!r} is no integer cycle point",
                f"write a whole number between -{INTEGER_POINT_MAX} and {INTEGER_POINT_MAX}",
            )
        return Point(int(text))

    def _read_date(self, text: str, values: dict[FormatPart, str]) -> int:
        """Days since 1970-01-01."""
        year = (
            int(values[FormatPart.YEAR])
            + int(values.get(FormatPart.EXPANDED) or 0) * _YEARS_WRITTEN
        )
        if values.get(FormatPart.SIGN) == "-":
            year = -year
        if FormatPart.ORDINAL in values:
            first, day = (
                days_from_date(self.calendar, year, 1, 1),
                int(values[FormatPart.ORDINAL]),
            )
            day_max = days_in_year(self.calendar, year)
        elif FormatPart.WEEK in values:
            week, weekday = int(values[FormatPart.WEEK]), int(values.get(FormatPart.WEEKDAY, 1))
            first = first_day_of_week_year(self.calendar, year)
            day = (week - 1) * DAYS_PER_WEEK + weekday if 1 <= weekday <= DAYS_PER_WEEK else 0
            day_max = weeks_in_year(self.calendar, year) * DAYS_PER_WEEK
        else:
            month, day = (
                int(values.get(FormatPart.MONTH, 1)),
                int(values.get(FormatPart.DAY, 1)),
            )
            if not 1 <= month <= MONTHS_PER_YEAR:
                raise BadCycling(f"{text!r} has no such month")
            first = days_from_date(self.calendar, year, month, 1)
            day_max = days_in_month(self.calendar, year, month)
        if not 1 <= day <= day_max:
            raise BadCycling(f"{text!r} is no date of the {self.calendar.value} calendar")
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
        """The first or last point that can be written."""
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
