"""Tasks that have ended are submitted again: once each, with what they need, or a reason."""

import pytest

from tests.conformance.door import new_task
from tidewheel.api.tasks import NO_SUCH_TASK
from tidewheel.core.queue.retry import FixedDelays
from tidewheel.core.queue.task import Need
from tidewheel.errors import BadSetting


def failed(store, *task_ids, **fields):
    for task_id in task_ids:
        store.put(task_id, **fields)
        store.run_through(task_id, ending="failed")


def again(store, *task_ids, **options):
    return {one.again_of: one for one in store.resubmit(list(task_ids), **options)}


def needed_by(store, task_id):
    return {(one.parent, one.output) for one in store.edges(task_id) if one.child == task_id}


def test_a_task_that_failed_is_submitted_again_with_the_same_body(store):
    said = {
        "name": "fit",
        "command": "exit 3",
        "priority": 77,
        "retry": FixedDelays(seconds=(3.0,)),
        "timeout_seconds": 9.0,
        "limit_key": "k",
        "tag": "night7",
        "environment": '{"A":"1"}',
    }
    failed(store, "a", **said)
    made = again(store, "a")["a"]
    assert (made.created, made.queue, made.refused) == (True, "q", None)
    assert made.id.startswith("a~2-")
    old, new = store.get("a"), store.get(made.id)
    assert (old.status, new.status, new.name) == ("failed", "ready", "fit.2")
    for field in ("command", "priority", "retry", "timeout_seconds", "limit_key", "tag"):
        assert getattr(new, field) == getattr(old, field), field
    assert new.environment == {"A": "1"}
    assert (new.attempt, new.failures) == (0, 0)
    assert store.taken(9) == [made.id]


def test_the_same_request_a_second_time_makes_no_other_task(store):
    failed(store, "a", name="fit")
    first = again(store, "a")["a"]
    second = again(store, "a", "a")["a"]
    assert (second.id, second.created, second.refused) == (first.id, False, None)
    assert len(store.listed()) == 2


def test_the_new_task_is_submitted_again_in_its_turn(store):
    failed(store, "a", name="fit")
    second = again(store, "a")["a"].id
    store.run_through(second, ending="failed")
    answers = again(store, "a", second)
    third = answers[second]
    assert (answers["a"].id, answers["a"].created) == (second, False)
    assert third.created and third.id.startswith("a~3-")
    assert store.get(third.id).name == "fit.3"


def test_a_name_that_another_task_has_is_passed_over(store):
    failed(store, "a", name="fit")
    store.put("other", name="fit.2")
    assert store.get(again(store, "a")["a"].id).name == "fit.3"


def test_needs_that_were_met_are_kept(store):
    store.put("data")
    store.run_through("data")
    failed(store, "a", needs=["data"])
    made = again(store, "a")["a"]
    assert made.needs == ("data",)
    assert (store.status(made.id), needed_by(store, made.id)) == (
        "ready",
        {("data", "succeeded")},
    )


def test_a_task_whose_need_failed_is_refused_with_the_reason(store):
    failed(store, "a")
    store.put("b", needs=["a"])
    answer = again(store, "b")["b"]
    assert store.status("b") == "cancelled"
    assert (answer.id, answer.created, answer.needs) == (None, False, ("a",))
    assert answer.refused == (
        "it needs the output succeeded of a, which is failed; submit a again together with it"
    )
    assert store.listed() == ["b", "a"]


def test_tasks_that_need_each_other_are_submitted_again_together(store):
    store.put("a")
    store.submit_chain("a", "b", "c")
    store.run_through("a", ending="failed")
    answers = again(store, "c", "b", "a")
    a, b, c = (answers[one].id for one in "abc")
    assert (answers["b"].needs, answers["c"].needs) == ((a,), (b,))
    assert store.statuses(a, b, c) == ["ready", "waiting", "waiting"]
    store.run_through(a, b, c)
    assert store.statuses(a, b, c) == ["succeeded"] * 3


def test_what_was_cancelled_with_a_task_is_offered_and_added_when_asked_for(store):
    store.put("a")
    store.submit_chain("a", "b", "c")
    store.run_through("a", ending="failed")
    assert again(store, "a", dry_run=True)["a"].children == ("b",)
    answers = again(store, "a", with_children=True)
    assert list(answers) == ["a", "b", "c"]
    assert all(one.created and one.children == () for one in answers.values())
    assert store.status(answers["c"].id) == "waiting"


def test_what_was_cancelled_by_hand_before_is_not_submitted_again_along_with_a_task(
    store, clock
):
    store.put("a")
    store.submit_chain("a", "b")
    store.put("by_hand", needs=["a"])
    clock.advance(1)
    store.cancel_one("by_hand")
    clock.advance(1)
    store.run_through("a", ending="failed")
    assert store.statuses("b", "by_hand") == ["cancelled", "cancelled"]
    assert again(store, "a", dry_run=True)["a"].children == ("b",)
    assert list(again(store, "a", with_children=True)) == ["a", "b"]


def test_what_was_cancelled_with_a_job_that_took_long_to_end_is_added(store, clock):
    store.put("a")
    store.submit_chain("a", "b", "c")
    held = store.hold("a")
    store.cancel_one("a")
    clock.advance(60)
    store.finish(held, "failed")
    assert store.statuses("a", "b", "c") == ["cancelled"] * 3
    assert list(again(store, "a", with_children=True)) == ["a", "b", "c"]


def test_a_task_needs_the_one_by_which_its_need_was_submitted_again_before(store):
    store.put("a")
    store.submit_chain("a", "b")
    store.run_through("a", ending="failed")
    a = again(store, "a")["a"].id
    b = again(store, "b")["b"]
    assert (b.needs, store.status(b.id)) == ((a,), "waiting")
    store.run_through(a)
    assert store.status(b.id) == "ready"


def test_a_task_is_refused_where_every_successor_of_its_need_failed(store):
    store.put("a")
    store.submit_chain("a", "b")
    store.run_through("a", ending="failed")
    a = again(store, "a")["a"].id
    store.run_through(a, ending="failed")
    assert again(store, "b")["b"].needs == (a,)
    answers = again(store, a, "b")
    assert answers["b"].needs == (answers[a].id,)


def test_a_need_for_a_failure_is_still_met(store):
    failed(store, "a")
    store.submit([new_task("b", needs=(Need(task_id="a", output="failed"),))])
    store.run_through("b", ending="failed")
    assert again(store, "b")["b"].needs == ("a",)


def test_what_has_not_ended_or_is_not_there_is_refused_and_the_others_are_not(store):
    failed(store, "a")
    store.put("open")
    answers = again(store, "a", "open", "nobody")
    assert answers["a"].created
    assert answers["open"].refused == (
        "it is ready; only a task that has ended can be submitted again"
    )
    assert answers["nobody"].refused == NO_SUCH_TASK


def test_a_dry_run_answers_the_same_and_stores_nothing(store):
    store.put("a", name="fit")
    store.submit_chain("a", "b")
    store.run_through("a", ending="failed")
    tried = store.resubmit(["a", "b"], dry_run=True)
    assert store.listed() == ["b", "a"]
    assert store.resubmit(["a", "b"]) == tried


def test_a_unique_key_that_lives_counts_as_the_task(store):
    failed(store, "a", unique_key="k")
    store.put("other", unique_key="k")
    answer = again(store, "a")["a"]
    assert (answer.created, answer.id) == (False, "other")


def test_a_task_that_was_never_armed_runs_when_it_is_submitted_again(store):
    store.put("a", armed=False)
    store.cancel(["a"])
    assert store.status(again(store, "a")["a"].id) == "ready"


def test_an_id_that_a_stranger_took_is_not_taken_for_the_task(store):
    failed(store, "a")
    taken = again(store, "a", dry_run=True)["a"].id
    store.put(taken, queue="elsewhere")
    assert again(store, "a")["a"].refused == f"the id {taken} is taken by another task"


def test_a_call_has_an_upper_bound(store):
    with pytest.raises(BadSetting):
        store.resubmit([f"t{number}" for number in range(10_001)])
