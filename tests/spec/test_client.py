"""Seed 002, "Client Process" and "Worker Process": a store as applications use it."""

import asyncio
import inspect
import os
import threading
from datetime import timedelta
from functools import partial

import pytest

import tidewheel
from tests.support.patience import allowed, eventually
from tidewheel import AsyncClient, Client
from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.requests import UsageSample
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.retry import Exponential, FixedDelays
from tidewheel.core.queue.status import Status
from tidewheel.core.queue.task import NewTask
from tidewheel.errors import (
    BadSetting,
    BadValues,
    Duplicate,
    InvalidTask,
    LeaseLost,
    NotFound,
    StoreUnreachable,
    UnknownDependency,
    WrongStatus,
)


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/tidewheel.db"


@pytest.fixture
def client(url):
    with Client(url) as client:
        yield client
        assert client.verify() == []


def ids(tasks):
    return [task.id for task in tasks]


# ---- submitting ----


@pytest.mark.req("R002-1", "R002-16", "R002-23", "R002-28")
def test_a_task_comes_back_as_it_was_submitted(client):
    submitted = client.submit("mail", id="my own id", spec={"to": "you"}, priority=7)
    assert (submitted.id, submitted.created) == ("my own id", True)
    task = client.get("my own id")
    assert (task.queue, task.spec, task.priority) == ("mail", {"to": "you"}, 7)
    assert (task.status, task.progress, task.attempt) == (Status.READY, 0.0, 0)
    assert (task.owner, task.deadline_at, task.errors) == (None, None, ())


def test_ids_that_the_client_makes_up_are_in_order(client):
    made = [client.submit(command="true").id for _ in range(5)]
    assert made == sorted(set(made))


@pytest.mark.req("R002-2", "R002-5")
def test_another_task_under_the_same_id_is_refused_and_changes_nothing(client):
    client.submit(id="a", spec=1)
    with pytest.raises(Duplicate):
        client.submit(id="a", spec=2)
    assert client.get("a").spec == 1
    assert client.submit(id="a", spec=1).created is False


SPECS = [
    "null",
    "true",
    "0",
    "-1.5e300",
    '""',
    "[]",
    "{}",
    str(10**400),
    "9" * 4300,
    '{"a": [1, {"b": null}], "a b": "é\\u0000\\ud800 \\" 😀"}',
    ' {"spaces" :  1 } ',
]


@pytest.mark.req("R002-4", "R002-7")
@pytest.mark.parametrize("text", SPECS, ids=lambda text: text[:20])
def test_a_spec_is_any_json_value_and_kept_letter_by_letter(client, text):
    client.submit(id="a", spec_text=text)
    task = client.get("a")
    assert task.spec_text == text
    [leased] = client.lease()
    assert (leased.spec_text, leased.spec) == (text, task.spec)


@pytest.mark.req("R002-4")
@pytest.mark.parametrize(
    "value", [None, False, 10**30, 1.1, "\0\ud800é", [1, [2]], {"a": {"b": [None]}}]
)
def test_a_spec_given_as_a_value_comes_back_as_that_value(client, value):
    client.submit(id="a", spec=value)
    assert client.get("a").spec == value


@pytest.mark.req("R002-6")
@pytest.mark.parametrize("text", ["{", "nope", "[1,]", "NaN", "", "{'a': 1}"])
def test_a_spec_that_is_not_json_is_refused(client, text):
    with pytest.raises(InvalidTask, match="not valid JSON"):
        client.submit(id="a", spec_text=text)
    with pytest.raises(NotFound):
        client.get("a")


@pytest.mark.req("R002-6")
@pytest.mark.parametrize("value", [float("nan"), {"x": float("inf")}, {1, 2}, object()])
def test_a_spec_that_json_cannot_hold_is_refused(client, value):
    with pytest.raises(InvalidTask, match="spec: "):
        client.submit(spec=value)


@pytest.mark.req("R002-11", "R002-12")
@pytest.mark.parametrize("priority", [-1, 1.5, 2**32, "high", True])
def test_a_priority_out_of_range_is_refused(client, priority):
    with pytest.raises(InvalidTask, match="priority"):
        client.submit(command="true", priority=priority)


def test_every_field_has_a_plain_way_to_say_it(client):
    client.submit(id="before", command="true")
    client.submit(
        "q",
        id="a",
        name="full",
        command="make",
        delay="1h",
        needs=["before", ("before", "data")],
        retries=3,
        retry_delays=["1s", 10, "PT1M"],
        timeout="10m",
        estimated_runtime=30,
        max_termination="5s",
        max_lapses=2,
        cpu=0.5,
        memory="2GiB",
        gpu=1,
        labels=["fast"],
        unique_key="k",
        limit_key="l",
        tag="t",
    )
    task = client.get("a")
    assert task.retry == FixedDelays(seconds=(1.0, 10.0, 60.0))
    assert task.resources == Resources(
        cpu=0.5, memory_bytes=2**31, gpu=1, labels=frozenset({"fast"})
    )
    assert (task.name, task.unique_key, task.limit_key, task.tag) == ("full", "k", "l", "t")
    assert (task.timeout_seconds, task.estimated_runtime_seconds) == (600.0, 30.0)
    assert (task.max_termination_seconds, task.max_lapses, task.max_retries) == (5.0, 2, 3)
    edges = {(edge.parent, edge.output) for edge in client.edges("a")}
    assert edges == {("before", "succeeded"), ("before", "data")}


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (True, Exponential()),
        ({"first_seconds": 2, "factor": 3}, Exponential(first_seconds=2, factor=3)),
        (Exponential(jitter=0.0), Exponential(jitter=0.0)),
    ],
)
def test_a_backoff_can_be_given_instead_of_delays(client, given, stored):
    client.submit(id="a", command="true", retries=1, backoff=given)
    assert client.get("a").retry == stored


@pytest.mark.req("R007-13")
@pytest.mark.parametrize(
    ("given", "count", "seconds"),
    [
        (3, 3, (0.0,)),
        (0, 0, (0.0,)),
        ("1m", 1, (60.0,)),
        ("PT1M", 1, (60.0,)),
        ("2*1m", 2, (60.0, 60.0)),
        (timedelta(minutes=1), 1, (60.0,)),
        (["1m", "PT5M", timedelta(hours=1), 90], 4, (60.0, 300.0, 3600.0, 90.0)),
        ([], 0, (0.0,)),
    ],
)
def test_retries_are_a_count_a_delay_or_delays(client, given, count, seconds):
    client.submit(id="a", command="true", retries=given, timeout=timedelta(minutes=2))
    task = client.get("a")
    assert (task.max_retries, task.retry) == (count, FixedDelays(seconds=seconds))
    assert task.timeout_seconds == 120.0


@pytest.mark.req("R007-13")
@pytest.mark.parametrize(
    ("fields", "finding"),
    [
        ({"retries": -1}, "retries is -1; expected a number of retries (3), the"),
        ({"retries": 2.5}, "retries is 2.5; expected a number of retries"),
        ({"retries": "3"}, "retries is '3'; expected a number of retries"),
        ({"retries": "soon"}, "retries is 'soon'; expected seconds"),
        ({"retries": ["1m"] * 101}, "retries has 101 delays; expected 1 to 100"),
        ({"retries": ["1m"], "retry_delays": ["1m"]}, "in both retries and retry_delays"),
        ({"retries": "1m", "backoff": True}, "in both retries and backoff"),
        ({"retry_delays": []}, "retry_delays has 0 delays"),
        ({"timeout": 0}, "timeout is 0.0; expected more than 0"),
        ({"delay": "4000d"}, "delay is"),
        ({"retries": 10**7}, "retries is 10000000; expected a whole number, 0 to"),
    ],
)
def test_a_number_is_refused_by_the_name_under_which_it_was_given(client, fields, finding):
    with pytest.raises(InvalidTask) as refused:
        client.submit(command="true", **fields)
    assert finding in str(refused.value)
    assert "_seconds" not in str(refused.value) and "max_" not in str(refused.value)


@pytest.mark.parametrize(
    ("theirs", "ours"), [("key", "unique_key"), ("kwargs", "spec"), ("comand", "command")]
)
def test_a_field_that_is_called_otherwise_here_is_refused_with_its_name(client, theirs, ours):
    with pytest.raises(InvalidTask, match=f"no field '{theirs}'; did you mean '{ours}'"):
        client.submit(**{theirs: "x"})


def test_only_the_count_of_retries_can_be_amended(client):
    client.submit(id="a", command="true", armed=False)
    with pytest.raises(InvalidTask, match="the delays cannot be changed"):
        client.amend("a", retries=["1m"])
    assert client.amend("a", retries=2).max_retries == 2


@pytest.mark.parametrize(
    ("fields", "finding"),
    [
        ({"comand": "true"}, "did you mean 'command'"),
        ({"command": 7}, "command is 7; expected a string"),
        ({"command": "true", "timeout": "long"}, "timeout is 'long'"),
        ({"command": "true", "memory": "much"}, "memory is 'much'"),
        ({"command": "true", "cpu": "two"}, "cpu is 'two'"),
        ({"command": "true", "gpu": 1.5}, "gpu is 1.5; expected a whole number"),
        ({"command": "true", "needs": "a"}, "needs is 'a'; expected a list"),
        ({"command": "true", "needs": [1]}, "expected task ids, or pairs"),
        ({"command": "true", "continuations": [1]}, "expected task ids"),
        ({"command": "true", "labels": "fast"}, "labels is 'fast'"),
        ({"command": "true", "armed": "yes"}, "armed is 'yes'"),
        ({"command": "true", "backoff": {"speed": 1}}, "backoff has no field 'speed'"),
        ({"command": "true", "backoff": "fast"}, "backoff is 'fast'"),
        ({"command": "true", "retry_delays": ["x"]}, "retry_delays is 'x'"),
        ({"command": "true", "retry_delays": [1], "backoff": True}, "both retry_delays and"),
        ({"spec": 1, "spec_text": "1"}, "both spec and spec_text"),
        ({"command": "true", "handler": "f"}, "both a command and a handler"),
        ({"command": "true", "resources": Resources(cpu=1.0), "gpu": 2}, "and gpu, too"),
        (
            {"command": "true", "flavours": [{"flavour": "a", "nodes": 3}], "nodes": 9},
            "nodes is 9, but flavours have 3 nodes",
        ),
    ],
)
def test_a_field_that_says_nothing_is_refused_with_what_would_be_accepted(
    client, fields, finding
):
    with pytest.raises(InvalidTask, match=finding):
        client.submit(**fields)


@pytest.mark.req("R002-3", "R002-30")
def test_a_batch_never_fails_as_a_whole(client):
    client.submit(id="there", spec=1)
    batch = client.submit_many(
        [
            {"id": "good", "spec": 1, "queue": "q"},
            {"id": "good", "spec": 2},
            {"id": "there", "spec": 1},
            {"id": "there", "spec": 2},
            {"id": "orphan", "spec": 1, "needs": ["nobody"]},
            {"id": "negative", "spec": 1, "priority": -1},
            {"id": "broken", "spec_text": "{"},
        ]
    )
    assert batch.inserted == ("good",)
    assert batch.present == ("there",)
    assert sorted(ids(batch.failed)) == ["good", "orphan", "there"]
    assert sorted(ids(batch.invalid)) == ["broken", "negative"]
    assert (client.get("good").spec, client.get("there").spec) == (1, 1)


@pytest.mark.req("R002-6")
def test_a_task_built_by_hand_needs_a_json_spec_too(client):
    batch = client.submit_many([NewTask(id="a", queue="q", spec="{")])
    assert ids(batch.invalid) == ["a"]
    assert client.submit_many([NewTask(id="a", queue="q", spec="{}")]).inserted == ("a",)


@pytest.mark.parametrize(
    ("bad", "error"),
    [({"spec_text": "{"}, InvalidTask), ({"spec": 1, "needs": ["nobody"]}, UnknownDependency)],
)
def test_an_atomic_batch_is_stored_whole_or_not_at_all(client, bad, error):
    with pytest.raises(error):
        client.submit_many([{"id": "good", "spec": 1}, {"id": "bad", **bad}], atomic=True)
    assert client.list() == []


@pytest.mark.req("R003-12", "R003-61")
def test_a_task_can_be_amended_until_it_is_armed(client):
    client.submit(id="a", command="false", armed=False)
    task = client.amend("a", command="true", retries=2, cpu=2, estimated_runtime="1m")
    assert (task.command, task.max_retries, task.resources.cpu) == ("true", 2, 2.0)
    assert task.estimated_runtime_seconds == 60.0
    assert client.arm("a").status is Status.READY
    with pytest.raises(WrongStatus):
        client.amend("a", command="false")


@pytest.mark.req("R002-26")
@pytest.mark.parametrize("field", ["spec", "priority", "queue", "unique_key"])
def test_what_was_promised_to_workers_cannot_be_amended(client, field):
    client.submit(id="a", spec=1, armed=False)
    with pytest.raises(InvalidTask, match=f"{field} cannot be changed"):
        client.amend("a", **{field: 1})


@pytest.mark.req("R003-22", "R003-23", "R003-30")
def test_continuations_are_added_and_removed(client):
    client.submit(id="parent", command="true", armed=False)
    client.submit(id="child", command="true", armed=False)
    client.add_continuations("parent", ["child"])
    assert client.get("child").open_needs == 1
    client.remove_continuations("parent", ["child"])
    assert (client.get("child").open_needs, client.get("child").status) == (0, Status.WAITING)


@pytest.mark.req("R002-25", "R002-61", "R002-68", "R003-39")
def test_a_cancel_is_answered_with_what_it_changed(client):
    client.submit(id="a", command="true")
    [first] = client.cancel("a")
    [second] = client.cancel("a")
    assert (first.status, first.changed) == (Status.CANCELLED, True)
    assert (second.status, second.changed) == (Status.CANCELLED, False)
    assert client.lease() == []


def test_many_are_cancelled_by_a_filter(client):
    client.submit_many(
        [{"id": f"{tag}{n}", "spec": n, "tag": tag} for tag in "ab" for n in "12"]
    )
    cancelled = client.cancel_matching(tag="a", status="available")
    assert ids(cancelled) == ["a1", "a2"]
    assert ids(client.list(status="ready")) == ["b2", "b1"]


def test_a_filter_that_nobody_knows_cancels_nothing(client):
    client.submit(id="a", spec=1)
    with pytest.raises(TypeError, match="there is no filter 'quue'"):
        client.cancel_matching(quue="q")
    assert client.get("a").status is Status.READY


# ---- looking ----


@pytest.mark.req("R002-24", "R002-29")
def test_filters_are_combined_and_pages_follow_each_other(client):
    for number in range(6):
        client.submit("even" if number % 2 == 0 else "odd", id=str(number), spec=number)
    client.lease("even")
    assert ids(client.list(queue="even", status=["ready", "running"])) == ["4", "2", "0"]
    assert ids(client.list(queue="even", status="running", worker="worker-1")) == ["0"]
    page = client.list(limit=4)
    assert ids(page) == ["5", "4", "3", "2"]
    assert ids(client.list(limit=4, before=page[-1].seq)) == ["1", "0"]


@pytest.mark.req("R002-28")
def test_an_unknown_task_is_clearly_not_found(client):
    with pytest.raises(NotFound, match="there is no task 'nope' in this store"):
        client.get("nope")


@pytest.mark.req("R002-90")
def test_peeking_takes_nothing(client):
    client.submit(id="low", spec=1, priority=1)
    client.submit(id="high", spec=1, priority=9)
    assert ids(client.peek()) == ["high", "low"] == ids(client.peek())
    assert {task.status for task in client.list()} == {Status.READY}


@pytest.mark.slow
@pytest.mark.req("R002-22")
def test_a_long_history_comes_back_whole(client):
    client.submit(id="a", spec=1)
    for _ in range(120):
        client.yield_(client.lease()[0])
    history = client.history("a")
    assert [entry.attempt for entry in history][-2:] == [120, 120]
    assert len(history) == 241


# ---- leasing ----


@pytest.fixture
def task(client):
    """A task in the hands of this client's worker."""
    client.submit(id="a", spec={"n": 1})
    return client.lease()[0]


@pytest.mark.req("R002-32", "R002-33")
def test_a_lease_of_n_takes_the_first_n(client):
    for task_id, priority in (("a", 1), ("b", 9), ("c", 9)):
        client.submit(id=task_id, spec=1, priority=priority)
    assert ids(client.lease(n=2)) == ["b", "c"]
    assert ids(client.lease(n=2)) == ["a"]
    assert client.lease(n=2) == []


@pytest.mark.req("R002-34", "R002-41")
def test_a_lease_by_id_needs_a_ready_task(client):
    client.submit(id="a", spec=1)
    assert client.lease_by_id("a").attempt == 1
    with pytest.raises(WrongStatus, match="claim needs status ready; the status is running"):
        client.lease_by_id("a")


@pytest.mark.req("R002-36", "R002-37")
def test_every_registration_gives_a_new_worker(client, url):
    with Client(url) as another:
        workers = [
            client.register_worker(),
            another.register_worker(),
            client.register_worker(),
        ]
    assert len(set(workers)) == 3


@pytest.mark.req("R002-42", "R002-43")
def test_a_lease_needs_a_worker_and_a_time(client):
    client.submit(id="a", spec=1)
    with pytest.raises(NotFound, match="worker"):
        client.lease(worker="")
    with pytest.raises(NotFound, match="worker-99"):
        client.lease(worker="worker-99")
    for seconds in (0, -1):
        with pytest.raises(BadSetting, match="lease_seconds"):
            client.lease(lease_seconds=seconds)
    assert client.get("a").status is Status.READY


@pytest.mark.req("R002-39", "R002-44", "R002-45", "R002-84")
def test_a_heartbeat_extends_the_lease_and_may_tell_progress(client, task):
    before = client.get("a")
    assert task.lease_seconds == 10.0
    client.heartbeat(task, progress=0.5)
    client.heartbeat(task)
    assert client.get("a").progress == 0.5
    client.heartbeat(task, progress=0.25)
    after = client.get("a")
    assert after.progress == 0.25
    assert after.deadline_at > before.deadline_at


@pytest.mark.req("R002-15")
@pytest.mark.parametrize("progress", [-0.1, 1.1, float("nan")])
def test_progress_out_of_range_is_refused(client, task, progress):
    with pytest.raises(BadSetting, match="progress"):
        client.heartbeat(task, progress=progress)


@pytest.mark.req("R002-46", "R002-52")
def test_only_the_owner_is_heard(client, task):
    client.yield_(task)
    [again] = client.lease(worker=client.register_worker())
    reports = [client.heartbeat, client.complete, client.yield_, client.started]
    for report in reports:
        with pytest.raises(LeaseLost, match=r"Only owner can extend the heartbeat\."):
            report(task)
    with pytest.raises(LeaseLost):
        client.cancel_requested(task)
    assert client.complete(again) is Status.SUCCEEDED


@pytest.mark.req("R002-47", "R002-63", "R002-67")
def test_a_heartbeat_on_a_cancelled_task_says_so(client, task):
    assert client.cancel_requested(task) is False
    client.cancel("a")
    assert client.cancel_requested(task) is True
    with pytest.raises(WrongStatus, match="the status is cancelling"):
        client.heartbeat(task)
    client.yield_(task)
    with pytest.raises(WrongStatus, match="the status is cancelled"):
        client.heartbeat(task)


@pytest.mark.req("R002-47", "R002-66")
def test_nothing_is_accepted_after_the_end(client, task):
    client.complete(task)
    for report in (client.heartbeat, client.complete, client.yield_, client.started):
        with pytest.raises(WrongStatus, match="the status is succeeded"):
            report(task)


@pytest.mark.req("R002-48", "R002-49")
def test_a_completed_task_may_have_metrics(client, task):
    assert client.complete(task, metrics={"rows": 10**20}) is Status.SUCCEEDED
    assert client.attempts("a")[0].metrics == '{"rows":100000000000000000000}'
    assert client.get("a").progress == 1.0


@pytest.mark.req("R004-44")
def test_a_completed_task_may_hand_values_to_those_after_it(client, task):
    assert client.values("a") is None
    with pytest.raises(BadValues, match="at most 65536"):
        client.complete(task, values={"x": "y" * 65536})
    assert client.complete(task, values={"beams": 4}) is Status.SUCCEEDED
    assert client.values("a") == {"beams": 4}


@pytest.mark.req("R002-50", "R002-51", "R002-80")
def test_an_aborted_task_is_not_tried_again_whatever_its_retries(client):
    client.submit(id="a", spec=1, retries=5)
    [task] = client.lease()
    for nothing in ("", "  ", {}, {"args": {}}, None):
        with pytest.raises(BadSetting, match="error"):
            client.abort(task, nothing)
    error = {"code": "bad_input", "args": {"line": 3}, "description": "line 3 is empty"}
    assert client.abort(task, error) is Status.FAILED
    [stored] = client.get("a").errors
    assert (stored.code, stored.args, stored.description) == (
        "bad_input",
        '{"line":3}',
        "line 3 is empty",
    )
    assert client.submit(id="b", spec=client.get("a").spec).created


def test_a_failed_task_is_tried_again_while_retries_are_left(client):
    client.submit(id="a", spec=1, retries=1)
    assert client.fail(client.lease()[0], "first") is Status.READY
    assert client.fail(client.lease()[0], "second") is Status.FAILED


@pytest.mark.req("R002-64", "R002-65")
@pytest.mark.parametrize("end", ["complete", "abort", "yield_", "fail"])
def test_cancel_wins_over_every_end(client, task, end):
    client.cancel("a")
    error = ("too late",) if end in ("abort", "fail") else ()
    assert getattr(client, end)(task, *error) is Status.CANCELLED
    assert client.get("a").status is Status.CANCELLED


def test_messages_keep_their_order_and_release_who_waits_for_them(client, task):
    client.submit(id="b", spec=1, needs=[("a", "data")])
    client.started(task)
    client.message(task, "one")
    client.message(task, "here it is", output="data")
    client.report_usage(task, UsageSample(memory_bytes=5))
    said = [(one.number, one.text, one.output) for one in client.outputs("a")]
    assert said == [(1, "one", None), (2, "here it is", "data")]
    assert client.get("b").status is Status.READY
    assert client.usage("a")[0].sample.memory_bytes == 5


def test_messages_sent_at_once_are_all_kept(url):
    async def talk():
        async with AsyncClient(url) as client:
            await client.submit(id="a", spec=1)
            [task] = await client.lease()
            await asyncio.gather(*(client.message(task, str(n)) for n in range(20)))
            return [one.text for one in await client.outputs("a")]

    said = asyncio.run(talk())
    assert sorted(said, key=int) == [str(n) for n in range(20)]


# ---- waiting, and asking why ----


def test_waiting_ends_when_all_have_ended_and_tells_the_way(client, url):
    client.submit(id="a", spec=1)
    client.submit(id="b", spec=1, needs=["a"])
    seen = []

    def work(task):
        seen.append((task.id, task.status.value))
        if task.status is Status.READY:
            threading.Thread(target=finish, args=(task.id,)).start()

    def finish(task_id):
        with Client(url) as worker:
            worker.complete(worker.lease_by_id(task_id))

    ended = client.wait("b", "a", timeout=allowed(30), on_progress=work)
    assert [(task.id, task.status) for task in ended] == [
        ("b", Status.SUCCEEDED),
        ("a", Status.SUCCEEDED),
    ]
    assert seen[0] == ("b", "waiting")
    assert seen[-1] == ("b", "succeeded")


def test_waiting_too_long_is_a_timeout(client):
    client.submit(id="a", spec=1)
    client.submit(id="b", spec=1)
    client.cancel("b")
    with pytest.raises(TimeoutError, match=r"not ended after 0\.05 s: a \(ready\)"):
        client.wait("a", "b", timeout=0.05)
    with pytest.raises(NotFound):
        client.wait("nope")


def only(client, task_id):
    [reason] = client.why(task_id)
    return reason


def test_why_names_each_parent_and_its_state(client):
    client.submit(id="a", name="first", spec=1)
    client.submit(id="b", spec=1, needs=["a", ("a", "data")])
    assert sorted(client.why("b")) == [
        "It waits for output 'data' of task a (first); that task is ready.",
        "It waits for task a (first) to succeed; that task is ready.",
    ]


def test_why_knows_tasks_that_are_unarmed_delayed_paused_or_alone(client):
    client.submit(id="unarmed", spec=1, armed=False)
    assert "unarmed" in only(client, "unarmed")
    client.submit("q", id="a", spec=1)
    assert "No worker serves queue 'q'" in only(client, "a")
    client.register_worker(queues=["q"])
    assert client.why("a") == []
    client.pause_queue("q")
    assert "Queue 'q' is paused" in only(client, "a")
    client.resume_queue("q")
    client.submit("q", id="late", spec=1, delay="1h")
    assert only(client, "late").startswith("It is delayed: it is due in")
    client.submit("q", id="behind", spec=1)
    assert only(client, "behind") == "1 task of queue 'q' is ahead of it."


def test_why_knows_what_no_worker_offers(client):
    client.register_worker(capacity=Resources(cpu=2, memory_bytes=2**30))
    for task_id, fields in {
        "cores": {"cpu": 4},
        "memory": {"memory": "2GiB"},
        "GPUs": {"gpu": 1},
        "2 nodes": {"nodes": 2},
        "of buffer": {"buffer": "1TB"},
        "label 'fast'": {"labels": ["fast"]},
    }.items():
        client.submit(id=task_id, spec=1, **fields)
        assert task_id in only(client, task_id)


def test_why_knows_limits_and_busy_slots(client):
    client.register_worker()
    client.configure_queue("default", limits=(Limit(key="k", concurrency_max=1),))
    client.submit(id="first", spec=1, limit_key="k")
    client.submit(id="second", spec=1, limit_key="k")
    [held] = client.lease(n=2)
    assert held.id == "first"
    assert any(
        "is reached: at most 1 may run, 1 running now" in why for why in client.why("second")
    )
    client.submit(id="third", spec=1)
    assert "no free slot" in only(client, "third")


@pytest.mark.req("R004-20", "R004-21")
def test_why_knows_who_has_the_nodes(client):
    client.register_worker(slots=9, capacity=Resources(cpu=2))
    client.submit(id="any", spec=1, cpu=2)
    client.lease()
    client.submit(id="alone", spec=1, exclusive=True)
    client.submit(id="cores", spec=1, cpu=1, priority=99)
    assert only(client, "alone").startswith(
        "It needs a node without other tasks; the nodes of every"
    )
    assert "have too few free resources" in only(client, "cores")


@pytest.mark.req("R004-21")
def test_why_names_the_task_that_has_the_nodes_for_itself(client):
    client.register_worker(slots=9)
    client.submit(id="alone", spec=1, exclusive=True)
    client.lease()
    client.submit(id="any", spec=1)
    assert only(client, "any").startswith("Task alone uses nodes of worker-1 exclusively")


def test_why_is_silent_about_tasks_that_run_or_have_ended(client, task):
    assert client.why("a") == []
    client.complete(task)
    assert client.why("a") == []


# ---- queues ----


def test_a_queue_is_configured_step_by_step(client):
    client.configure_queue("q", aging=True, lease_seconds=30)
    client.configure_queue("q", limits=(Limit(concurrency_max=2),))
    client.pause_queue("q")
    settings = client.queue("q").settings
    assert (settings.aging, settings.lease_seconds, settings.paused) == (True, 30.0, True)
    assert settings.limits == (Limit(concurrency_max=2),)
    assert client.queue("unheard of").settings.paused is False


def test_a_paused_queue_hands_out_nothing(client):
    client.submit("q", id="a", spec=1)
    client.pause_queue("q")
    assert client.lease("q") == []
    client.resume_queue("q")
    assert ids(client.lease("q")) == ["a"]


# ---- both clients, and the roles inside an application ----


def public(kind):
    return {
        name: member
        for name, member in inspect.getmembers(kind, callable)
        if not name.startswith("_")
    }


def test_both_clients_have_the_same_methods_with_the_same_words():
    waiting, asynchronous = public(Client), public(AsyncClient)
    assert set(waiting) - {"run"} == set(asynchronous)
    for name in set(asynchronous) - {"close"}:
        assert inspect.signature(waiting[name]) == inspect.signature(asynchronous[name])
        assert waiting[name].__doc__ == asynchronous[name].__doc__


@pytest.mark.req("R002-27")
def test_one_client_serves_many_threads(client):
    def submit(first):
        for number in range(first, first + 20):
            client.submit(id=str(number), spec=number)

    threads = [threading.Thread(target=submit, args=(n * 20,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(int(task.id) for task in client.list()) == list(range(80))


def test_a_closed_client_has_signed_off_and_may_be_closed_again(client, url):
    with Client(url) as worker:
        worker.register_worker("mine")
        assert [one.name for one in client.workers()] == ["mine"]
    assert client.workers() == []
    worker.close()


def test_a_store_that_is_given_is_left_open(url):
    async def share():
        async with AsyncClient(url) as owner:
            async with AsyncClient(owner.store) as guest:
                await guest.submit(id="a", spec=1)
            return await owner.get("a")

    assert asyncio.run(share()).spec == 1


@pytest.mark.parametrize("url", ["mysql://user:secret@host/db", "nothing", "sqlite:/x"])
def test_an_address_of_no_store_is_refused_without_telling_its_password(url):
    with pytest.raises(BadSetting, match="sqlite:///PATH") as refused, Client(url) as client:
        client.list()
    assert "secret" not in str(refused.value)


handlers = tidewheel.Handlers()


@handlers.register("double")
def double(spec, job):
    job.message("doubling")
    return spec * 2


@handlers.register("give up")
async def give_up(_spec, _job):
    raise tidewheel.Abort("there is no point", code="pointless")


def test_a_worker_in_a_thread_executes_handlers_and_commands(client, url, tmp_path):
    client.submit(id="double", handler="double", spec=21)
    client.submit(id="command", command="exit 3")
    client.submit(id="pointless", handler="give up", retries=5)
    with tidewheel.Worker(url, handlers=handlers, home=tmp_path / "home"):
        client.wait("double", "command", "pointless", timeout=allowed(30))
    assert client.attempts("double")[0].metrics == "42"
    assert client.get("command").errors[0].code == "exit"
    assert client.get("pointless").errors[0].code == "pointless"
    assert client.workers() == []


@pytest.mark.req("R002-85")
def test_a_worker_and_a_monitor_share_the_loop_of_an_application(url, tmp_path):
    async def application():
        async with (
            AsyncClient(url) as client,
            tidewheel.Monitor(url),
            tidewheel.Worker(url, home=tmp_path / "home"),
        ):
            submitted = await client.submit(command="true")
            return await client.wait(submitted.id, timeout=allowed(30))

    [task] = asyncio.run(application())
    assert task.status is Status.SUCCEEDED


def test_a_worker_that_cannot_start_says_why_at_once():
    entered = []

    async def application():
        async with tidewheel.Worker("nothing"):
            entered.append("async")

    with pytest.raises(BadSetting, match="store"), tidewheel.Worker("nothing"):
        entered.append("thread")
    with pytest.raises(BadSetting, match="store"):
        asyncio.run(application())
    assert entered == []


def test_the_package_offers_its_names_and_no_others():
    assert set(tidewheel.__all__) <= set(dir(tidewheel))
    assert all(getattr(tidewheel, name) is not None for name in tidewheel.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Scheduler'"):
        tidewheel.Scheduler  # noqa: B018 - looking is the test


def test_workers_beside_each_other_work_on_though_each_has_a_store_of_its_own(url, tmp_path):
    given = {"handlers": handlers, "home": tmp_path / "home"}

    async def work():
        one = tidewheel.Worker(url, queues=["one"], **given)
        other = tidewheel.Worker(url, queues=["other"], beside=one, **given)
        async with one, other, AsyncClient(url) as client:
            for turn in range(3):
                for queue in ("one", "other"):
                    await client.submit(
                        id=f"{queue} {turn}", handler="double", spec=1, queue=queue
                    )
                    await client.wait(f"{queue} {turn}", timeout=allowed(20))

    asyncio.run(work())


def test_a_worker_that_is_killed_keeps_none_beside_it_from_working(url, tmp_path):
    given = {"handlers": handlers, "home": tmp_path / "home"}

    async def work():
        one = tidewheel.Worker(url, queues=["one"], **given)
        other = tidewheel.Worker(url, queues=["other"], beside=one, **given)
        killed = asyncio.create_task(one.run())
        await one.until_started()
        async with AsyncClient(url) as client:
            await client.submit(id="first", handler="double", spec=1, queue="one")
            await client.wait("first", timeout=allowed(20))
            killed.cancel()
            await asyncio.wait((killed,))
            async with other:
                await client.submit(id="second", handler="double", spec=1, queue="other")
                await client.wait("second", timeout=allowed(20))

    asyncio.run(work())


def test_calls_of_other_threads_are_answered_when_a_client_is_closed(url):
    client = Client(url)
    answered = [client.submit(id="open", command="true").id]
    told = []

    def says_why_it_ends(call):
        try:
            while True:
                answered.append(call().id)
        except (RuntimeError, StoreUnreachable) as error:
            told.append(str(error))

    calls = [partial(client.submit, command="true")] * 3 + [partial(client.wait, "open")]
    threads = [threading.Thread(target=says_why_it_ends, args=(call,)) for call in calls]
    for thread in threads:
        thread.daemon = True
        thread.start()
    eventually(lambda: len(answered) > 30, "all are at it")
    client.close()
    for thread in threads:
        thread.join(allowed(20))
    assert not any(thread.is_alive() for thread in threads)
    assert len(told) == 4 and all("closed" in one for one in told), told
    with pytest.raises(RuntimeError, match="this client is closed"):
        client.get("open")
    with Client(url) as other:
        assert {one.id for one in other.list()} >= set(answered)


def test_a_client_that_was_made_before_a_fork_says_so_in_the_child_and_goes_on_in_its_parent(
    client,
):
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        told = []
        for call in (partial(client.submit, command="true"), partial(client.get, "a")):
            try:
                told.append(str(call()))
            except RuntimeError as error:
                told.append(str(error))
        os.write(writable, "\n".join(told).encode())
        os._exit(0)
    os.close(writable)
    os.waitpid(child, 0)
    with os.fdopen(readable) as pipe:
        told = pipe.read().splitlines()
    assert len(told) == 2 and all("make a client in each process" in one for one in told)
    assert client.submit(id="mine", command="true").created
    assert [task.id for task in client.list()] == ["mine"]
