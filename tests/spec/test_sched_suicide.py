"""Suicide arrows, expiry and retries (SEMANTICS §4.7 to 4.9)."""

import pytest

from tidewheel.core.sched.effects import CancelTimer, SetTimer
from tidewheel.testing.scenario import Scenario, compile_flow

RETRIES = "[[A]]\nexecution retry delays = PT5S, PT10S\nsubmission retry delays = PT1S"


@pytest.mark.req("R001-46", "R001-2")
def test_one_of_two_exclusive_xtriggers_removes_the_other_task():
    xtriggers = "[[xtriggers]]\nx1 = echo(1)\nx2 = echo(2)"
    run = Scenario("@x1 => A\n@x2 => B\nB => !A", scheduling=xtriggers)
    run.xtrigger("x2", "1/B").succeeds("1/B")
    assert run.pool == {}
    assert run.verdicts == {"1/A": "removed by suicide"}
    assert run.completed


def test_what_suicide_removed_is_not_taken_for_its_children():
    run = Scenario("a => !b\nb & c => d\nx => b").succeeds("1/a").succeeds("1/c")
    assert run.verdicts == {"1/b": "removed by suicide", "1/d": "not taken"}
    assert run.succeeds("1/x").completed
    assert "1/b" not in run.submitted


def test_all_suicide_arrows_into_a_task_must_be_true():
    run = Scenario("a => !b\nc => !b\nx => b").succeeds("1/a").succeeds("1/x")
    assert run.pool["1/b"] == "running"
    run.succeeds("1/c").fails("1/b")
    assert run.pool == {}
    assert run.verdicts == {"1/b": "removed by suicide"}


def test_a_failed_task_is_removed_when_something_recovers_for_it():
    run = Scenario("b:fail => fix => !b", final=1)
    assert run.fails("1/b").succeeds("1/fix").completed


def test_a_task_triggered_by_hand_is_exempt_until_it_ends():
    run = Scenario("a => !b\nx => b").triggers("1/b").succeeds("1/a")
    assert run.pool["1/b"] == "running"
    assert run.fails("1/b").pool == {"1/x": "running"}


def test_chains_pass_over_what_suicide_removed():
    graph = "P1 = b\nR1/2 = a[-P1] => !b\nR1 = a"
    run = Scenario(graph, final=4, scheduling="runahead limit = P0").succeeds("1/a")
    run.runs_to_the_end()
    assert [one for one in run.submitted if one.endswith("b")] == ["1/b", "3/b", "4/b"]


def test_a_failure_with_a_retry_left_is_no_output():
    run = Scenario("A:fail => B\nA => C", RETRIES).fails("1/A")
    assert run.pool == {"1/A": "pending"}
    assert run.effects[-2] == SetTimer((1, "A"), "retry", run.now + 5)
    assert run.why("1/A")[0].text == "1/A waits for its retry delay"


@pytest.mark.req("R001-41", "R001-42")
def test_the_try_number_and_the_submit_number_go_up_also_over_a_restart():
    run = Scenario("A => C", RETRIES).fails("1/A").restarts().timer("1/A", "retry")
    run.fails("1/A").timer("1/A", "retry").restarts()
    assert [(one.submit, one.try_number) for one in run.submissions] == [(1, 1), (2, 2), (3, 3)]
    assert run.fails("1/A").pool == {"1/A": "failed"}
    run.triggers("1/A")
    assert (run.submissions[-1].submit, run.submissions[-1].try_number) == (4, 1)


def test_submission_retries_are_counted_apart():
    run = Scenario("A => C", RETRIES, start_jobs=False).submit_fails("1/A")
    assert run.pool == {"1/A": "pending"}
    run.timer("1/A", "retry").submit_fails("1/A")
    assert run.pool == {"1/A": "submit-failed"}
    assert [one.try_number for one in run.submissions] == [1, 1]


def test_a_killed_task_is_not_tried_again_and_is_held():
    run = Scenario("A => C", RETRIES).is_killed("1/A")
    assert run.pool == {"1/A": "failed"}
    assert run.core.tasks[(1, "A")].held


EXPIRING = """
[scheduling]
    initial cycle point = 2030-01-01T00Z
    final cycle point = 2030-01-01T00Z
    [[special tasks]]
        clock-expire = b(PT1H)
        clock-trigger = c(PT2H)
    [[graph]]
        R1 = \"\"\"
            a => b => d
            b:expire => e
            c
        \"\"\"
"""


@pytest.mark.req("R001-6")
def test_a_task_expires_while_it_waits():
    run = (
        Scenario(compile_flow(EXPIRING)).holds("20300101T0000Z/b").succeeds("20300101T0000Z/a")
    )
    run.timer("20300101T0000Z/b", "expiry")
    assert run.pool == {"20300101T0000Z/c": "pending", "20300101T0000Z/e": "running"}
    assert run.verdicts == {"20300101T0000Z/d": "lost"}
    run.timer("20300101T0000Z/c", "clock")
    assert run.pool["20300101T0000Z/c"] == "running"


def test_a_task_that_was_submitted_does_not_expire():
    run = Scenario(compile_flow(EXPIRING)).succeeds("20300101T0000Z/a")
    key = run.key("20300101T0000Z/b")
    assert CancelTimer(key, "expiry") in run.effects
    assert run.timer("20300101T0000Z/b", "expiry").pool["20300101T0000Z/b"] == "running"
