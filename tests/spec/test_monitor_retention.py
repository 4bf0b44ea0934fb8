"""Seed 002, "Retention": ended tasks are removed after their time, and written down before."""

import json
from dataclasses import replace

import pytest

from tests.kit.faulty_store import FaultyStore
from tests.kit.scripted_runner import Script
from tests.kit.small_world import SmallWorld
from tests.kit.virtual_time import in_virtual_time
from tidewheel.core.operator.definition import NewRun, StoredDefinition
from tidewheel.core.operator.requests import RunBatch, RunClaim
from tidewheel.core.queue.requests import HostProcess, KeysetPage, TaskFilter, UsageSample
from tidewheel.core.queue.task import Instant, Need, NewTask, TaskId
from tidewheel.errors import Duplicate, NotFound
from tidewheel.services.paths import (
    attempt_directory,
    run_directory,
    take_folder,
    tasks_directory,
)

HOUR = 3_600.0
DAY = 24 * HOUR


async def ids(world):
    return sorted(
        one.id for one in await world.store.list_tasks(TaskFilter(), KeysetPage(count=1000))
    )


def lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def at_once(_task):
    return Script(seconds=0.0)


async def ended(world, task_id):
    """A task that was run by a worker that is gone."""
    await world.submit(task_id)
    one = await world.worker()
    assert await world.status(task_id) == "succeeded"
    one.worker.ask_stop()
    await one.running


@pytest.mark.req("R002-74", "R002-75")
@in_virtual_time
async def test_ended_tasks_are_removed_after_their_time_and_no_others():
    world = SmallWorld(at_once)
    await world.submit("waiting", armed=False)
    await world.submit("ready", queue="nobody's")
    await ended(world, "old")
    await world.passes(DAY)
    await ended(world, "young")
    await world.monitor(retention_seconds=1.5 * DAY, interval_seconds=60.0).start()
    await world.passes(0.6 * DAY)
    assert await ids(world) == ["ready", "waiting", "young"]
    with pytest.raises(NotFound):
        await world.task("old")


@pytest.mark.req("R002-75")
@in_virtual_time
async def test_a_task_that_a_waiting_one_depends_on_is_kept():
    world = SmallWorld(at_once)
    await ended(world, "parent")
    await world.submit("other", queue="nobody's")
    await world.submit(
        "child", needs=(Need(task_id=TaskId("parent")), Need(task_id=TaskId("other")))
    )
    await world.monitor(retention_seconds=10.0).start()
    await world.passes(1000.0)
    assert await ids(world) == ["child", "other", "parent"]


@pytest.mark.slow
@pytest.mark.req("R002-76")
@in_virtual_time
async def test_without_retention_everything_is_kept():
    world = SmallWorld(at_once)
    await ended(world, "a")
    await world.monitor(retention_seconds=None, interval_seconds=3600.0).start()
    await world.passes(40 * DAY)  # more than what is kept where nobody says how long
    assert await ids(world) == ["a"]


@pytest.mark.req("R002-77")
@in_virtual_time
async def test_many_tasks_are_removed_in_batches_between_which_leases_are_watched():
    world = SmallWorld(at_once)
    await world.worker(slots=50)
    await world.submit(*(f"t{n}" for n in range(95)))
    way = FaultyStore(world.store, world.clock)
    await world.passes(100.0)
    monitor = world.monitor(
        store=way.as_store(),
        retention_seconds=50.0,
        retention_interval_seconds=10.0,
        deleted_per_batch_max=10,
    )
    await monitor.start()
    await world.passes(5.0)
    assert await ids(world) == []
    assert way.calls["delete_tasks"] == 10
    assert way.calls["take_back_lapsed_leases"] >= 10


@pytest.mark.req("R002-78")
@in_virtual_time
async def test_a_task_is_written_down_whole_before_it_is_removed(tmp_path):
    world = SmallWorld()
    await world.worker()
    await world.submit("a", spec='{"x":  1.0}', tag="nightly")
    await world.submit("b", needs=(Need(task_id=TaskId("a")),), queue="nobody's")
    world.job("a").says("half way", "half")
    world.job("a").uses(UsageSample(memory_bytes=17))
    world.job("a").ends()
    await world.passes(0.0)
    await world.store.cancel([TaskId("b")])
    monitor = world.monitor(retention_seconds=10.0, export_directory=tmp_path / "export")
    await monitor.start()
    await world.passes(61.0)
    assert await ids(world) == []
    [path] = (tmp_path / "export").iterdir()
    assert path.name == "tasks-1970-01-01.jsonl"
    assert path.stat().st_mode & 0o777 == 0o600
    a, b = sorted(lines(path), key=lambda line: line["task"]["id"])
    assert (a["task"]["spec"], a["task"]["tag"]) == ('{"x":  1.0}', "nightly")
    assert [one["signal"] for one in a["history"]] == [None, "claim", "succeed"]
    assert a["attempts"][0]["exit_status"] == 0
    assert [(one["text"], one["output"]) for one in a["outputs"]] == [("half way", "half")]
    assert a["usage"][0]["sample"]["memory_bytes"] == 17
    assert a["edges"][0]["child"] == "b"
    assert b["task"]["status"] == "cancelled"


@pytest.mark.slow
@in_virtual_time
async def test_a_history_longer_than_a_page_is_written_down_whole(tmp_path):
    world = SmallWorld()
    await world.submit("a", max_lapses=10_000)
    await world.monitor(retention_seconds=None).start()
    for _ in range(600):
        one = await world.worker(lease_seconds=0.5)
        one.worker.ask_stop()
        await one.running
    await world.store.cancel([TaskId("a")])
    monitor = world.monitor(retention_seconds=1.0, export_directory=tmp_path)
    await world.passes(2.0)
    await monitor.run_once()
    [path] = tmp_path.iterdir()
    [line] = lines(path)
    assert [one["signal"] for one in line["history"]] == [
        None,
        *["claim", "yield"] * 600,
        "cancel",
    ]


@pytest.mark.slow
@in_virtual_time
async def test_each_day_has_its_file_and_files_only_grow(tmp_path):
    world = SmallWorld(at_once)
    monitor = world.monitor(
        retention_seconds=10.0, interval_seconds=60.0, export_directory=tmp_path
    )
    await monitor.start()
    await ended(world, "a")
    await world.passes(DAY / 2)
    await ended(world, "b")
    await world.passes(DAY)
    await ended(world, "c")
    await world.passes(DAY / 4)
    written = {
        path.name: [line["task"]["id"] for line in lines(path)] for path in tmp_path.iterdir()
    }
    assert written == {"tasks-1970-01-01.jsonl": ["a", "b"], "tasks-1970-01-02.jsonl": ["c"]}


@in_virtual_time
async def test_what_cannot_be_written_down_is_not_removed_and_leases_are_watched(tmp_path):
    (tmp_path / "export").write_text("a file where a directory should be")
    world = SmallWorld(lambda task: Script(seconds=0.0 if task.id == "a" else None))
    one = await world.worker()
    await world.submit("a", "b")
    await one.crashes()
    await world.monitor(retention_seconds=10.0, export_directory=tmp_path / "export").start()
    await world.passes(1000.0)
    assert await ids(world) == ["a", "b"]
    assert await world.status("b") == "ready"
    assert world.events("tasks.not_exported")


@in_virtual_time
async def test_a_line_that_a_crash_tore_apart_spoils_no_other(tmp_path):
    world = SmallWorld(at_once)
    await world.worker()
    await world.submit("a")
    path = tmp_path / "tasks-1970-01-01.jsonl"
    path.write_bytes(b'{"task": {"id": "to')
    await world.monitor(retention_seconds=10.0, export_directory=tmp_path).start()
    await world.passes(100.0)
    torn, whole = path.read_text("utf-8").splitlines()
    assert torn == '{"task": {"id": "to'
    assert json.loads(whole)["task"]["id"] == "a"


@in_virtual_time
async def test_a_task_is_not_removed_when_the_store_fails_before_it_was_written_down(tmp_path):
    world = SmallWorld(at_once)
    await world.worker()
    await world.submit("a")
    way = FaultyStore(world.store, world.clock)
    await world.monitor(
        store=way.as_store(), retention_seconds=10.0, export_directory=tmp_path
    ).start()
    way.loses_requests("history", 1)
    way.loses_answers("delete_tasks", 1)
    await world.passes(1000.0)
    assert await ids(world) == []
    written = [line["task"]["id"] for path in tmp_path.iterdir() for line in lines(path)]
    assert written == ["a"]


async def known_workers(world):
    return [one.id for one in await world.store.workers(live_only=False)]


@pytest.mark.slow
@in_virtual_time
async def test_workers_that_are_long_gone_are_forgotten_and_living_ones_are_not():
    world = SmallWorld(at_once)
    await ended(world, "a")  # worker-1 stopped
    crashed = await world.worker()
    await crashed.crashes()
    await world.worker()
    await world.monitor(workers_retention_seconds=HOUR, interval_seconds=30.0).start()
    await world.passes(0.9 * HOUR)
    assert await known_workers(world) == ["worker-3", "worker-2", "worker-1"]
    await world.passes(0.2 * HOUR)
    assert await known_workers(world) == ["worker-3"]
    assert sum(one.facts["count"] for one in world.events("workers.forgotten")) == 2


@pytest.mark.slow
@in_virtual_time
async def test_after_an_outage_a_monitor_forgets_nobody_who_may_yet_be_heard():
    world = SmallWorld()
    one = await world.worker()
    other = FaultyStore(world.store, world.clock)
    await world.monitor(
        store=other.as_store(), workers_retention_seconds=HOUR, interval_seconds=10.0
    ).start()
    one.store.out_of_reach = other.out_of_reach = True
    await world.passes(2 * HOUR)
    other.out_of_reach = False
    await world.passes(30.0)
    one.store.out_of_reach = False
    await world.passes(600.0)
    assert await known_workers(world) == ["worker-1"]


@in_virtual_time
async def test_workers_are_kept_where_nobody_wants_them_forgotten_and_removed_in_batches():
    world = SmallWorld()
    for _ in range(7):
        await (await world.worker()).crashes()
    await world.passes(30 * DAY)
    keeping = world.monitor(workers_retention_seconds=None, interval_seconds=30.0)
    await keeping.start()
    await world.passes(600.0)
    await keeping.stop()
    assert len(await known_workers(world)) == 7
    other = FaultyStore(world.store, world.clock)
    store = other.as_store()
    await world.monitor(store=store, deleted_per_batch_max=3, interval_seconds=30.0).start()
    await world.passes(600.0)
    assert await known_workers(world) == []
    assert [one.facts["count"] for one in world.events("workers.forgotten")] == [3, 3, 1]


async def run_of(world, name, tasks=0):
    """A run that was let go, and its submissions, which nobody took."""
    store = world.store
    await store.save_definition(StoredDefinition(digest="d", workflow="wf"))
    run = await store.create_run(NewRun(workflow="wf", definition="d", name=name))
    process = HostProcess(host="h", boot_id="b", pid=1, started=0.0)
    lease = await store.claim_run(RunClaim(run=run.number, process=process))
    submissions = [
        NewTask(id=TaskId(f"{name}/1/n{k}/1"), run=run.number, queue=run.queue, command="true")
        for k in range(tasks)
    ]
    done = RunBatch(number=1, at=Instant(0.0), status="completed", submissions=submissions)
    await store.write_batch(lease, replace(done, ends=True))
    return run


@pytest.mark.slow
@in_virtual_time
async def test_a_run_is_removed_as_a_whole_part_by_part_and_no_other():
    world = SmallWorld(at_once)
    await run_of(world, "old", tasks=2_500)
    await world.passes(DAY)
    await run_of(world, "young", tasks=1)
    other = FaultyStore(world.store, world.clock)
    store = other.as_store()
    monitor = world.monitor(store=store, retention_seconds=1.5 * DAY, interval_seconds=60.0)
    await monitor.start()
    await world.passes(0.6 * DAY)
    assert [run.name for run in await world.store.runs()] == ["young"]
    assert await ids(world) == ["young/1/n0/1"]
    assert other.calls["delete_run_part"] == 3
    assert [one.facts for one in world.events("run.deleted")] == [{"run": 1}]


@in_virtual_time
async def test_a_deletion_of_a_run_that_was_interrupted_is_gone_on_with():
    world = SmallWorld(at_once)
    run = await run_of(world, "half", tasks=2_500)
    assert not await world.store.delete_run_part(run.number)
    assert await world.store.runs() == []
    with pytest.raises(Duplicate):
        await run_of(world, "half")
    await world.monitor(retention_seconds=1.5 * DAY).start()
    await world.passes(120.0)
    assert await ids(world) == []
    assert (await run_of(world, "half")).number == 2


@in_virtual_time
async def test_runs_and_definitions_are_kept_for_ever_where_everything_is():
    world = SmallWorld(at_once)
    await run_of(world, "old")
    await world.store.save_definition(StoredDefinition(digest="unused", workflow="wf"))
    await world.monitor(retention_seconds=None, interval_seconds=60.0).start()
    await world.passes(DAY)
    assert len(await world.store.runs()) == 1
    assert await world.store.definition("unused")


@in_virtual_time
async def test_a_definition_goes_after_its_last_run_and_what_was_just_saved_stays():
    world = SmallWorld(at_once)
    await run_of(world, "old")
    await world.monitor(retention_seconds=10.0, interval_seconds=60.0).start()
    await world.passes(1_800.0)
    assert await world.store.runs() == []
    assert await world.store.definition("d")  # a run that is begun now would need it
    await world.passes(1_900.0)
    with pytest.raises(NotFound):
        await world.store.definition("d")
    assert [one.facts for one in world.events("definitions.forgotten")] == [{"count": 1}]


@in_virtual_time
async def test_with_a_run_and_a_task_their_files_go_and_those_of_others_stay(tmp_path):
    world = SmallWorld(at_once)
    runs = [await run_of(world, name) for name in ("wf/run1", "wf/run2")]
    await ended(world, "old")
    for run in runs:
        take_folder(run, tmp_path)
    tasks = tasks_directory(tmp_path, await world.store.store_id())
    old = (await world.task("old")).seq
    for seq in (old, old + 1):
        attempt_directory(tasks, seq, 1).mkdir(parents=True)
    await world.passes(DAY)
    await run_of(world, "young")
    (run_directory(tmp_path, "young") / "log").mkdir(parents=True)
    monitor = world.monitor(home=tmp_path, retention_seconds=0.5 * DAY, interval_seconds=60.0)
    await monitor.start()
    await eventually(lambda: not run_directory(tmp_path, "wf").exists(), world)
    await eventually(lambda: not (tasks / str(old)).exists(), world)
    assert run_directory(tmp_path, "young").is_dir()
    assert (tasks / str(old + 1)).is_dir()
    await monitor.stop()


async def eventually(is_so, world):
    """Files are removed by a thread, which knows nothing of virtual time."""
    for _ in range(1_000):
        if is_so():
            return
        await world.passes(60.0)
    raise AssertionError("it never was so")
