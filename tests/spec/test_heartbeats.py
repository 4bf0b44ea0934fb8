"""Seed 002, "Heartbeat": a lease lives as long as its worker is heard; a fenced job less."""

import asyncio
import threading
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.kit.faulty_store import FaultyStore
from tests.kit.memory import MemoryStore
from tests.kit.scripted_runner import Script, ScriptedHost
from tests.kit.small_world import SmallWorld
from tests.kit.virtual_time import in_virtual_time
from tests.support.patience import allowed
from tidewheel.config import WorkerSettings
from tidewheel.core.queue.requests import End, Ending, QueueSettings
from tidewheel.core.queue.task import NewTask, TaskId
from tidewheel.services.service import Surroundings, SystemClock
from tidewheel.worker.worker import Host, Worker


@pytest.mark.req("R002-39", "R002-44")
@in_virtual_time
async def test_a_lease_is_extended_three_times_in_its_length():
    world = SmallWorld()
    one = await world.worker(lease_seconds=9.0)
    await world.submit("a")
    await world.monitor().start()
    before = one.store.calls["heartbeat"]
    await world.passes(90.0)
    assert one.store.calls["heartbeat"] - before == 30
    assert await world.story("a") == ["claim"]
    assert (await world.task("a")).deadline_at == 99.0


@in_virtual_time
async def test_one_call_beats_for_all_leases():
    world = SmallWorld()
    one = await world.worker(slots=50)
    await world.submit(*(f"a{n}" for n in range(25)))
    await world.passes(1.0)
    await world.submit(*(f"b{n}" for n in range(25)))
    before = one.store.calls["heartbeat"]
    await world.passes(30.0)
    assert one.store.calls["heartbeat"] - before <= 10
    await world.monitor().start()
    await world.passes(30.0)
    assert world.events("leases.taken_back") == []


@pytest.mark.slow
@in_virtual_time
async def test_a_short_lease_among_long_ones_is_kept():
    world = SmallWorld()
    await world.store.configure_queue("long", QueueSettings(lease_seconds=600.0))
    await world.store.configure_queue("short", QueueSettings(lease_seconds=3.0))
    await world.worker(queues=("long", "short"))
    await world.monitor().start()
    await world.submit("slow", queue="long")
    await world.passes(50.0)
    await world.submit("quick", queue="short")
    await world.passes(1000.0)
    assert await world.story("slow") == ["claim"]
    assert await world.story("quick") == ["claim"]


@pytest.mark.req("R002-45", "R002-84")
@in_virtual_time
async def test_a_heartbeat_carries_the_latest_progress():
    world = SmallWorld()
    await world.worker()
    await world.submit("a")
    for value in (0.9, 0.5, 7.0, float("nan")):  # what is no progress is not passed on
        world.job("a").progresses(value)
    await world.passes(4.0)
    assert (await world.task("a")).progress == 0.5
    assert await world.status("a") == "running"


@pytest.mark.req("R002-45")
@in_virtual_time
async def test_progress_is_known_within_a_second_however_long_the_lease():
    world = SmallWorld()
    await world.worker(lease_seconds=600.0)
    await world.submit("a", "b")
    world.job("a").progresses(0.25)
    await world.passes(1.0)
    assert (await world.task("a")).progress == 0.25
    world.job("b").progresses(0.5)
    world.job("a").progresses(0.75)
    await world.passes(1.0)
    assert ((await world.task("a")).progress, (await world.task("b")).progress) == (0.75, 0.5)


@pytest.mark.req("R002-45", "R003-57")
@in_virtual_time
async def test_jobs_that_tell_progress_all_the_time_cost_one_call_a_second():
    world = SmallWorld()
    one = await world.worker(slots=10, lease_seconds=600.0)
    await world.submit(*(f"a{n}" for n in range(10)))
    before = one.store.calls["heartbeat"]
    for step in range(1000):
        world.job(f"a{step % 10}").progresses(step / 1000)
        await world.passes(0.01)
    assert one.store.calls["heartbeat"] - before <= 11
    await world.passes(1.0)
    assert (await world.task("a9")).progress == 0.999
    before = one.store.calls["heartbeat"]
    world.job("a9").progresses(0.999)  # no news
    await world.passes(9.0)
    assert one.store.calls["heartbeat"] == before


@in_virtual_time
async def test_progress_that_the_store_did_not_hear_is_told_again():
    world = SmallWorld()
    one = await world.worker(lease_seconds=600.0)
    await world.submit("a")
    one.store.out_of_reach = True
    world.job("a").progresses(0.5)
    await world.passes(30.0)
    one.store.out_of_reach = False
    await world.passes(10.0)
    assert (await world.task("a")).progress == 0.5


@in_virtual_time
async def test_a_worker_without_work_is_seen_too():
    world = SmallWorld()
    await world.worker()
    await world.passes(1000.0)
    [view] = await world.store.workers()
    assert view.seen_at >= 990.0


@pytest.mark.req("R002-63", "R003-42")
@in_virtual_time
async def test_a_cancellation_whose_push_got_lost_is_told_by_the_next_heartbeat():
    world = SmallWorld()
    one = await world.worker(lease_seconds=9.0)
    await world.submit("a")
    one.store.loses_requests("cancelling", 1000)
    await world.store.cancel([TaskId("a")])
    await world.passes(2.9)
    assert world.job("a").running
    await world.passes(0.2)
    assert world.job("a").graces == [10.0]
    assert await world.status("a") == "cancelled"


@pytest.mark.req("R002-52")
@in_virtual_time
async def test_a_job_whose_lease_is_lost_is_killed_and_nothing_is_reported():
    world = SmallWorld()
    late = await world.worker(lease_seconds=10.0)
    await world.submit("a")
    await world.passes(1.0)  # that it runs is told
    stale = world.job("a")
    late.store.out_of_reach = True
    await world.monitor().start()
    await world.passes(15.0)
    before = late.store.calls["report"]
    await world.worker()
    late.store.out_of_reach = False
    await world.passes(10.0)
    assert stale.graces == [0.0]
    assert late.store.calls["report"] == before
    assert world.job("a").running


@in_virtual_time
async def test_a_lost_lease_cuts_the_grace_of_a_cancelled_job_short():
    world = SmallWorld(lambda _: Script(obeys_after_seconds=None))
    one = await world.worker(lease_seconds=10.0)
    await world.monitor().start()
    await world.submit("a", max_termination_seconds=1000.0)
    await world.store.cancel([TaskId("a")])
    await world.passes(20.0)
    one.store.out_of_reach = True
    await world.passes(15.0)
    assert await world.status("a") == "cancelled"
    one.store.out_of_reach = False
    await world.passes(10.0)
    assert world.job("a").graces == [1000.0, 0.0]
    assert world.events("report.refused") == []


@pytest.mark.slow
@in_virtual_time
async def test_an_outage_of_an_hour_ends_no_job_and_costs_no_attempt():
    world = SmallWorld()
    one = await world.worker()
    other = FaultyStore(world.store, world.clock)
    await world.monitor(store=other.as_store()).start()
    await world.submit("a")
    await world.passes(20.0)
    one.store.out_of_reach = other.out_of_reach = True
    await world.passes(3600.0)
    one.store.out_of_reach = other.out_of_reach = False
    await world.passes(60.0)
    assert world.job("a").running
    world.job("a").ends()
    await world.passes(1.0)
    assert await world.story("a") == ["claim", "succeed"]


@in_virtual_time
async def test_a_heartbeat_that_hangs_is_given_up_and_sent_again():
    world = SmallWorld()
    one = await world.worker(lease_seconds=30.0)
    await world.submit("a")
    await world.passes(1.0)
    one.store.delays("heartbeat", before=1e9)
    await world.passes(20.0)
    one.store.delays("heartbeat")
    await world.passes(60.0)
    assert (await world.task("a")).deadline_at > 70.0


@in_virtual_time
async def test_a_fenced_job_is_dead_before_its_lease_ends_when_the_store_is_silent():
    world = SmallWorld(lambda _: Script(obeys_after_seconds=None))
    await world.store.configure_queue("default", QueueSettings(fence_kill=True))
    one = await world.worker(lease_seconds=10.0)
    await world.submit("a")
    await world.passes(100.0)
    deadline_at = (await world.task("a")).deadline_at
    one.store.out_of_reach = True
    await world.passes(60.0)
    assert world.job("a").ended_at < deadline_at
    one.store.out_of_reach = False
    await world.passes(10.0)
    assert (await world.story("a"))[:2] == ["claim", "yield"]


@in_virtual_time
async def test_a_fence_does_not_wait_for_a_heartbeat_that_hangs():
    world = SmallWorld()
    await world.store.configure_queue("default", QueueSettings(fence_kill=True))
    one = await world.worker(lease_seconds=10.0)
    await world.submit("a")
    job = world.job("a")
    one.store.delays("heartbeat", after=1e9)
    await world.passes(10.0)
    assert job.ended_at < 10.0


@in_virtual_time
async def test_a_fence_counts_from_the_request_when_the_answer_to_a_claim_was_slow():
    world = SmallWorld()
    await world.store.configure_queue("default", QueueSettings(fence_kill=True))
    one = await world.worker(lease_seconds=10.0, slots=1)
    one.store.delays("claim", after=6.0)
    one.store.delays("heartbeat", before=1e9)
    await world.submit("a")
    await world.passes(6.0)
    job = world.job("a")
    await world.passes(4.0)
    assert job.ended_at < 10.0


@in_virtual_time
async def test_a_job_without_a_fence_goes_on_when_the_store_is_silent():
    world = SmallWorld()
    one = await world.worker(lease_seconds=10.0)
    await world.submit("a")
    one.store.out_of_reach = True
    await world.passes(1000.0)
    assert world.job("a").running


@in_virtual_time
async def test_a_fenced_job_goes_on_while_the_store_is_heard():
    world = SmallWorld()
    await world.store.configure_queue("default", QueueSettings(fence_kill=True))
    await world.worker(lease_seconds=10.0)
    await world.submit("a")
    await world.passes(1000.0)
    assert world.job("a").running


class CountedBeats:
    """A store as heartbeats see it, which says when it has heard enough of them."""

    def __init__(self, store, enough):
        self.store, self.enough = store, enough
        self.beats, self.threads = 0, set()
        self.heard_enough = threading.Event()

    @asynccontextmanager
    async def opened(self):
        yield self

    async def heartbeat(self, worker, beats):
        self.threads.add(threading.current_thread().name)
        self.beats += len(beats)
        if self.beats >= self.enough:
            self.heard_enough.set()
        return await self.store.heartbeat(worker, beats)


class BlockingJob:
    """A job that keeps the worker's event loop busy until its lease was extended twice."""

    def __init__(self, heard_enough):
        self.heard_enough = heard_enough
        self.was_heard = None

    def accepts(self, _task):
        return True

    async def start(self, _assignment, _reports):
        return self

    async def adopt(self, _assignment, _reports):
        return None

    async def wait(self):
        self.was_heard = self.heard_enough.wait(timeout=allowed(30.0))
        return End(ending=Ending.SUCCEEDED)

    async def stop(self, _grace_seconds):
        pass


def test_a_job_that_blocks_the_worker_misses_no_heartbeat():
    async def work():
        clock = SystemClock()
        store = MemoryStore(clock=clock.monotonic)
        counted = CountedBeats(store, enough=2)
        job = BlockingJob(counted.heard_enough)
        host = ScriptedHost(clock)
        ended = asyncio.Event()
        worker = Worker(
            store,
            WorkerSettings(name="worker", lease_seconds=2.0, home=Path("home")),
            [job],
            Host(
                process=host.new_process(),
                is_alive=host.is_alive,
                heartbeat_store=counted.opened,
            ),
            Surroundings(
                clock=clock,
                on_report=lambda one: ended.set() if one.facts.get("ended") else None,
            ),
        )
        await store.submit([NewTask(id=TaskId("a"), queue="default", command="true")])
        await worker.start()
        await ended.wait()
        await worker.stop()
        return job.was_heard, counted.threads, (await store.get(TaskId("a"))).status

    was_heard, threads, status = asyncio.run(work())
    assert was_heard
    assert threads == {"heartbeats"}
    assert status == "succeeded"


def test_a_failure_of_the_heartbeats_ends_the_worker():
    class BrokenStore(CountedBeats):
        async def heartbeat(self, _worker, _beats):
            raise AssertionError("a bug")

    async def work():
        clock = SystemClock()
        store = MemoryStore(clock=clock.monotonic)
        host = ScriptedHost(clock)
        worker = Worker(
            store,
            WorkerSettings(name="worker", home=Path("home")),
            [host.runner()],
            Host(
                process=host.new_process(),
                is_alive=host.is_alive,
                heartbeat_store=BrokenStore(store, enough=1).opened,
            ),
            Surroundings(clock=clock),
        )
        await worker.run()

    with pytest.raises(AssertionError, match="a bug"):
        asyncio.run(work())
