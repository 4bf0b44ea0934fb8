"""What can no longer happen (SEMANTICS §5; SoD, "Spawning on task completion")."""

import pytest

from tests.kit.scenario import Scenario, compile_flow

TWO = "[[A]]\n[[[outputs]]]\nout1 = one\nout2 = two"


@pytest.mark.req("R001-14")
def test_a_child_of_a_handled_failure_is_gone_when_its_other_parent_has_finished():
    run = Scenario("A:fail => X\nA & B => C").fails("1/A").succeeds("1/B", "1/X")
    assert run.submitted == ["1/A", "1/B", "1/X"]
    assert run.pool == {}
    assert run.completed
    assert run.verdicts == {"1/C": "lost"}


@pytest.mark.req("R001-15")
def test_only_the_taken_path_runs_and_nothing_is_left_behind():
    run = Scenario("A:out1 => B\nA:out2 => C", TWO).makes("1/A", "out1").succeeds("1/A", "1/B")
    assert run.submitted == ["1/A", "1/B"]
    assert run.completed
    assert run.verdicts == {"1/C": "not taken"}
    assert run.notices("lost") == []


@pytest.mark.req("R001-16")
@pytest.mark.parametrize("outputs", [("out1",), ("out2",), ("out1", "out2")])
def test_paths_that_meet_again_run_their_meeting_point_once(outputs):
    run = Scenario("A:out1 => post1\nA:out2 => post2\npost1 | post2 => plot", TWO)
    run.makes("1/A", *outputs).runs_to_the_end()
    assert run.submitted.count("1/plot") == 1
    assert run.pool == {}
    assert run.completed


@pytest.mark.req("R001-17")
def test_a_child_of_both_is_gone_once_both_have_finished():
    run = Scenario("A:fail => B\nA => C\nX => C").succeeds("1/X").fails("1/A").succeeds("1/B")
    assert run.submitted == ["1/A", "1/X", "1/B"]
    assert run.completed


def test_nobody_needs_suicide_triggers_for_branches():
    run = Scenario("A:fail => B\nA => C").succeeds("1/A")
    assert run.pool == {"1/C": "running"}
    assert run.verdicts == {"1/B": "not taken"}


@pytest.mark.req("R001-25")
def test_a_handled_failure_across_points_is_seen_and_does_not_end_the_forecast_silently():
    run = Scenario("obs & model[-P1] => model\nmodel:fail => mail", final=5)
    run.runs_to_the_end(fails=("2/model",))
    assert run.pool["3/model"] == "blocked"
    assert run.notices("blocked") == ["3/model is blocked: it needs 2/model:succeeded"]
    assert run.stalled
    assert run.causes == ["3/model"]


def test_pruning_across_points_can_be_asked_for():
    graph = "obs & model[-P1] => model\nmodel:fail => mail"
    run = Scenario(graph, final=4, prune_across_points=True).runs_to_the_end(fails=("2/model",))
    assert run.completed
    assert run.verdicts["4/model"] == "lost"


def test_triggering_the_cause_brings_back_what_was_blocked():
    run = Scenario("obs & model[-P1] => model\nmodel:fail => mail", final=4)
    run.runs_to_the_end(fails=("2/model",)).triggers("2/model")
    assert run.flows["2/model"] == [1]
    run.runs_to_the_end()
    assert run.completed
    assert run.submitted.count("4/model") == 1
    assert run.submitted.count("3/obs") == 1


def test_triggering_the_cause_brings_back_what_was_lost_and_runs_nothing_twice():
    run = Scenario("x:fail => alert\nx => B\nA & B => C").succeeds("1/A").fails("1/x")
    run.succeeds("1/alert")
    assert run.completed
    assert run.verdicts == {"1/B": "lost", "1/C": "lost"}
    run.triggers("1/x").runs_to_the_end()
    assert sorted(run.submitted) == ["1/A", "1/B", "1/C", "1/alert", "1/x", "1/x"]
    assert run.verdicts == {}


def test_an_output_set_by_hand_brings_back_what_was_lost():
    run = Scenario("x:fail => alert\nx => B\nA & B => C").succeeds("1/A").fails("1/x")
    run.sets("1/x", "succeeded").runs_to_the_end()
    assert run.submitted.count("1/C") == 1


def test_an_output_of_an_incomplete_task_stays_open():
    run = Scenario("x => B\nA & B => C").succeeds("1/A").fails("1/x")
    assert run.pool == {"1/x": "failed", "1/C": "waiting"}
    assert run.verdicts == {}


def test_needing_what_lies_beyond_the_final_point_is_judged_at_the_start():
    run = Scenario("foo[+P1] & bar => baz\nfoo\nbaz & bar => last", final=3)
    assert run.verdicts == {"3/baz": "not taken", "3/last": "not taken"}
    assert run.why("3/baz")[0].text == (
        "3/baz will not run: it needs 4/foo:succeeded; 4/foo is beyond the final point"
    )
    run.runs_to_the_end()
    assert run.completed
    assert "2/last" in run.submitted


def test_a_parent_that_is_off_its_sequence_blocks():
    run = Scenario("P1 = a[-P1] & c => b\nP2 = a\nP1 = c", final=3).runs_to_the_end()
    assert run.pool == {"3/b": "blocked"}
    assert "2/b" in run.submitted


def test_a_later_death_can_turn_a_lost_task_into_one_that_was_not_taken():
    run = Scenario("a:fail => x\na => c\nb:fail => c\nc => d")
    run.fails("1/a")
    assert run.verdicts["1/d"] == "lost"
    run.succeeds("1/b")
    assert run.verdicts["1/c"] == "not taken"
    assert run.verdicts["1/d"] == "not taken"


def test_a_task_triggered_by_hand_is_not_pruned():
    run = Scenario("a:fail => x\na => c => d").triggers("1/c").fails("1/a").succeeds("1/c")
    assert run.submitted[-1] == "1/d"


@pytest.mark.req("R001-28")
def test_a_handled_failure_that_leads_nowhere_completes_with_a_warning():
    run = Scenario("A:fail => email_me\nA => B => C => archive").fails("1/A")
    run.succeeds("1/email_me")
    assert run.completed
    assert run.notices("lost")[0] == (
        "1/B will not run: it needs 1/A:succeeded; 1/A failed, handled by 1/email_me"
    )
    assert list(run.verdicts) == ["1/B", "1/C", "1/archive"]


ENDLESS = """
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    runahead limit = P1
    [[graph]]
        R1 = q:fail => y
        P1 = y[-P1] => y
        P1 = y & z => w
[runtime]
    [[q]]
    [[y]]
    [[z]]
    [[w]]
"""


@pytest.mark.req("R001-15", "P7")
def test_a_branch_not_taken_that_has_no_end_is_known_where_the_run_is():
    run = Scenario(compile_flow(ENDLESS)).succeeds("1/q", "1/z", "2/z", "3/z")
    assert {run.verdicts[f"{point}/{name}"] for point in (2, 3) for name in "yw"} == {
        "not taken"
    }
    assert not [one for one in run.pool if one.endswith(("y", "w"))]


@pytest.mark.slow
@pytest.mark.req("R001-15", "P7")
def test_a_branch_not_taken_that_has_no_end_does_not_keep_a_run_busy_for_ever():
    run = Scenario(compile_flow(ENDLESS)).succeeds("1/q")
    assert run.verdicts["2/y"] == "not taken"
    for point in range(1, 121):
        run.succeeds(f"{point}/z")
        if point % 50 == 0:
            run.restarts()
    assert not [one for one in run.pool if one.endswith(("y", "w"))]
    assert {"120/y", "120/w"} <= run.verdicts.keys()


@pytest.mark.req("R001-15", "P7")
def test_what_was_blocked_waits_again_when_what_was_lost_has_run_after_all():
    graph = "a:fail => mail\na & b => c\nc[-P1] & d => e"
    run = Scenario(graph, final=2).succeeds("1/b", "2/d").fails("1/a").succeeds("1/mail")
    assert (run.pool["2/e"], run.verdicts["1/c"]) == ("blocked", "lost")
    run.triggers("1/a").succeeds("1/a")
    assert (run.pool["1/c"], run.pool["2/e"]) == ("running", "waiting")
    assert run.succeeds("1/c").pool["2/e"] == "running"


@pytest.mark.req("R001-15", "P7")
def test_a_branch_that_is_taken_after_all_runs_whatever_else_it_needs_before_the_start():
    outputs = "[[a]]\n[[[outputs]]]\nx = x"
    run = Scenario("z[-P1] & a:x? => c\na\nz", outputs, final=2)
    assert run.succeeds("1/a").verdicts["1/c"] == "not taken"
    assert run.sets("1/a", "x").pool["1/c"] == "running"
    assert "1/c" not in run.verdicts


@pytest.mark.req("R001-15", "P7")
def test_a_branch_not_taken_is_followed_to_its_end_within_a_point_however_long():
    names = [f"t{number}" for number in range(140)]
    run = Scenario(f"a:fail => {' => '.join(names)}\nt139 & b => c").succeeds("1/a", "1/b")
    assert run.completed
    assert run.verdicts["1/c"] == "not taken"


def test_what_a_long_branch_of_one_point_has_lost_blocks_the_next_point():
    names = [f"t{number}" for number in range(140)]
    graph = f"a:fail => m\na => {' => '.join(names)}\nt139[-P1] & b => c"
    run = Scenario(graph, final=2).fails("1/a")
    assert run.verdicts["1/t139"] == "lost"
    assert run.pool["2/c"] == "blocked"
