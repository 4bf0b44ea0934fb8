"""Changing who waits for whom among stored tasks, and changing tasks while they wait."""

import pytest

from tests.conformance.door import new_task
from tidewheel.core.queue.requests import Amendment
from tidewheel.core.queue.resources import Resources
from tidewheel.errors import (
    DependencyCycle,
    Duplicate,
    InvalidTask,
    NotFound,
    PayloadTooLarge,
    WrongStatus,
)

NOT_WAITING = ["ready", "running", "cancelling", "succeeded", "failed", "cancelled"]


def bring_to(store, task_id, status):
    """A stored task in any status but waiting."""
    store.put(task_id)
    if status == "cancelled":
        store.cancel([task_id])
    elif status != "ready":
        held = store.hold(task_id)
        if status == "cancelling":
            store.cancel([task_id])
        elif status != "running":
            store.finish(held, status)
    assert store.status(task_id) == status


@pytest.mark.req("R003-22", "R003-6")
def test_edges_are_added_one_by_one_and_in_bulk(store):
    store.put(*"abcd", armed=False)
    store.add_edges([("a", "b")])
    store.add_edges([("a", "c"), ("b", "d"), ("c", "d")])
    assert [(edge.parent, edge.child) for edge in store.edges("d")] == [("b", "d"), ("c", "d")]
    store.arm("a")
    store.run_through(*"abcd")
    assert store.statuses(*"abcd") == ["succeeded"] * 4
    assert store.add_edges([]) is None


@pytest.mark.req("R003-25")
def test_adding_an_edge_again_changes_nothing(store):
    store.put("a", "b", armed=False)
    store.add_edges([("a", "b")])
    before = store.everything()
    store.add_edges([("a", "b"), ("a", "b")])
    assert store.everything() == before
    assert store.get("b").open_needs == 1


@pytest.mark.req("R003-24")
@pytest.mark.parametrize("status", NOT_WAITING)
@pytest.mark.parametrize("end", ["parent", "child"])
def test_both_ends_of_an_edge_must_be_waiting(store, status, end):
    store.put("w", armed=False)
    bring_to(store, "a", status)
    edge = ("a", "w") if end == "parent" else ("w", "a")
    before = store.everything()
    for change in (store.add_edges, store.remove_edges):
        with pytest.raises(WrongStatus) as refused:
            change([edge])
        assert (refused.value.task_id, refused.value.status) == ("a", status)
        assert refused.value.allowed == ("waiting",)
    assert store.everything() == before


@pytest.mark.req("R003-26")
def test_an_edge_that_closes_a_circle_is_refused_with_all_that_came_with_it(store):
    store.put(*"abcx", armed=False)
    store.add_edges([("a", "b"), ("b", "c")])
    before = store.everything()
    for edges in ([("c", "a")], [("x", "a"), ("c", "x")], [("x", "b"), ("b", "a")]):
        with pytest.raises(DependencyCycle) as refused:
            store.add_edges(edges)
        assert refused.value.path[0] == refused.value.path[-1]
        assert store.everything() == before
    with pytest.raises(InvalidTask) as itself:
        store.add_edges([("a", "x"), ("a", "a")])
    assert "itself" in str(itself.value)
    with pytest.raises(NotFound):
        store.add_edges([("a", "x"), ("a", "nobody")])
    assert store.everything() == before


@pytest.mark.req("R003-23", "R003-30")
def test_removing_the_last_edge_makes_an_armed_child_ready_and_an_unarmed_one_not(store):
    store.put("parent", armed=False)
    store.put("armed", needs=["parent"])
    store.put("unarmed", needs=["parent"], armed=False)
    store.remove_edges([("parent", "armed"), ("parent", "unarmed")])
    assert store.statuses("armed", "unarmed") == ["ready", "waiting"]
    assert (store.edges("armed"), store.edges("unarmed")) == ([], [])
    assert store.arm("unarmed").status == "ready"


@pytest.mark.req("R003-23")
def test_removing_one_of_several_edges_keeps_the_child_waiting(store):
    store.put("a", "b", armed=False)
    store.put("done")
    store.put("child", needs=["a", "b", "done"])
    store.run_through("done")
    store.remove_edges([("a", "child")])
    assert (store.status("child"), store.get("child").open_needs) == ("waiting", 1)
    store.remove_edges([("b", "child")])
    assert store.status("child") == "ready"


def test_removing_an_edge_that_is_not_there_changes_nothing(store):
    store.put("a", "b", armed=False)
    before = store.everything()
    store.remove_edges([("a", "b")])
    assert store.everything() == before
    with pytest.raises(NotFound):
        store.remove_edges([("a", "nobody")])


def test_edges_removed_together_may_release_one_another(store):
    """The first child ends at once, being empty, and that would have released the second."""
    store.put("p", armed=False)
    store.put("a", needs=["p"], spec=None)
    store.put("b", needs=["p", "a"])
    store.remove_edges([("p", "a"), ("p", "b")])
    assert store.statuses("a", "b") == ["succeeded", "ready"]
    assert store.signals("b") == [None, "satisfy"]


def test_graphs_that_are_joined_and_parted_still_release_their_tasks(store):
    store.put(*"abcdef", armed=False)
    store.add_edges([("a", "b")])
    store.add_edges([("d", "e")])
    store.add_edges([("b", "d")])
    store.add_edges([("e", "f"), ("c", "f")])
    store.remove_edges([("b", "d")])
    store.put("late", needs=["f", "b"])
    store.arm("a")
    store.arm("c")
    assert store.status("d") == "waiting"
    store.arm("d")
    store.run_through("a", "c", "d", "b", "e", "f")
    assert store.status("late") == "ready"


@pytest.mark.req("R003-61")
@pytest.mark.parametrize("status", NOT_WAITING)
def test_only_a_waiting_task_can_be_armed_or_amended(store, status):
    bring_to(store, "a", status)
    before = store.everything()
    for change in (lambda: store.arm("a"), lambda: store.amend("a", Amendment(max_retries=1))):
        with pytest.raises(WrongStatus) as refused:
            change()
        assert (refused.value.status, refused.value.allowed) == (status, ("waiting",))
    assert store.everything() == before
    with pytest.raises(NotFound):
        store.arm("nobody")
    with pytest.raises(NotFound):
        store.amend("nobody", Amendment())


def test_arming_a_task_that_depends_on_others_leaves_it_waiting_for_them(store):
    store.put("a")
    store.put("b", needs=["a"], armed=False)
    view = store.arm("b")
    assert (view.status, view.armed) == ("waiting", True)
    store.run_through("a")
    assert store.status("b") == "ready"


def test_an_unarmed_task_is_made_ready_by_the_last_it_waits_for(store):
    store.put("a", "b", armed=False)
    store.add_edges([("a", "b")])
    store.arm("a")
    store.run_through("a")
    assert store.status("b") == "ready"


@pytest.mark.req("R003-12")
def test_a_waiting_task_can_be_amended_and_the_same_value_again_is_accepted(store, clock):
    store.put("a", armed=False, spec=None, command="old", name="n", max_retries=1)
    clock.advance(1)
    new = Amendment(
        name="m",
        command="new",
        max_retries=2,
        estimated_runtime_seconds=7.5,
        max_termination_seconds=3.0,
        resources=Resources(cpu=2, memory_bytes=5, gpu=1, labels=frozenset({"x"})),
    )
    for _ in range(2):
        view = store.amend("a", new)
        assert (view.name, view.command, view.max_retries) == ("m", "new", 2)
        assert (view.estimated_runtime_seconds, view.max_termination_seconds) == (7.5, 3.0)
        assert view.resources == new.resources
    assert view.updated_at == clock.now
    kept = store.amend("a", Amendment(max_retries=0))
    assert (kept.max_retries, kept.command, kept.resources) == (0, "new", new.resources)
    assert store.amend("a", Amendment(resources=Resources())).resources == Resources()
    assert store.signals("a") == [None]
    assert store.arm("a").status == "ready"
    assert store.take()[0].task.command == "new"


@pytest.mark.req("R003-12", "R003-7")
@pytest.mark.parametrize(
    "bad",
    [
        Amendment(name=""),
        Amendment(max_retries=-1),
        Amendment(estimated_runtime_seconds=0),
        Amendment(max_termination_seconds=-1),
        Amendment(resources=Resources(cpu=-1)),
        Amendment(command="nul \0"),
    ],
)
def test_an_amendment_keeps_the_rules_of_a_new_task(store, bad):
    store.put("a", armed=False)
    before = store.everything()
    with pytest.raises(InvalidTask):
        store.amend("a", bad)
    with pytest.raises(PayloadTooLarge):
        store.amend("a", Amendment(command="x" * (256 * 1024 + 1)))
    assert store.everything() == before


@pytest.mark.req("R003-12")
def test_a_value_that_no_task_may_have_is_refused_whatever_the_status_of_the_task(store):
    """A server looks at values first; every store refuses the same way."""
    store.put("a")
    store.run_through("a")
    with pytest.raises(InvalidTask):
        store.amend("a", Amendment(max_retries=-1))


@pytest.mark.req("R003-1")
def test_an_amended_name_is_unique_too(store):
    store.put("a", armed=False)
    store.put("b", name="taken")
    with pytest.raises(Duplicate) as refused:
        store.amend("a", Amendment(name="taken"))
    assert (refused.value.kind, refused.value.holder) == ("name", "b")
    assert store.get("a").name is None


def test_a_task_with_a_handler_gets_no_command_beside_it(store):
    store.put("a", armed=False, handler="f", spec=None)
    with pytest.raises(InvalidTask) as refused:
        store.amend("a", Amendment(command="true"))
    assert "both a command and a handler" in str(refused.value)
    assert store.get("a").command is None


@pytest.mark.req("R003-20")
def test_an_empty_task_that_gets_a_command_executes_it(store):
    store.put("a", armed=False, spec=None)
    store.amend("a", Amendment(command="true"))
    assert store.arm("a").status == "ready"


def test_the_same_submission_is_the_same_task_after_an_amendment(store):
    task = new_task("a", armed=False, max_retries=1)
    store.submit([task])
    store.amend("a", Amendment(max_retries=5))
    assert not store.submit([task])[0].created
    assert store.get("a").max_retries == 5
