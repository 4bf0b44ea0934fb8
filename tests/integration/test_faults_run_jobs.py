"""RELIABILITY 18, 19, 25: whatever its jobs do, a run hears how they ended and goes on."""

import os
import subprocess

import pytest

from tests.support.command_line import PROGRAM
from tests.support.patience import eventually
from tests.support.run_crew import ended, run_crew
from tests.support.volumes import mounted
from tidewheel.cli.exit_codes import ExitCode

MIB = 1024 * 1024
RUN = "flow/run1"


@pytest.fixture
def crew(tmp_path):
    with run_crew(tmp_path) as crew:
        yield crew


def job_folder(crew, task, submit="01"):
    return crew.home / "runs" / RUN / "log" / "job" / task / submit


def test_odd_jobs_end_as_they_should_and_hold_up_nobody(crew):
    crew.define(
        "        R1 = quick & chatty & silent & forks & signalled:fail? & long:fail? => last",
        f"""
    [[quick]]
        script = true
    [[chatty]]
        script = head -c {1024 * MIB} /dev/zero
    [[silent]]
        script = exec >&- 2>&- </dev/null; sleep 0.1
    [[forks]]
        script = setsid sleep 600 & disown
    [[signalled]]
        script = kill -USR1 $$; sleep 600
    [[long]]
        script = sleep 600
        execution time limit = PT1S
""",
    )
    program = crew.run("--stall-timeout", "0")
    assert ended(program, 60.0) == 0, program.log
    statuses = {one.split("/")[3]: how for one, how in crew.final_state()["submissions"]}
    failed = {name for name, how in statuses.items() if how == "failed"}
    assert failed == {"signalled", "long"}
    log = (crew.home / "runs" / RUN / "log" / "scheduler" / "log").read_text()
    assert "[1/signalled/01:running] failed/USR1" in log
    assert "[1/long/01:running] failed" in log
    with crew.client() as client:
        [attempt] = client.attempts(f"{RUN}/1/long/1")
    assert attempt.error.code == "timed_out", attempt
    chatty = job_folder(crew, "1/chatty") / "job.out"
    assert chatty.stat().st_size < 200 * MIB
    crew.judge()


def test_stop_with_kill_ends_a_tree_that_ignores_sigterm(crew):
    """TERM, the grace, then KILL for whatever is left of it."""
    crew.define(
        "        R1 = deaf => next",
        """
    [[deaf]]
        script = '''
            trap '' TERM
            bash -c 'trap "" TERM; setsid sleep 600 & sleep 600' &
            sleep 600; sleep 600
        '''
""",
    )
    program = crew.run()
    program.says("1/deaf started")
    eventually(lambda: len(crew.jobs()) >= 4, "it has a tree")
    status, said = crew.ask("stop", RUN, "--kill")
    assert status == 0, said
    assert ended(program, 60.0) == ExitCode.STOPPED, program.log
    assert crew.jobs() == []
    assert (crew.view().status, crew.view().owner) == ("stopped", None)
    assert crew.final_state()["submissions"] == [(f"{RUN}/1/deaf/1", "cancelled")]


def test_a_job_that_calls_back_after_its_end_is_refused(crew):
    """What outlived its job has no voice any more; the run is as it was."""
    heard = crew.folder / "heard"
    voice = (
        f"sed -n 's/^\\(TIDEWHEEL[^=]*\\|CYLC[^=]*\\)=/export &/p' {crew.folder}/environment"
    )
    crew.define(
        "        R1 = '''\n            a => b\n            a:late? => c\n        '''",
        f"""
    [[a]]
        script = env > {crew.folder}/environment
        [[[outputs]]]
            late = late
    [[b]]
        script = '''
            . <({voice})
            tidewheel message late > {heard} 2>&1 || echo refused >> {heard}
            tidewheel hold '*' >> {heard} 2>&1 || echo refused >> {heard}
        '''
""",
    )
    program = crew.run("--stall-timeout", "0")
    assert ended(program) == 0, program.log
    assert heard.read_text().count("refused") == 2, heard.read_text()
    names = [one.split("/")[3] for one, _ in crew.final_state()["submissions"]]
    assert names == ["a", "b"]
    assert crew.look(lambda store: store.commands(1)) == []
    crew.judge()


def test_logs_that_cannot_be_written_cost_their_lines_and_nothing_else(crew):
    crew.define("        R1 = a => b", "    [[a]]\n        script = cylc message hello")
    maker = crew.run(TIDEWHEEL_FAILPOINT="batch_written")
    ended(maker)
    log = crew.home / "runs" / RUN / "log" / "scheduler" / "log"
    log.unlink(missing_ok=True)
    log.symlink_to("/dev/full")  # a disk without room
    program = crew.run(RUN, "--trigger-log", "/dev/full")
    assert ended(program) == 0, program.log
    lines = [line for line in program.log.splitlines() if "No space left on device" in line]
    assert len(lines) == 2 and "the run continues without it" in lines[0], program.log
    assert "/dev/full cannot" in lines[1]  # of each log once, however many lines it lacks
    crew.judge()


def test_a_full_disk_under_the_jobs_delays_them_and_loses_none(tmp_path):
    with mounted(tmp_path / "disk", 3 * MIB) as volume, run_crew(tmp_path / "crew") as crew:
        gate = crew.folder / "gate"
        os.mkfifo(gate)
        crew.environment["TIDEWHEEL_HOME"] = str(volume.path / "home")
        crew.define(
            "        R1 = wait => chatty => last",
            f"    [[wait]]\n        script = read -r _ < {gate}\n"
            f"    [[chatty]]\n        script = head -c {4 * MIB} /dev/zero || rm "
            "$CYLC_TASK_LOG_DIR/job.out",
        )
        program = crew.run("--stall-timeout", "0")
        program.says("1/wait started")
        ballast = volume.fill()
        gate.write_text("go\n")
        program.says("no job can be started")
        ballast.unlink()
        assert ended(program, 60.0) == 0, program.log
        assert "jobs can be started again" in program.log
        assert {how for _, how in crew.final_state()["submissions"]} == {"succeeded"}
        assert crew.look(lambda store: store.verify()) == []


def test_a_full_disk_at_the_start_is_waited_for(tmp_path):
    with mounted(tmp_path / "disk", 1 * MIB) as volume, run_crew(tmp_path / "crew") as crew:
        crew.environment["TIDEWHEEL_HOME"] = str(volume.path / "home")
        crew.define("        R1 = a", "    [[a]]")
        ended(crew.run(TIDEWHEEL_FAILPOINT="batch_written"))
        subprocess.run(["rm", "-rf", volume.path / "home" / "runs"], check=True)
        ballast = volume.fill()
        program = crew.run(RUN)
        program.says("No space left on device")
        ballast.unlink()
        assert ended(program) == 0, program.log


def test_a_reader_that_goes_away_stops_no_run(crew):
    crew.define("        P1 = a[-P1] => a", final=3)
    done = subprocess.run(
        ["bash", "-c", f"{PROGRAM} run flow | head -1"],
        cwd=crew.folder,
        env=crew.environment,
        capture_output=True,
        check=False,
    )
    assert done.stderr == b"", done
    assert crew.view().status == "completed"


def test_a_full_disk_under_the_store_is_waited_for(tmp_path):
    with mounted(tmp_path / "disk", 2 * MIB) as volume:
        store = f"sqlite:///{volume.path}/tidewheel.db"
        with run_crew(tmp_path / "crew", store) as crew:
            gate = crew.folder / "gate"
            os.mkfifo(gate)
            crew.define(
                "        R1 = a => b", f"    [[a]]\n        script = read -r _ < {gate}"
            )
            program = crew.run()
            program.says("1/a started")
            ballast = volume.fill()
            gate.write_text("go\n")
            program.says("disk under the database is full")
            ballast.unlink()
            assert ended(program) == 0, program.log
            crew.judge()
