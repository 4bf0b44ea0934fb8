"""Suicide arrows, expiry and retries (SEMANTICS §4.7 to 4.9)."""

import pytest

from tests.kit.scenario import Scenario, compile_flow
from tidewheel.core.sched.events import CancelTimer, CheckXtrigger, SetTimer

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
    assert run.effects[-2] == SetTimer((1, "A"), "retry-delay", run.now + 5)
    assert run.why("1/A")[0].text == "1/A waits for its retry delay"


@pytest.mark.req("R001-41", "R001-42")
def test_the_try_number_and_the_submit_number_go_up_also_over_a_restart():
    run = Scenario("A => C", RETRIES).fails("1/A").restarts().timer("1/A", "retry-delay")
    run.fails("1/A").timer("1/A", "retry-delay").restarts()
    assert [(one.submit, one.try_number) for one in run.submissions] == [(1, 1), (2, 2), (3, 3)]
    assert run.fails("1/A").pool == {"1/A": "failed"}
    run.triggers("1/A")
    assert (run.submissions[-1].submit, run.submissions[-1].try_number) == (4, 1)


def test_submission_retries_are_counted_apart():
    run = Scenario("A => C", RETRIES, start_jobs=False).submit_fails("1/A")
    assert run.pool == {"1/A": "pending"}
    run.timer("1/A", "retry-delay").submit_fails("1/A")
    assert run.pool == {"1/A": "submit-failed"}
    assert [one.try_number for one in run.submissions] == [1, 1]


def test_a_killed_task_is_not_tried_again_and_is_held():
    run = Scenario("A => C", RETRIES).is_killed("1/A")
    assert run.pool == {"1/A": "failed"}
    assert run.core.tasks[(1, "A")].held


EXPIRING = """
[scheduler]
    allow implicit tasks = True
[scheduling]
    initial cycle point = 2031-01-01T00Z
    final cycle point = 2031-01-01T00Z
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
        Scenario(compile_flow(EXPIRING)).holds("20310101T0000Z/b").succeeds("20310101T0000Z/a")
    )
    run.timer("20310101T0000Z/b", "clock-expire")
    assert run.pool == {"20310101T0000Z/c": "pending", "20310101T0000Z/e": "running"}
    assert run.verdicts == {"20310101T0000Z/d": "lost"}
    run.timer("20310101T0000Z/c", "clock-trigger")
    assert run.pool["20310101T0000Z/c"] == "running"


def test_a_task_that_was_submitted_does_not_expire():
    run = Scenario(compile_flow(EXPIRING)).succeeds("20310101T0000Z/a")
    key = run.key("20310101T0000Z/b")
    assert CancelTimer(key, "clock-expire") in run.effects
    assert run.timer("20310101T0000Z/b", "clock-expire").pool["20310101T0000Z/b"] == "running"


STALE = """
[scheduling]
    initial cycle point = 2020-01-01T00Z
    final cycle point = 2020-01-01T00Z
    [[special tasks]]
        clock-expire = a(PT0S)
    [[graph]]
        R1 = \"\"\"
            a:expire? => late
            a? => b
        \"\"\"
"""


@pytest.mark.req("R001-6")
def test_a_task_whose_time_had_passed_before_it_was_ready_expires_and_does_not_run():
    run = Scenario(compile_flow(STALE))
    assert run.submitted == ["20200101T0000Z/late"]
    assert run.runs_to_the_end().completed


def test_a_task_whose_time_has_passed_runs_if_it_is_triggered_by_hand():
    run = Scenario(compile_flow(STALE)).triggers("20200101T0000Z/a")
    assert run.pool["20200101T0000Z/a"] == "running"


def test_a_task_that_waits_for_its_retry_expires():
    retries = "[runtime]\n[[b]]\nexecution retry delays = PT9H"
    run = Scenario(compile_flow(EXPIRING + retries)).succeeds("20310101T0000Z/a")
    run.fails("20310101T0000Z/b").timer("20310101T0000Z/b", "clock-expire")
    assert run.pool == {"20310101T0000Z/c": "pending", "20310101T0000Z/e": "running"}


def test_a_task_is_not_tried_again_once_its_time_has_passed():
    retries = "[runtime]\n[[b]]\nexecution retry delays = PT9999H"
    run = Scenario(compile_flow(EXPIRING + retries)).succeeds("20310101T0000Z/a")
    run.fails("20310101T0000Z/b").timer("20310101T0000Z/b", "retry-delay")
    assert run.pool == {"20310101T0000Z/c": "pending", "20310101T0000Z/e": "running"}


@pytest.mark.parametrize("limit", ["P0", "P1", "P4"])
def test_an_absolute_suicide_reaches_points_of_which_nothing_was_known_yet(limit: str):
    graph = "R1 = x\nP1 = x[^] => !b\nP1 = c => b\nP1 = b & c => d"
    run = Scenario(graph, final=6, scheduling=f"runahead limit = {limit}").succeeds("1/x")
    assert run.runs_to_the_end().completed
    assert not [one for one in run.submitted if one.endswith(("b", "d"))]


def test_an_absolute_suicide_ends_a_chain():
    graph = "R1 = x\nP1 = b\nP1 = x[^] => !b\nP1 = c\nP1 = b & c => d"
    run = Scenario(graph, final=9).succeeds("1/x").runs_to_the_end()
    assert run.completed
    assert run.submitted.count("9/b") == run.submitted.count("9/d") == 0


def test_a_task_triggered_by_hand_is_exempt_also_from_an_absolute_suicide():
    graph = "R1 = x\nP1 = x[^] => !b\nP1 = c => b"
    run = Scenario(graph, final=9).succeeds("1/x").triggers("9/b")
    assert run.pool["9/b"] == "running"


def test_a_graph_without_end_of_which_nothing_may_run_is_no_endless_step(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("tidewheel.core.sched.step.ROUNDS_MAX", 100)
    run = Scenario("R1 = x\nP1 = b\nP1 = x[^] => !b", final=1_000).succeeds("1/x")
    with pytest.raises(AssertionError, match="without end"):
        run.runs_to_the_end()


@pytest.mark.parametrize(("first", "second"), [("1/b", "1/c"), ("1/c", "1/b")])
def test_a_suicide_reaches_a_task_that_waits_for_its_retry_whichever_came_first(
    first: str, second: str
):
    run = Scenario("b\nc => !b", "[[b]]\nexecution retry delays = PT1S", final=1)
    for one in (first, second):
        run.fails(one) if one == "1/b" else run.succeeds(one)
    assert run.pool == {}
    assert run.verdicts == {"1/b": "removed by suicide"}


EXPIRING_IN_A_GROUP = """
    [scheduling]
        initial cycle point = 20310101T00Z
        final cycle point = 20310104T00Z
        [[special tasks]]
            clock-expire = a(PT1H)
        [[queues]]
            [[[narrow]]]
                limit = 1
                members = slow, a
        [[graph]]
            R1 = slow
            P1D = a:expire? => gone
    [runtime]
        [[a, slow, gone]]
"""


def test_tasks_expire_in_a_full_limit_group_when_there_is_room_if_nobody_told_them_before():
    run = Scenario(compile_flow(EXPIRING_IN_A_GROUP))
    days = [f"2031010{day}T0000Z/a" for day in (1, 2, 3, 4)]
    assert [run.pool[day] for day in days] == ["ready"] * 4
    run.holds(days[0])
    times = [one.at for one in run.effects if isinstance(one, SetTimer)]
    run.now = sorted(times)[2]  # the third has just passed
    run.succeeds("20310101T0000Z/slow")
    assert run.submitted[-1] == days[3]
    assert run.pool[days[0]] == "held"
    assert not set(run.pool) & {days[1], days[2]}
    run.releases(days[0])
    assert days[0] not in run.pool
    assert run.runs_to_the_end().completed


NAMED_LIKE_TIMERS = """
[scheduling]
    initial cycle point = 20310101T00Z
    final cycle point = 20310101T00Z
    [[xtriggers]]
        clock = wall_clock()
        retry = echo(succeed=True)
        expiry = echo(succeed=True)
    [[graph]]
        P1D = @clock & @retry & @expiry => a
[runtime]
    [[a]]
"""


def test_an_xtrigger_may_be_called_as_people_call_timers():
    run = Scenario(compile_flow(NAMED_LIKE_TIMERS))
    asked = [one.label for one in run.effects if isinstance(one, CheckXtrigger)]
    assert sorted(asked) == ["clock", "expiry", "retry"]
    assert not any(isinstance(one, SetTimer) for one in run.effects)


@pytest.mark.parametrize("who", ["model", "check"])
def test_a_failure_that_removes_a_task_counts_before_it_is_lost_by_that_failure(who):
    graph = f"""
        model? => post
        {who}:fail? => recover
        {who}:fail? => !post
        post[-P1] & obs => verify
        """
    run = Scenario(graph, final=2).fails(f"1/{who}").runs_to_the_end()
    assert run.completed
    assert run.verdicts["1/post"] == "removed by suicide"
    assert run.verdicts["2/verify"] == "not taken"


def test_a_pruned_task_that_comes_back_is_removed_if_its_condition_holds():
    run = Scenario("a:fail & b => c => d\nx => !c\nb:fail => m").succeeds("1/a", "1/x", "1/b")
    assert run.verdicts["1/c"] == "not taken"
    run.sets("1/a", "failed")
    assert run.verdicts["1/c"] == "removed by suicide"
    assert run.completed


def test_a_condition_counts_in_a_flow_in_which_the_task_is_not_pooled():
    run = Scenario("a => c\nx => !c\nk").triggers("1/c", flow=2).succeeds("1/x", "1/a")
    assert run.succeeds("1/c", "1/k").completed
    assert run.submitted.count("1/c") == 1
    assert run.verdicts == {"1/c": "removed by suicide"}
