"""Blocks that several ask for, or want to begin, at the same moment."""

from collections import Counter

import pytest

from tests.conformance.run_steps import Driver, claim_run
from tests.conformance.test_blocks import after, new_block, new_sbi
from tests.conformance.together import together
from tidewheel.core.runs.blocks import NewObject
from tidewheel.core.runs.definition import StoredDefinition
from tidewheel.errors import Duplicate, RunHeld, RunLost, SbiTaken

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


def test_objects_that_many_post_at_once_are_there(blocks, world):
    def posts(names):
        objects = [NewObject(name=name) for name in names]
        return lambda door: door.post_objects(objects, "ada")

    names = [f"object-{number}" for number in range(20)]
    together(world, *(posts(names[::step]) for step in (1, -1, 2, -2)))
    assert sorted(one.name for one in blocks.objects()) == sorted(names)
