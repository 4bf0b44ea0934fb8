"""Whether a submitted task keeps the rules, with every finding in words."""

import math

import pytest

from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.requests import JobMessage, Report
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.retry import FixedDelays
from tidewheel.core.queue.submission import (
    COUNT_MAX,
    DEPENDENCIES_MAX,
    NAME_LENGTH_MAX,
    SubmitLimits,
    message_refusal,
    name_finding,
    refusal,
    run_refusal,
)
from tidewheel.core.queue.task import Need, NewTask, TaskId, WorkerId
from tidewheel.errors import InvalidTask, PayloadTooLarge

LIMITS = SubmitLimits()


def findings(**fields):
    """What is wrong with a task that differs from a good one in these fields."""
    refused = refusal(NewTask(**({"id": "a", "queue": "q"} | fields)), LIMITS)
    assert isinstance(refused, InvalidTask)
    assert refused.task_id == fields.get("id", "a")
    assert str(refused) == f"task {refused.task_id!r}: " + "; ".join(refused.findings)
    return list(refused.findings)


def accepted(**fields):
    return refusal(NewTask(**({"id": "a", "queue": "q"} | fields)), LIMITS) is None


def test_a_task_needs_nothing_but_an_id_and_a_queue():
    assert accepted()


@pytest.mark.req("R002-11")
@pytest.mark.parametrize("priority", [0, 255, 256, 4294967295])
def test_priorities_from_zero_to_the_largest_are_accepted(priority):
    assert accepted(priority=priority)


@pytest.mark.req("R002-12")
@pytest.mark.parametrize("priority", [-1, 4294967296, 1.5, 1.0, "9", True, None])
def test_any_other_priority_is_refused(priority):
    (finding,) = findings(priority=priority)
    assert finding.startswith(f"priority is {priority!r}; expected a whole number")
    assert finding.endswith("0 to 4294967295")


@pytest.mark.req("R003-10")
@pytest.mark.parametrize("field", ["max_retries", "max_lapses"])
@pytest.mark.parametrize("count", [-1, COUNT_MAX + 1, 0.5, False])
def test_counts_are_whole_and_bounded(field, count):
    assert accepted(**{field: 0})
    assert accepted(**{field: COUNT_MAX})
    (finding,) = findings(**{field: count})
    assert finding.startswith(f"{field} is {count!r}; expected a whole number")
    assert finding.endswith("0 to 1000000")


@pytest.mark.req("R003-8")
@pytest.mark.parametrize("field", ["timeout_seconds", "estimated_runtime_seconds"])
@pytest.mark.parametrize("seconds", [0, -1.0, math.nan, math.inf])
def test_a_length_of_time_is_positive_or_not_given(field, seconds):
    assert accepted(**{field: None})
    assert accepted(**{field: 0.001})
    assert findings(**{field: seconds}) == [
        f"{field} is {seconds!r}; expected more than 0; for no limit, leave it out"
    ]


@pytest.mark.req("R003-9")
@pytest.mark.parametrize("field", ["delay_seconds", "max_termination_seconds"])
@pytest.mark.parametrize("seconds", [-0.1, math.nan, math.inf, 31536001])
def test_a_wait_is_at_most_a_year(field, seconds):
    assert accepted(**{field: 0})
    assert accepted(**{field: 31536000})
    assert findings(**{field: seconds}) == [f"{field} is {seconds!r}; expected 0 to 31536000"]


NAMES = ["id", "queue", "name", "handler", "unique_key", "limit_key", "tag"]


@pytest.mark.req("R002-8")
@pytest.mark.parametrize("field", NAMES)
def test_a_name_is_printable_and_neither_empty_nor_endless(field):
    for good in ("x", "x" * NAME_LENGTH_MAX, "Köln 50%_*' --", "日本"):
        assert accepted(**{field: good})
    assert findings(**{field: ""}) == [f"{field} is empty; give 1 to 256 printable characters"]
    assert findings(**{field: "   "}) == findings(**{field: ""})
    assert findings(**{field: "x" * 257}) == [f"{field} has 257 characters; expected up to 256"]
    for bad in ("a\nb", "a\0b", "\x1b[1m", "\ud800", "\u202ereversed"):
        assert findings(**{field: bad}) == [
            f"{field} {bad!r} has characters that cannot be printed; leave them out"
        ]


def test_a_good_name_has_no_finding():
    assert name_finding("queue", "night") is None


def test_the_sign_for_every_key_is_no_key():
    assert findings(limit_key="*") == [
        "limit_key is '*', which stands for every key; choose another"
    ]


@pytest.mark.parametrize("field", ["spec", "command"])
def test_a_payload_is_measured_in_bytes(field):
    limits = SubmitLimits(payload_bytes_max=10)
    good = NewTask(id="a", queue="q", **{field: '"' + "éé" * 2 + '"'})
    assert refusal(good, limits) is None
    large = NewTask(id="a", queue="q", **{field: "é" * 6})
    refused = refusal(large, limits)
    assert isinstance(refused, PayloadTooLarge)
    assert (refused.size, refused.size_max) == (12, 10)
    assert str(refused) == (
        f"{field} of task 'a' has 12 bytes; at most 10 are accepted. "
        "Store the data elsewhere and submit a reference to it"
    )


def test_a_payload_may_have_256_kib():
    text = "x" * (256 * 1024 - 2)
    assert accepted(spec=f'"{text}"')
    refused = refusal(NewTask(id="a", queue="q", spec=f'"{text}x"'), LIMITS)
    assert isinstance(refused, PayloadTooLarge)


def test_a_command_is_text_that_every_store_can_hold():
    assert findings(command="a\0") == [
        "command has a NUL character, which neither bash nor PostgreSQL can hold"
    ]
    assert findings(command="ab\ud800") == [
        "command has half of a surrogate pair at position 2; send valid Unicode"
    ]
    assert accepted(command="line\nline\t\x1b")


def test_a_spec_is_text_that_every_store_can_hold():
    nul, no_json = findings(spec="1\0")
    assert nul == "spec has a NUL character, which neither bash nor PostgreSQL can hold"
    assert no_json.startswith("spec is not valid JSON")
    assert findings(spec='"\ud800"') == [
        "spec has half of a surrogate pair at position 1; send valid Unicode"
    ]


@pytest.mark.req("R003-5", "R003-26")
def test_edges_are_few_enough_and_named_once():
    many = DEPENDENCIES_MAX + 1
    needs = tuple(Need(task_id=f"n{n}") for n in range(many))
    assert accepted(needs=needs[1:], continuations=tuple(f"c{n}" for n in range(many - 1)))
    assert findings(needs=needs) == ["it has 10001 needs; expected up to 10000"]
    assert findings(continuations=tuple(f"c{n}" for n in range(many))) == [
        "it has 10001 continuations; expected up to 10000"
    ]
    assert findings(needs=(Need(task_id="b"), Need(task_id="b"))) == [
        "needs name b more than once"
    ]
    assert findings(continuations=("b", "c", "b")) == ["continuations name b more than once"]
    assert accepted(needs=(Need(task_id="b"), Need(task_id="b", output="half")))


@pytest.mark.req("R003-26")
def test_a_task_cannot_depend_on_itself():
    itself = ["it depends on itself; remove this dependency"]
    assert findings(needs=(Need(task_id="a"),)) == itself
    assert findings(continuations=("a",)) == itself


def test_the_output_of_a_need_is_a_name():
    assert findings(needs=(Need(task_id="b", output=""),)) == [
        "output of a need is empty; give 1 to 256 printable characters"
    ]


def test_a_task_has_a_command_or_a_handler():
    assert accepted(command="true", spec="{}")
    assert accepted(handler="f", spec="{}")
    assert findings(command="true", handler="f") == [
        "it has both a command and a handler; give one of them"
    ]


def test_every_finding_is_told_at_once():
    found = findings(
        queue="",
        priority=-1,
        timeout_seconds=0,
        continuations=("a",),
        resources=Resources(cpu=-1),
        retry=FixedDelays(seconds=()),
    )
    assert len(found) == 6


@pytest.mark.parametrize(
    ("fields", "answer"),
    [({}, False), ({"spec": "null"}, True), ({"command": ""}, True), ({"handler": "f"}, True)],
)
def test_a_task_executes_what_it_was_given(fields, answer):
    assert NewTask(id="a", queue="q", **fields).executes is answer


@pytest.mark.req("R002-6")
@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ("{", "not valid JSON"),
        ("NaN", "not a JSON number"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_spec_that_is_no_json_is_refused_whoever_submits_it(spec, word):
    assert word in findings(spec=spec)[0]


@pytest.mark.req("R002-4")
def test_a_number_has_up_to_4300_digits():
    assert refusal(NewTask(id="a", queue="q", spec="-" + "9" * 4_300), LIMITS) is None
    assert "more than 4300 digits" in findings(spec="9" * 4_301)[0]


def test_a_message_is_measured_in_bytes_and_the_first_that_is_too_long_is_named():
    limits = SubmitLimits(message_bytes_max=4)
    holder = Holder(task_id=TaskId("a"), attempt=1, worker=WorkerId("worker-1"))

    def said(*texts):
        spoken = [JobMessage(number=n, text=text) for n, text in enumerate(texts, 1)]
        return message_refusal(Report(holder=holder, messages=tuple(spoken)), limits)

    assert said() is None
    assert said("éé", "four") is None
    refused = said("four", "ééx", "five!")
    assert isinstance(refused, PayloadTooLarge)
    assert "message 2 of task 'a' has 5 bytes; at most 4 are accepted" in str(refused)


def test_a_task_for_a_run_is_for_the_run_s_scheduler_to_submit():
    assert run_refusal(NewTask(id="a", queue="q")) is None
    refused = run_refusal(NewTask(id="a", queue="q", run=7))
    assert isinstance(refused, InvalidTask)
    assert str(refused) == "task 'a': run is 7; only the scheduler of a run sets it"
