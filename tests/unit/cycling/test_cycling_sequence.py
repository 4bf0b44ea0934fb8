"""Sequences have the points that metomi's recurrences have, near the start and far from it."""

import pickle
import random
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metomi.isodatetime.data import TimeRecurrence

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
from tidewheel.core.cycling.calendar import Calendar, Interval, Point, days_from_date
from tidewheel.core.cycling.sequence import (
    EXCLUDED_IN_A_ROW_MAX,
    WALKED_STEPS_MAX,
    Reckoning,
    Sequence,
    progression,
    steps_back,
)

DAY = 86_400
GREGORIAN = Calendar.GREGORIAN
EXACT = [Interval(units=units) for units in (60, 3600, 21_600, DAY, 7 * DAY, 100_000)]
NOMINAL = [Interval(months=months) for months in (1, 2, 3, 5, 6, 11, 12, 13)] + [
    Interval(years=1),
    Interval(years=4),
    Interval(years=1, months=1),
    Interval(years=3, months=12),
]
MIXED = [Interval(months=1, units=DAY), Interval(years=1, units=3600), Interval(0, 3, 9 * DAY)]


def day(year: int, month: int, day_of_month: int, calendar: Calendar = GREGORIAN) -> Point:
    return Point(days_from_date(calendar, year, month, day_of_month) * DAY)


def numbers(start: int, step: int | None = None, **more: object) -> Sequence:
    """A sequence of integer cycling."""
    interval = None if step is None else Interval(units=step)
    return Sequence(calendar=Calendar.INTEGER, start=Point(start), step=interval, **more)


def check_against(sequence: Sequence, wanted: list[Point]) -> None:
    """Every question about a sequence, asked around its points; the last may not be asked."""
    assert list(islice(sequence.points(), len(wanted))) == wanted
    for before, here, after in zip(wanted, wanted[1:], wanted[2:], strict=False):
        between = Point(random.randint(before + 1, here))
        assert sequence.contains(here)
        assert sequence.contains(between) == (between == here)
        assert sequence.first_from(between) == sequence.next_after(before) == here
        assert sequence.next_after(here) == after
        assert sequence.last_before(here) == sequence.last_until(Point(between - 1)) == before
        assert sequence.last_until(here) == sequence.last_until(Point(after - 1)) == here


@pytest.mark.slow
@pytest.mark.parametrize("calendar", CALENDARS)
def test_a_sequence_has_the_points_of_the_same_recurrence_of_metomi(calendar):
    with metomi_in(calendar):
        for _ in range(250):
            offset = random.choice(OFFSETS_MINUTES)
            start = moment(any_date(calendar), any_second(), offset)
            step = random.choice(EXACT + NOMINAL + MIXED)
            count = random.choice([None, 1, 2, 5, 9])
            theirs = TimeRecurrence(
                repetitions=count, start_point=start, duration=duration(step)
            )
            sequence = Sequence(
                calendar=calendar,
                start=seconds(start),
                step=step if count != 1 else None,
                upper=theirs.end_point and seconds(theirs.end_point),
                utc_offset_minutes=offset,
            )
            wanted = [seconds(point) for point in islice(theirs, 12)]
            assert list(islice(sequence.points(), 12)) == wanted, str(theirs)
            assert sequence.last == (wanted[-1] if count else None), str(theirs)
            check_against(sequence, wanted)


@pytest.mark.parametrize("calendar", CALENDARS)
@pytest.mark.parametrize("step", [*NOMINAL[::3], *MIXED[:2]])
def test_thousands_of_steps_away_the_points_are_those_that_one_counts(calendar, step):
    offset = random.choice(OFFSETS_MINUTES)
    start = Point(days_from_date(calendar, *any_date(calendar)) * DAY + any_second())
    sequence = Sequence(calendar=calendar, start=start, step=step, utc_offset_minutes=offset)
    walked = [start]
    for _ in range(60):
        walked.append(walk(calendar, walked[-1], step, offset))
    check_against(sequence, walked)


@pytest.mark.parametrize("calendar", CALENDARS)
@settings(max_examples=40)
@given(data=st.data())
def test_far_away_every_answer_agrees_with_the_others(calendar, data):
    """Where no oracle can walk to: neighbours are neighbours, and one step apart."""
    step = data.draw(st.sampled_from(EXACT + NOMINAL))
    start = data.draw(st.integers(-(10**10), 10**10))
    offset = data.draw(st.sampled_from(OFFSETS_MINUTES))
    sequence = Sequence(
        calendar=calendar, start=Point(start), step=step, utc_offset_minutes=offset
    )
    far = Point(start + data.draw(st.integers(0, 10**13)))
    here = sequence.first_from(far)
    before, after = sequence.last_before(far), sequence.next_after(here)
    assert here >= far
    assert sequence.contains(here) and not sequence.contains(Point(here + 1))
    assert walk_quickly(calendar, here, step, offset) == after
    assert before is None or sequence.next_after(before) == here
    assert sequence.last_before(after) == sequence.last_until(here) == here


def walk_quickly(calendar: Calendar, point: Point, step: Interval, offset: int) -> Point:
    """By hundreds of years to where one can count, and back."""
    local_days = (point + offset * 60) // DAY
    era_days = days_from_date(calendar, 2370, 1, 1) - days_from_date(calendar, 1970, 1, 1)
    eras = local_days // era_days
    moved = walk(calendar, Point(point - eras * era_days * DAY), step, offset)
    return Point(moved + eras * era_days * DAY)


def test_a_day_is_clamped_once_and_stays_so():
    months = Sequence(calendar=GREGORIAN, start=day(2000, 1, 31), step=Interval(months=1))
    wanted = [day(2000, 1, 31), day(2000, 2, 29), day(2000, 3, 29)]
    assert list(islice(months.points(), 3)) == wanted
    assert months.contains(day(2001, 2, 28)) and months.contains(day(9999, 3, 28))
    years = Sequence(calendar=GREGORIAN, start=day(2096, 2, 29), step=Interval(years=4))
    assert years.contains(day(2100, 2, 28)) and not years.contains(day(2104, 2, 29))
    eras = Sequence(calendar=GREGORIAN, start=day(2000, 2, 29), step=Interval(years=400))
    assert eras.contains(day(10_000, 2, 29))


def test_years_keep_the_day_of_the_year_or_of_a_week_if_the_start_was_written_so():
    for reckoning, start, wanted in (
        (Reckoning.ORDINAL, day(2000, 7, 18), [day(2001, 7, 19), day(2004, 7, 18)]),
        (Reckoning.ORDINAL, day(2000, 12, 31), [day(2001, 12, 31), day(2004, 12, 30)]),
        (Reckoning.WEEK, day(2000, 1, 31), [day(2001, 1, 29), day(2004, 1, 26)]),
        (Reckoning.WEEK, day(2005, 1, 1), [day(2005, 12, 31), day(2009, 12, 26)]),
    ):
        sequence = Sequence(
            calendar=GREGORIAN, start=start, step=Interval(years=1), reckoning=reckoning
        )
        first = list(islice(sequence.points(), 6))
        assert set(wanted) <= set(first)
        check_against(sequence, first)
        months = Sequence(
            calendar=GREGORIAN, start=start, step=Interval(months=12), reckoning=reckoning
        )
        assert months.next_after(start) > start


@pytest.mark.parametrize("calendar", CALENDARS)
def test_years_from_such_a_date_are_those_of_metomi(calendar):
    with metomi_in(calendar):
        for _ in range(40):
            start = moment(any_date(calendar, (1990, 2020)), any_second())
            reckoning = random.choice([Reckoning.ORDINAL, Reckoning.WEEK])
            is_week = reckoning is Reckoning.WEEK
            written = start.to_week_date() if is_week else start.to_ordinal_date()
            years = random.choice([1, 2, 4, 7])
            theirs = TimeRecurrence(
                start_point=written, duration=duration(Interval(years=years))
            )
            sequence = Sequence(
                calendar=calendar,
                start=seconds(start),
                step=Interval(years=years),
                reckoning=reckoning,
            )
            wanted = [seconds(point) for point in islice(theirs, 12)]
            assert list(islice(sequence.points(), 12)) == wanted, str(theirs)


@pytest.mark.parametrize("reckoning", list(Reckoning))
@pytest.mark.parametrize("calendar", CALENDARS)
def test_stepping_back_finds_the_first_point_not_after_another(calendar, reckoning):
    for _ in range(15):
        end = Point(random.randint(0, 10**10))
        until = Point(end - random.choice([-100, random.randint(0, 10**8), 10**10]))
        step = random.choice(EXACT + NOMINAL)
        offset = random.choice(OFFSETS_MINUTES)
        point, count = steps_back(
            calendar, end, step, until, utc_offset_minutes=offset, reckoning=reckoning
        )
        assert point <= until or count == 0
        if reckoning is Reckoning.MONTH and count < 60:
            walked, steps = end, 0
            while walked > until:
                walked, steps = walk(calendar, walked, -step, offset), steps + 1
            assert (walked, steps) == (point, count)


def test_steps_that_must_be_walked_end_somewhere():
    step = Interval(months=1, units=60)
    sequence = Sequence(calendar=GREGORIAN, start=Point(0), step=step)
    assert sequence.last is None
    assert sequence.first_from(Point(10**15)) is None
    end = sequence.last_before(Point(10**15))
    assert sequence.next_after(end) is None and sequence.contains(end)
    assert sequence.last_before(Point(0)) is None
    assert not sequence.contains(Point(-1))
    assert steps_back(GREGORIAN, Point(10**15), step, Point(0)) is None
    point, count = steps_back(GREGORIAN, Point(10**9), step, Point(0))
    assert point <= 0 and count < WALKED_STEPS_MAX
    assert Sequence(
        calendar=GREGORIAN, start=Point(0), step=step, upper=Point(10**15)
    ).is_cut_short
    bounded = Sequence(calendar=GREGORIAN, start=Point(0), step=step, upper=Point(10**8))
    assert not bounded.is_cut_short and not sequence.is_cut_short
    assert bounded.first_from(Point(10**8)) is None
    assert bounded.last == bounded.last_until(Point(10**15))


def test_a_step_that_does_not_lead_forwards_is_a_bug_of_the_caller():
    for step in (Interval(), Interval(units=-1), Interval(months=-1), Interval(1, -12)):
        with pytest.raises(AssertionError):
            progression(GREGORIAN, Point(0), step)


def test_bounds_cut_off_what_lies_beyond_them():
    odd = numbers(1, 2, lower=Point(4), upper=Point(10))
    assert list(odd.points()) == [5, 7, 9]
    assert (odd.first, odd.last) == (5, 9)
    assert not odd.contains(Point(3)) and not odd.contains(Point(11))
    assert odd.first_from(Point(-5)) == odd.next_after(Point(-5)) == 5
    assert odd.last_until(Point(99)) == odd.last_before(Point(99)) == 9
    assert odd.last_before(Point(5)) is None and odd.next_after(Point(9)) is None
    assert list(odd.points(Point(6), Point(8))) == [7]


def test_a_sequence_of_one_point_has_one():
    once = numbers(4)
    assert list(once.points()) == [4]
    assert (once.first, once.last, once.next_after(Point(4))) == (4, 4, None)
    assert numbers(4, lower=Point(5)).is_empty


def test_a_sequence_without_points_says_so():
    empty = numbers(5, 1, upper=Point(4))
    assert empty.is_empty and empty.first is None and empty.last is None
    assert list(empty.points()) == [] and empty.first_from(Point(0)) is None


def test_an_endless_sequence_has_no_last_point_even_if_writing_has_an_end():
    endless = numbers(1, 1, upper=Point(100), endless=True)
    assert endless.last is None
    assert endless.next_after(Point(100)) is None


def test_excluded_points_and_sequences_are_left_out():
    sequence = numbers(
        1,
        1,
        upper=Point(12),
        excluded_points=frozenset({Point(6)}),
        exclusions=(numbers(1, 2),),
    )
    assert list(sequence.points()) == [2, 4, 8, 10, 12]
    assert not sequence.contains(Point(6)) and not sequence.contains(Point(5))
    assert sequence.last_before(Point(8)) == 4
    assert sequence.next_after(Point(4)) == 8


def test_two_stretches_and_a_point_are_left_out_in_either_direction():
    stretches = (numbers(2, 1, upper=Point(4)), numbers(7, 1, upper=Point(9)))
    sequence = numbers(
        0, 1, upper=Point(12), excluded_points=frozenset({Point(11)}), exclusions=stretches
    )
    assert list(sequence.points()) == [0, 1, 5, 6, 10, 12]
    assert [sequence.last_before(Point(point)) for point in (12, 10, 5)] == [10, 6, 1]
    assert [sequence.next_after(Point(point)) for point in (1, 6, 10)] == [5, 10, 12]


@pytest.mark.slow
@given(
    step=st.integers(1, 6),
    points=st.frozensets(st.integers(0, 60), max_size=4),
    others=st.lists(
        st.tuples(
            st.integers(0, 30), st.integers(1, 6) | st.none(), st.integers(0, 70) | st.none()
        ),
        max_size=3,
    ),
)
def test_exclusions_leave_what_a_set_would_leave(step, points, others):
    excluding = tuple(
        numbers(start, gap, upper=None if upper is None else Point(upper))
        for start, gap, upper in others
    )
    sequence = numbers(0, step, upper=Point(60), excluded_points=points, exclusions=excluding)
    left = set(range(0, 61, step)) - points
    for start, gap, upper in others:
        stop = 61 if upper is None else min(61, upper + 1)
        left -= set(range(start, stop, gap)) if gap else {start} & set(range(stop))
    wanted = sorted(left)
    assert list(sequence.points()) == wanted
    assert [sequence.last_until(Point(point)) for point in range(61)] == [
        max((one for one in wanted if one <= point), default=None) for point in range(61)
    ]
    assert [sequence.contains(Point(point)) for point in range(61)] == [
        point in left for point in range(61)
    ]


@pytest.mark.parametrize(
    ("step", "excluding"),
    [
        (Interval(units=DAY), Interval(units=DAY)),
        (Interval(units=DAY), Interval(units=3600)),
        (Interval(months=1), Interval(months=1)),
        (Interval(months=1), Interval(units=DAY)),
        (Interval(years=1, units=DAY), Interval(units=3600)),
    ],
)
def test_a_sequence_that_excludes_itself_is_empty(step, excluding):
    exclusion = Sequence(calendar=GREGORIAN, start=Point(0), step=excluding)
    sequence = Sequence(calendar=GREGORIAN, start=Point(0), step=step, exclusions=(exclusion,))
    assert sequence.is_empty
    assert sequence.first_from(Point(10**9)) is None
    assert sequence.last_until(Point(10**9)) is None
    until = Point(10**8)
    for_a_while = Sequence(calendar=GREGORIAN, start=Point(0), step=excluding, upper=until)
    later = Sequence(calendar=GREGORIAN, start=Point(0), step=step, exclusions=(for_a_while,))
    assert later.first > until
    assert later.last_before(later.first) is None


def test_a_search_among_exclusions_that_cover_everything_together_gives_up():
    odd, even = numbers(1, 2), numbers(0, 2)
    sequence = numbers(0, 1, exclusions=(odd, even))
    assert sequence.is_empty
    assert sequence.last_until(Point(2 * EXCLUDED_IN_A_ROW_MAX)) is None
    daily = Sequence(calendar=GREGORIAN, start=Point(1), step=Interval(units=DAY))
    monthly = Sequence(calendar=GREGORIAN, start=Point(0), step=Interval(months=1))
    assert not monthly.covers(daily) and not daily.covers(monthly)


def test_equal_sequences_are_equal_values_whatever_their_text():
    one, two = numbers(1, 2, text="R/1/P2"), numbers(1, 2, text="P2")
    assert one == two and hash(one) == hash(two) and len({one, two}) == 1
    assert one != numbers(1, 3)
    for step in (None, EXACT[0], NOMINAL[0], MIXED[0]):
        sequence = Sequence(
            calendar=GREGORIAN, start=Point(5), step=step, exclusions=(numbers(5, 10),)
        )
        again = pickle.loads(pickle.dumps(sequence))
        assert again == sequence
        assert again.next_after(Point(9)) == sequence.next_after(Point(9))
