"""Seed 004, "Workflow stage: dependencies": what a stage waits for, run by the scheduler."""

import pytest

from tests.kit.scenario import Scenario
from tests.support.sips import codes, definition, graph, judged, stage
from tidewheel.core.graph.findings import Severity


@pytest.mark.req("R004-25", "R004-22", "R004-24")
def test_a_stage_waits_until_another_is_complete():
    run = Scenario(graph(stage("a"), stage("b", "a complete")))
    assert run.pool == {"1/a": "running"}
    assert run.succeeds("1/a").pool == {"1/b": "running"}
    assert run.succeeds("1/b").completed


@pytest.mark.req("R004-25")
def test_a_stage_whose_parent_failed_is_not_run():
    run = Scenario(graph(stage("a"), stage("b", "a complete"))).fails("1/a")
    assert run.submitted == ["1/a"]
    assert run.stalled


@pytest.mark.req("R004-26", "R004-32")
@pytest.mark.parametrize("word", ["started", "running"])
def test_a_stage_may_begin_as_soon_as_another_has_begun(word):
    run = Scenario(graph(stage("a"), stage("b", f"a {word}")), start_jobs=False)
    assert "1/b" not in run.submitted
    assert run.starts("1/a").submitted == ["1/a", "1/b"]
    assert run.starts("1/b").pool == {"1/a": "running", "1/b": "running"}


@pytest.mark.req("R004-28")
def test_a_stage_for_the_failure_of_another_runs_only_then():
    stages = (stage("a"), stage("mend", "a failed"))
    assert Scenario(graph(*stages)).fails("1/a").submitted == ["1/a", "1/mend"]
    good = Scenario(graph(*stages)).succeeds("1/a")
    assert good.submitted == ["1/a"] and good.completed


@pytest.mark.req("R004-27")
@pytest.mark.parametrize("word", ["aborted", "failed", "ended", "finished"])
def test_whoever_ends_a_stage_lets_go_what_waits_for_its_abortion(word):
    run = Scenario(graph(stage("a"), stage("tidy", f"a {word}"))).is_killed("1/a")
    assert run.submitted == ["1/a", "1/tidy"]


@pytest.mark.req("R004-27", "R004-28")
@pytest.mark.parametrize("word", ["aborted", "failed", "ended"])
def test_a_stage_that_could_not_even_be_submitted_has_failed(word):
    run = Scenario(graph(stage("a"), stage("tidy", f"a {word}")), start_jobs=False)
    assert run.submit_fails("1/a").submitted == ["1/a", "1/tidy"]


@pytest.mark.parametrize("word", ["ended", "finished"])
def test_a_stage_after_the_end_of_another_runs_either_way(word):
    stages = (stage("a"), stage("tidy", f"a {word}"))
    for run in (
        Scenario(graph(*stages)).fails("1/a"),
        Scenario(graph(*stages)).succeeds("1/a"),
    ):
        assert run.submitted == ["1/a", "1/tidy"]


@pytest.mark.req("R004-59")
@pytest.mark.parametrize("word", ["ended", "finished"])
def test_tidying_up_after_a_failure_does_not_make_it_good(word):
    stages = (stage("a"), stage("b", "a complete"), stage("tidy", f"a {word}"))
    run = Scenario(graph(*stages)).fails("1/a").succeeds("1/tidy")
    assert run.stalled and run.causes == ["1/a"]
    good = Scenario(graph(*stages)).succeeds("1/a", "1/b", "1/tidy")
    assert good.completed


@pytest.mark.req("R004-29", "R004-23")
def test_stages_wait_for_a_buffer_object_and_all_go_when_it_is_present():
    run = Scenario(
        graph(stage("a", "object:vis present"), stage("b", "object:vis present", "a complete"))
    )
    assert run.pool == {"1/object@vis": "pending"}
    assert run.checked == [("1/object@vis", "message/vis")]
    run.xtrigger("message/vis", "1/object@vis").succeeds("1/object@vis")
    assert run.pool == {"1/a": "running", "1/b": "waiting"}
    assert run.succeeds("1/a", "1/b").completed


@pytest.mark.req("R004-29")
def test_an_object_may_have_any_printable_name():
    made = graph(stage("a", "object:dir/süd.fits present"))
    assert made.special.wait_for_message == {
        "object@dir%2Fs%C3%BCd%2Efits": "dir/süd.fits",
    }


@pytest.mark.req("R004-33")
def test_all_dependencies_must_hold():
    run = Scenario(graph(stage("a"), stage("b"), stage("c", "a complete", "b started")))
    assert "1/c" not in run.submitted
    assert run.succeeds("1/a").submitted == ["1/a", "1/b", "1/c"]


@pytest.mark.req("R004-32")
def test_stages_that_do_not_wait_for_each_other_run_at_the_same_time():
    run = Scenario(
        graph(stage("a"), stage("b", "a complete"), stage("c", "a complete"))
    ).succeeds("1/a")
    assert run.pool == {"1/b": "running", "1/c": "running"}


def test_what_cannot_come_true_any_more_is_gone():
    run = Scenario(
        graph(stage("a"), stage("b", "a complete"), stage("tidy", "a failed"))
    ).fails("1/a")
    assert run.succeeds("1/tidy").completed
    assert "1/b" not in run.submitted


@pytest.mark.req("R004-31")
def test_a_stage_that_waits_for_itself_is_refused():
    refused = judged(definition(stage("a", "a complete")), "a")
    assert codes(refused.findings) == ["self-dependency"]
    assert not refused.registrable


@pytest.mark.req("R004-31")
def test_stages_that_wait_for_each_other_are_refused_with_the_whole_circle():
    text = definition(
        stage("a", "c complete"), stage("b", "a complete"), stage("c", "b started"), stage("d")
    )
    refused = judged(text, "a", "b", "c", "d")
    (error,) = refused.findings.sorted()
    assert (error.code, error.position.line) == ("stage-circle", 9)
    assert error.message == (
        "stages wait for each other: a waits for c waits for b waits for a"
    )


@pytest.mark.req("R004-30")
def test_a_dependency_on_no_stage_can_be_registered_but_not_run():
    judgement = judged(
        definition(stage("stage1"), stage("b", "stage-01 complete")), "stage1", "b"
    )
    assert codes(judgement.findings, Severity.WARNING) == ["unknown-stage"]
    (obstacle,) = judgement.obstacles.sorted()
    assert obstacle.hint == "did you mean 'stage1'?"
    assert (judgement.registrable, judgement.runnable) == (True, False)


@pytest.mark.req("R004-23", "R004-29")
@pytest.mark.parametrize(
    ("need", "hint"),
    [
        ("a present", "expected one of complete, started,"),
        ("a compleet", "did you mean 'complete'?"),
        ("a success", "did you mean 'complete'?"),
        ("a cancelled", "did you mean 'aborted'?"),
        ("object:x complete", "expected one of present"),
        ("object:x exists", "did you mean 'present'?"),
    ],
)
def test_a_condition_that_does_not_fit_is_refused_with_those_that_do(need, hint):
    refused = judged(definition(stage("a"), stage("b", need)), "a", "b")
    (error,) = refused.findings.sorted()
    assert error.code == "unknown-condition"
    assert error.hint.startswith(hint)


def test_a_capital_condition_is_understood():
    judgement = judged(definition(stage("a"), stage("b", "a Complete")), "a", "b")
    assert codes(judgement.findings) == ["capital-letters"]
    assert judgement.runnable


@pytest.mark.req("R004-33")
@pytest.mark.parametrize("word", ["failed", "aborted"])
def test_a_stage_that_needs_the_success_and_the_failure_of_another_is_warned_of(word):
    text = definition(stage("a"), stage("b", "a complete", f"a {word}"))
    judgement = judged(text, "a", "b")
    (warning,) = judgement.findings.sorted()
    assert (warning.code, warning.severity) == ("contradiction", Severity.WARNING)
    assert warning.message == (
        f"stage b can never begin: it needs a complete, and it needs a {word}"
    )
    assert text.splitlines()[warning.position.line - 1].endswith(f"condition: {word}}}")
    assert judgement.registrable and judgement.runnable


@pytest.mark.req("R004-33")
def test_a_contradiction_is_told_once_where_its_two_ways_meet():
    text = definition(
        stage("last", "both complete"),
        stage("both", "a complete", "between started"),
        stage("between", "mend ended"),
        stage("mend", "a failed"),
        stage("a"),
    )
    (warning,) = judged(text, "a", "mend", "between", "both", "last").findings.sorted()
    assert warning.message == (
        "stage both can never begin: it needs a complete, and between, which it waits for, "
        "needs a failed"
    )
    assert "between" in text.splitlines()[warning.position.line - 1]


@pytest.mark.req("R004-33")
@pytest.mark.parametrize(
    "needs",
    [
        ("a complete", "a started"),
        ("a failed", "a aborted"),
        ("a failed", "a ended"),
        ("a complete", "b failed"),
        ("mend complete", "a ended"),
    ],
)
def test_conditions_that_can_hold_together_are_no_contradiction(needs):
    text = definition(stage("a"), stage("b"), stage("mend", "a failed"), stage("c", *needs))
    other = stage("d", "a complete", "b complete")
    assert not list(judged(text + other, "a", "b", "mend", "c", "d").findings)
