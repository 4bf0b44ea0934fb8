"""Mapped tasks: elements over a list that a task returns at run time (issue 19)."""

import pytest

from tests.kit.scenario import Scenario, compile_flow, compile_graph
from tidewheel.core.operator.command_events import events_of
from tidewheel.core.operator.selection import select
from tidewheel.core.operator.task_inputs import lists_in
from tidewheel.core.operator.verbs import Set
from tidewheel.core.sched.elements import refuse_other_lists, refuse_renamed_elements
from tidewheel.core.sched.events import FlowChoice, TasksTriggered
from tidewheel.core.sched.explain import preview
from tidewheel.core.sched.spawn import CLOCK
from tidewheel.errors import Refused

FILES = "file = list.files"
JOINED = """
    list => process<file> => plot<file>
    plot<file> => join
"""


def joined(**other: object) -> Scenario:
    return Scenario(JOINED, parameters=FILES, **other)  # type: ignore[arg-type]


def test_a_task_is_made_for_each_element_when_the_list_is_returned():
    run = joined()
    assert run.pool == {"1/list": "running"}
    run.returns("1/list", "files[3]")
    assert run.pool == {f"1/process_file{index}": "running" for index in range(3)}


def test_each_element_goes_on_by_itself_and_all_are_joined():
    run = joined().returns("1/list", "files[2]")
    run.succeeds("1/process_file1")
    assert run.pool == {"1/process_file0": "running", "1/plot_file1": "running"}
    run.succeeds("1/plot_file1", "1/process_file0")
    assert "1/join" not in run.submitted
    run.succeeds("1/plot_file0")
    assert run.pool == {"1/join": "running"}
    assert run.succeeds("1/join").completed


def test_no_elements_complete_the_join():
    run = joined().returns("1/list", "files[0]")
    assert run.pool == {"1/join": "running"}
    assert run.succeeds("1/join").completed


def test_of_no_elements_none_succeeded():
    run = Scenario("list => process<file>\nprocess<file>:succeed-any => join", parameters=FILES)
    run.returns("1/list", "files[0]")
    assert run.completed
    assert run.submitted == ["1/list"]


def test_the_first_element_that_succeeds_suffices_for_any():
    run = Scenario("list => process<file>\nprocess<file>:succeed-any => join", parameters=FILES)
    run.returns("1/list", "files[3]").succeeds("1/process_file2")
    assert "1/join" in run.submitted


def test_a_list_that_never_comes_loses_the_join():
    run = Scenario(
        "list:fail? => mail\n" + JOINED.replace("list =>", "list? =>"), parameters=FILES
    )
    run.fails("1/list").succeeds("1/mail")
    assert run.completed
    assert run.submitted == ["1/list", "1/mail"]


def test_an_element_that_fails_stalls_the_join_or_is_handled():
    run = joined().returns("1/list", "files[2]").fails("1/process_file1")
    run.succeeds("1/process_file0", "1/plot_file0")
    assert run.status == "stalled"
    assert run.pool == {"1/process_file1": "failed"}
    handled = Scenario(
        """
        list => process<file>
        process<file>:fail-any? => mail
        process<file>:finish-all => join
        """,
        parameters=FILES,
    )
    handled.returns("1/list", "files[2]").fails("1/process_file1").succeeds("1/process_file0")
    assert {"1/mail", "1/join"} <= set(handled.submitted)


def test_elements_wait_for_other_tasks_too_whichever_comes_first():
    graph = "list & x => process<file>\nprocess<file> => join"
    first = Scenario(graph, parameters=FILES).succeeds("1/x")
    assert first.pool == {"1/list": "running"}
    first.returns("1/list", "files[2]")
    assert first.pool == {"1/process_file0": "running", "1/process_file1": "running"}
    last = Scenario(graph, parameters=FILES).returns("1/list", "files[2]")
    assert last.pool["1/process_file1"] == "waiting"
    last.succeeds("1/x")
    assert last.pool == {"1/process_file0": "running", "1/process_file1": "running"}


@pytest.mark.parametrize("x_first", [True, False])
def test_elements_die_with_what_they_wait_for(x_first: bool):
    graph = "x:fail? => mail\nlist & x? => process<file>\nprocess<file> => join\nmail"
    run = Scenario(graph, parameters=FILES)
    if x_first:
        run.fails("1/x").returns("1/list", "files[2]")
    else:
        run.returns("1/list", "files[2]").fails("1/x")
    run.succeeds("1/mail")
    assert run.completed
    assert set(run.submitted) == {"1/x", "1/list", "1/mail"}


def test_the_implied_source_is_waited_for_where_the_graph_does_not_say_so():
    run = Scenario("list\nx => process<file> => join", parameters=FILES)
    assert run.succeeds("1/x").pool == {"1/list": "running"}
    run.returns("1/list", "files[1]")
    assert run.pool == {"1/process_file0": "running"}


def test_each_point_has_as_many_elements_as_its_own_list():
    run = joined(final=2).returns("1/list", "files[3]").returns("2/list", "files[1]")
    assert [one for one in run.pool if one.startswith("2/")] == ["2/process_file0"]
    run.succeeds("2/process_file0", "2/plot_file0")
    assert "2/join" in run.submitted
    assert "1/join" not in run.submitted


def test_a_success_without_a_size_is_a_failure():
    run = joined().succeeds("1/list")
    assert run.pool == {"1/list": "failed"}
    assert run.notices("no list") == [
        "1/list did not return the list files, so the task counts as failed"
    ]


def test_a_size_beyond_the_bound_is_none():
    run = Scenario(JOINED, parameters="file = list.files max 2").returns("1/list", "files[3]")
    assert run.pool == {"1/list": "failed"}


def test_the_number_of_elements_survives_a_restart():
    run = joined().returns("1/list", "files[3]").restarts(tuple)
    run.succeeds("1/process_file0", "1/plot_file0").restarts(tuple)
    run.succeeds("1/process_file1", "1/plot_file1", "1/process_file2").restarts(tuple)
    assert "1/join" not in run.submitted
    run.succeeds("1/plot_file2")
    assert "1/join" in run.submitted


def test_a_reflow_has_as_many_elements_as_its_own_list():
    run = joined().returns("1/list", "files[1]")
    run.succeeds("1/process_file0", "1/plot_file0", "1/join")
    run.reflows("1/list").returns("1/list", "files[2]")
    assert set(run.pool) == {"1/process_file0", "1/process_file1"}
    run.succeeds("1/process_file0", "1/plot_file0")
    assert run.submitted.count("1/join") == 1
    run.succeeds("1/process_file1", "1/plot_file1")
    assert run.submitted.count("1/join") == 2


def test_a_list_that_changes_when_its_task_is_run_again_keeps_its_size_in_that_flow():
    run = joined().returns("1/list", "files[2]")
    run.triggers("1/list", flow=1).returns("1/list", "files[5]")
    assert run.notices("list changed") == [
        "1/list returned 5 elements of files; flow 1 continues with the list of length 2 "
        "that it already has"
    ]
    assert set(run.pool) == {"1/process_file0", "1/process_file1"}
    run.succeeds("1/process_file0", "1/process_file1", "1/plot_file0", "1/plot_file1")
    assert "1/join" in run.submitted


def test_an_element_beyond_the_size_is_refused():
    run = joined()
    with pytest.raises(Refused, match="known when 1/list succeeds"):
        run.triggers("1/process_file0")
    run.returns("1/list", "files[2]")
    with pytest.raises(Refused, match="1/list returned a list of length 2"):
        run.triggers("1/process_file2")
    with pytest.raises(Refused, match="no task process_file1000 "):
        run.triggers("1/process_file1000")


def test_a_success_by_hand_needs_the_size():
    run = joined().fails("1/list")
    with pytest.raises(Refused, match="give the list first"):
        run.sets("1/list", "succeeded")
    run.sets("1/list", "files[1]", "succeeded")
    assert run.pool == {"1/process_file0": "running"}


def test_elements_can_be_held_set_removed_and_run_again():
    run = joined().returns("1/list", "files[3]")
    run.fails("1/process_file0").triggers("1/process_file0").succeeds("1/process_file0")
    run.is_killed("1/process_file1").sets("1/process_file1", "succeeded")
    run.succeeds("1/plot_file0", "1/plot_file1", "1/process_file2")
    run.succeeds("1/plot_file2")
    assert "1/join" in run.submitted


def test_a_limit_bounds_the_elements():
    queues = "[[queues]]\n    [[[few]]]\n        limit = 2\n        members = process<file>"
    run = joined(scheduling=queues).returns("1/list", "files[5]")
    assert list(run.pool.values()).count("running") == 2


def test_a_reload_with_a_smaller_bound_drops_elements_that_wait():
    queues = "[[queues]]\n    [[[few]]]\n        limit = 1\n        members = process<file>"
    run = joined(scheduling=queues).returns("1/list", "files[3]")
    run.reloads(JOINED, parameters="file = list.files max 2")
    assert set(run.pool) == {"1/process_file0", "1/process_file1"}


def test_a_reload_to_another_list_does_not_take_its_elements_for_done():
    graph = "list & other => process<file>\nprocess<file>:succeed-all & x => join"
    run = Scenario(graph, parameters=FILES).succeeds("1/other").returns("1/list", "files[1]")
    run.succeeds("1/process_file0")
    assert run.pool["1/join"] == "waiting"
    later = "list & more => process<file>\nprocess<file>:succeed-all & x => join"
    run.reloads(later, parameters="file = more.files")
    run.succeeds("1/x")
    assert "1/join" not in run.submitted


def test_a_reload_that_changes_nothing_changes_nothing():
    run = joined().returns("1/list", "files[2]")
    before = run.pool
    run.reloads(JOINED, parameters=FILES)
    assert run.pool == before
    run.succeeds("1/process_file0", "1/process_file1", "1/plot_file0", "1/plot_file1")
    assert "1/join" in run.submitted


def test_a_reload_without_the_mapped_task_lets_active_elements_finish():
    run = joined().returns("1/list", "files[2]")
    run.reloads("list => join")
    assert set(run.pool) >= {"1/process_file0", "1/process_file1"}
    run.succeeds("1/process_file0", "1/process_file1")
    assert not any("plot" in one for one in run.submitted)


def test_all_elements_of_the_point_before_can_be_waited_for():
    graph = "process<file>[-P1]:succeed-all & list => process<file>"
    run = Scenario(graph, parameters=FILES, final=2)
    run.returns("2/list", "files[1]").returns("1/list", "files[2]")
    run.succeeds("1/process_file0")
    assert run.pool["2/process_file0"] == "waiting"
    run.succeeds("1/process_file1")
    assert run.pool["2/process_file0"] == "running"


def test_why_says_how_many_elements_are_missing_and_which_needs_help():
    run = joined()
    assert run.why("1/join")[0].text == (
        "the number of elements of plot<file> is known when 1/list succeeds; "
        "1/join needs 1/list:succeeded; 1/list is active"
    )
    run.returns("1/list", "files[3]")
    awaited = "1/join waits for 3 more of the 3 elements of plot<file>"
    assert run.why("1/join")[0].text == awaited
    run.fails("1/process_file1").succeeds("1/process_file0", "1/plot_file0")
    assert [one.text for one in run.why("1/plot_file1")] == [
        "1/plot_file1 needs 1/process_file1:succeeded; 1/process_file1 failed"
    ]
    assert (
        run.why("1/plot_file7")[0].text
        == "there is no 1/plot_file7: 1/list returned a list of length 3"
    )


def test_why_advises_to_run_the_task_that_failed_before_the_one_that_returns_a_list():
    graph = "a => list => process<file>\nx & process<file>:succeed-all => join"
    run = Scenario(graph, parameters=FILES).succeeds("1/x").fails("1/a")
    assert run.stalled
    [reason] = run.why("1/join")
    assert (reason.passes, reason.command) == (False, "trigger 1/a")
    run.triggers("1/a").succeeds("1/a").returns("1/list", "files[1]")
    run.succeeds("1/process_file0")
    assert "1/join" in run.submitted


def test_a_preview_takes_a_list_to_have_two_elements():
    run = joined().fails("1/list")
    event = TasksTriggered(tasks=(run.key("1/list"),), at=run.now)
    ran = [run.id_of(one.task) for one in preview(run.core, event).runs]
    assert ran[:3] == ["1/list", "1/process_file0", "1/process_file1"]
    assert ran[-1] == "1/join"


def test_all_children_hear_of_no_elements_also_if_one_of_them_looked_first():
    graph = "list => process<file>\nprocess<file>:succeed-all & list => a\nprocess<file> => b"
    run = Scenario(graph, parameters=FILES).returns("1/list", "files[0]")
    assert set(run.pool) == {"1/a", "1/b"}


# ---- flows ----


def test_a_flow_that_begins_at_elements_goes_on_with_them_and_joins_them():
    run = joined().returns("1/list", "files[2]")
    run.succeeds("1/process_file0", "1/process_file1", "1/plot_file0", "1/plot_file1")
    run.succeeds("1/join").reflows("1/process_file0", "1/process_file1").restarts(tuple)
    run.succeeds("1/process_file0", "1/process_file1", "1/plot_file0")
    assert run.submitted.count("1/join") == 1
    run.succeeds("1/plot_file1")
    assert run.submitted.count("1/join") == 2
    assert run.succeeds("1/join").completed


def test_a_flow_that_begins_at_one_element_goes_on_with_that_alone():
    run = joined().returns("1/list", "files[2]")
    run.succeeds("1/process_file0", "1/process_file1", "1/plot_file0", "1/plot_file1")
    run.succeeds("1/join").reflows("1/process_file1").succeeds("1/process_file1")
    assert run.flows == {"1/plot_file1": [2]}
    assert run.succeeds("1/plot_file1").completed  # as of a family: others are not in the flow
    assert run.submitted.count("1/join") == 1


def test_a_flow_with_a_list_of_its_own_goes_on_with_that():
    run = joined().returns("1/list", "files[2]")
    run.succeeds("1/process_file0", "1/process_file1", "1/plot_file0", "1/plot_file1")
    run.succeeds("1/join").reflows("1/process_file0").triggers("1/list", flow=2)
    run.returns("1/list", "files[3]").succeeds("1/process_file0", "1/process_file1")
    run.succeeds("1/process_file2", "1/plot_file0", "1/plot_file1")
    assert run.submitted.count("1/join") == 1
    run.succeeds("1/plot_file2")
    assert run.submitted.count("1/join") == 2


def test_an_element_that_is_triggered_waits_for_no_list_of_a_flow_that_is_still_to_come():
    run = Scenario("a => list => process<file> => join", parameters=FILES)
    run.succeeds("1/a").returns("1/list", "files[2]").fails("1/process_file0")
    run.reflows("1/a").triggers("1/process_file0")
    assert run.flows["1/process_file0"] == [1]
    run.succeeds("1/a").returns("1/list", "files[3]")
    assert run.flows["1/process_file2"] == [2]


def test_a_flow_that_meets_a_list_that_was_told_has_it_too():
    run = joined(final=2).makes("1/list", "files[2]")
    run.reflows("1/list").succeeds("1/list")
    assert run.flows == {"1/process_file0": [1, 2], "1/process_file1": [1, 2], "2/list": [1]}


def test_elements_of_two_lists_never_are_one_task():
    run = joined().returns("1/list", "files[2@1]").reflows("1/list")
    run.returns("1/list", "files[2@2]")
    assert run.flows == {"1/process_file0": [1], "1/process_file1": [1]}
    run.restarts(tuple).succeeds("1/process_file0")
    assert run.flows["1/process_file0"] == [2]
    assert run.flows["1/plot_file0"] == [1]
    run.succeeds("1/process_file0", "1/plot_file0")
    assert run.flows["1/plot_file0"] == [2]
    run.fails("1/process_file1").succeeds("1/plot_file0")
    assert run.stalled
    run.triggers("1/process_file1").succeeds("1/process_file1", "1/plot_file1")
    assert run.flows == {"1/process_file1": [2], "1/join": [1]}
    run.succeeds("1/join", "1/process_file1", "1/plot_file1")
    assert run.succeeds("1/join").completed
    assert run.submitted.count("1/join") == 2


def test_a_join_of_one_list_is_none_of_another():
    run = joined().returns("1/list", "files[1@1]").succeeds("1/process_file0", "1/plot_file0")
    assert run.flows == {"1/join": [1]}
    run.reflows("1/list").returns("1/list", "files[2@2]")
    run.succeeds("1/process_file0", "1/process_file1", "1/plot_file0", "1/plot_file1")
    assert run.flows == {"1/join": [1]}
    run.restarts(tuple).succeeds("1/join")
    assert run.flows == {"1/join": [2]}
    assert run.succeeds("1/join").completed


def test_what_waits_for_any_element_in_two_flows_waits_for_both_lists():
    graph = "list => process<file>\nprocess<file>:succeed-any & x => join"
    run = Scenario(graph, parameters=FILES).returns("1/list", "files[0@1]")
    run.reflows("1/x").triggers("1/list", flow=2)
    assert run.flows == {"1/x": [1, 2], "1/list": [2]}
    run.succeeds("1/x")
    assert run.flows == {"1/join": [2], "1/list": [2]}
    both = Scenario(graph, parameters=FILES).reflows("1/x").succeeds("1/x")
    assert both.flows == {"1/list": [1], "1/join": [1, 2]}
    both.returns("1/list", "files[0@1]")
    assert both.flows == {"1/join": [1, 2]}
    both.triggers("1/list", flow=2).returns("1/list", "files[1@2]").succeeds("1/process_file0")
    assert both.pool == {"1/join": "running"}


def test_nobody_merges_elements_of_two_lists_by_hand():
    run = joined().returns("1/list", "files[1@1]").reflows("1/list")
    run.returns("1/list", "files[1@2]").triggers("1/process_file0", flow=2)
    assert run.flows == {"1/process_file0": [1]}
    assert "it runs there when the" in run.notices("another list")[0]
    run.succeeds("1/process_file0")
    assert run.flows == {"1/process_file0": [2], "1/plot_file0": [1]}


def test_a_flow_with_the_same_list_meets_its_elements():
    run = joined().returns("1/list", "files[2@1]")
    run.triggers("1/process_file0", flow=FlowChoice.NEW)
    assert run.flows == {"1/process_file0": [1, 2], "1/process_file1": [1]}


def test_elements_of_a_list_that_is_forgotten_come_with_the_next():
    queues = "[[queues]]\n    [[[few]]]\n        limit = 1\n        members = process<file>"
    run = joined(scheduling=queues).returns("1/list", "files[3]")
    run.removes("1/list")
    assert set(run.pool) == {"1/process_file0"}  # which runs
    run.triggers("1/list", flow=1).returns("1/list", "files[2]")
    assert set(run.pool) == {"1/process_file0", "1/process_file1"}
    run.succeeds("1/process_file0", "1/process_file1", "1/plot_file0", "1/plot_file1")
    assert run.succeeds("1/join").completed


def test_a_source_that_nobody_waited_for_is_no_source_after_a_reload():
    run = Scenario("list\nx", parameters=FILES).succeeds("1/list")
    graph = compile_graph("list => process<file> => join\nx", parameters=FILES)
    with pytest.raises(Refused, match="1/list has succeeded and returned no list files"):
        refuse_other_lists(run.core, graph)


def test_a_point_with_fewer_elements_has_no_others():
    run = joined(final=2).returns("1/list", "files[3]").returns("2/list", "files[1]")
    chosen = select(run.core, ("2/process<file>",), all_at_point=True)
    assert [run.id_of(key) for key in chosen] == ["2/process_file0"]


def test_a_join_does_not_wait_for_the_list_itself():
    run = joined().returns("1/list", "files[2]")
    command = Set(ids=("1/join",), prerequisites=("1/list:succeeded",))
    with pytest.raises(Refused, match='does not depend on "1/list:succeeded"'):
        events_of(run.core, command, run.now)


def test_a_list_that_is_returned_again_counts_no_second_time():
    run = joined().returns("1/list", "files[2@1]")
    run.triggers("1/list", flow=1).returns("1/list", "files[2@2]")
    assert run.notices("list changed") == [
        "1/list returned 2 elements of files; flow 1 continues with the list that it "
        "already has"
    ]
    assert lists_in(run.core, run.key("1/list"), frozenset({1})) == {"files": 1}
    run.reflows("1/list").returns("1/list", "files[1@3]")
    assert lists_in(run.core, run.key("1/list"), frozenset({2})) == {"files": 3}


# ---- clocks, xtriggers, expiry, suicide ----

DATED = """
[scheduler]
    allow implicit tasks = True
    UTC mode = True
[task parameters]
    file = list.files
[scheduling]
    initial cycle point = 20300101T00Z
    final cycle point = 20300102T00Z
    {more}
    [[graph]]
        P1D = {graph}
"""
DAY = "20300101T0000Z"


def dated(more: str, graph: str = "list => process<file> => join") -> Scenario:
    run = Scenario(compile_flow(DATED.format(more=more, graph=graph)))
    return run.returns(f"{DAY}/list", "files[2]")


@pytest.mark.parametrize(
    ("more", "left"),
    [
        ("[[special tasks]]\n        clock-trigger = process<file>(P9D)", "list"),
        ('[[special tasks]]\n        external-trigger = process<file>("go")', "list"),
        ("[[xtriggers]]\n        x = wall_clock(offset=P9D)", "@x & list"),
        ("[[xtriggers]]\n        x = echo(1, succeed=True, sequential=True)", "@x & list"),
    ],
)
def test_each_element_waits_for_what_comes_from_outside(more: str, left: str):
    run = dated(more, f"{left} => process<file> => join")
    waiting = [one for one, word in run.pool.items() if word == "pending"]
    assert waiting == [f"{DAY}/process_file0", f"{DAY}/process_file1"]
    task = run.core.tasks[run.key(waiting[1])]
    [wait] = task.waits
    run.timer(waiting[1], wait) if wait == CLOCK else run.xtrigger(wait, waiting[1])
    assert run.pool[waiting[1]] == "running"
    assert run.pool[waiting[0]] == "pending"


def test_elements_expire_each_by_itself():
    more = "[[special tasks]]\n        clock-expire = process<file>(PT1M)"
    run = dated(more, "list => process<file>:expire? => mail<file>")
    running = {one for one, word in run.pool.items() if word == "running"}
    assert running >= {f"{DAY}/mail_file0", f"{DAY}/mail_file1"}


def test_all_elements_together_can_remove_another_task():
    graph = "list => process<file>\nprocess<file>:fail-any? => !other\nx => other"
    run = Scenario(graph, parameters=FILES).returns("1/list", "files[2]")
    run.fails("1/process_file1").succeeds("1/x")
    assert "1/other" not in run.submitted
    none = Scenario(graph, parameters=FILES).returns("1/list", "files[0]").succeeds("1/x")
    assert "1/other" in none.submitted


RENAMED = JOINED.replace("<file>", "<item>")


def test_a_reload_that_renames_the_parameter_of_elements_that_have_not_ended_is_refused():
    """They would be dropped, and those of the new name never come: work nobody would do."""
    run = joined().returns("1/list", "files[2]").succeeds("1/process_file0")
    new = compile_graph(RENAMED, parameters="item = list.files")
    with pytest.raises(Refused, match=r"1/process_file1 has not ended.*process<item> instead"):
        refuse_renamed_elements(run.core, new)
    run.succeeds("1/plot_file0", "1/process_file1").succeeds("1/plot_file1")
    refuse_renamed_elements(run.core, new)
    refuse_renamed_elements(joined().core, new)


def test_elements_that_a_reload_brings_too_late_are_named():
    """Their list was told before; those that still wait for something come by themselves."""
    run = Scenario("list => process<file> => join", parameters=FILES)
    run.returns("1/list", "files[2]").succeeds("1/process_file0")
    later = "list => process<file> => join\nlist => check<file>\nprocess<file> => plot<file>"
    run.reloads(later, parameters=FILES)
    assert run.notices("missed") == [
        "1/check_file0, 1/check_file1 will not run by themselves: what they need was done "
        "before this reload; to run them: trigger 1/check_file0 1/check_file1",
        "1/plot_file0 will not run by itself: what it needs was done before this reload; to "
        "run it: trigger 1/plot_file0",
    ]
    run.triggers("1/check_file0", "1/check_file1", "1/plot_file0").runs_to_the_end()
    assert run.completed and "1/plot_file1" in run.submitted
