"""What an attempt that ended well hands to those after it: a JSON object, in every store."""

import json

import pytest

from tidewheel.core.queue.requests import End, Ending, JobMessage, Report
from tidewheel.core.queue.task import Need
from tidewheel.core.queue.values import VALUES_BYTES_MAX
from tidewheel.errors import BadValues

WITH_SPACE = '\n {"beams" : 4, "name": "Ω", "n": 1.50e0, "many": 12345678901234567890} \t'


@pytest.mark.req("R004-44")
def test_values_are_kept_letter_by_letter_with_the_end_of_the_attempt(store):
    store.put("a", "b", "c")
    assert store.finish(store.hold("a"), values=WITH_SPACE, exit_status=0) == "succeeded"
    assert store.finish(store.hold("b"), exit_status=0) == "succeeded"
    assert store.finish(store.hold("c"), values="{}") == "succeeded"
    found = store.values_of(["c", "a", "b", "a", "no such task"])
    assert found == {"a": WITH_SPACE.strip(), "c": "{}"}
    assert store.values_of([]) == {}


def test_values_that_hold_what_no_text_column_can_are_kept_as_they_are_spelled(store):
    store.put("a")
    spelled = '{"nul": "\\u0000", "pair": "\\ud83d\\ude00", "quote": "\\"\\\\"}'
    store.finish(store.hold("a"), values=spelled)
    assert store.values_of(["a"]) == {"a": spelled}


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("", "not valid JSON"),
        ('{"a": ', "not valid JSON"),
        ('["a"]', "an array instead of an object"),
        ('"a"', "a string instead of an object"),
        ("3", "a number instead of an object"),
        ("null", "null instead of an object"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": 1e400}', "1e400 is too large a number"),
        ('{"a": 18446744073709551616}', "needs more than 64 bits"),
        ('{"a": ["\\ud800"]}', "half of a surrogate pair"),
        ('{"a": ' + "[" * 30_000 + "]" * 30_000 + "}", "nested too deeply"),
        ('{"a": ' + "[" * 101 + "]" * 101 + "}", "at most 100 levels"),
        ('{"a": "' + "x" * VALUES_BYTES_MAX + '"}', f"at most {VALUES_BYTES_MAX} are accepted"),
    ],
)
def test_what_is_no_object_of_bearable_size_is_refused_and_the_attempt_goes_on(
    store, text, seen
):
    store.put("a", "b")
    worker = store.hire()
    bad, good = store.hold("a", worker), store.hold("b", worker)
    answers = store.report(
        [
            Report(holder=bad.holder, end=End(ending=Ending.SUCCEEDED, values=text)),
            Report(holder=good.holder, end=End(ending=Ending.SUCCEEDED, values='{"x": 1}')),
        ]
    )
    assert isinstance(answers[0].refused, BadValues)
    assert seen in str(answers[0].refused)
    assert store.statuses("a", "b") == ["running", "succeeded"]
    assert store.values_of(["a", "b"]) == {"b": '{"x": 1}'}
    assert store.finish(bad, values='{"y": 2}') == "succeeded"


def test_as_many_bytes_as_are_accepted_are_kept(store):
    store.put("a")
    text = '{"a": "' + "x" * (VALUES_BYTES_MAX - 9) + '"}'
    assert len(text) == VALUES_BYTES_MAX
    store.finish(store.hold("a"), values=text)
    assert store.values_of(["a"]) == {"a": text}


def test_many_large_values_in_one_report_are_all_kept(store):
    names = [f"t{number}" for number in range(200)]
    store.put(*names)
    text = '{"a": "' + "x" * (VALUES_BYTES_MAX - 9) + '"}'
    held = store.take(200, worker=store.hire(slots=200))
    end = End(ending=Ending.SUCCEEDED, values=text)
    answers = store.report([Report(holder=one.holder, end=end) for one in held])
    assert {answer.status for answer in answers} == {"succeeded"}
    assert store.values_of(names) == dict.fromkeys(names, text)


def test_a_task_that_was_cancelled_meanwhile_hands_on_nothing(store):
    store.put("a")
    held = store.hold("a")
    store.cancel_one("a")
    assert store.finish(held, values='{"x": 1}') == "cancelled"
    assert store.values_of(["a"]) == {}


def test_an_end_that_is_not_the_owners_leaves_no_values(store):
    store.put("a")
    held = store.hold("a")
    store.finish(held, "yielded")
    again = store.hold("a")
    refused = store.report(
        [Report(holder=held.holder, end=End(ending=Ending.SUCCEEDED, values='{"x": 1}'))]
    )[0].refused
    assert refused is not None and store.values_of(["a"]) == {}
    store.finish(again, values='{"x": 2}')
    assert store.values_of(["a"]) == {"a": '{"x": 2}'}


def test_values_go_with_their_task(store):
    store.put("a", "b")
    store.finish(store.hold("a"), values='{"x": 1}')
    store.finish(store.hold("b"), values='{"x": 2}')
    assert store.delete(["a"]) == 1
    assert store.values_of(["a", "b"]) == {"b": '{"x": 2}'}
    store.put("a")
    store.finish(store.hold("a"))
    assert store.values_of(["a"]) == {}


def test_a_claim_tells_that_a_needed_task_has_values_and_the_store_has_them_by_id(store):
    store.put("a", "b", "alone")
    store.put("c", needs=["a", "b"])
    store.put("d", needs=["b"])
    store.finish(store.hold("a"), values='{"n": 1.50e0}')
    store.finish(store.hold("b"))
    claimed = {one.id: one.task.has_inputs for one in store.take(9, worker=store.hire(slots=9))}
    assert claimed == {"alone": False, "c": True, "d": False}
    [told] = store.inputs("c")
    assert (told.id, told.queue, told.values_text) == ("a", "q", '{"n": 1.50e0}')
    assert store.inputs("d") == []


def test_a_task_that_is_claimed_by_its_id_has_its_inputs_too(store):
    store.put("a")
    store.put("b", needs=["a"])
    store.finish(store.hold("a"), values='{"n": 1}')
    assert store.hold("b").task.has_inputs


def say(store, held, number, values, output="ready"):
    said = JobMessage(number=number, text="", output=output, values=values)
    [answer] = store.report([Report(holder=held.holder, messages=(said,))])
    return answer


def test_an_output_may_carry_values_for_the_tasks_that_it_lets_run(store):
    store.put("a")
    store.put("b", needs=[Need(task_id="a", output="ready")])
    held = store.hold("a")
    assert say(store, held, 1, '{"file": "x", "n": 1}').refused is None
    assert store.hold("b").task.has_inputs
    assert [one.values_text for one in store.inputs("b")] == ['{"file": "x", "n": 1}']
    assert store.values_of(["a"]) == {"a": '{"file": "x", "n": 1}'}


def test_what_an_attempt_tells_adds_up_and_what_it_returns_counts_most(store):
    store.put("a", "b", "c")
    for task_id, returned in (("a", '{"n": 3}'), ("b", None), ("c", '{"m": 4}')):
        held = store.hold(task_id)
        say(store, held, 1, '{"n": 1, "file": "x"}')
        say(store, held, 2, '{"n": 2}')
        say(store, held, 2, '{"n": "the same message again"}')
        assert store.finish(held, values=returned) == "succeeded"
    whole = {one: json.loads(text) for one, text in store.values_of(["a", "b", "c"]).items()}
    assert whole == {
        "a": {"n": 3, "file": "x"},
        "b": {"n": 2, "file": "x"},
        "c": {"n": 2, "file": "x", "m": 4},
    }


def test_a_message_and_the_end_in_one_report_add_up_too(store):
    store.put("a")
    held = store.hold("a")
    said = JobMessage(number=1, text="", output="ready", values='{"n": 1, "file": "x"}')
    end = End(ending=Ending.SUCCEEDED, values='{"n": 2}')
    store.report([Report(holder=held.holder, messages=(said,), end=end)])
    assert json.loads(store.values_of(["a"])["a"]) == {"n": 2, "file": "x"}


def test_another_attempt_begins_without_what_the_one_before_told(store):
    store.put("a", max_retries=1)
    store.put("b", needs=[Need(task_id="a", output="ready")])
    held = store.hold("a")
    say(store, held, 1, '{"n": 1}')
    store.finish(held, ending="failed")
    assert [one.values_text for one in store.inputs("b")] == ['{"n": 1}']
    again = store.hold("a")
    assert store.values_of(["a"]) == {}
    assert [one.values_text for one in store.inputs("b")] == ['{"n": 1}']
    store.finish(again)
    assert store.values_of(["a"]) == {}
    assert store.inputs("b") == []


@pytest.mark.parametrize("text", ["not json", "[1]", '{"n": NaN}', '{"n": "\\ud800"}'])
def test_bad_values_of_a_message_are_refused_and_nothing_of_it_is_kept(store, text):
    store.put("a")
    store.put("b", needs=[Need(task_id="a", output="ready")])
    held = store.hold("a")
    assert isinstance(say(store, held, 1, text).refused, BadValues)
    assert (store.status("b"), store.values_of(["a"]), store.outputs("a")) == (
        "waiting",
        {},
        [],
    )
    assert say(store, held, 1, '{"n": 1}').refused is None


def test_messages_of_one_attempt_tell_no_more_than_is_accepted_at_once(store):
    store.put("a")
    held = store.hold("a")
    large = "x" * (VALUES_BYTES_MAX // 2)
    assert say(store, held, 1, f'{{"a": "{large}"}}').refused is None
    assert isinstance(say(store, held, 2, f'{{"b": "{large}"}}').refused, BadValues)
    assert say(store, held, 2, f'{{"a": "{large}"}}').refused is None
