"""Seed 002, "Monitor": leases that run out, and what a monitor must not do by mistake."""

import pytest

from tests.kit.faulty_store import FaultyStore
from tests.kit.small_world import SmallWorld
from tests.kit.virtual_time import VirtualClock, in_virtual_time
from tidewheel.core.queue.task import TaskId


async def claimed_by_a_dead_worker(world, *ids, **fields):
    """Tasks whose worker dies at once and leaves nothing behind."""
    one = await world.worker(slots=max(1, len(ids)), lease_seconds=10.0)
    await world.submit(*ids, **fields)
    await one.crashes()
    world.host.jobs.clear()


@pytest.mark.req("R002-53", "R002-54", "R002-59")
@in_virtual_time
async def test_a_lease_that_ran_out_makes_its_task_ready_again_and_leaves_an_entry():
    world = SmallWorld()
    one = await world.worker(lease_seconds=10.0)
    await world.submit("a")
    world.job("a").progresses(0.4)
    await world.passes(4.0)  # one heartbeat, at 3.3 s
    await one.crashes()
    await world.monitor().start()
    await world.passes(12.0)
    task = await world.task("a")
    assert (task.status, task.owner, task.progress, task.deadline_at) == (
        "ready",
        None,
        0.0,
        None,
    )
    lapse = (await world.store.history(TaskId("a")))[-1]
    assert (lapse.signal, lapse.worker, lapse.progress) == ("lapse", "worker-1", 0.4)


@pytest.mark.req("R002-58")
@in_virtual_time
async def test_a_dead_worker_is_noticed_within_lease_and_scan():
    world = SmallWorld()
    await world.monitor(interval_seconds=1.0).start()
    await world.passes(100.0)
    await claimed_by_a_dead_worker(world, "a")
    await world.passes(11.1)
    assert await world.status("a") == "ready"


@pytest.mark.req("R002-56")
@in_virtual_time
async def test_two_monitors_reset_a_task_once():
    world = SmallWorld()
    for _ in range(2):
        await world.monitor().start()
    await world.passes(20.0)
    await claimed_by_a_dead_worker(world, *(f"t{n}" for n in range(50)))
    await world.passes(20.0)
    for n in range(50):
        assert await world.story(f"t{n}") == ["claim", "lapse"]


@pytest.mark.slow
@pytest.mark.req("R002-55")
@in_virtual_time
async def test_a_worker_that_is_heard_keeps_its_lease_whatever_the_monitors_do():
    world = SmallWorld()
    await world.worker(lease_seconds=3.0)
    for _ in range(3):
        await world.monitor(interval_seconds=0.1).start()
    await world.submit("a")
    await world.passes(1000.0)
    assert await world.story("a") == ["claim"]


@pytest.mark.req("R002-57")
@pytest.mark.parametrize("skew_seconds", [-3600.0, 3600.0, 86_400.0 * 365])
def test_a_skewed_clock_of_the_monitor_changes_nothing(skew_seconds):
    @in_virtual_time
    async def watch():
        world = SmallWorld()
        await world.monitor(clock=VirtualClock(skew_seconds)).start()
        # It stands beside a dead one, whose tasks it would adopt if it looked.
        await world.worker(slots=1, lease_seconds=10.0, adopt_interval_seconds=1e9)
        await world.submit("alive")
        await world.passes(15.0)
        await claimed_by_a_dead_worker(world, "dead")
        await world.passes(9.0)
        assert await world.story("dead") == ["claim"]
        await world.passes(3.0)
        assert (await world.story("dead"))[:2] == ["claim", "lapse"]
        assert await world.story("alive") == ["claim"]

    watch()


@pytest.mark.req("R002-86")
@in_virtual_time
async def test_after_an_outage_every_worker_has_a_full_lease_to_be_heard_again():
    world = SmallWorld()
    way = FaultyStore(world.store, world.clock)
    await world.monitor(store=way.as_store()).start()
    await world.passes(100.0)
    await claimed_by_a_dead_worker(world, "a")
    way.out_of_reach = True
    await world.passes(60.0)
    way.out_of_reach = False
    back_at = world.clock.monotonic()
    await world.passes(10.0)
    assert await world.story("a") == ["claim"]
    await world.passes(7.0)  # back-off, lease, scan
    assert await world.story("a") == ["claim", "lapse"]
    lapse = (await world.store.history(TaskId("a")))[-1]
    assert lapse.at >= back_at + 10.0


@pytest.mark.req("R002-86")
@in_virtual_time
async def test_an_answer_that_came_late_is_an_outage_too():
    world = SmallWorld()
    way = FaultyStore(world.store, world.clock)
    await world.monitor(store=way.as_store()).start()
    await world.passes(100.0)
    way.delays("take_back_lapsed_leases", after=60.0)
    await world.passes(2.0)
    way.delays("take_back_lapsed_leases")
    await claimed_by_a_dead_worker(world, "a")
    await world.passes(59.0)
    back_at = world.clock.monotonic()
    await world.passes(9.0)
    assert await world.story("a") == ["claim"]
    await world.passes(3.0)
    assert await world.story("a") == ["claim", "lapse"]
    assert (await world.store.history(TaskId("a")))[-1].at >= back_at + 9.0


@pytest.mark.req("R002-86")
@in_virtual_time
async def test_an_old_answer_does_not_show_that_the_store_is_there():
    world = SmallWorld()
    way = FaultyStore(world.store, world.clock)
    monitor = world.monitor(store=way.as_store(), interval_seconds=3.0, retention_seconds=None)
    await monitor.start()
    await world.passes(100.0)
    way.delays("take_back_lapsed_leases", after=60.0)
    await world.passes(3.0)  # it has asked, and hears the answer in a minute
    way.delays("take_back_lapsed_leases")
    await claimed_by_a_dead_worker(world, "a")
    await world.passes(62.9)  # three seconds after it heard that, it asks for the first time
    asked_at = world.clock.monotonic()
    await world.passes(9.9)
    assert await world.story("a") == ["claim"]
    await world.passes(6.0)
    assert await world.story("a") == ["claim", "lapse"]
    assert (await world.store.history(TaskId("a")))[-1].at >= asked_at + 9.9


@in_virtual_time
async def test_one_failed_call_is_an_outage_too():
    world = SmallWorld()
    way = FaultyStore(world.store, world.clock)
    await world.monitor(store=way.as_store()).start()
    await world.passes(100.0)
    await claimed_by_a_dead_worker(world, "a")
    await world.passes(9.0)
    way.loses_requests("take_back_lapsed_leases")
    await world.passes(8.0)
    assert await world.story("a") == ["claim"]
    await world.passes(6.0)
    assert await world.story("a") == ["claim", "lapse"]


@in_virtual_time
async def test_a_new_monitor_has_to_watch_for_a_lease_first():
    world = SmallWorld()
    await claimed_by_a_dead_worker(world, "a")
    await world.passes(1000.0)
    monitor = world.monitor()
    await monitor.run_once()
    assert await world.story("a") == ["claim"]
    await monitor.start()
    await world.passes(9.5)
    assert await world.story("a") == ["claim"]
    await world.passes(2.0)
    assert await world.story("a") == ["claim", "lapse"]


@in_virtual_time
async def test_a_monitor_that_stood_still_does_not_blame_the_workers():
    world = SmallWorld()
    clock = StoppableClock()
    monitor = world.monitor(clock=clock)
    await monitor.start()
    await world.passes(100.0)
    await claimed_by_a_dead_worker(world, "a")  # it could have been stopped like the monitor
    clock.stands_still(600.0)
    await world.passes(601.0)
    assert await world.story("a") == ["claim"]
    await world.passes(12.0)
    assert await world.story("a") == ["claim", "lapse"]


class StoppableClock(VirtualClock):
    """The clock of a process that was stopped: its waits end late."""

    def __init__(self):
        super().__init__()
        self._still_until = 0.0

    def stands_still(self, seconds):
        self._still_until = self.monotonic() + seconds

    async def sleep(self, seconds):
        await super().sleep(seconds)
        if self.monotonic() < self._still_until:
            await super().sleep(self._still_until - self.monotonic())


@in_virtual_time
async def test_a_jump_of_the_database_clock_ends_no_lease_of_a_living_worker():
    world = SmallWorld()
    await world.monitor().start()
    await world.worker(lease_seconds=10.0)
    await world.submit("alive")
    await world.passes(100.0)
    world.database_clock_jumps(3600.0)
    await world.passes(100.0)
    assert await world.story("alive") == ["claim"]


@pytest.mark.slow
@in_virtual_time
async def test_ten_thousand_leases_that_run_out_together_are_worked_off_in_batches():
    world = SmallWorld()
    way = FaultyStore(world.store, world.clock)
    await claimed_by_a_dead_worker(world, *(f"t{n}" for n in range(10_000)))
    monitor = world.monitor(store=way.as_store(), lapsed_per_pass_max=500)
    await monitor.run_once()
    for _ in range(12):
        await world.passes(1.0)
        reports = await monitor.run_once()
        if reports:
            break
    assert [(one.event, one.facts) for one in reports] == [
        ("leases.taken_back", {"lapse": 10_000})
    ]
    assert way.calls["take_back_lapsed_leases"] >= 20
    assert await world.store.verify() == []


@in_virtual_time
async def test_a_task_that_kills_its_worker_each_time_fails_and_the_others_go_on():
    world = SmallWorld()
    await world.monitor().start()
    await world.submit("poison", max_lapses=2, priority=100)
    await world.submit("good")
    for _ in range(3):
        one = await world.worker(slots=1, lease_seconds=5.0)
        assert world.job("poison").running
        await one.crashes()
        world.host.jobs.clear()
        await world.passes(10.0)
    assert await world.story("poison") == ["claim", "lapse"] * 2 + ["claim", "lapse_out"]
    assert (await world.task("poison")).errors[0].code == "lease_lapsed"
    await world.worker(slots=1)
    assert world.job("good").running


@pytest.mark.req("R003-43")
@in_virtual_time
async def test_a_cancelled_task_of_a_dead_worker_is_cancelled_when_its_lease_runs_out():
    world = SmallWorld()
    await world.monitor().start()
    await world.passes(20.0)
    await claimed_by_a_dead_worker(world, "a")
    await world.store.cancel([TaskId("a")])
    assert await world.status("a") == "cancelling"
    await world.passes(12.0)
    assert await world.status("a") == "cancelled"


@pytest.mark.req("R002-85")
@in_virtual_time
async def test_a_monitor_starts_and_stops_inside_an_application():
    world = SmallWorld()
    monitor = world.monitor()
    await monitor.start()
    await world.passes(5.0)
    await monitor.stop()
    await claimed_by_a_dead_worker(world, "a")
    await world.passes(100.0)
    assert await world.story("a") == ["claim"]


@in_virtual_time
async def test_a_bug_stops_the_monitor_and_is_not_hidden():
    world = SmallWorld()

    class Buggy(FaultyStore):
        async def take_back_lapsed_leases(self, **_):
            raise AssertionError("impossible")

    monitor = world.monitor(store=Buggy(world.store, world.clock).as_store())
    with pytest.raises(AssertionError, match="impossible"):
        await monitor.run()
