"""Values that a job hands on: one JSON object that any reader can read."""

import json

import pytest

from tidewheel.core.queue.values import (
    INPUTS_BYTES_MAX,
    VALUES_BYTES_MAX,
    files_in,
    inputs_text,
    may_have_files,
    merged,
    values_text,
)
from tidewheel.errors import BadValues, Refused


def refusal(text):
    with pytest.raises(BadValues) as refused:
        values_text(text)
    return str(refused.value)


def nested(levels, innermost):
    """An object with lists in it, so many levels together."""
    return '{"a": ' + "[" * (levels - 1) + innermost + "]" * (levels - 1) + "}"


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"beams": 4, "gain": 1.50, "ok": true, "none": null, "name": "Köln"}',
        '{"least": -9223372036854775808, "most": 18446744073709551615}',
        '{"tiny": 1e-400, "large": 1.7e308}',
        '{"escaped": "\\u00f6 \\ud83d\\ude00"}',
        '{"b":1,  "a":{"c":[]}}',
    ],
)
def test_an_object_is_kept_as_it_was_written_without_the_space_around_it(text):
    assert values_text(text) == text
    assert values_text(f"\n {text}\t\n") == text


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("[1]", "an array"),
        ('"beams"', "a string"),
        ("true", "true or false"),
        ("null", "null"),
        ("4", "a number"),
        ("0.5", "a number"),
    ],
)
def test_what_is_no_object_is_refused_by_its_kind(text, kind):
    assert f'{kind} instead of an object; expected one object, for example {{"' in refusal(text)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "line 1 column 1"),
        ('{"a": 1,\n b}', "line 2 column 2"),
        ("{} {}", "line 1 column 4"),
    ],
)
def test_what_is_no_json_is_refused_with_the_place(text, where):
    assert f"at {where}); expected one object" in refusal(text)


def test_values_are_measured_in_bytes():
    fits = '{"a": "' + "é" * 32_763 + '"}'
    assert len(fits.encode()) == 65_535
    assert values_text(fits) == fits
    assert "have 65537 bytes; at most 65536 are accepted" in refusal(fits[:-2] + 'é"}')


@pytest.mark.parametrize(
    ("number", "why"),
    [
        ("18446744073709551616", "needs more than 64 bits"),
        ("-9223372036854775809", "needs more than 64 bits"),
        ("9" * 5_000, "needs more than 64 bits"),  # more than Python reads, too
        ("1e400", "too large a number"),
        ("-1e400", "too large a number"),
        ("NaN", "NaN is not a JSON number"),
        ("-Infinity", "-Infinity is not a JSON number"),
    ],
)
def test_a_number_that_others_cannot_hold_is_refused(number, why):
    assert why in refusal(f'{{"a": {number}}}')


@pytest.mark.parametrize("text", ['"\\ud800"', '"\\udc00\\ud800"', '"a\\uDFFFb"'])
def test_half_of_a_character_is_refused_wherever_it_stands(text):
    assert "half of a surrogate pair" in refusal(f'{{"a": {text}}}')
    assert "half of a surrogate pair" in refusal(f'{{"a": [{{{text}: 1}}]}}')


@pytest.mark.parametrize("innermost", ["", "1", '"a", null'])
def test_values_are_nested_a_hundred_levels_deep_at_most_whatever_is_innermost(innermost):
    fits = nested(100, innermost)
    assert values_text(fits) == fits
    for levels in (101, 102, 150, 30_000):
        assert "nested too deeply; at most 100 levels" in refusal(nested(levels, innermost))


def test_the_values_of_several_tasks_are_one_object_and_none_is_an_empty_text():
    assert inputs_text({}) == ""
    assert (
        inputs_text({"a/1": '{"n": 1.50}', "\u00e9": "{}"})
        == '{"a/1": {"n": 1.50}, "\u00e9": {}}'
    )
    with pytest.raises(Refused, match="at most 1048576 are passed on"):
        inputs_text({"a": json.dumps({"x": "x" * INPUTS_BYTES_MAX})})


def test_what_is_told_later_counts_more():
    assert merged('{"a": 1, "b": "\u00e9"}', '{"a": [2]}') == '{"a": [2], "b": "\u00e9"}'


def test_values_that_are_too_large_are_told_how_to_hand_on_a_file():
    with pytest.raises(BadValues, match=r'return \{"\$file": "PATH"\}'):
        values_text(json.dumps({"x": "x" * VALUES_BYTES_MAX}))


def test_files_are_found_wherever_they_stand_and_however_they_are_spelled():
    value = {"a": [{"$file": "x"}, 1], "b": {"c": {"$file": "y", "d": {"$file": "z"}}}}
    assert [one["$file"] for one in files_in(value)] == ["x", "y", "z"]
    assert may_have_files('{"\\u0024file": "x"}')
    assert not may_have_files('{"file": "x"}')
