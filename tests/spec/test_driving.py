"""A run under its scheduler: from the core's wishes to jobs and back (SEMANTICS §6, 9, 10)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.kit.driven_run import START, DrivenRun
from tidewheel.core.operator import verbs
from tidewheel.core.sched.pool import NOTHING_RAN
from tidewheel.errors import Refused
from tidewheel.quantities import show_instant

CHAIN = """
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = 2
    [[graph]]
        P1 = a => b
[runtime]
    [[a]]
        execution retry delays = PT10S
        submission retry delays = PT5S
        [[[outputs]]]
            ready = the file is ready
    [[b]]
        script = echo hello
"""


def one_point(graph: str, runtime: str = "", events: str = "") -> str:
    return (
        f"[scheduler]\n    [[events]]\n        {events}\n"
        f'[scheduling]\n    [[graph]]\n        R1 = """\n{graph}\n"""\n'
        f"[runtime]\n    [[root]]\n{runtime}\n"
    )


@pytest.fixture
def flow(tmp_path: Path):
    made: list[DrivenRun] = []

    def make(text: str, **options: object) -> DrivenRun:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(DrivenRun(folder, text, **options))
        return made[-1]

    yield make
    for run in made:
        run.close()


def test_a_run_goes_from_its_first_task_to_its_end(flow):
    run = flow(CHAIN)
    assert run.running == ["1/a/1", "2/a/1"]
    run.ends("1/a", "2/a").ends("1/b", "2/b")
    assert run.status == "completed"
    assert run.submitted == ["1/a/01", "2/a/01", "1/b/01", "2/b/01"]


def test_a_failure_is_tried_again_after_its_delay_as_a_new_submission(flow):
    run = flow(CHAIN).fails("1/a")
    assert run.running == ["2/a/1"]
    run.waits(10)
    assert run.running == ["1/a/2", "2/a/1"]
    assert "retrying in PT10S" in run.log


def test_the_delay_of_a_retry_survives_a_crash_of_the_scheduler(flow):
    run = flow(CHAIN).fails("1/a").crash()
    assert run.running == ["2/a/1"]
    assert run.waits(10).running == ["1/a/2", "2/a/1"]


def test_a_job_that_cannot_be_started_has_its_own_retries(flow):
    run = flow(CHAIN).cannot_start("1/a").waits(5)
    assert run.running == ["1/a/2", "2/a/1"]
    run.cannot_start("1/a")
    assert "submit-failed" in run.log


def test_a_message_makes_the_output_that_it_stands_for(flow):
    run = flow(
        one_point("a:ready => b\n a?", "[[a]]\n[[[outputs]]]\nready = the file is ready\n[[b]]")
    )
    run.starts("1/a").says("1/a", "WARNING:the file is ready")
    assert run.running == ["1/a/1", "1/b/1"]


def test_a_message_that_is_no_output_changes_nothing(flow):
    run = flow(one_point("a => b", "[[a, b]]")).starts("1/a").says("1/a", "half way")
    assert run.running == ["1/a/1"]


MEANT = "[[a]]\n[[[outputs]]]\nready = the file is ready\nday2 = day 2 is there\n[[b]]"


@pytest.mark.parametrize(
    "said", ["the file is redy", "The file is ready.", "WARNING:the file  is ready", "ready"]
)
def test_a_message_that_is_nearly_that_of_an_output_is_warned_of(flow, said):
    run = flow(one_point("a:ready? => b", MEANT)).starts("1/a").says("1/a", said)
    assert run.running == ["1/a/1"]
    (line,) = [one for one in run.log.splitlines() if "which differs from" in one]
    assert " WARNING - 1/a sent the message " in line
    assert "which differs from 'the file is ready': its output ready is still missing" in line


@pytest.mark.parametrize("said", ["half way", "day 1 is there", "the file is being written"])
def test_a_message_that_is_like_no_output_is_not_warned_of(flow, said):
    run = flow(one_point("a:ready? => b", MEANT)).starts("1/a").says("1/a", said)
    assert "which differs from" not in run.log


def test_an_output_that_is_not_declared_is_warned_of_or_refused(flow):
    run = flow(one_point("a:ready? => b", MEANT)).starts("1/a").says("1/a", output="redy")
    assert run.running == ["1/a/1"]
    sentence = "a has no output 'redy'; did you mean ready? Its outputs: ready, day2"
    assert f"WARNING - 1/a announced an unknown output: {sentence}" in run.log
    with pytest.raises(Refused, match="did you mean ready"):
        run.gives(verbs.Message(id="1/a", output="redy"))
    run.gives(verbs.Message(id="1/a", output="ready"))
    assert run.running == ["1/a/1", "1/b/1"]


def test_an_output_of_a_task_that_declares_none_is_told_how_to_declare_it(flow):
    run = flow(one_point("a => b", "[[a, b]]")).starts("1/a")
    with pytest.raises(Refused) as refused:
        run.gives(verbs.Message(id="1/a", output="ready"))
    assert str(refused.value) == (
        "a has no output 'ready'; declare it: "
        "[runtime] [[a]] [[[outputs]]] ready = a message of its job"
    )


def test_with_an_init_script_a_job_has_started_only_when_it_says_so(flow):
    run = flow(one_point("a:start => b\n a", "[[a]]\ninit-script = module load x\n[[b]]"))
    assert run.starts("1/a").running == ["1/a/1"]
    assert run.says("1/a", output="started").running == ["1/a/1", "1/b/1"]


def test_a_killed_task_is_held_and_not_tried_again(flow):
    run = flow(CHAIN).starts("1/a")
    run.gives(verbs.Kill(ids=("1/a",)))
    run.fails("1/a").waits(10)
    assert run.running == ["2/a/1"]
    assert "held" in run.log


def test_a_job_whose_workers_vanish_too_often_has_failed(flow):
    run = flow(one_point("a:fail => mail\n a => b", "[[a, b, mail]]")).starts("1/a").lapses(6)
    assert run.running == ["1/mail/1"]


def test_what_a_superseded_attempt_says_is_refused(flow):
    run = flow(one_point("a => b", "[[a, b]]"))
    stale = run.task_id("1/a")
    run.lapses()
    assert run.task_id("1/a") == stale
    run.ends("1/a")
    with pytest.raises(Refused):
        run.ends("1/a")
    assert run.submitted == ["1/a/01", "1/b/01"]


def test_restart_at_every_step_is_no_restart(flow):
    text = CHAIN.replace("P1 = a => b", 'P1 = """a:ready => b\n a? & b[-P1] => c"""') + "[[c]]"
    results = []
    for crashes in (False, True):
        run = flow(text)

        def maybe_crash(run=run, crashes=crashes):
            return run.crash() if crashes else run

        for verb, name in (
            ("starts", "1/a"),
            ("fails", "1/a"),
            ("starts", "2/a"),
            ("ends", "2/a"),
        ):
            getattr(maybe_crash(), verb)(name)
        maybe_crash().waits(10)
        maybe_crash().says("1/a", "the file is ready")
        maybe_crash().ends("1/a").ends("1/b")
        maybe_crash()
        results.append((run.submitted, run.status, sorted(run.running)))
    assert results[0] == results[1]


def test_a_stalled_run_waits_for_its_timeout_and_then_stops(flow):
    run = flow(one_point("a => b", "[[a, b]]", "stall timeout = PT1H")).fails("1/a")
    assert run.status == "stalled"
    assert run.waits(3599).view.owner is not None
    run.waits(1)
    assert (run.status, run.view.owner) == ("stalled", None)


def test_a_stall_that_is_mended_has_no_timeout(flow):
    run = flow(one_point("a => b", "[[a, b]]", "stall timeout = PT1H")).fails("1/a")
    run.gives(verbs.Set(ids=("1/a",)))
    assert run.running == ["1/b/1"]
    assert run.waits(7200).status == "running"


def test_a_stalled_run_that_was_let_go_goes_on_with_the_trigger_that_reopened_it(flow):
    run = flow(one_point("a => b", "[[a, b]]", "stall timeout = PT0S")).fails("1/a")
    assert run.view.owner is None
    with pytest.raises(Refused, match="tidewheel run flow/run1"):
        run.gives(verbs.Hold(ids=("1/a",)))
    kept = run.asks(verbs.Trigger(ids=("1/a",)))
    run.carries_on()
    assert run.answer(kept).refused is None
    assert (run.status, run.running) == ("running", ["1/a/2"])
    run.ends("1/a").ends("1/b")
    assert run.status == "completed"


def test_a_completed_run_is_reopened_and_completes_again(flow):
    run = flow(one_point("a => b", "[[a, b]]")).ends("1/a").ends("1/b")
    assert run.status == "completed"
    run.asks(verbs.Trigger(ids=("1/a",)))
    run.carries_on()
    assert (run.status, run.running) == ("running", ["1/a/2"])
    run.ends("1/a")
    assert run.status == "completed"


def test_a_trigger_that_the_end_of_its_run_overtook_is_kept(flow):
    run = flow(CHAIN)
    late = run.asks(verbs.Trigger(ids=("1/b",)))
    run.lets_go().carries_on()
    assert run.answer(late).refused is None and "1/b/1" in run.running


def test_what_nobody_had_taken_when_a_run_stopped_is_the_same_submission_later(flow):
    run = flow(CHAIN)
    before = run.running
    run.gives(verbs.Stop(mode="now"))
    run.carries_on()
    assert run.running == before


def test_a_stopped_run_is_carried_on_where_it_was(flow):
    run = flow(CHAIN)
    run.gives(verbs.Stop())
    run.ends("1/a")
    assert run.status == "stopping"
    run.ends("2/a")
    assert (run.status, run.running) == ("stopped", [])
    run.carries_on()
    assert run.running == ["1/b/1", "2/b/1"]


def test_a_clean_stop_waits_for_no_task_that_no_worker_has_taken(flow):
    run = flow(CHAIN)
    run.worker_has_room = False
    run.ends("1/a")
    run.gives(verbs.Stop())
    assert run.status == "stopping"
    run.worker_has_room = True
    assert run.goes_on().running == ["1/b/1", "2/a/1"]
    assert "1/b" not in run.tasks, "taken, although the run is stopping"
    run.ends("2/a")
    assert (run.status, run.running) == ("stopped", ["1/b/1"])
    run.carries_on().ends("1/b", "2/b")
    assert (run.status, run.submitted.count("1/b/01")) == ("completed", 1)


def test_a_clean_stop_that_another_scheduler_takes_over_waits_for_no_more(flow):
    run = flow(CHAIN)
    run.worker_has_room = False
    run.ends("1/a")
    run.gives(verbs.Stop())
    run.worker_has_room = True
    run.crash()
    assert (run.status, "1/b" in run.tasks) == ("stopping", False)
    run.lapses()
    assert (run.status, run.running) == ("stopped", ["1/b/1", "2/a/1"])


def test_a_clean_stop_waits_for_a_simulated_job(flow):
    text = one_point("a => b", "[[[simulation]]]\ndefault run length = PT30S\n[[a, b]]")
    run = flow(text, mode="simulation")
    run.gives(verbs.Stop())
    assert run.waits(20).status == "stopping"
    assert run.waits(10).status == "stopped"


def test_stop_now_leaves_the_jobs_and_finds_them_again(flow):
    run = flow(CHAIN).starts("1/a")
    run.gives(verbs.Stop(mode="now"))
    assert (run.status, run.running) == ("stopped", ["1/a/1", "2/a/1"])
    run.ends("1/a").carries_on()
    assert run.running == ["1/b/1", "2/a/1"]


def test_simulated_jobs_take_their_time_and_enter_no_queue(flow):
    text = one_point("a => b", "[[[simulation]]]\ndefault run length = PT30S\n[[a, b]]")
    run = flow(text, mode="simulation")
    assert run.running == []
    assert run.waits(30).status == "running"
    assert run.waits(30).status == "completed"
    assert run.triggers.read_text().splitlines()[-1] == ("1/b -triggered off ['1/a'] in flow 1")


def test_the_trigger_log_names_no_instance_before_the_first_of_a_sequential_task(flow):
    special = "    [[special tasks]]\n        sequential = a\n    [[graph]]"
    run = flow(CHAIN.replace("    [[graph]]", special), mode="simulation").waits(60)
    lines = [one for one in run.triggers.read_text().splitlines() if "/a -" in one]
    assert lines == [
        "1/a -triggered off [] in flow 1",
        "2/a -triggered off ['1/a'] in flow 1",
    ]


def test_a_simulated_job_goes_on_after_a_crash(flow):
    text = one_point("a => b", "[[[simulation]]]\ndefault run length = PT30S\n[[a, b]]")
    run = flow(text, mode="simulation").waits(29).crash()
    assert run.waits(1).crash().waits(30).status == "completed"


def test_a_skipped_run_is_over_at_once(flow):
    run = flow(one_point("a => b", "[[a, b]]"), mode="skip")
    assert (run.status, run.submitted) == ("completed", [])


def test_one_node_may_be_skipped_in_a_live_run(flow):
    run = flow(one_point("a => b", "[[a]]\nrun mode = skip\n[[b]]"))
    assert run.submitted == ["1/b/01"]


def test_a_broadcast_changes_the_jobs_to_come(flow):
    run = flow(CHAIN)
    run.gives(verbs.Broadcast(namespaces=("b",), settings=("[environment]X=7",)))
    run.crash().ends("1/a")
    assert 'X="7"' in run.jobs["1/b/01"]
    run.gives(verbs.Broadcast(namespaces=("b",), cancel=("[environment]X",)))
    assert 'X="7"' not in run.ends("2/a").jobs["2/b/01"]


def test_a_broadcast_to_a_task_that_has_begun_says_that_it_counts_only_if_it_runs_again(flow):
    run = flow(CHAIN)
    to_one = verbs.Broadcast(points=("1",), namespaces=("a",), settings=("script=true",))
    counts = "so what is broadcast counts only if it runs again"
    assert run.gives(to_one)["notices"] == [f"1/a is active, {counts}"]
    assert run.ends("1/a").gives(to_one)["notices"] == [f"1/a has ended, {counts}"]
    to_next = verbs.Broadcast(points=("2",), namespaces=("b",), settings=("script=true",))
    assert "notices" not in run.gives(to_next)


def test_a_broadcast_of_nonsense_is_refused_with_what_would_be_accepted(flow):
    run = flow(CHAIN)
    with pytest.raises(Refused, match=r"there is no task or family c"):
        run.gives(verbs.Broadcast(namespaces=("c",), settings=("script=true",)))
    with pytest.raises(Refused, match="script"):
        run.gives(verbs.Broadcast(settings=("scirpt=true",)))


def test_a_reload_takes_the_whole_definition(flow):
    run = flow(CHAIN)
    digest = run.reads(CHAIN.replace("a => b", "a => c => b") + "    [[c]]\n")
    run.gives(verbs.Reload(definition=digest))
    assert run.ends("1/a").running == ["1/c/1", "2/a/1"]
    assert run.crash().ends("1/c").running == ["1/b/1", "2/a/1"]


def test_a_reload_of_a_broken_definition_changes_nothing(flow):
    run = flow(CHAIN)
    broken = run.home / "runs/flow/run1/flow.cylc"
    broken.write_text(CHAIN.replace("a => b", "a => => b"))
    with pytest.raises(Refused, match="error"):
        run.gives(verbs.Reload())
    assert run.ends("1/a").running == ["1/b/1", "2/a/1"]


def test_a_reload_to_a_place_that_nobody_described_changes_nothing(flow):
    run = flow(CHAIN)
    digest = run.reads(CHAIN.replace("script = echo hello", "platform = moon"))
    with pytest.raises(Refused, match="platform = moon of b is not known"):
        run.gives(verbs.Reload(definition=digest))
    assert run.ends("1/a").running == ["1/b/1", "2/a/1"]


@pytest.mark.parametrize(
    ("setting", "names"),
    [
        ("platform=moon", ("b",)),
        ("platform=moon", ("root",)),
        ("[remote]host=moon", ("b",)),
        ("[job]batch system=moon", ("b",)),
    ],
)
def test_a_broadcast_of_a_place_that_nobody_described_is_refused(flow, setting, names):
    run = flow(CHAIN)
    words = r"= moon of .*b.* is not known: no job could run there; known platforms: localhost"
    for points in (("*",), ("1",)):
        with pytest.raises(Refused, match=words):
            run.gives(verbs.Broadcast(namespaces=names, points=points, settings=(setting,)))
    run.gives(verbs.Broadcast(namespaces=names, settings=("platform=localhost",)))
    assert run.ends("1/a").running == ["1/b/1", "2/a/1"]


def test_a_task_that_is_skipped_may_be_broadcast_any_place_until_it_is_live(flow):
    run = flow(CHAIN)
    run.gives(verbs.Broadcast(settings=("run mode=skip", "platform=moon")))
    with pytest.raises(Refused, match="platform = moon of a, b is not known"):
        run.gives(verbs.Broadcast(settings=("run mode=live",)))
    run.gives(verbs.Broadcast(clear=True))


def test_a_run_may_start_paused_and_hold_after_a_point(flow):
    run = flow(CHAIN, paused=True, hold_after="1")
    assert (run.status, run.running) == ("paused", [])
    run.gives(verbs.Resume())
    assert run.running == ["1/a/1"]


def test_a_run_may_start_from_one_task(flow):
    run = flow(CHAIN, start_tasks=("2/b",))
    assert run.running == ["2/b/1"]
    assert run.ends("2/b").status == "completed"


def test_an_unknown_command_is_refused_and_the_run_goes_on(flow):
    run = flow(CHAIN)
    with pytest.raises(Refused, match="no task zzz"):
        run.gives(verbs.Trigger(ids=("1/zzz",)))
    assert run.ends("1/a").running == ["1/b/1", "2/a/1"]


def test_a_run_stops_at_a_time(flow):
    run = flow(CHAIN)
    answer = run.gives(verbs.Stop(at_time="PT1M"))
    assert answer["stops_at"] == show_instant(START + 60)
    assert run.waits(61).status == "stopping"


def test_a_completed_run_that_ran_nothing_says_so(flow):
    again = "P1 = a[-P1]:fail? => a"  # nothing failed before the start
    run = flow(CHAIN.replace("P1 = a => b", again))
    assert (run.status, run.submitted) == ("completed", [])
    assert run.view.reason == NOTHING_RAN


def test_a_run_may_be_aborted_by_the_first_failure(flow):
    run = flow(
        CHAIN.replace("execution retry delays = PT10S", ""), abort_if_any_task_fails=True
    )
    run.fails("1/a")
    assert (run.status, run.view.reason) == ("stopped", "aborted: 1/a failed")


def test_a_retry_is_no_failure_that_aborts(flow):
    run = flow(CHAIN, abort_if_any_task_fails=True).fails("1/a")
    assert run.status == "running"


def test_a_command_that_came_too_late_is_not_obeyed_when_the_run_is_carried_on(flow):
    run = flow(CHAIN)
    late = run.asks(verbs.Pause())
    run.lets_go().carries_on()
    assert run.status == "running"
    assert "ended before this command took effect" in run.answer(late).refused


def test_what_an_xtrigger_answers_reaches_the_job_and_no_shell_expands_it(flow):
    run = flow(
        """
        [scheduling]
            [[xtriggers]]
                data = echo(path='$(touch /tmp/oops)', succeed=True)
            [[graph]]
                R1 = @data => a
        [runtime]
            [[a]]
        """
    )
    run.until(lambda: run.running)
    assert "data_path='$(touch /tmp/oops)'" in run.jobs["1/a/01"]


def test_a_command_meets_the_run_as_it_was_seen_before_the_latest_reports(flow):
    run = flow(CHAIN).ends_unheard("1/a")
    run.gives(verbs.Hold(ids=("1/b",)))
    assert run.running == ["2/a/1"]


WAITING = """
[scheduling]
    [[special tasks]]
        external-trigger = a("new scan"){more}
    [[graph]]
        R1 = a & b
[runtime]
    [[a, b]]
"""


@pytest.mark.parametrize(
    ("more", "message", "advice"),
    [
        ("", "new scna", "did you mean 'new scan'?"),
        (', b("done")', "x", "the messages are 'done', 'new scan'"),
    ],
)
def test_a_message_from_outside_that_no_task_waits_for_is_refused(flow, more, message, advice):
    run = flow(WAITING.format(more=more))
    with pytest.raises(Refused) as refused:
        run.gives(verbs.ExtTrigger(message=message))
    assert str(refused.value) == (
        f"tasks of this run do not wait for the message {message!r}; {advice}"
    )
    answer = run.gives(verbs.ExtTrigger(message="new scan"))
    assert answer["notices"] == ["1/a takes it"]
    assert "1/a/1" in run.running
    assert run.gives(verbs.ExtTrigger(message="new scan"))["notices"] == [
        "no task waits for this message now: it is kept for the next one that does"
    ]


def test_a_message_to_a_run_that_waits_for_none_is_refused(flow):
    with pytest.raises(
        Refused, match="no task of this run waits for a message from outside, such as 'x'"
    ):
        flow(CHAIN).gives(verbs.ExtTrigger(message="x"))


@pytest.mark.parametrize(
    "sent", ["~a;touch$IFS$HOME/oops", "~a;touch oops;/b", '"$(id)`id`', "~"]
)
def test_the_id_of_a_pushed_message_is_never_taken_for_a_command(flow, tmp_path, sent):
    run = flow(
        """
        [scheduling]
            [[special tasks]]
                external-trigger = a("the data are there")
            [[graph]]
                R1 = a
        [runtime]
            [[a]]
        """
    )
    run.gives(verbs.ExtTrigger(message="the data are there", trigger_id=sent))
    lines = run.jobs["1/a/01"].splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith("CYLC_EXT_TRIGGER_ID="))
    script = f'{lines[first]}\nprintf %s "$CYLC_EXT_TRIGGER_ID"'
    here = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    said = subprocess.check_output(["bash", "-euc", script], env=here, cwd=tmp_path, text=True)
    assert said in (sent, str(tmp_path))
    assert not (tmp_path / "oops").exists()


@pytest.mark.parametrize(("first", "then"), [("live", "simulation"), ("simulation", "live")])
def test_a_job_is_killed_as_it_was_begun_whatever_the_mode_is_now(flow, first, then):
    run = flow(CHAIN)
    run.gives(verbs.Broadcast(namespaces=("b",), settings=(f"run mode = {first}",)))
    run.ends("1/a")
    run.gives(verbs.Broadcast(namespaces=("b",), settings=(f"run mode = {then}",)))
    assert run.gives(verbs.Kill(ids=("1/b",)))["killed"] == ["1/b"]
    if first == "live":
        run.fails("1/b")
    assert (run.running, run.status) == (["2/a/1"], "running")
    assert "[1/b/01:running(held)] => failed(held)" in run.log


def test_a_run_that_does_something_is_not_inactive(flow):
    run = flow(
        CHAIN
        + """
        [scheduler]
            [[events]]
                inactivity timeout = PT60S
                abort on inactivity timeout = True
        """
    )
    run.waits(40).ends("1/a").waits(40)
    assert run.status == "running"
    assert run.waits(20).view.reason == "aborted: the inactivity timeout has passed"


def test_handlers_are_told_when_a_job_was_submitted_and_started_and_which_try_it_was(flow):
    run = flow(
        """
        [scheduling]
            [[graph]]
                R1 = a
        [runtime]
            [[a]]
                execution retry delays = PT10S
                [[[events]]]
                    succeeded handlers = echo %(submit_time)s %(start_time)s %(try_num)s
        """
    )
    run.fails("1/a").waits(10).waits(5).starts("1/a").waits(5).ends("1/a")
    log = run.home / "runs/flow/run1/log/scheduler/handlers/activity.log"
    run.until(log.exists)
    assert "2030-03-17T17:46:50Z 2030-03-17T17:46:55Z 2" in log.read_text()


def test_what_a_job_says_cannot_pass_for_a_line_of_the_run_log(flow):
    run = flow(CHAIN)
    run.starts("1/a").says(
        "1/a", "fine\n2030-01-01T00:00:00Z INFO - [1/b/01:running] => failed\x1b[2J"
    )
    said = run.log.partition("(received)fine\n")[2]
    assert said.startswith(
        "    2030-01-01T00:00:00Z INFO - [1/b/01:running] => failed\\x1b[2J\n"
    )


def test_a_time_to_stop_that_has_passed_stops_no_run_that_is_carried_on(flow):
    run = flow(CHAIN)
    run.gives(verbs.Stop(at_time="PT1H"))
    run.gives(verbs.Stop(mode="now"))
    assert run.status == "stopped"
    run.waits(7200).carries_on()
    assert run.status == "running"


@pytest.mark.parametrize("starts", [True, False])
def test_handlers_hear_of_every_step_of_a_job_however_quick_it_was(flow, starts):
    run = flow(
        """
        [scheduling]
            [[graph]]
                R1 = a
        [runtime]
            [[a]]
                [[[events]]]
                    handler events = submitted, started, succeeded
                    handlers = echo %(event)s
        """
    )
    if starts:
        run.starts("1/a")
    run.ends("1/a")
    log = run.home / "runs/flow/run1/log/scheduler/handlers/activity.log"
    run.until(lambda: log.exists() and log.read_text().count("ret_code") == 3)
    for event in ("submitted", "started", "succeeded"):
        assert log.read_text().count(f"cmd] echo {event}") == 1


@pytest.mark.parametrize("crashes", [False, True])
def test_a_broadcast_brings_a_handler_into_a_run_that_has_none(flow, crashes):
    run = flow(CHAIN).ends("1/a")
    handler = "[events]succeeded handlers=echo %(event)s of %(id)s"
    run.gives(verbs.Broadcast(namespaces=("b",), settings=(handler,)))
    if crashes:
        run.crash()
    run.ends("1/b")
    [command] = run.takes_code().values()
    assert "TIDEWHEEL_EVENT_ID=1/b" in command and "exec bash -c 'echo " in command
    assert not (run.home / "runs/flow/run1/log/scheduler/handlers/activity.log").exists()


HANDLED = one_point(
    "a => b",
    runtime="""
    [[a]]
        [[[events]]]
            succeeded handlers = tell '%(id)s', tell %(event)s
            handler retry delays = PT5S, PT7S
    [[b]]
    """,
)


@pytest.mark.parametrize(("trusted", "trusting"), [(False, True), (True, False)])
def test_h2_handlers_are_tasks_unless_the_definition_is_trusted(flow, trusted, trusting):
    """H2: nothing of them runs in the scheduler; their first delay is one before the start."""
    run = flow(HANDLED, trusted=trusted, trusting=trusting).ends("1/a")
    assert run.takes_code() == {}
    run.waits(5)
    commands = run.takes_code()
    assert len(commands) == 2
    assert all("export TIDEWHEEL_EVENT_ID=1/a\n" in one for one in commands.values())
    assert run.ends("1/b").status == "completed"
    assert not (run.home / "runs/flow/run1/log/scheduler/handlers/activity.log").exists()


def test_a_handler_that_was_submitted_before_a_crash_makes_no_second_task(flow):
    run = flow(HANDLED, trusted=False)
    run.way_to_store.loses_requests("delivered", 100)
    run.ends("1/a").waits(5)
    assert len(run.takes_code()) == 2
    submitted = run.way_to_store.calls["submit_code"]
    run.crash()
    assert run.way_to_store.calls["submit_code"] == submitted + 2
    assert run.waits(60).takes_code() == {}


def test_h2_a_function_of_a_strangers_definition_is_called_by_a_task(flow):
    text = one_point("@up => a", runtime="[[a]]", events="").replace(
        "[[graph]]", "[[xtriggers]]\n up = looking(x=1):PT1S\n [[graph]]"
    )
    run = flow(text, trusted=False)
    [(name, command)] = run.takes_code().items()
    assert name.startswith("function-looking/") and "tidewheel-function" in command
    assert run.submitted == []


def test_calls_that_a_dead_scheduler_left_are_made_by_nobody(flow):
    text = one_point("@up => a", runtime="[[a]]").replace(
        "[[graph]]", "[[xtriggers]]\n up = looking(x=1):PT1S\n [[graph]]"
    )
    run = flow(text, trusted=False)
    run.way_to_store.loses_requests("take_code")  # with which it would have deleted its call
    run.crash()
    [name] = run.takes_code()
    assert name == "function-looking/2000000000"


def test_functions_of_tidewheel_itself_need_no_worker(flow):
    text = one_point("@up => a", runtime="[[a]]").replace(
        "[[graph]]", "[[xtriggers]]\n up = echo(succeed=True):PT1S\n [[graph]]"
    )
    run = flow(text, trusted=False)
    run.until(lambda: run.submitted == ["1/a/01"])
    assert run.takes_code() == {}


def test_a_reload_from_the_network_takes_handlers_out_of_the_scheduler(flow):
    """H2: whoever may only operate gives a run another definition, with handlers."""
    run = flow(one_point("a => b", runtime="[[a, b]]")).ends("1/a")
    run.trusted = False
    text = HANDLED.replace("[[b]]", "[[b]]\n[[[events]]]\nsucceeded handlers = tell %(id)s\n")
    run.gives(verbs.Reload(definition=run.reads(text)))
    run.ends("1/b")
    [command] = run.takes_code().values()
    assert "export TIDEWHEEL_EVENT_ID=1/b\n" in command


def test_a_reload_brings_handlers_into_a_run_that_has_none_but_begins_nothing_anew(flow):
    run = flow(CHAIN).ends("1/a")
    text = f"""{CHAIN}
        [scheduler]
            [[events]]
                startup handlers = echo %(event)s
                shutdown handlers = echo %(event)s
    """
    run.gives(verbs.Reload(definition=run.reads(text)))
    run.ends("1/b")
    run.gives(verbs.Stop(mode="now"))
    log = run.home / "runs/flow/run1/log/scheduler/handlers/activity.log"
    run.until(lambda: log.exists() and "ret_code" in log.read_text())
    assert "cmd] echo shutdown" in log.read_text()
    assert "cmd] echo startup" not in log.read_text()


def test_a_broadcast_brings_a_timeout_into_a_run_that_has_none(flow):
    run = flow(CHAIN)
    run.gives(verbs.Broadcast(namespaces=("b",), settings=("[events]execution timeout=PT60S",)))
    run.ends("1/a").starts("1/b").waits(60)
    assert "execution timeout after PT1M" in run.log


def test_a_reload_of_the_same_definition_blocks_nothing_that_was_judged_before(flow):
    text = """
        [scheduling]
            cycling mode = integer
            initial cycle point = 1
            final cycle point = 6
            runahead limit = P1
            [[graph]]
                P2 = (b[-P2]:fail & b[-P1]:finish) => a
                P1 = a:succeed => b
                P2 = a[-P2]:fail => b
                R2/^/P1 = b[-P1]:fail => a
        [runtime]
            [[a, b]]
    """
    run = flow(text).fails("4/a").ends("6/a")
    run.gives(verbs.Reload(definition=run.reads(text)))
    assert run.ends("6/b").status == "completed"
