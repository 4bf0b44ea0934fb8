"""The same core under Cylc 8's rules (SEMANTICS §14)."""

import re

from tests.kit.scenario import Scenario, compile_graph
from tidewheel.core.sched.events import RunReloaded, StopPointSet


def cylc8(graph: str, final: int | None = None, scheduling: str = "") -> Scenario:
    names = set(re.findall(r"[a-z_]\w*", graph)) - {"fail"}
    runtime = "\n".join(f"[[{name}]]" for name in sorted(names))
    return Scenario(graph, runtime, final=final, scheduling=scheduling, policy="cylc8")


def test_nothing_is_pruned_or_blocked():
    run = cylc8("a:fail? => x\na? & b => c").fails("1/a").succeeds("1/b", "1/x")
    assert run.pool == {"1/c": "waiting"}
    assert run.verdicts == {}
    assert run.stalled


def test_failures_before_the_start_count_as_true():
    run = cylc8("a[-P1]:fail? => b\na?", final=1)
    assert run.pool == {"1/a": "running", "1/b": "running"}


def test_every_pooled_task_holds_the_runahead_base_back():
    run = cylc8("P1 = a\nR1/2 = late\nR1 = a & late[+P1] => b", 9, "runahead limit = P1")
    run.succeeds("1/a")
    assert run.pool["1/b"] == "waiting"
    assert "4/a" not in run.submitted


def test_only_absolute_children_are_chained_from_the_start():
    run = cylc8("R1 = start\nP1 = start[^] => foo", final=3)
    assert run.pool["1/foo"] == "waiting"
    assert run.runs_to_the_end().submitted[-1] == "3/foo"


def test_a_trigger_of_a_finished_task_goes_into_the_active_flows():
    run = cylc8("a => b => c").succeeds("1/a").triggers("1/a")
    assert run.flows["1/a"] == [1]


def test_a_task_that_needs_something_beyond_the_final_point_is_not_spawned():
    run = cylc8("a[+P1] & b => c\na", final=1).runs_to_the_end()
    assert run.pool == {}
    assert run.completed
    run = cylc8("a[+P1]? | b? => c?\na?", final=2).runs_to_the_end()
    assert "1/c" in run.submitted
    assert "2/c" not in run.submitted
    assert run.completed


def test_the_first_member_of_a_family_spawns_the_child_as_if_the_members_were_written_out():
    runtime = "[[FAM]]\n[[a, b]]\ninherit = FAM\n[[c, z]]"
    graph = "{} => z?\nc:fail? => b?\nc?\na?"
    for left in ("FAM:succeed-all?", "a? & b?"):
        run = Scenario(graph.format(left), runtime, policy="cylc8").runs_to_the_end()
        assert run.stalled
        assert run.pool == {"1/z": "waiting"}


def test_a_child_that_a_member_spawned_runs_through_what_lies_before_the_start():
    runtime = "[[FAM]]\n[[a, b]]\ninherit = FAM\n[[c, z]]"
    graph = "c[-P1]? | FAM:succeed-all? => z?\nc?\na?\nb?"
    run = Scenario(graph, runtime, final=1, policy="cylc8").runs_to_the_end(fails=("1/b",))
    assert "1/z" in run.submitted


def test_a_family_of_which_one_failed_still_waits_for_any_other():
    runtime = "[[F]]\n[[m1, m2]]\ninherit = F\n[[x]]"
    run = Scenario("F:succeed-any? => x", runtime, policy="cylc8").fails("1/m1")
    assert run.restarts().succeeds("1/m2").pool == {"1/x": "running"}


def test_an_absolute_output_spawns_its_child_at_the_first_point_whatever_it_lacks():
    run = cylc8("R1/2 = start\nP1 = start[2] & bar => foo", final=3).succeeds("2/start")
    assert run.pool["1/foo"] == "waiting"
    assert "2/foo" not in run.pool
    run.succeeds("2/bar").succeeds("1/bar")
    assert run.submitted[-2:] == ["2/foo", "1/foo"]


def test_an_incomplete_task_that_a_new_flow_meets_runs_again_at_once():
    run = cylc8("a & x => b").succeeds("1/a", "1/x").fails("1/b")
    assert run.reflows("1/a").succeeds("1/a").pool == {"1/b": "running"}


def test_a_task_that_needs_something_beyond_the_stop_point_is_not_spawned():
    run = cylc8("a[+P1]? | b? => c?\na?", final=3)
    run.happens(StopPointSet(2, 0.0)).succeeds("1/b", "2/b")
    assert "1/c" in run.submitted
    assert "2/c" not in run.submitted
    assert run.runs_to_the_end().status == "stopped"


def test_a_member_of_a_family_at_a_fixed_point_spawns_the_first_child():
    runtime = "[[F]]\n[[m1, m2]]\ninherit = F\n[[b, x, y]]"
    graph = "R1 = F\nP1 = F[^]:succeed-all & b => x\nR1/9 = F[^]:succeed-any & b => y"
    run = Scenario(graph, runtime, final=3, policy="cylc8").succeeds("1/m1")
    assert run.pool["1/x"] == "waiting"
    assert "2/x" not in run.pool
    run.runs_to_the_end()
    assert run.completed
    assert {"1/x", "2/x", "3/x"} <= set(run.submitted)


def test_an_unreleased_head_that_is_removed_makes_way_for_the_next():
    run = cylc8("R1 = s\nP1 = s[^] => foo", final=9)
    assert run.pool["6/foo"] == "waiting"
    run.removes("6/foo")
    assert "6/foo" not in run.pool
    assert run.pool["7/foo"] == "waiting"


def test_a_suicide_arrow_counts_when_it_comes_true_not_when_its_task_comes():
    run = cylc8("a => b\nx => !b").succeeds("1/a")
    assert run.pool == {"1/x": "running", "1/b": "running"}
    assert run.succeeds("1/b").succeeds("1/x").completed


def test_a_family_in_a_suicide_arrow_spawns_nobody():
    runtime = "[[F]]\n[[m1, m2]]\ninherit = F\n[[x, y]]"
    run = Scenario("F:fail-any? => !x\nx & y => z?\nF?", runtime + "\n[[z]]", policy="cylc8")
    assert run.fails("1/m1").runs_to_the_end().completed


def test_a_family_at_a_fixed_point_is_not_heard_at_others():
    runtime = "[[F]]\n[[m1, m2]]\ninherit = F\n[[b, x]]"
    run = Scenario("P1 = F\nP1 = F[^]:succeed-all & b => x", runtime, final=2, policy="cylc8")
    run.succeeds("2/m1", "2/m2")
    assert "1/x" not in run.pool
    assert run.succeeds("1/m1").pool["1/x"] == "waiting"
    assert run.runs_to_the_end().completed


def test_a_task_that_succeeded_in_vain_and_fails_in_the_next_flow_ended_as_failed():
    run = cylc8("x => a\na:fail => b").succeeds("1/x", "1/a")
    assert run.pool == {"1/a": "succeeded"}
    run.reflows("1/x").succeeds("1/x").restarts().fails("1/a")
    assert run.flows == {"1/b": [1, 2]}
    verdicts = run.core.recall(*run.key("1/a")).verdicts
    assert {flow: verdict.ended for flow, verdict in verdicts.items()} == {
        1: "failed",
        2: "failed",
    }


def test_a_reload_judges_nobody_either():
    run = cylc8("a? => b\nx").fails("1/a")
    again = compile_graph("a? => b\na:fail? & x => c", "[[a, b, c, x]]", policy="cylc8")
    run.happens(RunReloaded(again, 0.0))
    assert run.verdicts == {}
    assert run.succeeds("1/x").pool == {"1/c": "running"}
