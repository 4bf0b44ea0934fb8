"""How far ahead tasks are released (SEMANTICS §4.2, 4.3)."""

from tests.kit.scenario import Scenario, compile_flow


def test_the_limit_counts_points_over_all_sequences():
    run = Scenario("P1 = a\nP3 = b", scheduling="runahead limit = P2", final=9)
    assert run.submitted == ["1/a", "1/b", "2/a", "3/a"]
    run = Scenario("P3 = a", scheduling="runahead limit = P2", final=30)
    assert run.submitted == ["1/a", "4/a", "7/a"]


def test_the_oldest_active_task_holds_the_limit_back():
    run = Scenario("a", final=20, scheduling="runahead limit = P1").succeeds("2/a")
    assert run.pool == {"1/a": "running", "3/a": "runahead"}
    assert run.succeeds("1/a").pool == {
        "3/a": "running",
        "4/a": "running",
        "5/a": "runahead",
    }


def test_an_incomplete_task_holds_the_limit_back_and_why_names_it():
    run = Scenario("a", final=20, scheduling="runahead limit = P1").fails("1/a").succeeds("2/a")
    assert run.pool == {"1/a": "failed", "3/a": "runahead"}
    reason = run.why("3/a")[0]
    assert reason.text == "3/a is beyond the runahead limit 2, which is counted from 1/a"
    assert not reason.passes
    assert run.stalled
    assert run.causes == ["1/a"]


def test_a_task_that_only_waits_for_parents_does_not_hold_the_limit_back():
    graph = "P1 = a\nR1 = a & late[+P3] => b\nR1/4 = late"
    run = Scenario(graph, final=20, scheduling="runahead limit = P1")
    run.succeeds("1/a", "2/a", "3/a")
    assert run.pool["1/b"] == "waiting"
    assert run.pool["4/late"] == "running"
    run.succeeds("4/late")
    assert run.pool["1/b"] == "running"


def test_a_date_time_limit_is_a_duration():
    text = """
    [scheduling]
        initial cycle point = 2030-01-01T00Z
        final cycle point = 2030-01-03T00Z
        runahead limit = PT12H
        [[graph]]
            PT6H = a
    """
    run = Scenario(compile_flow(text))
    assert len(run.submitted) == 3
    assert run.pool["20300101T1800Z/a"] == "runahead"
    run.runs_to_the_end()
    assert len(run.submitted) == 9
    assert run.completed


def test_at_most_a_hundred_points_are_active_whatever_the_limit():
    unlimited = "runahead limit = P150\n[[queues]]\n[[[default]]]\nlimit = 0"
    run = Scenario("a", final=200, scheduling=unlimited, start_jobs=False)
    assert len(run.submitted) == 100
    assert run.starts("1/a").succeeds("1/a").submitted[-1] == "101/a"


def test_a_task_beyond_the_limit_is_released_when_nothing_else_is_left():
    graph = "P1 = a[-P1] => a\nR1/9 = a[-P8] & b[-P8] => c\nR1 = b"
    run = Scenario(graph, final=9, scheduling="runahead limit = P1").succeeds("1/a")
    assert run.core.tasks[(9, "c")].admitted is False
    run.removes("2/a", kill=True, forget=True).fails("1/b").removes("1/b", forget=True)
    assert run.pool == {"9/c": "waiting"}
    run.sets_prerequisites("9/c", everything=True)
    assert run.pool["9/c"] == "running"


def test_a_task_beyond_the_limit_that_waits_in_vain_is_a_stall_when_nothing_holds_the_base():
    graph = "P1 = b[-P1] => a\nP1 = a[-P2] => c\nP2 = a[-P1] => c\nR2/^/P1 = b"
    run = Scenario(graph, final=5, scheduling="runahead limit = P1").runs_to_the_end()
    run.removes("4/a", "5/a", forget=True)
    assert run.pool == {"5/c": "waiting"}
    assert run.stalled


def test_who_needs_a_parent_off_its_sequence_is_blocked_when_its_point_comes_within_the_limit():
    run = Scenario("P2 = a\nP1 = a[-P1] => b", final=9, scheduling="runahead limit = P1")
    assert run.pool == {"1/a": "running", "1/b": "running", "3/a": "runahead"}
    run.succeeds("1/a", "1/b")
    assert run.pool["3/b"] == "blocked"
    assert "5/b" not in run.restarts().pool
    assert run.runs_to_the_end().stalled
    assert run.causes == ["3/b"]


def test_of_those_who_need_a_parent_off_its_sequence_the_next_one_is_shown_when_all_ended():
    graph = "R1 = a & e\nR/2/P7 = e[-P1] => c\nR/2/P4 = a[-P1] => b"
    run = Scenario(graph, final=9, scheduling="runahead limit = P0").runs_to_the_end()
    assert run.pool == {"6/b": "blocked"}
    assert run.removes("6/b").pool == {"9/c": "blocked"}
    assert run.removes("9/c").completed


def test_what_else_a_graph_has_does_not_decide_when_a_missing_parent_is_seen():
    graph = "P2 = a\nP1 = a[-P1] => b\nP1 = k"
    plain = Scenario(graph, final=9, scheduling="runahead limit = P1")
    more = Scenario(
        f"{graph}\nP1 = k[-P3]:fail | a[-P1] => b",
        final=9,
        scheduling="runahead limit = P1",
    )
    for run in (plain, more):
        assert "3/b" not in run.pool
        assert run.succeeds("1/a", "1/b", "1/k", "2/k").pool["3/b"] == "blocked"


def test_who_has_another_way_needs_no_parent_off_its_sequence():
    run = Scenario("P2 = a\nP1 = a[-P1] | c => b", final=6).runs_to_the_end()
    assert run.completed


def test_a_recurrence_that_places_no_task_does_not_count_for_the_limit():
    graph = "P2 = a\nP1 = a[-P1]:fail => !a"
    run = Scenario(graph, final=9, scheduling="runahead limit = P1")
    assert run.submitted == ["1/a", "3/a"]


IN_SEQUENCE = "[[xtriggers]]\nx = echo(1, sequential=True)\ny = echo(2)"


def test_a_sequential_xtrigger_must_be_met_before_the_next_instance_comes():
    run = Scenario("@x & @y => a", final=3, scheduling=IN_SEQUENCE)
    assert run.pool == {"1/a": "pending"}
    assert run.xtrigger("y", "1/a").pool == {"1/a": "pending"}
    assert run.restarts().xtrigger("x", "1/a").pool == {"1/a": "running", "2/a": "pending"}
    run.succeeds("1/a").xtrigger("x", "2/a")
    assert run.pool == {"2/a": "pending", "3/a": "pending"}
    run.xtrigger("y", "2/a", "3/a").xtrigger("x", "3/a")
    assert run.runs_to_the_end().completed


def test_an_instance_that_is_helped_or_goes_makes_way_for_the_next():
    run = Scenario("@x => a", final=5, scheduling=IN_SEQUENCE)
    assert run.triggers("1/a").pool == {"1/a": "running", "2/a": "pending"}
    run.sets_prerequisites("2/a", "xtrigger/x")
    assert run.pool == {"1/a": "running", "2/a": "running", "3/a": "pending"}
    run.sets_prerequisites("3/a", everything=True)
    assert run.pool["4/a"] == "pending"
    assert run.removes("4/a").pool["5/a"] == "pending"
    assert run.removes("5/a").runs_to_the_end().completed


def test_a_flow_that_meets_an_instance_waits_for_it_too():
    run = Scenario("@x => a", final=3, scheduling=IN_SEQUENCE).xtrigger("x", "1/a")
    run.succeeds("1/a").reflows("1/a").succeeds("1/a")
    assert run.flows == {"2/a": [1, 2]}
    run.xtrigger("x", "2/a")
    assert run.flows == {"2/a": [1, 2], "3/a": [1, 2]}


def test_a_far_future_offset_lets_more_points_hold_tasks_that_count():
    graph = "P1 = a\nR1 = a[+P120] => b"
    run = Scenario(graph, final=300, scheduling="runahead limit = P200", start_jobs=False)
    assert len(run.pool) == 122  # 120 points beyond the first, and the head of the chain


def test_who_needs_a_parent_off_its_sequence_is_seen_where_nothing_else_is_left():
    graph = "R1 = a\nR2/2/P5 = a[-P1] => b"
    run = Scenario(graph, final=9, scheduling="runahead limit = P0").runs_to_the_end()
    assert run.pool == {"7/b": "blocked"}
    assert run.removes("7/b").restarts().triggers("1/a").succeeds("1/a").completed
