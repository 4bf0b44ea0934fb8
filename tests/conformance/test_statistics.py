"""Attempts that are over, as statistics see them."""

import pytest

from tidewheel.core.queue.requests import Report, UsageSample
from tidewheel.core.queue.resources import Resources


@pytest.mark.req("R003-60")
def test_ended_attempts_come_newest_first_with_times_and_use(store, clock):
    store.put("a", name="model", resources=Resources(cpu=2.0, memory_bytes=100))
    worker = store.hire("w")
    clock.advance(3)
    held = store.hold("a", worker)
    store.report([Report(holder=held.holder, started=True)])
    samples = tuple(UsageSample(memory_bytes=n, cpu_percent=float(n)) for n in (10, 30))
    store.report([Report(holder=held.holder, usage=samples)])
    clock.advance(5)
    store.finish(held, "yielded")
    again = store.hold("a", worker)
    clock.advance(1)
    store.finish(again, "succeeded")
    last, first = store.ended_attempts(10)
    assert (first.queue, first.name, first.ended_by.value) == ("q", "model", "yield")
    assert (first.queue_seconds, first.run_seconds) == (3.0, 5.0)
    assert (first.memory_used_bytes, first.cpu_used_percent) == (30, 20.0)
    assert (first.cpu_asked, first.memory_asked_bytes) == (2.0, 100)
    assert (last.ended_by.value, last.queue_seconds, last.run_seconds) == ("succeed", None, 1.0)
    assert (last.memory_used_bytes, last.cpu_used_percent) == (None, None)
    assert store.ended_attempts(1) == [last]


def test_an_attempt_that_runs_is_not_over(store):
    store.put("a")
    store.hold("a")
    assert store.ended_attempts(10) == []
