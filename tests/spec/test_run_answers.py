"""Who hears a command that comes between two schedulers of a run, or after its end."""

import asyncio

import pytest

from tests.conformance.door import PROCESS
from tests.kit.memory import MemoryStore
from tests.kit.virtual_time import run_virtually
from tidewheel.core.operator.definition import NewRun, RunOptions, StoredDefinition
from tidewheel.core.operator.requests import CommandAnswer, RunBatch, RunClaim
from tidewheel.core.operator.verbs import Pause, Trigger
from tidewheel.errors import Aborted, NotRunning
from tidewheel.services.run_service import (
    HANDOVER_SECONDS,
    REOPENING_SECONDS,
    awaited_answer,
    post_command,
)

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
    batch = RunBatch(number=lease.batch + 1, at=0.0, status=status, **rest)
    await store.write_batch(lease, batch)


async def driven_until_death(store):
    run = await created(store)
    await written(store, await claimed(store, run), "running")
    await asyncio.sleep(LEASE_SECONDS)
    return run


def commanded(store, run):
    return asyncio.create_task(post_command(store, run, Pause(), "me", reopens=False))


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


async def ended(store, status="completed"):
    run = await created(store)
    await written(store, await claimed(store, run), status, ends=True)
    return await store.run(run.number)


async def triggered(store, run):
    trigger = Trigger(ids=("1/a",))
    number = await post_command(store, run, trigger, "me", reopens=True)
    return await awaited_answer(store, run, number, trigger.verb, 30.0)


async def obeyed(store, run):
    """As a scheduler does that takes the run."""
    lease = await claimed(store, run)
    heard = (await store.read_inbox(run.number, 9)).happenings
    answers = [CommandAnswer(one.number, '{"tasks": {"1/a": "1"}}') for one in heard]
    consumed = [one.seq for one in heard]
    await written(store, lease, "running", consumed=consumed, answers=answers, goes_on=True)


def test_where_a_scheduler_serves_a_run_that_has_ended_goes_on_at_once():
    async def scenario(store):
        run = await ended(store)
        giving = asyncio.create_task(triggered(store, run))
        await asyncio.sleep(1.0)
        [offered] = await store.claimable_runs(9)
        await obeyed(store, offered)
        assert (await giving).document == {"tasks": {"1/a": "1"}}

    play(scenario)


def test_where_none_serves_the_command_is_kept_and_the_answer_names_the_next():
    async def scenario(store):
        run = await ended(store)
        began_at = asyncio.get_running_loop().time()
        answer = await triggered(store, run)
        waited = asyncio.get_running_loop().time() - began_at
        assert waited < REOPENING_SECONDS + 1
        assert answer.document == {
            "kept": True,
            "status": "completed",
            "next": "tidewheel run tide/run1",
        }
        assert (await store.command(answer.number)).answered_at is None

    play(scenario)


async def overtaken(store, **end):
    """A trigger that is given while the last batch is under way; the run, and its answer."""
    run = await created(store)
    lease = await claimed(store, run)
    giving = asyncio.create_task(triggered(store, run))
    await asyncio.sleep(0.01)
    await written(store, lease, ends=True, **end)
    return run, giving


def test_a_run_that_ends_at_the_moment_of_a_trigger_is_reopened_by_it():
    async def scenario(store):
        run, giving = await overtaken(store, status="completed")
        assert (await giving).document["kept"]
        [offered] = await store.claimable_runs(9)
        assert offered.number == run.number

    play(scenario)


def test_a_trigger_that_a_failure_of_the_run_overtakes_is_kept_and_the_run_stays_aside():
    async def scenario(store):
        _, giving = await overtaken(store, status="error", reason="put aside")
        assert (await giving).document["status"] == "error"
        assert await store.claimable_runs(9) == []

    play(scenario)


def test_a_trigger_that_an_abortion_overtakes_is_refused():
    async def scenario(store):
        _, giving = await overtaken(store, status="stopped", reason="aborted by ann: wrong")
        with pytest.raises(Aborted):
            await giving

    play(scenario)
