"""Parents at a fixed point (SEMANTICS §4.6; SoD, "Absolute dependence")."""

import pytest

from tests.kit.scenario import Scenario
from tidewheel.core.sched.events import FlowChoice


@pytest.mark.req("R001-7", "R001-2")
def test_every_child_runs_after_the_absolute_parent_out_to_the_runahead_limit():
    run = Scenario("R1 = start\nP1 = start[^] => foo", final=9)
    assert run.pool == {"1/start": "running"}
    run.succeeds("1/start")
    assert run.submitted == ["1/start", "1/foo", "2/foo", "3/foo", "4/foo", "5/foo"]
    assert run.pool["6/foo"] == "runahead"
    assert run.runs_to_the_end().submitted[-1] == "9/foo"


@pytest.mark.req("R001-8")
def test_an_absolute_parent_at_a_later_point_starts_its_child_at_the_first():
    run = Scenario("R1/2 = start\nP1 = start[2] => foo", final=4).succeeds("2/start")
    assert run.submitted == ["2/start", "1/foo", "2/foo", "3/foo", "4/foo"]


def test_not_even_the_first_child_appears_before_its_dependence_is_satisfied():
    assert Scenario("R1 = start\nP1 = start[^] => foo", final=3).pool == {"1/start": "running"}


def test_children_that_need_other_parents_too_are_spawned_by_those():
    run = Scenario("R1 = start\nP1 = start[^] & bar => foo", final=2).succeeds("1/start")
    assert run.pool == {"1/bar": "running", "2/bar": "running"}
    assert run.succeeds("2/bar").pool == {"1/bar": "running", "2/foo": "running"}


def test_a_waiting_child_hears_of_the_absolute_parent():
    run = Scenario("R1 = start\nP1 = start[^] & bar => foo", final=2).succeeds("1/bar", "2/bar")
    assert run.pool == {"1/start": "running", "1/foo": "waiting", "2/foo": "waiting"}
    assert run.succeeds("1/start").submitted[-2:] == ["1/foo", "2/foo"]


def test_a_blocked_task_is_removed_by_a_suicide_arrow_that_holds_already():
    graph = "R1 = start:fail => mail\nP1 = start[^]:out => foo\nP1 = bar => !foo"
    run = Scenario(graph, _OUT, final=4).succeeds("1/bar", "2/bar")
    run.fails("1/start").succeeds("1/mail")
    assert run.pool["3/foo"] == "blocked"
    assert "2/foo" not in run.pool
    run.succeeds("3/bar")
    assert "3/foo" not in run.pool


def test_a_lost_absolute_parent_blocks_its_child_once_at_the_first_point():
    run = Scenario("R1 = start:fail => mail\nP1 = start[^]:out => foo", _OUT, final=4)
    run.fails("1/start").succeeds("1/mail")
    assert run.verdicts["1/foo"] == "lost"
    assert run.pool == {"2/foo": "blocked"}
    assert run.stalled
    # Nothing vanishes without a word: without that one the next is seen to be blocked.
    assert run.removes("2/foo").pool == {"3/foo": "blocked"}
    assert run.removes("3/foo").removes("4/foo").completed
    run = Scenario("R1/2 = start:fail => mail\nP1 = start[2]:out => foo", _OUT, final=4)
    run.fails("2/start").succeeds("2/mail")
    assert run.pool == {"1/foo": "blocked"}
    assert run.stalled


_OUT = "[[start]]\n[[[outputs]]]\nout = out"


def test_children_of_what_an_absolute_branch_did_not_take_are_pruned_later_too():
    graph = "R1 = start\nP1 = start[^]:fail => foo\nP1 = foo & bar => baz"
    run = Scenario(graph, final=8).runs_to_the_end()
    assert run.completed
    assert "8/bar" in run.submitted
    assert not [one for one in run.submitted if one.endswith(("foo", "baz"))]


@pytest.mark.req("R001-10")
def test_triggering_a_finished_absolute_parent_with_reflow_starts_the_chain_again():
    run = Scenario("R1 = start\nP1 = start[^] => foo", final=3).runs_to_the_end()
    before = len(run.submitted)
    run.reflows("1/start").runs_to_the_end()
    assert run.submitted[before:] == ["1/start", "1/foo", "2/foo", "3/foo"]


@pytest.mark.req("R001-10")
def test_the_chain_can_start_again_at_a_later_point():
    run = Scenario("R1 = start\nP1 = start[^] => foo", final=4).runs_to_the_end()
    before = len(run.submitted)
    run.triggers("1/start", flow=FlowChoice.NEW, chains_from=3).runs_to_the_end()
    assert run.submitted[before:] == ["1/start", "3/foo", "4/foo"]


def test_an_absolute_parent_reaches_back_to_points_long_gone_only_where_nothing_ran():
    graph = "R1/8 = start\nP1 = a\nP1 = start[8] | a:fail => foo"
    run = Scenario(graph, final=8).runs_to_the_end(fails=("2/a",))
    assert run.submitted.count("2/foo") == 1
    assert sorted(one for one in run.submitted if one.endswith("foo")) == [
        f"{point}/foo" for point in range(1, 9)
    ]


def test_a_second_arrow_from_the_same_absolute_parent_does_not_move_the_chain_forward():
    graph = "P1 = c\nR2/^/P1 = c[^] => b\nR1/$ = c[^] => b"
    run = Scenario(graph, final=4).runs_to_the_end()
    assert [one for one in run.submitted if one.endswith("b")] == ["1/b", "2/b", "4/b"]


@pytest.mark.req("R001-8")
def test_an_absolute_parent_satisfies_only_the_arrows_that_hold_at_the_point() -> None:
    run = Scenario("R1/$ = b[^] => c\nP2 = a & b => c\nP1 = b[^] => c", final=3)
    assert "1/c" not in run.succeeds("1/b").submitted
    assert "1/c" in run.succeeds("1/a").submitted


@pytest.mark.parametrize("needed", ["mid", "mid[-P1]", "foo[-P2]"])
def test_also_later_descendants_of_what_an_absolute_branch_did_not_take_are_pruned(needed: str):
    graph = f"R1 = start\nP1 = start[^]:fail => foo => mid\nP1 = {needed} & bar => baz"
    run = Scenario(graph, final=9).runs_to_the_end()
    assert run.completed
    assert run.pool == {}


def test_what_follows_from_two_dead_absolute_parents_is_known_at_points_not_reached_yet():
    graph = """
        R1 = c
        R1 = d:fail => mail
        P1 = c[^]:fail => e
        P1 = e & d[^] => f
        P1 = e:fail | d[^] => g
    """
    run = Scenario(graph, final=3).succeeds("1/c").fails("1/d").succeeds("1/mail")
    assert run.verdicts["1/f"] == "not taken"
    assert run.pool["2/g"] == "blocked"
    assert run.verdicts["1/g"] == "lost"


def test_a_parent_that_nothing_is_known_of_yet_is_dead_by_what_it_would_need():
    graph = "R1 = s\nP1 = z\nP1 = s[^]:fail => b\nP1 = b[-P1] | b => a"
    run = Scenario(graph, final=4, scheduling="runahead limit = P1").succeeds("1/s")
    assert run.verdicts["1/b"] == "not taken"
    assert run.verdicts["2/a"] == "not taken"
    run.runs_to_the_end()
    assert [one for one in run.submitted if one.endswith(("a", "b"))] == ["1/a"]
    assert {one: word for one, word in run.verdicts.items() if one.endswith("a")} == {
        f"{point}/a": "not taken" for point in (2, 3, 4)
    }
    assert run.completed


@pytest.mark.req("R001-15", "P7", "P14")
def test_a_verdict_stands_when_a_later_child_comes_and_the_reason_is_forgotten():
    graph = """
        +P1/P2 = b[-P1] => b
        P1 = a | (a:start & a[^]:fail) => b
        P1 = a[^] => !b
    """
    run = Scenario(graph, final=6, scheduling="runahead limit = P0")
    run.succeeds("1/a", "2/a", "3/a")
    assert run.verdicts["3/b"] == "removed by suicide"
    assert run.verdicts["4/b"] == "not taken"
    run.fails("4/a")
    assert run.pool["5/a"] == "running"
    assert run.verdicts["4/b"] == "not taken"
    assert not run.notices("lost")


@pytest.mark.req("R001-15", "P7", "P14")
def test_what_was_pruned_long_ago_stays_pruned_when_an_absolute_parent_ends():
    graph = "P1 = c[3]:finish & a:x? => b\nP1 = c"
    runtime = "[[a]]\n[[[outputs]]]\nx = x"
    run = Scenario(graph, runtime, final=3, scheduling="runahead limit = P0")
    run.succeeds("1/a", "1/c", "2/a", "2/c")
    assert run.verdicts == {"1/b": "not taken", "2/b": "not taken"}
    run.succeeds("3/c")
    assert run.pool == {"3/a": "running"}
    assert run.succeeds("3/a").completed


@pytest.mark.req("R001-15", "P7", "P14")
def test_what_depends_through_several_points_on_a_branch_not_taken_is_pruned_at_every_point():
    graph = """
        R1 = x
        P1 = x[^]:fail => y
        P1 = y[-P1] => b
        P1 = b[-P1] & z => c
    """
    run = Scenario(graph, final=8, scheduling="runahead limit = P1").runs_to_the_end()
    assert run.completed
    assert run.pool == {}
    assert {one for one in run.submitted if one.endswith("c")} == {"1/c", "2/c"}


@pytest.mark.req("P14")
def test_what_a_lost_absolute_parent_would_block_shows_not_where_it_is_not_taken_anyway():
    graph = """
        R1 = c
        R1 = d:fail => mail
        P1 = c[^]:fail => e
        P1 = e[-P1] & d[^] => f
    """
    run = Scenario(graph, final=30).succeeds("1/c").fails("1/d").succeeds("1/mail")
    assert not run.notices("blocked")
    assert run.completed


@pytest.mark.req("R001-19")
def test_what_an_unsettled_absolute_parent_concerns_is_remembered_until_it_ends():
    graph = "P1 = a\nR1/6 = x\nP1 = (x[6]:fail | a[-P1]:fail) => b\nP1 = z"
    run = Scenario(graph, final=9, scheduling="runahead limit = P1")
    while "6/x" not in run.pool or len(run.pool) > 3:
        ended = next(one for one in run.pool if one != "6/x")
        run.succeeds(ended)
    known = {point for point in run.core.memory if point < 4}
    assert known == {1, 2, 3}
    run.runs_to_the_end()
    assert run.completed
    assert min(run.core.memory) > 3


def test_an_atom_that_comes_true_leaves_the_head_of_a_chain_alone():
    run = Scenario(
        "R1 = a\nP1 = a[^] | b[-P2] => c\nP1 = b", scheduling="runahead limit = P0", final=8
    )
    run.succeeds("1/a")
    assert [one for one, word in run.pool.items() if word == "runahead"] == ["2/c", "2/b"]


def test_a_lost_parent_blocks_its_child_once_whatever_else_is_there():
    run = Scenario("R1 = cold:fail => mail\nP1 = cold[^] => model\nP1 = obs", final=8)
    run.fails("1/cold")
    assert [one for one, word in run.pool.items() if word == "blocked"] == ["2/model"]
    run.removes("2/model")
    assert [one for one, word in run.pool.items() if word == "blocked"] == ["3/model"]


def test_what_is_dead_is_known_at_a_fixed_point_ahead():
    run = Scenario("R1 = t3 & t0[4]:fail => t1\nP1 = t3[^]:fail => t0", final=4)
    assert run.succeeds("1/t3").completed


def test_a_parent_run_again_in_a_new_flow_starts_the_chain_where_its_child_is_parentless():
    run = Scenario("R1 = s\n+P1/P2 = s[^] => foo\nP2 = foo", final=4).runs_to_the_end()
    run.reflows("1/s").succeeds("1/s").runs_to_the_end()
    assert sorted(run.submitted[-4:]) == ["1/foo", "2/foo", "3/foo", "4/foo"]


def test_a_chain_that_begins_again_at_an_earlier_point_has_one_instance_beyond_the_limit():
    graph = "R1/1 = s\n+P2/P4 = c\nP3 = s[^] => c\nP1 = slow"
    run = Scenario(graph, scheduling="runahead limit = P0", final=9)
    assert run.pool["3/c"] == "runahead"
    run.succeeds("1/s")
    assert [one for one in run.pool if one.endswith("/c")] == ["1/c", "3/c"]
    run.runs_to_the_end()
    assert sorted(one for one in run.submitted if one.endswith("/c")) == [
        "1/c",
        "3/c",
        "4/c",
        "7/c",
    ]


def test_the_head_of_a_chain_that_is_held_stays_where_it_is():
    graph = "R1/1 = s\n+P2/P4 = c\nP3 = s[^] => c\nP1 = slow"
    run = Scenario(graph, scheduling="runahead limit = P0", final=9)
    run.holds("3/c").succeeds("1/s")
    assert run.pool["3/c"] == "held"
    run.releases("3/c").runs_to_the_end()
    assert sorted(one for one in run.submitted if one.endswith("/c")) == [
        "1/c",
        "3/c",
        "4/c",
        "7/c",
    ]
