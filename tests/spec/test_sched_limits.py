"""Limit groups (SEMANTICS §7)."""

from tests.kit.scenario import Scenario

TWO = "[[queues]]\n[[[big]]]\nlimit = 2\nmembers = a, b, c, d"


def test_a_limit_group_caps_how_many_are_active_and_the_earliest_point_goes_first():
    run = Scenario("a\nb", scheduling=TWO, final=3)
    assert run.submitted == ["1/a", "1/b"]
    assert run.pool["2/a"] == "ready"
    assert (
        run.why("2/a")[0].text
        == "2/a waits because its limit group is full: 2 of 2 tasks are active"
    )
    run.succeeds("1/b").succeeds("1/a")
    assert run.submitted == ["1/a", "1/b", "2/a", "2/b"]


def test_why_says_what_a_limit_of_one_means():
    run = Scenario("a\nb", scheduling=TWO.replace("limit = 2", "limit = 1"))
    assert (
        run.why("1/b")[0].text
        == "1/b waits because its limit group is full: only 1 task can be active at a time"
    )


def test_a_task_that_is_named_in_the_default_group_too_is_in_that_one():
    one = "[[queues]]\n[[[small]]]\nlimit = 1\nmembers = a, b, c\n[[[default]]]\nmembers = b, c"
    run = Scenario("a\nb\nc", scheduling=one, final=2)
    assert sorted(run.submitted) == ["1/a", "1/b", "1/c", "2/b", "2/c"]


def test_order_of_becoming_ready_decides_within_a_point_also_after_a_restart():
    run = Scenario("x => a\ny => b\nz => c\nw => d", scheduling=TWO)
    run.succeeds("1/x", "1/z", "1/w").restarts().succeeds("1/y").succeeds("1/a").restarts()
    run.succeeds("1/c", "1/d")
    assert run.submitted[4:] == ["1/a", "1/c", "1/d", "1/b"]


def test_a_triggered_task_needs_no_room():
    run = Scenario("a\nb\nc", scheduling=TWO).triggers("1/c")
    assert run.submitted == ["1/a", "1/b", "1/c"]


def test_a_held_task_gives_its_place_in_the_queue_to_the_next():
    run = Scenario("a\nb\nc\nd", scheduling=TWO).holds("1/c").succeeds("1/a")
    assert run.submitted == ["1/a", "1/b", "1/d"]
    assert run.releases("1/c").succeeds("1/b").submitted[-1] == "1/c"
