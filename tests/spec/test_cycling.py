"""SEMANTICS 11, "Cycling": every form of point, recurrence, exclusion and offset."""

from itertools import islice

import pytest

from tidewheel.core.cycling.calendar import Point
from tidewheel.formats.cycling.reader import CyclingReader, split_recurrences

SHOWN = 4


def shown(
    mode: str, text: str, initial: str, final: str | None = None, **settings: object
) -> list[str]:
    """The first points of a list of recurrences."""
    reader = CyclingReader(mode, **settings)
    start = reader.point(initial)
    end = None if final is None else reader.final_point(final, start)
    points = {
        point
        for one in split_recurrences(text)
        for point in islice(reader.recurrence(one, start, end).points(), SHOWN)
    }
    return [reader.style.text(point) for point in sorted(points)[:SHOWN]]


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("R1", "1"),
        ("R1/", "1"),
        ("R1/^", "1"),
        ("R1/$", "10"),
        ("R1/^+P1", "2"),
        ("R1/$-P1", "9"),
        ("R1/P0", "10"),
        ("R1//8", "8"),
        ("R1/5", "5"),
        ("R/5", "5"),
        ("P1", "1 2 3 4"),
        ("P3", "1 4 7 10"),
        ("P0", "1"),
        ("R5/P2", "2 4 6 8"),
        ("R2/P3", "7 10"),
        ("R/1/P2", "1 3 5 7"),
        ("R2//P2", "1 3"),
        ("R3/2/P2", "2 4 6"),
        ("+P1/P2", "2 4 6 8"),
        ("-P2/P3", "2 5 8"),
        ("3/P3", "3 6 9"),
        ("R/P2/8", "2 4 6 8"),
        ("P3/-P1", "3 6 9"),
        ("P1/^", "1"),
        ("P4/$", "2 6 10"),
        ("$/P1", "10"),
        ("R2/1/5", "1 5"),
        ("R3/0/10", "5 10"),
        ("+P20/P1", ""),
        ("P2!3", "1 5 7 9"),
        ("P1!(P2,6)", "2 4 8 10"),
        ("P1!(1,2,3)", "4 5 6 7"),
        ("P1!^", "2 3 4 5"),
        ("P1!+P1/P3", "1 3 4 6"),
        ("P1!P1", ""),
        ("R1, P5", "1 6"),
        ("R1/3, P4!5", "1 3 9"),
    ],
)
def test_integer_recurrences(text, points):
    assert shown("integer", text, "1", "10") == points.split()


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("R1", "01T06"),
        ("P1D", "01T06 02T06 03T06 04T06"),
        ("PT6H", "01T06 01T12 01T18 02T00"),
        ("T00", "02T00 03T00 04T00 05T00"),
        ("T-00", "01T06 01T07 01T08 01T09"),
        ("T-30", "01T0630 01T0730 01T0830 01T0930"),
        ("T00/PT6H", "02T00 02T06 02T12 02T18"),
        ("T06+PT1H/P1D", "01T07 02T07 03T07 04T07"),
        ("W-1T00", "03T00 10T00 17T00 24T00"),
        ("-W-1", "03T00 10T00 17T00 24T00"),
        ("15T12", "15T12"),
        ("--0115", "15T00"),
        ("+P5D/P1M", "06T06"),
        ("+PT18H/P2D", "02T00 04T00 06T00 08T00"),
        ("-P1D/P2D", "02T06 04T06 06T06 08T06"),
        ("^+PT6H/P1D", "01T12 02T12 03T12 04T12"),
        ("R1/^+P1D", "02T06"),
        ("R1/$-P1D", "29T06"),
        ("R1/T12", "01T12"),
        ("R1/min(T00,T12)", "01T12"),
        ("R1/min(T00,T06)+PT1H", "01T07"),
        ("R1/20000105T00", "05T00"),
        ("R2//P2D", "01T06 03T06"),
        ("R5/P2D", "22T06 24T06 26T06 28T06"),
        ("R2/P3D/20000110T00", "07T00 10T00"),
        ("R3/P1D/T00", "29T00 30T00"),
        ("P2D/20000106T06", "02T06 04T06 06T06"),
        ("R3/20000102T00/P1D", "02T00 03T00 04T00"),
        ("R/2000-01-05T00:00Z/P5D", "05T00 10T00 15T00 20T00"),
        ("R3/20000102T00/20000104T12", "02T00 04T12 07T00"),
        ("R1/^/$", "01T06"),
        ("R1//^", "01T06"),
        ("P1D/$", "01T06 02T06 03T06 04T06"),
        ("20000110T00/P1D!T00", ""),
        ("PT6H!T12", "01T06 01T18 02T00 02T06"),
        ("PT6H!(T00,T12)", "01T06 01T18 02T06 02T18"),
        ("PT1H!PT6H", "01T07 01T08 01T09 01T10"),
        ("P1D!20000103T06", "01T06 02T06 04T06 05T06"),
        ("PT12H!(T18,20000102T06,P3D)", "03T06 05T06 06T06 08T06"),
        ("P1D!W-1", "01T06 02T06 04T06 05T06"),
        ("P1D!(^,^+P2D)", "02T06 04T06 05T06 06T06"),
        ("P1D!$", "01T06 02T06 03T06 04T06"),
        ("P1D!R2/^+P1D/P1D", "01T06 04T06 05T06 06T06"),
        ("P0D", "01T06"),
        ("R1, T12", "01T06 01T12 02T12 03T12"),
        ("P999999999999Y", "01T06"),
    ],
)
def test_date_time_recurrences(text, points):
    wanted = ["200001" + point.ljust(7, "0") + "Z" for point in points.split()]
    assert shown("gregorian", text, "20000101T06Z", "20000130T06Z") == wanted


@pytest.mark.parametrize(
    ("mode", "text", "points"),
    [
        ("gregorian", "P1M", ["20000131", "20000229", "20000329", "20000429"]),
        ("365day", "P1M", ["20000131", "20000228", "20000328", "20000428"]),
        ("366day", "P1M", ["20000131", "20000229", "20000329", "20000429"]),
        ("gregorian", "31T00", ["20000131", "20000229", "20000329", "20000429"]),
        ("gregorian", "P1Y", ["20000131", "20010131", "20020131", "20030131"]),
        ("gregorian", "--0229T00", ["20000229", "20010228", "20020228", "20030228"]),
        ("gregorian", "20000229/P4Y", ["20000229", "20040229", "20080229", "20120229"]),
        ("gregorian", "366T00", ["20001231", "20011231", "20021231", "20031231"]),
        ("gregorian", "W011T00", ["20010101", "20011231", "20021230", "20031229"]),
        ("gregorian", "P1M1D", ["20000131", "20000301", "20000402", "20000503"]),
    ],
)
def test_months_and_years_are_clamped_where_a_month_is_shorter(mode, text, points):
    assert shown(mode, text, "20000131", point_format="CCYYMMDD") == points


def test_a_calendar_of_equal_months_has_a_thirtieth_of_february():
    points = shown("360_day", "P1M", "20000130", point_format="CCYYMMDD")
    assert points == ["20000130", "20000230", "20000330", "20000430"]


def test_recurrences_are_read_in_the_time_zone_of_the_workflow():
    assert shown("gregorian", "T00", "20000101T06", time_zone="+0530") == [
        "20000102T0000+0530",
        "20000103T0000+0530",
        "20000104T0000+0530",
        "20000105T0000+0530",
    ]
    assert shown("gregorian", "R1/T00Z", "20000101T06", time_zone="+0530") == [
        "20000102T0530+0530"
    ]
    # The last day of a month in local time is another one in UTC.
    assert shown("gregorian", "01T00", "20000131T20", time_zone="+13")[:2] == [
        "20000201T0000+13",
        "20000301T0000+13",
    ]


def test_years_beyond_four_digits_are_written_with_a_sign():
    assert shown("gregorian", "P5000Y", "-004000", expanded_year_digits=2) == [
        "-0040000101T0000Z",
        "+0010000101T0000Z",
        "+0060000101T0000Z",
        "+0110000101T0000Z",
    ]


def test_a_sequence_without_an_end_stops_where_points_can_no_longer_be_written():
    assert shown("gregorian", "P5000Y", "2000") == ["20000101T0000Z", "70000101T0000Z"]


@pytest.mark.parametrize(
    ("text", "parent"),
    [
        ("", "20000331T0600Z"),
        ("-P1D", "20000330T0600Z"),
        ("+P1D", "20000401T0600Z"),
        ("P1D", "20000401T0600Z"),
        ("-P1D-PT6H", "20000330T0000Z"),
        ("-P1M", "20000229T0600Z"),
        ("-P1M+P1D", "20000301T0600Z"),
        ("T00", "20000401T0000Z"),
        ("T00-P1D", "20000331T0000Z"),
        ("01T00+P1W", "20000408T0000Z"),
        ("^", "20000101T0000Z"),
        ("^+P1D", "20000102T0000Z"),
        ("20300101", "20300101T0000Z"),
        ("20300101T00+P1D", "20300102T0000Z"),
    ],
)
def test_offsets_lead_from_a_child_to_its_parent(text, parent):
    reader = CyclingReader("gregorian")
    child, initial = reader.point("20000331T06"), reader.point("20000101")
    assert reader.style.text(reader.offset(text).parent_point(child, initial)) == parent


@pytest.mark.parametrize(
    ("text", "parent"),
    [
        ("", 5),
        ("-P1", 4),
        ("+P1", 6),
        ("P2", 7),
        ("-P1-P1", 3),
        ("^", 1),
        ("^+P1", 2),
        ("2", 2),
    ],
)
def test_integer_offsets_lead_from_a_child_to_its_parent(text, parent):
    assert CyclingReader().offset(text).parent_point(Point(5), Point(1)) == parent


def test_every_child_of_a_parent_is_found():
    reader = CyclingReader("gregorian")
    initial = reader.point("20010101")
    daily = reader.recurrence("P1D", initial, None)
    children = reader.offset("-P1M").child_points(reader.point("20010228"), daily)
    assert [reader.style.text(point)[:8] for point in children] == [
        "20010328",
        "20010329",
        "20010330",
        "20010331",
    ]
