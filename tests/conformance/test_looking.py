"""Looking at tasks, queues and workers without changing anything."""

import pytest

from tests.conformance.door import new_task
from tidewheel.core.queue.lease import LeaseAnswer
from tidewheel.core.queue.requests import KeysetPage, QueueSettings, TaskFilter
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.status import Status
from tidewheel.errors import BadSetting, NotFound
from tidewheel.store.operations import queries


@pytest.mark.req("R002-28")
def test_many_tasks_are_looked_at_in_one_call_in_the_order_asked_for(store):
    ids = [f"t{n}" for n in range(1500)]
    store.put(*ids)
    store.run_through("t7")
    assert [view.id for view in store.get_many(ids[::-1])] == ids[::-1]
    assert store.get_many(["t7", "t3", "t7"]) == [store.get(one) for one in ("t7", "t3", "t7")]
    assert store.get_many([]) == []
    with pytest.raises(NotFound, match="'nobody'"):
        store.get_many(["t1", "nobody", "nowhere"])
    with pytest.raises(BadSetting):
        store.get_many(["t1"] * 10_001)


@pytest.mark.req("R002-28")
def test_an_unknown_id_is_said_to_be_unknown(store):
    store.put("a")
    looks = (store.get, store.history, store.attempts, store.outputs, store.usage, store.edges)
    for look in looks:
        for name in ("nobody", "A", "a%", ""):
            with pytest.raises(NotFound) as refused:
                look(name)
            assert str(refused.value) == f"there is no task {name!r} in this store"


@pytest.mark.req("R002-28")
@pytest.mark.parametrize("name", ["nul \0", "half \ud800", "x" * 100_000])
def test_a_name_that_no_task_can_have_is_nobodys(store, name):
    store.put("a")
    store.put("free", armed=False)
    held = store.hold("a")
    for ask in (
        lambda: store.get(name),
        lambda: store.cancel(["a", name]),
        lambda: store.arm(name),
        lambda: store.claim_by_id(name, held.worker),
        lambda: store.add_edges([("free", name)]),
        lambda: store.finish(held.rename(name, held.worker, 1)),
    ):
        with pytest.raises(NotFound):
            ask()
    assert store.listed(queue=name) == store.listed(tag=name) == store.peek(name, 1) == []
    assert store.taken(queue=name, worker=held.worker) == []
    assert store.beat(held.rename(name, held.worker, 1)) is LeaseAnswer.LOST
    assert store.status("a") == "running"


@pytest.mark.req("R002-29")
def test_lists_filter_by_anything_in_any_combination(store):
    store.put("q1", "q2", tag="t")
    store.put("p1", queue="p", tag="t", name="the one")
    store.put(
        "p2", queue="p", estimated_runtime_seconds=60, resources=Resources(memory_bytes=9)
    )
    worker = store.hire()
    store.hold("q1", worker)
    store.finish(store.hold("p1", worker))
    store.cancel(["q2"])
    assert store.listed() == ["p2", "p1", "q2", "q1"]
    assert store.listed(statuses=(Status.READY,)) == ["p2"]
    assert store.listed(statuses=(Status.CANCELLED, Status.SUCCEEDED)) == ["p1", "q2"]
    assert store.listed(statuses=()) == []
    assert store.listed(queue="q") == ["q2", "q1"]
    assert store.listed(worker=worker) == ["p1", "q1"]
    assert store.listed(worker=worker, queue="p") == ["p1"]
    assert store.listed(worker=worker, queue="p", statuses=(Status.RUNNING,)) == []
    assert store.listed(tag="t") == ["p1", "q2", "q1"]
    assert store.listed(tag="t", statuses=(Status.RUNNING, Status.CANCELLED)) == ["q2", "q1"]
    assert store.listed(name="the one") == ["p1"]
    assert store.listed(name="the one", queue="q") == []
    assert store.listed(tag="%") == store.listed(queue="_") == store.listed(worker="w") == []


@pytest.mark.req("R002-29", "R003-13")
def test_lists_filter_by_expected_run_time_and_memory(store):
    for name, seconds, memory in [("a", 10, 100), ("b", 60, 200), ("c", None, 300)]:
        store.put(
            name,
            estimated_runtime_seconds=seconds,
            resources=Resources(memory_bytes=memory),
        )
    assert store.listed(estimated_runtime_seconds_max=60) == ["b", "a"]
    assert store.listed(estimated_runtime_seconds_max=59) == ["a"]
    assert store.listed(memory_bytes_min=200) == ["c", "b"]
    assert store.listed(memory_bytes_min=200, estimated_runtime_seconds_max=60) == ["b"]
    assert store.listed(memory_bytes_min=200, statuses=(Status.FAILED,)) == []


def test_lists_filter_by_patterns_of_ids_and_names_and_by_states(store):
    store.put("img-1", "img-2", "Img-3", "cal-1", queue="p")
    store.put("x", name="img-named")
    store.run_through("img-1")
    store.cancel(["img-2"])
    assert store.listed(matching="img-*") == ["x", "Img-3", "img-2", "img-1"]
    assert store.listed(matching="img-?") == ["Img-3", "img-2", "img-1"]
    assert store.listed(matching="-1") == ["cal-1", "img-1"]
    assert store.listed(matching="img:succ,canc") == ["img-2", "img-1"]
    assert store.listed(matching=":ready", queue="p") == ["cal-1", "Img-3"]
    assert store.listed(matching=":ready", statuses=(Status.CANCELLED,)) == []
    assert store.listed(matching="=img-named") == ["x"]
    assert store.listed(matching="=img-3") == []
    assert store.listed(matching="=img-1", statuses=(Status.READY,)) == []
    assert store.listed(matching="=img-1", queue="p") == ["img-1"]
    assert store.listed(matching="%") == store.listed(matching="_") == []
    with pytest.raises(BadSetting, match="state is 'lost'"):
        store.listed(matching=":lost")


def test_a_pattern_looks_at_so_many_tasks_and_says_where_to_go_on(store):
    store.put("needle", "other")
    for part in range(21):
        store.put(*(f"hay-{part}-{n}" for n in range(1000)))
    which, first = (
        TaskFilter(matching="needle"),
        store.list_tasks(TaskFilter(matching="needle"), KeysetPage(count=5)),
    )
    assert list(first) == [] and first.next is not None
    found, before = [], first.next
    while before is not None:
        page = store.list_tasks(which, KeysetPage(count=5, before=before))
        found += [one.id for one in page]
        before = page.next
    assert found == ["needle"]
    some = store.list_tasks(TaskFilter(matching="hay-*"), KeysetPage(count=5))
    assert (len(some), some.next) == (5, some[-1].seq)


def test_a_pattern_cancels_what_it_fits_and_has_not_ended_oldest_first(store):
    store.put("img-1", "cal-1", "img-2", "img-3", "img-4")
    store.run_through("img-1")
    done = store.cancel_matching(TaskFilter(matching="img-*"), count_max=2)
    assert [one.id for one in done] == ["img-2", "img-3"]
    done = store.cancel_matching(TaskFilter(matching="img:ready"))
    assert [one.id for one in done] == ["img-4"]
    assert store.cancel_matching(TaskFilter(matching=":succeeded")) == []
    assert (store.status("img-1"), store.status("cal-1")) == ("succeeded", "ready")


@pytest.mark.req("R002-29")
def test_a_list_holds_a_hundred_unless_told_otherwise(store):
    store.put(*(f"t{n:03}" for n in range(120)))
    page = store.list_tasks(TaskFilter(), KeysetPage())
    assert [view.id for view in page] == [f"t{n:03}" for n in range(119, 19, -1)]
    assert len(store.list_tasks(TaskFilter(), KeysetPage(count=7))) == 7


@pytest.mark.parametrize(
    "filter_",
    [{}, {"queue": "q"}, {"tag": "t"}, {"statuses": (Status.READY, Status.CANCELLED)}],
)
def test_pages_by_key_lose_and_repeat_nothing_while_tasks_come(store, filter_):
    store.put(*(f"t{n}" for n in range(10)), tag="t")
    store.cancel(["t3", "t4"])
    seen, before = [], None
    while page := store.list_tasks(TaskFilter(**filter_), KeysetPage(count=3, before=before)):
        seen += [view.id for view in page]
        before = page[-1].seq
        store.put(f"new{before}", tag="t")
    assert seen == [f"t{n}" for n in range(9, -1, -1)]


@pytest.mark.parametrize("count", [0, -1, 10_001])
def test_a_page_of_no_or_endless_length_is_refused(store, count):
    store.put("a")
    for look in (
        lambda: store.list_tasks(TaskFilter(), KeysetPage(count=count)),
        lambda: store.peek("q", count),
        lambda: store.history("a", count=count),
        lambda: store.cancel_matching(TaskFilter(), count_max=count),
        lambda: store.expired_tasks(0, count),
        lambda: store.lapse(count_max=count),
    ):
        with pytest.raises(BadSetting) as refused:
            look()
        assert "expected 1 to 10000" in str(refused.value)
    assert store.status("a") == "ready"


@pytest.mark.req("R002-90")
def test_peeking_shows_what_comes_next_and_takes_nothing(store, clock):
    store.put("low", priority=1)
    store.put("high", priority=9)
    store.put("delayed", delay_seconds=60, priority=99)
    store.put("waiting", armed=False)
    store.put("elsewhere", queue="p")
    before = store.everything()
    for _ in range(2):
        assert [view.id for view in store.peek("q", 9)] == ["high", "low"]
    assert [view.id for view in store.peek("q", 1)] == ["high"]
    assert store.peek("nothing", 9) == []
    assert store.everything() == before
    clock.advance(60)
    assert [view.id for view in store.peek("q", 9)] == ["delayed", "high", "low"]
    assert store.peek("q", 1)[0] == store.get("delayed")
    assert store.taken(9) == ["delayed", "high", "low"]


@pytest.mark.req("R002-22")
def test_history_is_complete_and_in_order_however_long_it_grows(store, clock):
    store.put("a")
    worker = store.hire()
    for _ in range(60):
        clock.advance(1)
        held = store.hold("a", worker)
        store.beat(held, 0.5)
        store.finish(held, "yielded")
    entries = store.history("a", count=10_000)
    assert len(entries) == 121
    assert [entry.signal for entry in entries] == [None] + ["claim", "yield"] * 60
    assert [entry.seq for entry in entries] == sorted({entry.seq for entry in entries})
    assert [entry.attempt for entry in entries[1::2]] == list(range(1, 61))
    assert [entry.progress for entry in entries[2::2]] == [0.5] * 60
    assert len(store.history("a")) == 100
    pages, after = [], 0
    while page := store.history("a", after=after, count=50):
        pages.append(len(page))
        after = page[-1].seq
    assert pages == [50, 50, 21]


@pytest.mark.req("R002-17")
def test_every_step_has_its_time_and_moves_the_time_of_the_last_update(store, clock):
    store.put("a", max_retries=1)
    moments = [clock.now]

    def tick():
        clock.advance(1)
        moments.append(clock.now)

    tick()
    held = store.hold("a")
    tick()
    store.finish(held, "failed")
    tick()
    held = store.hold("a")
    tick()
    store.cancel(["a"])
    tick()
    store.finish(held)
    assert [entry.at for entry in store.history("a")] == moments
    assert store.get("a").updated_at == moments[-1]
    assert store.get("a").created_at == moments[0]


@pytest.mark.req("R002-88")
def test_queues_show_how_much_waits_and_for_how_long(store, clock):
    store.configure_queue("set", QueueSettings(lease_seconds=5))
    store.put("a", "b", "c")
    clock.advance(30)
    store.put("d", "ended")
    store.put("delayed", delay_seconds=60)
    store.put("w", armed=False)
    store.put("e", queue="p", armed=False)
    store.run_through("ended")
    store.hold("a")
    store.hold("b")
    store.cancel(["b"])
    clock.advance(12)
    p, q, quiet = store.queues()
    assert [view.queue for view in (p, q, quiet)] == ["p", "q", "set"]
    assert q.counts == {"waiting": 1, "ready": 3, "running": 1, "cancelling": 1}
    assert (q.oldest_ready_seconds, p.oldest_ready_seconds) == (42, None)
    assert (p.counts, p.settings) == ({"waiting": 1}, QueueSettings())
    assert (quiet.counts, quiet.settings.lease_seconds) == ({}, 5)
    assert quiet.oldest_ready_seconds is None


@pytest.mark.req("R002-88")
def test_queues_tell_how_many_tasks_failed_and_whether_older_ones_are_not_counted(
    store, monkeypatch
):
    store.put("long-ago", queue="idle", max_retries=0)
    store.put("a", "b", "good", max_retries=0)
    for task in ("long-ago", "a", "b"):
        store.finish(store.hold(task), "failed")
    store.run_through("good")
    # It is listed for its failure, though none of the newest tasks is in it.
    monkeypatch.setattr(queries, "RECENT_TASKS", 1)
    told = [(one.queue, one.failed, one.failed_more) for one in store.queues()]
    assert told == [("idle", 1, False), ("q", 2, False)]
    monkeypatch.setattr(queries, "FAILED_TASKS", 2)
    assert sum(one.failed for one in store.queues()) == 2
    assert all(one.failed_more for one in store.queues())


@pytest.mark.req("R002-88")
def test_workers_show_what_they_offer_and_hold(store, clock):
    capacity = Resources(cpu=2.5, memory_bytes=2**40, gpu=1, labels=frozenset({"x", "y"}))
    one = store.hire("one", queues=("q", "p"), slots=3, capacity=capacity)
    clock.advance(5)
    two = store.hire("two")
    store.put("a", "b", "c")
    held = store.take(2, worker=one)[0]
    clock.advance(5)
    store.beat(held)
    store.stop_worker(two)
    newer, older = store.workers(live_only=False)
    assert (older.id, older.name, older.queues, older.slots) == (one, "one", ("q", "p"), 3)
    assert (older.capacity, older.leases, older.process.host) == (capacity, 2, "tern")
    assert (older.registered_at, older.seen_at) == (clock.now - 10, clock.now)
    assert (older.stopped_at, newer.stopped_at, newer.id) == (None, clock.now, two)
    assert [worker.id for worker in store.workers()] == [one]


@pytest.mark.req("R002-88")
def test_a_worker_says_why_it_takes_no_tasks(store):
    one, other = store.hire("one"), store.hire("other")
    store.set_trouble(one, "the disk is full")
    assert [worker.trouble for worker in store.workers()] == [None, "the disk is full"]
    store.set_trouble(one, None)
    assert [worker.trouble for worker in store.workers()] == [None, None]
    with pytest.raises(NotFound):
        store.set_trouble("worker-999", "nobody's")
    assert other == store.workers()[0].id


def test_a_store_has_an_identity_that_stays(world):
    one, other = world.open(), world.open()
    assert one.store_id() == other.store_id() != ""


@pytest.mark.req("R002-10")
def test_ids_are_unique_over_all_queues_so_queue_and_id_together_name_a_task(store):
    store.put("a", queue="p")
    answers = store.submit([new_task("a", queue="q")], atomic=False)
    assert answers[0].refused is not None
    assert (store.get("a").queue, store.listed(queue="p")) == ("p", ["a"])


@pytest.mark.req("R002-9")
def test_queues_that_hold_ready_tasks_are_known_by_name(store):
    assert store.ready_queues() == {}
    store.put("a", queue="run:b")
    store.put("b", "c", queue="run:a/1")
    store.put("later", queue="delayed", delay_seconds=1000.0)
    store.put("held", queue="elsewhere", armed=False)
    store.configure_queue("set", QueueSettings())
    assert sorted(store.ready_queues()) == ["delayed", "run:a/1", "run:b"]
    store.run_through("a")
    store.hold("b")
    assert sorted(store.ready_queues()) == ["delayed", "run:a/1"]


@pytest.mark.req("R004-55")
def test_queues_that_hold_ready_tasks_tell_their_highest_priority(store):
    for number, priority in enumerate((7, 100, 0)):
        store.put(f"a{number}", queue="run:a", priority=priority)
    store.put("b", queue="run:b", priority=1, delay_seconds=1000.0)
    store.put("c", queue="run:b", priority=0)
    assert store.ready_queues() == {"run:a": 100, "run:b": 1}
    store.run_through("a1")
    assert store.ready_queues() == {"run:a": 7, "run:b": 1}
