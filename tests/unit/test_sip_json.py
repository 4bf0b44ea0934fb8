"""JSON of SIP files: as the standard library reads it, with places, and mistakes explained."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.formats.sip.document import Builder, plain_value
from tidewheel.formats.sip.text_files import read_json

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\U000f5ee0\U000f5ee1")
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(CHARACTERS),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(CHARACTERS), inner, max_size=4)
    ),
    max_leaves=20,
)


def read(text):
    findings = Findings()

    def position(line, column):
        return Position("f", line + 1, column + 1)

    return read_json(text, position, Builder(findings), findings), findings


@pytest.mark.slow
@given(VALUES, st.sampled_from([None, 1]), st.booleans())
def test_what_json_writes_is_read_as_it_was(value, indent, ascii_only):
    node, findings = read(json.dumps(value, indent=indent, ensure_ascii=ascii_only))
    assert not list(findings)
    assert plain_value(node) == value


@given(st.text(st.sampled_from('{}[],:"\\ \n1-ae.null'), max_size=30))
def test_what_json_refuses_is_refused_with_a_place(text):
    try:
        json.loads(text)
    except ValueError:
        good = False
    else:
        good = True
    _, findings = read(text)
    duplicates = all(one.code == "duplicate-key" for one in findings)
    assert good == (not findings.has_errors or duplicates)
    assert all(one.position.line >= 1 for one in findings)


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ('{"a": 1,}', 1, 9, "a key in double quotes is missing before '}'"),
        ("[1,\n]", 2, 1, "a value is missing after the last ','"),
        ('{\n "a" 1}', 2, 6, "':' is missing after a key"),
        ('{"a": abc}', 1, 7, "'abc' is not a value"),
        ("{'a': 1}", 1, 2, "\"'a'\" is not a value"),
        ('{"a": NaN}', 1, 7, "NaN is not a JSON number"),
        ('{"a": 01}', 1, 7, "'01' is not a value"),
        ('{"a": 1} {', 1, 10, "something follows the end of the value"),
        ('{"a": 1', 1, 8, "',' or '}' is missing at the end of the file"),
        ('{"a": 1\n\n', 1, 8, "',' or '}' is missing at the end of the file"),
        ('{"a": 1 : 2}', 1, 9, "',' or '}' is missing before ':'"),
        ("[", 1, 2, "a value is missing at the end of the file"),
        ('{"a": "\\x"}', 1, 7, "a string has an escape that JSON does not know"),
        ('["\\ud800"]', 1, 2, "a string has an escape that JSON does not know"),
        ("{1: 2}", 1, 2, "a key has no double quotes"),
        ("{,}", 1, 2, "a key in double quotes is missing before ','"),
        ("]", 1, 1, "a value is missing before ']'"),
    ],
)
def test_a_mistake_is_explained_where_it_stands(text, line, column, said):
    node, findings = read(text)
    assert node is None
    (error,) = findings
    assert (error.position.line, error.position.column) == (line, column)
    assert error.message == f"this is not valid JSON: {said}"


def test_a_missing_quote_is_reported_and_the_rest_is_read():
    node, findings = read('{\n  "pool:\n  {\n    "low": 1\n  },\n  "b": "x,\n  "c": 2\n}')
    assert [(one.code, one.position.line) for one in findings] == [
        ("json-quote", 2),
        ("json-quote", 6),
    ]
    assert plain_value(node) == {"pool": {"low": 1}, "b": "x", "c": 2}


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ('{"version": "1"\n "type": "setup"}', 1, 15, "',' or '}'"),
        ('{"a": {"b": 1}\n\n\n "c": 2}', 1, 14, "',' or '}'"),
        ('["a"\n, 1 [2]]', 2, 3, "',' or ']'"),
        ('[{"a": 1}\n {"b": 2}]', 1, 9, "',' or ']'"),
    ],
)
def test_a_missing_comma_is_reported_behind_the_value_where_it_belongs(
    text, line, column, said
):
    _, findings = read(text)
    (error,) = findings
    assert (error.position.line, error.position.column) == (line, column)
    assert error.message == f"this is not valid JSON: {said} is missing after this value"
    assert error.hint == "write ',' there, since another value follows"


@pytest.mark.parametrize("text", ["", " \n\n"])
def test_a_file_that_says_nothing_is_told_so(text):
    node, findings = read(text)
    assert node is None
    assert [(one.code, one.position.line) for one in findings] == [("empty-file", 1)]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('{"a":\n [1, {"b": 1\n]}', "the '{' of line 2 is not closed before that"),
        ('{"a":\n [1\n', "the '[' of line 2 is not closed before that"),
        ('{"a": True}', "write true"),
        ('{"a": None}', "write null"),
        ('{\n // x\n "a": 1}', "JSON has no comments"),
        ('{"a": 1,\n # x\n "b": 1}', "JSON has no comments"),
        ("{'a': 1}", "put strings in double quotes"),
    ],
)
def test_words_of_other_languages_are_told_how_json_writes_them(text, hint):
    _, findings = read(text)
    (error,) = findings
    assert hint in error.hint


def test_a_missing_comma_hides_nothing_that_comes_after_it():
    node, findings = read('{"a": 1\n "b": 2,\n "b": 3\n "c": [4 5]}')
    assert plain_value(node) == {"a": 1, "b": 2, "c": [4, 5]}
    assert sorted((one.code, one.position.line) for one in findings) == [
        ("duplicate-key", 3),
        ("json-syntax", 1),
        ("json-syntax", 3),
        ("json-syntax", 4),
    ]


def test_a_file_without_any_comma_is_not_reported_value_by_value():
    node, findings = read("[" + "1 " * 10_000 + "]")
    assert node is None
    assert 1 < len(list(findings)) < 50


@pytest.mark.parametrize("sign", ["[", '{"a":'])
def test_deep_nesting_is_refused_without_recursion(sign):
    _, findings = read(sign * 100_000)
    assert [one.code for one in findings] == ["nested-too-deeply"]


def test_a_key_that_stands_twice_is_an_error():
    node, findings = read('{"a": 1,\n "a": 2}')
    assert plain_value(node) == {"a": 1}
    (error,) = findings
    assert (error.code, error.position.line) == ("duplicate-key", 2)
