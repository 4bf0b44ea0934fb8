"""Who is told when something changed that others may be waiting for."""

import threading

import pytest

from tests.conformance.door import new_task
from tests.conformance.run_steps import Driver, claim_run
from tests.support.patience import SECONDS_MAX
from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.requests import QueueSettings
from tidewheel.errors import Refused


class Ear:
    """Hears wakes from any thread."""

    def __init__(self, store):
        self._heard = threading.Condition()
        self._wakes = []
        self.stop = store.listen(self._hear)

    def _hear(self, wake):
        with self._heard:
            self._wakes.append(wake)
            self._heard.notify_all()

    def hears(self, *, queue=None, worker=None, seconds=SECONDS_MAX):
        """Wait until a wake names it, or says that anything may have changed."""
        with self._heard:
            return self._heard.wait_for(
                lambda: any(
                    wake.everything or queue in wake.queues or worker in wake.workers
                    for wake in self._wakes
                ),
                timeout=seconds,
            )

    def named(self):
        """Every queue and worker so far."""
        with self._heard:
            return {name for wake in self._wakes for name in wake.queues | wake.workers}

    def forget(self):
        with self._heard:
            self._wakes.clear()


@pytest.fixture
def ear(store):
    ear = Ear(store)
    yield ear
    ear.stop()


def test_a_new_ready_task_wakes_its_queue(store, ear):
    store.put("waiting", armed=False)
    assert "q" not in ear.named()
    store.put("a", queue="p")
    assert ear.hears(queue="p")
    store.arm("waiting")
    assert ear.hears(queue="q")


@pytest.mark.parametrize("ending", ["succeeded", "failed"])
def test_an_end_wakes_the_queues_of_what_it_released(store, ear, ending):
    store.put("a", max_retries=1)
    store.put("child", queue="p", needs=["a"])
    held = store.hold("a")
    ear.forget()
    store.finish(held, ending)
    released = "p" if ending == "succeeded" else "q"
    assert ear.hears(queue=released)
    assert released in ear.named()


@pytest.mark.req("R002-71")
def test_a_yield_wakes_its_queue(store, ear):
    store.put("a")
    held = store.hold("a")
    ear.forget()
    store.finish(held, "yielded")
    assert ear.hears(queue="q")
    assert "q" in ear.named()


@pytest.mark.parametrize("ending", ["succeeded", "failed", "aborted"])
def test_an_end_in_a_queue_with_limits_wakes_those_who_wait_for_a_place(store, ear, ending):
    store.configure_queue("q", QueueSettings(limits=(Limit(concurrency_max=1),)))
    store.put("a", "b")
    [held] = store.take(2)
    ear.forget()
    store.finish(held, ending)
    assert ear.hears(queue="q")
    assert "q" in ear.named()


def test_a_task_that_a_monitor_ends_leaves_its_place_to_those_who_wait(store, clock, ear):
    store.configure_queue("q", QueueSettings(limits=(Limit(concurrency_max=1),)))
    store.put("a", "b", timeout_seconds=5)
    store.take(2)
    clock.advance(6)
    ear.forget()
    store.lapse()
    assert store.status("a") == "failed"
    assert ear.hears(queue="q")
    assert "q" in ear.named()


def test_an_end_in_a_queue_without_limits_wakes_nobody(store, ear):
    store.put("a", "b")
    assert ear.hears(queue="q")  # else it may come when all else is forgotten
    held = store.hold("a")
    ear.forget()
    store.finish(held)
    store.put("c", queue="p")
    assert ear.hears(queue="p")
    assert ear.named() == {"p"}


@pytest.mark.req("R003-40")
def test_a_cancel_wakes_the_worker_that_runs_the_task(store, ear):
    store.put("a")
    held = store.hold("a")
    ear.forget()
    store.cancel(["a"])
    assert ear.hears(worker=held.worker)
    assert held.worker in ear.named()
    assert store.cancelling(held.worker) == [("a", 1)]


def test_lapses_pauses_and_settings_wake_the_queue(store, clock, ear):
    store.put("a")
    store.hold("a")
    clock.advance(11)
    for change in (
        store.lapse,
        lambda: store.pause_queue("q", paused=False),
        lambda: store.configure_queue("q", QueueSettings()),
    ):
        ear.forget()
        change()
        assert ear.hears(queue="q")
        assert "q" in ear.named()


def test_what_is_refused_wakes_nobody(store, ear):
    store.put("a")
    held = store.hold("a")
    with pytest.raises(Refused):
        store.submit([new_task("b", queue="refused"), new_task("a", spec="[2]")])
    with pytest.raises(Refused):
        store.cancel(["a", "nobody"])
    store.put("c", queue="accepted")
    assert ear.hears(queue="accepted")
    assert ear.named() <= {"q", "accepted"}
    assert held.worker not in ear.named()


def test_whoever_stopped_listening_hears_nothing(store):
    ear = Ear(store)
    ear.stop()
    ear.forget()
    store.put("a")
    assert ear.named() == set()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_other_processes_are_woken_too(world):
    here, there = world.open(), world.open()
    ear = Ear(there)
    here.put("a")
    assert ear.hears(queue="q")
    held = here.hold("a")
    ear.forget()
    here.cancel(["a"])
    assert ear.hears(worker=held.worker)
    ear.stop()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_process_that_keeps_writing_hears_of_others_all_the_same(world):
    here, there = world.open(), world.open()
    ear = Ear(there)
    there.put("own")
    assert ear.hears(queue="q")
    ear.forget()
    here.put("a", queue="p")
    for number in range(10_000):
        if ear.hears(queue="p", seconds=0):
            break
        there.put(f"b{number}", queue="own")
    assert ear.hears(queue="p", seconds=0)
    ear.stop()


def test_a_run_that_goes_on_wakes_the_queue_of_what_was_withdrawn(store, ear):
    driver = Driver.of(store)
    driver.submit("a")
    driver.write(status="stopped", ends=True)
    driver.lease = claim_run(store, driver.run)
    ear.forget()
    driver.write(goes_on=True)
    assert ear.hears(queue=driver.run.queue)
    assert driver.run.queue in ear.named()
