"""A command that comes between two schedulers of a run is heard by the next one."""

import asyncio

import pytest

from tests.conformance.door import PROCESS
from tidewheel.core.runs.commands import Pause
from tidewheel.core.runs.definition import NewRun, RunOptions, StoredDefinition
from tidewheel.core.runs.requests import Batch, RunClaim
from tidewheel.errors import NotRunning
from tidewheel.services.run_answers import HANDOVER_SECONDS, post_command
from tidewheel.store.memory import MemoryStore
from tidewheel.testing.virtual_time import run_virtually

LEASE_SECONDS = 10.0
SOON_SECONDS = HANDOVER_SECONDS / 2


def play(scenario):
    async def session():
        store = MemoryStore(asyncio.get_running_loop().time)
        definition = StoredDefinition(digest="digest", workflow="tide", text="graph")
        await store.save_definition(definition)
        await scenario(store)

    run_virtually(session())


async def created(store, given=None):
    return await store.create_run(NewRun(workflow="tide", definition="digest", given=given))


async def claimed(store, run):
    asked = RunClaim(run=run.number, process=PROCESS, lease_seconds=LEASE_SECONDS)
    return await store.claim_run(asked)


async def written(store, lease, status, **rest):
    batch = Batch(number=lease.batch + 1, at=0.0, status=status, **rest)
    await store.write_batch(lease, batch)


async def driven_until_death(store):
    run = await created(store)
    await written(store, await claimed(store, run), "running")
    await asyncio.sleep(LEASE_SECONDS)
    return run


def commanded(store, run):
    return asyncio.create_task(post_command(store, run, Pause(), "me"))


def test_the_next_scheduler_hears_what_was_said_before_it_came():
    async def scenario(store):
        for run in (await driven_until_death(store), await created(store, RunOptions())):
            giving = commanded(store, run)
            await asyncio.sleep(SOON_SECONDS)
            await claimed(store, run)
            number = await giving
            assert [one.number for one in await store.commands(run.number)] == [number]

    play(scenario)


def test_a_run_that_nobody_takes_over_refuses_after_a_while():
    async def scenario(store):
        run = await driven_until_death(store)
        began_at = asyncio.get_running_loop().time()
        with pytest.raises(NotRunning):
            await commanded(store, run)
        waited = asyncio.get_running_loop().time() - began_at
        assert HANDOVER_SECONDS <= waited < HANDOVER_SECONDS + 1

    play(scenario)


def test_a_run_that_was_let_go_refuses_at_once():
    async def scenario(store):
        run = await created(store)
        await written(store, await claimed(store, run), "stopped", ends=True)
        began_at = asyncio.get_running_loop().time()
        with pytest.raises(NotRunning):
            await commanded(store, run)
        assert asyncio.get_running_loop().time() == began_at

    play(scenario)
