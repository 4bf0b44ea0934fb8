"""How long a failed task waits before it is tried again."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.core.queue.retry import (
    DELAY_SECONDS_MAX,
    NO_DELAY,
    Exponential,
    FixedDelays,
    delay_before_retry,
    retry_findings,
)

chances = st.floats(0, 1, exclude_max=True)


@pytest.mark.parametrize(("failures", "seconds"), [(1, 5), (2, 60), (3, 60), (1000, 60)])
def test_the_nth_retry_waits_for_the_nth_delay_and_the_last_repeats(failures, seconds):
    policy = FixedDelays(seconds=(5, 60))
    assert delay_before_retry(policy, failures, 0.9) == seconds


def test_unless_asked_otherwise_there_is_no_delay():
    assert delay_before_retry(NO_DELAY, 1, 0.5) == 0


@pytest.mark.parametrize(
    ("failures", "seconds"), [(1, 1), (2, 3), (3, 9), (4, 10), (99_999, 10)]
)
def test_an_exponential_delay_grows_up_to_its_bound(failures, seconds):
    policy = Exponential(first_seconds=1, factor=3, seconds_max=10, jitter=0)
    assert delay_before_retry(policy, failures, 0.9) == seconds


@pytest.mark.parametrize(("chance", "seconds"), [(0.0, 100), (0.5, 75), (0.999, 50.05)])
def test_jitter_is_the_share_of_the_delay_that_is_left_to_chance(chance, seconds):
    policy = Exponential(first_seconds=100, factor=1, jitter=0.5)
    assert delay_before_retry(policy, 1, chance) == pytest.approx(seconds)


@given(
    policy=st.builds(
        Exponential,
        first_seconds=st.floats(0, DELAY_SECONDS_MAX),
        factor=st.floats(1, 100),
        seconds_max=st.floats(0, DELAY_SECONDS_MAX),
        jitter=st.floats(0, 1),
    ),
    failures=st.integers(1, 10**6),
    chance=chances,
)
def test_every_accepted_policy_gives_a_delay_within_its_bounds(policy, failures, chance):
    assert retry_findings(policy) == []
    delay = delay_before_retry(policy, failures, chance)
    assert 0 <= delay <= policy.seconds_max


@pytest.mark.parametrize("failures", [0, -1])
def test_a_task_that_never_failed_has_no_retry(failures):
    with pytest.raises(AssertionError):
        delay_before_retry(NO_DELAY, failures, 0.0)


@pytest.mark.parametrize("chance", [-0.1, 1.0])
def test_chance_is_a_share(chance):
    with pytest.raises(AssertionError):
        delay_before_retry(NO_DELAY, 1, chance)


@pytest.mark.parametrize(
    ("seconds", "seen", "accepted"),
    [
        ((), "0 delays", "1 to 100"),
        ((1.0,) * 101, "101 delays", "1 to 100"),
        ((-1.0,), "-1.0", "0 to 31536000 seconds"),
        ((math.nan,), "nan", "0 to 31536000 seconds"),
        ((31536001.0,), "31536001.0", "0 to 31536000 seconds"),
    ],
)
def test_fixed_delays_keep_their_bounds(seconds, seen, accepted):
    (finding,) = retry_findings(FixedDelays(seconds=seconds))
    assert finding.startswith("retry ")
    assert seen in finding
    assert accepted in finding


def test_fixed_delays_at_their_bounds_are_accepted():
    assert retry_findings(FixedDelays(seconds=(0.0, DELAY_SECONDS_MAX) * 50)) == []


@pytest.mark.parametrize(
    ("field", "value", "accepted"),
    [
        ("first_seconds", -1.0, "0 to 3.1536e+07"),
        ("first_seconds", math.inf, "0 to 3.1536e+07"),
        ("factor", 0.5, "1 to 100"),
        ("factor", 101, "1 to 100"),
        ("seconds_max", math.nan, "0 to 3.1536e+07"),
        ("jitter", -0.1, "0 to 1"),
        ("jitter", 1.1, "0 to 1"),
    ],
)
def test_exponential_delays_keep_their_bounds(field, value, accepted):
    findings = retry_findings(Exponential(**{field: value}))
    assert findings == [f"retry {field} is {value!r}; expected {accepted}"]


def test_every_finding_is_named_at_once():
    assert len(retry_findings(FixedDelays(seconds=(-1.0, 1.0, -2.0)))) == 2
    assert len(retry_findings(Exponential(first_seconds=-1, factor=0, jitter=2))) == 3
