"""Jobs with secrets end as all others do, and what they print is masked until the last word."""

import asyncio
import json
import os
import shlex
from contextlib import asynccontextmanager

import pytest

from tests.kit.runner_conformance import (
    DEADLINE_SECONDS,
    Mailbox,
    RecordedReports,
    assigned,
    claimed,
)
from tests.support.patience import eventually
from tidewheel.config import JobLimits
from tidewheel.runners.messages.server import MessageServer
from tidewheel.runners.registry import RunnerParts
from tidewheel.runners.secret_values import SecretSources
from tidewheel.runners.shell.runner import ShellRunner

VALUE = "hunter2-is-not-a-password"


@asynccontextmanager
async def open_shell(home, **parts):
    folder = home / "secrets"
    folder.mkdir(exist_ok=True)
    (folder / "s").touch(mode=0o600)
    (folder / "s").write_text(VALUE)
    messages = MessageServer(home)
    await messages.start()
    sources = SecretSources(directory=folder)
    try:
        yield ShellRunner(
            RunnerParts(environ=os.environ, messages=messages, secrets=sources, **parts)
        )
    finally:
        await messages.stop()


def play(home, command, act=None, **parts):
    """The end of a job, and its folder; `act` is done to it while it runs."""
    task = claimed(command=command, environment=json.dumps({"S": "secret:s"}))
    assignment = assigned(task, home)

    async def scenario():
        async with open_shell(home, **parts) as runner, asyncio.timeout(DEADLINE_SECONDS):
            job = await runner.start(assignment, RecordedReports())
            if act is not None:
                await act(job)
            return await job.wait()

    return asyncio.run(scenario()), assignment.directory


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("true", 0),
        ("exit 7", 7),
        ("kill -TERM $$", -15),
        ("kill -KILL $$", -9),
        ("exec sh -c 'exit 4'", 4),
        ("set -o pipefail; yes | head -1 > /dev/null", -13),  # SIGPIPE is as elsewhere
        ("no-such-program", 127),
    ],
)
def test_a_job_with_a_secret_ends_as_one_without(tmp_path, command, status):
    end, _ = play(tmp_path, command)
    assert end.exit_status == status


def test_a_job_that_is_stopped_may_say_a_last_word_which_is_masked(tmp_path):
    mailbox = Mailbox(tmp_path / "mailbox")
    told = shlex.quote(str(mailbox.path))
    command = f"""trap 'echo "bye $S"; exit 5' TERM; echo up > {told}; sleep 600 & wait"""

    async def stop(job):
        await mailbox.line()
        await job.stop(30.0)

    end, directory = play(tmp_path, command, stop)
    assert end.exit_status == 5
    assert (directory / "job.out").read_text() == "bye ***\n"


def test_what_goes_on_in_the_background_is_masked_and_delays_no_end(tmp_path):
    gate = tmp_path / "gate"
    waits = f"until [ -e {gate} ]; do sleep 0.05; done"
    end, directory = play(tmp_path, f'({waits}; echo "late $S") & echo "now $S"')
    assert end.exit_status == 0
    log = directory / "job.out"
    assert log.read_text() == "now ***\n"
    gate.touch()
    eventually(lambda: log.read_text() == "now ***\nlate ***\n", "the last word")


def test_no_process_has_a_secret_among_its_arguments_and_no_script_has_it(tmp_path):
    looks = (
        'for one in /proc/[0-9]*/cmdline; do grep -qa "hunter2-is-[n]ot" $one 2>/dev/null '
        '&& echo "$one"; done; grep -rl "hunter2-is-[n]ot" . ; '
        "env | grep -c ^TIDEWHEEL_SECRETS=S"
    )
    end, directory = play(tmp_path, looks)
    assert end.exit_status == 0
    assert (directory / "job.out").read_text() == "1\n"


def test_limits_are_those_of_the_job(tmp_path):
    limits = JobLimits(open_files=77)
    end, directory = play(tmp_path, 'ulimit -n; echo "$S"', limits=limits)
    assert end.exit_status == 0
    assert (directory / "job.out").read_text() == "77\n***\n"


def test_much_output_comes_through_whole_and_in_order(tmp_path):
    command = 'for n in $(seq 2000); do printf "%s %s %05000d\\n" $n "$S" 0; done'
    _, directory = play(tmp_path, command)
    lines = (directory / "job.out").read_text().splitlines()
    assert [line.split()[:2] for line in lines] == [[str(n), "***"] for n in range(1, 2001)]
    assert {len(line.split()[2]) for line in lines} == {5000}


def test_values_with_a_secret_are_masked_for_those_after_it(tmp_path):
    command = """printf '{"a": ["%s"], "b": 1}' "$S" > $TIDEWHEEL_OUTPUTS"""
    end, directory = play(tmp_path, command)
    assert json.loads(end.values) == {"a": ["***"], "b": 1}
    assert VALUE not in (directory / "outputs.json").read_text()
