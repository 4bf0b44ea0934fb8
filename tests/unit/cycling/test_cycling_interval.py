"""Intervals are added as metomi adds them, and origins are exactly what leads to a point."""

import random

import pytest

from tests.unit.cycling.oracle import (
    CALENDARS,
    OFFSETS_MINUTES,
    any_date,
    any_second,
    duration,
    metomi_in,
    moment,
    seconds,
    walk,
)
from tidewheel.core.cycling.calendar import (
    Calendar,
    Interval,
    Point,
    add,
    add_all,
    days_from_date,
    origins,
    origins_of_all,
)


def any_interval() -> Interval:
    return Interval(
        years=random.choice([0, 0, 1, -1, 4, random.randint(-30, 30)]),
        months=random.choice([0, 0, 1, -1, 12, random.randint(-40, 40)]),
        units=random.choice([0, 0, 86_400, -3600, random.randint(-(10**7), 10**7)]),
    )


@pytest.mark.parametrize("calendar", CALENDARS)
def test_an_interval_leads_where_metomi_says(calendar):
    with metomi_in(calendar):
        for _ in range(250):
            date, second = any_date(calendar), any_second()
            offset, interval = random.choice(OFFSETS_MINUTES), any_interval()
            start = moment(date, second, offset)
            found = add(calendar, seconds(start), interval, offset)
            assert found == seconds(start + duration(interval)), (start, interval)


@pytest.mark.parametrize("calendar", CALENDARS)
def test_an_interval_leads_where_one_comes_by_counting(calendar):
    for _ in range(100):
        point = Point(random.randint(-2 * 10**9, 4 * 10**9))
        offset, interval = random.choice(OFFSETS_MINUTES), any_interval()
        assert add(calendar, point, interval, offset) == walk(calendar, point, interval, offset)


def test_millions_of_months_are_added_at_once():
    end_of_january = Point(days_from_date(Calendar.GREGORIAN, 2000, 1, 31) * 86_400)
    found = add(Calendar.GREGORIAN, end_of_january, Interval(months=12_000_001))
    assert found == days_from_date(Calendar.GREGORIAN, 1_002_000, 2, 28) * 86_400
    back = add(Calendar.GREGORIAN, end_of_january, Interval(months=-12_000_001))
    assert back == days_from_date(Calendar.GREGORIAN, -998_001, 12, 28) * 86_400


def test_intervals_are_added_in_their_order():
    march = Point(days_from_date(Calendar.GREGORIAN, 2001, 3, 31) * 86_400)
    month, day = Interval(months=-1), Interval(units=86_400)
    after = days_from_date(Calendar.GREGORIAN, 2001, 3, 1) * 86_400
    assert add_all(Calendar.GREGORIAN, march, (month, day)) == after
    assert add_all(Calendar.GREGORIAN, march, (day, month)) == after
    assert add_all(Calendar.GREGORIAN, Point(march - 86_400), (month, day)) == after
    assert add_all(Calendar.GREGORIAN, Point(march - 86_400), (day, month)) == after - 86_400


@pytest.mark.parametrize("calendar", CALENDARS)
def test_origins_are_every_point_that_leads_here_and_no_other(calendar):
    for _ in range(60):
        days = days_from_date(calendar, *any_date(calendar))
        offset = random.choice(OFFSETS_MINUTES)
        point = Point(days * 86_400 + any_second() - offset * 60)
        interval = any_interval()
        near = add(calendar, point, -interval, offset)
        tried = (Point(near + day * 86_400) for day in range(-8, 9))
        wanted = [one for one in tried if add(calendar, one, interval, offset) == point]
        assert origins(calendar, point, interval, offset) == wanted


def test_the_last_days_of_a_month_share_their_child_in_a_shorter_one():
    calendar = Calendar.GREGORIAN
    february = Point(days_from_date(calendar, 2001, 2, 28) * 86_400)
    march = [days_from_date(calendar, 2001, 3, day) * 86_400 for day in (28, 29, 30, 31)]
    assert origins(calendar, february, Interval(months=-1)) == march
    end_of_march = Point(march[-1])
    assert origins(calendar, end_of_march, Interval(months=1)) == []
    both = (Interval(months=-1), Interval(units=-86_400))
    assert origins_of_all(calendar, Point(february - 86_400), both) == march


def test_an_interval_is_a_value():
    month = Interval(months=1)
    assert (-month, month * 3) == (Interval(months=-1), Interval(months=3))
    assert [bool(one) for one in (Interval(), month, Interval(units=-1))] == [False, True, True]
    assert [one.is_exact for one in (Interval(units=5), month, Interval(years=1))] == [
        True,
        False,
        False,
    ]
