"""Corners of the scheduling core that the specification's examples do not turn."""

from itertools import islice

import pytest

from tests.kit.scenario import Scenario, compile_flow, compile_graph
from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched.dependency_index import POINTS_KNOWN_MAX
from tidewheel.core.sched.events import (
    FlowChoice,
    JobsKilled,
    JobsPolled,
    OutputsSet,
    PrerequisitesSet,
    RunContinued,
    RunReloaded,
    RunStopped,
    StopMode,
)
from tidewheel.core.sched.explain import preview
from tidewheel.core.sched.pool import GroupCount, PointCounter
from tidewheel.core.sched.task_state import AtomValue

FAMILY = "[[F]]\n[[m1, m2]]\ninherit = F"


def test_the_earliest_point_is_known_after_many_points_came_and_went():
    counter = PointCounter()
    for point in range(200):
        counter.add(Point(point))
    for point in range(199):
        counter.remove(Point(point))
    assert counter.earliest() == 199
    counter.remove(Point(199))
    assert counter.earliest() is None


def test_a_family_is_worth_its_least_or_its_greatest_member():
    count = GroupCount(2)
    assert count.value(every=True) is AtomValue.OPEN
    count.put("a", AtomValue.LOST)
    assert (count.value(every=True), count.value(every=False)) == (
        AtomValue.LOST,
        AtomValue.OPEN,
    )
    count.put("b", AtomValue.NOT_TAKEN)
    assert (count.value(every=True), count.value(every=False)) == (
        AtomValue.NOT_TAKEN,
        AtomValue.LOST,
    )
    count.put("a", AtomValue.TRUE)
    assert count.value(every=False) is AtomValue.TRUE


def test_a_sequence_does_not_remember_points_without_end():
    run = Scenario("a", final=9)
    sequence = run.core.plan.sequences[0]
    for point in range(POINTS_KNOWN_MAX + 2):
        sequence.has(Point(point))
        sequence.next_after(Point(point))
    assert sequence.has(Point(3))
    assert not sequence.has(Point(10))
    assert sequence.next_after(Point(3)) == Point(4)
    assert sequence.next_after(Point(9)) is None


def test_points_as_text_are_not_kept_without_end():
    texts = Scenario("a", final=9).core.plan.texts
    for point in range(POINTS_KNOWN_MAX + 2):
        assert texts[Point(point)] == str(point)
    assert len(texts) < POINTS_KNOWN_MAX
    assert texts[Point(3)] == "3"


def test_a_chain_that_never_finds_a_point_gives_up():
    graph = "R1 = a\nR1/^ = b => a\nP1!(P2) = c => a\nP2 = c => a"
    run = Scenario(graph, final=20_000)
    assert "1/a" not in run.pool


def test_an_offset_to_a_time_of_day_is_reached_for():
    text = """
    [scheduling]
        initial cycle point = 2030-01-01T00Z
        final cycle point = 2030-01-03T00Z
        [[graph]]
            T00 = a
            T06 = a[T00] => b
            T12 = b[-PT6H] => c
    """
    run = Scenario(compile_flow(text)).runs_to_the_end()
    assert "20300101T0600Z/b" in run.submitted


def test_set_with_wait_flows_on_when_a_flow_arrives():
    run = Scenario("a => b => c")
    run.happens(OutputsSet(task=(1, "b"), at=0.0, wait=True, flow=FlowChoice.NEW))
    assert run.pool == {"1/a": "running"}
    run.succeeds("1/a")
    assert run.submitted == ["1/a", "1/c"]


def test_prerequisites_can_be_set_into_a_new_flow_or_a_named_one():
    run = Scenario("a & b => c").succeeds("1/a")
    run.happens(PrerequisitesSet(task=(1, "c"), at=0.0, flow=FlowChoice.NEW))
    assert run.flows["1/c"] == [1, 2]
    run.succeeds("1/b").succeeds("1/c")
    run.happens(PrerequisitesSet(task=(1, "c"), at=0.0, flow=FlowChoice.NONE))
    assert run.flows == {"1/c": []}


def test_setting_prerequisites_of_an_active_task_changes_nothing():
    run = Scenario("a").sets_prerequisites("1/a", everything=True)
    assert run.submitted == ["1/a"]


def test_kill_and_poll_pass_over_what_is_not_active():
    run = Scenario("a => b\nb & c => d").succeeds("1/a").fails("1/b")
    keys = ((1, "b"), (1, "d"))
    before = len(run.effects)
    run.happens(JobsKilled(keys, 0.0)).happens(JobsPolled(keys, 0.0))
    assert len(run.effects) == before


def test_a_stopped_run_stays_stopped_until_it_is_continued():
    run = Scenario("a => b").happens(RunStopped(StopMode.CLEAN, 0.0)).succeeds("1/a")
    assert run.holds("1/b").status == "stopped"
    run.releases("1/b").happens(RunContinued(0.0))
    assert run.pool == {"1/b": "running"}


def test_triggering_what_waits_for_an_xtrigger_ends_the_waiting():
    run = Scenario("@x => a", scheduling="[[xtriggers]]\nx = echo(1)").triggers("1/a")
    assert run.pool == {"1/a": "running"}
    assert run.xtrigger("x", "1/a").submitted == ["1/a"]


def test_removing_what_waits_for_an_xtrigger_ends_the_checking():
    run = Scenario("@x => a", scheduling="[[xtriggers]]\nx = echo(1)").removes("1/a")
    assert run.completed


def test_a_suicide_of_a_task_that_is_off_its_sequence_is_nothing():
    run = Scenario("P1 = a => !b\nR1/2 = b", final=2).succeeds("1/a")
    assert run.pool["2/b"] == "running"
    assert run.verdicts == {}


def test_a_preview_shows_what_would_come_back_and_leaves_active_tasks_alone():
    run = Scenario("a => b\nslow => late")
    seen = preview(run.core, OutputsSet(task=(1, "a"), at=0.0))
    assert [run.id_of(one.task) for one in seen.runs] == ["1/b"]
    assert not seen.cut


def test_a_reload_of_the_same_graph_changes_nothing():
    run = Scenario("a & x => b\na:fail => c", final=3).succeeds("1/a", "2/a")
    before = run.pool
    run.happens(RunReloaded(compile_graph("a & x => b\na:fail => c", final=3), 0.0))
    assert run.pool == before
    assert run.runs_to_the_end().completed


def test_a_family_of_which_a_member_is_off_its_sequence_is_lost():
    graph = "P1 = F[-P1]:succeed-all & x => y\nP1 = m1\nP2 = m2"
    run = Scenario(graph, FAMILY, final=3).runs_to_the_end()
    assert run.pool == {"3/y": "blocked"}
    assert "m2" in run.why("3/y")[0].text or "F" in run.why("3/y")[0].text


def test_a_failure_of_an_absolute_parent_that_did_not_happen_removes_nothing():
    xtriggers = "[[xtriggers]]\nx = echo(1)"
    graph = "R1 = start\nP1 = start[^]:fail => !a\nP1 = @x => a"
    run = Scenario(graph, scheduling=xtriggers, final=2).succeeds("1/start")
    assert run.pool == {"1/a": "pending", "2/a": "pending"}


def test_a_chain_that_would_begin_beyond_the_final_point_does_not():
    run = Scenario("R1 = start:fail => mail\nP1 = start[^] => foo", final=2).runs_to_the_end()
    for end in (run.succeeds, run.fails):
        run.triggers("1/start", flow=FlowChoice.NEW, chains_from=9)
        end("1/start")
        run.runs_to_the_end()
    assert run.submitted.count("1/foo") == 1


def test_a_chain_gives_up_after_very_many_points_that_are_not_its_own():
    graph = "P1 = a\nP2 = c[-P1] => a\n+P1/P2 = c[-P1] => a\nP1 = c"
    run = Scenario(graph, final=20_000)
    assert "1/a" in run.pool


def test_one_family_may_lead_to_several_tasks():
    run = Scenario("F:succeed-all => x\nF:succeed-all => y", FAMILY).succeeds("1/m1", "1/m2")
    assert run.pool == {"1/x": "running", "1/y": "running"}


def test_a_suicide_arrow_at_another_point_does_not_concern_a_failed_task():
    run = Scenario("P1 = b\nR1/2 = a => !b", final=2).fails("1/b")
    assert run.pool["1/b"] == "failed"


def test_what_was_removed_can_be_triggered_under_cylcs_rules():
    runtime = "[[a]]\n[[b]]\n[[c]]"
    run = Scenario("a & c => b", runtime, policy="cylc8").succeeds("1/a").removes("1/b")
    assert run.triggers("1/b").pool["1/b"] == "running"


def test_why_passes_over_arrows_that_are_true():
    run = Scenario("a => c\nb => c").succeeds("1/a")
    assert [reason.text for reason in run.why("1/c")] == [
        "1/c needs 1/b:succeeded; 1/b is active"
    ]


def test_children_before_the_start_point_are_not_spawned():
    run = Scenario("a[+P1] => b\na", final=4, start=3).succeeds("3/a")
    assert "2/b" not in run.submitted


def test_a_member_that_runs_alone_is_not_counted():
    run = Scenario("F:succeed-all => x", FAMILY).succeeds("1/m1").triggers("1/m1")
    assert run.succeeds("1/m1").pool == {"1/m2": "running"}


def test_an_absolute_parent_before_a_warm_start_counts_as_done():
    run = Scenario("R1 = start\nP1 = start[^] => foo", final=5, start=3)
    assert run.submitted == ["3/foo", "4/foo", "5/foo"]


def test_a_task_with_parents_asks_for_its_xtriggers_when_it_comes():
    xtriggers = "[[xtriggers]]\nx = echo(1)"
    graph = "P1 = a => b\nR1/2 = @x => b"
    run = Scenario(graph, scheduling=xtriggers, final=2).succeeds("1/a", "2/a")
    assert run.pool == {"1/b": "running", "2/b": "pending"}
    assert run.checked == [("2/b", "x")]


def test_a_run_that_stopped_at_its_stop_point_stays_stopped():
    run = Scenario("a", final=4, scheduling="stop after cycle point = 2").runs_to_the_end()
    assert run.status == "stopped"
    assert run.holds("3/a").status == "stopped"


def test_a_run_without_a_final_point_stalls_like_any_other():
    text = """
    [scheduling]
        cycling mode = integer
        initial cycle point = 1
        runahead limit = P0
        [[graph]]
            P1 = a & b => c
    """
    run = Scenario(compile_flow(text)).succeeds("1/a").fails("1/b")
    assert run.stalled
    assert run.causes == ["1/b"]


def test_a_flow_that_meets_an_active_member_counts_what_it_has_made():
    run = Scenario("F:start-all & x => y\nz => m1\nF", FAMILY).succeeds("1/z")
    run.reflows("1/z").succeeds("1/z")
    assert run.flows["1/m1"] == [1, 2]
    run.triggers("1/m2", "1/x", flow=2).runs_to_the_end()
    assert run.completed


def test_a_preview_passes_over_timers_and_checks():
    xtriggers = "[[xtriggers]]\nx = echo(1)"
    run = Scenario("a => b\n@x & b => c", scheduling=xtriggers)
    seen = preview(run.core, OutputsSet(task=(1, "a"), at=0.0))
    assert [run.id_of(one.task) for one in seen.runs] == ["1/b"]
    assert [run.id_of(key) for key in seen.waits] == ["1/c"]


def test_a_later_final_point_leaves_chains_alone_that_have_not_ended():
    run = Scenario("R1 = a\nP1 = b", final=9)
    run.happens(RunReloaded(compile_graph("R1 = a\nP1 = b", final=12), 0.0))
    assert run.core.chains == {("b", 1): 6}
    assert len(run.runs_to_the_end().submitted) == 13


@pytest.mark.parametrize("offset", ["-P1M+P30D", "P1M-P30D", "-P1Y+P365D", "-P1M", "P1M"])
def test_a_parent_lies_nowhere_beyond_what_was_measured_of_the_graph(offset):
    graph = compile_flow(
        "[scheduler]\nUTC mode = True\n"
        "[scheduling]\ninitial cycle point = 2020-01-01\n"
        f"[[graph]]\nP1D = a & a[{offset}] => b\n"
        "[runtime]\n[[a, b]]\n"
    )
    plan = Scenario(graph).core.plan
    node = plan.nodes["b"]
    points = list(islice(node.sequences[0].sequence.points(plan.initial, None), 800))
    distances = [
        leaf.parent_point(point, plan.initial) - point
        for point in points
        for leaf, _ in node.leaves_at(point)
    ]
    assert max(distances) <= plan.reach_ahead
    assert -min(distances) <= plan.reach_back
    assert plan.leads_forward <= (max(distances) <= 0)


def test_outputs_set_in_no_flow_of_a_task_that_is_not_there_reach_a_pooled_child():
    run = Scenario("x => a\na & b => c").succeeds("b")
    run.happens(OutputsSet(task=(1, "a"), at=0.0, outputs=("succeeded",), flow=FlowChoice.NONE))
    assert run.pool == {"1/x": "running", "1/c": "running"}
