"""A worker serves queues by pattern: those that are there, and those that come later."""

import pytest

from tests.kit.scripted_runner import Script
from tests.kit.small_world import SmallWorld
from tests.kit.virtual_time import in_virtual_time
from tidewheel.core.queue.access import Served
from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.requests import QueueSettings
from tidewheel.core.queue.resources import Resources
from tidewheel.worker.claimer import OpenQueues


def running(world):
    return [job.assignment.task.id for job in world.host.jobs if job.running]


@pytest.mark.req("R002-9")
@in_virtual_time
async def test_a_pattern_serves_every_queue_that_it_matches_and_no_other():
    world = SmallWorld()
    await world.submit("a", queue="run:nightly/run1")
    await world.submit("b", queue="run:forecast")
    await world.submit("c", queue="default")
    await world.submit("d", queue="rerun:x")
    await world.worker(slots=8, queues=("run:*",), poll_seconds=5.0)
    assert sorted(running(world)) == ["a", "b"]
    await world.passes(60.0)
    assert sorted(running(world)) == ["a", "b"]


@in_virtual_time
async def test_a_queue_that_appears_later_is_served_at_once():
    world = SmallWorld()
    await world.worker(slots=8, queues=("run:*",), poll_seconds=1000.0)
    await world.passes(100.0)
    await world.submit("a", queue="run:new")
    assert running(world) == ["a"]
    assert world.job("a").started_at == 100.0


@in_virtual_time
async def test_a_queue_that_nobody_announced_is_found_within_a_poll():
    world = SmallWorld()
    await world.worker(slots=8, queues=("run:*",), poll_seconds=5.0)
    await world.submit("later", queue="run:x", delay_seconds=7.0)
    await world.passes(13.0)
    assert running(world) == ["later"]


@in_virtual_time
async def test_queues_of_a_pattern_share_the_slots():
    world = SmallWorld()
    for queue in ("a", "b", "c"):
        await world.submit(*(f"{queue}{n}" for n in range(9)), queue=f"run:{queue}")
    await world.worker(slots=6, queues=("run:*",))
    assert sorted(one[0] for one in running(world)) == ["a", "a", "b", "b", "c", "c"]


@in_virtual_time
async def test_with_one_slot_queues_of_a_pattern_take_turns():
    world = SmallWorld(lambda _: Script(seconds=1.0))
    for queue in ("a", "b", "c"):
        await world.submit(*(f"{queue}{n}" for n in range(4)), queue=f"run:{queue}")
    await world.worker(slots=1, queues=("*",))
    await world.passes(30.0)
    ran = [job.assignment.task.id[0] for job in world.host.jobs]
    assert ran == ["a", "b", "c"] * 4


@in_virtual_time
async def test_a_queue_with_a_name_of_its_own_keeps_its_place_before_the_pattern():
    world = SmallWorld()
    await world.submit("any", queue="aaa")
    await world.submit("own", queue="zzz")
    await world.worker(slots=1, queues=("zzz", "*"))
    assert running(world) == ["own"]


@in_virtual_time
async def test_room_that_becomes_free_is_used_for_what_did_not_fit():
    world = SmallWorld()
    whole = Resources(cpu=1.0)
    await world.submit("a", queue="run:a", resources=whole)
    await world.submit("b", queue="run:b", resources=whole)
    await world.worker(slots=8, queues=("run:*",), capacity=whole, poll_seconds=600.0)
    assert running(world) == ["a"]
    world.job("a").ends()
    await world.passes(0.0)
    assert running(world) == ["b"]


@in_virtual_time
async def test_a_place_that_becomes_free_under_a_limit_of_a_matched_queue_is_taken_at_once():
    world = SmallWorld()
    limits = (Limit(concurrency_max=1),)
    await world.store.configure_queue("run:a", QueueSettings(limits=limits))
    await world.submit("a", "b", queue="run:a")
    await world.worker(slots=8, queues=("run:*",), poll_seconds=600.0)
    assert running(world) == ["a"]
    world.job("a").ends()
    await world.passes(0.0)
    assert running(world) == ["b"]


@in_virtual_time
async def test_empty_queues_cost_a_worker_with_patterns_no_claims():
    world = SmallWorld(lambda _: Script(seconds=0.0))
    for number in range(50):
        await world.submit(f"t{number}", queue=f"run:{number}")
    one = await world.worker(slots=100, queues=("run:*",), poll_seconds=5.0)
    await world.passes(1.0)
    claims = one.store.calls["claim"]
    await world.passes(100.0)
    assert one.store.calls["claim"] == claims
    assert 15 <= one.store.calls["ready_queues"] <= 40


def test_what_changes_while_the_store_is_asked_is_asked_for_again():
    queues = OpenQueues(Served(["run:*"]), look_seconds=5.0)
    assert queues.must_look(0.0) and not queues.must_look(0.1)
    queues.look_anew()  # before the answer to the first question is there
    queues.found({"run:a": 50, "other": 50})
    assert queues.turns("run:*") == ["run:a"]
    assert queues.must_look(0.2)


@in_virtual_time
async def test_a_store_that_does_not_say_which_queues_there_are_is_asked_again():
    world = SmallWorld()
    await world.submit("a", queue="run:x")
    one = await world.worker(registered=False, queues=("run:*",), poll_seconds=1000.0)
    one.store.loses_requests("ready_queues", 3)
    one.store.out_of_reach = False
    await world.passes(60.0)
    assert running(world) == ["a"]


@in_virtual_time
async def test_a_worker_without_patterns_never_asks_which_queues_there_are():
    world = SmallWorld()
    one = await world.worker(queues=("default",))
    await world.submit("a")
    await world.passes(100.0)
    assert one.store.calls["ready_queues"] == 0


@in_virtual_time
async def test_a_worker_with_a_pattern_adopts_jobs_of_the_queues_that_it_matches():
    world = SmallWorld()
    one = await world.worker(queues=("run:*",))
    await world.submit("a", queue="run:x")
    await one.crashes()
    await world.worker(queues=("run:*",), adopt_interval_seconds=1.0)
    await world.passes(5.0)
    assert await world.story("a") == ["claim", "adopt"]


@pytest.mark.req("R004-55")
@in_virtual_time
async def test_of_the_queues_of_runs_those_of_a_higher_priority_go_first():
    """Also one that a worker hears of when it has been waiting for long."""
    world = SmallWorld()
    await world.worker(slots=2, queues=("run:*",), poll_seconds=1000.0)
    await world.passes(100.0)
    for run, priority in {"low": 49, "plain": 50, "also": 50, "high": 150}.items():
        await world.submit(
            *(f"{run}{n}" for n in range(2)), queue=f"run:{run}", priority=priority
        )
    began = []
    while there := running(world):
        began += sorted(one[:-1] for one in there)
        for one in there:
            world.job(one).ends()
        await world.passes(1.0)
    # The first two were taken before there was anything else.
    assert began == ["low", "low", "high", "high", "also", "plain", "also", "plain"]


@in_virtual_time
async def test_other_queues_of_a_pattern_take_turns_whatever_their_tasks_want():
    world = SmallWorld()
    for tenant, priority in {"a": 0, "b": 200}.items():
        await world.submit(
            *(f"{tenant}{n}" for n in range(9)), queue=f"t:{tenant}", priority=priority
        )
    await world.worker(slots=4, queues=("t:*",))
    assert sorted(one[0] for one in running(world)) == ["a", "a", "b", "b"]


@in_virtual_time
async def test_what_is_allowed_to_one_queue_is_claimed_from_that_queue_alone():
    world = SmallWorld()
    asked = Resources(labels=frozenset({"allow:host-network"}))
    for name in ("trusted", "other"):
        await world.submit(name, queue=f"run:{name}", resources=asked)
    await world.submit("plain", queue="run:other")
    allowed = "run:trusted:host-network"
    offered = Resources(labels=frozenset({f"allow:{allowed}"}))
    await world.worker(slots=8, queues=("run:*",), capacity=offered, allow_compose=(allowed,))
    await world.passes(60.0)
    assert sorted(running(world)) == ["plain", "trusted"]
