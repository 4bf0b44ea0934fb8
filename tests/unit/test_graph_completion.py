"""When an ended task is complete: unmarked tasks, marked tasks, and `completion` settings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.core.graph.completion import BadCompletion, completion_of, read_completion
from tidewheel.core.graph.definition import OutputMark
from tidewheel.core.graph.findings import Findings, Position

EVERY_END = ("succeeded", "failed", "submit-failed", "expired")


def marks(text: str) -> list[OutputMark]:
    """`failed? x FAM:succeeded finish` as the marks of one task."""
    found = []
    for column, word in enumerate(text.split(), start=1):
        by_family = word.startswith("FAM:")
        name = word.removeprefix("FAM:").removesuffix("?")
        place = Position("flow.cylc", 1, column)
        if name == "finish":
            ends = ("succeeded", "failed")
            found += [OutputMark("t", end, True, by_family, False, place) for end in ends]
        else:
            found.append(OutputMark("t", name, word.endswith("?"), by_family, position=place))
    return found


def rule(text: str, used: str = "", *, marked: bool = False) -> str:
    findings = Findings()
    completion = completion_of(
        "t", marks(text), set(used.split()), marked_by_policy=marked, findings=findings
    )
    assert not list(findings), [str(finding) for finding in findings]
    return str(completion)


def mistakes(text: str) -> list[str]:
    findings = Findings()
    completion_of("t", marks(text), (), marked_by_policy=True, findings=findings)
    return [finding.code for finding in findings]


@pytest.mark.req("R001-4")
def test_an_unmarked_task_is_complete_when_it_succeeded() -> None:
    assert rule("succeeded x failed") == "succeeded"


@pytest.mark.req("R001-4", "R001-21")
def test_an_unmarked_task_is_complete_when_its_failure_is_used_by_the_graph() -> None:
    assert rule("failed", used="failed submit-failed") == "succeeded or failed or submit-failed"


def test_of_the_own_outputs_that_the_graph_uses_an_unmarked_task_makes_at_least_one() -> None:
    assert rule("x", used="x") == "succeeded and x"
    completion = completion_of(
        "t", (), ("started", "x", "y", "failed"), marked_by_policy=False, findings=Findings()
    )
    assert str(completion) == "(succeeded and x) or (succeeded and y) or failed"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x?", "succeeded"),
        ("x y?", "(succeeded and x)"),
        ("failed?", "succeeded or failed"),
        ("succeeded? x", "(succeeded and x) or failed"),
        ("succeeded? failed?", "succeeded or failed"),
        ("failed x?", "failed"),
        ("submitted?", "succeeded or submit-failed"),
        ("expired? succeeded", "succeeded or expired"),
        ("finish x?", "succeeded or failed"),
        ("FAM:succeeded? succeeded", "succeeded"),
        ("FAM:x? succeeded", "succeeded"),
    ],
)
def test_one_question_mark_puts_a_task_under_the_rule_of_marks(
    text: str, expected: str
) -> None:
    assert rule(text).replace("(", "").replace(")", "") == expected.replace("(", "").replace(
        ")", ""
    )


def test_finish_alone_does_not_put_a_task_under_the_rule_of_marks() -> None:
    findings = Findings()
    completion = completion_of(
        "t", marks("finish"), {"failed"}, marked_by_policy=False, findings=findings
    )
    assert not completion.marked
    assert str(completion) == "succeeded or failed"


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("x x?", ["required-and-optional"]),
        ("succeeded failed?", ["opposite-outputs"]),
        ("succeeded failed", ["opposite-outputs"]),
        ("submitted submit-failed?", ["opposite-outputs"]),
        ("expired", ["must-be-optional"]),
        ("submit-failed", ["must-be-optional"]),
        ("finish succeeded", ["required-and-optional"]),
    ],
)
def test_marks_that_contradict_each_other_are_named(text: str, codes: list[str]) -> None:
    assert mistakes(text) == codes


def test_of_tasks_that_are_marked_alike_each_is_told_what_is_wrong_with_it() -> None:
    findings = Findings()
    for task in ("t", "u"):
        completion_of(
            task, marks("succeeded failed?"), (), marked_by_policy=False, findings=findings
        )
    assert [one.message.partition(":")[0] for one in findings] == ["t", "u"]


def test_the_message_names_the_question_mark_that_asks_for_it() -> None:
    findings = Findings()
    completion_of(
        "t", marks("succeeded failed?"), (), marked_by_policy=False, findings=findings
    )
    (finding,) = findings
    assert "the '?' at flow.cylc:1:2" in finding.message
    assert finding.hint == "write t:succeeded? everywhere in the graph (Python: .optional)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("succeeded", "succeeded"),
        ("succeeded or (failed and my_out)", "succeeded or (failed and my-out)"),
        ("(succeeded or failed) and x", "(succeeded and x) or (failed and x)"),
        ("succeeded or (succeeded and x)", "succeeded"),
        ("submit_failed or succeeded", "submit-failed or succeeded"),
    ],
)
def test_a_completion_setting_is_read_as_alternatives(text: str, expected: str) -> None:
    assert str(read_completion(text, ["x", "my-out"])) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "ends where the name of an output is expected"),
        ("succeeded and", "ends where the name of an output is expected"),
        ("(succeeded", "not closed"),
        ("succeeded failed", "'failed' is not understood"),
        ("finished", "write 'succeeded or failed'"),
        ("succeed", "is written 'succeeded' here"),
        ("my-out", "'my' is not an output of this task"),
        ("not succeeded", "'not' is not an output"),
        ("succeeded and -x", "write '_' for '-' in names of outputs"),
        (" and ".join("(x or succeeded or failed)" for _ in range(40)), "alternatives"),
    ],
)
def test_a_completion_that_cannot_be_read_says_what_is_accepted(
    text: str, message: str
) -> None:
    with pytest.raises(BadCompletion, match=message.replace("(", r"\(")):
        read_completion(text, ["x", "my-out"])


words = st.recursive(
    st.sampled_from(["succeeded", "failed", "expired", "x"]),
    lambda inner: st.tuples(inner, st.sampled_from([" and ", " or "]), inner).map(
        lambda parts: f"({''.join(parts)})"
    ),
    max_leaves=5,
)


@pytest.mark.slow
@given(text=words, made=st.sets(st.sampled_from([*EVERY_END, "x"])))
def test_alternatives_say_what_the_expression_says(text: str, made: set[str]) -> None:
    """The oracle is Python itself, on the same words."""
    names = {name: name in made for name in ("succeeded", "failed", "expired", "x")}
    expected = eval(text, {"__builtins__": {}}, names)
    assert read_completion(text, ["x"]).is_complete(made) == expected


def test_what_every_alternative_needs_is_required() -> None:
    completion = read_completion("(succeeded and x) or (failed and x)", ["x"])
    assert completion.required == {"x"}
