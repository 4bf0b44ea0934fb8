"""Blocks that several ask for, or want to begin, at the same moment."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.conformance.door import Door
from tests.conformance.run_steps import Driver, claim_run
from tests.conformance.test_blocks import after, new_block, new_sbi
from tests.conformance.together import MEET_SECONDS_MAX, together
from tests.support.patience import eventually
from tidewheel.core.operator.blocks import NewObject
from tidewheel.core.operator.definition import StoredDefinition
from tidewheel.errors import (
    Duplicate,
    RunHeld,
    RunLost,
    RunNeeded,
    SbiTaken,
    UnknownDependency,
)
from tidewheel.store.postgres import PostgresStore

MANY = 6


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request):
    """Memory is one process by itself."""
    return request.param


@pytest.fixture
def blocks(store):
    store.save_definition(StoredDefinition(digest="digest of wf", workflow="wf"))
    return store


@pytest.mark.req("R004-53")
def test_the_same_instance_from_many_at_once_is_made_once(blocks, world):
    sbi = new_sbi(new_block("PB-a"), new_block("PB-b", after("PB-a")))
    made = together(world, *[lambda door: door.create_sbi(sbi).made] * MANY)
    assert Counter(made) == {True: 1, False: MANY - 1}
    assert [one.id for one in blocks.blocks()] == ["PB-b", "PB-a"]


@pytest.mark.req("R004-54")
def test_of_instances_that_want_the_same_one_is_made_and_nothing_of_the_others(blocks, world):
    def asks(number):
        same_id = number % 2 == 0
        sbi = new_sbi(
            new_block(f"PB-own-{number}"),
            new_block("PB-x"),
            sbi_id="SBI-1" if same_id else f"SBI-{number}",
            fingerprint=str(number),
        )

        def ask(door):
            try:
                return door.create_sbi(sbi).sbi.id
            except (Duplicate, SbiTaken):
                return None

        return ask

    answers = together(world, *(asks(number) for number in range(MANY)))
    [made] = [one for one in answers if one is not None]
    assert [one.id for one in blocks.sbis()] == [made]
    assert len(blocks.blocks()) == len(blocks.runs()) == 2


@pytest.mark.req("R004-56")
def test_of_many_schedulers_each_block_is_begun_by_one_and_not_before_its_parents(
    blocks, world
):
    names = [f"PB-{number}" for number in range(8)]
    needs = [[], *([after(name)] for name in names)]
    made = [new_block(name, *need) for name, need in zip(names, needs, strict=False)]
    blocks.create_sbi(new_sbi(*made))

    def schedules(door):
        begun = []
        while not door.find_run(names[-1]).batch:
            for run in door.claimable_runs(10):
                try:
                    lease = claim_run(door, run, seen_epoch=run.epoch)
                except (RunHeld, RunLost):
                    continue
                Driver(door, run, lease).write(status="completed", ends=True)
                begun.append(run.name)
        return begun

    shares = together(world, *[schedules] * MANY)
    assert Counter(name for share in shares for name in share) == Counter(names)
    assert [blocks.find_run(name).epoch for name in names] == [1] * len(names)
    ended = [blocks.find_run(name).ended_at for name in names]
    assert ended == sorted(ended)


def one_before_the_others_commit(world, operation, first, second):
    """What each answers, or how it is refused: `first` stands still before its commit, until
    `second` waits for it or is done."""
    there, go_on = threading.Event(), threading.Event()

    def stand_still(name):
        if name == f"{operation}_before_commit":
            there.set()
            assert go_on.wait(MEET_SECONDS_MAX)

    async def opening():
        return PostgresStore(world.settings, failpoint=stand_still)

    standing, other = Door(opening), world.open()
    waits = "SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted"
    waits += " AND datname = current_database()"

    def answer(part, door):
        try:
            return part(door)
        except (RunNeeded, UnknownDependency) as refused:
            return type(refused)

    try:
        with ThreadPoolExecutor(2) as threads:
            begun = threads.submit(answer, first, standing)
            try:
                assert there.wait(MEET_SECONDS_MAX)
                also = threads.submit(answer, second, other)
                eventually(lambda: also.done() or world.execute(waits), "the other is there")
            finally:
                go_on.set()
            return begun.result(), also.result()
    finally:
        standing.leave()


@pytest.mark.req("R004-56")
@pytest.mark.parametrize("kind", ["postgres"])
def test_a_parent_that_is_being_deleted_is_no_parent(blocks, world):
    blocks.create_sbi(new_sbi(new_block("PB-a")))
    parent = blocks.find_run("PB-a").number
    child = new_sbi(new_block("PB-b", after("PB-a")), sbi_id="SBI-2")
    answers = one_before_the_others_commit(
        *(world, "delete_run"),
        lambda door: door.delete_run_part(parent),
        lambda door: door.create_sbi(child).made,
    )
    assert answers == (True, UnknownDependency)
    assert blocks.blocks() == [] == blocks.runs()


@pytest.mark.req("R004-56")
@pytest.mark.parametrize("kind", ["postgres"])
def test_a_run_that_gets_a_child_while_it_is_being_deleted_stays(blocks, world):
    blocks.create_sbi(new_sbi(new_block("PB-a")))
    parent = blocks.find_run("PB-a").number
    child = new_sbi(new_block("PB-b", after("PB-a")), sbi_id="SBI-2")
    answers = one_before_the_others_commit(
        *(world, "create_sbi"),
        lambda door: door.create_sbi(child).made,
        lambda door: door.delete_run_part(parent),
    )
    assert answers == (True, RunNeeded)
    assert [one.id for one in blocks.blocks()] == ["PB-b", "PB-a"]


def test_objects_that_many_post_at_once_are_there(blocks, world):
    def posts(names):
        objects = [NewObject(name=name) for name in names]
        return lambda door: door.post_objects(objects, "ada")

    names = [f"object-{number}" for number in range(20)]
    together(world, *(posts(names[::step]) for step in (1, -1, 2, -2)))
    assert sorted(one.name for one in blocks.objects()) == sorted(names)
