"""Rarer meetings of flows, families, chains and operators (SEMANTICS §4, §8)."""

import pytest

from tests.kit.scenario import Scenario
from tidewheel.core.sched.events import (
    FlowChoice,
    FlowStopped,
    JobSubmitted,
    OutputMade,
    RunStopped,
    StopMode,
    TimerFired,
    XtriggerSatisfied,
)
from tidewheel.errors import Refused

FAMILY = "[[F]]\n[[m1, m2]]\ninherit = F"


def test_a_task_that_ran_with_wait_flows_on_without_running_again():
    run = Scenario("a => b => c").triggers("1/b", flow=FlowChoice.NEW, wait=True)
    run.succeeds("1/b")
    assert run.pool == {"1/a": "running"}
    run.restarts().succeeds("1/a")
    assert run.submitted == ["1/a", "1/b", "1/c"]
    assert run.flows == {"1/c": [1, 2]}


def test_a_task_that_failed_with_wait_flows_on_along_its_failure():
    run = Scenario("a => b:fail => c\nb => d").triggers("1/b", flow=FlowChoice.NEW, wait=True)
    run.fails("1/b").succeeds("1/a")
    assert run.submitted == ["1/a", "1/b", "1/c"]


def test_a_flow_that_arrives_while_it_still_runs_flows_on_at_once():
    run = Scenario("a => b\nb:start => c").triggers("1/b", flow=FlowChoice.NEW, wait=True)
    assert "1/c" not in run.pool
    run.succeeds("1/a")
    assert run.flows["1/c"] == [1, 2]


def test_outputs_made_before_a_flow_arrived_count_in_it_and_spawn_nothing_again():
    run = Scenario("a => b\nb:start & x => c").succeeds("1/a").succeeds("1/x").succeeds("1/c")
    run.reflows("1/a").succeeds("1/a")
    assert run.flows == {"1/b": [1, 2]}
    run.triggers("1/x", flow=2).succeeds("1/x")
    assert run.submitted.count("1/c") == 2


def test_outputs_made_before_a_flow_arrived_reach_children_that_wait_in_it():
    run = Scenario("a => b\nb:start & x => c").succeeds("1/a", "1/x").succeeds("1/c")
    run.triggers("1/x", flow=FlowChoice.NEW).succeeds("1/x")
    assert run.pool["1/c"] == "waiting"
    run.triggers("1/a", flow=2).succeeds("1/a")
    assert run.pool["1/c"] == "running"


def test_outputs_made_before_a_flow_arrived_count_in_it_at_a_fixed_point_too():
    run = Scenario("R1 = s\nP1 = s[^]:start & x => foo", final=2)
    run.succeeds("1/x", "2/x").succeeds("1/foo", "2/foo").reflows("2/x").succeeds("2/x")
    assert run.pool == {"1/s": "running", "2/foo": "waiting"}
    assert run.triggers("1/s", flow=2).pool == {"1/s": "running", "2/foo": "running"}
    assert run.flows == {"1/s": [1, 2], "2/foo": [2]}


def test_outputs_made_before_a_flow_arrived_are_not_all_that_a_family_must_make_in_it():
    runtime = "[[F]]\n[[m1, m2]]\ninherit = F"
    run = Scenario("z => m2\nm1\nF:start-all & x => y", runtime).succeeds("1/x")
    run.reflows("1/x").succeeds("1/x").triggers("1/m1", flow=2)
    assert run.flows == {"1/z": [1], "1/m1": [1, 2], "1/y": [1, 2]}
    assert run.pool["1/y"] == "waiting"
    assert run.succeeds("1/z").pool["1/y"] == "running"


def test_members_of_a_family_may_have_run_in_different_flows_of_their_child():
    run = Scenario("F:succeed-all & x => y", FAMILY).succeeds("1/m1", "1/x")
    run.reflows("1/x").succeeds("1/x")
    assert run.flows["1/y"] == [1, 2]
    run.removes("1/m2", kill=True).triggers("1/m2", flow=2).succeeds("1/m2")
    assert run.submitted[-1] == "1/y"


def test_a_family_at_a_fixed_point():
    graph = "R1 = F\nP1 = F[^]:succeed-all => x"
    run = Scenario(graph, FAMILY, final=3).succeeds("1/m1")
    assert run.pool == {"1/m2": "running"}
    run.succeeds("1/m2")
    assert run.submitted[2:] == ["1/x", "2/x", "3/x"]


def test_an_absolute_suicide_arrow_removes_what_waits():
    xtriggers = "[[xtriggers]]\nx = echo(1)"
    graph = "R1 = start\nP1 = start[^] => !a\nP1 = @x => a"
    run = Scenario(graph, scheduling=xtriggers, final=2)
    assert run.pool == {"1/start": "running", "1/a": "pending", "2/a": "pending"}
    run.succeeds("1/start")
    assert run.pool == {}
    assert run.completed


def test_a_chain_of_a_new_flow_merges_with_the_old_one_where_they_meet():
    run = Scenario("foo => bar", final=4, scheduling="runahead limit = P1")
    run.succeeds("1/foo").reflows("1/foo")
    assert run.flows["2/foo"] == [1, 2]
    run.runs_to_the_end()
    assert run.submitted.count("4/foo") == 1
    assert run.submitted.count("1/bar") == 1


def test_removing_from_one_of_two_flows_leaves_the_other():
    run = Scenario("a => b\nb & c => d").succeeds("1/a").succeeds("1/b")
    run.reflows("1/b").succeeds("1/b")
    assert run.removes("1/d", flow=1).flows["1/d"] == [2]
    run.succeeds("1/c")
    assert run.pool == {"1/d": "waiting"}


def test_removing_the_head_of_one_flow_moves_that_chain_on():
    run = Scenario("foo", final=5, scheduling="runahead limit = P1").succeeds("1/foo")
    run.reflows("1/foo")
    head = max(one for one in run.flows)
    run.removes(head, flow=2)
    assert run.flows[head] == [1]


def test_forgetting_a_parent_opens_its_children_again():
    run = Scenario("a => b\nb & x => c").succeeds("1/a").succeeds("1/b").removes("1/b")
    never = "1/b was removed, and nothing runs it again: its prerequisites were already met"
    assert run.why("1/c")[0][:3] == (f"1/c needs 1/b:succeeded; {never}", False, "trigger 1/b")
    run.succeeds("1/x")
    assert run.pool == {"1/c": "waiting"}


def test_nothing_is_forgotten_of_what_was_never_known():
    run = Scenario("a => b").removes("1/b")
    assert run.succeeds("1/a").pool == {"1/b": "running"}


def test_a_cancelled_flow_takes_its_waiting_tasks_and_leaves_shared_ones():
    run = Scenario("a => b\nb & c => d\na & x => e").succeeds("1/a").succeeds("1/b")
    run.reflows("1/a").succeeds("1/a")
    assert run.flows["1/e"] == [1, 2]
    run.happens(FlowStopped(2, 0.0))
    assert run.flows["1/e"] == [1]
    assert run.happens(FlowStopped(9, 0.0)).flows["1/e"] == [1]


def test_a_cancelled_flow_goes_no_further_than_what_runs():
    run = Scenario("a", final=9, scheduling="runahead limit = P1")
    run.happens(FlowStopped(1, run.now))
    assert run.pool == {"1/a": "running", "2/a": "running"}
    assert run.runs_to_the_end().completed
    assert run.submitted == ["1/a", "2/a"]


def test_stopping_with_kill_kills_the_jobs_and_waits_for_their_ends():
    run = Scenario("a\nb => c").happens(RunStopped(StopMode.KILL, 0.0))
    assert sorted(run.killed) == ["1/a", "1/b"]
    assert run.status == "stopping"
    assert run.is_killed("1/a", "1/b").status == "stopped"


def test_a_trigger_of_an_active_task_only_says_so():
    run = Scenario("a").triggers("1/a")
    assert run.submitted == ["1/a"]
    assert run.notices("trigger") == ["1/a is active already"]


def test_a_trigger_ahead_of_the_chain_does_not_begin_a_second_one():
    run = Scenario("a", final=20, scheduling="runahead limit = P1").triggers("9/a")
    assert run.pool == {
        "1/a": "running",
        "2/a": "running",
        "3/a": "runahead",
        "9/a": "running",
    }
    run.runs_to_the_end()
    assert run.submitted.count("9/a") == 1


def test_a_trigger_before_the_start_point_runs_alone():
    run = Scenario("foo[-P1] => foo => bar", final=5, start=3).triggers("2/foo")
    assert run.flows["2/foo"] == []
    assert run.succeeds("2/foo").pool == {"3/foo": "running"}


def test_an_incomplete_task_in_a_triggered_group_waits_for_the_group():
    run = Scenario("a & x => b").succeeds("1/a", "1/x").fails("1/b")
    run.triggers("1/a", "1/b", flow=FlowChoice.NEW)
    assert run.pool == {"1/a": "running", "1/b": "waiting"}
    assert run.succeeds("1/a").pool == {"1/b": "running"}


@pytest.mark.parametrize("one", ["1/z", "2/a"])
def test_an_unknown_task_is_refused_and_nothing_changes(one):
    run = Scenario("R1 = a\nP1 = aa", final=2)
    for deed in (run.triggers, run.sets, run.sets_prerequisites, run.removes, run.holds):
        with pytest.raises(Refused):
            deed(one)
    assert run.submitted == ["1/a", "1/aa", "2/aa"]


def test_a_near_miss_is_named():
    with pytest.raises(Refused, match="did you mean model"):
        Scenario("model").triggers("1/modle")


def test_a_job_may_say_submitted_before_it_starts():
    run = Scenario("a:submit => b", start_jobs=False)
    run.happens(JobSubmitted((1, "a"), 1, 0.0))
    assert run.pool == {"1/a": "submitted", "1/b": "preparing"}
    run.happens(OutputMade((1, "b"), 1, "submitted", 0.0))
    assert run.pool["1/b"] == "submitted"
    run.happens(JobSubmitted((1, "b"), 7, 0.0)).happens(OutputMade((1, "b"), 7, "x", 0.0))
    assert len(run.notices("late")) == 2


def test_timers_and_xtriggers_that_come_too_late_change_nothing():
    run = Scenario("a").happens(TimerFired((1, "a"), "retry-delay", 0.0))
    run.happens(TimerFired((1, "gone"), "retry-delay", 0.0))
    run.happens(XtriggerSatisfied("x", ((1, "a"), (1, "gone")), 0.0))
    run.happens(TimerFired(None, "stall", 0.0))
    assert run.pool == {"1/a": "running"}


def test_a_push_trigger_is_waited_for_by_its_message():
    special = "[[special tasks]]\nexternal-trigger = a(data here)"
    run = Scenario("a", scheduling=special)
    assert run.checked == [("1/a", "message/data here")]
    assert run.xtrigger("message/data here", "1/a").pool == {"1/a": "running"}


def test_a_held_task_that_waits_for_parents_is_part_of_a_stall():
    run = Scenario("a & b => c").succeeds("1/a").holds("1/c").fails("1/b")
    assert run.stalled
    assert run.causes == ["1/b"]


def test_a_task_waits_for_the_next_start_if_only_atoms_beyond_the_stop_point_are_missing():
    run = Scenario("a[+P1] & b => c\na", final=4, scheduling="stop after cycle point = 2")
    run.runs_to_the_end()
    assert run.pool["2/c"] == "waiting"
    assert run.status == "stopped"


def test_a_family_of_two_flows_is_true_when_they_have_all_of_it_together():
    graph = "R1 = F:succeed-all & x => y\nR1 = F:fail-any => !y\nR1 = F[^]:succeed-all => z"
    run = Scenario(graph, "[[F]]\n[[m1, m2, m3]]\ninherit = F").succeeds("1/m1", "1/x")
    run.reflows("1/x").succeeds("1/x").removes("1/m2", "1/m3", kill=True)
    run.triggers("1/m2", flow=2).succeeds("1/m2")
    assert run.pool == {"1/y": "waiting"}
    assert run.triggers("1/m3", flow=2).succeeds("1/m3").pool["1/y"] == "running"


def test_a_task_that_comes_back_in_one_flow_joins_the_other_where_it_is_pooled():
    run = Scenario("a:fail & b => c\nc => d\nk\nx").succeeds("1/a", "1/b", "1/x")
    run.triggers("1/c", flow=2).sets("1/a", "failed")
    assert run.flows["1/c"] == [1, 2]
    assert run.succeeds("1/c").flows["1/d"] == [1, 2]


def test_a_task_that_runs_alone_is_judged_in_the_flow_when_it_has_left():
    run = Scenario("a:fail => b\nb & c => d").triggers("1/b", flow=FlowChoice.NONE)
    run.succeeds("1/a", "1/b", "1/c")
    assert run.completed
    assert run.verdicts == {"1/b": "not taken", "1/d": "not taken"}


def test_what_is_blocked_in_one_flow_shows_when_the_other_has_left():
    run = Scenario("R1 = a:fail => m\nP1 = a[-P1] => b\nP1 = k", final=2)
    run.triggers("2/b", flow=2).fails("1/a")
    assert run.flows["2/b"] == [2]
    assert run.succeeds("2/b").pool["2/b"] == "blocked"


def test_a_family_of_which_no_flow_can_bring_all_members_is_lost_to_a_child_of_both():
    members = "[[FAM]]\n[[m1, m2]]\ninherit = FAM"
    run = Scenario("FAM:succeed-all & x => c\nFAM:fail-any => q", members)
    run.succeeds("1/x").reflows("1/x").succeeds("1/x", "1/m2").fails("1/m1")
    run.triggers("1/m2", flow=2).fails("1/m2")
    assert run.pool["1/c"] == "waiting"
    assert "1/c" not in run.triggers("1/m1", flow=2).fails("1/m1").pool


def test_an_incomplete_task_takes_no_family_from_the_flow_in_which_it_failed():
    members = "[[FAM]]\n[[m1, m2]]\ninherit = FAM"
    run = Scenario("FAM:succeed-all & b => c", members)
    run.succeeds("1/m1", "1/m2", "1/b").fails("1/c").reflows("1/b").succeeds("1/b")
    run.triggers("1/m1", flow=2).succeeds("1/m1")
    assert run.pool == {"1/c": "waiting"}
    assert run.triggers("1/m2", flow=2).succeeds("1/m2").pool == {"1/c": "running"}


def test_a_flow_that_joins_an_active_member_spawns_nothing_on_what_was_made():
    members = "[[FAM]]\n[[m1, m2]]\ninherit = FAM"
    plain = Scenario("a:start => b\nx => a\nk").succeeds("1/x").reflows("1/x").succeeds("1/x")
    family = Scenario("FAM:start-any => b\nx => FAM\nk", members).succeeds("1/x")
    family.reflows("1/x").succeeds("1/x")
    assert plain.flows["1/b"] == family.flows["1/b"] == [1]
