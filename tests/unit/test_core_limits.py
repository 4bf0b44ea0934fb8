"""How many tasks of a queue, or of a key within it, may be claimed now."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.core.queue.limits import (
    EACH_KEY,
    UNLIMITED,
    WHOLE_QUEUE,
    Bucket,
    Limit,
    limit_findings,
    limit_of,
    opens_at,
    refilled,
    room,
    spent,
)

TEN_A_MINUTE = Limit(key="k", rate_max=10, rate_seconds=60)


def bucket(tokens, at=0.0, key="k"):
    return Bucket(key=key, tokens=tokens, refilled_at=at)


def test_without_a_limit_there_is_room_for_any_number():
    assert room(None, 10**6, None, 0.0) == UNLIMITED
    assert room(Limit(), 10**6, None, 0.0) == UNLIMITED


@pytest.mark.parametrize(("running", "free"), [(0, 3), (2, 1), (3, 0), (4, 0)])
def test_what_runs_takes_room_away_and_never_more_than_there_was(running, free):
    assert room(Limit(concurrency_max=3), running, None, 0.0) == free


def test_a_new_bucket_is_full():
    assert refilled(TEN_A_MINUTE, None, 5.0) == bucket(10, 5.0)
    assert room(TEN_A_MINUTE, 10**6, None, 5.0) == 10


@pytest.mark.parametrize(
    ("now", "tokens"), [(0, 2), (6, 3), (9, 3.5), (48, 10), (10**9, 10), (-100, 2)]
)
def test_a_bucket_fills_with_time_up_to_its_size_and_a_clock_set_back_takes_nothing(
    now, tokens
):
    assert refilled(TEN_A_MINUTE, bucket(2), now) == bucket(tokens, now)


def test_only_whole_tokens_let_a_task_start():
    assert room(TEN_A_MINUTE, 0, bucket(0), 11.9) == 1
    assert room(TEN_A_MINUTE, 0, bucket(0), 12.0) == 2


def test_rounding_does_not_eat_a_token():
    limit = Limit(rate_max=10, rate_seconds=1)
    assert (0.3 - 0.2) * 10 < 1
    assert room(limit, 0, bucket(0, at=0.2), 0.3) == 1


def test_the_tighter_of_both_sides_counts():
    limit = Limit(concurrency_max=5, rate_max=10)
    assert room(limit, 1, bucket(10), 0.0) == 4
    assert room(limit, 1, bucket(2), 0.0) == 2


def test_a_key_has_its_own_limit_or_that_for_each_key():
    whole, each, wide = (Limit(key=key, rate_max=9) for key in (WHOLE_QUEUE, EACH_KEY, "wide"))
    assert limit_of([whole, each, wide], "wide") is wide
    assert limit_of([whole, each, wide], "narrow") is each
    assert limit_of([whole, wide], "narrow") is None


def test_the_queue_has_no_limit_but_its_own():
    assert limit_of([Limit(key=EACH_KEY, rate_max=9)], WHOLE_QUEUE) is None


@given(st.integers(1, 50), st.floats(0.01, 1000), st.floats(0, 0.999), st.floats(0, 2e9))
def test_a_key_without_a_start_has_one_when_it_opens_and_not_much_earlier(
    rate, seconds, tokens, now
):
    limit = Limit(key="k", rate_max=rate, rate_seconds=seconds)
    opens = opens_at(limit, bucket(tokens, now))
    assert room(limit, 0, bucket(tokens, now), opens + 1e-5 * (1 + seconds) + 1e-6) >= 1
    early = opens - 1e-5 * (1 + seconds) - 1e-6
    assert room(limit, 0, bucket(tokens, now), early) == 0


def test_taking_tasks_spends_tokens_of_their_key_and_of_the_queue():
    limits = [
        Limit(key=WHOLE_QUEUE, rate_max=100),
        Limit(key=EACH_KEY, rate_max=10),
        Limit(key="calm", concurrency_max=1),
    ]
    after = spent(limits, [bucket(4, 7.0)], {WHOLE_QUEUE: 6, "k": 3, "new": 2, "calm": 1}, 7.0)
    assert after == [bucket(94, 7.0, ""), bucket(1, 7.0), bucket(8, 7.0, "new")]


def test_the_limit_for_each_key_is_not_one_for_the_queue():
    assert spent([Limit(key=EACH_KEY, rate_max=10)], [], {WHOLE_QUEUE: 3}, 0.0) == []


@pytest.mark.slow
@given(
    rate=st.integers(1, 20),
    seconds=st.integers(1, 100),
    waits=st.lists(st.integers(0, 300), max_size=20),
)
def test_whoever_takes_all_there_is_never_starts_more_than_burst_and_rate_allow(
    rate, seconds, waits
):
    limit = Limit(key="k", rate_max=rate, rate_seconds=seconds)
    now, held, started = 0.0, None, 0
    for wait in waits:
        now += wait
        take = room(limit, 0, held, now)
        started += take
        held = next(iter(spent([limit], [held] if held else [], {"k": take}, now)))
        assert held.tokens > -1e-6
    assert started <= rate + now * rate / seconds + 1e-6


@pytest.mark.parametrize(
    ("limit", "finding"),
    [
        (Limit(concurrency_max=-1), "concurrency_max is -1; expected 0 or more"),
        (
            Limit(rate_max=0),
            "rate_max is 0; expected 1 or more (pause the queue to stop it)",
        ),
        (Limit(key="a\0"), "key 'a\\x00' has characters that cannot be printed"),
        (Limit(rate_seconds=0), "rate_seconds is 0; expected more than 0"),
        (Limit(rate_seconds=-2.5), "rate_seconds is -2.5; expected more than 0"),
        (Limit(rate_seconds=math.nan), "rate_seconds is nan; expected more than 0"),
        (Limit(rate_seconds=math.inf), "rate_seconds is inf; expected more than 0"),
    ],
)
def test_a_limit_that_means_nothing_is_refused(limit, finding):
    assert limit_findings(limit) == [finding]


def test_a_limit_may_let_nothing_run():
    assert limit_findings(Limit(concurrency_max=0, rate_max=1, rate_seconds=0.1)) == []
    assert room(Limit(concurrency_max=0), 0, None, 0.0) == 0
