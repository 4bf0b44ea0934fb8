"""YAML of SIP files: texts with their places, and everything else refused."""

import pytest

from tidewheel.core.graph.findings import Findings, Position
from tidewheel.formats.sip.document import Builder, Fields, Items, Scalar, plain_value
from tidewheel.formats.sip.text_files import read_yaml


def read(text):
    findings = Findings()

    def position(line, column):
        return Position("f", line + 1, column + 1)

    return read_yaml(text, position, Builder(findings), findings), findings


def refusal(text):
    node, findings = read(text)
    assert node is None
    (error,) = findings
    return error


def test_every_node_knows_its_place():
    node, _ = read("a:\n  - b\n  - 'c': d\n")
    assert isinstance(node, Fields)
    items = node.get("a")
    assert isinstance(items, Items)
    assert [one.position[1:] for one in items.items] == [(2, 5), (3, 5)]
    assert items.items[0] == Scalar("b", False, Position("elsewhere"))
    inner = items.items[1]
    assert (inner.entries[0].key.quoted, inner.get("d"), inner.get("c").text) == (
        True,
        None,
        "d",
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.10", 1.1),
        ("'1.10'", "1.10"),
        ("1:30", "1:30"),
        ("no", "no"),
        ("off", "off"),
        ("0o17", 15),
        ("0x1F", 31),
        ("017", 17),
        ("-3", -3),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("~", None),
        ("True", True),
        ("false", False),
        ("2001-01-01", "2001-01-01"),
        ("1_000", "1_000"),
        (".inf", ".inf"),
        ("9" * 200, "9" * 200),
        ("1e999", "1e999"),
        ("|\n  a\n  b\n", "a\nb\n"),
        ("[a, {b: c}]", ["a", {"b": "c"}]),
        ("{}", {}),
    ],
)
def test_plain_values_are_those_of_yaml_1_2(text, value):
    node, findings = read(f"k: {text}")
    assert plain_value(node) == {"k": value}
    assert not list(findings)


BOMB = "a: &a [x, x]\n" + "".join(
    f"{name}: &{name} [*{last}, *{last}, *{last}]\n"
    for last, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        (BOMB, "yaml-alias", 1),
        ("a: 1\nb: *a", "yaml-alias", 2),
        ("a: &x 1", "yaml-alias", 1),
        ("&x a: 1", "yaml-alias", 1),
        ("a: !!python/object/apply:os.system ['id']", "yaml-tag", 1),
        ("a: !!binary aGk=", "yaml-tag", 1),
        ("a: !secret x", "yaml-tag", 1),
        ("!!set {a, b}", "yaml-tag", 1),
        ("[" * 100_000, "nested-too-deeply", 1),
        ("{a: " * 100_000, "nested-too-deeply", 1),
        ("\n".join("  " * n + f"k{n}:" for n in range(40)), "nested-too-deeply", 33),
        ("[" + "a," * 100_001 + "]", "file-too-large", 1),
        ("a: 1\n---\nb: 2\n", "several-documents", 2),
        ("", "empty-file", 1),
        ("# only a remark\n", "empty-file", 1),
        ("a: |\n  x\n b: 1", "yaml-syntax", 3),
        ("a: [1,\n  b, 2\n  c", "yaml-syntax", 1),
        ("a: 'x' y", "yaml-syntax", 1),
        ("a:\n   b: 1\n  c: 2", "yaml-syntax", 3),
        ("a: \x01", "yaml-syntax", 1),
        ("a:\n\t- b", "yaml-syntax", 2),
    ],
    ids=range(21),
)
def test_what_is_refused_has_its_code_and_its_line(text, code, line):
    error = refusal(text)
    assert (error.code, error.position.line) == (code, line)
    assert error.hint


MEANT = {
    "a: b: c": ({"a": "b: c"}, [1]),
    "a: b's: c\nd: 1": ({"a": "b's: c", "d": 1}, [1]),
    "a: [1, 2\nb: 3": ({"a": [1, 2], "b": 3}, [1]),
    "a: {x: 1\nb: 2": ({"a": {"x": 1}, "b": 2}, [1]),
    "a: 'x\nb: 3": ({"a": "x", "b": 3}, [1]),
    "a: 1\n b: 2": ({"a": 1, "b": 2}, [2]),
    "a\n  b: 1": ({"a": {"b": 1}}, [2]),
    "a: 1\nb\n  c: 1\nd: 2": ({"a": 1, "b": {"c": 1}, "d": 2}, [2]),
    "image busybox\nb: 1": ({"image": "busybox", "b": 1}, [2]),
    "a: 1\nimage:busybox\nb: 1": ({"a": 1, "image": "busybox", "b": 1}, [2]),
    "- id b\n  v: 1\n- id: c": ([{"id": "b", "v": 1}, {"id": "c"}], [2]),
    "a: 1\n b: 2\nc\n  d: 3\ne: 'x": ({"a": 1, "b": 2, "c": {"d": 3}, "e": "x"}, [2, 3, 5]),
}


@pytest.mark.req("R004-49")
@pytest.mark.parametrize("text", MEANT)
def test_a_mistake_of_which_it_is_clear_what_is_meant_does_not_hide_the_next(text):
    node, findings = read(text)
    meant, lines = MEANT[text]
    assert plain_value(node) == meant
    assert [one.position.line for one in findings] == lines
    assert {one.code for one in findings} == {"yaml-syntax"}


def test_no_more_mistakes_of_one_file_are_told_than_a_person_reads():
    node, findings = read("a: 1\n" + " b: 2\n" * 50)
    assert node is None
    assert 10 < len(list(findings)) < 50


def test_a_quote_that_is_not_closed_is_shown_where_it_opens():
    _, (error,) = read("a: 1\nb: 'x\nc: 2\nd: 3\n")
    assert (error.position.line, error.position.column) == (2, 4)
    assert "a quote is opened here" in error.message


def test_a_tab_is_named():
    assert "tabs" in refusal("a:\n\t- b").hint


@pytest.mark.parametrize("text", ["a: 1\na: 2\n", "{a: 1, 'a': 2}", 'a: 1\n"a": 2\n'])
def test_a_key_that_stands_twice_is_an_error_and_the_rest_is_read(text):
    node, findings = read(text)
    assert plain_value(node) == {"a": 1}
    (error,) = findings
    assert error.code == "duplicate-key"


def test_a_key_is_a_text():
    _, findings = read("? [a]\n: 1\n")
    assert [one.code for one in findings] == ["key-kind"]
