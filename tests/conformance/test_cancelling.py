"""Asking that a task shall not run, or not run on; a cancel wins over every end."""

import pytest

from tests.conformance.door import messages
from tidewheel.core.queue.lease import LeaseAnswer
from tidewheel.core.queue.requests import Cancelled, TaskFilter
from tidewheel.core.queue.status import Status
from tidewheel.errors import LeaseLost, NotFound


@pytest.mark.req("R002-61", "R002-25", "R003-38")
def test_a_cancelled_task_that_was_ready_is_never_leased(store, clock):
    store.put("a", "b")
    clock.advance(3)
    assert store.cancel(["a"]) == [Cancelled(id="a", status=Status.CANCELLED, changed=True)]
    assert store.taken(9) == ["b"]
    view = store.get("a")
    assert (view.status, view.owner, view.deadline_at) == ("cancelled", None, None)
    assert (view.progress, view.updated_at) == (0.0, clock.now)
    assert store.signals("a") == [None, "cancel"]


@pytest.mark.req("R003-62")
def test_a_task_that_waits_can_be_cancelled(store):
    store.put("a", armed=False)
    store.put("later", delay_seconds=60)
    assert store.cancel_one("a").status == "cancelled"
    assert store.cancel_one("later").status == "cancelled"


@pytest.mark.req("R002-62", "R002-63", "R003-40", "R003-41", "R003-42", "R003-64")
def test_a_running_task_is_cancelling_at_once_and_its_worker_hears_it_at_its_next_beat(store):
    store.put("a", "b")
    worker = store.hire()
    held, other = store.take(2, worker=worker)
    assert store.cancel(["a"]) == [Cancelled(id="a", status=Status.CANCELLING, changed=True)]
    assert store.status("a") == "cancelling"
    assert store.cancelling(worker) == [("a", 1)]
    assert store.cancelling(store.hire()) == []
    assert store.beat(held, 0.5) is LeaseAnswer.CANCEL
    assert store.beat(other) is LeaseAnswer.GO_ON
    assert store.status("a") == "cancelling"
    view = store.get("a")
    assert (view.owner, view.progress) == (worker, 0.5)
    assert view.deadline_at is not None


ENDINGS = ["succeeded", "failed", "aborted", "yielded"]


@pytest.mark.req("R002-64", "R002-65", "R003-46", "R003-51", "R003-65")
@pytest.mark.parametrize("ending", ENDINGS)
def test_whatever_the_worker_reports_a_cancelled_task_is_cancelled(store, clock, ending):
    store.put("a", max_retries=9)
    held = store.hold("a")
    store.cancel(["a"])
    clock.advance(2)
    assert store.finish(held, ending, exit_status=0) == "cancelled"
    view = store.get("a")
    assert (view.status, view.owner, view.deadline_at) == ("cancelled", held.worker, None)
    assert view.errors == ()
    assert store.taken(9) == []
    signal = {"succeeded": "succeed", "failed": "retry", "aborted": "abort"}.get(
        ending, "yield"
    )
    assert store.signals("a") == [None, "claim", "cancel", signal]
    (attempt,) = store.attempts("a")
    assert (attempt.ended_by, attempt.exit_status, attempt.ended_at) == (signal, 0, clock.now)


@pytest.mark.req("R003-47")
@pytest.mark.parametrize("exit_status", [143, None])
def test_a_job_that_obeyed_leaves_its_exit_status_and_a_killed_one_none(store, exit_status):
    store.put("a")
    held = store.hold("a")
    store.cancel(["a"])
    store.finish(held, "failed", exit_status=exit_status)
    assert store.attempts("a")[0].exit_status == exit_status


@pytest.mark.req("R003-43", "R002-59")
@pytest.mark.parametrize("max_lapses", [0, 5])
def test_if_the_worker_is_dead_the_lease_ends_a_cancelled_task(store, clock, max_lapses):
    store.put("a", max_lapses=max_lapses, timeout_seconds=1)
    held = store.hold("a")
    store.cancel(["a"])
    clock.advance(10)
    assert store.lapse() == []
    clock.advance(1)
    assert [task_id for task_id, _ in store.lapse()] == ["a"]
    assert store.status("a") == "cancelled"
    assert store.beat(held) is LeaseAnswer.LOST
    assert store.taken(9) == []


def test_a_worker_may_still_talk_while_it_ends_a_cancelled_job(store):
    store.put("a")
    held = store.hold("a")
    store.cancel(["a"])
    assert store.tell(held, messages=messages("stopping")) == "cancelling"
    assert store.tell(held, started=True) == "cancelling"
    with pytest.raises(LeaseLost):
        store.finish(held.by(store.hire()), "failed")
    assert [output.text for output in store.outputs("a")] == ["stopping"]


@pytest.mark.req("R002-68", "R003-39")
@pytest.mark.parametrize("ending", [*ENDINGS[:3], "cancelled", "cancelling"])
def test_cancelling_what_has_ended_or_is_being_cancelled_succeeds_and_changes_nothing(
    store, ending
):
    store.put("a")
    held = store.hold("a")
    if ending in ("cancelled", "cancelling"):
        store.cancel(["a"])
    if ending != "cancelling":
        store.finish(held, "succeeded" if ending == "cancelled" else ending)
    before = store.everything()
    answer = store.cancel_one("a")
    assert (answer.id, answer.changed) == ("a", False)
    assert answer.status == store.get("a").status
    assert store.everything() == before


@pytest.mark.req("R002-67", "R002-66")
@pytest.mark.parametrize("first", ["cancel", "beat"])
def test_a_heartbeat_beside_a_cancel_never_brings_the_task_back(store, clock, first):
    store.put("a")
    held = store.hold("a")
    clock.advance(9)
    if first == "cancel":
        store.cancel(["a"])
        assert store.beat(held) is LeaseAnswer.CANCEL
    else:
        assert store.beat(held) is LeaseAnswer.GO_ON
        store.cancel(["a"])
    assert store.beat(held) is LeaseAnswer.CANCEL
    store.finish(held)
    assert store.beat(held, 0.5) is LeaseAnswer.LOST
    assert store.status("a") == "cancelled"


def test_many_are_cancelled_in_one_call_and_answered_in_the_order_asked(store):
    store.put(*"abc")
    store.hold("b")
    answers = store.cancel(["c", "b", "a", "c"])
    assert [(answer.id, answer.status.value) for answer in answers] == [
        ("c", "cancelled"),
        ("b", "cancelling"),
        ("a", "cancelled"),
        ("c", "cancelled"),
    ]
    assert store.signals("c") == [None, "cancel"]
    assert store.cancel([]) == []


def test_if_one_of_them_is_unknown_none_is_cancelled(store):
    store.put("a")
    before = store.everything()
    with pytest.raises(NotFound) as refused:
        store.cancel(["a", "nobody"])
    assert refused.value.name == "nobody"
    assert store.everything() == before


def test_cancelling_by_a_filter_takes_the_oldest_that_have_not_ended(store):
    store.put("a", "b", "c", tag="t")
    store.put("other")
    store.run_through("a")
    store.hold("b")
    answers = store.cancel_matching(TaskFilter(tag="t"))
    assert [(answer.id, answer.status.value, answer.changed) for answer in answers] == [
        ("b", "cancelling", True),
        ("c", "cancelled", True),
    ]
    assert store.cancel_matching(TaskFilter(tag="t")) == []
    store.put(*"defg", queue="p")
    answers = store.cancel_matching(TaskFilter(queue="p"), count_max=2)
    assert [answer.id for answer in answers] == ["d", "e"]
    assert store.statuses("f", "g", "other") == ["ready"] * 3


@pytest.mark.req("R003-38")
def test_cancelling_a_task_that_has_not_started_cancels_all_that_depends_on_it(store):
    store.put("a", armed=False)
    store.submit_chain("a", "b", "c", "d")
    store.put("beside", needs=["b"])
    store.put("apart")
    assert store.cancel_one("a").status == "cancelled"
    assert store.statuses("b", "c", "d", "beside") == ["cancelled"] * 4
    assert store.status("apart") == "ready"
    assert store.signals("d") == [None, "cancel"]


@pytest.mark.req("R003-38", "R003-73", "R003-41")
def test_cancelling_a_running_task_cancels_its_children_before_its_job_has_ended(store):
    store.put("a")
    store.submit_chain("a", "b", "c")
    held = store.hold("a")
    store.cancel(["a"])
    assert store.statuses("a", "b", "c") == ["cancelling", "cancelled", "cancelled"]
    store.finish(held)
    assert store.statuses("a", "b", "c") == ["cancelled"] * 3


@pytest.mark.req("R003-49", "R003-50")
def test_a_child_of_a_cancelled_and_a_live_parent_is_cancelled_and_the_live_one_goes_on(store):
    store.put("dead", "live")
    store.put("child", needs=["dead", "live"])
    held = store.hold("live")
    store.cancel(["dead"])
    assert store.statuses("child", "live") == ["cancelled", "running"]
    assert store.get("child").open_needs == 0
    states = {edge.parent: edge.state.value for edge in store.edges("child")}
    assert states == {"dead": "dead", "live": "dead"}
    assert store.finish(held) == "succeeded"
    assert store.statuses("child", "live") == ["cancelled", "succeeded"]
    assert store.signals("child") == [None, "cancel"]


@pytest.mark.req("R003-50")
def test_a_child_that_is_cancelled_itself_waits_for_nobody_and_its_parents_go_on(store):
    store.put("a", "b")
    store.put("child", needs=["a", "b"])
    held = store.hold("a")
    store.cancel(["child"])
    assert store.get("child").open_needs == 0
    assert {edge.state.value for edge in store.edges("child")} == {"dead"}
    assert store.finish(held) == "succeeded"
    assert store.statuses("b", "child") == ["ready", "cancelled"]


@pytest.mark.req("R003-50")
def test_a_child_that_is_submitted_dead_waits_for_nobody(store):
    store.put("dead", "live")
    store.cancel(["dead"])
    store.put("child", needs=["dead", "live"])
    assert (store.status("child"), store.get("child").open_needs) == ("cancelled", 0)


def test_cancelling_parent_and_child_in_one_call_cancels_each_once(store):
    store.put("a", armed=False)
    store.submit_chain("a", "b", "c")
    store.put("d", needs=["a", "c"])
    store.cancel(["d", "a", "c"])
    for name in "abcd":
        assert store.signals(name) == [None, "cancel"]
        assert store.get(name).open_needs == 0
