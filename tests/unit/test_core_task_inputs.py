"""Which values of the tasks before it a task is given."""

import json

import pytest

from tests.support import sips
from tests.support.flows import flow, graph_of, load_with_findings
from tidewheel.core.graph.definition import assumed_sizes
from tidewheel.core.operator.requests import StoredValues
from tidewheel.core.operator.task_inputs import (
    NO_INPUTS,
    VARIABLE_BYTES_MAX,
    inputs_of,
    parents_of,
    size_returned,
    values_for,
)
from tidewheel.core.queue.values import INPUTS_BYTES_MAX
from tidewheel.core.sched.index_builder import build_index
from tidewheel.errors import Refused

pytestmark = pytest.mark.req("R007-1")


def row(name, values, point=1, submit=1, flows=(1,)):
    return StoredValues(point, name, submit, json.dumps(list(flows)), json.dumps(values))


def given(graph, key, *rows):
    return inputs_of(graph, key, {(one.point, one.name): one for one in rows})


GRAPH = graph_of(
    flow(
        """
        P1 = a[-P1] & FAM:succeed-all => a => b
        P1 = a:started | c[^] => d
        R1 = c
        """,
        """
        [[FAM]]
        [[m1, m2]]
            inherit = FAM
        [[b]]
            [[[inputs]]]
                PATH_OF_A = a.path
                SECOND = a.files.1
                ALL = a
        [[d]]
        """,
    )
)


def test_a_task_gets_the_values_of_all_tasks_that_arrows_lead_from_to_it():
    assert list(parents_of(GRAPH, (2, "a"))) == [(1, "a"), (2, "m1"), (2, "m2")]
    assert list(parents_of(GRAPH, (3, "d"))) == [(3, "a"), (1, "c")]
    found = given(GRAPH, (2, "a"), row("a", {"x": 1}), row("m2", {"y": "é"}, point=2))
    assert json.loads(found.text) == {"1/a": {"x": 1}, "m2": {"y": "é"}}
    assert found.variables == ()


def test_a_task_whose_parents_returned_nothing_gets_nothing():
    assert given(GRAPH, (2, "a")) is NO_INPUTS
    assert list(parents_of(GRAPH, (1, "no longer there"))) == []


def test_chosen_values_are_variables_texts_as_they_are_and_all_else_as_json():
    found = given(GRAPH, (1, "b"), row("a", {"path": "$(x) 'y", "files": ["f", {"g": 2}]}))
    assert dict(found.variables) == {
        "PATH_OF_A": "$(x) 'y",
        "SECOND": '{"g": 2}',
        "ALL": json.dumps({"path": "$(x) 'y", "files": ["f", {"g": 2}]}),
    }


@pytest.mark.parametrize(
    ("values", "seen"),
    [
        (None, "1/a returned no values"),
        ({}, "1/a has no named values"),
        ({"other": 1}, "1/a has only other"),
        ({str(n): n for n in range(12)}, "and 2 more"),
        ({"path": 1, "files": ["one"]}, "1/a.files has 1 element;"),
        ({"path": 1, "files": "text"}, "1/a.files has no named values"),
    ],
)
@pytest.mark.req("R007-5")
def test_a_value_that_is_missing_is_named_with_what_there_is_and_how_to_give_it(values, seen):
    rows = [] if values is None else [row("a", values)]
    with pytest.raises(Refused, match=r"set 1/a --value (path|files)=") as refused:
        given(GRAPH, (1, "b"), *rows)
    assert seen in str(refused.value)


def test_a_name_that_a_job_chose_forges_no_line_and_fills_no_page():
    with pytest.raises(Refused) as refused:
        given(GRAPH, (1, "b"), row("a", {"x\n2026 => succeeded": 1, "y" * 5_000: 2}))
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 300


def test_a_task_that_the_graph_never_has_is_not_waited_for():
    graph = graph_of(
        flow("P1 = a[-P1] => a", "[[a]]\n    [[[inputs]]]\n        BEFORE = a[-P1].n\n")
    )
    assert given(graph, (1, "a")) is NO_INPUTS
    with pytest.raises(Refused, match="1/a returned no values"):
        given(graph, (2, "a"))
    later = graph_of(
        flow("P1 = a[-P1] => a", "[[a]]\n    [[[inputs]]]\n        BEFORE = a[-P1].n\n"),
        start="3",
    )
    assert given(later, (3, "a")) is NO_INPUTS


def test_a_value_with_a_character_that_no_variable_can_hold_is_refused():
    with pytest.raises(Refused, match="NUL"):
        given(GRAPH, (1, "b"), row("a", {"path": "x\0y", "files": [0, 1]}))


@pytest.mark.req("R007-4")
def test_values_that_no_script_or_variable_can_hold_are_refused_with_what_to_do():
    with pytest.raises(Refused, match="return the path of a file"):
        given(GRAPH, (1, "d"), row("a", {"x": "x" * INPUTS_BYTES_MAX}))
    large = {"path": "x" * (VARIABLE_BYTES_MAX + 1), "files": [0, 1]}
    with pytest.raises(Refused, match=r"\$TIDEWHEEL_INPUTS"):
        given(GRAPH, (1, "b"), row("a", large))


@pytest.mark.req("R007-6")
def test_the_newest_submission_of_its_own_flow_counts_and_else_the_newest():
    rows = [
        row("a", {"n": 1}, submit=1, flows=(1,)),
        row("a", {"n": 2}, submit=2, flows=(1, 2)),
        row("a", {"n": 3}, submit=3, flows=(3,)),
    ]

    def number(*flows):
        found = values_for(rows, frozenset(flows))
        return json.loads(found.body)["n"]

    assert [number(1), number(2), number(3), number(4), number()] == [2, 2, 3, 3, 3]
    by_hand = row("a", {"n": 4}, submit=2, flows=(1,))
    assert values_for([*rows, by_hand], frozenset({1})) is by_hand
    assert values_for([], frozenset({1})) is None
    nothing = row("a", {}, submit=4, flows=(1,))._replace(body="")
    assert values_for([*rows, nothing], frozenset({1})) is None  # it returned none
    assert values_for([*rows, nothing], frozenset({3})) is rows[2]


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("X = z.path", "z is not before b in the graph"),
        ("X = a[-P1].path", r"a[-P1] is not before b in the graph"),
        ("X = a.", "is not understood"),
        ("X = a[-Q].path", "the input X = a[-Q].path"),
        ("2X = a.path", "cannot be the name of an input"),
    ],
)
def test_an_input_that_cannot_be_had_is_an_error_of_the_definition(written, seen):
    text = flow("P1 = a => b", f"[[b]]\n    [[[inputs]]]\n        {written}\n")
    found = load_with_findings(text)[1].sorted()
    assert any(seen in one.message for one in found), found


def test_inputs_of_a_task_that_is_not_in_the_graph_are_no_further_finding():
    text = flow("P1 = a", "[[b]]\n    [[[inputs]]]\n        X = a.path\n")
    assert not [one for one in load_with_findings(text)[1].sorted() if one.code == "bad-input"]


SHA = "0" * 64
FILES = graph_of(
    flow(
        "R1 = a => b & c",
        "[[b]]\n    [[[inputs]]]\n        DATA = a.data\n        N = a.n\n",
    )
)


def file(path, **facts):
    return {"$file": path} | facts


@pytest.mark.req("R007-4")
def test_a_task_is_given_the_files_that_it_asks_for_and_else_all_of_them():
    values = {
        "data": file("/x", size=1, sha256=SHA),
        "n": 1,
        "others": [file("/y", size=2, sha256=SHA)],
    }
    asking = given(FILES, (1, "b"), row("a", values))
    assert asking.variables == (("DATA", "/x"), ("N", "1"))
    assert asking.files == (("1/a", ("/x", 1, SHA)),)
    taking_all = given(FILES, (1, "c"), row("a", values))
    assert [one.path for _, one in taking_all.files] == ["/x", "/y"]


@pytest.mark.req("R007-4")
@pytest.mark.parametrize(
    "told",
    [
        file("/x"),
        file("/x", size="1", sha256=SHA),
        file("/x", size=1, sha256=f"{SHA}; rm"),
        file(5, size=1, sha256=SHA),
    ],
)
def test_a_file_that_nobody_recorded_is_refused(told):
    with pytest.raises(Refused, match="has no size and sha256"):
        given(FILES, (1, "c"), row("a", {"data": told, "n": 1}))


@pytest.mark.req("R011-9")
@pytest.mark.parametrize("items", ["[]", "[a, b, c]"])
def test_a_list_that_is_known_with_the_definition_is_returned_by_nobody(items):
    text = sips.definition(sips.stage("image", more=f"for_each: {items}"))
    source = sips.sip(text, {"image": {"script.sh": "true\n"}})
    graph = sips.graph_of(sips.validate(source))
    [tasks] = build_index(graph).mapped
    size = items.count(",") + (items != "[]")
    assert size_returned(tasks, {}) == size
    assert assumed_sizes([tasks.over]) == (f"item[{size}]",)
    if size:
        assert graph.inputs_of("image_item1") == ()
