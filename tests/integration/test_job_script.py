"""What a job of a run sees (SEMANTICS §12): its parts in order, its environment, its end."""

import os
import re
import shlex

import pytest

from tests.kit.runner_conformance import Mailbox
from tests.support.run_jobs import RUN, node, run_facts, run_node, submission
from tidewheel.core.graph.definition import NodePlace, Simulation, StatePolling
from tidewheel.core.queue.requests import Ending

ENV = "env -0"


def environment(ran):
    return dict(one.split("=", 1) for one in ran.out.split("\0") if "=" in one)


# ---- how it ended, for existing scripts that wait for it ----


ENDS = {
    "the last line": (node(main="true"), "SUCCEEDED"),
    "an exit in the script": (node(main="exit 0"), "SUCCEEDED"),
    "no script at all": (node(), "SUCCEEDED"),
    "with an exit-script": (node(main="true", on_exit="true"), "SUCCEEDED"),
    "an error": (node(main="false"), "ERR"),
    "an error without -e": (node(main="set +e; false"), "ERR"),
    "an error with an err-script": (node(main="false", on_error="true"), "ERR"),
    "a signal": (node(main="kill -TERM $$"), "TERM"),
    "a signal with an err-script": (node(main="kill -XCPU $$", on_error="true"), "XCPU"),
}


@pytest.mark.parametrize("how", ENDS)
def test_job_status_says_how_a_job_ended_as_cylc_writes_it(tmp_path, how):
    given, word = ENDS[how]
    ran = run_node(tmp_path, given)
    lines = (ran.directory / "job.status").read_text().splitlines()
    facts = [one for one in lines if one.startswith("CYLC_JOB_EXIT")]
    assert facts[0] == f"CYLC_JOB_EXIT={word}"
    assert re.fullmatch(r"CYLC_JOB_EXIT_TIME=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", facts[1])
    assert len(facts) == 2
    assert (ran.end.ending is Ending.SUCCEEDED) == (word == "SUCCEEDED")
    # Whoever waits for the job waits for its wrapper, which no signal to the whole job ends.
    assert lines[-1].startswith("exit=")


# ---- what it may announce ----


def test_a_job_that_announces_an_output_which_is_not_declared_fails_with_those_that_are(
    tmp_path,
):
    declared = (("restart_written", "the restart file is there"), ("day1", "day 1 is done"))
    ran = run_node(tmp_path, node(main="tidewheel message --output restart", outputs=declared))
    assert (ran.end.ending, ran.status) == (Ending.FAILED, 2)
    assert ran.err.strip().splitlines() == [
        "tidewheel: foo has no output 'restart'",
        "  Did you mean restart_written? Its outputs: restart_written, day1",
    ]
    none = run_node(tmp_path, node(main="tidewheel message --output x"), submit=2)
    assert none.status == 2
    assert "Declare it: [runtime] [[foo]] [[[outputs]]] x = a message of its job" in none.err


def test_a_job_announces_an_output_that_is_declared(tmp_path):
    said = node(main="tidewheel message --output day1", outputs=(("day1", "day 1 is done"),))
    assert run_node(tmp_path, said).end.ending is Ending.SUCCEEDED


# ---- parts ----


def test_the_parts_run_in_their_order(tmp_path):
    ran = run_node(
        tmp_path,
        node(
            init="echo init",
            env="echo env; FROM_ENV=1",
            environment=(("SEEN", "$(echo environment after $FROM_ENV >&2)"),),
            pre="echo pre",
            main="echo script",
            post="echo post",
            on_exit="echo exit",
            on_error="echo error",
        ),
    )
    assert ran.out.split() == ["init", "env", "pre", "script", "post", "exit"]
    assert ran.err.strip() == "environment after 1"
    assert ran.status == 0


def test_a_node_without_a_script_does_nothing_and_succeeds(tmp_path):
    ran = run_node(tmp_path, node())
    assert (ran.status, ran.out, ran.err) == (0, "", "")


def test_a_script_of_comments_alone_is_no_script(tmp_path):
    assert run_node(tmp_path, node(main="# later\n  # much later", pre="\n")).status == 0


@pytest.mark.parametrize("text", ["false\ntrue", "false | true", 'echo "$NEVER_SET"'])
def test_a_mistake_in_the_middle_ends_the_job(tmp_path, text):
    ran = run_node(tmp_path, node(main=f"{text}\necho not reached", post="echo nor this"))
    assert ran.end.ending is Ending.FAILED
    assert ran.out.strip() in ("", "nor this"[:0])


LEAVES = {
    "init-script": ({"init": "exit 0"}, "pre-script, script"),
    "env-script": ({"env": "exit"}, "pre-script, script"),
    "pre-script": ({"pre": ". ./set_up"}, "script"),
    "a trap of its own": ({"pre": "trap true EXIT; exit 0"}, "script"),
    "another program": ({"pre": "exec true"}, "script"),
    "script": ({"main": "exit 0", "post": "echo post"}, "post-script"),
}


@pytest.mark.parametrize("guard", [{}, {"on_exit": "echo done", "on_error": "echo sorry: $1"}])
@pytest.mark.parametrize("where", LEAVES)
def test_a_part_that_ends_the_job_before_the_later_parts_have_run_fails_it(
    tmp_path, where, guard
):
    leaving, missed = LEAVES[where]
    begun = {"pre": "echo 'exit 0' > set_up", "main": "echo script"}
    given = {"environment": (("SEEN", "1"),), **begun, **leaving, **guard}
    if where == "pre-script":
        given["env"] = begun["pre"]
    ran = run_node(tmp_path, node(**given))
    assert (ran.status, ran.out) == (1, "")
    assert f"the job was ended without an error before its {missed}" in ran.err
    assert ("sorry: ERR" in ran.err) == (bool(guard) and where != "init-script")
    status = (ran.directory / "job.status").read_text()
    assert status.count("CYLC_JOB_EXIT=") == status.count("CYLC_JOB_EXIT=ERR") == 1


@pytest.mark.parametrize("guard", [{}, {"on_exit": "true"}])
def test_a_break_outside_of_a_loop_leaves_out_no_part_whatever_bash_it_was_written_for(
    tmp_path, guard
):
    parts = {"pre": "shopt -s compat43", "main": "echo script; break", "post": "echo post"}
    ran = run_node(tmp_path, node(**parts, **guard))
    assert (ran.status, ran.out.split()) == (0, ["script", "post"])


def test_a_failure_of_an_early_part_is_told_as_it_was(tmp_path):
    ran = run_node(tmp_path, node(pre="exit 4", main="echo script"))
    assert (ran.status, ran.out, ran.err) == (4, "", "")


def test_the_last_part_may_end_the_job_by_itself(tmp_path):
    ran = run_node(tmp_path, node(pre="true", main="exit 0", on_exit="echo done"))
    assert (ran.status, ran.out.split(), ran.err) == (0, ["done"], "")
    assert run_node(tmp_path, node(pre="true", main="exec true"), submit=2).status == 0


def test_started_is_said_by_the_job_itself_only_after_an_init_script(tmp_path):
    said = run_node(tmp_path, node(init="true")).reports.messages
    assert said == [("", "started")]
    assert run_node(tmp_path, node(main="true"), submit=2).reports.messages == []


# ---- failure ----


def test_an_err_script_runs_on_failure_and_hears_why(tmp_path):
    ran = run_node(
        tmp_path, node(main="exit 4", on_error='echo "sorry: $1"', on_exit="echo never")
    )
    assert (ran.status, ran.out) == (4, "")
    assert "sorry: ERR" in ran.err


@pytest.mark.parametrize("guard", [{}, {"on_error": 'echo "sorry: $1"'}])
def test_a_signal_is_told_as_a_signal(tmp_path, guard):
    mailbox = Mailbox(tmp_path / "mail")
    tell = f"echo $$ > {shlex.quote(str(mailbox.path))}"

    async def end_it(job, _directory):
        await mailbox.line()
        await job.stop(20)

    ran = run_node(tmp_path, node(main=f"{tell}; sleep 600", **guard), during=end_it)
    assert ran.status == -15
    assert ("sorry: TERM" in ran.err) == bool(guard)


def test_a_signal_that_comes_as_soon_as_the_script_begins_is_told_as_a_signal(tmp_path):
    """On a busy machine the shell that waits for the script may not know of it yet."""
    slow = "set -T; trap '[[ $BASHPID != $$ ]] || sleep 0.1' DEBUG"
    ran = run_node(tmp_path, node(init=slow, main="kill -TERM $$", on_error='echo "sorry: $1"'))
    assert (ran.status, ran.err.splitlines()[-1:]) == (-15, ["sorry: TERM"])


def test_a_job_with_an_err_script_is_not_over_before_its_script_is(tmp_path):
    mailbox = Mailbox(tmp_path / "mail")
    tell = f"echo up > {shlex.quote(str(mailbox.path))}"
    slow = f"trap 'echo cleaned up; exit 7' TERM; {tell}; while :; do sleep 0.05; done"

    async def end_it(job, _directory):
        await mailbox.line()
        await job.stop(20)

    ran = run_node(tmp_path, node(main=slow, on_error="echo sorry"), during=end_it)
    # Once or twice: SIGTERM is for every process of the job, and each may pass it on.
    assert (ran.status, set(ran.out.split("\n"))) == (-15, {"cleaned up", ""})


def test_a_script_that_a_signal_ends_is_a_failure_by_that_signal(tmp_path):
    ran = run_node(tmp_path, node(main="kill -KILL $BASHPID", on_error='echo "sorry: $1"'))
    assert (ran.status, ran.err.splitlines()[-1]) == (-9, "sorry: EXIT")


def test_an_err_script_that_fails_does_not_change_how_the_job_ended(tmp_path):
    ran = run_node(tmp_path, node(main="exit 4", on_error="exit 9"))
    assert ran.status == 4


def test_an_exit_script_that_fails_does_not_undo_success(tmp_path):
    ran = run_node(tmp_path, node(main="true", on_exit="false; exit 9"))
    assert ran.status == 0


def test_traps_of_a_script_are_its_own(tmp_path):
    ran = run_node(tmp_path, node(main="trap 'echo mine' EXIT; exit 3", on_error="echo ours"))
    assert (ran.status, ran.out.strip(), ran.err.strip()) == (3, "mine", "ours")


def test_who_takes_failure_into_his_own_hands_may_claim_success(tmp_path):
    silent = "cylc__job__disable_fail_signals ERR EXIT"
    claim = 'echo CYLC_JOB_EXIT=SUCCEEDED >> "$0.status"; exit 1'
    assert run_node(tmp_path, node(init=silent, main=claim)).status == 0
    assert run_node(tmp_path, node(init=silent, main="exit 1"), submit=2).status == 1
    assert run_node(tmp_path, node(main=claim), submit=3).status == 1


def test_an_abort_says_its_reason_and_fails(tmp_path):
    ran = run_node(tmp_path, node(main="cylc__job_abort 'no ice'; echo not reached"))
    assert (ran.status, ran.reports.messages) == (1, [('CRITICAL:aborted/"no ice"', None)])


# ---- environment ----


def test_values_are_expanded_in_their_order(tmp_path):
    ran = run_node(
        tmp_path,
        node(
            main=ENV,
            environment=(
                ("FIRST", "one"),
                ("SECOND", "$FIRST and $(printenv FIRST)"),
                ("POINT", "${CYLC_TASK_CYCLE_POINT}"),
                ("SPACES", "a  b"),
                ("LINES", "a\nb"),
            ),
        ),
    )
    seen = environment(ran)
    assert seen["SECOND"] == "one and one"
    assert (seen["POINT"], seen["SPACES"], seen["LINES"]) == ("1", "a  b", "a\nb")


def test_a_tilde_is_a_home_only_at_the_beginning(tmp_path):
    variables = (("A", "~/a b"), ("B", "~"), ("C", "x ~/y"), ("D", "~root/z"))
    seen = environment(run_node(tmp_path, node(main=ENV, environment=variables)))
    home = os.environ["HOME"]
    assert (seen["A"], seen["B"], seen["C"]) == (f"{home}/a b", home, "x ~/y")
    assert seen["D"].endswith("/z") and not seen["D"].startswith("~")


def test_a_value_whose_command_fails_ends_the_job(tmp_path):
    ran = run_node(tmp_path, node(main="echo never", environment=(("X", "$(exit 3)"),)))
    assert (ran.status, ran.out) == (3, "")


def test_a_job_knows_who_and_where_it_is(tmp_path):
    ran = run_node(
        tmp_path,
        node("foo_m1", lineage=("foo_m1", "FAM", "root"), main=ENV, parameters=(("m", 1),)),
        run=run_facts(utc=True, cycling_mode="360day", initial="20000101T00Z", final=""),
        point="20000102T00Z",
        submit=8,
        try_number=3,
        flows=frozenset({2, 1}),
    )
    seen, run = environment(ran), str(ran.run)
    expected = {
        "WORKFLOW_ID": RUN,
        "WORKFLOW_NAME": "flows/tide",
        "WORKFLOW_NAME_BASE": "tide",
        "WORKFLOW_RUN_DIR": run,
        "WORKFLOW_LOG_DIR": f"{run}/log/scheduler",
        "WORKFLOW_SHARE_DIR": f"{run}/share",
        "WORKFLOW_WORK_DIR": f"{run}/work",
        "WORKFLOW_INITIAL_CYCLE_POINT": "20000101T00Z",
        "WORKFLOW_FINAL_CYCLE_POINT": "None",
        "CYCLING_MODE": "360day",
        "UTC": "True",
        "TASK_ID": "20000102T00Z/foo_m1",
        "TASK_JOB": "20000102T00Z/foo_m1/08",
        "TASK_NAME": "foo_m1",
        "TASK_CYCLE_POINT": "20000102T00Z",
        "TASK_SUBMIT_NUMBER": "8",
        "TASK_TRY_NUMBER": "3",
        "TASK_FLOW_NUMBERS": "1,2",
        "TASK_NAMESPACE_HIERARCHY": "root FAM foo_m1",
        "TASK_PARAM_m": "1",
        "TASK_LOG_DIR": f"{run}/log/job/20000102T00Z/foo_m1/08",
        "TASK_LOG_ROOT": f"{run}/log/job/20000102T00Z/foo_m1/08/job",
        "TASK_WORK_DIR": f"{run}/work/20000102T00Z/foo_m1",
        "TASK_SHARE_CYCLE_DIR": f"{run}/share/cycle/20000102T00Z",
        "VERBOSE": "false",
        "DEBUG": "false",
    }
    for name, value in expected.items():
        assert (seen[f"CYLC_{name}"], seen[f"TIDEWHEEL_{name}"]) == (value, value), name
    assert (seen["TZ"], seen["ISODATETIMECALENDAR"]) == ("UTC", "360day")
    assert seen["ISODATETIMEREF"] == "20000102T00Z"
    assert seen["CYLC_RUN_DIR"] == str(tmp_path / "runs")
    assert seen["CYLC_SUITE_NAME"] == RUN and len(seen["CYLC_WORKFLOW_UUID"]) == 36
    assert seen["PATH"].split(":")[:3] == [
        f"{run}/share/bin",
        f"{run}/bin",
        str(tmp_path / "bin"),
    ]
    assert seen["PYTHONPATH"] == f"{run}/share/lib/python:{run}/lib/python"


BASH_COMMANDS_MAX = 118  # they may only fall: each job pays for them before its script begins


def test_a_job_with_nothing_but_a_script_makes_bash_execute_no_more_commands(tmp_path):
    """A second bash prints each command of the job's own text and of the library."""
    ran = run_node(tmp_path, node(main='test -n "${AGAIN-}" || AGAIN=1 bash -x "$0"'))
    assert ran.status == 0
    assert sum(line.startswith("+") for line in ran.err.splitlines()) <= BASH_COMMANDS_MAX
    assert "tidewheel__signalled" not in ran.err


CALLED_BY_SCRIPTS = (
    "cylc__job__disable_fail_signals",
    "cylc__job__wait_cylc_message_started",
    "cylc__job__poll_grep_workflow_log",
    "cylc__job_abort",
)


@pytest.mark.parametrize("name", CALLED_BY_SCRIPTS)
def test_a_job_that_needs_more_of_the_library_and_does_not_find_it_fails(tmp_path, name):
    gone = f"TIDEWHEEL_JOB_LIBRARY=/nowhere/job_library.sh; {name} here || :; echo not reached"
    ran = run_node(tmp_path, node(main=gone))
    assert (ran.status, ran.out) == (1, "")
    assert "/nowhere/job_functions.sh" in ran.err


def test_results_of_xtriggers_are_taken_as_they_are(tmp_path):
    results = (("up", {"point": "3", "text": "$(exit 9) `exit 9`", "a-b": 1, "offset": "x"}),)
    mine = (("up_offset", "mine"), ("OTHER", "$up_point"))
    ran = run_node(tmp_path, node(main=ENV, environment=mine), xtriggers=results)
    seen = environment(ran)
    assert (seen["up_point"], seen["up_text"]) == ("3", "$(exit 9) `exit 9`")
    assert (seen["up_offset"], seen["OTHER"]) == ("x", "3")


# ---- directories ----


def test_a_job_works_in_a_directory_of_its_task(tmp_path):
    ran = run_node(tmp_path, node(main='pwd; touch "$CYLC_TASK_SHARE_CYCLE_DIR/s"; touch here'))
    work = ran.run / "work" / "1" / "foo"
    assert ran.out.strip() == str(work)
    assert (work / "here").is_file() and (ran.run / "share" / "cycle" / "1" / "s").is_file()


def test_an_empty_work_directory_is_removed(tmp_path):
    ran = run_node(tmp_path, node(main="true"))
    assert not (ran.run / "work" / "1" / "foo").exists()


def test_a_work_directory_may_be_chosen(tmp_path):
    place = NodePlace(work_subdirectory="shared/$CYLC_TASK_CYCLE_POINT")
    ran = run_node(tmp_path, node(main='pwd; echo "$CYLC_TASK_WORK_DIR"', place=place))
    assert ran.out.split() == [str(ran.run / "work" / "shared" / "1")] * 2


def test_logs_lie_by_point_name_and_submission_with_a_link_to_the_latest(tmp_path):
    for submit in (1, 2, 11):
        ran = run_node(tmp_path, node(main=f"echo {submit}"), submit=submit)
    folder = ran.run / "log" / "job" / "1" / "foo"
    assert sorted(one.name for one in folder.iterdir()) == ["01", "02", "11", "NN"]
    assert os.readlink(folder / "NN") == "11"
    assert (folder / "NN" / "job.out").read_text() == "11\n"
    again = run_node(tmp_path, node(main='echo "$CYLC_TASK_LOG_DIR"'), submit=11, attempt=2)
    assert again.directory == folder / "11" / "attempt-2"
    assert again.out.strip() == str(again.directory)
    assert (folder / "11" / "job.out").read_text() == "11\n"


def test_logs_are_where_scripts_look_if_the_first_attempt_was_given_back_unbegun(tmp_path):
    ran = run_node(tmp_path, node(main="echo out; echo err >&2"), attempt=2)
    folder = ran.run / "log" / "job" / "1" / "foo" / "NN"
    assert ran.directory == folder.resolve() / "attempt-2"
    assert (folder / "job.out").read_text() == "out\n"
    assert (folder / "job.err").read_text() == "err\n"
    assert "echo out" in (folder / "job").read_text()
    assert "CYLC_JOB_EXIT=SUCCEEDED" in (folder / "job.status").read_text()


def test_a_first_attempt_that_begins_behind_the_second_writes_into_no_file_of_it(tmp_path):
    names = ("job", "job.out", "job.err", "job.status")
    second = run_node(tmp_path, node(main="echo second"), attempt=2)
    written = {name: (second.directory / name).read_text() for name in names}
    first = run_node(tmp_path, node(main="echo first; exit 3"))
    assert (first.status, first.out) == (3, "first\n")
    assert {name: (second.directory / name).read_text() for name in names} == written


def test_a_job_knows_its_own_file(tmp_path):
    ran = run_node(tmp_path, node(main='echo "$0"; echo note >> "$0.status"'))
    assert ran.out.strip() == str(ran.directory / "job")
    assert "note" in (ran.directory / "job.status").read_text()


# ---- what existing scripts call ----


def test_a_job_can_wait_for_a_line_of_the_log(tmp_path):
    log = tmp_path / "runs" / RUN / "log" / "scheduler" / "log"
    log.parent.mkdir(parents=True)
    log.write_text("INFO - spawned 5/c\n")
    wait = "cylc__job__wait_cylc_message_started; cylc__job__poll_grep_workflow_log"
    ran = run_node(tmp_path, node(main=f"{wait} -E 'spawned [0-9]/c'"))
    assert ran.out.strip() == "INFO - spawned 5/c"


def test_the_programs_of_the_run_come_first(tmp_path):
    programs = tmp_path / "runs" / RUN / "bin"
    programs.mkdir(parents=True)
    (programs / "model").write_text("#!/bin/sh\necho the model\n")
    (programs / "model").chmod(0o700)
    assert run_node(tmp_path, node(main="model")).out.strip() == "the model"


# ---- kinds of nodes ----


def test_in_dummy_mode_a_job_takes_its_time_and_says_its_outputs(tmp_path):
    simulation = Simulation(run_seconds=0.01)
    dummy = node(
        main="exit 9",
        pre="exit 9",
        outputs=(("x", "it is x"), ("y", "why")),
        environment=(("BAD", "$NOT_SET"),),
        simulation=simulation,
    )
    ran = run_node(tmp_path, dummy, run=run_facts(dummy=True))
    assert (ran.status, ran.reports.messages) == (0, [("it is x", None), ("why", None)])


@pytest.mark.parametrize(
    ("try_number", "first_only", "status"), [(1, True, 1), (2, True, 0), (2, False, 1)]
)
def test_a_dummy_job_fails_where_it_shall(tmp_path, try_number, first_only, status):
    simulation = Simulation(
        run_seconds=0.01, fail_points=("1",), fail_first_try_only=first_only
    )
    facts = {"run": run_facts(dummy=True), "try_number": try_number}
    assert run_node(tmp_path, node(simulation=simulation), **facts).status == status
    assert run_node(tmp_path, node(simulation=simulation), point="2", **facts).status == 0


def test_a_polling_node_asks_for_the_state_of_another_workflow(tmp_path):
    asked = []

    async def answer(_caller, call):
        asked.append(call["arguments"])
        return {"tasks": [{"id": "1/bar", "state": "succeeded"}] if len(asked) > 1 else []}

    polling = StatePolling(target="up::bar:succeed", interval_seconds=0.01, polls_max=9)
    assert run_node(tmp_path, node(polling=polling), calls=answer).status == 0
    assert [(one["run"], one["id"]) for one in asked] == [("up", "1/bar:succeed")] * 2


def test_the_time_limit_becomes_the_tasks_own():
    assert submission(node(time_limit_seconds=90.0)).timeout_seconds == 90.0
    assert submission(node()).timeout_seconds is None
