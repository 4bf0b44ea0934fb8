"""Parents and children find each other, whatever lies between them."""

import random

import pytest

from tests.unit.cycling.oracle import CALENDARS, OFFSETS_MINUTES, any_date
from tidewheel.core.cycling.calendar import Calendar, Interval, Point, days_from_date
from tidewheel.core.cycling.offset import Absolute, FromInitial, Relative, Truncated
from tidewheel.core.cycling.sequence import Sequence
from tidewheel.formats.cycling.reader import CyclingReader

INITIAL = Point(0)
NUMBERS = Sequence(calendar=Calendar.INTEGER, start=Point(1), step=Interval(units=1))
TEXTS = [
    *("-P1D", "+P1D", "-P1D-PT6H", "-P1M", "+P1M", "-P1Y", "-P1M+P1D", "+P1D-P1M", "-P1Y1M1D"),
    *("T00", "T06", "T-00", "T00-P1D", "01T00", "01T00+P1W", "W-1T12", "--0101", "01T00-P1M"),
]


@pytest.mark.parametrize("calendar", CALENDARS)
@pytest.mark.parametrize("text", TEXTS)
def test_children_are_every_point_of_the_sequence_that_sees_this_parent(calendar, text):
    zone = random.choice(["Z", "+0530", "-0330"])
    reader = CyclingReader(calendar.value, time_zone=zone)
    offset = reader.offset(text)
    start = Point(days_from_date(calendar, *any_date(calendar)) * 86_400)
    step = random.choice([Interval(units=21_600), Interval(units=86_400), Interval(months=1)])
    sequence = Sequence(
        calendar=calendar,
        start=start,
        step=step,
        upper=Point(start + 500 * 86_400),
        utc_offset_minutes=random.choice(OFFSETS_MINUTES),
    )
    wanted: dict[Point, list[Point]] = {}
    for child in sequence.points():
        wanted.setdefault(offset.parent_point(child, INITIAL), []).append(child)
    for parent, children in list(wanted.items())[:60]:
        assert list(offset.child_points(parent, sequence)) == children
    assert not offset.is_absolute


def test_no_offset_is_the_same_point():
    here = CyclingReader().offset("")
    assert here == Relative() and here.is_exact
    assert here.parent_point(Point(4), INITIAL) == 4
    assert list(here.child_points(Point(4), NUMBERS)) == [4]


def test_a_parent_off_the_sequence_has_no_children():
    back = Relative((Interval(units=-1),))
    assert list(back.child_points(Point(0), NUMBERS)) == [1]
    assert list(back.child_points(Point(-1), NUMBERS)) == []


def test_a_parent_at_another_time_than_the_offset_names_has_no_children():
    reader = CyclingReader("gregorian")
    hourly = reader.recurrence("PT1H", INITIAL, None)
    assert list(reader.offset("T06").child_points(Point(3600), hourly)) == []
    assert len(list(reader.offset("T06").child_points(Point(30 * 3600), hourly))) == 24


def test_a_month_is_no_exact_distance():
    reader = CyclingReader("gregorian")
    assert reader.offset("-P1D-PT6H").is_exact
    assert not any(reader.offset(text).is_exact for text in ("-P1M", "T00", "2000", "^"))


def test_absolute_parents_have_every_point_as_child_and_others_none():
    some = Sequence(
        calendar=Calendar.INTEGER, start=Point(1), step=Interval(units=1), upper=Point(3)
    )
    second = CyclingReader().offset("2")
    assert second == Absolute(Point(2)) and second.is_absolute
    assert second.parent_point(Point(9), INITIAL) == 2
    assert list(second.child_points(Point(2), some)) == [1, 2, 3]
    assert list(second.child_points(Point(1), some)) == []
    initial = CyclingReader().offset("^+P1")
    assert isinstance(initial, FromInitial) and initial.is_absolute
    assert initial.intervals == (Interval(units=1),)
    assert initial.parent_point(Point(9), Point(1)) == 2
    assert list(initial.child_points(Point(2), some, Point(1))) == [1, 2, 3]
    assert list(initial.child_points(Point(3), some, Point(1))) == []


def test_the_initial_point_can_be_followed_by_the_end_of_a_date_time():
    reader = CyclingReader("gregorian")
    offset = reader.offset("^T06")
    assert isinstance(offset.offset, Truncated)
    initial = reader.point("20000101T12Z")
    assert reader.style.text(offset.parent_point(INITIAL, initial)) == "20000102T0600Z"
