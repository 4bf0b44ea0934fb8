"""RELIABILITY 30: a worker whose disk is full steps back, and says so."""

from tests.kit.scripted_runner import UNTIL_TOLD, Script
from tests.kit.small_world import SmallWorld
from tests.kit.virtual_time import in_virtual_time
from tidewheel.core.queue.task import TaskId

FULL = Script(host_error="no space left")


class Disk:
    """Jobs can be started while it has room."""

    def __init__(self):
        self.full = False

    def __call__(self, _task):
        return FULL if self.full else UNTIL_TOLD


@in_virtual_time
async def test_a_task_that_no_job_can_be_started_for_goes_back_without_a_failure():
    disk = Disk()
    disk.full = True
    world = SmallWorld(disk)
    await world.worker()
    await world.submit("a")
    task = await world.task("a")
    assert (task.status, task.failures, task.lapses) == ("ready", 0, 0)
    assert (await world.story("a"))[:2] == ["claim", "yield"]


@in_virtual_time
async def test_a_worker_in_trouble_leaves_tasks_to_others():
    disk = Disk()
    disk.full = True
    world = SmallWorld(disk)
    await world.worker(slots=8)
    await world.submit(*(f"t{n}" for n in range(20)))
    disk.full = False  # for the next worker, which starts on another disk
    await world.worker(slots=20)
    await world.passes(0.0)
    assert len([job for job in world.host.jobs if job.running]) == 20


@in_virtual_time
async def test_a_worker_in_trouble_tries_one_task_now_and_then():
    disk = Disk()
    disk.full = True
    world = SmallWorld(disk)
    one = await world.worker(slots=8)
    await world.submit(*(f"t{n}" for n in range(20)))
    before = one.store.calls["claim"]
    await world.passes(3600.0)
    tries = one.store.calls["claim"] - before
    assert 60 <= tries <= 240
    stories = [await world.story(f"t{n}") for n in range(20)]
    assert sum(story.count("yield") for story in stories) <= tries + 8


@in_virtual_time
async def test_a_worker_in_trouble_says_so_and_when_it_is_over():
    disk = Disk()
    world = SmallWorld(disk)
    await world.worker()
    await world.submit("a")
    disk.full = True
    await world.submit("b", "c")
    await world.passes(60.0)
    assert [view.trouble for view in await world.store.workers()] == ["no space left"]
    [told] = world.events("worker.unable")
    assert told.facts["error"] == "no space left"
    assert world.job("a").running
    disk.full = False
    await world.passes(120.0)
    assert [view.trouble for view in await world.store.workers()] == [None]
    assert len(world.events("worker.able")) == 1
    assert world.job("b").running and world.job("c").running


@in_virtual_time
async def test_trouble_does_not_keep_a_worker_from_stopping():
    disk = Disk()
    disk.full = True
    world = SmallWorld(disk)
    one = await world.worker()
    await world.submit("a")
    await one.worker.stop()
    assert (await world.store.get(TaskId("a"))).status == "ready"
