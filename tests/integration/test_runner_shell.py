"""Commands: how their ends are told, what they find around them, what they cannot do."""

import asyncio
import json
import os
import re
import shlex
import stat
import subprocess
import sys
from contextlib import asynccontextmanager, suppress

import pytest

from tests.kit.runner_conformance import (
    DEADLINE_SECONDS,
    Mailbox,
    RecordedReports,
    assigned,
    claimed,
)
from tests.support.patience import allowed
from tidewheel.config import JobLimits
from tidewheel.core.queue.requests import Ending
from tidewheel.core.queue.task import TaskId
from tidewheel.errors import BadSetting
from tidewheel.runners.messages.server import MessageServer
from tidewheel.runners.registry import NO_LIMITS, RunnerParts
from tidewheel.runners.shell.runner import ShellRunner

HOSTILE = [
    "$(id > pwned)",
    "`id > pwned`",
    "x\nid > pwned",
    "-rf",
    "'; id > pwned; '",
    '"$(id)"',
]


@asynccontextmanager
async def open_shell(home, environ=os.environ, limits=NO_LIMITS, **options):
    messages = MessageServer(home)
    await messages.start()
    try:
        yield ShellRunner(
            RunnerParts(environ=environ, messages=messages, limits=limits), **options
        )
    finally:
        await messages.stop()


def run_task(home, task, *, environ=os.environ, environment=None, **options):
    """Run one task to its end; the answer is the end and the directory."""
    assignment = assigned(task, home, **(environment or {}))

    async def scenario():
        async with open_shell(home, environ, **options) as runner:
            job = await runner.start(assignment, RecordedReports())
            async with asyncio.timeout(DEADLINE_SECONDS):
                end = await job.wait()
                await job.stop(0)  # also what it left in the background
                return end

    return asyncio.run(scenario()), assignment.directory


def run_command(home, command, **options):
    return run_task(home, claimed(command=command), **options)


def environment_of_job(home, **options):
    _, directory = run_command(home, "env -0 > seen", **options)
    entries = (directory / "seen").read_text().split("\0")
    return dict(entry.split("=", 1) for entry in entries if entry)


def test_the_exit_status_of_the_script_is_the_result(tmp_path):
    end, _ = run_command(tmp_path, "false\ntrue")
    assert (end.ending, end.exit_status, end.error) == (Ending.SUCCEEDED, 0, None)


def start_now(home, task):
    """Start one task by a runner that may not wait; the answer is the job, if there is one, and
    what was told of its end."""
    ends = []

    async def scenario():
        async with open_shell(home) as runner:
            assignment = assigned(task, home)
            job = runner.start_now(task, lambda: assignment, RecordedReports(), ends.append)
            if job is not None:
                async with asyncio.timeout(DEADLINE_SECONDS):
                    assert await job.wait() == ends[0]
            return job

    return asyncio.run(scenario()), ends


def test_a_command_needs_no_coroutine_that_waits_for_its_end(tmp_path):
    _, [end] = start_now(tmp_path, claimed(command="exit 3"))
    assert (end.ending, end.exit_status) == (Ending.FAILED, 3)


def test_a_command_that_cannot_be_started_has_ended_when_its_start_returns(tmp_path):
    (tmp_path / "tasks").write_text("no folder")
    _, [end] = start_now(tmp_path, claimed(command="true"))
    assert (end.ending, end.error.code) == (Ending.FAILED, "start")


def test_a_command_with_secrets_is_left_to_whoever_waits_for_them(tmp_path):
    task = claimed(command="true", environment='{"KEY": "secret:key"}')
    assert start_now(tmp_path, task) == (None, [])
    assert not (tmp_path / "tasks").exists()


def test_a_failure_tells_the_exit_status_and_the_last_words(tmp_path):
    end, _ = run_command(
        tmp_path, "echo first >&2; printf 'no such \\033[1mfile\\n\\n' >&2; exit 3"
    )
    assert end.exit_status == 3
    assert end.error.code == "exit"
    assert end.error.description == (
        "exit status 3; last line of job.err: no such \\x1b[1mfile"
    )
    assert json.loads(end.error.args) == {"exit_status": 3}


def test_a_kill_tells_how_long_the_job_had_although_the_grace_was_cut_short(tmp_path):
    """A worker that stops asks a job to end, and in the end gives it no more time."""
    is_ready = tmp_path / "ready"
    os.mkfifo(is_ready)
    task = claimed(command=f"trap '' TERM; echo > {is_ready}; while :; do sleep 0.05; done")

    async def scenario():
        async with open_shell(tmp_path) as runner:
            job = await runner.start(assigned(task, tmp_path), RecordedReports())
            async with asyncio.timeout(DEADLINE_SECONDS):
                await asyncio.to_thread(is_ready.read_text)
                with suppress(TimeoutError):
                    await asyncio.wait_for(job.stop(60), 0.3)
                await job.stop(0)
                return await job.wait()

    end = asyncio.run(scenario())
    assert re.fullmatch(
        r"killed: it did not end within \d\.[1-9] s of SIGTERM", end.error.description
    )


@pytest.mark.parametrize("status", [1, 2, 126, 127, 128, 200, 255])
def test_any_exit_status_is_told_as_it_is(tmp_path, status):
    end, _ = run_command(tmp_path, f"exit {status}")
    assert (end.error.code, end.exit_status) == ("exit", status)


@pytest.mark.parametrize(
    ("command", "name", "number"),
    [
        ("kill -KILL $$", "SIGKILL", 9),
        ("kill -SEGV $$", "SIGSEGV", 11),
        ("kill -TERM $$", "SIGTERM", 15),
        ("sh -c 'kill -ABRT $$'", "SIGABRT", 6),  # bash tells of it as 134
        ("kill -USR1 0; wait", "SIGUSR1", 10),  # to the whole group
    ],
)
def test_an_end_by_signal_names_the_signal(tmp_path, command, name, number):
    end, _ = run_command(tmp_path, command)
    assert (end.ending, end.exit_status) == (Ending.FAILED, -number)
    assert end.error.code == "signal"
    assert end.error.description.startswith(f"ended by {name}")


def test_how_much_cpu_a_job_used_is_among_its_metrics(tmp_path):
    end, _ = run_command(tmp_path, "for i in {1..20000}; do :; done")
    assert json.loads(end.metrics)["cpu_seconds"] > 0


@pytest.mark.parametrize(
    "command",
    [
        ":",  # over before anybody looks
        "exec true",
        "exec >&- 2>&-; true",
        "(sleep 600 >/dev/null 2>&1 &) ; exit 0",
        "sleep 600 & disown; exit 0",
        "trap 'exit 0' EXIT; false",
    ],
    ids=["ends at once", "execs", "closes its output", "forks away", "disowns", "own trap"],
)
def test_no_way_of_leaving_is_lost(tmp_path, command):
    end, directory = run_command(tmp_path, command)
    assert end.ending is Ending.SUCCEEDED
    assert "exit=0" in (directory / "job.status").read_text()


def test_fifty_megabytes_of_output_are_kept_and_hold_up_nothing(tmp_path):
    size = 50_000_000
    end, directory = run_command(tmp_path, f"head -c {size} /dev/zero")
    assert end.ending is Ending.SUCCEEDED
    assert (directory / "job.out").stat().st_size == size


def test_a_log_that_is_too_large_keeps_its_end_and_the_job_its_result(tmp_path):
    command = "head -c 3000000 /dev/zero; echo the last words"
    end, directory = run_command(tmp_path, command, log_bytes_max=1_000_000)
    log = (directory / "job.out").read_bytes()
    assert end.ending is Ending.SUCCEEDED
    assert len(log) < 1_000_000
    assert log.startswith(b"[tidewheel: ")
    assert log.endswith(b"the last words\n")


def test_files_of_a_job_are_its_users_alone(tmp_path):
    end, directory = run_task(tmp_path, claimed(command="touch made", spec="[1]"))
    modes = {path.name: stat.S_IMODE(path.lstat().st_mode) for path in directory.iterdir()}
    assert end.ending is Ending.SUCCEEDED
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert modes.pop("job") == 0o700
    assert set(modes) == {"job.out", "job.err", "job.status", "spec.json", "made"}
    assert set(modes.values()) == {0o600}


def test_a_job_runs_in_its_own_directory(tmp_path):
    _, directory = run_command(tmp_path, "pwd")
    assert (directory / "job.out").read_text() == f"{directory}\n"


@pytest.mark.parametrize("ties_jobs", [False, True])
def test_the_environment_is_an_allow_list(tmp_path, ties_jobs):
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": "/home/me",
        "LC_ALL": "C.UTF-8",
        "TIDEWHEEL_STORE": "postgresql://canary",
        "TIDEWHEEL_HOME": "/canary",
        "AWS_SECRET_ACCESS_KEY": "canary",
        "LD_PRELOAD": "canary.so",
        "BASH_ENV": "/canary",
    }
    seen = environment_of_job(
        tmp_path, environ=environ, environment={"POINT": "2026"}, tie_jobs=ties_jobs
    )
    assert "canary" not in repr(seen)
    assert seen["HOME"] == "/home/me"
    assert seen["LC_ALL"] == "C.UTF-8"
    assert seen["POINT"] == "2026"
    own_to_bash = {"PWD", "SHLVL", "_", "OLDPWD"}
    assert set(seen) - own_to_bash == {
        *("PATH", "HOME", "LC_ALL", "POINT"),
        *("TIDEWHEEL_TASK_ID", "TIDEWHEEL_ATTEMPT", "TIDEWHEEL_QUEUE", "TIDEWHEEL_TASK_NAME"),
        *("TIDEWHEEL_JOB_DIR", "TIDEWHEEL_SECRET", "TIDEWHEEL_MESSAGE_BYTES_MAX"),
        "TIDEWHEEL_SOCKET",
        "TIDEWHEEL_OUTPUTS",
    }


def test_nobody_can_override_who_a_job_is(tmp_path):
    seen = environment_of_job(tmp_path, environment={"TIDEWHEEL_TASK_ID": "another"})
    assert seen["TIDEWHEEL_TASK_ID"] == "task-1"


def test_the_secret_is_in_no_file_and_on_no_command_line(tmp_path):
    command = "cat /proc/*/cmdline > seen 2>/dev/null; true"
    _, directory = run_command(tmp_path, command)
    for path in directory.iterdir():
        if path.is_file():
            assert b"secret-of-1" not in path.read_bytes(), path


@pytest.mark.parametrize("text", HOSTILE)
def test_names_ids_and_specs_are_never_executed(tmp_path, text):
    task = claimed(
        command='printf %s "$TIDEWHEEL_TASK_NAME" > name; printf %s "$TIDEWHEEL_TASK_ID" > id',
        id=TaskId(text),
        name=text,
        queue=text,
        spec=json.dumps({"x": text}),
    )
    end, directory = run_task(tmp_path, task, environment={"X": text})
    assert end.ending is Ending.SUCCEEDED
    assert (directory / "name").read_text() == (directory / "id").read_text() == text
    assert json.loads((directory / "spec.json").read_text()) == {"x": text}
    assert list(tmp_path.rglob("pwned")) == []


def test_a_directory_with_an_odd_name_is_only_a_directory(tmp_path):
    home = tmp_path / "-$(touch pwned) `touch pwned` 'x' \"y\""
    end, _ = run_command(home, "true")
    assert end.ending is Ending.SUCCEEDED
    assert list(tmp_path.rglob("pwned")) == []


SPEAKS = """\
import os
from pathlib import Path
from tidewheel.runners.messages.client import send_message
me = Path(os.environ["TIDEWHEEL_JOB_DIR"]), os.environ["TIDEWHEEL_SECRET"]
print(send_message(*me, text="hello").value)
"""


def test_a_path_longer_than_a_socket_address_is_no_obstacle(tmp_path):
    home = tmp_path / ("long" * 40)
    end, directory = run_command(
        home, f"{shlex.quote(sys.executable)} -c {shlex.quote(SPEAKS)}"
    )
    assert end.ending is Ending.SUCCEEDED
    assert (directory / "job.out").read_text() == "accepted\n"
    assert not (directory / "job.socket").exists()  # its environment says where to


def test_a_job_outlives_the_loss_of_its_directory(tmp_path):
    mailbox = Mailbox(tmp_path / "mailbox")
    go_on = tmp_path / "go_on"
    os.mkfifo(go_on)
    told, waits = shlex.quote(str(mailbox.path)), shlex.quote(str(go_on))
    assignment = assigned(
        claimed(command=f"echo up > {told}; read -r _ < {waits}; echo lost; exit 5"),
        tmp_path / "home",
    )

    async def scenario():
        async with open_shell(tmp_path / "home") as runner:
            job = await runner.start(assignment, RecordedReports())
            await mailbox.line()
            for path in assignment.directory.iterdir():
                path.unlink()
            assignment.directory.rmdir()
            go_on.write_text("go\n")
            async with asyncio.timeout(DEADLINE_SECONDS):
                return await job.wait()

    end = asyncio.run(scenario())
    mailbox.close()
    assert (end.error.code, end.exit_status) == ("exit", 5)


def test_a_directory_that_cannot_be_made_fails_the_task_and_nothing_else(tmp_path):
    (tmp_path / "tasks").write_text("a file where a directory should be")
    end, _ = run_command(tmp_path, "true")
    assert (end.ending, end.error.code) == (Ending.FAILED, "start")
    assert str(tmp_path) in end.error.description
    assert end.exit_status is None


@pytest.mark.parametrize("environment", [{"X": "a\0b"}, {"X": "x" * 3_000_000}])
def test_an_environment_that_no_process_can_have_fails_the_task(tmp_path, environment):
    end, _ = run_task(tmp_path, claimed(command="true"), environment=environment)
    assert (end.ending, end.error.code) == (Ending.FAILED, "start")


def test_a_command_that_is_no_unicode_fails_the_task(tmp_path):
    end, _ = run_command(tmp_path, "echo \ud800")
    assert (end.ending, end.error.code) == (Ending.FAILED, "start")


def test_a_worker_without_bash_is_refused_at_once(tmp_path):
    with pytest.raises(BadSetting, match="bash"):
        ShellRunner(RunnerParts(environ={"PATH": str(tmp_path)}))


def test_a_job_that_cannot_be_watched_is_not_left_running(tmp_path):
    program = """
import asyncio, os, resource, sys
from pathlib import Path
from tidewheel.errors import RunnerUnable
from tidewheel.runners.registry import RunnerParts
from tidewheel.runners.shell.runner import ShellRunner
from tests.kit.runner_conformance import RecordedReports, assigned, claimed

async def work():
    runner = ShellRunner(RunnerParts(environ=os.environ))
    task = claimed(command="sleep 600")
    assignment = assigned(task, Path(sys.argv[1]))
    ends = []
    # Every number of free descriptors: whatever cannot be opened, nothing is left running.
    for free in range(6):
        highest = os.open("/dev/null", os.O_RDONLY)
        os.close(highest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + free, 4096))
        job = None
        try:
            job = await runner.start(assignment, RecordedReports())
        except RunnerUnable as unable:
            ends.append(str(unable))
        resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
        if job is not None:
            await job.stop(10)
            break
    assert ends and all("no file descriptors are left" in end for end in ends), ends
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG)
    except ChildProcessError:
        return
    raise AssertionError("a process was left")

asyncio.run(work())
"""
    subprocess.run(
        (sys.executable, "-c", program, str(tmp_path)), check=True, timeout=allowed(30)
    )


@pytest.mark.parametrize(
    ("limits", "command"),
    [
        ({"cpu_seconds": 1.0}, "while :; do :; done"),
        ({"memory_bytes": 64 * 2**20}, "python3 -c 'b\"x\" * 2**28'"),
        ({"open_files": 12}, "python3 -c 'f = [open(\"/dev/null\") for _ in range(20)]'"),
        ({"file_bytes": 4096}, "head -c 8192 /dev/zero > big"),
    ],
)
def test_a_job_is_held_to_the_limits_that_its_worker_was_given(tmp_path, limits, command):
    """S25."""
    end, directory = run_command(tmp_path, command, limits=JobLimits(**limits))
    assert end.ending is Ending.FAILED
    free, _ = run_command(tmp_path / "free", "exit 0", limits=JobLimits(**limits))
    assert free.ending is Ending.SUCCEEDED
    assert (directory / "job.status").read_text().endswith(f"{end_line(directory)}\n")


def end_line(directory):
    """The wrapper is under no limit: it writes down how the job ended."""
    last = (directory / "job.status").read_text().splitlines()[-1]
    assert last.startswith("exit=")
    return last


def test_all_limits_are_set_at_once_and_cannot_be_raised(tmp_path):
    """S25."""
    limits = JobLimits(
        cpu_seconds=3600, memory_bytes=2**32, open_files=64, processes=5000, file_bytes=2**30
    )
    command = "ulimit -t; ulimit -v; ulimit -n; ulimit -u; ulimit -f; ulimit -Hn"
    _, directory = run_command(tmp_path, command, limits=limits)
    seen = (directory / "job.out").read_text().split()
    assert seen == ["3600", str(2**22), "64", "5000", str(2**20), "64"]


@pytest.mark.parametrize("name", ["job.err", "outputs.json", "job.messages"])
@pytest.mark.parametrize("status", [0, 1])
def test_a_job_that_leaves_a_pipe_where_its_worker_reads_stops_nobody(tmp_path, name, status):
    """The worker would wait for somebody to write to it, and so would all of its other jobs."""
    command = f"rm -f {name}; mkfifo {name}; exit {status}"
    end, _ = run_task(tmp_path, claimed(command=command))
    assert end.ending in (Ending.SUCCEEDED, Ending.FAILED)
