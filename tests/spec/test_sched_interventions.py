"""Set, remove, hold, kill and reload (SEMANTICS §8)."""

import pytest

from tests.kit.scenario import Scenario, compile_graph
from tidewheel.core.sched.events import (
    AllHeldAfter,
    AllReleased,
    FlowChoice,
    FlowStopped,
    JobsKilled,
    JobsPolled,
    RunReloaded,
)
from tidewheel.errors import Refused


@pytest.mark.req("R001-43")
def test_setting_an_output_of_a_failed_task_lets_its_children_follow():
    run = Scenario("A => B").fails("1/A").sets("1/A", "succeeded")
    assert run.pool == {"1/B": "running"}


@pytest.mark.req("R001-43", "R001-52")
def test_setting_a_custom_output_marks_it_as_made_by_hand():
    run = Scenario("A:x => B", "[[A]]\n[[[outputs]]]\nx = x").sets("1/A", "x")
    assert run.pool == {"1/A": "running", "1/B": "running"}
    assert run.core.tasks[(1, "A")].by_hand == ("x",)


@pytest.mark.req("R001-43")
def test_a_future_task_that_is_set_counts_as_run():
    run = Scenario("a => b => c").sets("1/b")
    assert run.pool == {"1/a": "running", "1/c": "running"}
    run.succeeds("1/a", "1/c")
    assert run.submitted == ["1/a", "1/c"]
    assert run.completed


def test_prerequisites_can_be_satisfied_by_hand():
    run = Scenario("a & b & c => d").sets_prerequisites("1/d", "1/a", "1/b:succeeded")
    assert run.pool["1/d"] == "waiting"
    assert run.succeeds("1/c").pool["1/d"] == "running"


def test_all_prerequisites_can_be_satisfied_at_once():
    run = Scenario("a & b => d").sets_prerequisites("1/d", everything=True)
    assert run.pool["1/d"] == "running"
    assert run.runs_to_the_end().submitted.count("1/d") == 1


def test_an_xtrigger_can_be_satisfied_by_hand():
    run = Scenario("@x => a", scheduling="[[xtriggers]]\nx = echo(1)")
    assert run.sets_prerequisites("1/a", "xtrigger/x").pool == {"1/a": "running"}


@pytest.mark.req("R001-44")
def test_a_removed_waiting_task_is_lost_and_future_instances_still_come():
    run = Scenario("a & b => c => d", final=2).succeeds("1/a", "2/a").removes("1/c")
    assert run.verdicts == {"1/c": "removed", "1/d": "lost"}
    run.runs_to_the_end()
    assert run.completed
    assert "1/c" not in run.submitted
    assert "2/d" in run.submitted


@pytest.mark.req("R001-44")
def test_removing_an_incomplete_task_ends_the_stall():
    run = Scenario("a => b").fails("1/a")
    assert run.stalled
    assert run.removes("1/a").completed


def test_removing_and_forgetting_leaves_the_children_waiting():
    run = Scenario("a & b => c").succeeds("1/b").fails("1/a").removes("1/a", forget=True)
    assert run.pool == {"1/c": "waiting"}


def test_an_active_task_is_removed_only_if_it_is_killed():
    run = Scenario("a => b")
    with pytest.raises(Refused, match="1/a: active; remove with --kill"):
        run.removes("1/a")
    assert run.removes("1/a", kill=True).killed == ["1/a"]
    assert run.verdicts == {"1/a": "removed", "1/b": "lost"}


def test_removing_a_task_that_ran_lets_it_run_again_in_its_flow():
    run = Scenario("a => b\nb & x => c").succeeds("1/a").succeeds("1/b")
    assert run.pool["1/c"] == "waiting"
    run.removes("1/b", "1/a").triggers("1/a").succeeds("1/a")
    assert run.submitted == ["1/a", "1/x", "1/b", "1/a", "1/b"]


def test_a_removed_chain_head_does_not_break_its_chain():
    run = Scenario("a", final=9, scheduling="runahead limit = P1").removes("3/a")
    assert run.pool == {"1/a": "running", "2/a": "running", "4/a": "runahead"}


def test_tasks_can_be_held_before_they_are_spawned():
    run = Scenario("a => b").holds("1/b").restarts().succeeds("1/a")
    assert run.pool == {"1/b": "held"}
    assert run.why("1/b")[0].command == "release 1/b"
    assert run.releases("1/b").pool == {"1/b": "running"}


def test_everything_beyond_a_point_can_be_held():
    run = Scenario("a", final=6).happens(AllHeldAfter(6, 0.0)).happens(AllHeldAfter(5, 0.0))
    run.runs_to_the_end()
    assert run.pool == {"6/a": "held"}
    assert run.status == "waiting for release"
    assert run.happens(AllReleased(0.0)).pool == {"6/a": "running"}


def test_a_trigger_runs_a_held_task():
    run = Scenario("a => b").holds("1/b").triggers("1/b")
    assert run.pool["1/b"] == "running"


def test_killing_also_holds():
    run = Scenario("a", "[[a]]\nexecution retry delays = PT1S").happens(
        JobsKilled(((1, "a"),), 0.0)
    )
    assert run.killed == ["1/a"]
    run.is_killed("1/a")
    assert run.pool == {"1/a": "failed"}
    assert run.core.tasks[(1, "a")].held


def test_only_active_tasks_are_polled():
    run = Scenario("a => b").happens(JobsPolled(((1, "a"), (1, "b")), 0.0))
    assert run.effects[-1] == ((1, "a"), 1)


@pytest.mark.req("R001-49")
def test_a_reload_brings_new_tasks_on_demand_and_drops_removed_ones():
    run = Scenario("a => b => c\na & z => old").succeeds("1/a")
    assert run.pool == {"1/b": "running", "1/z": "running", "1/old": "waiting"}
    run.reloads("a => b => c\nb => new\nz")
    assert run.pool == {"1/b": "running", "1/z": "running"}
    run.succeeds("1/b")
    assert run.pool == {"1/c": "running", "1/new": "running", "1/z": "running"}


@pytest.mark.req("R001-49")
def test_a_new_parentless_task_comes_at_its_nearest_point_from_the_base_on():
    run = Scenario("a", final=9).succeeds("1/a", "2/a")
    run.reloads("a\nfresh", final=9)
    assert run.submitted[-5:] == [f"{point}/fresh" for point in range(3, 8)]
    assert "8/fresh" in run.pool


@pytest.mark.req("R001-49")
def test_a_removed_task_that_is_active_finishes_without_children():
    run = Scenario("a => b").reloads("c")
    assert run.pool == {"1/a": "running", "1/c": "running"}
    assert run.restarts().succeeds("1/a").pool == {"1/c": "running"}


def test_changed_prerequisites_are_looked_up_after_a_reload():
    run = Scenario("a & b & z => c\nd\ne").succeeds("1/a", "1/d")
    run.reloads("a & e => c\nb\nz\nd")
    assert run.pool["1/c"] == "waiting"
    run.reloads("a & d => c\nb\nz\ne")
    assert run.pool["1/c"] == "running"


@pytest.mark.req("R001-49")
def test_a_reload_that_asks_for_a_failure_before_the_start_prunes_as_if_it_had_always_asked():
    graph, new = "P1 = a => b", "R1 = c[-P1]:fail? => b\nP1 = c?"
    always = Scenario(f"{graph}\n{new}", final=2)
    reloaded = Scenario(f"{graph}\nP1 = c?", final=2).reloads(f"{graph}\n{new}", final=2)
    assert always.verdicts == reloaded.verdicts == {"1/b": "not taken"}
    for run in (always, reloaded):
        run.succeeds("1/a", "1/c", "2/a", "2/c", "2/b")
        assert run.completed
    assert always.submitted == reloaded.submitted


def test_a_reload_that_handles_a_failure_lets_the_handler_run():
    run = Scenario("a => b").fails("1/a")
    assert run.stalled
    run.reloads("a => b\na:fail => mail")
    assert run.pool == {"1/mail": "running"}
    assert run.succeeds("1/mail").completed
    assert run.verdicts == {"1/b": "lost"}


def test_what_was_satisfied_by_hand_stays_so_where_a_reload_still_asks_for_it():
    run = Scenario("a & b & c => d\nx").sets_prerequisites("1/d", "1/b")
    run.reloads("x & c & b & a => d")
    needed = [reason.text for reason in run.why("1/d")]
    assert len(needed) == 3
    assert not [text for text in needed if "1/b" in text]
    assert run.succeeds("1/a", "1/x", "1/c").pool["1/d"] == "running"


def test_a_family_by_hand_stays_true_over_a_reload():
    runtime = "[[F]]\n[[m1, m2]]\ninherit = F\n[[y]]"
    run = Scenario("F:succeed-any & x => y", runtime).sets_prerequisites("1/y", "1/m1")
    run.reloads("x & F:succeed-any => y", runtime)
    assert run.succeeds("1/x").pool["1/y"] == "running"


@pytest.mark.req("R001-49", "P7")
def test_what_a_later_final_point_brings_back_is_pruned_by_what_ended_there_before():
    graph = "P1 = a\nP1 = b => d\nP1 = a:fail => m\nP1 = z"
    run = Scenario(graph, final=4, scheduling="runahead limit = P0")
    for point in (1, 2, 3):
        run.succeeds(f"{point}/a", f"{point}/b", f"{point}/d", f"{point}/z")
    run.fails("4/a").succeeds("4/m", "4/b", "4/d")
    run.reloads(graph, final=3)
    run.reloads(f"{graph}\nP1 = a & b => c\nP1 = z[-P2] => late", final=6)
    assert run.verdicts["4/c"] == "lost"
    assert run.pool["4/z"] == "running"


@pytest.mark.req("R001-49", "P5")
def test_a_reload_finds_what_ended_unheard_in_any_flow_of_the_child():
    run = Scenario("x:fail => a\nb & q => d\nx\nq").succeeds("1/b").reflows("1/a")
    run.succeeds("1/a").triggers("1/b", flow=2).succeeds("1/b")
    assert run.flows["1/d"] == [1, 2]
    run.reloads("x:fail => a\na & b & q => d\nx\nq")
    assert run.succeeds("1/q").pool["1/d"] == "running"


@pytest.mark.req("R001-49", "R001-47")
def test_members_whom_a_reload_took_off_their_points_are_lost_with_or_without_a_restart():
    family = "[[F]]\n[[m1, m2]]\ninherit = F"
    run = Scenario("P1 = m1\nP1 = m2\nP1 = c", family, final=3)
    run.reloads("+P1/P2 = F\nP1 = F[-P1]:fail-any & c => d", family, final=3)
    assert run.succeeds("2/c").pool["2/d"] == "blocked"
    assert run.restarts().succeeds("1/m1").pool["2/d"] == "blocked"
    assert run.succeeds("1/m2").verdicts["2/d"] == "not taken"


def test_what_is_tried_again_needs_nothing_more_after_a_reload():
    retries = "[[b]]\nexecution retry delays = PT1M"
    run = Scenario("a => b", retries).succeeds("1/a").fails("1/b")
    run.reloads("a & new => b", retries)
    assert run.pool["1/b"] == "pending"
    assert run.timer("1/b", "retry-delay").pool["1/b"] == "running"


def test_outputs_made_before_a_reload_count_for_those_who_ask_for_them_now():
    run = Scenario("a => b").reloads("a => b\na:start => c")
    assert run.pool == {"1/a": "running", "1/c": "running"}


def test_a_task_that_runs_alone_tells_nobody_new_after_a_reload():
    run = Scenario("a => b").succeeds("1/a").triggers("1/a")
    assert run.flows["1/a"] == []
    assert run.reloads("a => b\na:start => c").pool == {"1/a": "running", "1/b": "running"}


def test_a_later_final_point_reaches_tasks_that_another_flow_has_brought():
    run = Scenario("R1 = a & b\nP1 = b[-P1] => b", final=1).runs_to_the_end()
    run.reflows("1/b").succeeds("1/b")
    run.reloads("R1 = a & b\nP1 = b[-P1] => b", final=3)
    assert run.flows == {"2/b": [1, 2]}


def test_what_ended_before_a_reload_is_known_to_be_dead_for_those_who_ask_for_it_now():
    run = Scenario("a\nb\nc").succeeds("1/a")
    run.reloads("a:fail & b => d\nc")
    assert run.succeeds("1/b", "1/c").completed
    assert run.verdicts == {"1/d": "not taken"}


MEMBERS = "[[FAM]]\n[[m1, m2]]\ninherit = FAM"


def test_removing_a_member_that_ran_opens_what_a_waiting_child_had_of_the_family():
    run = Scenario("FAM:succeed-all & b => c\nFAM:start-any => d", MEMBERS)
    run.succeeds("1/m1", "1/m2").removes("1/m1").succeeds("1/b")
    assert run.pool["1/c"] == "waiting"
    assert run.triggers("1/m1").succeeds("1/m1").pool["1/c"] == "running"


def test_removing_a_parent_at_a_fixed_point_opens_what_waiting_children_had_of_it():
    run = Scenario("R1 = i\nP1 = i[^] & b & d => c", final=2)
    run.succeeds("1/b", "1/i").removes("1/i").succeeds("1/d")
    assert run.pool["1/c"] == "waiting"
    assert run.triggers("1/i").succeeds("1/i").pool["1/c"] == "running"


def test_a_child_in_two_flows_keeps_what_the_other_flow_has_made():
    run = Scenario("a & b => c\nx").succeeds("1/a").reflows("1/a").succeeds("1/a")
    assert run.flows["1/c"] == [1, 2]
    assert run.removes("1/a", flow=2).succeeds("1/b").pool["1/c"] == "running"


def test_a_removed_parent_opens_nothing_of_a_child_that_waits_for_a_retry():
    run = Scenario("a => b", "[[b]]\nsubmission retry delays = PT1S", start_jobs=False)
    run.starts("1/a").succeeds("1/a").submit_fails("1/b").removes("1/a")
    assert run.timer("1/b", "retry-delay").pool == {"1/b": "preparing"}


def test_removing_a_task_that_will_not_run_does_not_bring_it_back():
    run = Scenario("a:fail & c => b").succeeds("1/a").removes("1/b").succeeds("1/c")
    assert run.completed
    lost = Scenario("a:fail => alert\na & slow => b").fails("1/a").succeeds("1/alert")
    assert lost.removes("1/b").succeeds("1/slow").completed
    assert lost.verdicts == {"1/b": "lost"}


def test_removing_a_task_that_will_not_run_does_not_bring_its_children_back():
    run = Scenario("x:fail => b\nb & c => d").succeeds("1/x", "1/c")
    assert run.completed
    assert run.removes("1/b").pool == {}
    assert run.completed


def test_a_task_taken_out_with_its_atoms_open_is_still_judged():
    run = Scenario("a & b => c\nc & x => d\nb:fail => m").succeeds("1/a", "1/x")
    run.removes("1/c", forget=True).fails("1/b").succeeds("1/m")
    assert run.verdicts == {"1/c": "lost", "1/d": "lost"}
    assert run.completed


def test_a_task_that_was_taken_out_before_it_ran_joins_the_flow_when_triggered():
    run = Scenario("a & b => c => d").succeeds("1/a").removes("1/c", forget=True)
    assert run.triggers("1/c").succeeds("1/c").pool["1/d"] == "running"


def test_what_ran_and_was_taken_out_runs_alone_when_triggered():
    run = Scenario("a => c => d\nx").succeeds("1/a").fails("1/c").removes("1/c", forget=True)
    assert run.triggers("1/c").flows["1/c"] == []


def test_triggering_a_failed_member_of_a_family_brings_back_what_was_lost_by_it():
    run = Scenario("FAM:succeed-all => products\nFAM:fail-any => mail", MEMBERS)
    run.succeeds("1/m1").fails("1/m2").succeeds("1/mail")
    assert run.verdicts == {"1/products": "lost"}
    assert run.triggers("1/m2").succeeds("1/m2").pool == {"1/products": "running"}


def test_triggering_a_failed_parent_at_a_fixed_point_brings_back_what_was_lost_by_it():
    run = Scenario("R1 = cold:fail => mail\nP1 = cold[^] => model", final=3)
    run.fails("1/cold").succeeds("1/mail")
    assert run.stalled
    run.triggers("1/cold").succeeds("1/cold").runs_to_the_end()
    assert run.completed
    assert sorted(run.submitted[3:]) == ["1/model", "2/model", "3/model"]


def test_what_a_task_makes_alone_counts_for_pooled_children_of_every_kind_of_arrow():
    fixed = Scenario("R1 = w => i\nP1 = i[^] & b & d => c", final=1).succeeds("1/b")
    fixed.triggers("1/i", flow=FlowChoice.NONE).succeeds("1/i", "1/d")
    assert fixed.pool == {"1/w": "running", "1/c": "running"}
    family = Scenario("w => FAM\nFAM:succeed-all & b & d => c\nFAM:start-any => e", MEMBERS)
    family.succeeds("1/b").sets("1/m1").triggers("1/m2", flow=FlowChoice.NONE)
    assert family.succeeds("1/m2", "1/d").pool["1/c"] == "running"


def test_setting_a_parent_at_a_fixed_point_brings_back_its_children_at_every_point():
    run = Scenario("R1 = cold:fail => mail\nP1 = cold[^] => model\nP1 = obs", final=4)
    run.fails("1/cold").sets("1/cold").runs_to_the_end()
    assert run.completed
    assert not run.verdicts
    branch = Scenario("R1 = x:fail => cold\nP1 = cold[^] => model", final=8)
    branch.succeeds("1/x").sets("1/cold").runs_to_the_end()
    assert branch.submitted[1:] == [f"{point}/model" for point in range(1, 9)]


def test_setting_the_failure_of_a_task_that_succeeded_loses_none_of_its_other_outputs():
    graph = "a:fail => b\na:x => c\nc & d => e"
    run = Scenario(graph, "[[a]]\ncompletion = succeeded or failed\n[[[outputs]]]\nx = x")
    run.succeeds("1/a", "1/d").sets("1/a", "failed")
    assert run.verdicts == {"1/c": "not taken", "1/e": "not taken"}


def test_a_reload_that_raises_or_removes_a_limit_submits_at_once():
    limit = "[[queues]]\n[[[q]]]\nlimit = {}\nmembers = a, b, c"
    for more in (limit.format(3), limit.format(0), ""):
        run = Scenario("a & b & c => d", scheduling=limit.format(1))
        assert run.submitted == ["1/a"]
        run.happens(RunReloaded(compile_graph("a & b & c => d", scheduling=more), run.now))
        assert run.submitted == ["1/a", "1/b", "1/c"]


def test_a_reload_knows_what_was_made_at_a_point_that_is_fixed_only_now():
    run = Scenario("R1 = a => z\nP1 = b", final=3).succeeds("1/a")
    run.reloads(
        "R1 = a => z\nR1 = a:fail => x\nP1 = a[^] => c\nP1 = a[^]:fail => d\nP1 = b => d",
        final=3,
    )
    assert [one for one in run.submitted if one.endswith("c")] == ["1/c", "2/c", "3/c"]
    assert run.runs_to_the_end().completed
    assert set(run.verdicts.values()) == {"not taken"}


def test_a_reload_knows_what_a_family_made_at_a_point_that_is_fixed_only_now():
    run = Scenario("R1 = FAM\nP1 = b", MEMBERS, final=3).runs_to_the_end()
    run.reloads("R1 = FAM\nP1 = b\nP1 = FAM[^]:succeed-all => c", MEMBERS, final=3)
    assert run.submitted[-3:] == ["1/c", "2/c", "3/c"]
    assert run.runs_to_the_end().completed


def test_a_fixed_point_before_the_start_is_met_also_for_what_a_reload_adds():
    run = Scenario("R1 = a\nP1 = b", final=3, start=2)
    run.reloads("R1 = a\nP1 = b\nP1 = a[^] => c\nP1 = a[^] & b => d", final=3)
    assert run.runs_to_the_end().completed
    assert sorted(run.submitted) == ["2/b", "2/c", "2/d", "3/b", "3/c", "3/d"]


def test_a_family_that_is_not_done_at_the_old_final_point_lets_its_children_follow_later():
    run = Scenario("m1 & m2\nFAM[-P1]:succeed-all => c", MEMBERS, final=1).succeeds("1/m1")
    run.reloads("m1 & m2\nFAM[-P1]:succeed-all => c", MEMBERS, final=2)
    assert "2/c" not in run.pool
    assert run.succeeds("1/m2").pool["2/c"] == "running"


def test_a_later_final_point_lets_children_of_a_family_follow_beyond_the_old_one():
    run = Scenario("FAM\nFAM[-P1]:succeed-all => c", MEMBERS, final=1).runs_to_the_end()
    run.reloads("FAM\nFAM[-P1]:succeed-all => c", MEMBERS, final=2)
    assert run.pool["2/c"] == "running"


def test_a_removed_parent_opens_what_a_child_had_of_it_in_a_flow_that_was_stopped():
    run = Scenario("a & b => c\nx => c").succeeds("1/a").reflows("1/x").succeeds("1/x")
    assert run.flows["1/c"] == [1, 2]
    run.happens(FlowStopped(1, run.now)).removes("1/a").sets("1/b", flow=2)
    assert run.pool["1/c"] == "waiting"


def test_behind_one_that_is_run_by_hand_the_next_that_is_blocked_shows():
    """Else the run would end as if nobody waited for what is lost."""
    run = Scenario("R1 = cold:fail => mail\nP1 = cold[^] => model", final=4)
    run.fails("1/cold").succeeds("1/mail")
    assert run.pool == {"2/model": "blocked"}
    run.triggers("2/model").succeeds("2/model")
    assert run.pool == {"3/model": "blocked"}
    run.sets_prerequisites("3/model", everything=True)
    assert run.pool == {"3/model": "running", "4/model": "blocked"}


RETRIED = "[[a]]\nexecution retry delays = PT1M\n[[b]]\n[[m]]"


def test_a_failure_set_by_hand_ends_a_task_that_waits_for_its_retry():
    """As in Cylc 8: who says that it has failed does not want it tried again."""
    run = Scenario("a => b", RETRIED).fails("1/a").sets("1/a", "failed")
    assert (run.stalled, run.core.tasks[(1, "a")].ended) == (True, "failed")
    assert run.timer("1/a", "retry-delay").submitted == ["1/a"]
    assert run.triggers("1/a").succeeds("1/a").runs_to_the_end().completed


def test_a_handled_failure_set_by_hand_ends_a_task_that_waits_for_its_retry():
    run = Scenario("a:fail => m", RETRIED).fails("1/a").sets("1/a", "failed")
    assert run.timer("1/a", "retry-delay").pool == {"1/m": "running"}
    assert run.runs_to_the_end().submitted == ["1/a", "1/m"]


@pytest.mark.parametrize("ended", ["failed", "submit-failed", "expired"])
def test_an_end_set_by_hand_ends_a_task_that_waits_for_its_parents(ended):
    run = Scenario("a & b => c => d").succeeds("1/a").sets("1/c", ended)
    run.succeeds("1/b")
    assert (run.stalled, run.submitted) == (True, ["1/a", "1/b"])
    assert run.core.tasks[(1, "c")].ended == ended


def test_a_success_set_by_hand_without_a_needed_output_leaves_the_task_incomplete():
    """Else it ran, although somebody said that it had succeeded."""
    run = Scenario("a & b => c\nc:x => d", "[[c]]\n[[[outputs]]]\nx = x").succeeds("1/a")
    run.sets("1/c", "succeeded").succeeds("1/b")
    assert (run.stalled, run.submitted) == (True, ["1/a", "1/b"])
    assert run.sets("1/c", "x").pool == {"1/d": "running"}


def test_an_end_set_by_hand_ends_a_task_that_runs_alone_and_waits_for_its_retry():
    run = Scenario("a => b", RETRIED).fails("1/a").sets("1/a", "succeeded").succeeds("1/b")
    run.triggers("1/a").fails("1/a")
    assert run.sets("1/a", "failed").pool == {}
    assert run.timer("1/a", "retry-delay").submitted == ["1/a", "1/b", "1/a"]


def test_an_end_set_by_hand_ends_the_wait_for_an_xtrigger():
    run = Scenario("@x => a", scheduling="[[xtriggers]]\nx = echo(1)").sets("1/a", "failed")
    assert run.stalled
    assert not run.xtrigger("x", "1/a").submitted


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y:fail => m\ny => d", "y:fail => m & d"),  # it was lost
        ("y? => d\ny:fail? => m", "y?\ny:fail? => m & d"),  # it was not taken
    ],
)
def test_a_task_that_was_not_to_run_runs_if_a_reload_says_otherwise(before, after):
    run = Scenario(before).fails("1/y").reloads(after)
    assert run.pool["1/d"] == "running"
    assert run.runs_to_the_end().completed
    assert not run.verdicts
