"""Days and dates agree with Python's own, with metomi's and with counting on one's fingers."""

import random
from datetime import date

import pytest
from metomi.isodatetime import data

from tests.unit.cycling.oracle import (
    CALENDARS,
    any_date,
    date_by_counting,
    days_by_counting,
    metomi_in,
)
from tidewheel.core.cycling.calendar import (
    Calendar,
    date_from_days,
    day_of_week,
    day_of_year,
    days_from_date,
    days_in_month,
    days_in_year,
    is_leap_year,
    shortest_month,
    week_date,
    weeks_in_year,
)

EPOCH = date(1970, 1, 1).toordinal()


def test_gregorian_days_are_those_of_python():
    for _ in range(3000):
        days = random.randint(1 - EPOCH, date.max.toordinal() - EPOCH)
        python = date.fromordinal(days + EPOCH)
        assert date_from_days(Calendar.GREGORIAN, days) == (
            python.year,
            python.month,
            python.day,
        )
        assert days_from_date(Calendar.GREGORIAN, python.year, python.month, python.day) == days
        assert week_date(Calendar.GREGORIAN, days) == python.isocalendar()
        year, ordinal = day_of_year(Calendar.GREGORIAN, days)
        assert (year, ordinal) == (python.year, python.timetuple().tm_yday)


@pytest.mark.parametrize("calendar", CALENDARS)
def test_days_are_those_that_one_counts(calendar):
    for _ in range(150):
        days = random.randint(-60_000, 60_000)
        counted = date_by_counting(calendar, days)
        assert date_from_days(calendar, days) == counted
        assert days_from_date(calendar, *counted) == days == days_by_counting(calendar, counted)


@pytest.mark.parametrize("calendar", CALENDARS)
def test_every_day_of_a_thousand_years_leads_to_its_date_and_back(calendar):
    first = days_from_date(calendar, -300, 1, 1)
    last_date = (-301, 12, days_in_month(calendar, -301, 12))
    for days in range(first, first + 365_000, 7):
        here = date_from_days(calendar, days)
        assert here > last_date
        assert days_from_date(calendar, *here) == days
        last_date = here


@pytest.mark.parametrize("calendar", CALENDARS)
def test_weeks_and_lengths_are_those_of_metomi(calendar):
    with metomi_in(calendar):
        for _ in range(200):
            year, month, day = any_date(calendar, (1, 3000))
            days = days_from_date(calendar, year, month, day)
            assert week_date(calendar, days) == data.get_week_date_from_calendar_date(
                year, month, day
            )
            assert days_in_year(calendar, year) == data.get_days_in_year(year)
            assert weeks_in_year(calendar, year) == data.get_weeks_in_year(year)
            assert days_in_month(calendar, year, month) == data.get_days_in_month(month, year)


@pytest.mark.parametrize("calendar", CALENDARS)
def test_the_third_of_january_2000_is_a_monday_everywhere(calendar):
    assert day_of_week(calendar, days_from_date(calendar, 2000, 1, 3)) == 1


def test_only_the_gregorian_calendar_has_leap_years():
    assert [
        year for year in (1900, 1999, 2000, 2004) if is_leap_year(Calendar.GREGORIAN, year)
    ] == [
        2000,
        2004,
    ]
    assert not is_leap_year(Calendar.DAYS_366, 2000)


def test_the_shortest_month_is_the_last_day_that_is_never_clamped():
    assert [shortest_month(calendar) for calendar in CALENDARS] == [28, 30, 28, 29]
