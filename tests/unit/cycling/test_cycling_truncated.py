"""The end of a date-time finds the next moment that ends so, as metomi does, and the last."""

import random

import pytest
from metomi.isodatetime.parsers import TimePointParser

from tests.unit.cycling.oracle import (
    CALENDARS,
    OFFSETS_MINUTES,
    any_date,
    any_second,
    metomi_in,
    moment,
    seconds,
)
from tidewheel.core.cycling.calendar import (
    BadCycling,
    Calendar,
    Interval,
    Point,
    days_from_date,
)
from tidewheel.core.cycling.offset import TruncatedPoint
from tidewheel.formats.cycling.iso8601 import DateTimeText

TEXTS = [
    *("T00", "T06", "T-30", "T--15", "T0630", "T-0010", "T06Z", "T12+0530", "T23-01"),
    *(
        "-W-1",
        "-W-7T12",
        "-W01-1",
        "-W52-7T06",
        "-W05",
        "---01",
        "---15T06",
        "---30",
        "---29T00",
    ),
    *("--01", "--0101", "--0228T12", "--1230", "-360T06", "-050"),
    *("-00", "-0102", "-99", "-5003", "000101", "991230T06", "-5002"),
]
LEAP_DAYS = ["--0229T00", "000229", "-0402"]


def texts_of(calendar: Calendar) -> list[str]:
    return TEXTS if calendar is Calendar.DAYS_365 else TEXTS + LEAP_DAYS


@pytest.mark.parametrize("calendar", CALENDARS)
def test_the_next_such_moment_is_the_one_that_metomi_finds(calendar):
    ours = DateTimeText(calendar, 0, 0)
    with metomi_in(calendar):
        theirs = TimePointParser(
            allow_truncated=True, num_expanded_year_digits=0, assumed_time_zone=(0, 0)
        )
        for _ in range(12):
            for text in texts_of(calendar):
                context = moment(
                    any_date(calendar), any_second(), random.choice(OFFSETS_MINUTES)
                )
                found = ours.read(text).next_from(seconds(context))
                assert found == seconds(theirs.parse(text) + context), (text, context)


@pytest.mark.parametrize("calendar", CALENDARS)
def test_what_is_before_a_moment_leads_to_it_and_nothing_earlier_does(calendar):
    texts = [text for text in texts_of(calendar) if text != "-W05"]
    ours = DateTimeText(calendar, random.choice(OFFSETS_MINUTES), 0)
    for text in texts:
        time = ours.read(text)
        point = Point(days_from_date(calendar, *any_date(calendar)) * 86_400 + any_second())
        following = time.next_from(point)
        before = time.last_before(following)
        assert before < point <= following
        assert time.next_from(before) == before
        assert time.next_from(Point(before + 1)) == following
        assert time.last_before(Point(before + 1)) == before


def test_a_day_that_no_year_has_is_refused():
    never = TruncatedPoint(calendar=Calendar.DAYS_360, month=1, day_of_month=31)
    with pytest.raises(BadCycling, match="360day"):
        never.next_from(Point(0))


def test_a_day_of_a_year_or_week_of_one_year_in_a_hundred_is_found():
    """metomi loses the day here and takes 1 January."""
    day = TruncatedPoint(calendar=Calendar.GREGORIAN, year_of_century=4, day_of_year=366)
    found = day.next_from(Point(0))
    assert found == days_from_date(Calendar.GREGORIAN, 2004, 12, 31) * 86_400
    week = TruncatedPoint(calendar=Calendar.GREGORIAN, year_of_decade=9, week=53, day_of_week=7)
    assert week.next_from(found) == days_from_date(Calendar.GREGORIAN, 2010, 1, 3) * 86_400


@pytest.mark.parametrize(
    ("text", "period"),
    [
        ("T--15", Interval(units=60)),
        ("T-30", Interval(units=3600)),
        ("T06", Interval(units=86_400)),
        ("-W-1", Interval(units=7 * 86_400)),
        ("---01", Interval(months=1)),
        ("--0101", Interval(years=1)),
        ("-001", Interval(years=1)),
        ("-W01-1", Interval(years=1)),
        ("-0W01", Interval(years=10)),
        ("-00", Interval(years=100)),
    ],
)
def test_what_is_left_out_says_how_often_it_comes(text, period):
    assert DateTimeText(Calendar.GREGORIAN, 0, 0).read(text).period == period


def test_a_day_can_be_taken_at_the_time_of_another_point():
    monday = TruncatedPoint(calendar=Calendar.GREGORIAN, day_of_week=1, utc_offset_minutes=60)
    assert not monday.has_time
    at = monday.at_time_of(Point(45_296))
    assert at.has_time
    assert (at.hour, at.minute, at.second) == (13, 34, 56)
