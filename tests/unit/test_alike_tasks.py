"""Tasks that say the same: who recognises them, and that they are the tasks they stand for."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.client.async_client import TimeOrderedIds, new_id
from tidewheel.client.fields import alike_tasks, new_task
from tidewheel.core.queue.requests import AllCreated, Submitted
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.retry import Exponential
from tidewheel.core.queue.submission import SubmitLimits, acceptable_alike
from tidewheel.core.queue.task import AlikeTasks, Need, NewTask
from tidewheel.exact_json import encode
from tidewheel.store.rows import digest_of, digests_of

SAID = NewTask(id="a", queue='"spec":null', handler="h", tag='x,"spec":null')


def test_they_stand_for_the_tasks_one_by_one():
    tasks = AlikeTasks(SAID, ["a", "b", "c"], ["1", "2", "3"])
    assert len(tasks) == 3
    assert tasks[1] == replace(SAID, id="b", spec="2")
    assert tasks[1:] == [tasks[1], tasks[2]] == list(tasks)[1:]
    without = AlikeTasks(SAID, ["a", "b"])
    assert list(without) == without[:] == [SAID, replace(SAID, id="b")]


def test_the_answer_stands_for_the_answers_one_by_one():
    answers = AllCreated(["a", "b", "c"])
    assert len(answers) == 3
    assert answers[0] == Submitted(id="a", created=True)
    assert list(answers[1:]) == list(answers)[1:] == [answers[1], answers[2]]
    assert answers == AllCreated(["a", "b", "c"]) == list(answers)
    assert list(answers) == answers != AllCreated(["a", "b", "d"])
    assert answers != 3


@pytest.mark.parametrize(
    "said",
    [
        {"needs": ("b",)},
        {"continuations": ("b",)},
        {"name": "n"},
        {"unique_key": "k"},
        {"run": 1},
        {"armed": False},
        {"spec": "1"},
        {"handler": None},
    ],
)
def test_what_needs_a_look_of_its_own_is_not_alike(said):
    with pytest.raises(AssertionError):
        AlikeTasks(replace(SAID, **said), ["a", "b"])


def test_a_spec_belongs_to_each_or_to_none():
    with pytest.raises(AssertionError):
        AlikeTasks(SAID, ["a", "b"], ["1"])


@given(st.lists(st.recursive(st.none() | st.integers() | st.text(), st.lists), min_size=1))
def test_their_digests_are_those_of_the_tasks(values):
    specs = list(map(encode, values))
    tasks = AlikeTasks(SAID, [str(n) for n in range(len(specs))], specs)
    assert digests_of(tasks) == list(map(digest_of, tasks))


def test_one_digest_is_enough_without_specs():
    resources = Resources(cpu=1, labels=frozenset({"b", "a"}))
    said = replace(SAID, delay_seconds=5, resources=resources)
    assert digests_of(AlikeTasks(said, ["a", "b"])) == digest_of(said)


def accepted(tasks, **limits):
    return acceptable_alike(tasks, SubmitLimits(**limits)) is not None


@pytest.mark.parametrize("spec", ["", "{", "NaN", '"\ud800"', '"\0"', "1" * 4301])
def test_specs_are_json_whoever_wrote_them(spec):
    assert not accepted(AlikeTasks(SAID, ["a", "b"], ["1", spec]))
    assert not accepted([replace(SAID, spec="1"), replace(SAID, id="b", spec=spec)])


@pytest.mark.parametrize(
    "tasks",
    [
        [SAID, replace(SAID, id="b")],
        [replace(SAID, id=one, spec=one) for one in "123"],
        [replace(SAID, id=one, spec=one, handler=None) for one in "123"],
    ],
)
def test_tasks_that_were_made_one_by_one_are_recognised(tasks):
    found = acceptable_alike(tasks, SubmitLimits())
    assert found is not None
    assert not found.ids_are_new
    assert list(found) == tasks


class Later(NewTask):
    """Of a version that knows more."""


@pytest.mark.parametrize(
    "tasks",
    [
        [],
        [SAID],
        [SAID, replace(SAID, id="b", priority=51)],
        [replace(SAID, priority=1), replace(SAID, id="b", priority=True)],
        [replace(SAID, delay_seconds=1), replace(SAID, id="b", delay_seconds=1.0)],
        [SAID, replace(SAID, id="b", spec="1")],
        [SAID, replace(SAID, id="b", retry=Exponential())],
        [SAID, replace(SAID, id="b", resources=Resources(cpu=1))],
        [replace(SAID, id=one, handler=None) for one in "ab"],
        [replace(SAID, id=one, armed=False) for one in "ab"],
        [replace(SAID, id=one, name="n") for one in "ab"],
        [replace(SAID, id=one, unique_key="k") for one in "ab"],
        [replace(SAID, id=one, run=0) for one in "ab"],
        [replace(SAID, id=one, needs=(Need(task_id="p"),)) for one in "ab"],
        [replace(SAID, id=one, continuations=("p",)) for one in "ab"],
        [SAID, Later(id="b", queue=SAID.queue, handler="h", tag=SAID.tag)],
        [Later(id=one, queue="q", handler="h") for one in "ab"],
    ],
)
def test_tasks_that_differ_are_not_recognised(tasks):
    assert not accepted(tasks)


@pytest.mark.parametrize(
    ("specs", "is_stored"),
    [(None, True), (["1", '"üü"'], True), (["1", '"ööö"'], False), (["1", "1234567"], False)],
)
def test_specs_may_not_be_too_long(specs, is_stored):
    tasks = AlikeTasks(SAID, ["a", "b"], specs)
    assert accepted(tasks, payload_bytes_max=6) is is_stored
    assert accepted(list(tasks), payload_bytes_max=6) is is_stored


@pytest.mark.parametrize("ids", [["a", "a"], ["a", ""], ["a", "b\n"], ["a", "b" * 257]])
def test_ids_that_somebody_chose_keep_the_rules(ids):
    assert not accepted(AlikeTasks(SAID, ids))
    assert accepted(AlikeTasks(SAID, ids, ids_are_new=True))


def test_what_all_say_keeps_the_rules():
    tasks = AlikeTasks(replace(SAID, priority=-1), ["a", "b"])
    assert not accepted(tasks)


# ---- who recognises them ----


def built(fields):
    given = dict(fields)
    return new_task(given.pop("queue", "default"), given, lambda: "made")


@pytest.mark.parametrize(
    "tasks",
    [
        [{"command": "true"}] * 2,
        ({"handler": "h", "queue": "q"}, {"queue": "q", "handler": "h"}),
        [{"spec": {"n": n}, "priority": 9, "delay": "5m"} for n in range(3)],
        [{"handler": "h", "spec": spec} for spec in (None, 0.5, "\ud800", "ü\0")],
        [{"id": f"t{n}", "spec": n} for n in range(3)],
        [{"id": "again", "command": "true"}] * 2,
    ],
)
def test_tasks_that_say_the_same_are_recognised(tasks):
    found = alike_tasks(tasks, new_id.many)
    assert found is not None
    given = ["id" in task for task in tasks]
    assert [
        one if has else replace(one, id="made") for one, has in zip(found, given, strict=True)
    ] == list(map(built, tasks))
    assert found.ids_are_new is not all(given)
    assert not found.ids_are_new or len(set(found.ids)) == len(tasks)


@pytest.mark.parametrize(
    "tasks",
    [
        [],
        [{"command": "true"}],
        [{"command": "true"}, {"command": "false"}],
        [{"command": "true"}, {"command": "true", "tag": "t"}],
        [{"command": "true"}, {"command": "true", "spec": 1}],
        [{"spec": 1}, {"command": "true"}],
        [{"spec": 1}, {"spec": 1, "tag": "t"}],
        [{"command": "true", "priority": 1}, {"command": "true", "priority": True}],
        [{"command": "true", "delay": 1}, {"command": "true", "delay": 1.0}],
        [{"command": "true", "labels": ["a"]}] * 2,
        [{"command": "true", "id": "a"}, {"command": "true"}],
        [{"command": "true"}, {"command": "true", "id": "a"}],
        [{"command": "true", "id": 1}, {"command": "true", "id": "a"}],
        [{"command": "true", "id": None}] * 2,
        [{"command": "true", "name": "a"}] * 2,
        [{"command": "true", "runner": "shell"}] * 2,
        [{"spec_text": "{}"}] * 2,
        [{"command": "true", "needs": ["a"]}] * 2,
        [{"command": "true", "unique_key": "k"}] * 2,
        [{"command": "true", "armed": False}] * 2,
        [{"tag": "joins others"}] * 2,
        [{"command": "true", "colour": "red"}] * 2,
        [{"command": "true", "delay": "soon"}] * 2,
        [{"spec": 1}, {"spec": {1, 2}}],
        [{"spec": 1}, SAID],
        [SAID, SAID],
    ],
)
def test_all_others_go_the_long_way(tasks):
    assert alike_tasks(tasks, new_id.many) is None
    assert alike_tasks(iter(tasks), new_id.many) is None


def test_many_ids_at_once_are_in_order_too():
    ids = TimeOrderedIds()
    made = [*ids.many(5000), ids(), *ids.many(2)]
    assert made == sorted(set(made))


def test_json_is_as_short_as_ever():
    assert encode({"a": [1, "ü", None]}) == '{"a":[1,"ü",null]}'
    assert json.loads(encode("\ud800")) == "\ud800"
