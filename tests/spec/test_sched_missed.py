"""Tasks that a reload brings too late, which nothing spawns any more (SEMANTICS §8)."""

from __future__ import annotations

import pytest

from tests.kit.scenario import NOW, Scenario
from tidewheel.core.sched import events
from tidewheel.core.sched.missed import count_missed, missed_texts
from tidewheel.core.sched.pool import PastNeeded

GREW = ("a[-P1] => a => b", "a[-P1] => a => b\na => c => d")


def late(*names: str) -> Scenario:
    """A run at 3 in which a of each point has ended, and that then gets c => d after a."""
    run = Scenario(GREW[0], final=3).succeeds("1/a", "1/b", "2/a", "2/b", "3/a")
    return run.reloads(GREW[1], final=3).triggers(*names) if names else run


def test_a_reload_names_new_tasks_whose_parents_had_ended():
    """They come on demand, so that somebody has to know; d comes after c as ever."""
    run = late().reloads(GREW[1], final=3)
    assert run.notices("missed") == [
        "1/c, 2/c, 3/c will not run by themselves: what they need was done before this "
        "reload; to run them: trigger 1/c 2/c 3/c"
    ]
    assert run.pool == {"3/b": "running"}
    [reason] = run.why("2/c")
    assert (reason.passes, reason.command) == (False, "trigger 2/c")
    assert reason.text == (
        "2/c does not run by itself: what it needs was done before a reload added it"
    )
    assert run.triggers("1/c", "2/c", "3/c").runs_to_the_end().completed
    assert {"1/d", "2/d", "3/d"} < set(run.submitted)


def test_new_tasks_that_still_come_by_themselves_are_not_named():
    run = Scenario("a => b\nx", final=3).succeeds("1/x", "2/a")
    run.reloads("a & x => c\na => b\nx", final=3)
    assert not run.notices("missed")
    assert run.runs_to_the_end().submitted.count("2/c") == 1


def test_a_new_failure_path_of_a_task_that_succeeded_is_not_named():
    run = Scenario("a => b", final=3).succeeds("1/a").reloads("a => b\na:fail => m", final=3)
    assert not run.notices("missed")


def test_a_new_task_without_parents_is_named_at_the_points_that_have_passed():
    run = Scenario("a => b", final=3).succeeds("1/a", "1/b").reloads("a => b\ne", final=3)
    assert run.notices("missed") == [
        "1/e will not run by itself: its point had passed before this reload; to run it: "
        "trigger 1/e"
    ]
    assert not run.core.run.missed  # it runs from now on: nobody takes that for done
    assert run.pool["2/e"] == "running"


def test_an_old_task_is_named_where_a_new_arrow_has_become_true_too_soon():
    run = Scenario("a\nb:x => c", "[[b]]\n[[[outputs]]]\nx = x").succeeds("1/a")
    run.reloads("a => c\nb", "[[b]]\n[[[outputs]]]\nx = x")
    assert run.core.run.missed == {(1, "c"): None}


def test_a_task_that_waits_for_one_that_came_too_late_says_which_to_trigger():
    run = Scenario("a\nb => k").succeeds("1/a").reloads("a => c\nb & c => k").succeeds("1/b")
    assert run.stalled
    [reason] = run.why("1/k")
    assert (reason.passes, reason.command) == (False, "trigger 1/c")


def test_what_a_reload_brought_too_late_is_kept_until_it_runs_is_set_or_goes():
    run = late("3/c").restarts()
    assert list(run.core.run.missed) == [(2, "c")]
    assert not run.sets("2/c").core.run.missed
    again = late()
    again.reloads(GREW[1], final=3)
    assert again.reloads(GREW[0], final=3).core.run.missed == {}


def test_many_points_are_counted_and_the_command_names_the_newest():
    run = Scenario("a", final=40)
    for point in range(1, 31):
        run.succeeds(f"{point}/a")
    run.reloads("a => c", final=40)
    [text] = run.notices("missed")
    assert text.startswith("21/c, 22/c, ") and " 30/c and 20 before will not run" in text
    assert text.endswith("trigger " + " ".join(f"{n}/c" for n in range(21, 31)))


def test_an_old_task_that_needs_no_parents_from_a_reload_on_runs_from_there_on():
    for before in ("R1 = x\nP1 = y", "P2 = x\nP1 = y", "P1 = y => x"):
        run = (
            Scenario(before, final=9)
            .succeeds("1/y", "2/y", "3/y")
            .reloads("P1 = x & y", final=9)
        )
        assert not run.notices("missed")
        assert {f"{point}/x" for point in range(4, 10)} < set(run.runs_to_the_end().submitted)


def test_a_task_that_runs_once_and_came_too_late_is_kept_however_long_ago():
    run = Scenario("P1 = y", final=9).succeeds("1/y", "2/y", "3/y")
    run.reloads('R1 = s\nP1 = """y\ns[^] => x"""', final=9)
    assert run.runs_to_the_end().core.run.missed == {(1, "s"): None}
    run = Scenario("P1 = y\nR1/7 = y => s", final=9).succeeds("1/y", "2/y", "3/y", "4/y")
    assert run.reloads("P1 = y\nR1/2 = y => s", final=9).core.run.missed == {(2, "s"): None}


def test_tasks_that_a_reload_spawns_at_once_are_not_named():
    run = Scenario("P1 = y", final=9).succeeds("1/y", "2/y", "3/y")
    run.reloads('P1 = """y\ny[^] => x"""', final=9)
    assert not run.notices("missed")
    assert {"1/x", "2/x", "3/x"} < set(run.submitted)


def with_another_flow(flow_2: str, until: int | None = None) -> Scenario:
    """A run in which flow 1 is at 4 and another flow begins behind it, and that then gets c
    after a."""
    run = Scenario("a[-P1] => a => b", final=6)
    for point in (1, 2, 3):
        run.succeeds(f"{point}/a", f"{point}/b")
    run.reflows(flow_2, until=until)
    return run.reloads("a[-P1] => a => b\na => c", final=6)


@pytest.mark.parametrize(("flow_2", "until"), [("2/b", None), ("2/a", 2)])
def test_a_reload_names_what_one_flow_missed_although_another_flow_is_active(flow_2, until):
    run = with_another_flow(flow_2, until)
    assert run.notices("missed") == [
        "1/c, 2/c, 3/c will not run by themselves in flow 1: what they need was done before "
        "this reload; to run them: trigger 1/c 2/c 3/c"
    ]
    assert run.why("3/c")[0].text == (
        "3/c does not run by itself in flow 1: what it needs was done before a reload added it"
    )
    assert run.runs_to_the_end().completed
    assert run.core.run.missed == {(3, "c"): None}
    [reason] = run.why("3/c")
    assert (reason.passes, reason.command) == (False, "trigger 3/c")
    assert reason.text == (
        "3/c does not run by itself: what it needs was done before a reload added it"
    )
    assert "3/c" in run.triggers("3/c").submitted


def test_what_one_flow_missed_and_another_runs_does_not_count_at_the_end():
    run = with_another_flow("3/a").runs_to_the_end()
    assert run.submitted.count("3/c") == 1
    assert not run.core.run.missed


def test_a_reload_names_what_a_flow_missed_that_has_ended():
    run = Scenario("a[-P1] => a => b", final=6).runs_to_the_end().reflows("6/b")
    run.reloads("a[-P1] => a => b\na => c", final=6)
    assert list(run.core.run.missed) == [(5, "c"), (6, "c")]


def test_a_new_task_without_parents_that_comes_in_one_flow_is_not_named():
    run = Scenario("a[-P1] => a", final=4).succeeds("1/a", "2/a").reflows("2/a")
    run.reloads("a[-P1] => a\ne", final=4).runs_to_the_end()
    assert {"3/e", "4/e"} < set(run.submitted)
    assert not run.core.run.missed


def test_a_new_task_comes_though_somebody_has_sent_another_one_to_a_point_before_the_start():
    """Its chain was begun there, and ended at once."""
    run = Scenario("a", final=9, start=3).triggers("1/a").reloads("a\nm", final=9)
    assert {f"{point}/m" for point in range(3, 10)} < set(run.runs_to_the_end().submitted)
    assert run.completed


WITH_X = "[[a, a0]]\n[[[outputs]]]\nx = x"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a => b", "a => b\na:x => c => d"),
        ("a => b\nk => c", "a => b\na:x & k => c => d"),
        ("a => b\na & k => c => d", "a => b\na:x & k => c => d"),  # it was waiting in the pool
    ],
)
def test_a_task_that_needs_a_new_output_of_a_task_that_had_ended_is_named_and_kept(
    before, after
):
    """It counted as a branch that was not taken: the run ended as if all had been done."""
    run = Scenario(before).succeeds("1/a").reloads(after, WITH_X)
    assert run.notices("missed") == [
        "1/c will not run by itself: it needs 1/a:x, which is new with this reload; to run it: "
        "trigger 1/c"
    ]
    assert run.runs_to_the_end().restarts().completed
    assert run.core.run.missed == {(1, "c"): None}
    assert missed_texts(run.core) == {
        "1/c": "1/c will not run: it needs 1/a:x; 1/a succeeded without it"
    }
    assert count_missed(run.core, {}) == 1
    memory = run.core.recall(1, "c")
    assert count_missed(run.core, {(1, "c"): memory}) == 1
    [reason] = run.why("1/c")
    assert reason.command == "trigger 1/c"
    assert {"1/c", "1/d"} < set(run.triggers("1/c").runs_to_the_end().submitted)
    assert not run.core.run.missed


def test_new_outputs_that_are_missed_at_several_points_are_named_together():
    run = Scenario("a[-P1] => a => b", final=3).succeeds("1/a", "2/a", "3/a")
    run.reloads("a[-P1] => a => b\na:x => c", WITH_X, final=3)
    assert run.notices("missed") == [
        "1/c, 2/c, 3/c will not run by themselves: they need outputs that are new with this "
        "reload, such as 3/a:x; to run them: trigger 1/c 2/c 3/c"
    ]


def test_a_new_branch_on_an_output_that_the_job_could_have_made_is_not_named():
    run = Scenario("a => b", WITH_X).succeeds("1/a").reloads("a => b\na:x => c", WITH_X)
    assert not run.notices("missed")
    run = Scenario("a => b").succeeds("1/a")
    run.reloads("a => b\na:x & a:fail => c", WITH_X)
    assert not run.notices("missed")


def test_a_task_after_a_new_output_of_a_task_that_still_runs_is_not_named():
    run = Scenario("a => b").reloads("a => b\na:x => c", WITH_X)
    assert not run.notices("missed")
    assert run.succeeds("1/a").runs_to_the_end().stalled
    assert run.causes == ["1/a"]


def test_tasks_that_come_after_a_stopped_flow_are_kept_until_another_flow_brings_them():
    """The run was said to be completed, with nothing left out."""
    run = Scenario("a => b & c => d").happens(events.FlowStopped(1, NOW)).runs_to_the_end()
    assert run.completed
    assert sorted(run.core.run.missed) == [(1, "b"), (1, "c")]
    assert missed_texts(run.core)["1/b"] == (
        "1/b does not run by itself: flow 1 was stopped before it reached the task"
    )
    assert count_missed(run.core, {}) == 2
    [reason] = run.why("1/b")
    assert reason.command == "trigger 1/b"
    assert run.restarts().reflows("1/a").runs_to_the_end().completed
    assert not run.core.run.missed
    assert "1/d" in run.submitted


def test_tasks_after_a_flow_that_was_only_to_reach_a_point_are_not_kept():
    run = Scenario("a[-P1] => a", final=3).runs_to_the_end().reflows("1/a", until=1)
    assert run.runs_to_the_end().completed
    assert not run.core.run.missed


def test_tasks_after_a_stopped_flow_that_another_flow_has_run_are_not_kept():
    run = Scenario("a => b => c").succeeds("1/a").reflows("1/a").succeeds("1/a")
    run.happens(events.FlowStopped(1, NOW)).runs_to_the_end()
    run = run.reflows("1/a").happens(events.FlowStopped(3, NOW)).runs_to_the_end()
    assert run.completed
    assert not run.core.run.missed


def test_a_task_after_a_family_that_a_reload_completes_by_taking_members_out_is_named():
    """It was the same need as before by its words, and nobody was told."""
    family = "[[F]]\n[[{}]]\ninherit = F"
    run = Scenario("F:succeed-all => x => y", family.format("m1, m2")).succeeds("1/m1")
    run.reloads("F:succeed-all => x => y", family.format("m1"))
    assert run.core.run.missed == {(1, "x"): None}
    assert {"1/x", "1/y"} < set(run.triggers("1/x").runs_to_the_end().submitted)


class FarPast:
    """A store that would have to be asked first."""

    def recall(self, point, name):
        raise PastNeeded((point, name))


def test_the_end_of_a_run_tells_what_was_missed_long_ago_without_asking_the_store():
    run = Scenario("a[-P1] => a => b", final=30).succeeds("1/a", "1/b", "2/a")
    run.reloads("a[-P1] => a => b\na => c", final=30).runs_to_the_end()
    assert list(run.core.run.missed) == [(1, "c"), (2, "c")]
    why = "what it needs was done before a reload added it"
    told = {f"{point}/c": f"{point}/c does not run by itself: {why}" for point in (1, 2)}
    assert missed_texts(run.restarts(past=FarPast()).core) == told
    run.core.flows[1].stopped = True
    stopped = "or flow 1 was stopped before it reached the task"
    assert missed_texts(run.core)["2/c"] == f"{told['2/c']}, {stopped}"
