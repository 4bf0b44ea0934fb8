"""Seed 004: processing blocks begin by their priority, and after those that they wait for."""

import pytest

from tests.kit.virtual_time import in_virtual_time
from tests.spec.test_standby import Station
from tidewheel.core.operator.blocks import BlockCondition, BlockNeed, NewBlock, NewSbi
from tidewheel.core.operator.definition import NewRun, RunOptions


class Blocks(Station):
    """Blocks in a small world, with schedulers that stand by."""

    async def ask(self, *blocks, sbi="SBI-1"):
        """Each block is (name, priority, parent with its condition or nothing)."""
        await self.new_run("template")  # its definition is kept
        definition = (await self.world.store.find_run("template")).definition
        made = []
        for name, priority, *parents in blocks:
            run = NewRun(
                workflow="flow",
                definition=definition,
                name=name,
                options=RunOptions(now=1.0, priority=priority),
                given=RunOptions(mode=""),
            )
            needs = tuple(BlockNeed(parent, BlockCondition(word)) for parent, word in parents)
            made.append(NewBlock(id=name, run=run, needs=needs))
        new = NewSbi(id=sbi, body="{}", fingerprint=sbi, who="ada", blocks=tuple(made))
        await self.world.store.create_sbi(new)

    async def statuses(self):
        found = await self.world.store.blocks()
        return {one.id: one.run.status for one in found}

    async def ends(self, name):
        """The only task of a block's run ends well."""
        self.world.job(f"{name}/1/a/1").ends()
        await self.world.passes(3.0)

    def begun(self):
        """The blocks in the order in which schedulers took them."""
        return [one.facts["run"] for one in self.world.events("run.taken")]


@pytest.mark.req("R004-55")
@in_virtual_time
async def test_blocks_begin_in_the_order_of_their_priority(tmp_path):
    station = Blocks(tmp_path)
    await station.ask(("PB-a", 0), ("PB-b", -1), ("PB-c", 100), ("PB-d", 7))
    standby = station.standby(runs_max=1)
    worker = await station.world.worker(queues=("run:*",))
    await standby.start()
    for _ in range(4):
        await station.world.passes(3.0)
        await station.ends(station.begun()[-1])
    assert station.begun() == ["PB-c", "PB-d", "PB-a", "PB-b"]
    await standby.stop()
    await worker.crashes()


@pytest.mark.req("R004-56")
@in_virtual_time
async def test_no_block_begins_twice_or_too_early_under_two_schedulers(tmp_path):
    station = Blocks(tmp_path)
    await station.ask(
        ("PB-a", 0),
        ("PB-b", 100, ("PB-a", "complete")),
        ("PB-c", 100, ("PB-a", "started")),
        ("PB-d", 100, ("PB-b", "finished"), ("PB-c", "complete")),
    )
    both = [station.standby() for _ in range(2)]
    worker = await station.world.worker(queues=("run:*",))
    for standby in both:
        await standby.start()
    await station.world.passes(5.0)
    assert station.begun() == ["PB-a", "PB-c"]
    await station.ends("PB-a")
    assert station.begun() == ["PB-a", "PB-c", "PB-b"]
    await station.ends("PB-c")
    assert station.begun() == ["PB-a", "PB-c", "PB-b"]
    await station.ends("PB-b")
    assert station.begun() == ["PB-a", "PB-c", "PB-b", "PB-d"]
    await station.ends("PB-d")
    assert set((await station.statuses()).values()) == {"completed"}
    assert [one.run.epoch for one in await station.world.store.blocks()] == [1] * 4
    for standby in both:
        await standby.stop()
    await worker.crashes()
