"""What a job said and how it ended reaches the store: in order, once, and whatever happens."""

import asyncio
import threading

import pytest

from tests.kit.scripted_runner import Script, failed
from tests.kit.small_world import SmallWorld
from tests.kit.virtual_time import in_virtual_time
from tidewheel.core.queue.requests import End, Ending, UsageSample
from tidewheel.core.queue.task import TaskError, TaskId
from tidewheel.errors import PayloadTooLarge
from tidewheel.worker.reporter import START_HELD_SECONDS


async def outputs(world, task_id):
    return [(one.number, one.text, one.output) for one in await world.store.outputs(task_id)]


@pytest.mark.req("R002-48", "R002-49", "R003-48")
@in_virtual_time
async def test_the_end_of_a_job_is_the_end_of_its_task():
    world = SmallWorld()
    await world.worker()
    await world.submit("a")
    await world.passes(5.0)
    world.job("a").ends(End(ending=Ending.SUCCEEDED, exit_status=0, metrics='{"rows": 3}'))
    await world.passes(0.0)
    task = await world.task("a")
    assert (task.status, task.progress) == ("succeeded", 1.0)
    [attempt] = await world.store.attempts(TaskId("a"))
    assert (attempt.exit_status, attempt.metrics) == (0, '{"rows": 3}')
    assert (attempt.started_at, attempt.ended_at) == (0.0, 5.0)


@in_virtual_time
async def test_a_failed_job_is_tried_again_as_often_as_its_task_says():
    world = SmallWorld(lambda _: Script(seconds=0.0, end=failed()))
    await world.worker()
    await world.submit("a", max_retries=2)
    assert await world.story("a") == ["claim", "retry", "claim", "retry", "claim", "fail"]


@pytest.mark.req("R002-50", "R002-51")
@in_virtual_time
async def test_an_abort_is_not_tried_again():
    gone = End(ending=Ending.ABORTED, error=TaskError(code="gone", description="no input"))
    world = SmallWorld(lambda _: Script(seconds=0.0, end=gone))
    await world.worker()
    await world.submit("a", max_retries=5)
    assert await world.story("a") == ["claim", "abort"]


@in_virtual_time
async def test_messages_are_stored_in_the_order_in_which_they_were_said():
    world = SmallWorld()
    one = await world.worker()
    one.store.delays("report", before=1.0)
    await world.submit("a")
    for n in range(1, 2501):  # more than fit into one report
        world.job("a").says(f"line {n}", "half" if n == 1250 else None)
    world.job("a").ends()
    await world.passes(10.0)
    stored = await outputs(world, TaskId("a"))
    assert stored == [(n, f"line {n}", "half" if n == 1250 else None) for n in range(1, 2501)]
    assert await world.status("a") == "succeeded"


@in_virtual_time
async def test_what_a_job_says_after_its_end_is_not_heard():
    world = SmallWorld()
    await world.worker()
    await world.submit("a")
    world.job("a").says("before")
    world.job("a").ends()
    await world.passes(0.0)
    world.job("a").says("after")
    await world.passes(10.0)
    assert await outputs(world, TaskId("a")) == [(1, "before", None)]
    assert world.events("report.refused") == []


@in_virtual_time
async def test_a_job_may_speak_from_many_threads():
    world = SmallWorld()
    await world.worker()
    await world.submit("a")

    def speak(name):
        for n in range(200):
            world.job("a").says(f"{name} {n}")

    threads = [threading.Thread(target=speak, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    world.job("a").ends()
    await world.passes(0.0)
    stored = await outputs(world, TaskId("a"))
    assert [number for number, _, _ in stored] == list(range(1, 801))
    for name in "abcd":
        own = [text for _, text, _ in stored if text.startswith(name)]
        assert own == [f"{name} {n}" for n in range(200)]


@pytest.mark.req("R003-54", "R003-57")
@in_virtual_time
async def test_usage_of_a_job_is_stored():
    world = SmallWorld()
    await world.worker()
    await world.submit("a")
    world.job("a").uses(UsageSample(memory_bytes=1, cpu_percent=50.0))
    await world.passes(1.0)
    world.job("a").uses(UsageSample(memory_bytes=2, gpu_percent=7.0))
    world.job("a").ends()
    await world.passes(0.0)
    series = await world.store.usage(TaskId("a"))
    assert [point.sample.memory_bytes for point in series] == [1, 2]


@in_virtual_time
async def test_start_and_end_of_a_short_job_are_one_report_and_each_has_its_own_time():
    world = SmallWorld(lambda _: Script(seconds=0.02))
    one = await world.worker()
    await world.submit("a")
    await world.passes(1.0)
    assert one.store.calls["report"] == 1
    [attempt] = await world.store.attempts(TaskId("a"))
    assert (attempt.started_at, attempt.ended_at) == (pytest.approx(0.0), pytest.approx(0.02))


@in_virtual_time
async def test_a_longer_job_is_seen_to_have_started_soon_and_when_it_did():
    world = SmallWorld()
    one = await world.worker()
    await world.submit("a")
    await world.passes(START_HELD_SECONDS / 2)
    assert one.store.calls["report"] == 0
    await world.passes(START_HELD_SECONDS)
    assert one.store.calls["report"] == 1
    [attempt] = await world.store.attempts(TaskId("a"))
    assert (attempt.started_at, attempt.ended_at) == (pytest.approx(0.0), None)


@in_virtual_time
async def test_a_call_of_a_job_is_answered_after_its_start_and_its_messages_are_stored():
    world = SmallWorld()
    one = await world.worker()
    one.store.delays("report", before=1.0)
    await world.submit("a")
    await world.passes(0.0)
    assert one.store.calls["report"] == 0
    call = asyncio.ensure_future(world.job("a").asks())
    await world.passes(0.5)
    assert not call.done()
    await world.passes(0.5)  # the start waited for nothing, and the call for the start
    assert call.done() and one.store.calls["report"] == 1
    assert await world.status("a") == "running"
    world.job("a").says("half", "half")
    call = asyncio.ensure_future(world.job("a").asks())
    await world.passes(0.5)
    assert not call.done()
    await world.passes(0.5)
    assert call.done() and await outputs(world, TaskId("a")) == [(1, "half", "half")]
    call = asyncio.ensure_future(world.job("a").asks())
    await world.passes(0.0)
    assert call.done() and one.store.calls["report"] == 2  # there was nothing to report


@in_virtual_time
async def test_a_message_does_not_wait_with_the_start():
    world = SmallWorld(lambda _: Script(messages=(("ready", "ready"),)))
    await world.worker()
    await world.submit("a")
    await world.passes(0.0)
    assert await outputs(world, TaskId("a")) == [(1, "ready", "ready")]


@in_virtual_time
async def test_an_idle_worker_reports_at_once_and_a_busy_one_in_batches():
    world = SmallWorld()
    one = await world.worker(slots=100)
    one.store.delays("report", before=1.0)
    await world.submit(*(f"t{n}" for n in range(100)))
    await world.passes(1.0 + START_HELD_SECONDS)
    assert one.store.calls["report"] == 1  # all have started
    world.job("t0").ends()
    await world.passes(0.0)  # this one is on its way now
    for n in range(1, 100):
        world.job(f"t{n}").ends()
    await world.passes(1.0)
    assert await world.status("t0") == "succeeded"
    assert await world.status("t1") == "running"
    await world.passes(1.0)
    assert one.store.calls["report"] == 3
    assert {await world.status(f"t{n}") for n in range(100)} == {"succeeded"}


@in_virtual_time
async def test_an_end_is_reported_until_the_store_has_heard_it():
    world = SmallWorld()
    one = await world.worker()
    await world.submit("a")
    one.store.loses_requests("report", 20)
    world.job("a").says("last words", "words")
    world.job("a").ends()
    await world.passes(100.0)
    assert await world.story("a") == ["claim", "succeed"]
    assert await outputs(world, TaskId("a")) == [(1, "last words", "words")]


@in_virtual_time
async def test_a_report_whose_answer_got_lost_counts_once():
    world = SmallWorld()
    one = await world.worker()
    await world.submit("a", max_retries=3)
    one.store.loses_answers("report", 2)
    world.job("a").says("words")
    await world.passes(10.0)
    one.store.loses_answers("report", 2)
    world.job("a").ends(failed())
    await world.passes(10.0)
    assert await world.story("a") == ["claim", "retry", "claim"]
    assert await outputs(world, TaskId("a")) == [(1, "words", None)]
    assert world.job("a").running


@pytest.mark.req("R002-52", "R003-59")
@in_virtual_time
async def test_a_superseded_job_is_killed_and_what_it_says_changes_nothing():
    world = SmallWorld()
    late = await world.worker(lease_seconds=10.0)
    await world.submit("a")
    stale = world.job("a")
    late.store.out_of_reach = True
    await world.monitor().start()
    await world.worker()
    await world.passes(15.0)
    assert (await world.task("a")).attempt == 2
    stale.says("I am still here", "done")
    late.store.out_of_reach = False
    await world.passes(10.0)
    assert stale.graces == [0.0]
    assert not stale.running
    assert await outputs(world, TaskId("a")) == []
    assert await world.story("a") == ["claim", "lapse", "claim"]
    assert world.job("a").running


@in_virtual_time
async def test_a_refused_report_is_enough_to_know_that_a_job_was_superseded():
    world = SmallWorld()
    late = await world.worker(lease_seconds=10.0)
    await world.submit("a")
    stale = world.job("a")
    late.store.delays("heartbeat", before=1e9)
    await world.monitor().start()
    await world.worker()
    await world.passes(15.0)
    assert (await world.task("a")).attempt == 2
    stale.says("I am still here")
    await world.passes(0.0)
    assert stale.graces == [0.0]
    assert await outputs(world, TaskId("a")) == []


@in_virtual_time
async def test_words_and_end_that_are_refused_together_are_a_failure():
    world = SmallWorld()
    one = await world.worker()
    one.store.delays("report", before=1.0)
    await world.submit("a")
    one.store.refuses_messages("a", PayloadTooLarge("a message", 10, 1))
    world.job("a").says("far too much", "all")
    world.job("a").ends()
    await world.passes(10.0)
    assert await world.story("a") == ["claim", "fail"]


@pytest.mark.req("R002-64", "R002-65")
@in_virtual_time
async def test_an_end_after_the_cancellation_leaves_the_task_cancelled():
    world = SmallWorld()
    one = await world.worker()
    await world.submit("a")
    one.store.delays("cancelling", before=5.0)
    await world.store.cancel([TaskId("a")])
    world.job("a").ends()
    await world.passes(1.0)
    assert await world.status("a") == "cancelled"
    [attempt] = await world.store.attempts(TaskId("a"))
    assert attempt.exit_status == 0


@in_virtual_time
async def test_a_job_whose_words_the_store_refuses_has_failed():
    world = SmallWorld()
    one = await world.worker()
    await world.submit("a", "b")
    one.store.refuses_messages("a", PayloadTooLarge("a message", 10, 1))
    world.job("a").says("far too much", "all")
    await world.passes(1.0)
    one.store.refuses_messages("a", None)
    world.job("a").says("little")
    await world.passes(1.0)
    world.job("a").ends()
    world.job("b").ends()
    await world.passes(1.0)
    assert await outputs(world, TaskId("a")) == [(1, "little", None)]
    assert await world.status("a") == "failed"
    assert (await world.task("a")).errors[0].code == "too_large"
    assert await world.status("b") == "succeeded"


@in_virtual_time
async def test_a_runner_that_gives_no_answer_costs_only_that_attempt():
    world = SmallWorld()
    await world.worker(slots=1)
    await world.submit("a", "b")
    world.job("a").breaks(RuntimeError("lost my files"))
    await world.passes(0.0)
    assert (await world.task("a")).errors[0].code == "runner"
    assert world.job("b").running
