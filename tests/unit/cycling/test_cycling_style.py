"""Points are written as metomi writes them, and what was written is read again."""

import pickle
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metomi.isodatetime.dumpers import TimePointDumper

from tests.unit.cycling.oracle import (
    CALENDARS,
    OFFSETS_MINUTES,
    any_date,
    any_second,
    metomi_in,
    moment,
    seconds,
)
from tidewheel.core.cycling.calendar import BadCycling, Calendar, Point
from tidewheel.core.cycling.style import INTEGER_POINT_MAX, PointStyle, style_of

FORMATS = [
    *("CCYYMMDDThhmmZ", "CCYY", "CCYYMMDD", "CCYY-MM-DDThh:mm+01:00", "CCYYMMDDThh"),
    *("CCYY-MM", "CCYYMM", "CCYYMMDDThhmmss+hhmm", "CCYYMMDDThhmm+hh:mm", "CCYYMMDDThhmm-0330"),
    *("CCYYDDDThhmmZ", "CCYY-DDD", "CCYY-Www-DThh+05", "CCYYWwwD", "CCYYMMDDThhmm+13"),
    *("%Y%m%d%H", "%Y", "%Y-%m-%d", "%FT%H", "%Y%jT%H%M", "%Y%m%dT%H%M%S%z", "%FT%X"),
    *("point-%Y%m%d", "CCYY_MM_DD", "%d%m%Y"),
]
EXPANDED = ["+XCCYYMMDDThhmmZ", "+XCCYY", "+XCCYY-MM-DDThh:mm:ss+0530", "+XCCYYDDDThhZ"]


def style(form: str, **more: object) -> PointStyle:
    return PointStyle(calendar=Calendar.GREGORIAN, format=form, **more)


@pytest.mark.parametrize("calendar", CALENDARS)
@pytest.mark.parametrize("form", FORMATS)
def test_a_point_is_written_as_metomi_writes_it(calendar, form):
    dumper = TimePointDumper(0)
    with metomi_in(calendar):
        for _ in range(12):
            offset = random.choice(OFFSETS_MINUTES)
            there = moment(any_date(calendar, (1, 9998)), any_second(), offset)
            ours = PointStyle(calendar=calendar, utc_offset_minutes=offset, format=form)
            text = ours.text(seconds(there))
            assert text == dumper.dump(there, form)
            assert ours.text(ours.read(text)) == text
            assert ours.rounded(seconds(there)) <= seconds(there)


@pytest.mark.parametrize("digits", [1, 2, 4])
@pytest.mark.parametrize("form", EXPANDED)
def test_expanded_and_negative_years_are_written_as_metomi_writes_them(form, digits):
    dumper = TimePointDumper(digits)
    most = 10 ** (4 + digits) - 1
    with metomi_in(Calendar.GREGORIAN):
        for _ in range(12):
            years = random.choice([(-most + 1, -1), (-5, 5), (0, most - 1)])
            there = moment(any_date(Calendar.GREGORIAN, years), any_second())
            ours = style(form, expanded_year_digits=digits)
            text = ours.text(seconds(there))
            assert text == dumper.dump(there, form)
            assert ours.text(ours.read(text)) == text


@given(st.integers(-62_167_219_200, 253_402_300_799))
def test_a_point_in_seconds_is_read_as_it_was_written(point):
    ours = style("CCYYMMDDThhmmssZ")
    assert ours.read(ours.text(Point(point))) == point


def test_seconds_since_1970_are_a_format():
    ours = style("%s")
    assert ours.text(Point(1_000_000_000)) == "1000000000"
    assert ours.read("-5") == -5


def test_the_first_and_the_last_point_that_can_be_written_are_known():
    for form in FORMATS:
        ours = style(form, utc_offset_minutes=765)
        for edge, beyond in ((ours.first_point, -1), (ours.last_point, 1)):
            assert ours.read(ours.text(edge)) <= edge
            with pytest.raises(BadCycling, match="expanded year digits"):
                ours.text(Point(edge + beyond))


def test_the_time_zone_of_the_format_wins_over_that_of_the_workflow():
    assert style("CCYYMMDDThhmmZ", utc_offset_minutes=60).written_offset_minutes == 0
    assert style("CCYYMMDDThhmm-0330", utc_offset_minutes=60).written_offset_minutes == -210
    assert style("CCYYMMDDThhmm+hhmm", utc_offset_minutes=60).written_offset_minutes == 60
    assert style("CCYYMMDD", utc_offset_minutes=60).written_offset_minutes == 60


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("CCYYMMDDThhmmZ", "20000101T0000"),
        ("CCYYMMDDThhmmZ", "20001301T0000Z"),
        ("CCYYMMDDThhmmZ", "20000001T0000Z"),
        ("CCYYMMDDThhmmZ", "20000230T0000Z"),
        ("CCYYMMDDThhmmZ", "20000100T0000Z"),
        ("CCYYMMDDThhmmZ", "20000101T2400Z"),
        ("CCYYMMDDThhmmZ", "20000101T0060Z"),
        ("CCYYMMDDThhmmZ", "٢0000101T0000Z"),
        ("CCYYMMDDThhmmssZ", "20000101T000060Z"),
        ("CCYYDDD", "2001366"),
        ("CCYYWwwD", "2001W531"),
        ("CCYYWwwD", "2001W018"),
        ("CCYYWwwD", "2001W010"),
        ("CCYYMMDDThhmmZ", "20000101T0000Z\n"),
    ],
)
def test_a_text_that_was_not_written_so_is_refused(form, text):
    with pytest.raises(BadCycling, match=text.strip()):
        style(form).read(text)


@pytest.mark.parametrize(
    "form",
    [
        *("", "MMDD", "CCYYDD", "CCYYThh", "CCYYMMDDThhss", "CCYYMMMM", "YYMMDD", "CCMMDD"),
        *("CCYYMMDDThh,ii", "-zWwwD", "%y%m%d", "%Y%d", "%", "%Y%", "CCYYMMDDTT" + "x" * 100),
        *("CCYYMMDD\u00e9", "CCYY\tMM", "XCCYY", "+XCCYY", "CCYYMMWww", "%Y%s", "CCYYDDDMM"),
        *("CCYYWwwDDD",),
    ],
)
def test_a_format_that_cannot_be_read_back_is_refused(form):
    with pytest.raises(BadCycling, match="cycle point format"):
        style(form)


@pytest.mark.parametrize("form", ["CCYYMMDD", "XCCYYMMDD", "+CCYY"])
def test_expanded_years_need_their_sign_and_digits_in_the_format(form):
    with pytest.raises(BadCycling, match="cycle point format"):
        style(form, expanded_year_digits=2)


@pytest.mark.parametrize("digits", [-1, 7])
def test_years_of_endless_digits_are_refused(digits):
    with pytest.raises(BadCycling, match="expanded year digits"):
        style("+XCCYY", expanded_year_digits=digits)


def test_integer_points_are_written_as_numbers():
    numbers = PointStyle(calendar=Calendar.INTEGER)
    assert numbers.text(Point(-7)) == "-7"
    assert [numbers.read(text) for text in ("-7", "+7", "007")] == [-7, 7, 7]
    for text in ("", "x", "1.5", "P1", "\u0661", str(INTEGER_POINT_MAX + 1), "9" * 30):
        with pytest.raises(BadCycling, match="whole number"):
            numbers.read(text)


def test_styles_are_values():
    one, two = style("CCYY"), style("CCYY")
    assert one == two and hash(one) == hash(two) and one != style("CCYYMM")
    assert pickle.loads(pickle.dumps(one)).text(Point(0)) == "1970"


def test_a_refusal_says_what_and_what_to_do():
    refusal = BadCycling("what", "do this")
    assert (str(refusal), str(BadCycling("what"))) == ("what. do this", "what")
    assert refusal.code == "bad_cycling"
    again = pickle.loads(pickle.dumps(refusal))
    assert (again.message, again.hint) == ("what", "do this")


@pytest.mark.parametrize(
    "said",
    [
        PointStyle(calendar=Calendar.INTEGER),
        PointStyle(calendar=Calendar.INTEGER, is_unwritten=True),
        PointStyle(calendar=Calendar.DAYS_360, utc_offset_minutes=90, format="CCYY-MM-DDThh"),
    ],
)
def test_the_words_of_a_style_make_the_same_style_again(said):
    again = style_of(said.words)
    assert again == said
    assert again.text(Point(7200)) == said.text(Point(7200))
