"""Signs of life and their absence: heartbeats, lapses, time limits, several monitors."""

import pytest

from tests.conformance.door import NEVER_OUT
from tidewheel.core.queue.lease import LeaseAnswer
from tidewheel.core.queue.requests import Beat
from tidewheel.core.queue.resources import Resources
from tidewheel.errors import BadSetting, LeaseLost, WrongStatus


@pytest.mark.req("R002-44", "R002-17")
def test_a_heartbeat_extends_the_lease_by_its_length_from_now(store, clock):
    store.put("a")
    held = store.hold("a", lease_seconds=20)
    clock.advance(15)
    assert store.beat(held) is LeaseAnswer.GO_ON
    view = store.get("a")
    assert (view.deadline_at, view.updated_at) == (clock.now + 20, clock.now)
    clock.advance(19)
    assert store.lapse() == []
    assert store.status("a") == "running"


@pytest.mark.req("R002-45", "R002-84", "R002-15")
def test_a_heartbeat_may_carry_progress_and_progress_may_go_down(store):
    store.put("a")
    held = store.hold("a")
    for told, seen in [(0.25, 0.25), (1.0, 1.0), (None, 1.0), (0.0, 0.0), (0.5, 0.5)]:
        assert store.beat(held, told) is LeaseAnswer.GO_ON
        assert store.get("a").progress == seen


@pytest.mark.req("R002-15")
@pytest.mark.parametrize("progress", [-0.01, 1.01, float("nan"), float("inf")])
def test_progress_out_of_range_is_refused_and_extends_nothing(store, clock, progress):
    store.put("a", "b")
    worker = store.hire()
    store.take(2, worker=worker)
    before = store.everything()
    clock.advance(5)
    beats = [Beat(task_id="a", attempt=1), Beat(task_id="b", attempt=1, progress=progress)]
    with pytest.raises(BadSetting) as refused:
        store.heartbeat(worker, beats)
    assert str(refused.value) == f"progress is {progress!r}; expected 0 to 1"
    assert store.everything()["tasks"] == before["tasks"]


def test_one_call_extends_many_leases_and_answers_each_in_order(store, clock):
    store.put(*"abcd")
    worker = store.hire()
    held = store.take(4, worker=worker)
    store.finish(held[1])
    store.cancel(["c"])
    clock.advance(5)
    beats = [
        Beat(task_id=task_id, attempt=attempt)
        for task_id, attempt in [("d", 1), ("c", 1), ("b", 1), ("a", 2), ("x", 1), ("a", 1)]
    ]
    assert [answer.value for answer in store.heartbeat(worker, beats)] == [
        "go_on",
        "cancel",
        "lost",
        "lost",
        "lost",
        "go_on",
    ]
    assert store.get("d").deadline_at == clock.now + 10
    assert store.heartbeat(worker, []) == []


@pytest.mark.req("R002-46")
def test_only_the_owner_can_extend_the_heartbeat_and_others_are_told_so(store, clock):
    store.put("a")
    held = store.hold("a")
    other = held.by(store.hire())
    before = store.get("a")
    clock.advance(5)
    assert store.beat(other, 0.9) is LeaseAnswer.LOST
    assert store.get("a") == before
    with pytest.raises(LeaseLost) as refused:
        store.tell(other)
    assert "Only owner can extend the heartbeat." in str(refused.value)


@pytest.mark.req("R002-47")
@pytest.mark.parametrize("ending", ["succeeded", "failed", "aborted"])
def test_a_heartbeat_after_the_end_is_refused_with_the_status(store, ending):
    store.put("a")
    held = store.hold("a")
    store.finish(held, ending)
    before = store.everything()["tasks"]
    assert store.beat(held, 0.5) is LeaseAnswer.LOST
    with pytest.raises(WrongStatus) as refused:
        store.tell(held)
    assert refused.value.status == ("succeeded" if ending == "succeeded" else "failed")
    assert store.everything()["tasks"] == before


@pytest.mark.req("R002-47")
def test_a_heartbeat_for_a_task_that_was_given_back_is_refused(store):
    store.put("a")
    held = store.hold("a")
    store.finish(held, "yielded")
    assert store.beat(held) is LeaseAnswer.LOST
    assert store.get("a").deadline_at is None


@pytest.mark.req("R002-53", "R002-54", "R002-20", "R002-21", "R002-17")
def test_a_lapsed_lease_gives_the_task_back_without_owner_and_progress(store, clock):
    store.put("a")
    held = store.hold("a")
    store.beat(held, 0.23)
    clock.advance(10)
    assert store.lapse() == []
    clock.advance(0.001)
    assert store.lapse() == [("a", "lapse")]
    view = store.get("a")
    assert (view.status, view.owner, view.progress) == ("ready", None, 0.0)
    assert (view.deadline_at, view.updated_at, view.lapses) == (None, clock.now, 1)
    entry = store.history("a")[-1]
    assert (entry.signal, entry.worker, entry.progress) == ("lapse", held.worker, 0.23)
    assert (entry.at, entry.attempt) == (clock.now, 1)


@pytest.mark.req("R002-52", "R002-58")
def test_the_next_worker_takes_over_and_the_lost_one_can_say_nothing_more(store, clock):
    store.put("a", max_retries=9)
    lost = store.hold("a")
    clock.advance(11)
    store.lapse()
    current = store.take()[0]
    assert (current.id, current.task.attempt) == ("a", 2)
    before = store.everything()
    for ending in ("succeeded", "failed", "aborted", "yielded"):
        with pytest.raises(LeaseLost) as refused:
            store.finish(lost, ending)
        assert refused.value.asked == (lost.worker, 1)
        assert refused.value.held == (current.worker, 2)
    assert store.beat(lost) is LeaseAnswer.LOST
    assert store.everything()["details"] == before["details"]
    assert store.finish(current) == "succeeded"


@pytest.mark.req("R002-52", "R003-59")
def test_a_worker_that_got_its_own_task_again_cannot_report_for_the_old_attempt(store, clock):
    store.put("a")
    worker = store.hire()
    old = store.hold("a", worker)
    clock.advance(11)
    store.lapse()
    store.hold("a", worker)
    assert store.beat(old) is LeaseAnswer.LOST
    with pytest.raises(LeaseLost):
        store.finish(old)
    assert store.status("a") == "running"


@pytest.mark.req("R002-55")
@pytest.mark.parametrize("first", ["renewal", "monitor"])
def test_of_a_renewal_and_a_lapse_exactly_one_happens(store, clock, first):
    store.put("a")
    held = store.hold("a")
    clock.advance(11)
    if first == "renewal":
        assert store.beat(held) is LeaseAnswer.GO_ON
        assert store.lapse() == []
        assert (store.status("a"), store.get("a").owner) == ("running", held.worker)
    else:
        assert store.lapse() == [("a", "lapse")]
        assert store.beat(held) is LeaseAnswer.LOST
        assert (store.status("a"), store.get("a").owner) == ("ready", None)


@pytest.mark.req("R002-56")
def test_two_monitors_lapse_a_lease_once(world, clock):
    one, other = world.open(), world.open()
    one.put("a")
    one.hold("a")
    clock.advance(11)
    assert one.lapse() + other.lapse() == [("a", "lapse")]
    assert one.signals("a") == [None, "claim", "lapse"]
    assert one.get("a").lapses == 1


def test_a_monitor_takes_the_longest_dead_first_and_no_more_than_it_asked_for(store, clock):
    store.put(*"abc")
    for name in "cab":
        store.hold(name)
        clock.advance(1)
    clock.advance(20)
    assert (
        store.lapse(count_max=2) == [("a", "lapse"), ("c", "lapse")]
        or store.status("b") == "running"
    )
    assert store.statuses(*"abc") == ["ready", "running", "ready"]
    assert store.lapse(count_max=2) == [("b", "lapse")]
    assert store.lapse(count_max=2) == []


@pytest.mark.req("R002-59")
def test_a_task_whose_workers_are_always_lost_fails_in_the_end(store, clock):
    store.put("a", max_lapses=2)
    signals = []
    for _ in range(3):
        assert store.taken() == ["a"]
        clock.advance(11)
        signals += store.lapse()
    assert signals == [("a", "lapse"), ("a", "lapse"), ("a", "lapse_out")]
    view = store.get("a")
    assert (view.status, view.lapses, view.attempt) == ("failed", 3, 3)
    assert [error.code for error in view.errors] == ["lease_lapsed"]
    assert "3 times" in view.errors[0].description


def test_lapses_are_not_failures_and_cost_no_retry(store, clock):
    store.put("a", max_retries=1)
    for _ in range(3):
        store.hold("a")
        clock.advance(11)
        store.lapse()
    assert store.finish(store.hold("a"), "failed") == "ready"
    assert store.finish(store.hold("a"), "failed") == "failed"
    assert (store.get("a").lapses, store.get("a").failures) == (3, 2)


@pytest.mark.req("R002-59")
def test_a_task_that_runs_too_long_fails_however_alive_its_worker_is(store, clock):
    store.put("a", timeout_seconds=25, max_retries=9)
    held = store.hold("a")
    for _ in range(5):
        clock.advance(5)
        store.beat(held)
        assert store.lapse() == []
    clock.advance(1)
    assert store.beat(held) is LeaseAnswer.GO_ON
    assert store.lapse() == [("a", "time_out")]
    view = store.get("a")
    assert (view.status, view.owner) == ("failed", held.worker)
    assert [error.code for error in view.errors] == ["timed_out"]
    assert "25 s" in view.errors[0].description
    assert store.beat(held) is LeaseAnswer.LOST


def test_the_time_limit_counts_from_the_start_that_the_worker_told(store, clock):
    store.put("a", timeout_seconds=25)
    held = store.hold("a", lease_seconds=100)
    clock.advance(20)
    store.tell(held, started=True)
    clock.advance(25)
    assert store.lapse() == []
    clock.advance(1)
    assert store.lapse() == [("a", "time_out")]


def test_preparation_by_a_runner_does_not_count_as_time_that_a_task_runs(store, clock):
    store.put("a", timeout_seconds=25, resources=Resources(labels=frozenset({"runner:swarm"})))
    held = store.hold("a", lease_seconds=1000)
    clock.advance(600)
    assert store.lapse() == []
    store.tell(held, started=True)
    clock.advance(85)  # a minute is for its runner to tidy up
    assert store.lapse() == []
    clock.advance(1)
    assert store.lapse() == [("a", "time_out")]


def test_the_time_limit_is_for_one_attempt(store, clock):
    store.put("a", timeout_seconds=25)
    store.finish(store.hold("a"), "yielded")
    clock.advance(60)
    held = store.hold("a")
    clock.advance(9)
    assert store.lapse() == []
    assert store.finish(held) == "succeeded"


def test_a_task_both_unheard_of_and_too_long_does_not_run_again(store, clock):
    store.put("a", timeout_seconds=5)
    store.hold("a")
    clock.advance(11)
    assert store.lapse() == [("a", "time_out")]


def test_a_monitor_that_was_away_gives_every_worker_a_full_lease_to_be_heard_again(
    store, clock
):
    store.put("short", "long")
    store.put("slow", timeout_seconds=1)
    store.hold("short", lease_seconds=5)
    store.hold("long", lease_seconds=50)
    store.hold("slow", lease_seconds=50)
    clock.advance(100)
    assert store.lapse(watched_seconds=0) == [("slow", "time_out")]
    assert store.lapse(watched_seconds=4.9) == []
    assert store.lapse(watched_seconds=5) == [("short", "lapse")]
    assert store.lapse(watched_seconds=49.9) == []
    assert store.lapse(watched_seconds=50) == [("long", "lapse")]


@pytest.mark.req("R002-57")
def test_time_is_the_databases_alone(store, clock):
    """No operation takes a time from its caller: what the database's clock says is stored."""
    assert store.now() == clock.now
    store.put("a")
    held = store.hold("a")
    clock.advance(-3600)
    assert store.beat(held) is LeaseAnswer.GO_ON
    assert store.get("a").deadline_at == clock.now + 10
    assert store.lapse(watched_seconds=NEVER_OUT) == []
    clock.advance(7200)
    assert store.lapse() == [("a", "lapse")]
    assert store.now() == clock.now
