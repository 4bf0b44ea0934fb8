"""Values of a flow.cylc: quotes, lists, durations, calls."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metomi.isodatetime.parsers import DurationParser

from tidewheel.formats.flow_cylc.values import (
    READERS,
    BadValue,
    ValueKind,
    duration_seconds,
    list_items,
    multiplied,
    plain_text,
)
from tidewheel.formats.flow_cylc.xtriggers import XtriggerCall, read_xtrigger


@pytest.mark.parametrize(
    ("raw", "items"),
    [
        ("", []),
        ("a", ["a"]),
        ("a, b c ,d", ["a", "b c", "d"]),
        ("a, b,", ["a", "b"]),
        ("a, b  # c, d", ["a", "b"]),
        ("'a, b', c", ["a, b", "c"]),
        ("\"echo '%(id)s', now\", x", ["echo '%(id)s', now", "x"]),
        ("'a' # comment", ["a"]),
        ('say("a, b"), c', ['say("a, b")', "c"]),
        ("foo<m, n>, bar", ["foo<m, n>", "bar"]),
        ("a < b, c", ["a < b", "c"]),
        ('"""a, b"""', ["a", "b"]),
        ("it's, fine", ["it's", "fine"]),
    ],
)
def test_a_list_is_split_at_its_commas(raw, items):
    assert list_items(raw) == items


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("a b", "a b"),
        ("${X#y}", "${X"),
        ('"${X#y}"', "${X#y}"),
        ('"a \\" b"', 'a \\" b'),
        ("'''\n  a\n   b'''", "a\n b"),
    ],
)
def test_a_plain_text_loses_quotes_comment_and_indentation(raw, text):
    assert plain_text(raw) == text


def _written(years, months, days, clock, sign):
    date = "".join(
        f"{n}{unit}" for n, unit in zip((years, months, days), "YMD", strict=True) if n
    )
    time = "".join(f"{n}{unit}" for n, unit in zip(clock, "HMS", strict=True) if n)
    return f"{sign}P{date}" + (f"T{time}" if time else "" if date else "T0S")


@given(
    st.integers(0, 20),
    st.integers(0, 20),
    st.integers(0, 400),
    st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99)),
    st.sampled_from(["", "-"]),
)
def test_durations_are_as_long_as_metomi_says(years, months, days, clock, sign):
    text = _written(years, months, days, clock, sign)
    assert duration_seconds(text) == DurationParser().parse(text).get_seconds()


@pytest.mark.parametrize("text", ["P1W", "PT1.5H", "PT0,5M", "P1DT12H", "PT0S", "P0Y"])
def test_other_forms_of_durations_are_as_long_too(text):
    assert duration_seconds(text) == DurationParser().parse(text).get_seconds()


@pytest.mark.parametrize("text", ["", "P", "PT", "1H", "P1H", "PT1D", "P1W1D", "P1.5Y", "p1d"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(BadValue):
        duration_seconds(text)


def test_a_number_and_a_star_repeat_an_item():
    assert multiplied(["2*a", "b", " 1 * c"]) == ["a", "a", "b", "c"]


@pytest.mark.parametrize(
    ("kind", "raw", "value"),
    [
        (ValueKind.INTEGER, "'7'  # seven", 7),
        (ValueKind.INTEGER, "", None),
        (ValueKind.NUMBER, "1e3", 1000.0),
        (ValueKind.NUMBER, "", None),
        (ValueKind.BOOLEAN, '"true"', True),
        (ValueKind.BOOLEAN, "", None),
        (ValueKind.DURATION, "", None),
        (ValueKind.DURATIONS, "2*PT1M, PT1H", (60.0, 60.0, 3600.0)),
        (ValueKind.DURATIONS, "", ()),
        (ValueKind.PARAMETER, "1..3, 7", (1, 2, 3, 7)),
        (ValueKind.PARAMETER, "5..1", ()),
        (ValueKind.PARAMETER, "007, x", ("007", "x")),
        (ValueKind.POINT, "2030 + P1D", "2030 + P1D"),
        (ValueKind.NAMES, "a, b<m, n>", ("a", "b<m, n>")),
    ],
)
def test_each_kind_reads_its_values(kind, raw, value):
    assert READERS[kind](raw) == value


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        (ValueKind.INTEGER, "1.5"),
        (ValueKind.NUMBER, "nan"),
        (ValueKind.NUMBER, "x"),
        (ValueKind.BOOLEAN, "TRUE"),
        (ValueKind.BOOLEAN, "1"),
        (ValueKind.NAMES, "a b"),
        (ValueKind.PARAMETER, ",".join(map(str, range(10_001)))),
    ],
)
def test_each_kind_refuses_what_it_is_not(kind, raw):
    with pytest.raises(BadValue):
        READERS[kind](raw)


@pytest.mark.parametrize("raw", ["3xPT1S", "3 x PT1S", "3×PT1S"])
def test_a_delay_that_is_repeated_otherwise_is_told_how(raw):
    with pytest.raises(BadValue) as refused:
        READERS[ValueKind.DURATIONS](raw)
    assert "3*PT1S" in refused.value.hint


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("f()", XtriggerCall("f")),
        ("f(a, 1, 1.5, True, None)", XtriggerCall("f", ("a", 1, 1.5, True, None))),
        ("f('a, b', k=\"c=d\"):PT1M", XtriggerCall("f", ("a, b",), (("k", "c=d"),), 60.0)),
        ("f(%(point)s, k=)", XtriggerCall("f", ("%(point)s",), (("k", ""),))),
        ("f(a,)", XtriggerCall("f", ("a",))),
        ("f(x//2030/t:done)", XtriggerCall("f", ("x//2030/t:done",))),
    ],
)
def test_a_call_is_read_into_its_parts(text, call):
    assert read_xtrigger(text) == call
