"""Durations, sizes and times, read and shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.errors import BadSetting
from tidewheel.quantities import (
    exact_size,
    parse_duration,
    parse_size,
    show_duration,
    show_instant,
    show_moment,
    show_size,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (90, 90.0),
        (0.5, 0.5),
        ("90", 90.0),
        ("1.5", 1.5),
        ("250ms", 0.25),
        ("10s", 10.0),
        ("10 s", 10.0),
        ("10m", 600.0),
        ("2h", 7200.0),
        ("3d", 259200.0),
        ("PT90S", 90.0),
        ("PT1H30M", 5400.0),
        ("P1DT12H", 129600.0),
        ("P2W", 1209600.0),
        ("pt0.5s", 0.5),
    ],
)
def test_durations_that_are_accepted(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "soon", "-1", "-1s", "10x", "10M30", "P", "PT", "1e400", float("nan"), -1, True],
)
def test_durations_that_are_refused(text):
    with pytest.raises(BadSetting, match="seconds, a number with ms"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (1000, 1000),
        ("1000", 1000),
        ("1kB", 1000),
        ("1KiB", 1024),
        ("2GiB", 2 * 1024**3),
        ("1.5 MB", 1_500_000),
        ("4g", 4 * 1024**3),
        ("1TiB", 1024**4),
        (str(2**60 + 1), 2**60 + 1),
    ],
)
def test_sizes(text, count):
    assert parse_size(text) == count


@pytest.mark.parametrize("text", ["", "big", "-1", "1 XiB", "1.5.2GB", True])
def test_sizes_that_are_refused(text):
    with pytest.raises(BadSetting, match="bytes, or a number with"):
        parse_size(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-0.1, "0ms"),
        (0.0, "0ms"),
        (0.35, "350ms"),
        (0.9999, "1s"),
        (4.24, "4.2s"),
        (9.97, "10s"),
        (59.6, "1m"),
        (200, "3m 20s"),
        (7500, "2h 5m"),
        (86400, "1d"),
        (273600, "3d 4h"),
    ],
)
def test_durations_as_a_person_says_them(seconds, text):
    assert show_duration(seconds) == text


@given(st.floats(min_value=0, max_value=1e8))
def test_a_shown_duration_is_within_a_tenth_of_the_truth(seconds):
    parts = [parse_duration(part) for part in show_duration(seconds).split()]
    assert sum(parts) == pytest.approx(seconds, rel=0.1, abs=0.0006)


def test_sizes_and_times_as_a_person_reads_them():
    assert [show_size(n) for n in (0, 1023, 1024, 1536 * 1024**2)] == [
        "0 B",
        "1023 B",
        "1 KiB",
        "1.5 GiB",
    ]
    assert show_instant(1633781601.0) == "2021-10-09T12:13:21Z"
    assert show_instant(1633781601.25) == "2021-10-09T12:13:21.250000Z"
    assert show_moment(1633781601.25) == "2021-10-09T12:13:21.250Z"


@given(st.integers(0, 2**60))
def test_an_exact_size_is_read_back_to_the_byte(count):
    assert parse_size(exact_size(count)) == count


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (10**9, "1GB"), (2 * 10**12, "2TB"), (64 * 2**20, "64MiB"), (1001, "1001")],
)
def test_an_exact_size_takes_the_largest_unit_without_a_fraction(count, text):
    assert exact_size(count) == text
