"""A request that takes too long is ended, as ``asyncio.timeout`` would end it."""

import asyncio
from functools import wraps

import pytest

from tidewheel.server.time_limits import TimeLimits


def in_a_loop(test):
    """Runs a test in an event loop of its own."""

    @wraps(test)
    def run(**given):
        asyncio.run(test(**given))

    return run


@in_a_loop
async def test_what_takes_too_long_is_ended():
    limits = TimeLimits()
    with pytest.raises(TimeoutError), limits.within(0.01):
        await asyncio.Event().wait()
    assert asyncio.current_task().cancelling() == 0


@in_a_loop
async def test_what_ends_in_time_is_left_alone():
    limits = TimeLimits()
    with limits.within(0.01):
        pass
    with pytest.raises(TimeoutError), limits.within(0.02):  # both times are up when this ends
        await asyncio.Event().wait()
    with limits.within(60):
        await asyncio.sleep(0)


@in_a_loop
async def test_each_of_many_is_ended_when_its_own_time_is_up():
    limits, ended = TimeLimits(), []

    async def request(name, seconds):
        try:
            with limits.within(seconds):
                await asyncio.Event().wait()
        except TimeoutError:
            ended.append(name)

    tasks = [asyncio.create_task(request("late", 0.05))]
    tasks += [asyncio.create_task(request(name, 0.01)) for name in "abc"]
    await asyncio.gather(*tasks)
    assert ended == ["a", "b", "c", "late"]


@in_a_loop
async def test_it_can_be_ended_before_its_time_and_only_once():
    limits = TimeLimits()
    ended = []

    async def request():
        with limits.within(60) as limit:
            limit.end()
            limit.end()
            ended.append(limit)
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await request()
    assert asyncio.current_task().cancelling() == 0
    ended[0].end()  # it is over: that ends nothing else
    await asyncio.sleep(0)
    await asyncio.sleep(0)


@in_a_loop
async def test_who_is_ended_by_another_is_not_told_that_time_was_up():
    limits, began = TimeLimits(), asyncio.Event()

    async def request():
        with limits.within(60):
            began.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(request())
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@in_a_loop
async def test_an_error_of_the_request_itself_is_told():
    with pytest.raises(ValueError, match="its own"), TimeLimits().within(60):
        raise ValueError("its own")
