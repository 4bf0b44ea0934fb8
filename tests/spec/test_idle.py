"""Seed 002: a worker that is to leave when nothing is left to do does not leave before."""

import asyncio

from tests.kit.faulty_store import FaultyStore
from tests.kit.small_world import SmallWorld
from tests.kit.virtual_time import in_virtual_time
from tidewheel.client.embedded import until_idle
from tidewheel.config import WorkerSettings
from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.requests import End, Ending, HostProcess, NewWorker, Report
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.task import TaskId


@in_virtual_time
async def test_a_task_that_is_claimed_between_two_looks_is_still_work():
    world = SmallWorld()
    await world.submit("a")
    way = FaultyStore(world.store, world.clock)
    way.delays("list_tasks", before=5.0)
    settings = WorkerSettings(name="worker")
    idle = asyncio.create_task(until_idle(way.as_store(), settings, frozenset(), lambda: True))
    await world.passes(1.0)
    process = HostProcess(host="host", boot_id="boot", pid=1, started=1.0)
    me = await world.store.register_worker(
        NewWorker(name="worker", process=process, queues=(), slots=1, capacity=Resources())
    )
    await world.store.claim_by_id(TaskId("a"), me)
    await world.passes(20.0)
    assert not idle.done()
    holder = Holder(task_id=TaskId("a"), attempt=1, worker=me)
    await world.store.report([Report(holder=holder, end=End(ending=Ending.SUCCEEDED))])
    await world.passes(20.0)
    assert idle.done()
