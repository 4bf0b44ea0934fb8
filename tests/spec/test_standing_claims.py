"""A worker beside its store has its tasks by the write that makes them ready."""

import pytest

from tests.kit.scripted_runner import Script, failed
from tests.kit.small_world import SmallWorld
from tests.kit.virtual_time import in_virtual_time
from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.requests import QueueSettings
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.retry import FixedDelays
from tidewheel.core.queue.task import Need, TaskId


@in_virtual_time
async def test_an_idle_worker_has_a_task_without_asking_for_it():
    world = SmallWorld(lambda _: Script(seconds=1.0))
    one = await world.worker(near=True, poll_seconds=1_000.0)
    asked = one.store.calls["claim"]
    for name in "abc":
        await world.submit(name)
        await world.passes(2.0)
        assert await world.story(name) == ["claim", "succeed"]
    assert one.store.calls["claim"] == asked


@in_virtual_time
async def test_a_chain_costs_one_report_for_each_task_and_no_claim():
    world = SmallWorld(lambda _: Script(seconds=0.01))
    one = await world.worker(near=True, poll_seconds=1_000.0)
    asked = one.store.calls["claim"]
    await world.submit("t0", delay_seconds=1.0)
    for n in range(1, 20):
        await world.submit(f"t{n}", needs=(Need(task_id=TaskId(f"t{n - 1}")),))
    await world.passes(10.0)
    assert {await world.status(f"t{n}") for n in range(20)} == {"succeeded"}
    assert one.store.calls["report"] == 20
    assert one.store.calls["claim"] - asked <= 3  # for the one that was delayed


@in_virtual_time
async def test_a_worker_takes_no_more_than_it_has_slots():
    world = SmallWorld()
    await world.worker(near=True, slots=2)
    await world.submit(*(f"t{n}" for n in range(5)))
    assert [await world.status(f"t{n}") for n in range(5)].count("running") == 2
    world.job("t0").ends()
    await world.passes(1.0)
    assert [await world.status(f"t{n}") for n in range(5)].count("running") == 2


@in_virtual_time
async def test_resources_that_are_taken_are_not_offered_again():
    world = SmallWorld()
    await world.worker(near=True, slots=8, capacity=Resources(cpu=4))
    for n in range(4):
        await world.submit(f"t{n}", resources=Resources(cpu=2))
    assert [await world.status(f"t{n}") for n in range(4)] == ["running"] * 2 + ["ready"] * 2
    world.job("t0").ends()
    await world.passes(1.0)
    assert await world.status("t2") == "running"
    assert await world.status("t3") == "ready"


@in_virtual_time
async def test_a_delayed_task_and_a_retry_begin_in_time_however_rarely_the_worker_polls():
    world = SmallWorld(lambda _: Script(seconds=1.0, end=failed()))
    await world.worker(near=True, slots=8, poll_seconds=1_000.0)
    await world.submit("a", max_retries=1, retry=FixedDelays(seconds=(1.0,)))
    await world.submit("later", delay_seconds=70.0)
    await world.passes(100.0)
    begun = [(job.assignment.task.id, job.started_at) for job in world.host.jobs]
    close = {"abs": 0.01}
    assert begun == [
        ("a", 0.0),
        ("a", pytest.approx(2.0, **close)),
        ("later", pytest.approx(70.0, **close)),
    ]


@in_virtual_time
async def test_every_queue_is_served_whichever_was_served_last():
    world = SmallWorld(lambda _: Script(seconds=0.5))
    await world.worker(near=True, queues=("a", "b", "c*"), poll_seconds=1_000.0)
    for n, queue in enumerate(["a", "c1", "b", "a", "c2", "c1", "b", "b"]):
        await world.submit(f"t{n}", queue=queue)
        await world.passes(1.0)
        assert await world.status(f"t{n}") == "succeeded", queue


@in_virtual_time
async def test_limits_count_for_a_worker_beside_its_store():
    world = SmallWorld()
    await world.store.configure_queue(
        "default", QueueSettings(limits=(Limit(concurrency_max=1),))
    )
    await world.worker(near=True)
    for name in "ab":
        await world.submit(name)
    assert [await world.status(name) for name in "ab"] == ["running", "ready"]
    world.job("a").ends()
    await world.passes(1.0)
    assert await world.status("b") == "running"


@pytest.mark.parametrize("how", ["stops", "crashes"])
@in_virtual_time
async def test_a_worker_that_is_gone_is_given_nothing(how):
    world = SmallWorld()
    one = await world.worker(near=True)
    if how == "stops":
        await one.worker.stop()
    else:
        await one.crashes()
    await world.submit("a")
    await world.passes(1.0)
    assert await world.status("a") == "ready"
    await world.worker(near=True)
    await world.passes(1.0)
    assert await world.status("a") == "running"


@in_virtual_time
async def test_two_workers_beside_one_store_share_what_comes():
    world = SmallWorld()
    for name in ("one", "two"):
        await world.worker(near=True, name=name, slots=2)
    await world.submit(*(f"t{n}" for n in range(4)))
    await world.passes(1.0)
    tasks = [await world.task(f"t{n}") for n in range(4)]
    assert {task.status for task in tasks} == {"running"}
    assert len({task.owner for task in tasks}) == 2


@in_virtual_time
async def test_a_busy_worker_has_its_next_tasks_by_the_reports_of_those_that_end():
    world = SmallWorld(lambda _: Script(seconds=1.0))
    await world.submit(*(f"t{n}" for n in range(40)))
    one = await world.worker(near=True, slots=4, poll_seconds=1_000.0)
    asked = one.store.calls["claim"]
    for _ in range(30):
        await world.passes(0.5)
        assert sum(job.running for job in world.host.jobs) <= 4
    assert {await world.status(f"t{n}") for n in range(40)} == {"succeeded"}
    assert one.store.calls["claim"] - asked <= 2  # when nothing is left


@in_virtual_time
async def test_a_busy_worker_of_several_queues_is_brought_the_next_tasks_of_its_first():
    world = SmallWorld(lambda _: Script(seconds=1.0))
    await world.submit(*(f"t{n}" for n in range(40)), queue="first")
    await world.submit(*(f"s{n}" for n in range(4)), queue="second/x")
    queues = ("first", "second/*")
    one = await world.worker(near=True, slots=4, queues=queues, poll_seconds=1_000.0)
    asked = one.store.calls["claim"]
    await world.passes(9.5)
    assert one.store.calls["claim"] == asked
    assert {await world.status(f"s{n}") for n in range(4)} == {"ready"}
    await world.passes(2.5)
    assert {await world.status(f"t{n}") for n in range(40)} == {"succeeded"}
    assert {await world.status(f"s{n}") for n in range(4)} == {"succeeded"}


@in_virtual_time
async def test_a_busy_worker_serves_its_first_queue_first():
    world = SmallWorld(lambda _: Script(seconds=1.0))
    await world.submit(*(f"t{n}" for n in range(8)), queue="slow")
    await world.worker(near=True, slots=2, queues=("urgent", "slow"), poll_seconds=1_000.0)
    await world.submit("u", queue="urgent")
    await world.passes(1.5)
    assert await world.status("u") == "running"


@pytest.mark.parametrize(("slots", "asks"), [(1, {"exclusive": True}), (2, {"cpu": 1.0})])
@in_virtual_time
async def test_a_busy_worker_passes_over_no_task_that_waits_for_what_becomes_free(slots, asks):
    world = SmallWorld(lambda _: Script(seconds=1.0))
    asked_before = {"resources": Resources(cpu=0.5)} if "cpu" in asks else {}
    await world.submit("t0", "t1", **asked_before)
    await world.submit("waits", resources=Resources(**asks), priority=99)
    await world.submit(*(f"later{n}" for n in range(9)))
    await world.worker(near=True, slots=slots, capacity=Resources(cpu=1.0))
    await world.passes(3.5)
    assert await world.status("waits") in ("running", "succeeded")


@in_virtual_time
async def test_a_busy_worker_whose_report_is_lost_on_the_way_runs_nothing_twice():
    world = SmallWorld(lambda _: Script(seconds=1.0))
    await world.submit(*(f"t{n}" for n in range(12)))
    one = await world.worker(near=True, slots=3, poll_seconds=5.0)
    one.store.loses_answers("report", 2)
    await world.passes(60.0)
    assert {await world.status(f"t{n}") for n in range(12)} == {"succeeded"}
    assert len(world.host.jobs) == 12


@in_virtual_time
async def test_a_worker_that_adopted_more_jobs_than_it_has_slots_comes_back_to_its_slots():
    world = SmallWorld(lambda _: Script(seconds=7.0))
    await world.submit(*(f"t{n}" for n in range(200)))
    first = await world.worker(near=True, name="a", slots=4, lease_seconds=60.0)
    await world.passes(3.0)
    given = {"lease_seconds": 60.0, "adopt_interval_seconds": 10.0}
    await world.worker(near=True, name="b", slots=4, **given)
    await world.passes(5.0)
    await first.crashes()
    await world.passes(40.0)
    assert sum(job.running for job in world.host.jobs) == 4


@pytest.mark.parametrize("slots", [2, 4])
@in_virtual_time
async def test_an_exclusive_task_is_not_passed_over_by_a_busy_worker(slots):
    world = SmallWorld(lambda _: Script(seconds=1.0))
    await world.submit(*(f"t{n}" for n in range(slots)))
    await world.worker(near=True, slots=slots, capacity=Resources(cpu=1.0))
    await world.submit("waits", resources=Resources(exclusive=True), priority=99)
    await world.submit(*(f"later{n}" for n in range(90)))
    await world.passes(10.5)
    assert await world.status("waits") == "succeeded"
