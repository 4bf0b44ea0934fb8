"""STYLE 12: every service has one shape, and three kinds of failure get three treatments."""

import asyncio
from random import Random

import pytest

from tests.kit.virtual_time import (
    Standstill,
    VirtualClock,
    in_virtual_time,
    run_virtually,
)
from tidewheel.errors import StoreBusy
from tidewheel.services.service import Backoff, Service, Surroundings, TaskGroup, Wakeup


class Passes(Service):
    """A service that notes when it passed, and fails as it is told."""

    def __init__(self, failures=(), rest=10.0, **given):
        super().__init__("passes", Surroundings(clock=VirtualClock(), **given))
        self.at, self.failures, self.rest = [], list(failures), rest

    def rest_seconds(self):
        return self.rest

    async def run_once(self):
        self.at.append(self._clock.monotonic())
        if self.failures:
            raise self.failures.pop(0)
        return [self.report("pass.done", number=len(self.at))]


@in_virtual_time
async def test_a_service_rests_between_passes_unless_it_is_woken():
    service = Passes()
    await service.start()
    await asyncio.sleep(24.0)
    service.wake()
    await asyncio.sleep(2.0)
    await service.stop()
    assert service.at == [0.0, 10.0, 20.0, 24.0]


@in_virtual_time
async def test_every_pass_is_reported_to_the_one_who_listens():
    heard = []
    service = Passes(on_report=heard.append)
    await service.start()
    await asyncio.sleep(15.0)
    await service.stop()
    assert [(one.service, one.event, one.facts) for one in heard] == [
        ("passes", "pass.done", {"number": 1}),
        ("passes", "pass.done", {"number": 2}),
    ]


@in_virtual_time
async def test_a_store_that_does_not_answer_is_asked_again_after_a_growing_delay():
    heard = []
    service = Passes([StoreBusy() for _ in range(12)], chance=Random(3), on_report=heard.append)
    await service.start()
    await asyncio.sleep(100.0)
    await service.stop()
    delays = [one.facts["delay_seconds"] for one in heard if one.event == "store.unavailable"]
    assert len(delays) == 12
    assert max(delays) <= 5.0
    assert sum(delays[:4]) < sum(delays[-4:])
    assert [one.facts for one in heard if one.event == "store.back"] == [{"failures": 12}]


def test_a_back_off_is_anything_up_to_its_bound():
    backoff = Backoff(first_seconds=0.1, seconds_max=5.0)
    chance = Random(1)
    for failures, bound in ((1, 0.1), (2, 0.2), (5, 1.6), (6, 3.2), (7, 5.0), (10_000, 5.0)):
        delays = [backoff.delay_seconds(failures, chance) for _ in range(200)]
        assert max(delays) <= bound
        assert min(delays) < 0.1 * bound
        assert max(delays) > 0.9 * bound


@in_virtual_time
async def test_a_wake_up_does_not_cut_a_back_off_short():
    service = Passes([StoreBusy()] * 3, chance=Random(3), backoff=Backoff(first_seconds=100.0))
    await service.start()
    await asyncio.sleep(0.001)
    for _ in range(10):
        service.wake()
        await asyncio.sleep(0.001)
    assert len(service.at) == 1
    await service.stop()


@in_virtual_time
async def test_a_request_to_stop_cuts_a_back_off_short():
    service = Passes([StoreBusy()] * 9, chance=Random(3), backoff=Backoff(first_seconds=1e6))
    await service.start()
    await asyncio.sleep(1.0)
    await service.stop()
    assert asyncio.get_running_loop().time() == 1.0


@in_virtual_time
async def test_a_bug_ends_a_service():
    service = Passes([AssertionError("a bug")])
    await service.start()
    await asyncio.sleep(100.0)
    assert service.at == [0.0]
    with pytest.raises(AssertionError, match="a bug"):
        await service.stop()


@in_virtual_time
async def test_a_ring_before_the_wait_is_not_lost():
    alarm = Wakeup(VirtualClock())
    alarm.ring()
    await alarm.wait(1000.0)
    assert asyncio.get_running_loop().time() == 0.0
    await alarm.wait(1000.0)
    assert asyncio.get_running_loop().time() == 1000.0


@in_virtual_time
async def test_the_first_failure_in_a_crew_ends_everybody():
    ended = []

    async def work(name):
        try:
            await asyncio.sleep(1000.0)
        finally:
            ended.append(name)

    async def fail():
        await asyncio.sleep(1.0)
        raise AssertionError("a bug")

    crew = TaskGroup()
    for name in "abc":
        crew.add(work(name))
    crew.add(fail())
    with pytest.raises(AssertionError, match="a bug"):
        await crew.oversee(work("lead"))
    assert ended == ["lead", "a", "b", "c"]
    assert asyncio.get_running_loop().time() == 1.0


@in_virtual_time
async def test_a_crew_ends_with_its_work():
    async def work(seconds):
        await asyncio.sleep(seconds)

    crew = TaskGroup()
    crew.add(work(1000.0))
    await crew.oversee(work(5.0))
    assert asyncio.get_running_loop().time() == 5.0


def test_time_jumps_and_takes_none():
    async def wait():
        await asyncio.sleep(86_400.0 * 365)
        return asyncio.get_running_loop().time()

    assert run_virtually(wait(), start_at=5.0) == 86_400.0 * 365 + 5.0


def test_what_is_due_at_the_same_moment_happens_in_the_order_in_which_it_was_asked_for():
    async def wait():
        loop, happened = asyncio.get_running_loop(), []
        for number in range(100):
            loop.call_at(10.0, happened.append, number)
        await asyncio.sleep(11.0)
        return happened

    assert run_virtually(wait()) == list(range(100))


def test_a_standstill_is_named_instead_of_waiting_for_ever():
    async def wait():
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Standstill):
        run_virtually(wait())
