"""Removing what ended long ago, and nothing else."""

import pytest

from tidewheel.errors import NotFound

DAY = 86_400.0


@pytest.mark.req("R002-74", "R002-78")
def test_ended_tasks_older_than_the_retention_are_found_oldest_first(store, clock):
    store.put("b", "a", "c", "young")
    store.run_through("b")
    clock.advance(1)
    store.run_through("a", ending="aborted")
    store.cancel(["c"])
    clock.advance(DAY)
    store.run_through("young")
    clock.advance(1)
    found = store.expired_tasks(DAY, 10)
    assert [(view.id, view.status.value) for view in found] == [
        ("b", "succeeded"),
        ("a", "failed"),
        ("c", "cancelled"),
    ]
    assert found[0] == store.get("b")
    assert [view.id for view in store.expired_tasks(DAY, 2)] == ["b", "a"]
    assert store.delete([view.id for view in found]) == 3
    assert store.listed() == ["young"]


@pytest.mark.req("R002-74")
def test_a_task_is_kept_through_the_last_moment_of_the_retention(store, clock):
    store.put("a")
    store.run_through("a")
    clock.advance(DAY)
    assert store.expired_tasks(DAY, 10) == []
    clock.advance(0.001)
    assert [view.id for view in store.expired_tasks(DAY, 10)] == ["a"]


@pytest.mark.req("R002-75", "R002-76")
def test_what_has_not_ended_is_never_removed_however_old(store, clock):
    store.put("waiting", armed=False)
    store.put("ready", "running", "cancelling")
    store.hold("running")
    store.hold("cancelling")
    store.cancel(["cancelling"])
    clock.advance(10_000 * DAY)
    assert store.expired_tasks(0, 100) == []
    before = store.everything()
    names = ["waiting", "ready", "running", "cancelling"]
    assert store.delete([*names, "nobody"]) == 0
    assert store.everything() == before


@pytest.mark.req("R002-75")
@pytest.mark.parametrize("child", ["waiting", "ready", "running", "cancelling"])
def test_a_task_that_something_live_depends_on_is_kept(store, clock, child):
    store.put("parent", "other")
    needs = ["parent", "other"] if child == "waiting" else ["parent"]
    store.put("child", needs=needs)
    store.run_through("parent")
    held = None
    if child in ("running", "cancelling"):
        held = store.hold("child")
    if child == "cancelling":
        store.cancel(["child"])
    assert store.status("child") == child
    clock.advance(DAY)
    assert store.expired_tasks(0, 100) == []
    assert store.delete(["parent"]) == 0
    assert store.status("parent") == "succeeded"
    if held:
        store.finish(held)
        clock.advance(1)
        assert [view.id for view in store.expired_tasks(0, 9)] == ["parent", "child"]
        assert store.delete(["parent", "child"]) == 2


def test_everything_that_belongs_to_a_removed_task_goes_with_it(store):
    store.put("a", name="n", unique_key="k")
    store.put("b", needs=["a"])
    store.run_through("a", "b")
    assert store.delete(["a"]) == 1
    for look in (store.get, store.history, store.attempts, store.outputs, store.usage):
        with pytest.raises(NotFound):
            look("a")
    assert store.edges("b") == []
    assert store.status("b") == "succeeded"
    store.put("a", name="n", unique_key="k")
    assert store.signals("a") == [None]
    assert store.attempts("a") == []


@pytest.mark.req("R002-77")
def test_removal_goes_in_batches_while_others_claim(world, clock):
    monitor, worker = world.open(), world.open()
    monitor.put(*(f"old{n}" for n in range(5)))
    for n in range(5):
        monitor.run_through(f"old{n}")
    monitor.put(*(f"new{n}" for n in range(3)))
    clock.advance(DAY)
    removed, claimed = [], []
    while batch := monitor.expired_tasks(0, 2):
        removed.append(monitor.delete([view.id for view in batch]))
        claimed += worker.taken()
    assert removed == [2, 2, 1]
    assert claimed == ["new0", "new1", "new2"]


@pytest.mark.req("R002-75")
def test_a_deletion_that_is_executed_late_spares_the_next_task_of_that_id(store, clock):
    store.put("a")
    store.run_through("a")
    clock.advance(DAY)
    [old] = store.expired_tasks(DAY / 2, 10)
    assert store.delete_tasks([old.seq]) == 1
    store.put("a")
    store.run_through("a")
    before = store.everything()
    assert store.delete_tasks([old.seq]) == 0
    clock.advance(DAY)  # not even when it has grown old, too: nobody has written it down yet
    assert store.delete_tasks([old.seq]) == 0
    assert store.everything() == before


def test_deleting_twice_deletes_once(store):
    store.put("a")
    store.run_through("a")
    assert store.delete(["a", "a"]) == 1
    assert store.delete(["a"]) == 0
    assert store.delete([]) == 0


def test_workers_that_stopped_or_fell_silent_long_ago_are_forgotten(store, clock):
    stopped, silent, holding, alive = (store.hire(name) for name in "abcd")
    store.put("a", "b")
    store.hold("a", holding)
    held = store.hold("b", alive)
    store.stop_worker(stopped)
    clock.advance(DAY)
    store.beat(held)
    assert store.delete_workers(DAY, 10) == 0
    clock.advance(0.001)
    assert store.delete_workers(DAY, 1) == 1
    assert [one.id for one in store.workers(live_only=False)] == [alive, holding, silent]
    assert store.delete_workers(DAY, 10) == 1
    assert [one.id for one in store.workers(live_only=False)] == [alive, holding]
    assert store.hire() not in (stopped, silent, holding, alive)
    assert store.verify() == []
