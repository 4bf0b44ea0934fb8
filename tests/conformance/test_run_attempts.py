"""The attempts of a run with their times, what they asked for and what they used."""

from dataclasses import replace

from tests.conformance.run_steps import Driver
from tidewheel.core.queue.requests import Report, UsageSample
from tidewheel.core.queue.resources import Resources


def test_attempts_come_newest_first_with_what_they_asked_for_and_used(store, clock):
    driver, other = Driver.of(store), Driver.of(store)
    other.submit("b")
    wanted = Resources(cpu=2.0, memory_bytes=100, gpu=1)
    driver.write(submissions=[replace(driver.task("a"), resources=wanted), driver.task("z")])
    start = clock.now
    clock.advance(3)
    [held] = driver.take()
    store.report([Report(holder=held.holder, started=True)])
    used = (UsageSample(memory_bytes=10, cpu_percent=50.0), UsageSample(cpu_percent=150.0))
    gpu = UsageSample(memory_bytes=70, gpu_percent=40.0, gpu_memory_bytes=9)
    store.report([Report(holder=held.holder, usage=(*used, gpu))])
    clock.advance(5)
    store.finish(held, "yielded")
    waiting_z, again, first = store.run_attempts(driver.run.number, 100)
    assert (first.task_id, first.attempt, first.worker) == (held.id, 1, held.worker)
    assert (first.submitted_at, first.claimed_at) == (start, start + 3)
    assert (first.started_at, first.ended_at) == (start + 3, start + 8)
    assert first.ended_by == "yield"
    assert (first.cpu_asked, first.memory_asked_bytes, first.gpu_asked) == (2.0, 100, 1)
    assert (first.memory_used_bytes, first.cpu_used_percent) == (70, 100.0)
    assert (first.gpu_used_percent, first.gpu_memory_used_bytes) == (40.0, 9)
    for waits, attempt in ((waiting_z, 1), (again, 2)):
        assert (waits.attempt, waits.worker, waits.claimed_at) == (attempt, None, None)
        assert waits.memory_used_bytes is None
    assert store.run_attempts(driver.run.number, 1) == [waiting_z]


def test_an_attempt_that_runs_has_no_end(store):
    driver = Driver.of(store)
    driver.submit("a")
    [held] = driver.take()
    [live] = store.run_attempts(driver.run.number, 100)
    assert (live.worker, live.ended_at, live.ended_by) == (held.worker, None, None)
    assert live.memory_used_bytes is None


def test_each_attempt_has_what_it_used_itself(store, clock):
    driver = Driver.of(store)
    driver.submit("a", "b")
    for memory in (30, 20):
        for held in driver.take(2):
            more = memory + (5 if held.id.endswith("/b/1") else 0)
            used = [UsageSample(memory_bytes=more - n, cpu_percent=more) for n in (1, 0)]
            store.report([Report(holder=held.holder, started=True, usage=tuple(used))])
            if memory == 30:
                store.finish(held, "yielded")
        clock.advance(1)
    found = store.run_attempts(driver.run.number, 100)
    seen = [(one.task_id[-3:], one.attempt, one.memory_used_bytes) for one in found]
    assert seen == [("b/1", 2, 25), ("b/1", 1, 35), ("a/1", 2, 20), ("a/1", 1, 30)]
    assert [one.cpu_used_percent for one in found] == [25.0, 35.0, 20.0, 30.0]


def test_runs_are_listed_page_by_page(store):
    numbers = [Driver.of(store).run.number for _ in range(3)][::-1]
    assert [run.number for run in store.runs(count=2)] == numbers[:2]
    assert [run.number for run in store.runs(before=numbers[1])] == numbers[2:]
    assert store.runs(before=numbers[2]) == []


def test_submissions_are_found_by_their_ids_in_their_run_only(store):
    driver, other = Driver.of(store), Driver.of(store)
    driver.write(submissions=[driver.task("a"), driver.task("b"), driver.task("c")])
    other.submit("a")
    number = driver.run.number
    all_of_it = {one.task_id for one in store.submissions(number)}
    asked = sorted(all_of_it)[:2]
    found = store.submissions(number, ids=asked)
    assert {one.task_id for one in found} == set(asked)
    assert store.submissions(other.run.number, ids=asked) == []
    assert store.submissions(number, ids=["no such"]) == store.submissions(number, ids=[]) == []
