"""Seed 002, "Workers": what a worker takes, when, and how much of it."""

from random import Random

import pytest

from tests.kit.scripted_runner import Script, failed
from tests.kit.small_world import SmallWorld
from tests.kit.virtual_time import in_virtual_time
from tidewheel.config import OnStop
from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.requests import QueueSettings
from tidewheel.core.queue.resources import Resources, flavoured, nodes_of
from tidewheel.core.queue.retry import FixedDelays


def running(world):
    return [job.assignment.task.id for job in world.host.jobs if job.running]


@pytest.mark.req("R002-31", "R002-88")
@in_virtual_time
async def test_a_worker_takes_as_many_tasks_as_it_has_slots():
    world = SmallWorld()
    await world.submit("a", "b", "c", "d", "e")
    await world.worker(slots=3)
    assert running(world) == ["a", "b", "c"]
    world.job("b").ends()
    await world.passes(0.0)
    assert running(world) == ["a", "c", "d"]


@pytest.mark.req("R002-31", "R002-88", "R003-36")
@in_virtual_time
async def test_a_worker_takes_what_its_resources_allow_and_more_when_they_are_free_again():
    world = SmallWorld()
    half = Resources(cpu=0.5, memory_bytes=100, gpu=1)
    await world.submit("a", "b", "c", resources=half)
    await world.worker(slots=8, capacity=Resources(cpu=1.1, memory_bytes=1000, gpu=2))
    assert running(world) == ["a", "b"]
    world.job("a").ends()
    await world.passes(0.0)
    assert running(world) == ["b", "c"]


@pytest.mark.req("R004-20", "R004-21")
@in_virtual_time
async def test_nothing_starts_beside_a_job_that_has_the_machine_alone():
    world = SmallWorld()
    await world.worker(slots=8)
    await world.submit("alone", resources=Resources(exclusive=True), priority=99)
    assert running(world) == ["alone"]
    await world.submit("a", "b")
    await world.submit("also alone", resources=Resources(exclusive=True))
    await world.passes(60.0)
    assert running(world) == ["alone"]
    world.job("alone").ends()
    await world.passes(0.0)
    assert running(world) == ["a", "b"]
    world.job("a").ends()
    await world.passes(60.0)
    assert running(world) == ["b"]
    world.job("b").ends()
    await world.passes(0.0)
    assert running(world) == ["also alone"]


@pytest.mark.req("R004-20")
@in_virtual_time
async def test_nodes_and_buffer_are_there_before_a_job_begins():
    world = SmallWorld()
    await world.submit("two", resources=Resources(nodes=2, exclusive=True), priority=90)
    await world.submit("three", resources=Resources(nodes=3, exclusive=True), priority=80)
    await world.submit("data", "more data", resources=Resources(buffer_bytes=60))
    await world.worker(slots=8, capacity=Resources(nodes=4, buffer_bytes=100))
    assert running(world) == ["two", "data"]
    world.job("data").ends()
    await world.passes(0.0)
    assert running(world) == ["two", "more data"]
    world.job("two").ends()
    await world.passes(0.0)
    assert running(world) == ["more data", "three"]


def of(*asked):
    """What a task asks for: (flavour, nodes, those of them that it wants alone) each."""
    entries = flavoured(nodes_of(*one) for one in asked)
    nodes = sum(one[1] for one in asked)
    return Resources(nodes=nodes, exclusive=any(one[2] for one in asked), flavours=entries)


@pytest.mark.req("R004-20", "R004-21")
@in_virtual_time
async def test_nodes_of_each_flavour_are_counted_for_themselves():
    world = SmallWorld()
    offered = (nodes_of("a", 3, 3), nodes_of("b", 1, 1))
    await world.submit("many", resources=of(("a", 2, 2), ("b", 1, 0)), priority=90)
    await world.submit("two of a", resources=of(("a", 2, 2)), priority=80)
    await world.submit("one of a", resources=of(("a", 1, 1)), priority=70)
    await world.submit("shares b", resources=of(("b", 1, 0)), priority=60)
    await world.submit("b alone", resources=of(("b", 1, 1)), priority=50)
    await world.submit("two of b", resources=of(("b", 2, 0)), priority=99)
    await world.submit("of c", resources=of(("c", 1, 0)), priority=99)
    await world.worker(slots=8, capacity=Resources(nodes=4, flavours=offered))
    assert running(world) == ["many", "one of a", "shares b"]
    world.job("many").ends()
    await world.passes(0.0)
    assert running(world) == ["one of a", "shares b", "two of a"]
    world.job("shares b").ends()
    await world.passes(0.0)
    assert running(world) == ["one of a", "two of a", "b alone"]


@in_virtual_time
async def test_a_label_of_a_worker_says_that_all_of_its_nodes_are_of_that_flavour():
    world = SmallWorld()
    await world.submit("three", resources=of(("a", 3, 0)), priority=90)
    await world.submit("two", resources=of(("a", 2, 0)), priority=80)
    await world.submit("none", resources=of(("b", 1, 0)), priority=70)
    await world.worker(slots=8, capacity=Resources(nodes=2, labels=frozenset({"a"})))
    assert running(world) == ["two"]


@in_virtual_time
async def test_resources_of_thousands_of_tasks_leave_no_crumbs():
    world = SmallWorld(lambda _: Script(seconds=0.1))
    capacity = Resources(cpu=0.3)
    await world.worker(slots=3, capacity=capacity)
    await world.submit(*(f"t{n}" for n in range(200)), resources=Resources(cpu=0.1))
    await world.passes(60.0)
    assert await world.status("t199") == "succeeded"
    await world.submit("whole", resources=capacity)
    assert running(world) == ["whole"]


@in_virtual_time
async def test_three_tenths_of_a_core_are_room_for_three_tenths():
    world = SmallWorld()
    await world.worker(slots=9, capacity=Resources(cpu=0.3))
    for task_id in "abcd":
        await world.submit(task_id, resources=Resources(cpu=0.1))
    assert running(world) == ["a", "b", "c"]


@pytest.mark.req("R002-9")
@in_virtual_time
async def test_a_worker_serves_its_queues_in_order_and_no_other():
    world = SmallWorld()
    await world.submit("strange", queue="theirs")
    await world.submit("late", queue="second")
    await world.submit("early", queue="first")
    await world.worker(slots=1, queues=("first", "second"))
    assert running(world) == ["early"]
    world.job("early").ends()
    await world.passes(0.0)
    assert running(world) == ["late"]
    world.job("late").ends()
    await world.passes(30.0)
    assert await world.status("strange") == "ready"


@pytest.mark.req("R002-32")
@in_virtual_time
async def test_the_oldest_of_the_highest_priority_comes_first():
    world = SmallWorld()
    await world.submit("low", priority=9)
    await world.submit("high-1", "high-2", priority=100)
    await world.worker(slots=2)
    assert running(world) == ["high-1", "high-2"]


@in_virtual_time
async def test_an_idle_worker_starts_a_new_task_at_once():
    world = SmallWorld()
    await world.worker(poll_seconds=1000.0)
    await world.passes(100.0)
    await world.submit("a")
    assert running(world) == ["a"]
    assert world.job("a").started_at == 100.0


@in_virtual_time
async def test_a_task_that_nobody_announced_is_found_by_asking():
    world = SmallWorld()
    await world.worker(poll_seconds=5.0)
    await world.submit("later", delay_seconds=7.0)  # nothing happens in the store at second 7
    await world.passes(13.0)
    assert running(world) == ["later"]


@in_virtual_time
async def test_a_worker_holds_no_more_leases_than_slots_while_its_reports_are_slow():
    world = SmallWorld(lambda _: Script(seconds=0.01))
    one = await world.worker(slots=4)
    one.store.delays("report", before=1.0, after=1.0)
    await world.submit(*(f"t{n}" for n in range(40)))
    most = 0
    for _ in range(200):
        await world.passes(0.25)
        [view] = await world.store.workers()
        most = max(most, view.leases)
    assert most == 4
    assert await world.status("t39") == "succeeded"


@in_virtual_time
async def test_one_half_of_the_slots_is_claimed_while_the_other_half_is_reported():
    world = SmallWorld(lambda _: Script(seconds=0.0))
    one = await world.worker(slots=100)
    one.store.delays("claim", before=0.01)
    one.store.delays("report", before=0.01)
    await world.submit(*(f"t{n}" for n in range(1000)))
    together = 0
    for _ in range(40):
        await world.passes(0.005)
        together += one.store.under_way["claim"] > 0 and one.store.under_way["report"] > 0
    assert together >= 20
    await world.passes(1.0)
    assert await world.status("t999") == "succeeded"


@in_virtual_time
async def test_a_claim_whose_answer_got_lost_costs_its_tasks_no_lapse():
    world = SmallWorld()
    one = await world.worker()
    one.store.loses_answers("claim")
    await world.submit("a", "b")
    await world.passes(1.0)
    assert running(world) == ["a", "b"]
    assert await world.story("a") == ["claim", "yield", "claim"]


@in_virtual_time
async def test_a_task_whose_lease_is_over_before_the_worker_hears_of_it_is_not_started():
    world = SmallWorld()
    one = await world.worker(slots=1, lease_seconds=10.0)
    one.store.delays("claim", after=11.0)
    await world.submit("a")
    await world.passes(11.0)
    assert world.host.jobs == []
    assert (await world.story("a"))[:2] == ["claim", "yield"]


@in_virtual_time
async def test_a_worker_that_is_asked_to_stop_while_it_claims_gives_the_task_back():
    world = SmallWorld()
    one = await world.worker()
    one.store.delays("claim", after=1.0)
    await world.submit("a")
    one.worker.ask_stop(OnStop.DRAIN)
    await one.running
    assert world.host.jobs == []
    assert await world.story("a") == ["claim", "yield"]


@in_virtual_time
async def test_a_job_that_cannot_be_started_has_failed_and_the_worker_goes_on():
    world = SmallWorld(
        lambda task: Script(start_error="no such directory" if task.id == "bad" else None)
    )
    await world.worker(slots=1)
    await world.submit("bad", "good")
    assert await world.status("bad") == "failed"
    [error] = (await world.task("bad")).errors
    assert (error.code, error.description) == ("start", "no such directory")
    assert running(world) == ["good"]


@in_virtual_time
async def test_a_task_that_no_runner_executes_has_failed():
    world = SmallWorld()
    await world.worker()
    await world.submit("a", command=None, handler="unknown")
    [error] = (await world.task("a")).errors
    assert error.code == "start"
    assert await world.status("a") == "failed"


@in_virtual_time
async def test_each_attempt_has_its_own_directory_and_secret():
    world = SmallWorld()
    await world.worker()
    await world.submit("a", max_retries=1)
    world.job("a").ends(failed())
    await world.passes(1.0)
    first, second = (job.assignment for job in world.host.jobs)
    store_id = (await world.store.store_id())[:8]
    seq = first.task.seq
    assert [str(one.directory) for one in (first, second)] == [
        f"home/tasks/{store_id}/{seq}/1",
        f"home/tasks/{store_id}/{seq}/2",
    ]
    assert first.secret != second.secret
    assert len(first.secret) >= 43  # 256 bits


@pytest.mark.req("R002-36", "R002-37")
@in_virtual_time
async def test_every_start_of_a_worker_gets_an_id_of_its_own():
    world = SmallWorld()
    for _ in range(3):
        one = await world.worker(name="same")
        await one.crashes()
    ids = [view.id for view in await world.store.workers(live_only=False)]
    assert len(set(ids)) == 3


@pytest.mark.slow
@pytest.mark.req("R002-35")
@in_virtual_time
async def test_eight_workers_never_share_a_task():
    chance = Random(7)
    world = SmallWorld(lambda _: Script(seconds=chance.random()))
    for _ in range(8):
        await world.worker(slots=5)
    names = [f"t{n}" for n in range(1000)]
    await world.submit(*names)
    await world.passes(60.0)
    assert sorted(job.assignment.task.id for job in world.host.jobs) == sorted(names)
    assert {await world.status(name) for name in names} == {"succeeded"}
    assert await world.store.verify() == []


@pytest.mark.req("R002-58", "R002-59")
@in_virtual_time
async def test_a_task_of_a_killed_worker_is_run_by_another_within_lease_and_poll():
    world = SmallWorld()
    one = await world.worker(lease_seconds=10.0)
    await world.submit("a")
    await world.monitor(interval_seconds=1.0).start()
    await world.passes(20.0)  # the monitor has watched for more than a lease
    await one.crashes()
    world.job("a").ends()  # nobody hears it
    world.host.jobs.clear()  # nor is there anything to adopt
    await world.worker()
    await world.passes(11.0)
    assert running(world) == ["a"]
    assert (await world.task("a")).attempt == 2


@pytest.mark.slow
@in_virtual_time
async def test_a_worker_that_finds_no_store_waits_for_it():
    world = SmallWorld()
    await world.submit("a")
    one = await world.worker(poll_seconds=1.0)
    world.job("a").ends()
    one.store.out_of_reach = True
    await world.passes(3600.0)
    await world.submit("b")
    one.store.out_of_reach = False
    await world.passes(10.0)
    assert await world.status("a") == "succeeded"
    assert running(world) == ["b"]
    assert world.events("store.back")


@in_virtual_time
async def test_a_place_that_becomes_free_under_a_limit_is_taken_at_once_by_another_worker():
    world = SmallWorld()
    limits = (Limit(concurrency_max=1),)
    await world.store.configure_queue("default", QueueSettings(limits=limits))
    await world.worker(slots=1, queues=("default",), poll_seconds=600.0)
    await world.submit("a", resources=Resources(cpu=0.0))
    await world.worker(slots=1, poll_seconds=600.0, capacity=Resources(cpu=1.0))
    await world.submit("b", resources=Resources(cpu=1.0))  # for the second worker alone
    world.job("a").ends()
    await world.passes(0.0)
    assert running(world) == ["b"]


@in_virtual_time
async def test_a_delayed_task_starts_when_it_is_due_however_rarely_the_worker_polls():
    world = SmallWorld()
    await world.worker(slots=8, poll_seconds=1000.0)
    await world.submit("later", delay_seconds=70.0)
    await world.submit("soon", delay_seconds=1.0)
    await world.passes(100.0)
    for name, at in (("soon", 1.0), ("later", 70.0)):
        assert world.job(name).started_at == pytest.approx(at, abs=0.01)


@in_virtual_time
async def test_a_retry_after_a_second_begins_after_a_second():
    world = SmallWorld(lambda _: Script(seconds=1.0, end=failed()))
    await world.worker(slots=8, poll_seconds=1000.0)
    await world.submit("a", max_retries=1, retry=FixedDelays(seconds=(1.0,)))
    await world.passes(10.0)
    begun = [job.started_at for job in world.host.jobs]
    assert begun == [0.0, pytest.approx(2.0, abs=0.01)]


@in_virtual_time
async def test_a_delayed_task_behind_a_pattern_starts_when_it_is_due():
    world = SmallWorld()
    await world.worker(slots=8, queues=("run:*",), poll_seconds=1000.0)
    await world.submit("a", queue="run:x", delay_seconds=3.0)
    await world.submit("b", queue="run:y", delay_seconds=2.0)
    await world.passes(10.0)
    assert world.job("a").started_at == pytest.approx(3.0, abs=0.01)
    assert world.job("b").started_at == pytest.approx(2.0, abs=0.01)


@in_virtual_time
async def test_a_full_worker_does_not_ask_again_and_again_for_what_is_due():
    world = SmallWorld()
    await world.worker(slots=1, poll_seconds=1000.0)
    await world.submit("first")
    await world.submit("due", delay_seconds=1.0)
    await world.passes(50.0)
    assert running(world) == ["first"]
    world.job("first").ends()
    await world.passes(0.1)
    assert running(world) == ["due"]
