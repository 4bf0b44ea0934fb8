"""Waiting for many tasks asks the store about all of them at once."""

import pytest

from tests.kit.faulty_store import FaultyStore
from tests.kit.scripted_runner import Script
from tests.kit.small_world import SmallWorld
from tests.kit.virtual_time import in_virtual_time
from tidewheel.client.async_client import wait_for
from tidewheel.core.queue.task import TaskId


@pytest.mark.slow
@in_virtual_time
async def test_waiting_for_many_tasks_costs_one_call_a_look():
    world = SmallWorld(lambda _: Script(seconds=10.0))
    await world.worker(slots=600)
    ids = [TaskId(f"t{n}") for n in range(600)]
    await world.submit(*ids)
    counted = FaultyStore(world.store, world.clock)
    moved = []
    tasks = await wait_for(counted.as_store(), [*ids, ids[0]], None, moved.append)
    assert [task.id for task in tasks] == [*ids, ids[0]]
    assert all(task.ended for task in tasks)
    assert counted.calls["get"] == 0
    assert counted.calls["get_many"] < 60
    assert {task.id for task in moved if task.ended} == set(ids)
