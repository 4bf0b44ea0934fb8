"""Rehearsals: a workflow on a virtual clock, from its graph to what would run (issue 4)."""

from pathlib import Path

import pytest

from tests.kit.scenario import compile_flow, compile_graph
from tidewheel.services.rehearsal.assumptions import AssumedEnd, Assumptions
from tidewheel.services.rehearsal.play import last_of, rehearse
from tidewheel.services.rehearsal.record import critical_path, lanes, marks, reason_text

HOURLY = """
    [scheduling]
        initial cycle point = 20300101T00Z
        final cycle point = 20300101T{last:02}Z
        {scheduling}
        [[graph]]
            PT1H = {graph}
    [runtime]
        [[root]]
            {runtime}
"""


def hourly(graph, last=2, scheduling="", runtime=""):
    return compile_flow(
        HOURLY.format(graph=graph, last=last, scheduling=scheduling, runtime=runtime)
    )


def played(graph, *, final=None, runtime="", scheduling="", policy="tidewheel", **assumed):
    if isinstance(graph, str):
        graph = compile_graph(graph, runtime, final=final, scheduling=scheduling, policy=policy)
    until, at = assumed.pop("until", None), assumed.pop("at", None)
    fails = [failure(one) for one in assumed.pop("fails", ())]
    return rehearse(graph, Assumptions(ends=fails, **assumed), until=until, at=at)


def failure(text):
    task, _, number = text.partition("@")
    return AssumedEnd(*task.split("/"), int(number) if number else None)


def spans(rehearsal):
    """When each submission ran, in seconds from the beginning."""
    return {
        f"{rehearsal.id_of(one.key)}/{one.submit}": (
            one.start_at - rehearsal.begins_at,
            one.end_at - rehearsal.begins_at,
        )
        for one in rehearsal.submissions
    }


def path(rehearsal):
    return [
        (rehearsal.id_of(hop.submission.key), str(hop.submission.waited_for))
        for hop in critical_path(rehearsal)
    ]


def reasons(rehearsal):
    return [reason for cause in rehearsal.causes for reason in cause.reasons]


# Run lengths.


def test_a_job_takes_ten_seconds_if_nobody_says_otherwise():
    run = played("a => b")
    assert spans(run) == {"1/a/1": (0, 10), "1/b/1": (10, 20)}
    assert (run.status, run.makespan_seconds) == ("completed", 20)


def test_a_job_takes_as_long_as_its_simulation_says():
    runtime = "[[a]]\n[[[simulation]]]\ndefault run length = PT1M"
    assert spans(played("a", runtime=runtime)) == {"1/a/1": (0, 60)}


def test_a_time_limit_counts_only_with_a_speedup_factor():
    limit = "[[a]]\nexecution time limit = PT10M\n"
    assert spans(played("a", runtime=limit)) == {"1/a/1": (0, 10)}
    faster = limit + "[[[simulation]]]\nspeedup factor = 5"
    assert spans(played("a", runtime=faster)) == {"1/a/1": (0, 120)}


def test_a_given_length_wins_over_a_learnt_one_and_both_over_the_definition():
    run = played("a & b & c", lengths={"a": 1}, learnt={"a": 2, "b": 3})
    assert spans(run) == {"1/a/1": (0, 1), "1/b/1": (0, 3), "1/c/1": (0, 10)}


def test_a_job_that_is_known_to_take_longer_than_its_limit_fails_at_the_limit():
    limit = "[[a]]\nexecution time limit = PT1M\n"
    run = played("a:fail? => b", runtime=limit, lengths={"a": 90})
    assert spans(run) == {"1/a/1": (0, 60), "1/b/1": (60, 70)}


def test_a_skipped_job_takes_no_time():
    run = played("a => b", runtime="[[a]]\nrun mode = skip")
    assert spans(run) == {"1/a/1": (0, 0), "1/b/1": (0, 10)}


# Failures.


def test_a_named_task_fails_at_every_try():
    retries = "[[a]]\nexecution retry delays = PT5S, PT7S"
    run = played("a => b", runtime=retries, fails=["1/a"])
    assert spans(run) == {"1/a/1": (0, 10), "1/a/2": (15, 25), "1/a/3": (32, 42)}
    assert run.status == "stalled"
    assert reasons(run) == ["1/a failed and is incomplete: it needs the output succeeded"]


def test_a_named_try_fails_alone():
    retries = "[[a]]\nexecution retry delays = PT5S"
    run = played("a => b", runtime=retries, fails=["1/a@1"])
    assert spans(run) == {"1/a/1": (0, 10), "1/a/2": (15, 25), "1/b/1": (25, 35)}
    assert [one.ended for one in run.submissions] == ["failed", "succeeded", "succeeded"]


@pytest.mark.parametrize("name", ["*/mod*", "*/model", "2/MODELS"])
def test_globs_and_families_name_tasks_that_fail(name):
    run = played(
        "model => post",
        final=2,
        runtime="[[MODELS]]\n[[model]]\ninherit = MODELS",
        fails=[name],
    )
    failed = {run.id_of(one.key) for one in run.submissions if one.ended == "failed"}
    assert failed == {"2/model"} | (set() if name.startswith("2") else {"1/model"})


def test_a_failure_that_met_nobody_is_reported():
    assert played("a", fails=["3/a"]).unused_ends == ["3/a"]
    assert played("a", fails=["*/a"]).unused_ends == []


def test_the_definition_itself_may_say_what_fails():
    runtime = (
        "[[a]]\nexecution retry delays = PT1S\n[[[simulation]]]\nfail cycle points = 2\n"
        "fail try 1 only = True"
    )
    run = played("a", final=3, runtime=runtime)
    ends = {f"{run.id_of(one.key)}/{one.submit}": one.ended for one in run.submissions}
    assert ends["2/a/1"] == "failed"
    assert [one for one in ends if ends[one] == "succeeded"] == ["1/a/1", "3/a/1", "2/a/2"]


def test_what_a_handled_failure_leaves_behind_is_a_warning():
    run = played("a => b\na:fail => mail", fails=["1/a"])
    assert run.status == "completed"
    assert run.lost == [
        "1/b will not run: it needs 1/a:succeeded; 1/a failed, handled by 1/mail"
    ]


def test_a_failure_before_a_dependence_on_the_point_before_blocks_and_stalls():
    run = played("model[-P1] => model\nmodel:fail => mail", final=4, fails=["2/model"])
    assert run.status == "stalled"
    assert [run.id_of(cause.key) for cause in run.causes] == ["3/model"]


# Outputs.


def test_a_job_makes_its_custom_outputs_just_before_it_succeeds():
    runtime = "[[a]]\n[[[outputs]]]\nx = a message"
    run = played("a:x => b\na => c", runtime=runtime)
    assert spans(run) == {"1/a/1": (0, 10), "1/b/1": (10, 20), "1/c/1": (10, 20)}


def test_a_failing_job_makes_none():
    runtime = "[[a]]\n[[[outputs]]]\nx = a message"
    run = played("a:x? => b\na:fail? => c", runtime=runtime, fails=["1/a"])
    assert spans(run) == {"1/a/1": (0, 10), "1/c/1": (10, 20)}


def test_who_waits_for_a_start_starts_with_it():
    assert spans(played("a:start => b"))["1/b/1"] == (0, 10)


def test_a_long_chain_of_starts_is_no_trouble():
    run = played("a[-P1]:start => a", final=3000, scheduling="runahead limit = P3000")
    assert len(run.submissions) == 3000
    assert run.makespan_seconds == 300  # a hundred at once


# Waiting.


def test_a_limit_group_lets_one_go_when_another_ends():
    queues = "[[queues]]\n[[[q]]]\nlimit = 1\nmembers = a, b"
    run = played("a & b", scheduling=queues)
    assert spans(run) == {"1/a/1": (0, 10), "1/b/1": (10, 20)}
    assert path(run) == [("1/a", "start"), ("1/b", "limit")]
    assert run.submissions[1].wait_seconds == 10


def test_the_slots_of_the_worker_are_taken_in_order():
    run = played("a & b & c", slots=2)
    assert spans(run) == {"1/a/1": (0, 10), "1/b/1": (0, 10), "1/c/1": (10, 20)}
    assert path(run)[-1] == ("1/c", "slot")


def test_the_runahead_limit_holds_back_what_is_parentless():
    run = played("a", final=4, scheduling="runahead limit = P1")
    assert spans(run)["3/a/1"] == (10, 20)
    assert path(run) == [("1/a", "start"), ("3/a", "runahead")]


def test_a_retry_waits_for_its_delay():
    run = played("a", runtime="[[a]]\nexecution retry delays = PT1M", fails=["1/a@1"])
    assert path(run) == [("1/a", "start"), ("1/a", "retry")]
    assert [hop.idle_seconds for hop in critical_path(run)] == [0, 60]


def test_the_critical_path_is_the_chain_that_determined_the_end():
    run = played("a => b => d\nc => d", lengths={"a": 5, "b": 5, "c": 30})
    assert path(run) == [("1/c", "start"), ("1/d", "parent")]
    hop = critical_path(run)[-1]
    assert reason_text(hop, run) == "parent 1/c"


def test_a_rehearsal_in_which_nothing_runs_has_no_path():
    run = played("a => b", fails=["1/a"], until=0)
    assert (run.submissions, path(run)) == ([], [])


# Clocks.


def test_the_clock_begins_at_the_first_point_and_wall_clocks_wait_for_theirs():
    run = played(hourly("@wall_clock => a"))
    assert run.clock_text(run.begins_at) == "2030-01-01T00:00:00Z"
    assert [start for start, _ in spans(run).values()] == [0, 3600, 7200]
    assert path(run) == [("20300101T0200Z/a", "clock")]


def test_an_offset_moves_a_wall_clock():
    xtriggers = "[[xtriggers]]\n late = wall_clock(offset=PT10M)"
    run = played(hourly("@late => a", last=0, scheduling=xtriggers))
    assert spans(run) == {"20300101T0000Z/a/1": (600, 610)}


def test_the_clock_follows_the_calendar_of_the_workflow():
    run = played(
        compile_flow("""
            [scheduler]
                cycle point num expanded year digits = 2
            [scheduling]
                cycling mode = 360day
                initial cycle point = +0020300230T00Z
                final cycle point = +P1M
                [[graph]]
                    P1M = @wall_clock => a
            [runtime]
                [[a]]
            """)
    )
    assert run.makespan_seconds == 30 * 86400 + 10
    assert run.clock_text(run.ends_at) == "+002030-03-30T00:00:10Z"


def test_a_clock_that_is_past_holds_nobody():
    graph = hourly("@wall_clock => a", last=1)
    run = played(graph, at=float(graph.cycling.initial + 86400))
    assert spans(run)["20300101T0100Z/a/1"] == (0, 10)
    assert path(run) == [("20300101T0000Z/a", "start")]


def test_clock_triggered_tasks_wait_as_well():
    special = "[[special tasks]]\n clock-trigger = a(PT5M)"
    run = played(hourly("a", last=0, scheduling=special))
    assert spans(run) == {"20300101T0000Z/a/1": (300, 310)}


def test_a_task_whose_time_has_passed_expires():
    special = "[[special tasks]]\n clock-expire = b(PT30M)"
    arrows = '"""\na & c => b?\nb:expire? => d\n"""'
    graph = hourly(arrows, last=0, scheduling=special)
    late = played(graph, lengths={"a": 3600})
    assert [late.id_of(key) for key in late.expired] == ["20300101T0000Z/b"]
    assert spans(late)["20300101T0000Z/d/1"] == (1800, 1810)
    assert played(graph).expired == []


def test_an_xtrigger_that_nobody_can_ask_is_satisfied_after_one_interval():
    xtriggers = "[[xtriggers]]\nx = echo(succeed=True):PT7S"
    run = played("@x => a", scheduling=xtriggers)
    assert spans(run) == {"1/a/1": (7, 17)}
    assert run.assumed == ["xtrigger x (echo) is satisfied after 7 s"]
    assert path(run) == [("1/a", "xtrigger")]


# How far.


def test_nothing_beyond_the_given_point_is_released():
    run = played("a[-P1] => a", final=10, until=3)
    assert list(spans(run)) == ["1/a/1", "2/a/1", "3/a/1"]
    assert run.status == "stopped"
    assert not run.is_stalled


def test_a_workflow_without_an_end_has_a_last_point_all_the_same():
    text = HOURLY.format(graph="a", last=0, scheduling="", runtime="")
    endless = compile_flow(text.replace("final cycle point = 20300101T00Z", ""))
    assert endless.cycling.style.text(last_of(endless, 3)) == "20300101T0200Z"
    assert last_of(hourly("a")) is None


def test_too_many_submissions_end_a_rehearsal():
    run = rehearse(compile_graph("a[-P1] => a", final=100), submissions_max=5)
    assert run.is_cut
    assert len(run.submissions) == 6


def test_progress_is_told_now_and_then():
    seen = []
    rehearse(compile_graph("a[-P1] => a", final=3000), on_progress=seen.append)
    assert [one.submissions for one in seen] == [2001]


def test_a_hold_point_leaves_a_run_that_waits_for_release():
    run = played("a", final=2, scheduling="hold after cycle point = 1")
    assert run.status == "waiting for release"
    assert reasons(run) == ["2/a is held"]


# What it leaves.


def test_the_trigger_log_names_every_parent_that_was_true():
    run = played(
        "FAM:succeed-all & z[-P1] => z", final=1, runtime="[[FAM]]\n[[a, b]]\ninherit = FAM"
    )
    assert list(run.trigger_lines()) == [
        "1/a -triggered off [] in flow 1",
        "1/b -triggered off [] in flow 1",
        "1/z -triggered off ['0/z', '1/a', '1/b'] in flow 1",
    ]


def test_of_any_member_only_those_are_named_that_made_the_output():
    family = "[[FAM]]\n[[a, b]]\ninherit = FAM"
    run = played("FAM:succeed-any => z", runtime=family, lengths={"b": 20})
    assert list(run.trigger_lines())[-1] == "1/z -triggered off ['1/a'] in flow 1"


def test_names_are_summed_up_in_the_order_of_the_definition():
    run = played("a => b", final=2, lengths={"a": 4, "b": 6}, slots=1)
    summary = {one.name: one for one in run.by_name()}
    assert list(summary) == ["a", "b"]
    assert (summary["a"].runs, summary["a"].failures) == (2, 0)
    assert (summary["a"].mean_length_seconds, summary["a"].mean_wait_seconds) == (4, 2)


def test_the_same_assumptions_give_the_same_rehearsal():
    text = "a & b => c\nc[-P1] & d => a"
    first, second = (played(text, final=20, fails=["*/d@1"], slots=2) for _ in range(2))
    assert spans(first) == spans(second)
    assert path(first) == path(second)


def test_in_the_style_of_cylc_a_rehearsal_follows_its_rules():
    run = played("a? => b\na:fail? => c", runtime="[[a, b, c]]", fails=["1/a"], policy="cylc8")
    assert list(run.trigger_lines())[-1] == "1/c -triggered off ['1/a'] in flow 1"


# Charts.


def test_bars_of_one_lane_never_overlap():
    run = played("a", final=5, lengths={"a": 7})
    rows, left_out = lanes(run, 3)
    assert left_out == 2
    assert [(lane.title, len(lane.bars)) for lane in rows] == [("a", 1), ("", 1), ("", 1)]
    once, _ = lanes(played("a[-P1] => a", final=5), 100)
    assert [len(lane.bars) for lane in once] == [5]


@pytest.mark.parametrize(
    ("seconds", "last", "count"),
    [(0, 0, 1), (10, 10, 6), (90, 90, 7), (86400, 86400, 9), (4e9, 0, 0)],
)
def test_an_axis_has_round_marks(seconds, last, count):
    found = marks(seconds)
    assert found[0] == 0
    assert len(found) <= 10
    assert found[-1] <= seconds
    if count:
        assert (found[-1], len(found)) == (last, count)


def test_the_package_asks_the_core_in_one_place_only():
    folder = Path(rehearse.__code__.co_filename).parent
    users = [one.name for one in folder.glob("*.py") if "sched.step" in one.read_text("utf-8")]
    assert users == ["play.py"]
