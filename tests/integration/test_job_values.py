"""A job hands values on by writing to ``$TIDEWHEEL_OUTPUTS``; Slurm's ends are read alike."""

import asyncio
import os

import pytest

from tests.kit.runner_conformance import (
    DEADLINE_SECONDS,
    RecordedReports,
    assigned,
    claimed,
)
from tidewheel.core.queue.values import VALUES_BYTES_MAX
from tidewheel.runners.job_directory import JobDirectory
from tidewheel.runners.outcome import end_of
from tidewheel.runners.processes import Exit
from tidewheel.runners.registry import RunnerParts
from tidewheel.runners.shell.runner import ShellRunner


def end_of_command(home, command):
    async def scenario():
        runner = ShellRunner(RunnerParts(environ=os.environ))
        job = await runner.start(assigned(claimed(command=command), home), RecordedReports())
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await job.wait()

    return asyncio.run(scenario())


@pytest.mark.req("R004-44")
def test_what_a_job_wrote_is_handed_on_with_its_success(tmp_path):
    end = end_of_command(tmp_path, """echo ' {"beams": 4} ' > "$TIDEWHEEL_OUTPUTS" """)
    assert (end.ending, end.exit_status, end.values) == ("succeeded", 0, '{"beams": 4}')


@pytest.mark.parametrize("command", ["true", ': > "$TIDEWHEEL_OUTPUTS"'])
def test_a_job_that_wrote_nothing_hands_on_nothing(tmp_path, command):
    end = end_of_command(tmp_path, command)
    assert (end.ending, end.values) == ("succeeded", None)


def test_a_job_that_failed_hands_on_nothing(tmp_path):
    end = end_of_command(tmp_path, """echo '{"a": 1}' > "$TIDEWHEEL_OUTPUTS"; exit 3""")
    assert (end.ending, end.exit_status, end.values) == ("failed", 3, None)


@pytest.mark.parametrize(
    ("command", "seen"),
    [
        ("echo oops", "not valid JSON"),
        ("echo '[1]'", "an array instead of an object"),
        (r"printf '{\"a\": \"\377\"}'", "is not UTF-8"),
        ("head -c 70000 /dev/zero | tr '\\0' x", f"at most {VALUES_BYTES_MAX}"),
        ("head -c 300000 /dev/zero | tr '\\0' x", f"at most {VALUES_BYTES_MAX}"),
    ],
)
def test_a_job_that_wrote_what_cannot_be_handed_on_has_failed_in_that(tmp_path, command, seen):
    end = end_of_command(tmp_path, f'{command} > "$TIDEWHEEL_OUTPUTS"')
    assert (end.ending, end.error.code, end.exit_status) == ("failed", "bad_values", 0)
    assert seen in end.error.description
    assert "$TIDEWHEEL_OUTPUTS" in end.error.description


@pytest.mark.parametrize(
    "trick",
    [
        'ln -s /etc/passwd "$TIDEWHEEL_OUTPUTS"',
        'mkfifo "$TIDEWHEEL_OUTPUTS"',
        'mkdir "$TIDEWHEEL_OUTPUTS"',
        'ln -s /dev/zero "$TIDEWHEEL_OUTPUTS"',
    ],
)
def test_only_a_plain_file_is_read(tmp_path, trick):
    end = end_of_command(tmp_path, trick)
    assert (end.ending, end.error.code) == ("failed", "bad_values")
    assert "root:" not in end.error.description


def test_the_end_that_a_job_left_behind_has_its_values(tmp_path):
    files = JobDirectory(tmp_path)
    (tmp_path / "outputs.json").write_text('{"a": 1}')
    assert end_of(Exit(status=0), files).values == '{"a": 1}'
    assert end_of(Exit(status=1), files).values is None
