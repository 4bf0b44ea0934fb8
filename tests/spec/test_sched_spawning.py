"""Tasks come into the pool on demand (SEMANTICS §4; SoD, "Spawning on task outputs")."""

import pytest

from tests.kit.scenario import Scenario, compile_flow, compile_graph
from tidewheel.core.sched.events import JobEnd, JobEnded, RunStarted
from tidewheel.core.sched.step import new_pool, step

SEED_EXAMPLE = """
[scheduling]
   cycling mode = integer
   initial cycle point = 1
   final cycle point = 5
   [[graph]]
       P1 = \"\"\"x:fail => alert
               x => B
               A & B => C\"\"\"
[runtime]
   [[root]]
       script = sleep $(( 5 + RANDOM % 5 ))
   [[x]]
       script = \"\"\"
   if (( CYLC_TASK_CYCLE_POINT == 1 && CYLC_TASK_SUBMIT_NUMBER == 1 )); then
      false
   fi\"\"\"
"""


@pytest.mark.req("R001-1", "R001-4", "R001-25")
def test_the_seeds_complete_example_runs_as_written():
    run = Scenario(compile_flow(SEED_EXAMPLE)).runs_to_the_end(fails=("1/x",))
    assert run.completed
    assert "1/C" not in run.submitted
    assert [f"{point}/C" for point in range(2, 6)] == [i for i in run.submitted if "C" in i]
    assert run.notices("lost")[-1] == (
        "1/C will not run: it needs 1/B:succeeded; 1/B needs 1/x:succeeded; "
        "1/x failed, handled by 1/alert"
    )


@pytest.mark.req("R001-5")
def test_parentless_tasks_come_one_after_the_other_out_to_the_runahead_limit():
    run = Scenario("foo", final=9)
    assert run.submitted == ["1/foo", "2/foo", "3/foo", "4/foo", "5/foo"]
    assert run.pool["6/foo"] == "runahead"
    assert len(run.pool) == 6
    run.succeeds("1/foo")
    assert run.submitted[-1] == "6/foo"
    assert run.pool["7/foo"] == "runahead"


@pytest.mark.req("R001-6")
def test_tasks_that_only_wait_for_xtriggers_come_like_parentless_ones():
    xtriggers = "[[xtriggers]]\nready = echo(1)"
    run = Scenario("P1 = @ready => foo", scheduling=xtriggers, final=2)
    assert run.pool == {"1/foo": "pending", "2/foo": "pending"}
    assert run.checked == [("1/foo", "ready"), ("2/foo", "ready")]
    assert run.xtrigger("ready", "1/foo").pool == {"1/foo": "running", "2/foo": "pending"}


@pytest.mark.req("R001-11")
def test_a_child_appears_at_the_first_of_its_parents_and_waits_for_the_other():
    run = Scenario("A & B => C")
    assert run.pool == {"1/A": "running", "1/B": "running"}
    assert run.succeeds("1/A").pool == {"1/B": "running", "1/C": "waiting"}
    assert run.succeeds("1/B").pool == {"1/C": "running"}
    assert run.succeeds("1/C").completed


@pytest.mark.req("R001-12", "R001-2")
def test_custom_outputs_spawn_children_while_the_parent_still_runs():
    run = Scenario("A:out1 => B", "[[A]]\n[[[outputs]]]\nout1 = one").makes("1/A", "out1")
    assert run.pool == {"1/A": "running", "1/B": "running"}


@pytest.mark.req("R001-13")
def test_a_late_parent_cannot_run_its_child_twice():
    run = Scenario("A | B => C").succeeds("1/A").succeeds("1/C")
    assert run.pool == {"1/B": "running"}
    assert run.succeeds("1/B").submitted == ["1/A", "1/B", "1/C"]
    assert run.completed


@pytest.mark.req("R001-13")
def test_a_parent_of_many_points_later_cannot_run_its_child_twice():
    run = Scenario("R1 = slow => c\nP1 = a & b[-P1] | slow[^] => c\nP1 = b", final=12)
    run.restarts()
    for point in range(1, 5):
        run.succeeds(f"{point}/a", f"{point}/b")
    submitted = run.submitted.count("2/c")
    run.succeeds("1/slow")
    assert submitted == 1
    assert run.submitted.count("2/c") == 1


def test_a_child_that_comes_late_knows_what_its_parents_made_before():
    run = Scenario("A:start & B => C").succeeds("1/B")
    assert run.pool == {"1/A": "running", "1/C": "running"}


def test_the_outputs_that_an_end_implies_come_first():
    run = Scenario("A:submit => s\nA:start => t\nA => u", start_jobs=False)
    run.starts("1/A")
    assert run.submitted == ["1/A", "1/s", "1/t"]
    assert run.succeeds("1/A").submitted == ["1/A", "1/s", "1/t", "1/u"]


def test_submit_failed_implies_nothing():
    run = Scenario("A:submit-fail => s\nA:start => t", start_jobs=False).submit_fails("1/A")
    assert run.submitted == ["1/A", "1/s"]


@pytest.mark.req("R001-18")
def test_instances_of_one_task_run_out_of_point_order():
    run = Scenario("a => b", final=3).succeeds("3/a", "1/a", "2/a")
    assert [one for one in run.submitted if one.endswith("b")] == ["3/b", "1/b", "2/b"]


@pytest.mark.req("R001-19")
def test_the_pool_does_not_grow_with_the_spread_of_points():
    run = Scenario(
        "R1 = slow\nP1 = a[-P1] => a => b", final=60, scheduling="runahead limit = P40"
    )
    sizes = []
    for point in range(1, 31):
        run.succeeds(f"{point}/a").succeeds(f"{point}/b")
        sizes.append(len(run.pool))
    assert max(sizes) == 2


def test_a_family_is_counted_and_its_children_come_when_it_decides():
    runtime = "[[F]]\n[[m1, m2, m3]]\ninherit = F\n[[G]]\n[[n1, n2]]\ninherit = G"
    run = Scenario("F:succeed-all => G", runtime).succeeds("1/m1", "1/m3")
    assert run.pool == {"1/m2": "running"}
    assert run.succeeds("1/m2").pool == {"1/n1": "running", "1/n2": "running"}


def test_any_member_of_a_family_is_enough_where_any_is_asked_for():
    runtime = "[[F]]\n[[m1, m2]]\ninherit = F"
    run = Scenario("F:succeed-any => x", runtime).succeeds("1/m2")
    assert run.pool == {"1/m1": "running", "1/x": "running"}
    assert run.succeeds("1/m1", "1/x").submitted == ["1/m1", "1/m2", "1/x"]


def test_a_family_that_can_no_longer_decide_prunes_its_children():
    runtime = "[[F]]\n[[m1, m2]]\ninherit = F"
    run = Scenario("F:succeed-any => x\nF:fail-all => y", runtime).fails("1/m1")
    assert run.verdicts == {}
    run.fails("1/m2")
    assert run.pool == {"1/y": "running"}
    assert run.verdicts == {"1/x": "lost"}


def test_a_family_at_another_point_is_counted_there():
    runtime = "[[F]]\n[[m1, m2]]\ninherit = F"
    graph = "R1 = FIRST\nP1 = F\nP1 = F[-P1]:finish-all => x"
    run = Scenario(graph, runtime, final=3).succeeds("1/m1").fails("1/m2")
    assert run.pool["2/x"] == "running"


def test_a_sequential_task_waits_for_its_previous_instance():
    special = "[[special tasks]]\nsequential = foo"
    run = Scenario("P2 = foo", scheduling=special, final=6)
    assert run.pool == {"1/foo": "running"}
    assert run.succeeds("1/foo").pool == {"3/foo": "running"}
    assert run.runs_to_the_end().submitted == ["1/foo", "3/foo", "5/foo"]


def test_tasks_before_the_start_of_a_warm_start_count_as_done():
    run = Scenario("foo[-P1] => foo => bar", final=5, start=3)
    assert run.pool == {"3/foo": "running"}
    assert run.runs_to_the_end().submitted[-1] == "5/bar"


def test_failures_before_the_start_did_not_happen():
    run = Scenario("a[-P1]:fail => b\na", final=2)
    assert run.pool == {"1/a": "running", "2/a": "running"}
    assert run.fails("1/a").submitted[-1] == "2/b"


def test_a_report_of_an_older_submission_is_ignored():
    run = Scenario("A => B").fails("1/A").triggers("1/A")
    late = run.submissions[0]
    run.happens(JobEnded(late.task, late.submit, JobEnd.SUCCEEDED, run.now))
    assert run.pool == {"1/A": "running"}
    assert run.notices("late") == ["a late report of 1/A/1 was ignored"]


def test_a_run_can_be_started_at_tasks_instead_of_points():
    graph = compile_graph("a => b => c", final=3)
    pool = new_pool(graph)
    step(graph, pool, RunStarted(0.0, tasks=((2, "b"), (2, "c"))))
    assert {key: task.stage.name for key, task in pool.tasks.items()} == {
        (2, "b"): "PREPARING",
        (2, "c"): "WAITING",
    }
