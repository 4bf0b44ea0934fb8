"""What becomes of a run's submissions is told to its scheduler in the same transaction."""

import pytest

from tests.conformance.door import BROKEN, messages
from tests.conformance.run_steps import Driver, claim_run, make_run
from tests.conformance.test_wakeups import Ear
from tests.support.patience import SECONDS_MAX
from tidewheel.core.operator.requests import CommandAnswer, NewCommand
from tidewheel.core.queue.requests import End, Ending, Report
from tidewheel.errors import LeaseLost

SUCCESS = End(ending=Ending.SUCCEEDED)


@pytest.fixture
def driver(store):
    return Driver.of(store)


def over(task_id, status, attempt=1, *how, values=None):
    error = (*how, None, None, None)[:3]  # code, words and exit status
    return ("JobOver", task_id, attempt, status, *error, values)


def test_a_plain_success_is_one_event(store, driver):
    ids = driver.submit("a", "b")
    held = driver.take(2)
    store.report([Report(holder=one.holder, started=True, end=SUCCESS) for one in held])
    assert sorted(driver.said()) == [over(one, "succeeded") for one in ids]
    driver.over("a", "b")


def test_the_exit_status_of_a_success_is_told_with_it(store, driver):
    [a] = driver.submit("a")
    [held] = driver.take()
    store.finish(held, exit_status=0, values="{}")
    assert driver.said() == [over(a, "succeeded", 1, None, None, 0, values="{}")]
    driver.over("a")


def test_a_start_is_told_before_the_end(store, driver):
    [a] = driver.submit("a")
    [held] = driver.take()
    store.tell(held, started=True)
    assert driver.said() == [("JobStarted", a, 1)]
    store.finish(held)
    assert driver.said() == [over(a, "succeeded")]
    driver.over("a")


def test_a_failure_that_is_told_with_its_start_is_two_events(store, driver):
    [a] = driver.submit("a")
    [held] = driver.take()
    end = End(ending=Ending.FAILED, error=BROKEN, exit_status=3)
    store.tell(held, started=True, end=end)
    assert driver.said() == [
        ("JobStarted", a, 1),
        over(a, "failed", 1, "exit", "it exited with 3", 3),
    ]
    driver.over("a")


def test_what_a_job_says_is_told_in_its_order_and_once(store, driver):
    [a] = driver.submit("a")
    [held] = driver.take()
    store.tell(held, started=True, messages=messages("one", "two", output="x"))
    store.tell(held, messages=messages("one", "two", "thr\0ee", output="x"))
    store.tell(held, messages=messages("four", first=4), end=SUCCESS)
    assert driver.said() == [
        ("JobStarted", a, 1),
        ("JobSaid", a, 1, "one", "x", None),
        ("JobSaid", a, 1, "two", "x", None),
        ("JobSaid", a, 1, "thr\N{REPLACEMENT CHARACTER}ee", "x", None),
        ("JobSaid", a, 1, "four", None, None),
        over(a, "succeeded"),
    ]
    driver.over("a")


def test_a_refused_report_tells_nothing(store, driver):
    driver.submit("a")
    [held] = driver.take()
    stranger = held.by(store.hire())
    for fields in ({"started": True}, {"end": SUCCESS}, {"messages": messages("x")}):
        with pytest.raises(LeaseLost):
            store.tell(stranger, **fields)
    assert driver.said() == []
    store.finish(held)
    driver.over("a")


def test_the_tasks_of_clients_tell_nobody(store, driver):
    store.put("a", "b", queue=driver.run.queue)
    [held, other] = driver.take(2)
    store.tell(held, started=True)
    store.tell(held, messages=messages("x"), end=SUCCESS)
    store.tell(other, started=True, end=SUCCESS)
    assert driver.said() == []


@pytest.mark.parametrize("asked_by", ["batch", "client"])
def test_a_cancelled_submission_is_over_when_it_has_ended(store, driver, asked_by):
    ready, running = driver.submit("a", "b")
    held = store.hold(running)
    if asked_by == "batch":
        driver.write(cancellations=[ready, running])
    else:
        store.cancel([ready, running])
    assert driver.said() == [over(ready, "cancelled", 0)]
    store.finish(held, "aborted", exit_status=143)
    assert driver.said() == [over(running, "cancelled", 1, "exit", "it exited with 3", 143)]
    driver.over("a", "b")


def test_a_submission_that_is_stored_and_cancelled_in_one_batch_is_over(driver):
    task = driver.task("a")
    driver.write(submissions=[task], cancellations=[task.id])
    assert driver.said() == [over(task.id, "cancelled", 0)]


def test_what_goes_back_to_the_queue_is_not_over(store, driver, clock):
    [a] = driver.submit("a")
    [held] = driver.take()
    store.finish(held, "yielded")
    assert driver.said() == []
    driver.take()
    clock.advance(61)
    assert store.lapse() == [(a, "lapse")]
    assert driver.said() == []
    [third] = driver.take()
    store.tell(third, started=True)
    assert driver.said() == [("JobStarted", a, 3)]


def test_what_monitors_end_is_over(store, driver, clock):
    driver.write(
        submissions=[
            driver.task("lapsing", max_lapses=0),
            driver.task("slow", timeout_seconds=5.0),
            driver.task("cancelled"),
        ]
    )
    driver.take(3)
    ids = [f"{driver.run.name}/1/{name}/1" for name in ("lapsing", "slow", "cancelled")]
    store.cancel([ids[2]])
    clock.advance(6)
    store.lapse()
    [slow] = driver.said()
    assert slow[:5] == ("JobOver", ids[1], 1, "failed", "timed_out")
    clock.advance(61)
    store.lapse()
    ended = sorted(driver.said(), key=lambda said: ids.index(said[1]))
    assert [said[1:5] for said in ended] == [
        (ids[0], 1, "failed", "lease_lapsed"),
        (ids[2], 1, "cancelled", None),
    ]


def test_an_inbox_is_read_in_order_and_in_parts(store, driver, clock):
    ids = driver.submit(*"abc")
    for task_id in ids:
        store.finish(store.hold(task_id))
        clock.advance(1)
    seen = store.read_inbox(driver.run.number, 2)
    assert seen.now == clock.now
    assert [(one.task_id, one.at) for one in seen.happenings] == [
        (ids[0], clock.now - 3),
        (ids[1], clock.now - 2),
    ]
    driver.write(consumed=[seen.happenings[1].seq])
    assert [one.task_id for one in driver.inbox()] == [ids[0], ids[2]]
    driver.write(consumed=[one.seq for one in driver.inbox()])
    driver.over(*"abc")


def test_a_scheduler_consumes_nothing_of_another_run(store, driver):
    other = Driver.of(store)
    other.submit("a")
    store.finish(other.take()[0])
    [theirs] = other.inbox()
    driver.write(consumed=[theirs.seq])
    assert other.inbox() == [theirs]
    other.over("a", consumed=[theirs.seq])


def test_what_happens_while_nobody_drives_waits(store, driver):
    [a] = driver.submit("a")
    [held] = driver.take()
    driver.write(status="stopped", ends=True)
    store.finish(held)
    successor = Driver(store, driver.run, claim_run(store, driver.run))
    assert successor.said() == [over(a, "succeeded")]
    successor.over("a")


# ---- being told ----


class RunEar(Ear):
    """Hears of runs."""

    def hears_of(self, run):
        with self._heard:
            return self._heard.wait_for(
                lambda: any(w.everything or run in w.runs for w in self._wakes), SECONDS_MAX
            )

    def runs(self):
        with self._heard:
            return {run for wake in self._wakes for run in wake.runs}


@pytest.fixture
def ear(store):
    ear = RunEar(store)
    yield ear
    ear.stop()


def test_a_run_is_woken_by_what_happens_to_it(store, driver, ear):
    run = driver.run.number
    [a, b] = driver.submit("a", "b")
    assert ear.hears(queue=driver.run.queue)
    assert run not in ear.runs()
    held = store.hold(a)
    for step in (
        lambda: store.tell(held, started=True),
        lambda: store.tell(held, messages=messages("x")),
        lambda: store.finish(held),
        lambda: store.cancel([b]),
        lambda: store.post_command(NewCommand(run=run, body="{}", who="me")),
    ):
        ear.forget()
        step()
        assert ear.hears_of(run)
    # Another one, as notices of what was done above may still be under way.
    quiet = Driver.of(store)
    quiet.write(status="running")
    assert quiet.run.number not in ear.runs()


def test_whoever_asked_is_woken_by_the_answer(store, driver, ear):
    number = store.post_command(NewCommand(run=driver.run.number, body="{}", who="me"))
    [given] = driver.inbox()
    ear.forget()
    driver.write(consumed=[given.seq], answers=[CommandAnswer(number)])
    assert ear.hears_of(driver.run.number)
    ear.forget()
    driver.write(status="stopped", ends=True)
    assert ear.hears_of(driver.run.number)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_another_process_is_woken_too(world):
    scheduler, worker = world.open(), world.open()
    driver = Driver.of(scheduler)
    ear = RunEar(scheduler)
    if world.kind == "postgres":  # where an ear says when it is open
        assert ear.hears_of(0)
    driver.submit("a")
    held = worker.take(queue=driver.run.queue)[0]
    ear.forget()
    worker.finish(held)
    assert ear.hears_of(driver.run.number)
    ear.stop()


def test_an_unheld_run_has_an_inbox(store):
    run = make_run(store)
    assert store.read_inbox(run.number, 10).happenings == []
