"""DESIGN §11: a kill -9 of a worker kills no job; its successor on the host goes on with it."""

import pytest

from tests.kit.scripted_runner import HANDLER, Script
from tests.kit.small_world import SmallWorld
from tests.kit.virtual_time import in_virtual_time
from tidewheel.core.queue.requests import QueueSettings
from tidewheel.core.queue.task import TaskId


async def outputs(world, task_id):
    return [(one.number, one.text) for one in await world.store.outputs(TaskId(task_id))]


@in_virtual_time
async def test_a_successor_goes_on_with_the_job_of_a_killed_worker():
    world = SmallWorld()
    await world.monitor().start()
    one = await world.worker()
    await world.submit("a")
    await world.passes(20.0)
    await one.crashes()
    await world.passes(5.0)
    await world.worker()
    await world.passes(100.0)
    assert len(world.host.jobs) == 1
    world.job("a").ends()
    await world.passes(0.0)
    assert await world.story("a") == ["claim", "adopt", "succeed"]
    task = await world.task("a")
    assert (task.attempt, task.owner) == (1, "worker-2")


@in_virtual_time
async def test_a_worker_that_works_beside_a_killed_one_goes_on_with_its_jobs():
    """Nobody has to start another one."""
    world = SmallWorld()
    await world.monitor().start()
    one = await world.worker(lease_seconds=60.0)
    await world.submit("a")
    await world.passes(1.0)
    await world.worker(lease_seconds=60.0, adopt_interval_seconds=10.0)
    await one.crashes()
    await world.passes(11.0)
    world.job("a").ends()
    await world.passes(0.0)
    assert await world.story("a") == ["claim", "adopt", "succeed"]


@in_virtual_time
async def test_only_jobs_of_its_own_queues_are_taken_over_by_a_worker_that_works():
    """Workers of other queues may keep their files elsewhere."""
    world = SmallWorld()
    one = await world.worker(lease_seconds=60.0)
    await world.submit("a")
    await world.passes(1.0)
    await world.worker(queues=("other",))
    await one.crashes()
    await world.passes(30.0)
    assert await world.story("a") == ["claim"]


@in_virtual_time
async def test_a_job_that_ended_while_nobody_watched_is_reported_by_the_successor():
    world = SmallWorld(lambda _: Script(seconds=10.0))
    one = await world.worker(lease_seconds=60.0)
    await world.submit("a")
    await world.passes(5.0)
    await one.crashes()
    await world.passes(20.0)
    await world.worker()
    assert await world.story("a") == ["claim", "adopt", "succeed"]


@in_virtual_time
async def test_what_a_job_said_before_between_and_after_two_workers_is_stored_once():
    world = SmallWorld()
    one = await world.worker(lease_seconds=60.0)
    await world.submit("a")
    world.job("a").says("to the first")
    await world.passes(1.0)
    await one.crashes()
    world.job("a").says("to nobody")
    await world.passes(1.0)
    await world.worker()
    world.job("a").says("to the second")
    world.job("a").ends()
    await world.passes(0.0)
    assert await outputs(world, "a") == [
        (1, "to the first"),
        (2, "to nobody"),
        (3, "to the second"),
    ]


@in_virtual_time
async def test_the_jobs_of_a_living_worker_are_left_alone():
    world = SmallWorld()
    await world.worker()
    await world.submit("a")
    await world.worker()
    await world.passes(10.0)
    assert world.job("a").workers == ["worker-1"]
    assert await world.story("a") == ["claim"]


@in_virtual_time
async def test_of_two_successors_one_adopts_and_the_other_harms_nothing():
    world = SmallWorld()
    one = await world.worker(lease_seconds=60.0)
    await world.submit("a")
    await one.crashes()
    for _ in range(2):
        successor = await world.worker(registered=False)
        successor.store.delays("adopt", before=1.0)  # both have seen the lease by then
        successor.store.out_of_reach = False
    await world.passes(100.0)
    assert len(world.job("a").workers) == 2  # a job has one voice, and it is its owner's
    assert world.job("a").running
    world.job("a").says("once")
    world.job("a").ends()
    await world.passes(1.0)
    assert await world.story("a") == ["claim", "adopt", "succeed"]
    assert await outputs(world, "a") == [(1, "once")]
    assert world.events("report.refused") == []


@in_virtual_time
async def test_after_a_reboot_there_is_nothing_to_adopt_and_the_lease_runs_out():
    world = SmallWorld()
    await world.monitor().start()
    one = await world.worker()
    await world.submit("a")
    await world.passes(20.0)
    await one.crashes()
    world.host.reboots()
    await world.worker()
    await world.passes(15.0)
    assert await world.story("a") == ["claim", "lapse", "claim"]


@in_virtual_time
async def test_an_adoption_whose_answer_got_lost_is_an_adoption():
    world = SmallWorld()
    one = await world.worker(lease_seconds=60.0)
    await world.submit("a")
    await one.crashes()
    two = await world.worker(registered=False)
    two.store.loses_answers("adopt")
    two.store.out_of_reach = False
    await world.passes(10.0)
    world.job("a").ends()
    await world.passes(1.0)
    assert await world.story("a") == ["claim", "adopt", "succeed"]


@in_virtual_time
async def test_a_job_whose_lease_ran_out_while_it_was_being_adopted_is_killed():
    world = SmallWorld()
    await world.monitor().start()
    one = await world.worker(lease_seconds=30.0)
    await world.submit("a")
    await world.passes(40.0)
    orphan = world.job("a")
    await one.crashes()
    await world.passes(29.5)  # the lease has half a second left
    two = await world.worker(registered=False)
    two.store.delays("adopt", before=2.0)
    two.store.out_of_reach = False
    await world.passes(1.0)
    orphan.says("too late", "done")
    await world.passes(2.0)
    assert orphan.graces == [0.0]
    assert await outputs(world, "a") == []
    assert await world.story("a") == ["claim", "lapse", "claim"]


@in_virtual_time
async def test_a_task_that_was_cancelled_while_nobody_watched_is_cancelled_by_the_successor():
    world = SmallWorld()
    one = await world.worker(lease_seconds=60.0)
    await world.submit("a")
    await one.crashes()
    await world.store.cancel([TaskId("a")])
    await world.worker()
    await world.passes(1.0)
    assert world.job("a").graces == [10.0]
    assert await world.status("a") == "cancelled"


@in_virtual_time
async def test_adopted_jobs_take_the_slots_of_their_adopter():
    world = SmallWorld()
    one = await world.worker(slots=3, lease_seconds=60.0)
    await world.submit("a", "b", "c")
    await one.crashes()
    await world.worker(slots=2)
    await world.submit("d")
    await world.passes(1.0)
    assert await world.status("d") == "ready"
    world.job("a").ends()
    world.job("b").ends()
    await world.passes(1.0)
    assert await world.status("d") == "running"


@pytest.mark.req("R002-58")
@pytest.mark.parametrize(
    ("settings", "task"),
    [({"tie_jobs": True}, {}), ({}, {"command": None, "handler": HANDLER})],
    ids=["tied", "handler"],
)
def test_what_died_with_its_worker_is_not_asked_for_and_lapses_in_time(settings, task):
    @in_virtual_time
    async def lapse():
        world = SmallWorld()
        await world.monitor().start()
        await world.passes(20.0)
        one = await world.worker(lease_seconds=10.0, **settings)
        await world.submit("a", **task)
        await one.crashes()
        world.host.jobs.clear()
        await world.passes(5.0)
        await world.worker(**settings)
        await world.passes(6.1)
        assert await world.story("a") == ["claim", "lapse", "claim"]

    lapse()


@pytest.mark.req("R002-58")
@in_virtual_time
async def test_a_fenced_job_is_not_adopted_and_what_is_left_of_it_is_ended():
    world = SmallWorld()
    await world.store.configure_queue("default", QueueSettings(fence_kill=True))
    await world.monitor().start()
    await world.passes(20.0)
    one = await world.worker(lease_seconds=10.0)
    await world.submit("a")
    left = world.job("a")
    await one.crashes()
    await world.worker()
    assert not left.running
    assert await world.story("a") == ["claim"]
    await world.passes(11.1)
    assert await world.story("a") == ["claim", "lapse", "claim"]
    assert world.job("a").running


@in_virtual_time
async def test_a_task_whose_job_was_never_started_is_given_back():
    world = SmallWorld(lambda _: Script(start_seconds=5.0))
    one = await world.worker(lease_seconds=60.0)
    await world.submit("a")
    await one.crashes()
    await world.worker()
    await world.passes(5.0)
    assert await world.story("a") == ["claim", "adopt", "yield", "claim"]
    assert world.job("a").running


@in_virtual_time
async def test_a_job_that_cannot_be_adopted_is_left_to_its_lease():
    world = SmallWorld()
    await world.monitor().start()
    one = await world.worker(lease_seconds=10.0)
    await world.submit("a")
    await world.passes(20.0)
    await one.crashes()
    world.host.adoption_error = "the directory cannot be read"
    await world.worker()
    await world.passes(5.0)
    assert await world.story("a") == ["claim", "adopt"]
    await world.passes(10.0)
    assert await world.story("a") == ["claim", "adopt", "lapse", "claim"]


@in_virtual_time
async def test_the_jobs_of_a_worker_that_stopped_by_itself_cannot_be_adopted():
    world = SmallWorld()
    one = await world.worker()
    await world.submit("a")
    one.worker.ask_stop()
    await one.running
    await world.worker()
    await world.passes(1.0)
    assert await world.story("a") == ["claim", "yield", "claim"]
    assert len(world.host.jobs) == 2
