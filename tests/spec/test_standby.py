"""DESIGN §4: runs that wait for a scheduler, or whose own one died, are taken, each by one."""

from contextlib import asynccontextmanager

import pytest

from tests.kit.small_world import SmallWorld
from tests.kit.virtual_time import in_virtual_time
from tests.support.flows import flow
from tidewheel.config import SchedulerSettings
from tidewheel.core.graph.findings import Findings
from tidewheel.core.operator.definition import NewRun, RunOptions
from tidewheel.core.operator.requests import RunBatch, RunClaim
from tidewheel.errors import Refused
from tidewheel.formats.flow_cylc.workflow import load_workflow
from tidewheel.scheduler.open_run import SchedulerHome, driver_of
from tidewheel.scheduler.service import QUIET_SECONDS, SchedulerService
from tidewheel.services.definitions.snapshot import capture, load_options

LEASE = 10.0


class Station:
    """Runs of a small world, and schedulers that stand by."""

    def __init__(self, folder):
        self.world, self.folder = SmallWorld(), folder
        self.unable = set()  # runs that cannot be driven here
        self.why = RuntimeError("no room for it")
        self.told = []  # runs whose events were told after their end

    async def new_run(self, name, given=None):
        """Nobody drives it; with `given` any scheduler is asked to."""
        source = self.folder / "flow"
        source.mkdir(exist_ok=True)
        (source / "flow.cylc").write_text(flow("R1 = a"))
        options = RunOptions(now=1.0)
        loaded = load_workflow(source, load_options(options, "flow"), Findings())
        definition = capture(loaded, source).definition
        await self.world.store.save_definition(definition)
        new = NewRun(
            workflow="flow",
            definition=definition.digest,
            name=name,
            options=options,
            given=given,
        )
        return (await self.world.store.create_run(new)).number

    async def abandoned_run(self, name):
        """Its scheduler died before it had done anything."""
        number = await self.new_run(name)
        dead = self.world.host.new_process()
        await self.world.store.claim_run(
            RunClaim(run=number, process=dead, lease_seconds=LEASE)
        )
        return number

    async def untold_run(self, name):
        """Its scheduler died when it was over, before anybody was told of that."""
        store, number = self.world.store, await self.new_run(name)
        process = self.world.host.new_process()
        lease = await store.claim_run(
            RunClaim(run=number, process=process, lease_seconds=LEASE)
        )
        end = RunBatch(
            number=1, at=await store.now(), status="stopped", outbox=["{}"], ends=True
        )
        await store.write_batch(lease, end)
        return number

    async def deliver(self, run):
        """Tells everybody, unless the run is one that cannot be driven here."""
        self.told.append(run.name)
        if run.name in self.unable:
            raise self.why
        left = await self.world.store.undelivered(run.number)
        await self.world.store.delivered(run.number, left)

    def standby(self, **settings):
        process = self.world.host.new_process()

        @asynccontextmanager
        async def driving(run):
            if run.name in self.unable:
                raise self.why
            claim = RunClaim(run=run.number, process=process, lease_seconds=LEASE)
            lease = await self.world.store.claim_run(claim)
            home = SchedulerHome(
                store=self.world.store,
                home=self.folder / "home",
                environment={"PATH": "/usr/bin:/bin"},
                surroundings=self.world.surroundings(),
            )
            yield driver_of(run, lease, home, given=run.given)

        settings = SchedulerSettings(**settings)
        around = self.world.surroundings()
        return SchedulerService(self.world.store, driving, settings, around, self.deliver)

    async def view(self, number):
        return await self.world.store.run(number)


@in_virtual_time
async def test_a_run_is_taken_when_its_lease_has_run_out_and_not_before(tmp_path):
    station = Station(tmp_path)
    number = await station.abandoned_run("one")
    standby = station.standby()
    await standby.start()
    await station.world.passes(LEASE - 1.0)
    assert (await station.view(number)).epoch == 1
    await station.world.passes(2.0)
    view = await station.view(number)
    assert (view.epoch, view.status) == (2, "running")
    await station.world.passes(10 * LEASE)
    assert (await station.view(number)).epoch == 2  # and kept
    await standby.stop()


@in_virtual_time
async def test_of_two_that_stand_by_one_takes_a_run_and_the_other_the_next(tmp_path):
    station = Station(tmp_path)
    numbers = [await station.abandoned_run(name) for name in ("one", "two")]
    both = [station.standby(runs_max=1) for _ in range(2)]
    for standby in both:
        await standby.start()
    await station.world.passes(LEASE + 5.0)
    views = [await station.view(number) for number in numbers]
    assert [view.epoch for view in views] == [2, 2]
    assert len({view.owner.pid for view in views}) == 2
    for standby in both:
        await standby.stop()


@in_virtual_time
async def test_a_run_that_is_a_task_is_taken_where_no_more_runs_are(tmp_path):
    """The run around it has a place already, and would wait for it for ever."""
    station = Station(tmp_path)
    numbers = [await station.abandoned_run(name) for name in ("one", "two")]
    standby = station.standby(runs_max=1)
    await standby.start()
    await station.world.passes(LEASE + 5.0)
    store, outer = station.world.store, await station.view(numbers[0])
    nested = NewRun(
        workflow="flow",
        definition=outer.definition,
        name=f"{outer.name}/1/post/01",
        parent=outer.number,
        given=RunOptions(mode=""),
    )
    number = (await store.create_run(nested)).number
    await station.world.passes(5.0)
    assert (await station.view(number)).epoch == 1
    assert (await station.view(numbers[1])).epoch == 1  # it is still nobody's
    await standby.stop()


@in_virtual_time
async def test_a_run_that_cannot_be_driven_keeps_nobody_from_the_others(tmp_path):
    station = Station(tmp_path)
    station.unable.add("bad")
    bad, good = [await station.abandoned_run(name) for name in ("bad", "good")]
    standby = station.standby()
    await standby.start()
    await station.world.passes(LEASE + 5.0)
    assert (await station.view(good)).status == "running"
    failures = station.world.events("run.failed")
    assert failures and failures[0].facts["error"] == "RuntimeError('no room for it')"
    station.unable.clear()
    await station.world.passes(5.0)
    assert (await station.view(bad)).status == "running"
    await standby.stop()


@in_virtual_time
async def test_a_scheduler_that_stops_gives_its_runs_back_as_they_are(tmp_path):
    station = Station(tmp_path)
    number = await station.abandoned_run("one")
    first, second = station.standby(), station.standby()
    await first.start()
    await station.world.passes(LEASE + 1.0)
    await first.stop()
    view = await station.view(number)
    assert view.status == "running"
    assert not view.is_driven(await station.world.store.now())
    await second.start()
    await station.world.passes(1.0)
    assert (await station.view(number)).epoch == 3
    await second.stop()


@in_virtual_time
async def test_a_run_that_waits_for_any_scheduler_begins_and_others_do_not(tmp_path):
    """Whoever makes a run to drive it has no race with those who stand by."""
    station = Station(tmp_path)
    own = await station.new_run("own")
    offered = await station.new_run("offered", RunOptions(mode="", paused=True))
    both = [station.standby(), station.standby()]
    for standby in both:
        await standby.start()
    await station.world.passes(LEASE)
    view = await station.view(offered)
    assert (view.status, view.epoch, view.given) == ("paused", 1, None)
    assert (await station.view(own)).status == "created"
    for standby in both:
        await standby.stop()


@in_virtual_time
async def test_a_run_that_cannot_be_taken_is_tried_again_after_a_while(tmp_path):
    station = Station(tmp_path)
    station.unable.add("offered")
    station.why = Refused("its folder is another's")
    offered = await station.new_run("offered", RunOptions(mode=""))
    standby = station.standby(interval_seconds=1.0, lease_seconds=LEASE)
    await standby.start()
    await station.world.passes(LEASE - 1.0)
    assert len(station.world.events("run.not_taken")) == 1
    station.unable.clear()
    await station.world.passes(3.0)
    assert (await station.view(offered)).status == "running"
    await standby.stop()


@pytest.mark.parametrize("kind", ["offered", "abandoned"])
@in_virtual_time
async def test_a_run_that_cannot_even_be_opened_is_tried_again_after_a_while(tmp_path, kind):
    station = Station(tmp_path)
    station.unable.add("bad")
    if kind == "offered":
        number = await station.new_run("bad", RunOptions(mode=""))
    else:
        number = await station.abandoned_run("bad")
        await station.world.passes(LEASE + 1.0)
    standby = station.standby(interval_seconds=1.0, lease_seconds=LEASE)
    await standby.start()
    await station.world.passes(LEASE - 1.0)
    assert len(station.world.events("run.failed")) == 1
    station.unable.clear()
    await station.world.passes(3.0)
    assert (await station.view(number)).status == "running"
    await standby.stop()


@in_virtual_time
async def test_a_run_that_is_put_off_leaves_the_last_place_to_the_next(tmp_path):
    station = Station(tmp_path)
    station.unable.add("bad")
    station.why = Refused("its folder is another's")
    _, good = [await station.new_run(name, RunOptions(mode="")) for name in ("bad", "good")]
    standby = station.standby(interval_seconds=1.0, lease_seconds=LEASE, runs_max=1)
    await standby.start()
    await station.world.passes(LEASE - 1.0)
    assert (await station.view(good)).status == "running"
    await standby.stop()


@in_virtual_time
async def test_a_run_whose_events_were_told_late_is_taken_as_soon_as_it_is_to_go_on(tmp_path):
    station = Station(tmp_path)
    number = await station.untold_run("untold")
    standby = station.standby(interval_seconds=1.0, lease_seconds=1000.0)
    await standby.start()
    await station.world.passes(QUIET_SECONDS + 2.0)
    assert station.told == ["untold"]
    await station.world.store.offer_run(number, RunOptions(mode=""))
    await station.world.passes(2.0)
    assert (await station.view(number)).epoch == 2
    await standby.stop()


@in_virtual_time
async def test_a_run_whose_events_cannot_be_told_is_tried_again_after_a_while(tmp_path):
    station = Station(tmp_path)
    station.unable.add("untold")
    await station.untold_run("untold")
    standby = station.standby(interval_seconds=1.0, lease_seconds=LEASE)
    await standby.start()
    await station.world.passes(QUIET_SECONDS + LEASE - 1.0)
    assert station.told == ["untold"]
    station.unable.clear()
    await station.world.passes(3.0)
    assert station.told == ["untold"] * 2
    await standby.stop()
