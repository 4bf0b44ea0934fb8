"""Seeds 002 and 003: jobs ended by a cancellation, a time limit, or a worker that goes."""

import asyncio

import pytest

from tests.kit.scripted_runner import SUCCESS, Script
from tests.kit.small_world import SmallWorld
from tests.kit.virtual_time import in_virtual_time
from tidewheel.config import OnStop
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.task import TaskId

STUBBORN = Script(obeys_after_seconds=None)


async def exit_statuses(world, task_id):
    return [one.exit_status for one in await world.store.attempts(TaskId(task_id))]


# ---- cancellation ----


@pytest.mark.req("R003-40", "R003-41", "R003-44", "R003-47", "R002-62")
@in_virtual_time
async def test_a_cancelled_job_is_asked_to_end_at_once_and_its_exit_status_is_kept():
    world = SmallWorld()
    await world.worker()
    await world.submit("a", max_termination_seconds=3.0)
    await world.passes(1.0)
    [answer] = await world.store.cancel([TaskId("a")])
    assert answer.status == "cancelling"  # without waiting for the job
    await world.passes(0.0)
    assert world.job("a").graces == [3.0]
    assert await world.status("a") == "cancelled"
    assert await exit_statuses(world, "a") == [-15]


@pytest.mark.req("R003-44", "R003-48")
@in_virtual_time
async def test_a_cancelled_job_that_does_not_obey_is_killed_after_its_grace():
    world = SmallWorld(lambda _: STUBBORN)
    await world.worker()
    await world.submit("a", max_termination_seconds=3.0)
    await world.store.cancel([TaskId("a")])
    await world.passes(2.9)
    assert await world.status("a") == "cancelling"
    await world.passes(0.1)
    assert await world.status("a") == "cancelled"
    [attempt] = await world.store.attempts(TaskId("a"))
    assert attempt.ended_at == 3.0


@pytest.mark.req("R003-46")
@in_virtual_time
async def test_a_job_that_had_ended_before_the_cancellation_came_reports_its_own_end():
    world = SmallWorld()
    one = await world.worker()
    await world.submit("a")
    one.store.delays("report", before=5.0)
    world.job("a").ends()
    await world.passes(1.0)
    await world.store.cancel([TaskId("a")])
    await world.passes(20.0)
    assert world.job("a").graces == []
    assert await world.status("a") == "cancelled"
    assert await exit_statuses(world, "a") == [0]


@pytest.mark.req("R003-51")
@in_virtual_time
async def test_a_cancelled_task_is_not_tried_again():
    world = SmallWorld()
    await world.worker()
    await world.submit("a", max_retries=5)
    await world.store.cancel([TaskId("a")])
    await world.passes(100.0)
    assert len(world.host.jobs) == 1
    assert await world.story("a") == ["claim", "cancel", "retry"]


@in_virtual_time
async def test_a_task_that_is_cancelled_while_its_job_is_being_started_ends():
    world = SmallWorld(lambda _: Script(start_seconds=2.0))
    await world.worker()
    await world.submit("a")
    await world.store.cancel([TaskId("a")])
    await world.passes(1.0)
    assert await world.status("a") == "cancelling"
    await world.passes(1.0)
    assert await world.status("a") == "cancelled"
    assert not world.job("a").running


@pytest.mark.req("R002-61")
@in_virtual_time
async def test_a_task_that_was_cancelled_before_anybody_claimed_it_never_runs():
    world = SmallWorld()
    await world.submit("a")
    await world.store.cancel([TaskId("a")])
    await world.worker()
    await world.passes(100.0)
    assert world.host.jobs == []


# ---- time limit ----


@in_virtual_time
async def test_a_job_that_runs_too_long_is_ended_and_not_tried_again():
    world = SmallWorld()
    await world.worker()
    await world.submit("a", timeout_seconds=60.0, max_retries=5)
    await world.passes(59.9)
    assert world.job("a").running
    await world.passes(0.1)
    assert not world.job("a").running
    task = await world.task("a")
    assert task.status == "failed"
    assert [(one.code, one.description) for one in task.errors] == [
        ("timed_out", "it ran longer than its limit of 60 s")
    ]
    assert await exit_statuses(world, "a") == [-15]


@in_virtual_time
async def test_monitor_and_worker_say_the_same_of_a_job_that_runs_too_long():
    world = SmallWorld(lambda _: STUBBORN)
    await world.worker()
    await world.monitor().start()
    await world.submit("a", timeout_seconds=60.0)
    await world.passes(80.0)
    task = await world.task("a")
    assert [(one.code, one.description) for one in task.errors] == [
        ("timed_out", "it ran longer than its limit of 60 s")
    ]
    assert not world.job("a").running


SWARM = frozenset({"runner:swarm"})


async def prepared_world(prepare_seconds):
    world = SmallWorld(lambda _: Script(prepare_seconds=prepare_seconds))
    await world.monitor().start()
    return world


async def swarm_worker(world):
    return await world.worker(runners=("swarm",), capacity=Resources(labels=SWARM))


@in_virtual_time
async def test_the_time_limit_of_a_job_counts_from_when_it_runs_not_from_its_preparation():
    world = await prepared_world(300.0)
    await swarm_worker(world)
    await world.submit("a", timeout_seconds=60.0, resources=Resources(labels=SWARM))
    await world.passes(359.9)
    assert world.job("a").running
    await world.passes(0.2)
    assert not world.job("a").running
    assert [one.code for one in (await world.task("a")).errors] == ["timed_out"]


@in_virtual_time
async def test_an_adopted_job_has_only_the_time_that_is_left_of_its_limit():
    world = await prepared_world(300.0)
    first = await swarm_worker(world)
    await world.submit("a", timeout_seconds=60.0, resources=Resources(labels=SWARM))
    await world.passes(305.0)
    await first.crashes()
    await swarm_worker(world)
    await world.passes(54.0)
    assert world.job("a").running and len(world.job("a").workers) == 2
    await world.passes(1.5)
    assert not world.job("a").running
    assert [one.code for one in (await world.task("a")).errors] == ["timed_out"]


@in_virtual_time
async def test_a_job_that_ends_in_time_is_not_disturbed_by_its_limit():
    world = SmallWorld()
    await world.worker()
    await world.submit("a", timeout_seconds=60.0)
    world.job("a").ends()
    await world.passes(100.0)
    assert world.job("a").graces == []
    assert await world.status("a") == "succeeded"


@in_virtual_time
async def test_time_limits_leave_nothing_behind():
    world = SmallWorld(lambda _: Script(seconds=0.1))
    await world.worker()
    await world.submit(*(f"t{n}" for n in range(200)), timeout_seconds=1e6)
    await world.passes(60.0)
    assert await world.status("t199") == "succeeded"
    assert len(asyncio.all_tasks()) < 20


# ---- a worker that goes ----


@pytest.mark.req("R002-71", "R002-72", "R002-73")
@in_virtual_time
async def test_a_worker_that_goes_yields_all_its_tasks_at_once():
    world = SmallWorld()
    one = await world.worker()
    await world.monitor().start()
    await world.submit("a", "b", "c")
    await world.passes(20.0)
    one.worker.ask_stop()
    await one.running
    assert world.clock.monotonic() == 20.0
    for task_id in "abc":
        assert not world.job(task_id).running
        assert await world.status(task_id) == "ready"
    await world.passes(100.0)
    assert await world.story("a") == ["claim", "yield"]
    assert (await world.task("a")).lapses == 0


@pytest.mark.req("R002-71", "R002-73")
@in_virtual_time
async def test_another_worker_takes_what_was_yielded_within_a_second():
    world = SmallWorld()
    one = await world.worker()
    await world.submit("a")
    await world.worker()
    one.worker.ask_stop(OnStop.YIELD)
    await world.passes(1.0)
    assert (await world.task("a")).attempt == 2
    assert world.job("a").running


@in_virtual_time
async def test_no_task_is_given_back_while_its_job_still_runs():
    world = SmallWorld(lambda _: Script(obeys_after_seconds=2.0))
    one = await world.worker()
    await world.submit("a")
    await world.worker()
    one.worker.ask_stop(OnStop.YIELD)
    await world.passes(1.9)
    assert await world.story("a") == ["claim"]
    await world.passes(0.1)
    first, second = world.host.jobs
    assert second.started_at >= first.ended_at


@in_virtual_time
async def test_a_job_that_leaves_politely_when_asked_has_not_done_its_work():
    world = SmallWorld(lambda _: Script(end_when_asked=SUCCESS))
    one = await world.worker()
    await world.submit("a")
    one.worker.ask_stop(OnStop.YIELD)
    await one.running
    assert await world.story("a") == ["claim", "yield"]


@in_virtual_time
async def test_a_worker_that_goes_is_gone_from_the_list_of_workers():
    world = SmallWorld()
    one = await world.worker()
    one.worker.ask_stop()
    await one.running
    assert await world.store.workers() == []
    [view] = await world.store.workers(live_only=False)
    assert view.stopped_at is not None


@in_virtual_time
async def test_a_worker_that_drains_finishes_its_jobs_and_takes_no_new_ones():
    world = SmallWorld(lambda _: Script(seconds=20.0))
    one = await world.worker(slots=1, on_stop=OnStop.DRAIN)
    await world.submit("a", "b")
    await world.passes(5.0)
    one.worker.ask_stop()
    await one.running
    assert world.clock.monotonic() == 20.0
    assert await world.status("a") == "succeeded"
    assert await world.status("b") == "ready"
    assert world.job("a").graces == []


@in_virtual_time
async def test_a_second_request_kills_what_is_left():
    world = SmallWorld(lambda _: STUBBORN)
    one = await world.worker(slots=2)
    await world.submit("a", "b")
    one.worker.ask_stop(OnStop.DRAIN)
    await world.passes(3.0)
    assert world.job("a").running
    one.worker.ask_stop()
    await one.running
    assert world.clock.monotonic() == 3.0
    assert world.job("a").graces == [0.0]
    assert await world.status("a") == await world.status("b") == "ready"


@pytest.mark.parametrize("mode", [OnStop.YIELD, OnStop.DRAIN])
def test_the_end_of_the_grace_kills_what_is_left(mode):
    @in_virtual_time
    async def stop():
        world = SmallWorld(lambda _: STUBBORN)
        one = await world.worker(grace_seconds=30.0)
        await world.submit("a", max_termination_seconds=1000.0)
        one.worker.ask_stop(mode)
        await one.running
        assert world.clock.monotonic() <= 30.0
        assert world.job("a").ended_at >= 20.0
        assert await world.status("a") == "ready"

    stop()


@pytest.mark.parametrize("mode", [OnStop.YIELD, OnStop.DRAIN])
def test_a_worker_goes_in_time_even_if_the_store_does_not_answer(mode):
    @in_virtual_time
    async def stop():
        world = SmallWorld(lambda _: Script(seconds=1.0))
        one = await world.worker(grace_seconds=30.0)
        await world.submit("a")
        one.store.out_of_reach = True
        one.worker.ask_stop(mode)
        await one.running
        assert world.clock.monotonic() <= 30.0
        assert not world.job("a").running

    stop()


@in_virtual_time
async def test_a_worker_that_leaves_lets_its_jobs_run_and_keeps_their_leases():
    world = SmallWorld(lambda _: Script(seconds=1000.0))
    one = await world.worker(grace_seconds=30.0)
    await world.submit("a")
    one.worker.ask_stop(OnStop.LEAVE)
    await one.running
    assert world.job("a").running
    assert world.job("a").graces == []
    assert await world.status("a") == "running"


@in_virtual_time
async def test_a_worker_that_drains_can_be_told_to_leave():
    world = SmallWorld(lambda _: Script(seconds=1000.0))
    one = await world.worker(grace_seconds=500.0)
    await world.submit("a")
    one.worker.ask_stop(OnStop.DRAIN)
    await world.passes(100.0)
    one.worker.ask_stop(OnStop.LEAVE)
    await one.running
    assert world.job("a").running and world.job("a").graces == []
    assert await world.status("a") == "running"


@in_virtual_time
async def test_a_worker_without_jobs_that_leaves_says_farewell():
    world = SmallWorld()
    one = await world.worker(grace_seconds=30.0)
    one.worker.ask_stop(OnStop.LEAVE)
    await one.running
    assert await world.store.workers() == []


@in_virtual_time
async def test_a_worker_whose_store_hangs_goes_in_time():
    world = SmallWorld()
    one = await world.worker(grace_seconds=20.0)
    await world.submit("a")
    for operation in ("claim", "report", "heartbeat", "stop_worker"):
        one.store.delays(operation, before=1e9)
    await world.submit("b")
    one.worker.ask_stop()
    await one.running
    assert world.clock.monotonic() <= 20.0
    assert not world.job("a").running


@in_virtual_time
async def test_leases_are_kept_while_a_worker_drains():
    world = SmallWorld(lambda _: Script(seconds=200.0))
    one = await world.worker(grace_seconds=1000.0, lease_seconds=10.0)
    await world.monitor().start()
    await world.submit("a")
    one.worker.ask_stop(OnStop.DRAIN)
    await one.running
    assert await world.story("a") == ["claim", "succeed"]


@in_virtual_time
async def test_a_worker_that_is_asked_to_stop_before_it_found_the_store_goes():
    world = SmallWorld()
    one = await world.worker(registered=False)
    await world.passes(100.0)
    one.worker.ask_stop()
    await one.running
    assert world.clock.monotonic() == 100.0
    assert await world.store.workers(live_only=False) == []


@in_virtual_time
async def test_a_claim_that_is_executed_after_the_farewell_does_not_break_the_worker():
    world = SmallWorld()
    one = await world.worker(grace_seconds=8.0)
    # Two seconds of the grace are for last reports; after the first the worker says farewell.
    one.store.delays("claim", before=7.1)
    one.store.delays("stop_worker", after=0.5)
    await world.submit("a")
    one.worker.ask_stop()
    await world.passes(7.05)
    assert (one.store.under_way["claim"], one.store.calls["stop_worker"]) == (1, 1)
    await one.running
    assert one.store.under_way["claim"] == 0
    assert await world.status("a") == "ready"


@in_virtual_time
async def test_a_call_of_a_job_waits_for_nothing_when_its_worker_reports_no_more():
    world = SmallWorld(lambda _: Script(seconds=1000.0))
    one = await world.worker()
    await world.submit("a")
    await world.passes(10)
    one.store.delays("report", before=1e9)
    world.job("a").says("half", "half")
    early = asyncio.ensure_future(world.job("a").asks())
    await world.passes(1)
    assert not early.done()
    one.worker.ask_stop(OnStop.LEAVE)
    await one.running
    async with asyncio.timeout(1):
        await early
        await world.job("a").asks()
