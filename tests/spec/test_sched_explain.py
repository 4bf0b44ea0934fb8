"""Why a task is not running (SEMANTICS §8, `why`)."""

import pytest

from tests.kit.scenario import Scenario, compile_flow
from tidewheel.core.operator.run_log import triggered_off
from tidewheel.core.sched.events import RunStopped, StopMode
from tidewheel.core.sched.explain import why


def first(run: Scenario, one: str) -> tuple[str, bool, str]:
    return run.why(one)[0][:3]


def test_a_name_that_is_not_in_the_graph():
    assert first(Scenario("a"), "1/z")[0] == "there is no task z in this workflow"


def test_a_point_that_is_on_no_sequence():
    run = Scenario("P2 = a", final=4)
    assert first(run, "2/a")[0] == "there is no 2/a: the graph does not run it at this point"


def test_a_task_that_runs():
    assert first(Scenario("a"), "1/a") == ("1/a is running", True, "")


def test_an_incomplete_task_says_what_it_needs_and_what_helps():
    run = Scenario("a => b").fails("1/a")
    text, passes, command = first(run, "1/a")
    assert text == "1/a failed and is incomplete: it needs the output succeeded"
    assert not passes
    assert command == "trigger 1/a, or set 1/a"


def test_a_parent_that_still_runs_passes_by_itself():
    run = Scenario("a & b => c").succeeds("1/a")
    assert first(run, "1/c")[:2] == ("1/c needs 1/b:succeeded; 1/b is active", True)


def test_a_parent_that_failed_does_not():
    run = Scenario("a & b => c").succeeds("1/a").fails("1/b")
    assert first(run, "1/c") == (
        "1/c needs 1/b:succeeded; 1/b failed",
        False,
        "trigger 1/b",
    )


def test_a_parent_that_has_not_come_yet():
    run = Scenario("x => b\na & b => c").succeeds("1/a")
    assert first(run, "1/c")[0] == "1/c needs 1/b:succeeded; 1/b has not run"


def test_what_comes_behind_a_failed_task_does_not_clear_on_its_own():
    run = Scenario("a & x => b => c => d").succeeds("1/x").fails("1/a")
    known = "1/b needs 1/a:succeeded; 1/a failed"
    assert first(run, "1/b") == (known, False, "trigger 1/a")
    assert first(run, "1/c") == (f"1/c needs 1/b:succeeded; {known}", False, "trigger 1/a")
    assert first(run, "1/d") == (
        f"1/d needs 1/c:succeeded; 1/c needs 1/b:succeeded; {known}",
        False,
        "trigger 1/a",
    )


def test_a_long_way_back_to_a_failed_task_is_cut_in_the_middle():
    run = Scenario("a => b => c => d => e => f => g => h\nx").fails("1/a")
    assert first(run, "1/h")[0] == (
        "1/h needs 1/g:succeeded; 1/g needs 1/f:succeeded; …; "
        "1/c needs 1/b:succeeded; 1/b needs 1/a:succeeded; 1/a failed"
    )
    names = [f"t{number}" for number in range(120)]
    run = Scenario(" => ".join(names) + "\nx").fails("1/t0")
    assert not first(run, "1/t90")[1]
    assert first(run, "1/t119")[:2] == (
        "1/t119 needs 1/t118:succeeded; 1/t118 has not run",
        True,
    )


def test_a_parent_that_another_way_can_still_lead_to_clears_on_its_own():
    run = Scenario("a | b => c\nc & x => d").succeeds("1/x").fails("1/a")
    assert first(run, "1/d") == (
        "1/d needs 1/c:succeeded; 1/c has not run",
        True,
        "set 1/d --pre 1/c:succeeded",
    )
    assert first(run.fails("1/b"), "1/d")[1:] == (False, "trigger 1/a")


def test_one_member_that_can_still_make_an_output_is_enough_where_any_is():
    runtime = "[[F]]\n[[m1, m2]]\ninherit = F"
    run = Scenario("F:succeed-any & x => y", runtime).succeeds("1/x").fails("1/m1")
    assert first(run, "1/y")[:2] == ("1/y needs the output succeeded of any member of F", True)
    assert first(run.fails("1/m2"), "1/y")[1:] == (False, "trigger 1/m1")


def test_a_parent_that_was_removed_does_not_come_again_on_its_own():
    run = Scenario("a & b => c\nx").succeeds("1/a").removes("1/a")
    never = "1/a was removed, and nothing runs it again: its prerequisites were already met"
    assert first(run, "1/c") == (f"1/c needs 1/a:succeeded; {never}", False, "trigger 1/a")


def test_a_parent_behind_a_limit_that_a_failed_task_sets_does_not_come_on_its_own():
    run = Scenario("P1 = a & x => b", final=9, scheduling="runahead limit = P0")
    run.succeeds("1/x")
    limited = "2/a is beyond the runahead limit 1, which is counted from 1/a"
    assert first(run, "2/b")[0].startswith("2/b needs 2/")
    assert first(run, "2/b")[1]
    run.fails("1/a")
    texts = [one[:3] for one in run.why("2/b")]
    assert (f"2/b needs 2/a:succeeded; {limited}", False, "trigger 2/a") in texts


def test_what_a_parent_waits_for_is_named():
    scheduling = "[[xtriggers]]\nx = echo(1)"
    run = Scenario("@x => a\na & b => c", scheduling=scheduling).succeeds("1/b")
    assert first(run, "1/c")[:2] == (
        "1/c needs 1/a:succeeded; 1/a waits for the xtrigger x",
        True,
    )
    run.holds("1/a")
    assert first(run, "1/c") == ("1/c needs 1/a:succeeded; 1/a is held", False, "trigger 1/a")


def test_a_blocked_task_names_what_was_lost():
    run = Scenario("a[-P1] & o => a\na:fail => mail", final=3).runs_to_the_end(fails=("1/a",))
    text, passes, command = first(run, "2/a")
    assert text == "2/a needs 1/a:succeeded: 1/a failed, handled by 1/mail"
    assert not passes
    assert command == "trigger 1/a"


def test_a_family_that_is_waited_for():
    runtime = "[[F]]\n[[m1, m2]]\ninherit = F"
    run = Scenario(
        "F:succeed-all & x => y\nF:succeed-any & x => z\nF:finish-all & x => w", runtime
    ).succeeds("1/x")
    assert first(run, "1/y")[0] == "1/y needs the output succeeded of all members of F"
    assert first(run, "1/z")[0] == "1/z needs the output succeeded of any member of F"
    assert first(run, "1/w")[0] == "1/w needs the output finished of all members of F"


def test_a_family_names_the_member_that_needs_help():
    runtime = "[[F]]\n[[m1, m2]]\ninherit = F"
    run = Scenario("F:succeed-all & x => y", runtime).succeeds("1/x").fails("1/m2")
    assert first(run, "1/y") == (
        "1/y needs the output succeeded of all members of F; 1/y needs 1/m2:succeeded; "
        "1/m2 failed",
        False,
        "trigger 1/m2",
    )


def test_a_family_that_is_not_at_the_point_asked_for():
    runtime = "[[F]]\n[[m1, m2]]\ninherit = F"
    run = Scenario("P2 = m1 & m2\nP1 = F[-P1]:succeed-all & x => y", runtime, final=4)
    assert first(run.succeeds("3/x"), "3/y") == (
        "3/y needs the output succeeded of all members of F: none of them runs at 2",
        False,
        "trigger 3/y",
    )


def test_an_xtrigger_and_a_clock():
    run = Scenario("@x => a", scheduling="[[xtriggers]]\nx = echo(1)")
    assert first(run, "1/a") == (
        "1/a waits for the xtrigger x",
        True,
        "set 1/a --pre xtrigger/x",
    )
    text = """
    [scheduling]
        initial cycle point = 2030
        final cycle point = 2030
        [[special tasks]]
            clock-trigger = a(PT1H)
        [[graph]]
            R1 = a
    """
    run = Scenario(compile_flow(text))
    assert first(run, "20300101T0000Z/a")[0] == "20300101T0000Z/a waits for the clock"


def test_what_waits_for_a_time_says_which_to_whoever_knows_it():
    run = Scenario("@x => a", scheduling="[[xtriggers]]\nx = echo(1)")
    times = {((1, "a"), "x"): 77.0}
    [reason] = why(run.core, run.key("1/a"), lambda *wait: times.get(wait))
    assert reason.until == 77.0
    [reason] = why(run.core, run.key("1/a"))
    assert reason.until is None


def test_a_task_that_failed_is_triggered_again_in_its_own_flow():
    run = Scenario("a? => b\na:fail? => c").fails("1/a")
    assert first(run, "1/a") == ("1/a failed in flow 1", False, "trigger 1/a")


def test_a_task_that_finished_says_in_which_flow():
    run = Scenario("a => b").succeeds("1/a")
    assert first(run, "1/a") == ("1/a succeeded in flow 1", False, "trigger 1/a --reflow")


def test_a_task_that_was_removed():
    run = Scenario("a & x => b").succeeds("1/a").removes("1/b")
    assert first(run, "1/b") == ("1/b was removed", False, "trigger 1/b")


def test_a_task_that_nothing_has_asked_for_yet():
    run = Scenario("a => b\nc", final=9)
    assert first(run, "1/b")[0] == "1/b needs 1/a:succeeded; 1/a is active"
    enters = "9/c enters the pool when the task at the previous point no longer waits for the "
    enters += "runahead limit or a sequential xtrigger"
    assert first(run, "9/c")[0] == enters


def test_a_run_that_is_being_stopped():
    run = Scenario("a => b\nc").happens(RunStopped(StopMode.CLEAN, 0.0)).succeeds("1/a")
    assert first(run, "1/b")[0] == "the run is being stopped"


def test_a_task_that_no_worker_took_does_not_begin_by_itself_once_the_run_stops():
    run = Scenario("a & b => c", start_jobs=False).starts("1/a")
    assert first(run, "1/b")[:2] == ("1/b is preparing", True)
    run.happens(RunStopped(StopMode.CLEAN, 0.0))
    withdrawn = "1/b is preparing: no worker may take it until the run resumes"
    assert first(run, "1/b")[:2] == (withdrawn, False)
    assert first(run, "1/a")[:2] == ("1/a is running", True)


@pytest.mark.req("R001-31")
def test_why_names_the_runahead_limit_before_anything_runs_out():
    run = Scenario("a", final=9)
    assert first(run, "6/a") == (
        "6/a is beyond the runahead limit 5, which is counted from 1/a",
        True,
        "trigger 6/a",
    )


def test_a_chain_of_losses_through_a_family():
    runtime = "[[F]]\n[[m1, m2]]\ninherit = F"
    run = Scenario("m1:fail => x\nF:succeed-all => y => z", runtime).fails("1/m1")
    assert run.notices("lost")[-1] == (
        "1/z will not run: it needs 1/y:succeeded; 1/y needs 1/m1:succeeded; "
        "1/m1 failed, handled by 1/x"
    )


def test_what_was_removed_is_named_as_the_cause():
    run = Scenario("a & x => b => c").succeeds("1/a").removes("1/b")
    assert run.notices("lost") == ["1/c will not run: it needs 1/b:succeeded; 1/b was removed"]


def test_a_parent_off_its_sequence_is_named():
    run = Scenario("P1 = a[-P1] & c => b\nP2 = a\nP1 = c", final=3).runs_to_the_end()
    assert first(run, "3/b")[0] == "3/b needs 2/a:succeeded: there is no 2/a"


def test_what_a_task_was_triggered_off_lists_every_true_atom():
    runtime = "[[F]]\n[[m1, m2]]\ninherit = F"
    run = Scenario("a[-P1] & b | c => d\nF:succeed-any & d => e\na", runtime, final=1)
    run.succeeds("1/b")
    assert triggered_off(run.core, run.core.tasks[(1, "d")]) == ((0, "a"), (1, "b"))
    run.succeeds("1/m2", "1/d")
    assert triggered_off(run.core, run.core.tasks[(1, "e")]) == ((1, "d"), (1, "m2"))


def test_what_another_term_of_an_or_has_made_true_is_not_named():
    run = Scenario("b[-P1]:finish & a[-P1]? => b?\na?", final=2)
    run.succeeds("1/b").fails("1/a")
    assert [reason.text for reason in run.why("2/b")] == ["2/b needs 1/a:succeeded: 1/a failed"]


def test_a_lost_task_is_mended_where_something_failed():
    run = Scenario("a:fail => mail\na => b => c").runs_to_the_end(fails=("1/a",))
    assert first(run, "1/c") == (
        "1/c will not run: it needs 1/b:succeeded; 1/b needs 1/a:succeeded; "
        "1/a failed, handled by 1/mail",
        False,
        "trigger 1/a, or trigger 1/c",
    )


def test_a_branch_that_was_not_taken_needs_no_mending():
    run = Scenario("a:fail? => mail\na? => b").runs_to_the_end()
    assert first(run, "1/mail")[2] == "trigger 1/mail"


def test_a_task_that_is_blocked_by_a_lost_one_is_mended_where_something_failed():
    graph = "a:fail => mail\na => b\nb[-P1] & o => d"
    run = Scenario(graph, final=2).runs_to_the_end(fails=("1/a",))
    assert first(run, "2/d")[2] == "trigger 1/a, or trigger 1/b"


def test_what_comes_after_a_task_that_was_run_with_wait_says_so_and_what_would_end_it():
    """It was told that the task was removed."""
    run = Scenario("a => b\nz").fails("1/a").triggers("1/a", wait=True).succeeds("1/a")
    [reason] = run.why("1/b")
    assert (reason.passes, reason.command) == (False, "set 1/a")
    assert reason.text == (
        "1/b needs 1/a:succeeded; 1/a was run or set with --wait: what follows it waits for "
        "another flow"
    )
    assert "1/b" in run.sets("1/a").submitted
