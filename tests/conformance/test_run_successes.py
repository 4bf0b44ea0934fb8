"""A batch writes the successes that it was decided upon, in one transaction (0049)."""

import pytest

from tests.conformance.run_steps import Driver, active
from tests.conformance.test_standing_claims import left_by
from tidewheel.core.cycling.calendar import Point
from tidewheel.core.operator.requests import Overtaken
from tidewheel.core.queue.requests import End, Ending, KeysetPage, Report, TaskFilter
from tidewheel.core.sched.persistence import DropTask

SUCCEEDED = End(ending=Ending.SUCCEEDED, exit_status=0)


def success(held, **fields):
    return Report(holder=held.holder, started=True, end=SUCCEEDED, **fields)


def ends(*names):
    """Tasks of point 1 leave the pool."""
    return [DropTask((Point(1), name)) for name in names]


def held_of(driver, *names):
    """The submissions of tasks, in the hands of one worker."""
    driver.submit(*names)
    return driver.take(len(names))


def seen(store, driver):
    tasks = [
        (task.id, task.status, task.owner)
        for task in store.list_tasks(TaskFilter(), KeysetPage())
    ]
    return store.run(driver.run.number), driver.changes(), driver.inbox(), tasks


def test_a_batch_and_the_successes_it_was_decided_upon_are_written_together(store):
    driver = Driver.of(store)
    a, b = held_of(driver, "a", "b")
    changes = [*ends("a", "b"), *active("c")]
    driver.write(
        job_reports=[success(a), success(b)], changes=changes, submissions=[driver.task("c")]
    )
    assert store.statuses(a.id, b.id) == ["succeeded"] * 2
    assert driver.inbox() == []  # the run was not told of what it knows
    assert [one.id for one in driver.take(2)] == [driver.task("c").id]
    for held in (a, b):
        [attempt] = store.attempts(held.id)
        assert (attempt.ended_by, attempt.exit_status) == ("succeed", 0)
        assert attempt.claimed_at <= attempt.started_at <= attempt.ended_at
        signals = [entry.signal for entry in store.history(held.id, count=10)]
        assert signals == [None, "claim", "succeed"]
    assert store.verify() == []


def returning(held, values):
    end = End(ending=Ending.SUCCEEDED, exit_status=0, values=values)
    return Report(holder=held.holder, started=True, end=end)


def test_values_are_kept_with_the_success_that_returns_them(store):
    driver = Driver.of(store)
    [a] = held_of(driver, "a")
    driver.write(job_reports=[returning(a, '{"n": 1}')], changes=ends("a"))
    assert (store.status(a.id), driver.inbox()) == ("succeeded", [])
    assert store.values_of([a.id]) == {a.id: '{"n": 1}'}
    assert store.verify() == []


@pytest.mark.parametrize("values", [' {"n": 1} ', "no object"])
def test_values_that_are_not_what_the_run_would_be_told_undo_the_batch(store, values):
    driver = Driver.of(store)
    [a] = held_of(driver, "a")
    before = seen(store, driver)
    with pytest.raises(Overtaken):
        driver.write(job_reports=[returning(a, values)], changes=ends("a"))
    assert seen(store, driver) == before


def test_a_start_that_a_batch_was_decided_upon_is_written_and_not_told(store):
    driver = Driver.of(store)
    [a] = held_of(driver, "a")
    driver.write(job_reports=[Report(holder=a.holder, started=True)])
    assert (store.status(a.id), driver.inbox()) == ("running", [])
    store.finish(a)
    [attempt] = store.attempts(a.id)
    assert attempt.started_at is not None
    late = Report(holder=a.holder, started=True)
    with pytest.raises(Overtaken):
        driver.write(job_reports=[late])


def test_other_ends_of_the_same_run_are_told_as_ever(store):
    driver = Driver.of(store)
    a, b = held_of(driver, "a", "b")
    store.finish(b)
    driver.write(job_reports=[success(a)], changes=ends("a"))
    assert [one.task_id for one in driver.inbox()] == [b.id]


@pytest.mark.parametrize("why", ["another attempt", "another worker", "cancelled", "ended"])
def test_a_success_that_is_not_so_undoes_the_batch(store, why):
    driver = Driver.of(store)
    good, bad = held_of(driver, "a", "b")
    match why:
        case "another attempt":
            bad = bad.again(7)
        case "another worker":
            bad = bad.by(store.hire())
        case "cancelled":
            store.cancel([bad.id])
        case "ended":
            store.finish(bad, "failed")
    before = seen(store, driver)
    with pytest.raises(Overtaken):
        driver.write(job_reports=[success(good), success(bad)], submissions=[driver.task("c")])
    assert seen(store, driver) == before
    assert store.status(good.id) == "running"
    store.finish(good)  # by itself it is as good as ever
    assert driver.inbox()[-1].task_id == good.id
    assert store.verify() == []


def test_what_a_job_said_and_its_run_has_not_heard_undoes_the_batch(store):
    """Else the end would be known before what was said before it, and that be ignored."""
    driver = Driver.of(store)
    a, b = held_of(driver, "a", "b")
    store.tell(a, started=True)
    heard = [one.seq for one in driver.inbox()]
    with pytest.raises(Overtaken):
        driver.write(job_reports=[success(a)])
    assert store.status(a.id) == "running"
    driver.write(job_reports=[success(b)], changes=ends("b"))  # nothing is unheard of this one
    driver.write(job_reports=[success(a)], changes=ends("a"), consumed=heard)
    assert store.statuses(a.id, b.id) == ["succeeded"] * 2


def test_a_batch_whose_answer_was_lost_ends_its_tasks_once(store):
    driver = Driver.of(store)
    [a] = held_of(driver, "a")
    changes = [*ends("a"), *active("b")]
    told = {"job_reports": [success(a)], "changes": changes, "submissions": [driver.task("b")]}
    batch = driver.batch(**told)
    store.write_batch(driver.lease, batch)
    store.write_batch(driver.lease, batch)
    assert store.status(a.id) == "succeeded"
    signals = [entry.signal for entry in store.history(a.id, count=10)]
    assert signals.count("succeed") == 1


def test_the_ends_of_a_batch_take_the_next_tasks_of_a_full_worker_along(store):
    driver = Driver.of(store)
    worker = store.hire()
    driver.submit("a", "b", "c")
    a, b = driver.take(2, worker=worker)
    told = left_by(store, worker, count=2, queue=driver.run.queue, for_ends=True)
    driver.write(job_reports=[success(a)], changes=ends("a"))
    assert told.tasks == [driver.task("c").id]
    assert store.status(b.id) == "running"


def test_a_place_within_a_limit_is_known_to_be_free(store):
    driver = Driver.of(store)
    [a] = held_of(driver, "a")
    woken = []
    stop = store.listen(woken.append)
    driver.write(job_reports=[success(a, frees="elsewhere")], changes=ends("a"))
    stop()
    assert any("elsewhere" in wake.queues for wake in woken)
