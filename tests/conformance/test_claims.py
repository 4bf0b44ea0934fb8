"""Taking leases: in which order, how many, for whom, how long, and what is held back."""

import pytest

from tests.conformance.door import new_task
from tidewheel.core.queue.requests import ClaimRequest, QueueSettings
from tidewheel.core.queue.resources import Resources
from tidewheel.errors import BadSetting, NotDue, NotFound, WrongStatus


@pytest.mark.req("R002-13", "R002-32")
def test_a_hundred_goes_before_fifty_before_nine(store):
    for priority in (9, 100, 50, 0, 4294967295):
        store.put(f"p{priority}", priority=priority)
    assert store.taken(9) == ["p4294967295", "p100", "p50", "p9", "p0"]


@pytest.mark.req("R002-32")
def test_of_one_priority_the_oldest_goes_first_one_by_one_or_together(store, clock):
    for name in ("z", "a", "m", "b"):
        store.put(name)
        clock.advance(1)
    worker = store.hire()
    assert store.taken(worker=worker) == ["z"]
    assert store.taken(2, worker=worker) == ["a", "m"]
    assert store.taken(9, worker=worker) == ["b"]


def test_within_one_submission_the_first_is_the_oldest(store):
    store.put(*"gacbfed")
    assert store.taken(9) == list("gacbfed")


def test_a_task_that_comes_back_keeps_its_place(store):
    store.put("old", "young", max_retries=1)
    store.finish(store.hold("old"), "yielded")
    store.finish(store.hold("old"), "failed")
    assert store.taken(2) == ["old", "young"]


@pytest.mark.req("R002-33", "R002-31")
def test_a_claim_of_n_takes_at_most_n_and_nothing_is_no_error(store):
    store.put(*"abc")
    worker = store.hire()
    assert store.taken(2, worker=worker) == ["a", "b"]
    assert store.taken(2, worker=worker) == ["c"]
    assert store.taken(2, worker=worker) == []
    assert store.taken(2, worker=worker, queue="never heard of") == []


@pytest.mark.req("R002-8", "R002-9")
def test_queues_are_told_apart_letter_by_letter(store):
    names = ["q", "Q", "q_", "q%", "%", "_", "qq", "q q", "*"]
    store.submit([new_task(f"in {name}", queue=name) for name in names])
    worker = store.hire()
    for name in names:
        assert store.taken(9, worker=worker, queue=name) == [f"in {name}"]


@pytest.mark.req("R002-38", "R002-40", "R002-17", "R002-21", "R003-69")
def test_a_claim_makes_running_with_owner_deadline_and_attempt(store, clock):
    store.put("a", priority=7, timeout_seconds=99.0, command="true", spec=None)
    clock.advance(5)
    worker = store.hire()
    held = store.take(worker=worker)[0]
    assert (held.task.attempt, held.task.deadline_at) == (1, clock.now + 10)
    assert (held.task.lease_seconds, held.task.fence_kill) == (10, False)
    assert (held.task.queue, held.task.priority, held.task.command) == ("q", 7, "true")
    assert (held.task.timeout_seconds, held.task.max_termination_seconds) == (99, 10)
    view = store.get("a")
    assert (view.status, view.owner, view.progress) == ("running", worker, 0.0)
    assert (view.deadline_at, view.updated_at) == (clock.now + 10, clock.now)
    assert (view.attempt, view.seq) == (1, held.task.seq)
    assigned = store.history("a")[-1]
    assert (assigned.signal, assigned.from_status, assigned.to_status) == (
        "claim",
        "ready",
        "running",
    )
    assert (assigned.worker, assigned.at, assigned.attempt) == (worker, clock.now, 1)


@pytest.mark.req("R002-39")
def test_a_lease_lasts_ten_seconds_or_as_the_queue_or_as_the_call_says(store, clock):
    store.configure_queue("slow", QueueSettings(lease_seconds=60, fence_kill=True))
    store.put("a", "b", queue="slow")
    store.put("c", "d")
    worker = store.hire()
    slow = store.take(worker=worker, queue="slow")[0].task
    assert (slow.lease_seconds, slow.deadline_at, slow.fence_kill) == (60, clock.now + 60, True)
    for held in (
        store.take(worker=worker, queue="slow", lease_seconds=2.5)[0],
        store.hold("c", worker, lease_seconds=2.5),
    ):
        assert (held.task.lease_seconds, held.task.deadline_at) == (2.5, clock.now + 2.5)
        assert store.get(held.id).deadline_at == clock.now + 2.5
    assert store.hold("d", worker).task.lease_seconds == 10


@pytest.mark.req("R002-43")
@pytest.mark.parametrize("seconds", [0, -1, 86_401, float("nan")])
def test_a_lease_of_no_or_endless_length_is_refused(store, seconds):
    store.put("a")
    before = store.everything()
    worker = store.hire()
    for attempt in (store.take, lambda **given: store.hold("a", **given)):
        with pytest.raises(BadSetting) as refused:
            attempt(worker=worker, lease_seconds=seconds)
        assert str(refused.value).endswith("expected more than 0, up to 86400")
    assert store.everything()["tasks"] == before["tasks"]


@pytest.mark.parametrize("count", [0, -1, 10_001])
def test_a_claim_of_no_or_endless_number_is_refused(store, count):
    store.put("a")
    with pytest.raises(BadSetting) as refused:
        store.take(count)
    assert str(refused.value) == f"count is {count}; expected 1 to 10000"
    assert store.status("a") == "ready"


@pytest.mark.req("R002-42")
@pytest.mark.parametrize(
    "worker",
    ["", "worker-999", "worker-", "nobody", "worker-1x", "worker-01", "worker-" + "9" * 20],
)
def test_a_claim_without_a_registered_worker_is_refused(store, worker):
    store.put("a")
    store.hire()
    for attempt in (
        lambda: store.claim_by_id("a", worker),
        lambda: store.taken(worker=worker or " "),
    ):
        with pytest.raises(NotFound) as refused:
            attempt()
        assert refused.value.kind == "worker"
    assert store.status("a") == "ready"


def test_a_worker_that_stopped_takes_nothing_more(store):
    store.put("a", "b")
    worker = store.hire()
    held = store.take(worker=worker)[0]
    store.stop_worker(worker)
    with pytest.raises(NotFound):
        store.taken(worker=worker)
    with pytest.raises(NotFound):
        store.hold("b", worker)
    assert store.finish(held) == "succeeded"
    with pytest.raises(NotFound) as refused:
        store.stop_worker("worker-999")
    assert str(refused.value) == "there is no worker 'worker-999' in this store"


@pytest.mark.req("R002-36", "R002-37")
def test_worker_ids_come_from_one_sequence_and_are_never_given_again(world):
    one, other = world.open(), world.open()
    ids = [one.hire("same"), other.hire("same"), one.hire("same")]
    other.stop_worker(ids[2])
    ids.append(other.hire("same"))
    assert ids == ["worker-1", "worker-2", "worker-3", "worker-4"]


@pytest.mark.req("R002-34", "R003-34")
def test_one_task_is_claimed_by_its_id_whatever_is_before_it(store):
    store.put("a", "b", priority=1)
    store.put("c", priority=99)
    worker = store.hire()
    held = store.hold("b", worker)
    assert (held.id, held.task.attempt, store.get("b").owner) == ("b", 1, worker)
    assert store.taken(9) == ["c", "a"]
    assert store.signals("b") == [None, "claim"]


@pytest.mark.req("R002-41", "R003-33", "R003-68")
def test_claiming_what_is_not_ready_names_what_was_needed_and_found(store):
    store.put("waiting", armed=False)
    store.put("running", "cancelled", "other")
    store.hold("running")
    store.cancel(["cancelled"])
    for name in ("waiting", "running", "cancelled"):
        with pytest.raises(WrongStatus) as refused:
            store.hold(name)
        assert str(refused.value) == (
            f"task '{name}': claim needs status ready; the status is {name}"
        )
    with pytest.raises(NotFound):
        store.hold("nobody")
    assert store.hold("other").task.attempt == 1


@pytest.mark.req("R003-63")
def test_nothing_but_a_claim_starts_a_task_and_each_claim_is_a_new_attempt(store):
    store.put("a", max_retries=2)
    assert [store.finish(store.take()[0], "failed") for _ in range(3)] == [
        "ready",
        "ready",
        "failed",
    ]
    claims = [entry for entry in store.history("a") if entry.to_status == "running"]
    assert [(entry.signal, entry.attempt) for entry in claims] == [
        ("claim", 1),
        ("claim", 2),
        ("claim", 3),
    ]


def test_a_delayed_task_is_claimed_when_it_is_due_and_not_before(store, clock):
    store.put("later", delay_seconds=60, priority=99)
    store.put("now")
    assert store.get("later").due_at == clock.now + 60
    assert store.taken(9) == ["now"]
    clock.advance(59.5)
    assert store.taken(9) == []
    clock.advance(0.5)
    assert store.taken(9) == ["later"]
    assert store.get("later").due_at is None


def test_a_claim_says_when_the_next_delayed_task_is_due(store, clock):
    worker = store.hire()
    every = ClaimRequest(queue="q", worker=worker, count=9)
    assert store.claim(every).next_due_seconds is None
    store.put("later", delay_seconds=60)
    store.put("soon", delay_seconds=1)
    store.put("elsewhere", delay_seconds=0.5, queue="another")
    store.put("now")
    found = store.claim(every)
    assert [one.id for one in found] == ["now"]
    assert found.next_due_seconds == pytest.approx(1.0)
    clock.advance(1.0)
    found = store.claim(every)
    assert [one.id for one in found] == ["soon"]
    assert found.next_due_seconds == pytest.approx(59.0)
    clock.advance(59.0)
    found = store.claim(every)
    assert ([one.id for one in found], found.next_due_seconds) == (["later"], None)


def test_when_it_is_due_a_delayed_task_takes_the_place_of_its_age_and_priority(store, clock):
    store.put("first", delay_seconds=5)
    store.put("second")
    store.put("urgent", delay_seconds=9, priority=99)
    clock.advance(10)
    assert store.taken(9) == ["urgent", "first", "second"]


def test_a_paused_queue_gives_nothing_and_what_runs_goes_on(store):
    store.put("a", "b", "c")
    held = store.take()[0]
    store.pause_queue("q", paused=True)
    assert store.taken(9) == []
    assert store.finish(held) == "succeeded"
    store.put("d")
    store.put("elsewhere", queue="p")
    assert store.taken(9, queue="p") == ["elsewhere"]
    store.pause_queue("q", paused=False)
    assert store.taken(9) == ["b", "c", "d"]


def test_a_pause_keeps_the_other_settings_of_the_queue(store):
    settings = QueueSettings(lease_seconds=33, aging=True, fence_kill=True)
    store.configure_queue("q", settings)
    for paused in (True, False):
        store.pause_queue("q", paused=paused)
        (queue,) = store.queues()
        assert queue.settings.paused is paused
        assert (queue.settings.lease_seconds, queue.settings.aging) == (33, True)


def test_a_worker_gets_only_what_it_can_execute(store):
    store.put("shell", command="true", spec=None)
    store.put("python", handler="resize", spec=None)
    store.put("other", handler="rotate", spec=None)
    store.put("plain")
    worker = store.hire()
    one = {"worker": worker, "commands": False, "handlers": frozenset()}
    assert store.taken(9, **one) == ["plain"]
    assert store.taken(9, **(one | {"handlers": frozenset({"resize", "x"})})) == ["python"]
    assert store.taken(9, **(one | {"commands": True})) == ["shell"]
    assert store.taken(9, worker=worker) == ["other"]


def test_a_worker_without_the_shell_gets_the_commands_of_its_other_runners_alone(store):
    """H6: a stage has a command, too, and names its runner by a label."""
    store.put("shell", command="true", spec=None)
    for name in ("compose", "slurm"):
        labels = frozenset({f"runner:{name}"})
        store.put(f"of-{name}", command="true", resources=Resources(labels=labels))
    free = Resources(cpu=4, memory_bytes=1 << 30, labels=frozenset({"runner:compose", "a"}))
    one = {"worker": store.hire(), "free": free}
    assert store.taken(9, commands=False, **one) == ["of-compose"]
    assert store.taken(9, commands=True, **one) == ["shell"]


@pytest.mark.req("R003-36", "R003-2")
@pytest.mark.parametrize(
    "asked",
    [
        Resources(cpu=2.5),
        Resources(memory_bytes=101),
        Resources(gpu=2),
        Resources(labels=frozenset({"ssd", "arm"})),
    ],
)
def test_a_task_that_cannot_fit_is_passed_over(store, asked):
    store.put("big", resources=asked, priority=99)
    store.put("small", resources=Resources(cpu=2, memory_bytes=100, gpu=1))
    store.put("labelled", resources=Resources(labels=frozenset({"ssd"})))
    free = Resources(cpu=2, memory_bytes=100, gpu=1, labels=frozenset({"ssd", "x86"}))
    assert store.taken(9, free=free) == ["small", "labelled"]
    assert store.taken(9) == ([] if asked.labels else ["big"])
    assert store.taken(9, free=Resources(cpu=9, labels=frozenset({"arm", "ssd"}))) == (
        ["big"] if asked.labels else []
    )


@pytest.mark.req("R003-36", "R002-88")
def test_a_claim_takes_the_first_that_fit_together_and_lets_no_small_one_overtake(store):
    for name, cpu in [("a", 1.5), ("b", 2), ("c", 0.5), ("d", 0.1)]:
        store.put(name, resources=Resources(cpu=cpu))
    worker = store.hire()
    assert store.taken(9, worker=worker, free=Resources(cpu=3)) == ["a"]
    assert store.taken(9, worker=worker, free=Resources(cpu=2.5)) == ["b", "c"]
    assert store.taken(9, worker=worker, free=Resources(cpu=0.1)) == ["d"]


@pytest.mark.req("R003-36")
@pytest.mark.parametrize("field", ["cpu", "memory_bytes", "gpu"])
def test_each_resource_is_counted(store, field):
    store.put(*"abcd", resources=Resources(**{field: 2}))
    assert store.taken(9, free=Resources(**{field: 5})) == ["a", "b"]


def test_ten_tenths_of_a_core_are_a_core(store):
    store.put(*"abcdefghijk", resources=Resources(cpu=0.1))
    assert store.taken(99, free=Resources(cpu=1)) == list("abcdefghij")


@pytest.mark.req("R002-34")
def test_a_delayed_task_is_not_claimed_by_its_id_before_its_time(store, clock):
    store.put("a", delay_seconds=60)
    with pytest.raises(NotDue) as refused:
        store.hold("a")
    assert refused.value.seconds == pytest.approx(60)
    assert store.statuses("a") == ["ready"]
    clock.advance(61)
    assert store.hold("a").task.attempt == 1


def test_a_task_with_only_a_spec_is_left_to_those_who_know_what_it_means(store):
    store.put("a")
    store.put("b", command="true")
    assert store.taken(9, bare=False) == ["b"]
    assert store.taken(9) == ["a"]
