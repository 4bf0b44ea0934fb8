"""Flows and reflow (SEMANTICS §8; SoD, "Reflow")."""

import pytest

from tests.kit.scenario import Scenario, compile_graph
from tidewheel.core.cycling.calendar import Point
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.events import (
    FlowChoice,
    FlowStopped,
    JobEnd,
    JobEnded,
    RunStarted,
    TasksTriggered,
)
from tidewheel.core.sched.explain import preview
from tidewheel.core.sched.step import new_pool, step

GRAPH = "foo[-P1] => foo => woo => bar & baz => qux"
ALL = 15


def finished() -> Scenario:
    run = Scenario(GRAPH, final=3).runs_to_the_end()
    assert len(run.submitted) == ALL
    return run


@pytest.mark.req("R001-32")
def test_a_trigger_without_reflow_runs_the_one_task_and_stops():
    run = finished().triggers("2/woo")
    assert run.flows == {"2/woo": []}
    run.runs_to_the_end()
    assert run.submitted[ALL:] == ["2/woo"]
    assert run.completed


@pytest.mark.req("R001-32")
def test_a_task_that_runs_alone_leaves_the_pool_also_when_it_fails():
    run = finished().triggers("2/woo").fails("2/woo")
    assert run.pool == {}


@pytest.mark.req("R001-33")
def test_a_reflow_from_a_bottleneck_runs_what_follows_and_ends_by_itself():
    run = finished().reflows("2/woo").runs_to_the_end()
    assert run.submitted[ALL:] == ["2/woo", "2/bar", "2/baz", "2/qux"]
    assert run.notices("flow ended") == ["flow 2 has ended"]


@pytest.mark.req("R001-34")
def test_a_reflow_from_a_cycling_bottleneck_carries_on_from_there():
    run = finished().reflows("2/foo").runs_to_the_end()
    names = ("foo", "woo", "bar", "baz", "qux")
    assert sorted(run.submitted[ALL:]) == sorted(f"{p}/{n}" for p in (2, 3) for n in names)


@pytest.mark.req("R001-35")
def test_a_reflow_from_elsewhere_waits_for_outputs_of_its_own_flow_and_why_says_so():
    run = finished().reflows("2/baz").succeeds("2/baz")
    assert run.pool == {"2/qux": "waiting"}
    assert run.stalled
    reason = run.why("2/qux")[0]
    assert reason.text == "2/qux needs 2/bar:succeeded, which was made in flow 1, not in flow 2"
    assert (reason.passes, reason.command) == (False, "set 2/bar --flow 2")


@pytest.mark.req("R001-35", "R001-43")
def test_setting_the_missing_output_afterwards_resolves_it():
    run = finished().reflows("2/baz").succeeds("2/baz").sets("2/bar")
    assert run.pool == {"2/qux": "running"}


@pytest.mark.req("R001-35")
def test_setting_it_before_and_triggering_into_that_flow_resolves_it_too():
    run = finished().sets("2/bar", flow=FlowChoice.NEW)
    assert run.flows == {"2/qux": [2]}
    run.triggers("2/baz", flow=2).succeeds("2/baz")
    assert run.pool == {"2/qux": "running"}


@pytest.mark.req("R001-35")
def test_triggering_the_waiting_task_resolves_it_too():
    run = finished().reflows("2/baz").succeeds("2/baz").triggers("2/qux").succeeds("2/qux")
    assert run.completed


@pytest.mark.req("R001-36")
def test_a_reflow_can_be_bounded_at_a_point():
    run = finished().reflows("1/foo", until=2).runs_to_the_end()
    assert not [one for one in run.submitted[ALL:] if one.startswith("3")]
    assert len(run.submitted) == 2 * ALL - 5


@pytest.mark.req("R001-36")
def test_a_reflow_can_be_bounded_at_tasks():
    run = finished().triggers("2/foo", flow=FlowChoice.NEW, until_tasks=("2/woo", "3/foo"))
    run.runs_to_the_end()
    assert run.submitted[ALL:] == ["2/foo", "2/woo", "3/foo"]


@pytest.mark.req("R001-36")
def test_a_reflow_can_be_cancelled():
    run = finished().reflows("2/foo").succeeds("2/foo").happens(FlowStopped(2, 0.0))
    assert sorted(run.pool) == ["2/woo", "3/foo"]
    run.runs_to_the_end()
    assert run.submitted[ALL:] == ["2/foo", "2/woo", "3/foo"]


@pytest.mark.req("R001-36")
def test_several_flows_run_at_once():
    run = finished().reflows("1/woo").reflows("3/woo").runs_to_the_end()
    assert len(run.submitted) == ALL + 8
    assert sorted({min(one.flows) for one in run.submissions[ALL:]}) == [2, 3]


@pytest.mark.req("R001-37")
def test_a_reflow_that_meets_a_waiting_task_merges_and_the_task_runs_once():
    run = Scenario("a => b\nb & c => d").succeeds("1/a").succeeds("1/b")
    run.reflows("1/b").succeeds("1/b")
    assert run.flows["1/d"] == [1, 2]
    run.succeeds("1/c")
    assert run.submitted.count("1/d") == 1


@pytest.mark.req("R001-37")
def test_a_reflow_that_meets_an_active_task_leaves_it_alone():
    run = Scenario("a => b => c").succeeds("1/a").reflows("1/a").succeeds("1/a")
    assert run.submitted == ["1/a", "1/b", "1/a"]
    assert run.flows == {"1/b": [1, 2]}
    assert run.succeeds("1/b").flows == {"1/c": [1, 2]}


@pytest.mark.req("R001-37")
def test_a_reflow_that_meets_an_incomplete_task_runs_it_once_for_both():
    run = Scenario("a & x => b => c").succeeds("1/a", "1/x").fails("1/b")
    run.reflows("1/a").succeeds("1/a")
    assert run.pool == {"1/b": "waiting"}
    run.triggers("1/x", flow=2).succeeds("1/x").succeeds("1/b")
    assert run.flows == {"1/c": [1, 2]}


def test_a_flow_that_meets_a_task_that_runs_alone_flows_on_from_its_outputs():
    graph = "a => b\nb:start => c"
    run = Scenario(graph).runs_to_the_end().triggers("1/b")
    assert run.flows == {"1/b": []}
    before = len(run.submitted)
    run.reflows("1/a").succeeds("1/a")
    assert run.flows["1/b"] == [2]
    assert run.submitted[before:] == ["1/a", "1/c"]


def test_outputs_of_a_task_that_runs_alone_reach_pooled_children_and_spawn_none():
    run = Scenario("a => b\na & x => c").succeeds("1/a").succeeds("1/b")
    run.triggers("1/a", flow=FlowChoice.NONE).succeeds("1/a")
    assert run.submitted == ["1/a", "1/x", "1/b", "1/a"]
    assert run.pool == {"1/x": "running", "1/c": "waiting"}


def test_a_task_can_run_now_and_flow_on_when_another_flow_arrives():
    run = finished().triggers("2/woo", flow=FlowChoice.NEW, wait=True).succeeds("2/woo")
    assert run.submitted[ALL:] == ["2/woo"]


@pytest.mark.req("R001-38")
def test_a_reflow_can_ignore_what_lies_before_it():
    run = Scenario("a[-P1] & b => a\nb => c", final=3).runs_to_the_end()
    before = len(run.submitted)
    run.triggers("2/b", flow=FlowChoice.NEW, ignore_before=True).runs_to_the_end()
    assert "2/a" in run.submitted[before:]


@pytest.mark.req("R001-39")
def test_a_reflow_can_be_looked_at_before_it_is_done():
    run = finished()
    event = TasksTriggered(tasks=((2, "baz"),), at=0.0, flow=FlowChoice.NEW)
    seen = preview(run.core, event)
    assert [run.id_of(one.task) for one in seen.runs] == ["2/baz"]
    assert seen.waits[(2, "qux")][0].text.startswith("2/qux needs 2/bar:succeeded")
    assert run.pool == {}
    assert len(run.submitted) == ALL


def test_a_task_that_never_ran_joins_the_active_flows_so_it_does_not_run_twice():
    run = Scenario("a => b => c").triggers("1/b").succeeds("1/b").succeeds("1/c")
    run.succeeds("1/a")
    assert run.submitted == ["1/a", "1/b", "1/c"]
    assert run.completed


def test_a_pruned_task_that_is_triggered_comes_back_with_its_children():
    run = Scenario("a:fail => x\na => b => c").fails("1/a").triggers("1/b").succeeds("1/b")
    assert run.pool["1/c"] == "running"


def test_triggered_tasks_form_a_group_that_earns_its_own_prerequisites():
    run = finished().triggers("2/woo", "2/bar", "2/qux", flow=FlowChoice.NEW)
    assert run.pool == {"2/woo": "running", "2/bar": "waiting", "2/qux": "waiting"}
    run.runs_to_the_end()
    assert run.submitted[ALL:] == ["2/woo", "2/bar", "2/baz", "2/qux"]


def test_a_parentless_task_carries_on_in_the_new_flow():
    run = Scenario("foo => bar", final=3).runs_to_the_end()
    before = len(run.submitted)
    run.reflows("2/foo").runs_to_the_end()
    assert sorted(run.submitted[before:]) == ["2/bar", "2/foo", "3/bar", "3/foo"]


@pytest.mark.req("R001-41")
def test_submit_numbers_never_repeat_over_flows_and_forgotten_points():
    run = Scenario(GRAPH, final=6).runs_to_the_end().reflows("1/woo").runs_to_the_end()
    run.triggers("1/woo").runs_to_the_end()
    numbers = [one.submit for one in run.submissions if one.task == (1, "woo")]
    assert numbers == [1, 2, 3]


@pytest.mark.parametrize(("policy", "pool"), [("tidewheel", "waiting"), ("cylc8", "running")])
def test_tasks_placed_before_the_start_must_earn_what_they_need(policy, pool):
    runtime = "[[a, b]]"
    run = Scenario("a[-P1] => a => b", runtime, final=5, start=4, policy=policy)
    run.triggers("2/a", "2/b")
    assert run.pool["2/a"] == "running"
    assert run.pool["2/b"] == pool
    assert run.flows["2/a"] == []
    assert run.restarts().succeeds("2/a").pool["2/b"] == "running"


def test_before_the_initial_point_there_is_nothing_to_be_earned():
    run = Scenario("a[-P1] => a => b", final=5, start=4).triggers("1/a", "2/a")
    assert run.pool["1/a"] == "running"
    assert run.pool["2/a"] == "waiting"
    assert run.sets_prerequisites("1/b", "1/a").pool["1/b"] == "running"


FAMILY = "[[FAM]]\n[[m1, m2]]\n    inherit = FAM\n"
ALONE = FlowChoice.NONE


@pytest.mark.parametrize("restarts", [False, True])
def test_members_of_a_family_that_each_run_alone_reach_a_pooled_child(restarts):
    run = Scenario("y => FAM\nFAM:succeed-all & x => c", FAMILY).succeeds("1/x")
    run.triggers("1/m1", flow=ALONE).succeeds("1/m1")
    assert run.pool["1/c"] == "waiting"
    run = run.restarts() if restarts else run
    run.triggers("1/m2", flow=ALONE).succeeds("1/m2")
    assert run.pool["1/c"] == "running"


def test_a_member_that_ran_alone_and_one_of_the_flow_make_a_family_together():
    run = Scenario("y => FAM\nFAM:succeed-all & x => c\nFAM:fail-any => m", FAMILY)
    run.succeeds("1/x").triggers("1/m1", flow=ALONE).succeeds("1/m1")
    run.succeeds("1/y").fails("1/m1").succeeds("1/m2")
    assert run.pool == {"1/c": "running", "1/m": "running"}


def test_a_member_that_ran_alone_before_the_child_was_there_is_not_heard():
    run = Scenario("y => FAM\nFAM:succeed-all & x => c", FAMILY)
    run.triggers("1/m1", flow=ALONE).succeeds("1/m1").succeeds("1/x")
    run.triggers("1/m2", flow=ALONE).succeeds("1/m2")
    assert run.pool["1/c"] == "waiting"


def test_a_member_that_failed_and_then_succeeds_alone_blocks_nobody_any_more():
    graph = "P1 = FAM\nP1 = m1:fail => mend\nP1 = b & FAM[-P1]:succeed-all => c"
    run = Scenario(graph, FAMILY, final=2).fails("1/m1").succeeds("2/b")
    assert run.pool["2/c"] == "blocked"
    run.triggers("1/m1", flow=ALONE).succeeds("1/m1")
    assert run.pool["2/c"] == "waiting"
    assert run.succeeds("1/m2").pool["2/c"] == "running"


def test_a_member_that_is_not_there_keeps_a_family_from_being_whole():
    family = "[[FAM]]\n[[m1, m2, m3]]\n    inherit = FAM\n"
    graph = "P1 = y => m1 & m2\nP2 = m3\nP1 = (FAM[-P1]:succeed-all | x) & z => c"
    run = Scenario(graph, family, final=3).succeeds("3/z")
    run.triggers("2/m1", flow=ALONE).triggers("2/m2", flow=ALONE)
    run.succeeds("2/m1").succeeds("2/m2")
    assert run.pool["3/c"] == "waiting"


def test_what_a_new_flow_needs_of_before_the_start_is_not_taken_there_either():
    """As in the first flow: nobody waits for what can happen in no flow."""
    run = Scenario("b[-P1]:fail => a\na & c => d\nb", final=1)
    run.runs_to_the_end()
    assert run.completed
    run.reflows("1/c").runs_to_the_end()
    assert run.completed
    assert (run.key("1/a"), 2) in run.verdicts_by_flow


def test_a_run_from_some_tasks_knows_what_lies_outside_the_graph():
    graph = compile_graph("b[-P1]:fail => a\na & c => d\nb", final=1)
    pool = new_pool(graph)
    step(graph, pool, RunStarted(Instant(0.0), tasks=((Point(1), "c"),)))
    outcome = step(graph, pool, JobEnded((Point(1), "c"), 1, JobEnd.SUCCEEDED, Instant(1.0)))
    assert not pool.tasks
    assert pool.run.status == "completed", outcome.effects
