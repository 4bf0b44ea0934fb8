"""Whatever a person writes is read, or refused with a reason; nothing else comes of it."""

import random
from contextlib import suppress
from itertools import islice

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tidewheel.core.cycling.calendar import BadCycling, Calendar, Interval, Point
from tidewheel.formats.cycling.reader import MODES, CyclingReader, split_recurrences

GREGORIAN = CyclingReader("gregorian")
INTEGER = CyclingReader()
NOW = 1_497_529_845.9  # 2017-06-15T12:30:45Z
POINTS = [
    *("^", "$", "", "T00", "T-00", "W-1T00", "01T00", "--0101", "20000101T00Z", "min(T00,T06)"),
    *("2000", "5", "-3", "31T00", "-W05-1", "366T00", "20000229", "T24", "99991231T2359Z"),
    *("^+P1D", "$-P1M", "T00+P999999999999Y", "+P1", "^-P1", "-P99999999999D"),
]
INTERVALS = [
    *("P1D", "PT6H", "P1M", "P1Y", "P1M1D", "P0D", "PT1S", "P1", "P2", "P0", "P1W"),
    *("P999999999999Y", "P999999999999M", "P999999999999999D", "PT0.5H", "PT1.3333S", "P"),
]
REPETITIONS = ["R", "R1", "R2", "R99999999999", "R0", "R999999999999999", ""]

points, intervals = st.sampled_from(POINTS), st.sampled_from(INTERVALS)
bodies = st.one_of(
    points,
    intervals,
    st.tuples(points, intervals).map("/".join),
    st.tuples(intervals, points).map("/".join),
    st.tuples(st.sampled_from(REPETITIONS), points, intervals).map("/".join),
    st.tuples(st.sampled_from(REPETITIONS), intervals, points).map("/".join),
    st.tuples(st.sampled_from(REPETITIONS), points, points).map("/".join),
    st.tuples(st.sampled_from(REPETITIONS), intervals).map("/".join),
)
exclusions = st.lists(bodies, max_size=3).map(
    lambda some: "!(" + ",".join(some) + ")" if some else ""
)
noise = st.text(alphabet="RPTWYMDHS0123456789/!(),+-^$:Z.; \u0663min", max_size=30)
recurrences = st.one_of(st.tuples(bodies, exclusions).map("".join), noise)
readers = st.builds(
    CyclingReader,
    st.sampled_from(sorted(MODES)),
    time_zone=st.sampled_from([None, "Z", "+0530", "-08"]),
    expanded_year_digits=st.sampled_from([0, 2]),
    point_format=st.none(),
)


@pytest.mark.slow
@settings(max_examples=300)
@given(reader=readers, text=recurrences, length=st.none() | st.integers(0, 10**9))
@example(reader=GREGORIAN, text="R99999999999/^/PT1M!PT1M", length=None)
def test_any_recurrence_is_answered_or_refused(reader, text, length):
    initial = (
        Point(7)
        if reader.calendar is Calendar.INTEGER
        else reader.point(
            "+0020000130T06" if reader.style.expanded_year_digits else "20000130T06"
        )
    )
    final = None if length is None else Point(initial + length * 60)
    try:
        sequence = reader.recurrence(text, initial, final)
    except BadCycling:
        return
    found = list(islice(sequence.points(), 5))
    assert found == sorted(set(found))
    assert all(sequence.contains(point) for point in found)
    assert all(initial <= point and (final is None or point <= final) for point in found)
    assert all(reader.style.read(reader.style.text(point)) == point for point in found[:3])
    assert (sequence.first is None) == (not found)
    far = Point(initial + 10**12)
    assert (sequence.first_from(far) or far) >= far
    assert (sequence.last_until(far) or far) <= far


@settings(max_examples=150)
@given(reader=readers, text=noise | st.sampled_from(POINTS + INTERVALS) | st.text(max_size=20))
def test_any_text_is_a_point_an_interval_an_offset_or_is_refused(reader, text):
    initial = Point(0)
    for read in (
        reader.point,
        reader.interval,
        reader.offset,
        split_recurrences,
        lambda text: reader.initial_point(text, NOW),
        lambda text: reader.initial_point(f"next({text})", NOW),
        lambda text: reader.initial_point(f"previous({text}){text}", NOW),
        lambda text: reader.start_point(text, initial, None, NOW),
        lambda text: reader.relative_point(text, initial),
        lambda text: reader.final_point(text, initial),
        CyclingReader,
        lambda text: CyclingReader("gregorian", time_zone=text),
        lambda text: CyclingReader("gregorian", point_format=text),
    ):
        with suppress(BadCycling):
            read(text)


@pytest.mark.parametrize("text", ["daily", "@daily", "0 6 * * *"])
def test_the_schedule_of_another_program_is_refused_with_recurrences_that_say_it(text):
    reader = CyclingReader("gregorian")
    with pytest.raises(BadCycling) as refusal:
        reader.recurrence(text, reader.point("20000101"), None)
    for written in ("T02", "T-30", "PT6H", "W-1T02"):
        assert written in refusal.value.hint
        reader.recurrence(written, reader.point("20000101"), None)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("R1/foo", "not a valid date-time"),
        ("foo", "not a valid date-time"),
        ("20", "century of two digits"),
        ("20000101T00", "does not say how often"),
        ("^", "does not say how often"),
        ("R3/^", "does not say how often"),
        ("R5", "neither a point nor an interval"),
        ("R", "neither a point nor an interval"),
        ("", "is not a valid recurrence"),
        ("/P1D", "is not a valid recurrence"),
        ("T00/T06", "is not a valid recurrence"),
        ("R1/P1D/P1D", "is not a valid recurrence"),
        ("1/2/3/4", "is not a valid recurrence"),
        ("P1D/R1", "is not a valid recurrence"),
        ("daily", "is not a valid recurrence"),
        ("@daily", "is not a valid recurrence"),
        ("0 6 * * *", "is not a valid recurrence"),
        ("R0/P1D", "has no cycle point"),
        ("P1X", "not a valid interval"),
        ("PT0.3S", "fraction of a second"),
        ("R1/$", "needs a final cycle point"),
        ("R5/P1D", "needs a final cycle point"),
        ("R1//T00", "needs a final cycle point"),
        ("R2/20000105/20000101", "end before its start"),
        ("P1D!T00!T06", "more than one '!'"),
        ("P1D!T00,T06", "without parentheses"),
        ("P1D!()", "empty recurrence"),
        ("P1D!(T00", "parentheses"),
        ("R1/min(T00", "closing parenthesis"),
        ("R1/min(T00)T06", "only intervals may follow"),
        ("R1/min()", "empty recurrence"),
        ("T00+P1D-P1DP1D", "not a valid interval"),
        ("R1/^" + "+P1D" * 9, "9 intervals in a row"),
        ("R1/^+P999999999999Y", "cannot be written"),
        ("PT30S", "cannot be written exactly"),
        ("R1/20000105T000030Z", "cannot be written exactly"),
        ("32T00", "expected 1 to 31"),
        ("--1301", "expected 1 to 12"),
        ("--0230", "expected 1 to 29"),
        ("T25", "expected 0 to 24"),
        ("T2430", "later than 24:00"),
        ("T00+25", "more than a day from UTC"),
        ("20010229/P1D", "not a date of the gregorian calendar"),
        ("2001366/P1D", "not a date of the gregorian calendar"),
        ("2001W531/P1D", "not a date of the gregorian calendar"),
        ("2001W018/P1D", "expected 1 to 7"),
        ("20001301/P1D", "expected 1 to 12"),
        ("T00,123456", "fraction of a second"),
        ("+0020000101/P1D", "expanded year digits"),
        ("+20000101/P1D", "year with a sign"),
    ],
)
def test_what_is_wrong_with_a_recurrence_is_said(text, says):
    with pytest.raises(BadCycling) as refusal:
        GREGORIAN.recurrence(text, GREGORIAN.point("20000101T06Z"), None)
    assert says in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("R3/1/4", "equal whole steps"),
        ("R/1/4", "does not say how often"),
        ("R3/4/1", "end before its start"),
        ("5", "does not say how often"),
        ("R3/5", "does not say how often"),
        ("P1D", "not an integer interval"),
        ("T00", "whole number"),
        ("R1/1" + "0" * 17 + "+P1", "cannot be written"),
        ("R1/$", "needs a final cycle point"),
    ],
)
def test_what_is_wrong_with_an_integer_recurrence_is_said(text, says):
    with pytest.raises(BadCycling) as refusal:
        INTEGER.recurrence(text, Point(1), None)
    assert says in str(refusal.value)


def test_a_recurrence_that_would_have_to_be_walked_too_far_is_refused():
    wide = CyclingReader("gregorian", expanded_year_digits=2)
    initial, final = wide.point("-9000000101"), wide.point("+9000000101")
    for text in ("P1M1D/$", "P1M1D", "R99999999999//P1M1D"):
        with pytest.raises(BadCycling, match="more than 12000 points"):
            wide.recurrence(text, initial, final)
    assert wide.recurrence("P1M1D", initial, None).last is None
    assert wide.recurrence("P1M/$", initial, final).first == initial
    assert wide.recurrence("P1M1D/20000101", wide.point("+0019990101"), final).last


def test_a_second_of_a_thousand_years_is_found_at_once():
    reader = CyclingReader("gregorian", point_format="CCYYMMDDThhmmssZ")
    initial = reader.point("10000101")
    seconds = reader.recurrence("PT1S!PT2S", initial, reader.point("20000101"))
    assert reader.style.text(seconds.last) == "19991231T235959Z"
    assert seconds.first_from(Point(-1)) == -1
    assert seconds.next_after(Point(-1)) == 1


def test_integer_cycling_does_not_look_at_settings_of_date_times():
    reader = CyclingReader("integer", time_zone="CET", point_format="x", expanded_year_digits=9)
    assert reader.style.text(reader.point("7")) == "7"


def test_lists_are_split_at_commas_outside_parentheses():
    assert split_recurrences("P1!(P2,6), R1/^ ,R1/min(T00,T06)") == [
        "P1!(P2,6)",
        "R1/^",
        "R1/min(T00,T06)",
    ]
    for text, says in (
        ("P1,,P2", "empty"),
        ("", "empty"),
        ("P1)", "parentheses"),
        ("P1," * 2000 + "P1", "at most 1000"),
        ("P" * 20_000, "at most 10000"),
    ):
        with pytest.raises(BadCycling, match=says):
            split_recurrences(text)


@pytest.mark.parametrize(
    ("text", "interval"),
    [
        ("P1", Interval(units=1)),
        ("-P3", Interval(units=-3)),
        ("+P3", Interval(units=3)),
    ],
)
def test_integer_intervals_are_numbers(text, interval):
    assert INTEGER.interval(text) == interval


@pytest.mark.parametrize(
    ("text", "interval"),
    [
        ("P1Y2M3DT4H5M6S", Interval(1, 2, 3 * 86_400 + 4 * 3600 + 5 * 60 + 6)),
        ("-P1W", Interval(units=-7 * 86_400)),
        ("PT1,5H", Interval(units=5400)),
        ("PT0.25M", Interval(units=15)),
        ("P0001-02-03T04:05:06", Interval(1, 2, 3 * 86_400 + 4 * 3600 + 5 * 60 + 6)),
        ("P00010203", Interval(1, 2, 3 * 86_400)),
        ("P0D", Interval()),
    ],
)
def test_date_time_intervals_are_iso_8601(text, interval):
    assert GREGORIAN.interval(text) == interval


@pytest.mark.parametrize(
    ("settings_", "text", "written"),
    [
        ({}, "2000", "20000101T0000Z"),
        ({}, "2000-01-02T03:04+01:00", "20000102T0204Z"),
        ({}, "20000101T000059", "20000101T0000Z"),
        ({}, "20000101T24", "20000102T0000Z"),
        ({}, "20000101T00,5", "20000101T0030Z"),
        ({}, "20000101T0000.5", "20000101T0000Z"),
        ({}, "20000101T000000,0", "20000101T0000Z"),
        ({}, "2000-W01-3", "20000105T0000Z"),
        ({}, "2000W01", "20000103T0000Z"),
        ({}, "2000060", "20000229T0000Z"),
        ({"time_zone": "+0530"}, "20000101T00", "20000101T0000+0530"),
        ({"time_zone": "+05:30"}, "20000101T00Z", "20000101T0530+0530"),
        ({"time_zone": "-08"}, "20000101T00", "20000101T0000-08"),
        ({"point_format": "CCYYMM"}, "200003", "200003"),
        ({"point_format": "CCYYMM"}, "20000315", "200003"),
        ({"point_format": "%Y%m%d%H"}, "2000031506", "2000031506"),
        ({"point_format": "%Y%m%d%H"}, "20000315T06Z", "2000031506"),
        ({"expanded_year_digits": 2}, "-0100000101", "-0100000101T0000Z"),
        ({"expanded_year_digits": 2}, "2000", "+0020000101T0000Z"),
    ],
)
def test_points_are_read_in_the_notation_of_their_workflow(settings_, text, written):
    reader = CyclingReader("gregorian", **settings_)
    assert reader.style.text(reader.point(text)) == written


@pytest.mark.parametrize(
    "text", ["T00", "--0101", "00000", "2000-01-01T00+99", "x" * 200, "\u0663"]
)
def test_a_point_must_be_whole(text):
    with pytest.raises(BadCycling):
        GREGORIAN.point(text)


@pytest.mark.parametrize(
    "settings_",
    [
        {"mode": "julian"},
        {"mode": "gregorian", "time_zone": "CET"},
        {"mode": "gregorian", "time_zone": "+24"},
        {"mode": "gregorian", "point_format": "CCYY/MM"},
        {"mode": "gregorian", "point_format": "CCYYMMDDThh:mm"},
        {"mode": "gregorian", "point_format": "MM"},
        {"mode": "gregorian", "expanded_year_digits": 9},
        {"mode": "gregorian", "point_format": "CCYY", "expanded_year_digits": 2},
    ],
)
def test_settings_that_make_no_points_are_refused(settings_):
    with pytest.raises(BadCycling):
        CyclingReader(**settings_)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("now", "20170615T1230Z"),
        ("20000101", "20000101T0000Z"),
        ("-P1D", "20170614T1230Z"),
        ("P1D", "20170616T1230Z"),
        ("-P1M+PT6H", "20170515T1830Z"),
        ("T00", "20170616T0000Z"),
        ("next(T00)", "20170616T0000Z"),
        ("next(T06;T18)", "20170615T1800Z"),
        ("previous(T06;T18)", "20170615T0600Z"),
        ("previous(T-00) - PT1H", "20170615T1100Z"),
        ("next(T-00)PT1H", "20170615T1400Z"),
        ("previous(--0101)", "20170101T0000Z"),
        ("next(--0229)", "20200229T0000Z"),
        ("previous(--0229)", "20160229T0000Z"),
        ("previous(---31)", "20170531T0000Z"),
        ("next(-W-1T06)", "20170619T0600Z"),
        ("previous(-05)", "20050101T0000Z"),
    ],
)
def test_initial_points_can_start_from_the_clock(text, written):
    assert GREGORIAN.style.text(GREGORIAN.initial_point(text, NOW)) == written


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("next(20000101)", "complete date-time"),
        ("next(T00,T06)", "not a valid date-time"),
        ("next(T00)T06", "only intervals may follow"),
        ("last(T00)", "not a valid initial cycle point"),
        ("next()", "not a valid date-time"),
        ("now-P1D", "not a valid date-time"),
    ],
)
def test_what_is_wrong_with_an_initial_point_is_said(text, says):
    with pytest.raises(BadCycling, match=says):
        GREGORIAN.initial_point(text, NOW)


def test_the_clock_is_read_in_calendars_that_lack_its_day():
    may_31 = 1_496_232_000.0
    reader = CyclingReader("360day")
    assert reader.style.text(reader.initial_point("now", may_31)) == "20170530T1200Z"
    assert INTEGER.initial_point("3", may_31) == 3


def test_other_points_may_be_relative_to_the_initial_one():
    initial = GREGORIAN.point("20000101T06Z")
    write = GREGORIAN.style.text
    assert write(GREGORIAN.final_point("+P1Y", initial)) == "20010101T0600Z"
    assert write(GREGORIAN.final_point("P1M", initial)) == "20000201T0600Z"
    assert write(GREGORIAN.relative_point("T00", initial)) == "20000102T0000Z"
    assert write(GREGORIAN.start_point("20000105", initial, None, NOW)) == "20000105T0000Z"
    assert write(GREGORIAN.start_point("now", initial, None, NOW)) == "20170615T1230Z"
    assert INTEGER.final_point("+P5", Point(1)) == 6
    assert INTEGER.final_point("5", Point(1)) == 5
    assert GREGORIAN.relative_point("T06", initial) == initial
    with pytest.raises(BadCycling, match="before the initial one"):
        GREGORIAN.final_point("1999", initial)
    with pytest.raises(BadCycling):
        GREGORIAN.relative_point("now", initial)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("$", "counts from the final point"),
        ("^2000", "point after"),
        ("^^", "point after"),
        ("foo", "not a valid date-time"),
        ("-W05", "week without a day"),
        ("-P1X", "not a valid interval"),
        ("9999+P1Y", "cannot be written"),
    ],
)
def test_what_is_wrong_with_an_offset_is_said(text, says):
    with pytest.raises(BadCycling, match=says):
        GREGORIAN.offset(text)


def test_workflows_of_different_calendars_do_not_disturb_each_other():
    readers_ = {mode: CyclingReader(mode) for mode in MODES if mode != "integer"}
    lengths = {"gregorian": 29, "360day": 30, "365day": 28, "366day": 29}
    for mode in random.choices(sorted(readers_), k=50):
        reader = readers_[mode]
        february = reader.recurrence("R1/^+P1M-P1D", reader.point("20000201"), None)
        wanted = lengths[mode.replace("_", "")]
        assert reader.style.text(february.first) == f"200002{wanted}T0000Z"
