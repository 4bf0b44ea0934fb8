"""SEMANTICS §9, §10: a run that was left, in whatever way, is carried on where it was."""

import json
import os
import resource
import signal

import pytest

from tests.support.patience import eventually
from tests.support.run_crew import ended, run_crew, was_killed
from tidewheel.cli.exit_codes import ExitCode

RUN = "flow/run1"
CHAIN = "        P1 = a[-P1] => a => b"
AT_ONCE = ("--stall-timeout", "0")
STALLED, REFUSED = ExitCode.FAILED, ExitCode.REFUSED


@pytest.fixture
def crew(tmp_path):
    with run_crew(tmp_path) as crew:
        # Longer than any of these tests: nothing here comes from waiting for a lease.
        crew.environment["TIDEWHEEL_SCHEDULER_LEASE_SECONDS"] = "600"
        yield crew


@pytest.fixture
def gate(crew):
    """Jobs that read from it run until somebody writes."""
    path = crew.folder / "gate"
    os.mkfifo(path)
    return path


def submitted(crew, name=RUN):
    return [one.removeprefix(f"{name}/") for one, _ in crew.final_state(name)["submissions"]]


def completes(crew, *arguments):
    program = crew.run(*(arguments or (RUN,)), *AT_ONCE)
    assert ended(program) == 0, program.log
    said = ("completed after", "was already complete")
    assert any(one in program.log for one in said), program.log
    return program


def test_ctrl_c_lets_active_tasks_finish_and_the_next_start_goes_on(crew, gate):
    crew.define("        R1 = a => b", f"    [[a]]\n        script = read -r _ < {gate}")
    program = crew.run()
    program.says("1/a started")
    program.send(signal.SIGINT)
    program.says("stopping: waiting for 1 job; Ctrl-C again exits now")
    # It says so at once; what ends before the run has heard of it is followed by the next task.
    eventually(lambda: crew.view().status == "stopping", lambda: program.log)
    gate.write_text("go\n")
    assert ended(program) == ExitCode.INTERRUPTED, program.log
    assert crew.view().status == "stopped"
    assert submitted(crew) == ["1/a/1"]
    completes(crew, "flow")
    assert submitted(crew) == ["1/a/1", "1/b/1"]
    crew.judge()


@pytest.mark.parametrize("how", ["ctrl-c", "SIGTERM", "stop --now", "kill -9"])
def test_a_job_that_is_left_running_is_found_again(crew, gate, how):
    crew.define("        R1 = a => b", f"    [[a]]\n        script = read -r _ < {gate}")
    program = crew.run()
    eventually(crew.executions, "the job has begun")
    if how == "ctrl-c":
        program.send(signal.SIGINT)
        program.says("stopping")
        program.send(signal.SIGINT)
        assert ended(program) == ExitCode.INTERRUPTED, program.log
    elif how == "SIGTERM":
        program.send(signal.SIGTERM)
        assert ended(program) == ExitCode.TERMINATED, program.log
    elif how == "stop --now":
        assert crew.ask("stop", RUN, "--now")[0] == 0  # it may be there for a moment yet
        assert ended(program) == ExitCode.STOPPED, program.log
    else:
        program.kill()
    carried_on = crew.run(RUN, *AT_ONCE)
    carried_on.says(f"{RUN}/1/a/1 was found running")
    gate.write_text("go\n")
    assert ended(carried_on) == 0, carried_on.log
    assert crew.judge()["claim"] == 2


def test_a_run_stops_at_a_point_or_after_a_task_and_goes_on_beyond_it(crew):
    crew.define(CHAIN, root="        script = sleep 0.1", final=6)
    program = crew.run("--pause")
    program.says("paused")
    assert crew.ask("stop", RUN, "--after", "1/b")[0] == 0
    assert crew.ask("resume", RUN)[0] == 0
    assert ended(program) == ExitCode.STOPPED, program.log
    assert crew.view().status == "stopped"
    assert "1/b/1" in submitted(crew) and "6/b/1" not in submitted(crew)
    at = crew.run(RUN, "--stopcp", "4")
    assert ended(at) == 0, at.log
    assert (crew.view().status, crew.view().options.stop) == ("stopped", "4")
    assert max(submitted(crew)) == "4/b/1"
    completes(crew)
    assert len(submitted(crew)) == 12
    crew.judge()


def test_a_point_at_which_somebody_stops_a_run_is_not_where_it_was_to_end(crew):
    crew.define(CHAIN, root="        script = sleep 0.1", final=6)
    program = crew.run("--pause", "--stopcp", "4")
    program.says("paused")
    assert crew.ask("stop", RUN, "2")[0] == 0
    assert crew.ask("resume", RUN)[0] == 0
    assert ended(program) == ExitCode.STOPPED, program.log
    assert (crew.view().status, crew.view().reason) == ("stopped", "stopped: after point 2")
    crew.judge()


def test_a_stop_point_that_was_not_reached_still_counts(crew, gate):
    script = f"test $CYLC_TASK_CYCLE_POINT -ne 2 || read -r _ < {gate}"
    crew.define(CHAIN, f"    [[a]]\n        script = {script}", final=5)
    program = crew.run("--stopcp", "3")
    program.says("2/a started")
    assert crew.ask("stop", RUN, "--now")[0] == 0
    ended(program)
    carried_on = crew.run(RUN)
    carried_on.says("was found running")
    gate.write_text("go\n")
    assert ended(carried_on) == 0, carried_on.log
    assert (crew.view().status, max(submitted(crew))) == ("stopped", "3/b/1")
    completes(crew)
    assert max(submitted(crew)) == "5/b/1"


def test_a_stalled_run_is_carried_on_and_mended(crew):
    fixed = crew.folder / "fixed"
    crew.define("        R1 = a => b", f"    [[a]]\n        script = test -e {fixed}")
    program = crew.run(*AT_ONCE)
    assert ended(program) == STALLED, program.log
    assert "1/a failed (exit 1)" in program.log
    assert crew.view().status == "stalled"
    fixed.touch()
    carried_on = crew.run("flow", "--stall-timeout", "1h")
    carried_on.says("it waits 1h for you, then stops, at 20")
    stall = json.loads(crew.ask("show", RUN, "--json")[1])["stall"]
    assert stall["since"] < stall["until"]
    assert crew.ask("trigger", RUN, "1/a")[0] == 0
    assert ended(carried_on) == 0, carried_on.log
    assert submitted(crew) == ["1/a/1", "1/a/2", "1/b/1"]
    assert crew.view().options.stall_timeout_seconds == 3600.0


def test_a_completed_run_goes_on_to_a_later_final_point(crew):
    crew.define(CHAIN, final=2)
    completes(crew, "flow")
    # Dead before the batch is written: nothing has changed; dead after it: all of it has.
    for place, final in (("batch_before_write", ""), ("batch_written", "4")):
        program = crew.run("flow", "--fcp", "4", TIDEWHEEL_FAILPOINT=place)
        assert was_killed(program), program.log
        assert crew.view().options.final == final
    completes(crew, RUN)
    assert len(submitted(crew)) == 8
    crew.judge()
    ended_at = crew.view().ended_at
    again = completes(crew, RUN)
    assert "was already complete: " in again.log and "resumes" not in again.log
    assert crew.view().ended_at == ended_at
    assert len(submitted(crew)) == 8


def test_what_a_run_is_cannot_be_changed_when_it_is_carried_on(crew):
    crew.define(CHAIN, final=4)
    program = crew.run("--stopcp", "1")
    assert ended(program) == 0, program.log
    before = crew.view()
    for option, value, said in (
        ("--mode", "simulation", "was started with --mode live"),
        ("--icp", "2", "was started with no --icp"),
        ("--startcp", "2", "was started with no --startcp"),
        ("--fcp", "3", "its final point can only be moved to a later one"),
    ):
        refused = crew.run("flow", option, value)
        assert ended(refused) == REFUSED and said in refused.log, refused.log
    assert crew.view() == before
    completes(crew, "flow", "--new", "--mode", "skip")
    assert crew.view("flow/run2").options.mode == "skip"


def test_a_run_that_is_driven_is_left_to_its_scheduler(crew):
    gate = crew.folder / "open"
    script = f"until test -e {gate}; do sleep 0.05; done"
    crew.define("        R1 = a", f"    [[a]]\n        script = {script}")
    program = crew.run()
    program.says("1/a started")
    refused = crew.run(RUN)
    assert ended(refused) == REFUSED
    assert f"{RUN} is driven by process {program.pid} on" in refused.log
    assert "resumes" not in refused.log
    beside = crew.run("flow")  # refused, too: only --new begins another
    assert ended(beside) == REFUSED
    assert f"{RUN} is running (process {program.pid} on" in beside.log
    assert "or start another run beside it: --new" in beside.log
    next_one = crew.run("flow", "--new")
    next_one.says("flow/run2 starts")
    gate.touch()
    assert (ended(program), ended(next_one)) == (0, 0)


# ---- reopening what has ended (SEMANTICS §8) ----

HANDLED = """        R1 = \"\"\"
            a? => b
            a:fail? => mail
        \"\"\""""


@pytest.fixture
def completed(crew):
    """A run that completed although a failed; the file that lets a succeed the next time."""
    mended = crew.folder / "mended"
    crew.define(HANDLED, f"    [[a]]\n        script = test -e {mended}")
    completes(crew, "flow")
    assert submitted(crew) == ["1/a/1", "1/mail/1"]
    return mended


def test_a_completed_run_is_repaired_by_a_trigger_and_a_start(crew, completed):
    status, said = crew.ask("trigger", RUN, "1/a")
    assert (
        status == 0
        and "the command trigger is kept, and is carried out when the run resumes" in said
    )
    assert f"tidewheel run {RUN}" in said
    completed.touch()
    # Dead before its first batch: the command is still there; it is obeyed once.
    assert was_killed(crew.run(RUN, TIDEWHEEL_FAILPOINT="batch_before_write"))
    log = completes(crew, RUN).log
    assert "already complete" not in log, log
    assert "3 succeeded (2 succeeded since it was resumed)" in log, log
    assert submitted(crew) == ["1/a/1", "1/a/2", "1/b/1", "1/mail/1"]
    assert "already complete" in completes(crew, RUN).log
    assert len(submitted(crew)) == 4
    crew.judge()


def test_a_kept_command_is_done_by_the_command_that_began_the_run(crew, completed):
    """Nobody has to know that it is another run otherwise."""
    crew.ask("trigger", RUN, "1/a")
    completed.touch()
    assert "resumes" in completes(crew, "flow").log
    assert submitted(crew) == ["1/a/1", "1/a/2", "1/b/1", "1/mail/1"]
    assert [run.name for run in crew.look(lambda store: store.runs())] == [RUN]


def test_the_last_line_of_a_run_counts_what_happened_before_it_was_carried_on(crew):
    gate = crew.folder / "gate"
    os.mkfifo(gate)
    graph = """        R1 = \"\"\"
            a:fail => mail => last
            a => b
        \"\"\""""
    last = f"    [[last]]\n        script = read -r _ < {gate}"
    crew.define(graph, f"    [[a]]\n        script = false\n{last}")
    left = crew.run()
    left.says("1/last started")
    left.send(signal.SIGTERM)
    assert ended(left) == ExitCode.TERMINATED
    again = crew.run()
    again.says("resumes")
    gate.write_text("go\n")
    assert ended(again) == 0
    assert "1 failed, 2 succeeded, 1 lost (1 succeeded since it was resumed)" in again.log
    assert "warning: 1/b will not run" in again.log


def test_a_trigger_with_run_does_both(crew, completed):
    completed.touch()
    status, said = crew.ask("trigger", RUN, "1/a", "--run")
    assert status == 0 and f"{RUN} completed after" in said, said
    assert submitted(crew) == ["1/a/1", "1/a/2", "1/b/1", "1/mail/1"]


@pytest.mark.usefixtures("completed")
def test_a_trigger_with_run_fails_if_its_task_does_again_and_says_that_the_folder_has_changed(
    crew,
):
    flow = crew.folder / "flow" / "flow.cylc"
    flow.write_text(flow.read_text().replace("script = test -e", "script = test ! -e"))
    status, said = crew.ask("trigger", RUN, "1/a", "--run")
    assert status == ExitCode.FAILED, said
    assert (
        f"1/a was triggered and has failed again; read its log: tidewheel log {RUN} 1/a --err"
        in said
    )
    assert f"{flow.parent} has changed. {RUN} continues with the old definition" in said, said
    assert f"tidewheel reload {RUN}" in said and "--new" in said


def test_a_run_by_its_name_says_whether_its_folder_has_changed(crew, gate):
    crew.define("        R1 = a", f"    [[a]]\n        script = read -r _ < {gate}")
    first = crew.run()
    first.says("1/a started")
    first.send(signal.SIGTERM)
    ended(first)
    same = crew.run(RUN)
    same.says("resumes")
    same.send(signal.SIGTERM)
    ended(same)
    assert "has changed" not in same.log
    flow = crew.folder / "flow" / "flow.cylc"
    flow.write_text(flow.read_text() + "# mended\n")
    other = crew.run(RUN)
    gate.write_text("go\n")
    assert ended(other) == 0
    assert f"{flow.parent} has changed. {RUN} continues with the old definition" in other.log


def test_where_a_scheduler_serves_a_completed_run_goes_on_at_once(crew, completed):
    completed.touch()
    crew.scheduler()
    crew.start("worker", "--queue", f"run:{RUN}")
    status, said = crew.ask("trigger", RUN, "1/a")
    assert (
        status == 0 and "1/a runs now" in said and "no longer lost if it succeeds: 1/b" in said
    ), said
    eventually(lambda: crew.view().status == "completed", lambda: "its end", 60)
    assert submitted(crew) == ["1/a/1", "1/a/2", "1/b/1", "1/mail/1"]


@pytest.mark.usefixtures("completed")
def test_what_would_be_refused_later_is_refused_at_once(crew):
    for words, said in (
        (("trigger", RUN, "1/nobody"), "there is no task nobody"),
        (("hold", RUN, "1/a"), "trigger, set and release reopen it"),
        (("pause", RUN), "trigger, set and release reopen it"),
    ):
        status, log = crew.ask(*words)
        assert status == REFUSED and said.lower() in log.lower(), log
    assert crew.view().given is None


# ---- a stopped run has nothing that a worker can claim (SEMANTICS §9) ----


def test_what_no_worker_took_of_a_stopped_run_waits_until_the_run_goes_on(crew, gate):
    crew.define("        R1 = a & b", f"    [[a, b]]\n        script = read line < {gate}")
    program = crew.run("--slots", "1")
    eventually(lambda: len(begun(crew)) == 1, lambda: program.log)
    assert crew.ask("stop", RUN, "--now")[0] == 0
    ended(program)
    assert crew.view().status == "stopped"
    assert crew.ask("verify")[0] == 0
    crew.start("worker", "--queue", f"run:{RUN}")
    gate.write_text("go on\n")  # to the one that runs, whose worker has followed it again
    eventually(lambda: statuses(crew) == ["ready", "succeeded"], lambda: str(statuses(crew)))
    listed = crew.ask("tasks", "--jobs")[1]
    assert "ready (withdrawn)" in listed and "until the run resumes" in listed, listed
    tasks = json.loads(crew.ask("--json", "tasks", "--jobs")[1])["tasks"]
    [left] = [one for one in tasks if one["withdrawn"]]
    assert left["status"] == "ready"
    name = left["id"].split("/")[-2]
    assert "preparing (withdrawn)  [01 ready]" in crew.ask("tree", RUN)[1]
    assert "preparing (withdrawn)" in crew.ask("show", RUN, f"1/{name}")[1]
    why = crew.ask("why", RUN, f"1/{name}")[1]
    assert f"1/{name} is preparing: no worker may take it until the run resumes" in why, why
    again = crew.run(RUN)
    eventually(lambda: len(begun(crew)) == 2, lambda: again.log)
    gate.write_text("go on\n")
    assert ended(again) == 0, again.log
    assert submitted(crew) == ["1/a/1", "1/b/1"]
    crew.judge()


def begun(crew):
    return crew.journal.read_text().splitlines() if crew.journal.exists() else []


def statuses(crew):
    return sorted(status for _, status in crew.final_state()["submissions"])


def test_a_scheduler_that_is_terminated_leaves_at_once_and_jobs_are_adopted(crew, gate):
    crew.define("        R1 = a => b", f"    [[a]]\n        script = read -r _ < {gate}")
    first = crew.run()
    eventually(crew.executions, "the job has begun")
    first.send(signal.SIGTERM)
    assert ended(first) == ExitCode.TERMINATED, first.log
    assert crew.view().status == "running"
    scheduler = crew.scheduler()
    scheduler.says("run.taken")
    scheduler.send(signal.SIGTERM)
    assert ended(scheduler) == 0, scheduler.log
    carried_on = crew.run(*AT_ONCE)
    carried_on.says(f"{RUN}/1/a/1 was found running")
    gate.write_text("go\n")
    assert ended(carried_on) == 0, carried_on.log
    assert submitted(crew) == ["1/a/1", "1/b/1"]
    assert crew.judge()["claim"] == 2


# ---- where no job can be started ----


def takes_no_more_files(program):
    """From now on the process can open no file, and a job needs one: as with a `ulimit -n`
    that is too small."""
    there = {int(one) for one in os.listdir(f"/proc/{program.pid}/fd")}
    lowest = next(number for number in range(len(there) + 1) if number not in there)
    _, hard = resource.prlimit(program.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(program.pid, resource.RLIMIT_NOFILE, (lowest, hard))


@pytest.mark.parametrize(
    ("how", "status"),
    [
        ("stop", ExitCode.STOPPED),
        ("ctrl-c", ExitCode.INTERRUPTED),
        ("SIGTERM", ExitCode.TERMINATED),
    ],
)
def test_a_run_whose_jobs_cannot_start_stops_when_it_is_told_to(crew, how, status):
    crew.define("        R1 = a => b")
    program = crew.run("--pause")
    program.says("paused")
    assert crew.ask("hold", RUN, "1/b")[0] == 0
    assert crew.ask("resume", RUN)[0] == 0
    program.says("1/a succeeded")
    takes_no_more_files(program)
    assert crew.ask("release", RUN, "1/b")[0] == 0, program.log
    program.says("no file descriptors are left")
    if how == "stop":
        assert crew.ask("stop", RUN)[0] == 0
    else:
        program.send(signal.SIGTERM if how == "SIGTERM" else signal.SIGINT)
    assert ended(program) == status, program.log
    completes(crew)
    assert submitted(crew) == ["1/a/1", "1/b/1"]
