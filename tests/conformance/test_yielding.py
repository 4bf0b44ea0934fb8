"""Giving a lease back, and taking over the lease of a worker that is gone."""

import pytest

from tests.conformance.door import PROCESS, messages
from tidewheel.core.queue.lease import LeaseAnswer
from tidewheel.core.queue.requests import HostProcess, QueueSettings
from tidewheel.errors import LeaseLost, NotFound, WrongStatus


@pytest.mark.req("R002-69")
def test_only_the_owner_of_a_running_task_can_yield_it(store):
    store.put("a", "b")
    held = store.hold("a")
    with pytest.raises(LeaseLost):
        store.finish(held.by(store.hire()), "yielded")
    with pytest.raises(LeaseLost):
        store.finish(held.again(2), "yielded")
    assert store.status("a") == "running"
    done = store.hold("b")
    store.finish(done)
    with pytest.raises(WrongStatus):
        store.finish(done, "yielded")
    assert store.status("b") == "succeeded"


@pytest.mark.req("R002-70", "R002-71", "R002-20", "R002-21")
def test_a_yielded_task_is_claimable_at_once_and_its_progress_is_recorded(store, clock):
    store.put("a", max_retries=3)
    held = store.hold("a")
    store.beat(held, 0.1)
    clock.advance(3)
    assert store.finish(held, "yielded") == "ready"
    view = store.get("a")
    assert (view.status, view.owner, view.deadline_at) == ("ready", None, None)
    assert (view.progress, view.due_at) == (0.0, None)
    entry = store.history("a")[-1]
    assert (entry.signal, entry.worker, entry.progress) == ("yield", held.worker, 0.1)
    assert entry.at == clock.now
    assert store.taken() == ["a"]


@pytest.mark.req("R002-72")
def test_no_lapse_follows_a_yield_and_nothing_is_counted(store, clock):
    store.put("a")
    store.finish(store.hold("a"), "yielded")
    clock.advance(3600)
    assert store.lapse() == []
    assert store.signals("a") == [None, "claim", "yield"]
    view = store.get("a")
    assert (view.failures, view.lapses, view.attempt) == (0, 0, 1)


def test_a_yielded_task_may_go_round_for_ever(store):
    store.put("a", max_lapses=0)
    for _ in range(20):
        store.finish(store.hold("a"), "yielded")
    assert store.finish(store.hold("a")) == "succeeded"
    assert store.get("a").attempt == 21


def test_a_worker_of_the_same_host_finds_what_its_predecessor_held(store, clock):
    store.configure_queue("q", QueueSettings(fence_kill=True))
    store.put("a", "b", "c", spec="[1]")
    store.put("elsewhere", "long ago")
    gone = store.hire()
    first, second = store.take(2, worker=gone, lease_seconds=30)
    store.tell(second, messages=messages("one", "two"))
    store.finish(first)
    store.hold("elsewhere", store.hire(process=_process(host="gull")))
    store.hold("long ago", store.hire(process=_process(boot_id="boot-0")))
    clock.advance(5)
    (orphan,) = store.orphans("tern", "boot-1")
    assert (orphan.task.id, orphan.owner, orphan.messages) == ("b", gone, 2)
    assert orphan.process == PROCESS
    assert (orphan.task.attempt, orphan.task.spec) == (1, "[1]")
    assert (orphan.task.lease_seconds, orphan.task.fence_kill) == (30, True)
    assert store.orphans("tern", "boot-2") == []
    assert store.orphans("nowhere", "boot-1") == []


def _process(**fields):
    known = {"host": "tern", "boot_id": "boot-1", "pid": 4711, "started": 1234.0}
    return HostProcess(**(known | fields))


@pytest.mark.parametrize("status", ["running", "cancelling"])
def test_an_adopted_lease_keeps_its_attempt_and_gets_a_new_owner_and_deadline(
    store, clock, status
):
    store.put("a")
    old = store.hold("a", lease_seconds=30)
    store.beat(old, 0.5)
    store.tell(old, messages=messages("one"))
    if status == "cancelling":
        store.cancel(["a"])
    clock.advance(20)
    heir = store.hire("heir")
    claimed = store.adopt(old.holder, heir)
    assert (claimed.id, claimed.attempt, claimed.lease_seconds) == ("a", 1, 30)
    assert claimed.deadline_at == clock.now + 30
    view = store.get("a")
    assert (view.status, view.owner, view.attempt) == (status, heir, 1)
    assert (view.deadline_at, view.progress) == (clock.now + 30, 0.5)
    assert store.beat(old) is LeaseAnswer.LOST
    new = old.by(heir)
    assert store.beat(new) is (LeaseAnswer.GO_ON if status == "running" else LeaseAnswer.CANCEL)
    store.tell(new, messages=messages("two", first=2))
    entry = store.history("a")[-1]
    assert (entry.signal, entry.worker, entry.attempt) == ("adopt", heir, 1)
    assert store.finish(new) == ("succeeded" if status == "running" else "cancelled")
    assert [attempt.worker for attempt in store.attempts("a")] == [heir]


def test_only_a_held_lease_can_be_adopted_and_only_by_a_known_worker(store):
    store.put("a", "done")
    held = store.hold("a")
    heir = store.hire()
    finished = store.hold("done")
    store.finish(finished)
    before = store.everything()
    with pytest.raises(LeaseLost):
        store.adopt(held.again(2).holder, heir)
    with pytest.raises(LeaseLost):
        store.adopt(held.by(heir).holder, heir)
    with pytest.raises(WrongStatus):
        store.adopt(finished.holder, heir)
    with pytest.raises(NotFound) as refused:
        store.adopt(held.holder, "worker-999")
    assert refused.value.kind == "worker"
    assert store.everything() == before
    store.delete(["done"])
    with pytest.raises(NotFound):
        store.adopt(finished.holder, heir)
