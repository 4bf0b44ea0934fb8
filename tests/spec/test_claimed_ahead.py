"""A worker beside a scheduler leases more tasks than it has slots while jobs are short."""

import asyncio
from dataclasses import replace

import pytest

from tests.kit.scripted_runner import Script, ScriptedRunner
from tests.kit.small_world import SmallWorld
from tests.kit.virtual_time import in_virtual_time
from tidewheel.config import OnStop
from tidewheel.core.operator.definition import NewRun, StoredDefinition
from tidewheel.core.operator.requests import RunBatch, RunClaim
from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.requests import HostProcess, QueueSettings
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.task import Instant, NewTask, TaskId

LONG = Script()
COMMIT_SECONDS = 0.005
PROCESS = HostProcess(host="here", boot_id="boot", pid=1, started=1.0)


def script_of(task):
    """Jobs are told to end, or take 7 to 13 ms, so that they do not end together."""
    return LONG if "long" in task.id else Script(seconds=0.007 + 0.001 * (task.seq % 7))


class RunWorld(SmallWorld):
    """A small world with a run, whose scheduler takes reports into its batches."""

    @classmethod
    async def made(cls, *, has_scheduler=True):
        world = cls(script_of)
        await world.store.save_definition(
            StoredDefinition(digest="d", workflow="wf", text="graph")
        )
        world.run = await world.store.create_run(NewRun(workflow="wf", definition="d"))
        world.batches = []
        world.lease = await world.store.claim_run(
            RunClaim(run=world.run.number, process=PROCESS, lease_seconds=1_000.0)
        )
        if has_scheduler:
            world.store.attend(world.run.name, world.take)
        return world

    def take(self, reports):
        return self.write(reports)

    async def write(self, reports):
        await self.clock.sleep(COMMIT_SECONDS)
        await self.store.report(reports)
        self.batches.append(len(reports))
        return True

    async def worker(self, **settings):
        return await super().worker(**{"near": True, "queues": (self.run.queue,)} | settings)

    async def submit_run(self, *names, **fields):
        given = {"queue": self.run.queue, "run": self.run.number, "command": "true"} | fields
        tasks = [NewTask(id=self.id_of(name), **given) for name in names]
        number = self.lease.batch + 1
        batch = RunBatch(number=number, at=Instant(0.0), status="running", submissions=tasks)
        await self.store.write_batch(self.lease, batch)
        self.lease = replace(self.lease, batch=number)
        await self.passes(0.0)

    def id_of(self, name):
        return TaskId(f"{self.run.name}/1/{name}/1")

    @property
    def running(self):
        """The names of the tasks whose jobs run."""
        return [job.assignment.task.id.split("/")[-2] for job in self.host.jobs if job.running]

    async def leases(self):
        return max(view.leases for view in await self.store.workers())

    async def most_leases(self, seconds=1.0):
        """The most that a worker had in this time, looked at each millisecond."""
        most = 0
        for _ in range(round(seconds * 1_000)):
            await self.passes(0.001)
            most = max(most, await self.leases())
        return most


def short(count):
    return [f"short{n:03}" for n in range(count)]


async def with_long_jobs_waiting(**settings):
    """A world in which the worker has claimed ten long tasks, of which two run."""
    world = await RunWorld.made()
    one = await world.worker(slots=2, **settings)
    await world.submit_run(*short(20), *(f"long{n}" for n in range(10)))
    while world.running != ["long0", "long1"]:
        await world.passes(0.001)
    await world.passes(0.02)
    assert await world.leases() > 2
    return world, one


@in_virtual_time
async def test_a_slot_begins_the_next_short_job_while_ends_are_stored_several_at_once():
    world = await RunWorld.made()
    await world.worker(slots=4)
    await world.submit_run(*short(100))
    for _ in range(100):
        await world.passes(0.001)
    idle = 0
    while len(world.host.jobs) < 100:
        idle += len(world.running) < 4
        assert len(world.running) <= 4
        assert await world.leases() <= 12
        await world.passes(0.001)
    assert idle == 0
    await world.passes(1.0)
    assert {await world.status(world.id_of(name)) for name in short(100)} == {"succeeded"}
    assert len(world.batches) < 30


@in_virtual_time
async def test_an_end_is_stored_soon_whoever_else_waits():
    world = await RunWorld.made()
    await world.worker(slots=2)
    await world.submit_run(*short(20))
    ends = {}
    while len(ends) < 20:
        await world.passes(0.001)
        for job in world.host.jobs:
            if not job.running and await world.status(job.assignment.task.id) == "succeeded":
                ends.setdefault(job, world.clock.monotonic() - job.ended_at)
    assert max(ends.values()) < 0.02 + 2 * COMMIT_SECONDS + 0.002


@in_virtual_time
async def test_what_waits_behind_longer_jobs_is_given_back_for_others_to_take():
    world, _ = await with_long_jobs_waiting()
    await world.passes(0.3)
    assert await world.leases() == 2
    assert await world.story(world.id_of("long2")) == ["claim", "yield"]
    await world.worker(name="other", slots=8)
    assert sorted(world.running) == sorted(f"long{n}" for n in range(10))
    for job in world.host.jobs:
        job.ends()
    await world.passes(1.0)
    tasks = [await world.task(world.id_of(f"long{n}")) for n in range(10)]
    assert {(task.status.value, task.lapses, task.failures) for task in tasks} == {
        ("succeeded", 0, 0)
    }


@in_virtual_time
async def test_after_that_a_worker_has_as_many_leases_as_slots_until_jobs_are_short_again():
    world, _ = await with_long_jobs_waiting()
    await world.passes(0.3)
    for name in ("long0", "long1", "long2"):
        world.job(world.id_of(name)).ends()
        assert await world.most_leases(0.1) == 2
    await world.submit_run(*short(40)[20:], priority=99)
    world.job(world.id_of("long3")).ends()
    world.job(world.id_of("long4")).ends()
    assert await world.most_leases() > 2


@in_virtual_time
async def test_a_task_that_is_cancelled_before_it_begins_never_does():
    world, _ = await with_long_jobs_waiting()
    await world.store.cancel([world.id_of("long2")])
    await world.passes(0.05)
    assert await world.status(world.id_of("long2")) == "cancelled"
    world.job(world.id_of("long0")).ends()
    await world.passes(0.0)
    assert world.running == ["long1", "long3"]


@pytest.mark.parametrize("mode", [OnStop.DRAIN, OnStop.YIELD, OnStop.LEAVE])
@in_virtual_time
async def test_a_worker_that_stops_gives_back_what_it_has_not_begun(mode):
    world, one = await with_long_jobs_waiting()
    one.worker.ask_stop(mode)
    await world.passes(0.06)
    tasks = [await world.task(world.id_of(f"long{n}")) for n in range(2, 10)]
    assert {task.status.value for task in tasks} == {"ready"}
    for job in world.host.jobs:
        job.ends()
    await one.running
    assert len(world.host.jobs) == 22


@in_virtual_time
async def test_what_a_killed_worker_had_not_begun_is_run_by_its_successor_without_a_lapse():
    world, one = await with_long_jobs_waiting()
    await one.crashes()
    await world.worker(name="next", slots=10)
    await world.passes(1.0)
    assert sorted(set(world.running)) == sorted(f"long{n}" for n in range(10))
    assert {(await world.task(world.id_of(f"long{n}"))).lapses for n in range(10)} == {0}
    assert len(world.host.jobs) == 30  # none began twice


@in_virtual_time
async def test_a_worker_that_cannot_start_jobs_just_now_gives_back_what_waits():
    world, _ = await with_long_jobs_waiting()
    tried = []

    def unable(task):
        tried.append(task)
        return Script(host_error="No space left on device")

    world.host.script = unable
    world.job(world.id_of("long0")).ends()
    await world.passes(0.03)
    assert (world.running, len(tried)) == (["long1"], 1)
    assert await world.leases() == 1


HANDLER = {"command": None, "handler": "work"}
ASKS = {"resources": Resources(memory_bytes=1)}
QUEUES = {
    "limited queue": QueueSettings(limits=(Limit(concurrency_max=50),)),
    "fenced queue": QueueSettings(fence_kill=True),
}


@pytest.mark.parametrize(
    "reason", ["no scheduler", "handlers", "tied jobs", "one slot", "resources", *QUEUES]
)
@in_virtual_time
async def test_as_many_tasks_as_slots_are_claimed_where_more_would_harm_somebody(reason):
    world = await RunWorld.made(has_scheduler=reason != "no scheduler")
    if settings := QUEUES.get(reason):
        await world.store.configure_queue(world.run.queue, settings)
    slots = 1 if reason == "one slot" else 3
    capacity = Resources(memory_bytes=100)
    await world.worker(slots=slots, tie_jobs=reason == "tied jobs", capacity=capacity)
    what = {"handlers": HANDLER, "resources": ASKS}.get(reason, {})
    await world.submit_run(*short(60), **what)
    assert await world.most_leases() == slots
    assert len(world.host.jobs) == 60


@in_virtual_time
async def test_a_task_whose_lease_is_over_before_a_slot_is_free_is_not_begun():
    world, one = await with_long_jobs_waiting(lease_seconds=0.12)
    one.store.out_of_reach = True
    await world.passes(0.16)
    world.job(world.id_of("long0")).ends()
    await world.passes(0.0)
    assert world.running == ["long1"]


class PromptRunner(ScriptedRunner):
    """Starts no bad job, and says so at once."""

    def start_now(self, task, _assign, _reports, _on_end):
        if "bad" in task.id:
            raise OSError("it is bad")


@in_virtual_time
async def test_hundreds_that_cannot_be_started_fail_one_after_the_other():
    world = await RunWorld.made()
    world.host.runner = lambda: PromptRunner(world.host)
    await world.worker(slots=300)
    bad = [f"bad{n:03}" for n in range(600)]
    await world.submit_run(*short(1_000), *bad)
    await world.passes(5.0)
    for name in bad:
        [attempt] = await world.store.attempts(world.id_of(name))
        assert attempt.error.description == "it is bad"


@in_virtual_time
async def test_a_queue_that_becomes_limited_has_no_more_tasks_claimed_ahead():
    world = await RunWorld.made()
    await world.worker(slots=3)
    await world.submit_run(*short(200))
    assert await world.most_leases(0.1) > 3
    limits = QUEUES["limited queue"]
    await world.store.configure_queue(world.run.queue, limits)
    await world.passes(0.1)
    assert await world.most_leases(0.2) == 3


@in_virtual_time
async def test_nothing_of_other_queues_is_claimed_ahead():
    world = await RunWorld.made()
    await world.worker(slots=3, queues=(world.run.queue, "other"))
    await world.submit_run(*short(50))
    assert await world.most_leases(0.05) > 3
    await world.passes(1.0)
    await world.submit(*(f"long{n}" for n in range(20)), queue="other")
    assert await world.most_leases(0.1) == 3


@in_virtual_time
async def test_handlers_that_come_after_short_jobs_cost_no_lapse_when_their_worker_dies():
    world = await RunWorld.made()
    one = await world.worker(slots=2)
    await world.submit_run(*short(20))
    handlers = [f"long{n}" for n in range(10)]
    await world.submit_run(*handlers, **HANDLER)
    while world.running != ["long0", "long1"]:
        await world.passes(0.001)
    await world.passes(0.02)
    assert await world.leases() == 2
    await one.crashes()
    monitor = asyncio.create_task(world.monitor(interval_seconds=1.0).run())
    await world.worker(name="next", slots=10)
    await world.passes(200.0)
    lapses = [(await world.task(world.id_of(name))).lapses for name in handlers]
    monitor.cancel()
    assert lapses == [1, 1, *(0 for _ in handlers[2:])]


@in_virtual_time
async def test_a_queue_that_becomes_fenced_has_no_more_tasks_claimed_ahead():
    world = await RunWorld.made()
    await world.worker(slots=2)
    await world.submit_run(*short(400))
    assert await world.most_leases(0.1) > 2
    await world.store.configure_queue(world.run.queue, QUEUES["fenced queue"])
    await world.passes(0.1)
    assert await world.most_leases(0.2) == 2


@in_virtual_time
async def test_jobs_whose_start_is_heard_of_late_are_not_short():
    world = await RunWorld.made()
    world.host.script = lambda _task: Script(
        prepare_seconds=0.999, seconds=1.0
    )  # as with Slurm
    await world.worker(slots=4)
    await world.submit_run(*short(60))
    assert await world.most_leases(5.0) == 4


@in_virtual_time
async def test_beside_long_jobs_as_few_short_ones_are_claimed_ahead_as_begin_soon():
    world = await RunWorld.made()
    await world.worker(slots=40)
    await world.submit_run(*(f"long{n:02}" for n in range(39)), priority=90)
    await world.submit_run(*short(300))
    await world.passes(8.0)
    stories = [await world.story(world.id_of(name)) for name in short(300)]
    assert sum(story.count("yield") for story in stories) < 10
    assert {await world.status(world.id_of(name)) for name in short(300)} == {"succeeded"}
