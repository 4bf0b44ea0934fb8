"""Storing tasks: what is kept and filled in, what is refused, and that again is the same."""

import pytest

from tests.conformance.door import new_task
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.retry import Exponential, FixedDelays
from tidewheel.core.queue.submission import SubmitLimits
from tidewheel.core.queue.task import NewTask
from tidewheel.errors import (
    BadSetting,
    Duplicate,
    InvalidTask,
    PayloadTooLarge,
    Refused,
    UnknownDependency,
)

ODD_NAMES = [
    "2e822247-e4f5-480d-ac83-873faad2511c",
    "Größe/50%_*",
    "'; DROP TABLE task; --",
    "0",
]


@pytest.mark.req("R002-1", "R002-10", "R002-28")
@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_client_gets_its_id_and_queue_back_as_it_chose_them(store, name):
    answers = store.submit([new_task(name, queue=name)])
    assert [(answer.id, answer.created, answer.refused) for answer in answers] == [
        (name, True, None)
    ]
    view = store.get(name)
    assert (view.id, view.queue) == (name, name)


@pytest.mark.req("R002-23", "R002-15", "R002-19", "R002-20", "R002-21")
def test_a_new_task_is_ready_with_every_default_filled_in(store, clock):
    store.submit([NewTask(id="a", queue="q", spec="{}")])
    view = store.get("a")
    assert (view.status, view.progress, view.priority) == ("ready", 0.0, 50)
    assert (view.attempt, view.failures, view.lapses, view.open_needs) == (0, 0, 0, 0)
    assert (view.owner, view.deadline_at, view.due_at, view.errors) == (None, None, None, ())
    assert (view.created_at, view.updated_at) == (clock.now, clock.now)
    assert (view.max_retries, view.max_lapses, view.timeout_seconds) == (0, 5, None)
    assert store.signals("a") == [None]


@pytest.mark.req("R003-2", "R003-8", "R003-9", "R003-10")
def test_everything_a_client_says_about_a_task_comes_back(store):
    task = new_task(
        "a",
        name="nightly",
        spec=None,
        command="echo 1\necho 'ü'",
        priority=7,
        max_retries=3,
        retry=Exponential(first_seconds=2.5, factor=3, seconds_max=60, jitter=0.25),
        max_lapses=1,
        timeout_seconds=90.5,
        estimated_runtime_seconds=12.25,
        max_termination_seconds=2.5,
        resources=Resources(cpu=0.5, memory_bytes=2**40, gpu=1, labels=frozenset("xy")),
        unique_key="k",
        limit_key="l",
        tag="t",
        environment='{"A": "x", "B": "secret:team-a/db"}',
    )
    store.submit([task])
    view = store.get("a")
    assert view.environment == {"A": "x", "B": "secret:team-a/db"}
    for field in ("name", "spec", "command", "handler", "priority", "max_retries", "retry"):
        assert getattr(view, field) == getattr(task, field)
    for field in ("max_lapses", "timeout_seconds", "estimated_runtime_seconds", "resources"):
        assert getattr(view, field) == getattr(task, field)
    for field in ("max_termination_seconds", "unique_key", "limit_key", "tag", "armed"):
        assert getattr(view, field) == getattr(task, field)


SPECS = ["null", "0", '"x"', "[1, 2.50, 1e400]", '{"b": 1, "a": {"é": "\\u0000"}}', " {} "]


@pytest.mark.req("R002-4", "R002-7")
@pytest.mark.parametrize("spec", SPECS)
def test_a_spec_comes_back_letter_by_letter(store, spec):
    store.put("a", spec=spec)
    assert store.get("a").spec_text == spec
    assert store.take()[0].task.spec == spec


@pytest.mark.req("R002-5", "R002-16", "R002-26")
def test_spec_queue_priority_and_creation_never_change(store, clock):
    store.put("a", spec="[1]", priority=9, max_retries=1)
    before = store.get("a")
    clock.advance(5)
    held = store.hold("a")
    store.beat(held, 0.5)
    store.finish(held, "failed")
    clock.advance(5)
    store.run_through("a")
    after = store.get("a")
    assert (after.spec_text, after.queue, after.priority) == ("[1]", "q", 9)
    assert (after.created_at, after.seq) == (before.created_at, before.seq)
    assert after.updated_at == clock.now


@pytest.mark.req("R002-2")
def test_a_taken_id_is_refused_and_the_stored_task_stays(store):
    store.put("a", spec="[1]")
    before = store.everything()
    with pytest.raises(Duplicate) as refused:
        store.put("a", spec="[2]")
    assert (refused.value.kind, refused.value.name, refused.value.holder) == ("id", "a", "a")
    assert store.everything() == before


def test_the_same_task_again_is_the_same_task_whatever_became_of_it(store):
    task = new_task("a", resources=Resources(labels=frozenset({"x", "y", "z"})))
    assert store.submit([task])[0].created
    for _ in range(2):
        again = store.submit([task])[0]
        assert (again.id, again.created, again.refused) == ("a", False, None)
    store.run_through("a")
    assert not store.submit([task])[0].created
    assert store.signals("a") == [None, "claim", "succeed"]


@pytest.mark.req("R002-3")
@pytest.mark.parametrize(
    ("retry", "in_floats"),
    [
        (FixedDelays(seconds=(1, 4)), FixedDelays(seconds=(1.0, 4.0))),
        (Exponential(first_seconds=4, factor=2), Exponential(first_seconds=4.0, factor=2.0)),
    ],
)
def test_a_number_is_the_same_with_and_without_a_point(store, retry, in_floats):
    times = {"delay_seconds": 5, "timeout_seconds": 7, "estimated_runtime_seconds": 3}
    store.submit([new_task("a", **times, retry=retry, resources=Resources(cpu=2))])
    times = {name: float(value) for name, value in times.items()}
    task = new_task("a", **times, retry=in_floats, resources=Resources(cpu=2.0))
    again = store.submit([task])[0]
    assert (again.id, again.created, again.refused) == ("a", False, None)


@pytest.mark.req("R002-3")
def test_within_a_batch_the_first_task_of_an_id_wins(store):
    batch = [new_task("a", spec="[1]"), new_task("a", spec="[2]"), new_task("a", spec="[1]")]
    answers = store.submit(batch, atomic=False)
    assert [answer.created for answer in answers] == [True, False, False]
    assert isinstance(answers[1].refused, Duplicate)
    assert answers[2].refused is None
    assert store.get("a").spec_text == "[1]"
    with pytest.raises(Duplicate):
        store.submit([new_task("b"), new_task("b", spec="[2]")])
    assert store.listed() == ["a"]


@pytest.mark.req("R002-30")
def test_a_batch_answers_for_each_task_and_never_fails_as_a_whole(store):
    store.put("old", spec="[1]")
    batch = [
        new_task("good"),
        new_task("old", spec="[2]"),
        new_task("bad", priority=-1),
        new_task("lost", needs=["nobody"]),
        new_task("huge", spec="x" * (256 * 1024 + 1)),
        new_task("fine", needs=["good"]),
    ]
    answers = store.submit(batch, atomic=False)
    assert [answer.id for answer in answers] == [task.id for task in batch]
    assert [answer.created for answer in answers] == [True, False, False, False, False, True]
    kinds = [type(answer.refused) for answer in answers]
    none = type(None)
    assert kinds == [none, Duplicate, InvalidTask, UnknownDependency, PayloadTooLarge, none]
    assert store.listed() == ["fine", "good", "old"]


def test_whoever_needs_a_refused_task_of_the_batch_is_refused_too(store):
    batch = [
        new_task("c", needs=["b"]),
        new_task("b", needs=["a"]),
        new_task("a", needs=["nobody"]),
        new_task("d", continuations=("a",)),
    ]
    answers = store.submit(batch, atomic=False)
    assert all(isinstance(answer.refused, UnknownDependency) for answer in answers)
    assert store.listed() == []


@pytest.mark.parametrize("repeat", ["a", "b"])
def test_no_task_is_acknowledged_because_an_equal_one_was_refused(store, repeat):
    """The second is the same task as the first by its id, or by its unique key."""
    batch = [new_task(name, needs=["nobody"], unique_key="k") for name in ("a", repeat)]
    answers = store.submit(batch, atomic=False)
    assert all(isinstance(answer.refused, UnknownDependency) for answer in answers)
    assert store.listed() == []


def test_a_whole_submission_stores_all_or_nothing(store):
    store.put("old", spec="[1]")
    before = store.everything()
    for bad in (
        new_task("old", spec="[2]"),
        new_task("bad", priority=1.5),
        new_task("bad", needs=["nobody"]),
        new_task("bad", needs=["a"], continuations=("a",)),
        new_task("bad", name="taken"),
        new_task("bad", unique_key="k"),
    ):
        with pytest.raises(Refused):
            store.submit([new_task("a", name="taken", unique_key="k"), bad])
        assert store.everything() == before


@pytest.mark.req("R003-1")
def test_a_name_is_optional_and_unique_for_ever(store):
    store.put("a", "b")
    store.put("c", name="nightly")
    store.run_through("c")
    for fields in ({"queue": "q"}, {"queue": "other"}):
        with pytest.raises(Duplicate) as refused:
            store.put("d", name="nightly", **fields)
        assert (refused.value.kind, refused.value.holder) == ("name", "c")
    answers = store.submit([new_task("e", name="x"), new_task("f", name="x")], atomic=False)
    assert answers[0].created
    assert isinstance(answers[1].refused, Duplicate)


def test_a_unique_key_is_held_until_its_task_has_ended(store):
    store.put("a", unique_key="k", max_retries=1)
    for end in (None, "failed"):
        if end:
            store.finish(store.hold("a"), end)
        with pytest.raises(Duplicate) as refused:
            store.put("b", unique_key="k", spec="[2]")
        assert (refused.value.kind, refused.value.name) == ("unique_key", "k")
        assert "'a'" in str(refused.value)
    store.put("other queue", queue="p", unique_key="k")
    store.run_through("a")
    store.put("b", unique_key="k", spec="[2]")
    assert store.statuses("a", "b") == ["succeeded", "ready"]


def test_an_equal_task_under_a_held_unique_key_is_the_held_one(store):
    store.put("a", unique_key="k")
    answer = store.submit([new_task("b", unique_key="k")])[0]
    assert (answer.id, answer.created, answer.refused) == ("a", False, None)
    assert store.listed() == ["a"]


def test_a_task_that_is_retried_yielded_or_lost_does_not_conflict_with_itself(store, clock):
    store.put("a", unique_key="k", max_retries=1)
    store.finish(store.hold("a"), "failed")
    store.finish(store.hold("a"), "yielded")
    store.hold("a")
    clock.advance(11)
    store.lapse()
    assert not store.submit([new_task("a", unique_key="k", max_retries=1)])[0].created
    store.run_through("a")
    assert store.status("a") == "succeeded"


@pytest.mark.req("R002-80")
def test_the_spec_of_an_aborted_task_can_be_submitted_under_another_id(store):
    store.put("a", spec="[1]", unique_key="k")
    store.run_through("a", ending="aborted")
    assert not store.submit([new_task("a", spec="[1]", unique_key="k")])[0].created
    assert store.submit([new_task("b", spec="[1]", unique_key="k")])[0].created
    assert store.statuses("a", "b") == ["failed", "ready"]


@pytest.mark.req("R003-3", "R003-4", "R003-61")
def test_a_task_is_created_ready_or_waiting_to_be_armed(store):
    store.put("now")
    store.put("later", armed=False)
    assert store.statuses("now", "later") == ["ready", "waiting"]
    assert store.taken(9) == ["now"]
    assert store.arm("later").status == "ready"
    assert store.signals("later") == [None, "satisfy"]
    assert store.taken(9) == ["later"]


@pytest.mark.parametrize(
    "fields",
    [
        {"priority": -1},
        {"priority": 0.5},
        {"timeout_seconds": 0},
        {"queue": ""},
        {"needs": ["a"]},
        {"continuations": ("a",)},
        {"resources": Resources(cpu=-1)},
        {"command": "x", "handler": "y"},
        {"spec": '"\ud800"'},
        {"command": "nul \0"},
        {"spec": "no JSON"},
    ],
)
@pytest.mark.req("R002-12", "R003-7", "R003-26")
def test_a_task_that_breaks_a_rule_is_refused_with_the_finding(store, fields):
    with pytest.raises(InvalidTask) as refused:
        store.put("a", **fields)
    assert len(refused.value.findings) == 1
    assert store.listed() == []


def test_a_payload_of_256_kib_is_stored_and_one_byte_more_is_not(store):
    most = 256 * 1024
    store.put("a", spec='"' + "x" * (most - 2) + '"')
    assert len(store.get("a").spec_text) == most
    with pytest.raises(PayloadTooLarge) as refused:
        store.put("b", spec='"' + "x" * (most - 1) + '"')
    assert (refused.value.size, refused.value.size_max) == (most + 1, most)
    assert store.listed() == ["a"]


def test_how_much_may_be_submitted_is_the_deployments_choice(world):
    small = world.open(limits=SubmitLimits(payload_bytes_max=10, tasks_per_call_max=2))
    with pytest.raises(PayloadTooLarge):
        small.put("a", spec='"123456789"')
    with pytest.raises(BadSetting) as refused:
        small.put("a", "b", "c")
    assert str(refused.value) == "tasks is 3; expected up to 2 tasks in one call"
    small.put("a", "b")
    assert small.listed() == ["b", "a"]
    assert small.submit([]) == []


@pytest.mark.req("R002-24", "R002-25", "R002-27", "R002-83")
def test_any_client_may_see_and_cancel_what_any_other_has_submitted(world):
    """A client that submits again and again needs nothing but this."""
    one, other = world.open(), world.open()
    for round_ in range(3):
        one.put(f"a{round_}")
        other.put(f"b{round_}")
    assert other.get("a0") == one.get("a0")
    assert other.cancel_one("a0").changed
    assert one.status("a0") == "cancelled"
    assert sorted(one.taken(9)) == ["a1", "a2", "b0", "b1", "b2"]
