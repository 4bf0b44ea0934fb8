"""Figures of attempts: ends, waits, run times, use."""

from dataclasses import replace

import pytest

from tidewheel.core.queue.statistics import EndedAttempt, grouped, quantiles, statistics
from tidewheel.core.queue.status import Signal

ONE = EndedAttempt(
    queue="q",
    name="n",
    ended_by=Signal.SUCCEED,
    queue_seconds=1.0,
    run_seconds=2.0,
    cpu_asked=1.0,
    memory_asked_bytes=100,
    memory_used_bytes=50,
    cpu_used_percent=80.0,
)


def test_nothing_has_no_figures():
    none = statistics([])
    assert (none.attempts, none.ended_by, none.success_rate) == (0, {}, None)
    assert none.run_seconds is None


def test_quantiles_are_values_that_were_seen():
    seen = quantiles([*range(1, 101), None])
    assert (seen.count, seen.mean, seen.max) == (100, 50.5, 100)
    assert (seen.p50, seen.p90, seen.p99) == (51, 91, 100)
    assert quantiles([7.0]).p99 == 7.0


@pytest.mark.req("R003-60")
def test_success_is_judged_by_attempts_that_were_brought_to_an_end():
    ends = [Signal.SUCCEED] * 3 + [Signal.RETRY, Signal.YIELD, Signal.LAPSE, Signal.CANCEL]
    found = statistics([replace(ONE, ended_by=end) for end in ends])
    assert found.success_rate == 0.75
    assert found.ended_by == {"succeed": 3, "retry": 1, "yield": 1, "lapse": 1, "cancel": 1}


@pytest.mark.req("R003-60")
def test_use_is_compared_with_what_was_asked():
    modest = replace(ONE, memory_asked_bytes=0)
    unknown = replace(ONE, memory_used_bytes=None, cpu_used_percent=None, queue_seconds=None)
    found = statistics([ONE, modest, unknown])
    assert found.memory_used_of_asked.count == 1
    assert found.memory_used_of_asked.max == 0.5
    assert (found.memory_used_bytes.count, found.queue_seconds.count) == (2, 2)


def test_groups_are_by_whatever_is_asked_for():
    other = replace(ONE, queue="r", name=None)
    assert list(grouped([other, ONE], lambda one: one.queue)) == ["q", "r"]
    by_name = grouped([other, ONE], lambda one: one.name)
    assert {name: one.attempts for name, one in by_name.items()} == {"n": 1}
