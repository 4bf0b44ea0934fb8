"""DESIGN 9, "why": what keeps a ready task waiting, as far as workers are concerned."""

import pytest

from tests.kit.small_world import SmallWorld
from tests.kit.virtual_time import in_virtual_time
from tidewheel.core.queue.requests import Abilities, HostProcess, NewWorker
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.task import TaskId
from tidewheel.services.explain import reasons

RUNS_COMMANDS = Abilities(handlers=frozenset({"ship"}), bare=False)


async def hire(world, abilities=RUNS_COMMANDS, **capacity):
    return await world.store.register_worker(
        NewWorker(
            name="one",
            process=HostProcess(host="h", boot_id="b", pid=1, started=1.0),
            queues=("default",),
            slots=1,
            capacity=Resources(**capacity),
            abilities=abilities,
        )
    )


async def why(world, task_id):
    return " ".join(await reasons(world.store, TaskId(task_id)))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"command": None, "handler": "plot"},
            "No live worker of queue 'default' knows handler 'plot'; start a worker",
        ),
        ({"command": None, "spec": "1"}, "It has only a spec, which no live worker"),
        ({"command": None, "handler": "ship"}, ""),
        ({"resources": Resources(labels=frozenset({"fast"}))}, "label 'fast'"),
        ({"resources": Resources(memory_bytes=64 * 2**30)}, "It asks for 64 GiB of memory"),
        (
            {"resources": Resources(labels=frozenset({"allow:host-pid", "allow:ports"}))},
            "No worker allows host-pid, ports in compose files, which this task needs; "
            "start a worker: "
            "tidewheel worker --queue default --allow-compose host-pid --allow-compose ports",
        ),
        (
            {
                "resources": Resources(labels=frozenset({"allow:external"})),
                "spec": '{"runner": "compose", "compose": "'
                "services: {a: {image: x, networks: [lab], secrets: 5}}\\n"
                'networks: {lab: {external: true}}\\nvolumes: [5]"}',
            },
            "--allow-compose external; network lab must exist on the engine of the worker that "
            "runs the stage (docker network create lab)",
        ),
        ({"resources": Resources(labels=frozenset({"allow:build"}))}, ""),
        (
            {"resources": Resources(labels=frozenset({"compose:2", "fast"}))},
            "tidewheel worker --queue default --label fast; install docker compose 2 there",
        ),
    ],
)
@in_virtual_time
async def test_a_task_names_what_every_living_worker_lacks(fields, sentence):
    world = SmallWorld()
    labels = frozenset({"allow:default:build", "allow:other:ports"})
    await hire(world, memory_bytes=2**30, labels=labels)
    await world.submit("a", **fields)
    found = await why(world, "a")
    assert sentence in found
    assert bool(sentence) == bool(found)


@in_virtual_time
async def test_everything_that_is_lacking_is_named_at_once():
    world = SmallWorld()
    await hire(world, memory_bytes=2**30)
    labels = frozenset({"fast", "runner:slurm"})
    await world.submit("a", resources=Resources(memory_bytes=2**40, gpu=2, labels=labels))
    assert await reasons(world.store, TaskId("a")) == [
        "It asks for 1 TiB of memory; the largest worker offers 1 GiB; it asks for 2 GPUs; the "
        "largest worker offers 0; no worker offers the labels 'fast', 'runner:slurm'; start "
        "a worker: tidewheel worker --queue default --memory 1TiB --gpu 2 --label fast "
        "--runner slurm"
    ]


@pytest.mark.parametrize("serves", [False, True])
@in_virtual_time
async def test_the_worker_that_is_advised_would_take_the_task(serves):
    """Whether nobody serves the queue, or somebody who lacks something."""
    world = SmallWorld()
    if serves:
        await hire(world, Abilities(handlers=frozenset()))
    labels = frozenset({"big"})
    await world.submit("label", resources=Resources(labels=labels, cpu=0, gpu=1))
    await world.submit("handler", command=None, handler="plot")
    await world.submit("both", command=None, handler="plot", resources=Resources(labels=labels))
    how = "tidewheel worker --queue default"
    assert (await why(world, "label")).endswith(f"; start a worker: {how} --gpu 1 --label big")
    handled = (
        f"; start a worker where handler 'plot' is registered: {how} --handlers MODULE:OBJECT"
    )
    assert (await why(world, "handler")).endswith(handled)
    assert (await why(world, "both")).endswith(f"{handled} --label big")


@in_virtual_time
async def test_a_worker_that_fell_silent_offers_nothing():
    world = SmallWorld()
    await hire(world, Abilities(handlers=frozenset({"plot"})))
    await world.submit("a", command=None, handler="plot")
    assert await why(world, "a") == ""
    await world.passes(60.0)
    await hire(world)
    assert "knows handler 'plot'" in await why(world, "a")


@in_virtual_time
async def test_amounts_that_would_look_the_same_are_given_exactly():
    world = SmallWorld()
    await hire(world, memory_bytes=16383 * 2**20)
    await world.submit("a", resources=Resources(memory_bytes=16 * 2**30))
    said = "It asks for 16GiB of memory; the largest worker offers 16383MiB"
    assert said in await why(world, "a")


@in_virtual_time
async def test_only_workers_that_can_execute_a_task_count_as_large_enough():
    world = SmallWorld()
    await hire(world, memory_bytes=2**40)
    await hire(world, Abilities(handlers=frozenset({"plot"})), memory_bytes=2**30)
    big = Resources(memory_bytes=2**33)
    await world.submit("a", command=None, handler="plot", resources=big)
    assert "the largest worker offers 1 GiB" in await why(world, "a")


@in_virtual_time
async def test_workers_that_run_no_commands_are_told_from_those_that_do():
    world = SmallWorld()
    await hire(world, Abilities(commands=False))
    await world.submit("a")
    assert "runs commands" in await why(world, "a")


@in_virtual_time
async def test_a_worker_in_trouble_is_named_with_its_trouble():
    world = SmallWorld()
    worker = await hire(world)
    await world.store.set_trouble(worker, "the disk is full")
    await world.submit("a")
    assert "worker-1 (the disk is full)" in await why(world, "a")
