"""Failures, stalls, completion and stopping (SEMANTICS §3, §9; SoD, "Stall and shutdown")."""

import pytest

from tests.kit.scenario import Scenario
from tidewheel.core.sched.events import (
    RunContinued,
    RunPaused,
    RunResumed,
    RunStopped,
    StopMode,
    StopPointSet,
    StopTaskSet,
)


@pytest.mark.req("R001-20")
def test_an_unhandled_failed_task_stays_in_the_pool():
    run = Scenario("A => B").fails("1/A")
    assert run.pool == {"1/A": "failed"}
    assert run.stalled


@pytest.mark.req("R001-21")
def test_a_handled_failed_task_leaves_at_once():
    assert Scenario("A:fail => B").fails("1/A").pool == {"1/B": "running"}


@pytest.mark.req("R001-22")
def test_triggering_a_failed_task_again_needs_no_reflow():
    run = Scenario("A & B => C").fails("1/A").succeeds("1/B")
    assert run.pool == {"1/A": "failed", "1/C": "waiting"}
    run.triggers("1/A").succeeds("1/A").succeeds("1/C")
    assert run.submitted == ["1/A", "1/B", "1/A", "1/C"]
    assert [one.submit for one in run.submissions] == [1, 1, 2, 1]
    assert run.completed


@pytest.mark.req("R001-23")
def test_a_stall_upstream_is_resolved_by_triggering_the_failed_task():
    run = Scenario("x => B\nA & B => C").fails("1/x").succeeds("1/A")
    assert run.stalled
    assert run.causes == ["1/x"]
    run.triggers("1/x").runs_to_the_end()
    assert run.submitted[-2:] == ["1/B", "1/C"]
    assert run.completed


@pytest.mark.req("R001-24")
def test_a_stall_further_upstream_too():
    run = Scenario("x => y => B\nA & B => C").fails("1/x").succeeds("1/A")
    assert run.stalled
    assert run.causes == ["1/x"]
    run.triggers("1/x").runs_to_the_end()
    assert run.submitted[-3:] == ["1/y", "1/B", "1/C"]


@pytest.mark.req("R001-26")
def test_a_stall_is_detected_at_once_with_its_root_causes():
    run = Scenario("A => B\nC => D").fails("1/A").succeeds("1/C")
    assert not run.stalled
    run.succeeds("1/D")
    assert run.notices("stalled") == ["stalled: 1/A failed, incomplete"]
    run.timer(None, "stall")
    assert run.status == "stopped"


@pytest.mark.req("R001-27")
def test_complete_and_premature_stall_are_told_apart():
    assert Scenario("A => B").runs_to_the_end().completed
    assert Scenario("A => B").fails("1/A").stalled


def test_an_intervention_ends_a_stall():
    run = Scenario("A => B").fails("1/A").triggers("1/A")
    assert run.status == "running"


def test_a_run_that_completes_without_running_anything_says_so():
    run = Scenario("R1/1 = a", final=2, start=2)
    assert run.completed
    assert run.notices("completed") == [
        "completed without running anything: no task was ready at any point"
    ]


def test_held_tasks_are_waited_for_and_not_called_a_stall():
    run = Scenario("A => B").holds("1/B").succeeds("1/A")
    assert run.status == "waiting for release"
    assert run.releases("1/B").pool == {"1/B": "running"}


def test_held_tasks_beyond_the_stop_point_keep_no_run_from_stopping_there():
    run = Scenario("a[-P1] => a => b", final=3).happens(StopPointSet(1, 0.0))
    run.holds("2/a").runs_to_the_end()
    assert (run.pool, run.status) == ({"2/a": "held"}, "stopped")
    assert run.happens(RunContinued(0.0)).status == "waiting for release"


@pytest.mark.req("R001-29")
def test_stopping_now_keeps_the_pool_and_the_run_carries_on():
    run = Scenario("foo => bar", final=9).happens(RunStopped(StopMode.NOW, 0.0))
    assert run.status == "stopped"
    pool = run.pool
    assert run.restarts().pool == pool
    assert pool["6/foo"] == "runahead"
    run.happens(RunContinued(0.0)).runs_to_the_end()
    assert run.submitted.count("9/bar") == 1


@pytest.mark.req("R001-29")
def test_a_clean_stop_waits_for_active_tasks_and_submits_nothing_more():
    run = Scenario("A => B").happens(RunStopped(StopMode.CLEAN, 0.0))
    assert run.status == "stopping"
    run.succeeds("1/A")
    assert run.status == "stopped"
    assert run.pool == {"1/B": "ready"}
    assert run.restarts().happens(RunContinued(0.0)).pool == {"1/B": "running"}


@pytest.mark.req("R001-29", "R001-31")
def test_a_stop_point_keeps_later_tasks_back_and_why_says_so():
    run = Scenario("foo", final=9).happens(StopPointSet(6, 0.0)).runs_to_the_end()
    assert run.submitted[-1] == "6/foo"
    assert run.status == "stopped"
    assert run.why("7/foo")[0].text == "7/foo is beyond the stop point 6"
    run.restarts().happens(RunContinued(0.0)).runs_to_the_end()
    assert run.submitted[-1] == "9/foo"
    assert run.completed


@pytest.mark.req("R001-29")
def test_stopping_after_a_task():
    run = Scenario("A => B => C").happens(StopTaskSet((1, "B"), 0.0)).succeeds("1/A", "1/B")
    assert run.status == "stopped"
    assert run.pool == {"1/C": "ready"}


@pytest.mark.req("R001-30")
def test_a_run_ends_at_its_final_point_and_goes_on_to_a_later_one():
    graph = "foo[-P1] => foo => bar\nbaz"
    run = Scenario(graph, final=2).runs_to_the_end()
    assert run.completed
    run.reloads(graph, final=4).runs_to_the_end()
    assert run.completed
    assert sorted(run.submitted) == sorted(
        f"{point}/{name}" for point in range(1, 5) for name in ("foo", "bar", "baz")
    )


@pytest.mark.req("R001-30")
def test_a_warm_start_begins_at_a_point():
    run = Scenario("foo[-P1] => foo", final=5, start=4).runs_to_the_end()
    assert run.submitted == ["4/foo", "5/foo"]


def test_a_paused_run_submits_nothing_until_it_is_resumed():
    run = Scenario("A => B & C").happens(RunPaused(0.0)).succeeds("1/A")
    assert run.status == "paused"
    assert run.pool == {"1/B": "ready", "1/C": "ready"}
    assert run.why("1/B")[0].command == "resume"
    assert run.restarts().happens(RunResumed(0.0)).pool == {"1/B": "running", "1/C": "running"}


def test_marked_tasks_are_judged_by_their_required_outputs():
    run = Scenario("A:x => B\nA? => C", "[[A]]\n[[[outputs]]]\nx = x").succeeds("1/A")
    assert run.pool["1/A"] == "succeeded"
    assert run.sets("1/A", "x").pool == {"1/B": "running", "1/C": "running"}


def test_an_optional_failure_completes_a_task():
    run = Scenario("A? => B\nA:fail? => C").fails("1/A")
    assert run.pool == {"1/C": "running"}
    assert run.verdicts == {"1/B": "lost"}


TWO_OUTPUTS = "[[A]]\n[[[outputs]]]\nx = x\ny = y"


def test_success_without_the_output_that_others_wait_for_is_incomplete_and_says_who_waits():
    run = Scenario("A:x => B", TWO_OUTPUTS).succeeds("1/A")
    assert run.stalled
    assert run.pool == {"1/A": "succeeded"}
    sentence = "1/A succeeded without x, which 1/B waits for"
    assert run.notices("incomplete") == [sentence]
    assert run.notices("stalled") == [f"stalled: {sentence}"]
    reason = run.why("1/A")[0]
    assert (reason.text, reason.passes) == (sentence, False)
    assert reason.command == "trigger 1/A, or set 1/A --out x"
    assert run.sets("1/A", "x").pool == {"1/B": "running"}
    assert run.succeeds("1/B").completed


def test_one_of_several_outputs_that_the_graph_uses_is_enough():
    graph = "A:x => B\nA:y => C"
    assert Scenario(graph, TWO_OUTPUTS).makes("1/A", "y").succeeds("1/A", "1/C").completed
    run = Scenario(graph, TWO_OUTPUTS).succeeds("1/A")
    assert run.notices("incomplete") == [
        "1/A succeeded without x or y, which 1/B and 1/C wait for"
    ]
    assert run.why("1/A")[0].command == "trigger 1/A, or set 1/A --out x, or set 1/A --out y"


def test_an_output_that_the_graph_does_not_use_is_not_asked_for():
    assert Scenario("A => B", TWO_OUTPUTS).succeeds("1/A", "1/B").completed


@pytest.mark.parametrize("completion", ["A:x? => B", "completion = succeeded"])
def test_a_question_mark_or_a_completion_says_that_an_output_may_lack(completion):
    own = "" if "=>" in completion else f"[[A]]\n{completion}\n"
    graph = completion if "=>" in completion else "A:x => B"
    run = Scenario(graph, own + TWO_OUTPUTS).succeeds("1/A")
    assert run.completed
    assert run.verdicts == {"1/B": "not taken"}


def test_a_handled_failure_completes_a_task_without_its_output():
    run = Scenario("A:x => B\nA:fail => C", TWO_OUTPUTS).fails("1/A").succeeds("1/C")
    assert run.completed
    assert run.verdicts == {"1/B": "lost"}


def test_outputs_of_earlier_submissions_count():
    retries = f"{TWO_OUTPUTS}\n[[A]]\nexecution retry delays = PT1M"
    run = (
        Scenario("A:x => B", retries).makes("1/A", "x").fails("1/A").timer("1/A", "retry-delay")
    )
    assert run.succeeds("1/A", "1/B").completed
    run = Scenario("A:x => B", TWO_OUTPUTS).makes("1/A", "x").fails("1/A").triggers("1/A")
    assert run.succeeds("1/A", "1/B").completed
    # It goes again in its flow, because 1/C is lost by its failure.
    graph = "A:x => B\nA => C\nA:fail => D"
    run = Scenario(graph, TWO_OUTPUTS).makes("1/A", "x").fails("1/A").triggers("1/A")
    assert run.succeeds("1/A").pool == {"1/B": "running", "1/C": "running", "1/D": "running"}


def test_a_task_that_goes_again_in_a_new_flow_makes_its_output_again():
    run = Scenario("A:x => B\nZ", TWO_OUTPUTS).makes("1/A", "x").succeeds("1/A", "1/B")
    run.reflows("1/A").succeeds("1/A", "1/Z")
    assert run.stalled
    assert run.causes == ["1/A"]


def test_a_member_of_a_family_needs_its_output_as_any_other_task():
    runtime = "[[FAM]]\n[[A, B]]\ninherit = FAM\n[[[outputs]]]\nx = x"
    run = Scenario("FAM:succeed-all => C\nA:x => D", runtime).succeeds("1/A", "1/B")
    assert run.causes == ["1/A"]
    assert run.why("1/A")[0].text == "1/A succeeded without x, which 1/D waits for"


def test_who_waits_for_an_output_is_named_at_other_points_too():
    graph = "P1 = A\nP1 = A[-P1]:x => B\nP1 = A[^]:x => C"
    run = Scenario(graph, TWO_OUTPUTS, final=2).succeeds("1/A")
    assert run.why("1/A")[0].text == "1/A succeeded without x, which 2/B and 1/C wait for"
    run = Scenario("P1 = A\nP1 = A[-P1]:x => B", TWO_OUTPUTS, final=1).succeeds("1/A")
    assert run.why("1/A")[0].text == "1/A succeeded without x, which the graph uses"


def test_set_alone_takes_the_way_that_a_task_has_begun():
    run = Scenario("A:x => B\nA:y => C", TWO_OUTPUTS).makes("1/A", "y").fails("1/A")
    assert run.sets("1/A").pool == {"1/C": "running"}
    assert Scenario("A:x => B", TWO_OUTPUTS).succeeds("1/A").sets("1/A").pool == {
        "1/B": "running"
    }


@pytest.mark.parametrize("lines", [("A:finish => C", "A? => B"), ("A? => B", "A:finish => C")])
def test_the_order_of_lines_does_not_decide_what_completes_a_task(lines):
    graph = "\n".join((*lines, "A:x => D"))
    run = Scenario(graph, TWO_OUTPUTS).succeeds("1/A", "1/B", "1/C")
    assert run.stalled
    assert run.why("1/A")[0].text == "1/A succeeded without x, which 1/D waits for"


def test_a_task_that_waits_only_for_another_one_that_waits_is_no_cause():
    graph = "P1 = a? & b[-P1] => b\nP1 = a:fail? => c"
    run = Scenario(graph, "[[a, b, c]]", final=3, policy="cylc8")
    run.runs_to_the_end(fails=("2/a",))
    assert run.pool == {"2/b": "waiting", "3/b": "waiting"}
    assert run.causes == ["2/b"]


def test_only_active_jobs_are_killed_when_a_run_is_stopped():
    run = Scenario("a & b => c").succeeds("1/b").happens(RunStopped(StopMode.KILL, 0.0))
    assert run.killed == ["1/a"]
    assert run.is_killed("1/a").pool == {"1/a": "failed", "1/c": "waiting"}


@pytest.mark.parametrize("policy", ["tidewheel", "cylc8"])
def test_what_was_released_beyond_a_new_stop_point_waits_for_the_next_start(policy):
    run = Scenario("a[-P1] & c[-P1] => a => s => c", "[[a, s, c]]", final=9, policy=policy)
    run.succeeds("1/a").happens(StopPointSet(1, 0.0)).succeeds("1/s", "1/c")
    assert run.submitted == ["1/a", "1/s", "1/c"]
    assert run.status == "stopped"
    run.happens(RunContinued(0.0, None))
    assert run.submitted[-1] == "2/a"


def test_a_stall_with_many_causes_names_some_and_counts_the_rest():
    many = [f"t{number}" for number in range(14)]
    run = Scenario(" & ".join(many) + " => z")
    for name in many:
        run.fails(f"1/{name}")
    (told,) = run.notices("stalled")
    assert told.count("failed, incomplete") == 10
    assert told.endswith("; … and 4 more")


def test_a_run_stops_after_a_task_however_that_ends():
    failed = Scenario("A => B\nX").happens(StopTaskSet((1, "A"), 0.0)).fails("1/A")
    assert failed.succeeds("1/X").status == "stopped"
    alone = Scenario("A\nX").succeeds("1/A").happens(StopTaskSet((1, "A"), 0.0))
    assert alone.triggers("1/A").fails("1/A").succeeds("1/X").status == "stopped"
    by_hand = Scenario("X => A => B").happens(StopTaskSet((1, "A"), 0.0)).sets("1/A")
    assert by_hand.succeeds("1/X").status == "stopped"
    assert by_hand.submitted == ["1/X"]


def test_a_run_does_not_stop_after_a_task_that_is_tried_again():
    run = Scenario("A => B", "[[A]]\nexecution retry delays = PT1S")
    run.happens(StopTaskSet((1, "A"), 0.0)).fails("1/A")
    assert run.status == "running"
    assert run.timer("1/A", "retry-delay").fails("1/A").status == "stopped"


def test_a_failed_task_that_waits_for_a_new_flow_stalls_the_run():
    run = Scenario("a & b => c").succeeds("1/a", "1/b").fails("1/c")
    run.reflows("1/a").succeeds("1/a")
    assert run.pool == {"1/c": "waiting"}
    assert run.stalled
    (reason,) = run.why("1/c")
    assert reason.text == "1/c needs 1/b:succeeded, which was made in flow 1, not in flow 2"
    assert reason.command == "set 1/b --flow 2"
    assert run.sets("1/b", flow=2).succeeds("1/c").completed


def test_a_bounded_reflow_leaves_a_failed_task_a_cause_of_the_stall():
    run = Scenario("obs & prep => model => post", final=2).runs_to_the_end(fails=("1/model",))
    assert run.stalled
    run.reflows("1/prep", until=1).runs_to_the_end()
    assert run.stalled
    assert run.causes == ["1/model"]


def test_nothing_waits_beyond_the_final_point_where_that_is_not_taken():
    run = Scenario("P1 = x[+P2]:fail | a => t\nP1 = b => t\nP1 = x", final=1)
    run.succeeds("1/x", "1/a", "1/b", "1/t").reflows("1/b").succeeds("1/b")
    assert run.stalled
