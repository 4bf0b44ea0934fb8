"""D4: a fenced job does not outlive its worker, however that one ended."""

import asyncio
import os
import shlex
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from tests.kit.runner_conformance import (
    DEADLINE_SECONDS,
    Mailbox,
    RecordedReports,
    assigned,
    claimed,
)
from tests.support.patience import eventually
from tidewheel.runners.processes import all_ended, identify, read_table
from tidewheel.runners.registry import RunnerParts
from tidewheel.runners.shell.fence_guard import GUARD
from tidewheel.runners.shell.runner import ShellRunner

# A worker in miniature. It leaves a child behind that was forked and knows all it had open.
WORKER = """
import asyncio, os, signal, sys
from pathlib import Path
from tidewheel.runners.registry import RunnerParts
from tidewheel.runners.shell.runner import ShellRunner
from tests.kit.runner_conformance import RecordedReports, assigned, claimed

async def work():
    runner = ShellRunner(RunnerParts(environ=os.environ))
    task = claimed(command=sys.argv[2], fence_kill=True)
    job = await runner.start(assigned(task, Path(sys.argv[1])), RecordedReports())
    if os.fork() == 0:
        with open(sys.argv[3], "w") as told:
            told.write(f"{os.getpid()}\\n")
        signal.pause()
    await job.wait()

asyncio.run(work())
"""


class Miniature:
    """A worker with one fenced job, of which a daemon got away as far as it could."""

    def __init__(self, home):
        self.home = home
        self.mailbox = Mailbox(home / "mailbox")
        told = shlex.quote(str(self.mailbox.path))
        last = f"trap '' TERM; echo $BASHPID > {told}; exec sleep 600"
        daemon = f"setsid bash -c {shlex.quote(last)} < /dev/null &"
        self.command = f"{daemon} {last}"

    async def starts(self):
        """It, and the processes of its job and its forked child."""
        worker = subprocess.Popen(
            (sys.executable, "-c", WORKER, str(self.home), self.command, self.mailbox.path)
        )
        pids = [int(await self.mailbox.line()) for _ in range(3)]
        forked = next(pid for pid in pids if read_table().rows[pid].parent == worker.pid)
        return worker, [identify(pid) for pid in pids if pid != forked], forked


@contextmanager
def miniature(home):
    one = Miniature(home)
    try:
        yield one
    finally:
        one.mailbox.close()


def keepers_of(pid):
    """The keepers that live beside a worker."""
    rows = read_table().rows.values()
    return [
        row.pid
        for row in rows
        if row.parent == pid and not row.ended and GUARD in command_line(row.pid)
    ]


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8") as words:
            return words.read()
    except (FileNotFoundError, ProcessLookupError):  # it ended since the table was read
        return ""


@pytest.mark.req("R003-45")
def test_a_fenced_job_and_its_daemons_die_with_their_worker(tmp_path):
    async def scenario(one):
        worker, processes, forked = await one.starts()
        try:
            worker.kill()
            worker.wait()
            assert await all_ended(processes, DEADLINE_SECONDS)
        finally:
            os.kill(forked, signal.SIGKILL)

    with miniature(tmp_path) as one:
        asyncio.run(scenario(one))


def test_a_keeper_that_was_killed_is_replaced(tmp_path):
    async def scenario(one):
        worker, processes, forked = await one.starts()
        try:
            [keeper] = eventually(lambda: keepers_of(worker.pid), "there is a keeper")
            os.kill(keeper, signal.SIGKILL)
            eventually(lambda: keepers_of(worker.pid) not in ([], [keeper]), "another one")
            worker.kill()
            worker.wait()
            assert await all_ended(processes, DEADLINE_SECONDS)
        finally:
            os.kill(forked, signal.SIGKILL)

    with miniature(tmp_path) as one:
        asyncio.run(scenario(one))


def test_a_keeper_is_there_only_for_fenced_jobs_and_goes_with_the_runner(tmp_path):
    async def scenario():
        runner = ShellRunner(RunnerParts(environ=os.environ))
        for number, fence_kill in ((1, False), (2, True), (3, True)):
            task = claimed(number, command="exit 3", fence_kill=fence_kill)
            job = await runner.start(assigned(task, tmp_path), RecordedReports())
            assert (await job.wait()).exit_status == 3
            assert len(keepers_of(os.getpid())) == fence_kill
        runner.stop()
        assert keepers_of(os.getpid()) == []

    asyncio.run(scenario())


def test_a_fenced_job_is_not_started_where_no_keeper_can_be(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))

    async def scenario():
        runner = ShellRunner(RunnerParts(environ=os.environ))
        task = claimed(command="touch started", fence_kill=True)
        assignment = assigned(task, tmp_path)
        job = await runner.start(assignment, RecordedReports())
        assert "no-python" in (await job.wait()).error.description
        assert not (assignment.directory / "started").exists()

    asyncio.run(scenario())
