"""Tasks that are triggered together (SEMANTICS §8): connected ids form a group.

What a task needs of its group must be made by the group's new jobs; all else counts as met.
"""

import pytest

from tests.kit.scenario import Scenario
from tests.support.sips import definition, graph_of, judged, stage
from tidewheel.core.sched.events import FlowChoice
from tidewheel.errors import Refused

pytestmark = pytest.mark.req("R001-32")

GRAPH = "a & x => b => c\nother"


def as_waiting(run: Scenario) -> Scenario:
    return run.succeeds("1/a")


def as_held(run: Scenario) -> Scenario:
    return run.succeeds("1/a").holds("1/b").succeeds("1/x")


def as_incomplete(run: Scenario) -> Scenario:
    return run.succeeds("1/a", "1/x").fails("1/b")


@pytest.mark.parametrize("policy", ["tidewheel", "cylc8"])
@pytest.mark.parametrize("come", [as_waiting, as_held, as_incomplete])
def test_a_task_waits_for_the_new_job_of_one_that_had_run_before(come, policy):
    run = come(Scenario(GRAPH, policy=policy)).triggers("1/a", "1/b")
    assert run.pool["1/a"] == "running" and run.pool["1/b"] == "waiting"
    assert run.restarts().submitted.count("1/b") == (come is as_incomplete)
    run.succeeds("1/a")
    assert run.pool["1/b"] == "running"
    run.succeeds("1/b").runs_to_the_end()
    assert run.completed
    assert run.submitted.count("1/a") == 2
    assert run.submitted.count("1/c") == 1


def test_if_the_new_job_fails_the_run_says_so_and_its_child_does_not_run():
    run = as_incomplete(Scenario(GRAPH)).triggers("1/a", "1/b").fails("1/a")
    assert run.pool["1/b"] == "waiting"
    assert run.succeeds("1/other").stalled
    assert run.causes == ["1/a"]


def test_a_group_of_which_all_have_run_runs_alone_in_its_order():
    run = Scenario(GRAPH).succeeds("1/a", "1/x", "1/b", "1/c").triggers("1/b", "1/a")
    assert run.flows["1/a"] == run.flows["1/b"] == []
    assert run.pool["1/b"] == "waiting"
    run.succeeds("1/a").succeeds("1/b")
    assert run.submitted.count("1/c") == 1


def test_a_task_that_ran_and_one_that_is_pooled_run_in_the_flow_of_that_one():
    run = Scenario(GRAPH).succeeds("1/a").triggers("1/a", "1/b")
    assert run.flows["1/a"] == run.flows["1/b"] == [1]


def test_ids_that_are_not_connected_run_as_each_would_alone():
    run = Scenario("a => b => c\nz").succeeds("1/a").triggers("1/a", "1/c", "1/z")
    assert run.flows["1/a"] == []
    assert run.flows["1/c"] == run.flows["1/z"] == [1]
    assert run.pool["1/c"] == "running"


def test_connected_over_a_third_they_are_one_group():
    run = Scenario("a => b => c").succeeds("1/a", "1/b").fails("1/c")
    run.triggers("1/c", "1/b", "1/a")
    assert run.pool == {"1/a": "running", "1/b": "waiting", "1/c": "waiting"}
    run.succeeds("1/a").succeeds("1/b").succeeds("1/c")
    assert run.completed
    assert run.submitted == ["1/a", "1/b", "1/c"] * 2


def test_the_next_start_of_a_task_that_failed_is_waited_for_not_its_last():
    run = Scenario("a:start => b", start_jobs=False).starts("1/a").starts("1/b")
    run.fails("1/a").fails("1/b").triggers("1/a", "1/b")
    assert run.pool == {"1/a": "preparing", "1/b": "waiting"}
    assert run.restarts().starts("1/a").pool["1/b"] == "preparing"


def test_a_stage_waits_for_the_next_start_of_its_service_if_that_has_failed():
    """Or it would run without it, and perhaps succeed."""
    stages = stage("engine", more="until: use"), stage("use", "engine running")
    graph = graph_of(judged(definition(*stages), "engine", "use", request={}))
    run = Scenario(graph, start_jobs=False).starts("1/engine").starts("1/use")
    run.fails("1/engine").fails("1/use").triggers("1/use")
    assert run.pool == {"1/engine": "preparing", "1/use": "waiting"}
    run.starts("1/engine").starts("1/use").succeeds("1/use").is_killed("1/engine")
    assert run.completed


def test_what_an_active_task_of_the_group_has_made_counts():
    run = Scenario("a:start & x => b\na => c").triggers("1/a", "1/b")
    assert run.pool["1/b"] == "running"
    assert run.submitted.count("1/a") == 1


def test_a_task_that_ran_waits_for_an_active_one_of_its_group():
    run = Scenario("a => b => c\na[-P1] => a", final=2).triggers("1/b").succeeds("1/b")
    run.triggers("1/a", "1/b")
    assert run.pool["1/b"] == "waiting"
    assert run.succeeds("1/a").pool["1/b"] == "running"


def test_what_was_satisfied_by_hand_must_be_made_too():
    run = Scenario(GRAPH).sets_prerequisites("1/b", "1/a").triggers("1/a", "1/b")
    assert run.pool["1/b"] == "waiting"
    assert run.succeeds("1/a").pool["1/b"] == "running"


def test_a_task_that_runs_alone_and_one_that_heard_of_it_begin_again():
    run = Scenario(GRAPH).succeeds("1/a", "1/x", "1/b").triggers("1/a", "1/b").succeeds("1/a")
    run.succeeds("1/b").triggers("1/b", "1/x").triggers("1/a").succeeds("1/a")
    run.triggers("1/a", "1/b")
    assert run.pool["1/b"] == "waiting"
    assert run.succeeds("1/a").pool["1/b"] == "running"


def test_a_member_of_a_family_runs_again_and_the_others_count_as_they_are():
    family = "[[FAM]]\n[[m1, m2]]\n    inherit = FAM\n"
    run = Scenario("FAM:succeed-all => b", family).succeeds("1/m1", "1/m2").fails("1/b")
    run.triggers("1/m1", "1/b")
    assert run.pool == {"1/m1": "running", "1/b": "waiting"}
    assert run.succeeds("1/m1").succeeds("1/b").completed


def test_others_that_wait_for_a_task_of_the_group_wait_for_its_new_job_too():
    run = as_incomplete(Scenario("a & x => b\na & y => d")).triggers("1/a", "1/b")
    run.succeeds("1/y")
    assert run.pool["1/d"] == "waiting"
    assert run.succeeds("1/a").pool["1/d"] == "running"


@pytest.mark.parametrize("flow", [FlowChoice.NEW, FlowChoice.ALL, frozenset({1})])
def test_it_is_so_in_flows_that_are_named(flow):
    run = as_incomplete(Scenario(GRAPH)).triggers("1/a", "1/b", flow=flow)
    assert run.pool["1/a"] == "running" and run.pool["1/b"] == "waiting"
    run.succeeds("1/a").succeeds("1/b")
    assert run.pool.get("1/c") == "running"


MAPPED = "list => process<file>\nprocess<file> => join\nother"


def mapped() -> Scenario:
    run = Scenario(MAPPED, parameters="file = list.files").returns("1/list", "files[2]")
    return run.succeeds("1/process_file0").fails("1/process_file1")


def test_a_join_waits_for_the_elements_of_its_group_and_the_others_count_as_they_are():
    run = mapped().triggers("1/process_file1", "1/join")
    assert run.pool["1/process_file1"] == "running" and run.pool["1/join"] == "waiting"
    assert run.succeeds("1/process_file1").pool["1/join"] == "running"


@pytest.mark.parametrize("flow", [FlowChoice.DEFAULT, FlowChoice.ALL])
def test_a_list_of_which_elements_have_run_is_not_run_again_with_them(flow):
    """The next list may have something else in their places."""
    run = mapped()
    with pytest.raises(Refused, match="in a new flow: trigger 1/list --reflow"):
        run.triggers("1/list", "1/process_file1", flow=flow)
    assert run.pool["1/process_file1"] == "failed"
    run.triggers("1/list", "1/process_file1", flow=FlowChoice.NEW)
    assert run.pool["1/list"] == "running" and run.pool["1/process_file1"] == "waiting"
