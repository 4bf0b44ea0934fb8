"""Handlers in a worker: jobs without a coroutine, a directory or a report of their own."""

import asyncio
import gc
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.kit.small_world import SmallWorld
from tests.kit.virtual_time import in_virtual_time
from tidewheel.config import WorkerSettings
from tidewheel.runners.job_logs import read_part
from tidewheel.runners.python.runner import HandlerJob, Handlers, PythonRunner
from tidewheel.worker.log_upload import LogWay, Receipt
from tidewheel.worker.worker import Host, ServerWays, Worker

HANDLER = {"command": None, "handler": "it"}


async def handled_by(world, function, home=Path("home"), server=None):
    """A worker in this world whose tasks are calls of one function."""
    handlers = Handlers()
    handlers.register("it")(function)
    worker = Worker(
        world.store,
        WorkerSettings(name="worker", slots=8, home=home),
        [PythonRunner(handlers)],
        Host(process=world.host.new_process(), is_alive=world.host.is_alive, server=server),
        world.surroundings(),
    )
    running = asyncio.create_task(worker.run())
    await world.passes(0.0)
    return worker, running


@in_virtual_time
async def test_start_and_end_of_handlers_that_do_little_are_reported_together():
    world = SmallWorld()

    async def no_op(_spec, _job):
        pass

    await handled_by(world, no_op)
    await world.submit("a", "b", "c", **HANDLER)
    assert [report.facts for report in world.events("attempts.reported")] == [
        {"count": 3, "ended": 3}
    ]
    [attempt] = await world.store.attempts("a")
    assert attempt.started_at == attempt.ended_at == 0.0


@in_virtual_time
async def test_a_handler_at_work_is_known_to_have_started():
    world = SmallWorld()

    async def works(_spec, _job):
        await asyncio.sleep(5.0)

    await handled_by(world, works)
    await world.submit("a", **HANDLER)
    assert await world.status("a") == "running"
    await world.passes(5.0)
    [attempt] = await world.store.attempts("a")
    assert (attempt.started_at, attempt.ended_at) == (0.0, 5.0)


@in_virtual_time
async def test_a_cancelled_task_cancels_its_handler():
    world = SmallWorld()

    async def for_ever(_spec, _job):
        await asyncio.sleep(1e9)

    await handled_by(world, for_ever)
    await world.submit("a", **HANDLER)
    await world.store.cancel(["a"])
    await world.passes(1.0)
    assert await world.status("a") == "cancelled"


@in_virtual_time
async def test_a_handler_that_does_not_leave_is_given_up_after_its_grace():
    world = SmallWorld()

    async def stubborn(_spec, _job):
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(1e9)
        await asyncio.sleep(1e9)

    await handled_by(world, stubborn)
    await world.submit("a", max_termination_seconds=3.0, **HANDLER)
    await world.store.cancel(["a"])
    await world.passes(2.0)
    assert await world.status("a") == "cancelling"
    await world.passes(2.0)
    assert await world.status("a") == "cancelled"


@in_virtual_time
async def test_a_handler_may_not_run_longer_than_its_task_says():
    world = SmallWorld()

    async def for_ever(_spec, _job):
        await asyncio.sleep(1e9)

    await handled_by(world, for_ever)
    await world.submit("a", timeout_seconds=4.0, **HANDLER)
    await world.passes(5.0)
    assert (await world.task("a")).errors[0].code == "timed_out"


@in_virtual_time
async def test_a_worker_that_stops_gives_the_tasks_of_its_handlers_back():
    world = SmallWorld()

    async def for_ever(_spec, _job):
        await asyncio.sleep(1e9)

    worker, running = await handled_by(world, for_ever)
    await world.submit("a", **HANDLER)
    worker.ask_stop()
    await running
    assert await world.story("a") == ["claim", "yield"]


@in_virtual_time
async def test_a_finished_handler_leaves_nothing_for_the_garbage_collector():
    world = SmallWorld()

    async def no_op(_spec, _job):
        pass

    await handled_by(world, no_op)
    await world.submit("warm", **HANDLER)
    gc.collect()
    before = {id(one) for one in gc.get_objects() if isinstance(one, HandlerJob)}
    gc.disable()
    try:
        await world.submit(*(f"task-{n}" for n in range(50)), **HANDLER)
        jobs = [one for one in gc.get_objects() if isinstance(one, HandlerJob)]
    finally:
        gc.enable()
    assert [one for one in jobs if id(one) not in before] == []


@pytest.mark.req("R007-13")
@pytest.mark.parametrize("prints", [False, True])
def test_the_log_of_a_handler_goes_to_a_server_from_its_first_text_on(prints, tmp_path):
    sent = []

    async def no_channel(_worker):
        await asyncio.get_running_loop().create_future()
        yield None

    async def read(directory, stream, offset, bytes_max):
        return read_part(directory, stream, offset, bytes_max)

    async def send(_holder, stream, offset, content):
        sent.append((stream, content))
        return Receipt(offset + len(content), full=False)

    async def handler(_spec, _job):
        if prints:
            sys.stdout.write("begun\n")
        await asyncio.sleep(5.0)

    @in_virtual_time
    async def scenario():
        world = SmallWorld()
        ways = ServerWays(
            open_channel=no_channel, log_way=LogWay(read, send), tell_job=lambda _task: {}
        )
        await handled_by(world, handler, tmp_path, ways)
        await world.submit("a", **HANDLER)
        await world.passes(2.0)
        assert sent == ([("out", b"begun\n")] if prints else [])
        await world.passes(5.0)
        assert await world.status("a") == "succeeded"
        assert sent == ([("out", b"begun\n"), ("err", b"")] if prints else [])
        assert bool(list(tmp_path.iterdir())) == prints

    scenario()
