"""Commands of operators and what they are answered (SEMANTICS §8)."""

import pytest

from tests.kit.scenario import Scenario
from tests.kit.sched_invariants import fingerprint
from tidewheel.core.operator.command_events import answer_of, events_of
from tidewheel.core.operator.verbs import (
    Broadcast,
    ExtTrigger,
    Hold,
    Kill,
    Message,
    Pause,
    Poll,
    Release,
    Reload,
    Remove,
    Resume,
    Set,
    Stop,
    Trigger,
)
from tidewheel.errors import Refused


def obey(run, command):
    applied = events_of(run.core, command, run.now)
    before = len(run.effects)
    for event in applied.events:
        run.happens(event)
    return answer_of(run.core, applied, run.effects[before:])


def refusal(run, command):
    before = fingerprint(run.core)
    with pytest.raises(Refused) as refused:
        obey(run, command)
    assert fingerprint(run.core) == before, "a refused command changed something"
    return str(refused.value)


# trigger


@pytest.mark.req("R001-31")
def test_triggering_a_task_that_failed_runs_it_again_in_its_flow():
    run = Scenario("a => b").fails("1/a")
    answer = obey(run, Trigger(ids=("1/a",)))
    assert answer["tasks"] == {"1/a": "1"}
    assert answer["submitted"] == ["1/a"]
    assert answer["notices"] == ["1/a was triggered in flow 1", "running"]


def test_a_task_that_already_ran_runs_alone_and_the_answer_says_so():
    run = Scenario("a => b").succeeds("1/a")
    answer = obey(run, Trigger(ids=("1/a",)))
    assert answer["tasks"] == {"1/a": "none"}
    assert answer["notices"] == ["1/a was triggered in flow none"]


def test_the_answer_lists_what_comes_back_however_far_down():
    run = Scenario("a => b => c\na:fail => alert\nx").fails("1/a").succeeds("1/alert")
    assert run.verdicts == {"1/b": "lost", "1/c": "lost"}
    answer = obey(run, Trigger(ids=("1/a",)))
    assert answer["tasks"] == {"1/a": "1"}
    assert answer["comes_back"] == ["1/b", "1/c"]
    assert run.succeeds("1/a").pool["1/b"] == "running"


def test_a_reflow_has_bounds_and_its_number_is_answered():
    run = Scenario("a => b", final=3).runs_to_the_end()
    answer = obey(run, Trigger(ids=("1/a",), flow="new", until="2", until_tasks=("2/a",)))
    assert answer["tasks"] == {"1/a": "2"}
    assert "flow 2 was started" in answer["notices"]
    assert run.core.flows[2].until == 2
    assert run.core.flows[2].until_tasks == {(2, "a")}


def test_a_reflow_may_ignore_what_is_before_it_and_start_chains_later():
    run = Scenario("R1 = s\nP1 = s[^] => a", final=3).runs_to_the_end()
    obey(run, Trigger(ids=("1/s",), flow="new", from_point="2", ignore_before=True))
    assert run.core.flows[2].chains_from == 2
    assert run.core.flows[2].ignore_before == 1


@pytest.mark.parametrize("flow", ["1", "all", " 1 "])
def test_a_task_can_be_triggered_into_flows_that_are_there(flow):
    run = Scenario("a => b\nc").succeeds("1/a")
    assert obey(run, Trigger(ids=("1/a",), flow=flow))["tasks"] == {"1/a": "1"}


def test_several_flows_can_be_named():
    run = Scenario("a => b\nc").succeeds("1/a").reflows("1/a")
    assert obey(run, Trigger(ids=("1/c",), flow="1,2"))["tasks"] == {"1/c": "1,2"}


@pytest.mark.parametrize(
    ("flow", "said"),
    [
        ("2", "there is no flow 2; known flows: 1"),
        ("old", "'old' is not a flow; write a number such as 2 or 1,3, or new, all or none"),
        ("0", "'0' is not a flow"),
        ("1,", "'' is not a flow"),
    ],
)
def test_a_flow_that_does_not_exist_is_refused(flow, said):
    assert said in refusal(Scenario("a => b"), Trigger(ids=("1/a",), flow=flow))


def test_under_cylc8_naming_a_flow_starts_it():
    run = Scenario("a => b => c", "[[a, b, c]]", policy="cylc8")
    assert obey(run, Trigger(ids=("1/c",), flow="3"))["tasks"] == {"1/c": "3"}
    assert obey(run, Trigger(ids=("1/b",), flow="new"))["tasks"] == {"1/b": "4"}


def test_bounds_need_a_new_flow():
    said = refusal(Scenario("a => b"), Trigger(ids=("1/a",), until="1"))
    assert said.endswith("are only for a new flow; add --reflow (or --flow new)")


def test_an_active_task_that_is_triggered_is_left_alone():
    answer = obey(Scenario("a => b"), Trigger(ids=("1/a",)))
    assert answer["notices"] == ["1/a is active already"]
    assert "submitted" not in answer


def test_a_whole_point_can_be_triggered():
    run = Scenario("a => b => c", final=2)
    answer = obey(run, Trigger(ids=("2",), all_at_point=True))
    assert list(answer["tasks"]) == ["2/a", "2/b", "2/c"]


def test_a_paused_run_triggers_at_once_or_when_it_is_resumed():
    run = Scenario("a => b => c")
    obey(run, Pause())
    obey(run, Hold(ids=("1/b",)))
    assert "submitted" not in obey(run, Trigger(ids=("1/b",), on_resume=True))
    assert run.pool["1/b"] == "ready"
    assert obey(run, Trigger(ids=("1/c",)))["submitted"] == ["1/c"]
    assert obey(run, Resume())["submitted"] == ["1/b"]


def test_a_failed_task_can_wait_for_the_run_to_be_resumed():
    run = Scenario("a => b").fails("1/a")
    obey(run, Pause())
    obey(run, Trigger(ids=("1/a",), on_resume=True))
    assert run.pool == {"1/a": "ready"}
    assert obey(run, Resume())["submitted"] == ["1/a"]


# set


@pytest.mark.req("R001-43")
def test_setting_names_outputs_or_takes_what_completes_the_task():
    run = Scenario("a:x => b\na => c", "[[a]]\n[[[outputs]]]\nx = the x\n[[b, c]]")
    assert obey(run, Set(ids=("1/a",), outputs=("x",)))["submitted"] == ["1/b"]
    assert obey(run, Set(ids=("1/c",)))["tasks"] == {"1/c": None}
    assert run.succeeds("1/b", "1/a").completed
    assert "1/c" not in run.submitted


@pytest.mark.parametrize("texts", [("x,succeeded",), ("x", "succeed"), ("required", "x")])
def test_outputs_are_separated_by_commas_or_given_one_by_one(texts):
    run = Scenario("a:x & a => b", "[[a]]\n[[[outputs]]]\nx = the x\n[[b]]")
    assert obey(run, Set(ids=("1/a",), outputs=texts))["submitted"] == ["1/b"]


def test_a_task_is_set_to_what_skipping_it_would_make():
    runtime = "[[a]]\n[[[outputs]]]\nx = the x\n[[[skip]]]\noutputs = x\n[[b, c]]"
    run = Scenario("a:x => b\na => c", runtime)
    answer = obey(run, Set(ids=("1/a",), outputs=("skip",)))
    assert answer["submitted"] == ["1/b", "1/c"]
    unsaid = Scenario("a:x => b\na => c", runtime.replace("outputs = x", ""))
    answer = obey(unsaid, Set(ids=("1/a",), outputs=("skip",)))
    assert sorted(answer["submitted"]) == ["1/b", "1/c"]


def test_an_unknown_output_is_refused_with_those_that_are_known():
    run = Scenario("a:ready => b", "[[a]]\n[[[outputs]]]\nready = is ready\n[[b]]")
    said = refusal(run, Set(ids=("1/a",), outputs=("redy",)))
    assert said.startswith(
        "a has no output 'redy'; did you mean ready? Its outputs: expired, submitted"
    )
    assert "did you mean" not in refusal(run, Set(ids=("1/a",), outputs=("qqq",)))


def test_one_task_of_several_without_the_output_refuses_the_whole_command():
    run = Scenario("a:x => b", "[[a]]\n[[[outputs]]]\nx = the x\n[[b]]")
    assert "b has no output" in refusal(run, Set(ids=("1/a", "1/b"), outputs=("x",)))


def test_several_tasks_that_are_set_share_one_new_flow():
    run = Scenario("a => c\nb => d").runs_to_the_end()
    answer = obey(run, Set(ids=("1/a", "1/b"), flow="new"))
    assert run.flows == {"1/c": [2], "1/d": [2]}
    assert answer["notices"].count("flow 2 was started") == 1


def test_prerequisites_are_named_by_their_tasks():
    run = Scenario("a & b:fail & c => d").holds("1/a")
    obey(run, Set(ids=("1/d",), prerequisites=("1/a", "1/b:failed")))
    assert run.pool["1/d"] == "waiting"
    obey(run, Set(ids=("1/d",), prerequisites=("c.1:succeed",)))
    assert run.pool["1/d"] == "running"


def test_all_prerequisites_can_be_named_at_once():
    run = Scenario("a & b => d")
    assert obey(run, Set(ids=("1/d",), prerequisites=("all",)))["submitted"] == ["1/d"]


def test_a_family_is_met_when_its_members_are_named():
    runtime = "[[FAM]]\n[[m1, m2]]\ninherit = FAM\n[[z, y]]"
    run = Scenario("FAM:succeed-all => z\nFAM:fail-any => y", runtime)
    obey(run, Set(ids=("1/z",), prerequisites=("1/m1",)))
    assert run.pool["1/z"] == "waiting"
    run.succeeds("1/m1")
    obey(run, Set(ids=("1/z",), prerequisites=("1/m2",)))
    assert run.pool["1/z"] == "running"
    obey(run, Set(ids=("1/y",), prerequisites=("1/m1:failed",)))
    assert run.pool["1/y"] == "running"


def test_xtriggers_are_met_by_hand_and_no_longer_asked_for():
    run = Scenario(
        "@x & @y => a\n@x => b", scheduling="[[xtriggers]]\nx = echo(1)\ny = echo(2)"
    )
    obey(run, Set(ids=("1/a",), prerequisites=("xtrigger/x",)))
    assert run.pool["1/a"] == "pending"
    obey(run, Set(ids=("1/a",), prerequisites=("xtrigger/all:succeeded",)))
    assert run.pool == {"1/a": "running", "1/b": "pending"}
    run = Scenario("@x & a => b", scheduling="[[xtriggers]]\nx = echo(1)", final=9)
    obey(run, Set(ids=("9/b",), prerequisites=("xtrigger/x",)))
    assert run.pool["9/b"] == "waiting"
    obey(run, Set(ids=("9/b",), prerequisites=("xtrigger/x",)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1/c", '1/b does not depend on "1/c:succeeded"; it depends on 1/a:succeeded'),
        ("1/a:failed", '1/b does not depend on "1/a:failed"'),
        ("1/q", "there is no task q in this workflow"),
        ("xtrigger/z", "1/b does not wait for an xtrigger 'z'; it waits for x"),
    ],
)
def test_a_prerequisite_that_a_task_does_not_have_is_refused(text, said):
    run = Scenario("@x & a => b\nc", scheduling="[[xtriggers]]\nx = echo(1)")
    assert said in refusal(run, Set(ids=("1/b",), prerequisites=(text,)))


def test_a_task_without_prerequisites_has_none_to_be_named():
    run = Scenario("a\nb")
    assert "it depends on nothing" in refusal(run, Set(ids=("1/a",), prerequisites=("1/b",)))
    said = refusal(run, Set(ids=("1/a",), prerequisites=("xtrigger/x",)))
    assert said == "1/a does not wait for an xtrigger 'x'; it waits for no xtrigger"


def test_outputs_and_prerequisites_are_set_one_after_the_other():
    run = Scenario("a => b")
    both = Set(ids=("1/b",), outputs=("succeeded",), prerequisites=("all",))
    assert "cannot be set in one command" in refusal(run, both)
    late = Set(ids=("1/b",), prerequisites=("all",), wait=True)
    assert "--wait goes with outputs" in refusal(run, late)


# remove, hold, release, kill, poll


@pytest.mark.req("R001-44")
def test_tasks_are_removed_in_all_or_some_flows():
    run = Scenario("a & b => c\nb").succeeds("1/a")
    assert obey(run, Remove(ids=("1/c",), flow="1"))["tasks"] == {"1/c": None}
    run = Scenario("a => b").fails("1/a")
    assert obey(run, Remove(ids=("*/a",), flow="all"))["status"] == "completed"


@pytest.mark.parametrize("flow", ["new", "none"])
def test_there_is_nothing_to_remove_from_a_new_flow(flow):
    said = refusal(Scenario("a").fails("1/a"), Remove(ids=("1/a",), flow=flow))
    assert said == f"--flow {flow} has no tasks to be removed; give flow numbers, or all"


def test_an_active_task_is_not_removed_without_kill():
    run = Scenario("a => b")
    assert "active; remove with --kill" in refusal(run, Remove(ids=("1/a",)))
    assert obey(run, Remove(ids=("1/a",), kill=True))["killed"] == ["1/a"]


def test_a_task_that_is_to_come_is_not_removed_and_still_runs():
    run = Scenario("a => b & c")
    run.succeeds("1/a")
    assert obey(run, Remove(ids=("1/b",), kill=True)).get("forgotten") is None
    other = Scenario("a => b")
    assert "it has not run" in refusal(other, Remove(ids=("1/b",)))
    other.succeeds("1/a")
    assert other.submitted == ["1/a", "1/b"]


def test_tasks_are_held_also_before_they_come_and_released_again():
    run = Scenario("a => b => c", final=2)
    obey(run, Hold(ids=("1/b", "2/c"), after="1"))
    assert run.core.run.hold_after == 1
    run.succeeds("1/a")
    assert run.pool["1/b"] == "held"
    assert list(obey(run, Release(ids=("*/b", "*/c")))["tasks"]) == ["1/b", "2/c"]
    assert run.pool["1/b"] == "running"
    obey(run, Release(everything=True))
    assert run.core.run.hold_after is None


def test_hold_and_release_need_something_to_hold_or_release():
    assert refusal(Scenario("a"), Hold()) == "hold what? Name tasks, or a point with --after"
    assert refusal(Scenario("a"), Release()) == "release what? Name tasks, or --all"


def test_killing_and_polling_take_the_active_ones_of_what_is_named():
    run = Scenario("a & b => c\nb").fails("1/b")
    assert obey(run, Poll(ids=("*",)))["polled"] == ["1/a"]
    assert obey(run, Kill(ids=("*/a:running",)))["killed"] == ["1/a"]
    assert run.is_killed("1/a").core.tasks[(1, "a")].held
    assert refusal(run, Kill(ids=("1/a", "1/b"))) == (
        "no active task matches 1/a, 1/b; only active tasks have jobs"
    )


# pause, resume, stop


def test_a_run_is_paused_and_resumed():
    run = Scenario("a => b")
    assert obey(run, Pause())["status"] == "paused"
    run.succeeds("1/a")
    assert obey(run, Resume())["submitted"] == ["1/b"]


def test_a_run_is_stopped_at_once_or_with_its_jobs():
    assert obey(Scenario("a => b"), Stop())["status"] == "stopping"
    assert obey(Scenario("a => b"), Stop(mode="now"))["status"] == "stopped"
    assert obey(Scenario("a => b"), Stop(mode="kill"))["killed"] == ["1/a"]


def test_a_stop_point_is_set_and_taken_back():
    run = Scenario("a => b", final=9)
    obey(run, Stop(at_point="2"))
    assert run.core.run.stop == 2
    obey(run, Stop(at_point="none"))
    assert run.core.run.stop is None


def test_a_run_says_that_it_does_not_stop_after_a_task_that_will_not_run():
    run = Scenario("a => b => c\na:fail => m => n")
    obey(run, Stop(after_task="1/c"))
    told = ["the run does not stop after 1/c, which will not run"]
    assert run.fails("1/a").notices("no stop") == told
    assert run.runs_to_the_end().completed


def test_a_run_stops_after_a_task():
    run = Scenario("a => b", final=9)
    assert obey(run, Stop(after_task="1/b"))["tasks"] == {"1/b": None}
    assert run.succeeds("1/a", "1/b").status == "stopping"


def test_a_run_cannot_be_stopped_after_a_task_whose_end_is_past():
    run = Scenario("a => b? => c\nb:fail? => d", final=9).succeeds("1/a")
    never = "{}, so the run would not stop after it; stop it now, or trigger {} first"
    assert refusal(run, Stop(after_task="1/a")) == never.format("1/a has ended", "1/a")
    assert run.core.run.stop_after is None
    run.succeeds("1/b")
    assert refusal(run, Stop(after_task="1/d")) == never.format("1/d will not run", "1/d")
    # Whoever triggers it, also in a flow of its own, may wait for its end.
    run.reflows("1/a")
    assert obey(run, Stop(after_task="1/a"))["tasks"] == {"1/a": "2"}


def test_a_run_cannot_be_stopped_after_a_task_that_is_incomplete_until_it_goes_again():
    run = Scenario("a => b\nx").fails("1/a")
    assert "1/a has ended" in refusal(run, Stop(after_task="1/a"))
    run.triggers("1/a")
    obey(run, Stop(after_task="1/a"))
    assert run.succeeds("1/a").status == "stopping"


def test_a_flow_is_stopped():
    run = Scenario("a => b\nx").reflows("1/b")
    obey(run, Stop(flow=2))
    assert run.core.flows[2].stopped
    assert refusal(run, Stop(flow=7)) == "there is no flow 7; known flows: 1, 2"


def test_one_way_of_stopping_is_chosen():
    run = Scenario("a => b")
    assert "stop accepts only one of" in refusal(run, Stop(at_point="1", flow=1))
    assert "stop accepts only one of" in refusal(run, Stop(mode="now", at_point="1"))
    assert refusal(run, Stop(mode="softly")) == (
        "'softly' is not a mode of stop; expected one of clean, now, kill"
    )


@pytest.mark.parametrize(
    "command",
    [
        Reload(),
        Broadcast(),
        Message(id="1/a"),
        ExtTrigger(message="x"),
        Stop(at_time="2030-01-01T00Z"),
    ],
)
def test_what_concerns_more_than_the_pool_is_left_to_the_scheduler(command):
    applied = events_of(Scenario("a").core, command, 0.0)
    assert applied.by_scheduler
    assert not applied.events


def test_a_point_alone_can_be_held_after():
    run = Scenario("a => b", final=9)
    assert obey(run, Hold(after="3"))["tasks"] == {}
    assert run.pool["4/a"] == "running"  # it had begun
    assert run.pool["6/a"] == "held"


def test_a_task_outside_the_pool_that_is_set_and_not_complete_is_named():
    """It was called complete, although it runs later, even if it was set to have failed."""
    run = Scenario("a => b\nb:x => c", "[[b]]\n[[[outputs]]]\nx = x")
    assert obey(run, Set(ids=("1/b",), outputs=("failed",)))["still_to_run"] == ["1/b"]
    assert obey(run, Set(ids=("1/b",), outputs=("x",)))["still_to_run"] == ["1/b"]
    assert "still_to_run" not in obey(run, Set(ids=("1/b",)))


def test_one_task_is_not_set_to_end_in_two_ways():
    run = Scenario("a => b")
    said = refusal(run, Set(ids=("1/b",), outputs=("succeeded", "failed")))
    assert said == "1/b ends in one way; give one of succeeded, failed"


# what changes nothing says so


def test_a_task_that_has_ended_is_not_held():
    run = Scenario("a => b", final=2).succeeds("1/a")
    said = refusal(run, Hold(ids=("1/a",)))
    assert said == "nothing was held: 1/a: it has ended and does not run again by itself"
    answer = obey(run, Hold(ids=("1/a", "2/b")))
    assert answer["unchanged"] == {"1/a": "it has ended and does not run again by itself"}
    assert answer["refused"] == ["1/a"]
    assert list(run.core.run.held_tasks) == [(2, "b")]


def test_a_task_that_has_ended_in_one_flow_is_held_for_another():
    run = Scenario("a => b => c", final=1).succeeds("1/a").succeeds("1/b").reflows("1/a")
    assert "unchanged" not in obey(run, Hold(ids=("1/b",)))
    assert run.succeeds("1/a", "1/c").pool == {"1/b": "held"}


def test_holding_again_and_releasing_what_is_not_held_say_that_nothing_was_changed():
    run = Scenario("a => b => c")
    assert "unchanged" not in obey(run, Hold(ids=("1/b",)))
    assert obey(run, Hold(ids=("1/b",)))["unchanged"] == {"1/b": "it is held already"}
    answer = obey(run, Release(ids=("1/b", "1/c")))
    assert answer["unchanged"] == {"1/c": "it is not held"}
    assert "refused" not in answer  # as it was asked to be
    obey(run, Hold(after="0"))
    assert refusal(run, Release(ids=("1/c",))) == (
        "nothing was released: 1/c: every task after 0 is held until the command release --all"
    )
    assert "changed" not in obey(run, Release(everything=True))
    answer = obey(run, Release(everything=True))
    assert (answer["changed"], answer["notices"]) == (False, ["nothing was held"])


def test_removing_what_never_ran_says_that_nothing_was_changed():
    run = Scenario("a => b => c").succeeds("1/a")
    answer = obey(run, Remove(ids=("1/a", "1/c")))
    assert answer["forgotten"] == ["1/a"]
    assert answer["unchanged"] == {"1/c": "it has not run, and will run when its needs are met"}
    assert answer["refused"] == ["1/c"]
    assert refusal(run, Remove(ids=("1/c",))) == (
        "nothing was removed: 1/c: it has not run, and will run when its needs are met"
    )


def test_triggering_what_is_active_says_that_nothing_was_changed():
    run = Scenario("a => b")
    assert obey(run, Trigger(ids=("1/a",)))["unchanged"] == {"1/a": "it is active already"}
    assert "unchanged" not in obey(run, Trigger(ids=("1/a",), flow="new"))


def test_a_bound_that_nothing_lies_beyond_is_told():
    run = Scenario("a", final=4)
    told = "no task comes after the final point 4"
    assert told in obey(run, Stop(at_point="9"))["notices"]
    assert told in obey(run, Hold(after="4"))["notices"]
    assert told not in obey(run, Stop(at_point="3")).get("notices", ())


def test_resuming_a_run_that_is_not_paused_says_that_nothing_was_changed():
    run = Scenario("a")
    answer = obey(run, Resume())
    assert (answer["changed"], answer["notices"]) == (False, ["it is not paused"])
    answer = obey(run, Stop(at_point="none"))
    assert (answer["changed"], answer["notices"]) == (False, ["it has no stop point"])


def test_a_task_is_removed_only_from_flows_that_it_is_in():
    """It was said to be removed, and went on."""
    run = Scenario("a => b & c").succeeds("1/a").fails("1/b").reflows("1/a")
    assert refusal(run, Remove(ids=("1/b",), flow="2")) == (
        "nothing was removed: 1/b: it is not in flow 2"
    )
    run = Scenario("a => b & c => d").succeeds("1/a").reflows("1/c").succeeds("1/c")
    assert refusal(run, Remove(ids=("1/a",), flow="2")) == (
        "nothing was removed: 1/a: it did not run in flow 2"
    )
    answer = obey(run, Remove(ids=("1/a", "1/c"), flow="2"))
    assert (answer["forgotten"], answer["refused"]) == (["1/c"], ["1/a"])


def test_a_task_that_runs_alone_is_not_removed_from_a_flow():
    """Its job was killed."""
    run = Scenario("a => b").succeeds("1/a").triggers("1/a")
    assert "not in flow 1" in refusal(run, Remove(ids=("1/a",), flow="1", kill=True))


def test_ids_without_an_active_task_are_told_by_kill_and_poll():
    run = Scenario("a => b\nc => d\ne").fails("1/c")
    for command in (Kill, Poll):
        answer = obey(run, command(ids=("1/a", "1/c")))
        assert answer["refused"] == ["1/c"]
        assert answer["unchanged"] == {"1/c": "it is not active and has no job"}
        answer = obey(run, command(ids=("1/a", "*/c:failed")))
        assert answer["refused"] == ["1/c"]
        # A pattern means the active ones.
        assert "refused" not in obey(run, command(ids=("1/*",)))


def test_prerequisites_of_a_task_that_needs_none_any_more_are_not_said_to_be_set():
    run = Scenario("a => b\nc => d\nd => e").succeeds("1/a").fails("1/c").triggers("1/d")
    answer = obey(run, Set(ids=("1/b", "1/e"), prerequisites=("all",)))
    assert answer["unchanged"] == {"1/b": "it is active already"}
    assert "refused" not in answer
    run.fails("1/b", "1/e")
    assert refusal(run, Set(ids=("1/b",), prerequisites=("1/a",))) == (
        "nothing was set: 1/b: it has ended, and runs again only if it is triggered"
    )
    answer = obey(run, Set(ids=("1/b", "1/d"), prerequisites=("all",)))
    assert (answer["refused"], answer["unchanged"]["1/d"]) == (["1/b"], "it is active already")
    assert "refused" not in obey(run, Set(ids=("1/b",), prerequisites=("all",), flow="new"))


def test_triggering_an_active_task_in_its_own_flow_says_that_nothing_was_changed():
    run = Scenario("a => b")
    for flow in ("1", "all", "none"):
        answer = obey(run, Trigger(ids=("1/a",), flow=flow))
        assert answer["unchanged"] == {"1/a": "it is active already"}


def test_under_cylc8_what_means_nothing_is_left_out_and_told():
    run = Scenario("a => b => c", "[[a, b, c]]", policy="cylc8").succeeds("1/a")
    answer = obey(run, Hold(ids=("1/c", "1/x")))
    assert answer["refused"] == ["1/x"]
    assert answer["notices"] == ["there is no task x in this workflow; there are a, b, c"]
    answer = obey(run, Set(ids=("1/c",), prerequisites=("1/b", "1/a")))
    assert answer["refused"] == ["1/a"]
    assert (
        answer["notices"][-1]
        == '1/c does not depend on "1/a:succeeded"; it depends on 1/b:succeeded'
    )
    answer = obey(run, Set(ids=("1/b", "1/c"), prerequisites=("1/b",)))
    assert answer["refused"] == ["1/b"]
    assert "no task x" in refusal(run, Hold(ids=("1/x",)))
