"""A kill -9 of a worker kills no job: whoever starts next on the host goes on with it."""

import asyncio
import os
import shlex
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from tests.kit.runner_conformance import (
    DEADLINE_SECONDS,
    LONG_GRACE_SECONDS,
    SHORT_GRACE_SECONDS,
    Mailbox,
    RecordedReports,
    assigned,
    claimed,
)
from tidewheel.core.queue.requests import Ending
from tidewheel.runners.job_directory import JobDirectory
from tidewheel.runners.messages.server import MessageServer
from tidewheel.runners.processes import (
    all_ended,
    boot_id,
    identify,
    is_process_alive,
    this_process,
)
from tidewheel.runners.registry import RunnerParts
from tidewheel.runners.shell.runner import ShellRunner
from tidewheel.runners.usage import UsageSampler

# A worker in miniature: it starts one job and waits for it, until it is killed.
WORKER = """
import asyncio, os, sys
from pathlib import Path
from tidewheel.runners.messages.server import MessageServer
from tidewheel.runners.registry import RunnerParts
from tidewheel.runners.shell.runner import ShellRunner
from tests.kit.runner_conformance import RecordedReports, assigned, claimed

async def work():
    home = Path(sys.argv[1])
    messages = MessageServer(home)
    await messages.start()
    runner = ShellRunner(RunnerParts(environ=os.environ, messages=messages))
    task = claimed(command=sys.argv[2])
    job = await runner.start(assigned(task, home), RecordedReports())
    await job.wait()

asyncio.run(work())
"""

SPEAKER = """
import os, sys
from pathlib import Path
from tidewheel.runners.messages.client import send_message

send_message(
    Path(os.environ["TIDEWHEEL_JOB_DIR"]), os.environ["TIDEWHEEL_SECRET"], text=sys.argv[1]
)
"""


def say(text):
    return " ".join(map(shlex.quote, (sys.executable, "-c", SPEAKER, text)))


class Scene:
    """A job whose worker was killed while it waited to be told to go on."""

    def __init__(self, home):
        self.home = home
        self.assignment = assigned(claimed(), home)
        self.files = JobDirectory(self.assignment.directory)
        self.mailbox = Mailbox(home / "mailbox")
        self.go_on = home / "go_on"
        self.reports = RecordedReports()
        os.mkfifo(self.go_on)

    def command(self, ending, *, before="true", prelude="true"):
        told, waits = shlex.quote(str(self.mailbox.path)), shlex.quote(str(self.go_on))
        return f"{prelude}; {before}; echo up > {told}; read -r _ < {waits}; {ending}"

    async def orphan(self, command):
        with subprocess.Popen(
            (sys.executable, "-c", WORKER, str(self.home), command)
        ) as worker:
            await self.mailbox.line()
            worker.kill()

    @property
    def leader(self):
        return self.files.read_status().process

    async def let_it_end(self):
        leader = self.leader
        self.go_on.write_text("go\n")
        assert await all_ended([leader], DEADLINE_SECONDS)

    @asynccontextmanager
    async def adopted(self, **options):
        messages = MessageServer(self.home)
        await messages.start()
        runner = ShellRunner(RunnerParts(environ=os.environ, messages=messages), **options)
        # As a new worker would: it does not know the secret that its predecessor chose.
        unknowing = replace(self.assignment, secret="another")
        try:
            yield await runner.adopt(unknowing, self.reports)
        finally:
            await messages.stop()


def play(home, scenario):
    async def on_stage():
        scene = Scene(home)
        try:
            await scenario(scene)
        finally:
            scene.mailbox.close()

    asyncio.run(on_stage())


async def end_of(job):
    async with asyncio.timeout(DEADLINE_SECONDS):
        return await job.wait()


def test_a_live_job_is_watched_to_its_end(tmp_path):
    async def scenario(scene):
        await scene.orphan(scene.command("exit 7"))
        async with scene.adopted() as job:
            waiting = asyncio.ensure_future(job.wait())
            await asyncio.wait((waiting,), timeout=0)
            assert not waiting.done()
            scene.go_on.write_text("go\n")
            end = await end_of(job)
        assert (end.error.code, end.exit_status) == ("exit", 7)
        assert scene.reports.starts == 1

    play(tmp_path, scenario)


@pytest.mark.parametrize(
    ("ending", "exit_status"), [("true", 0), ("exit 4", 4), ("kill -KILL $$", -9)]
)
@pytest.mark.parametrize("prelude", ["true", "trap 'exit 1' TERM"])
def test_a_job_that_ended_unseen_has_left_its_exit_status(
    tmp_path, ending, exit_status, prelude
):
    async def scenario(scene):
        await scene.orphan(scene.command(ending, prelude=prelude))
        await scene.let_it_end()
        async with scene.adopted() as job:
            assert (await end_of(job)).exit_status == exit_status

    play(tmp_path, scenario)


def test_a_job_that_ended_with_exec_has_left_its_exit_status(tmp_path):
    async def scenario(scene):
        await scene.orphan(scene.command("exec sh -c 'exit 9'", prelude="trap 'true' EXIT"))
        async with scene.adopted() as job:
            scene.go_on.write_text("go\n")
            assert (await end_of(job)).exit_status == 9

    play(tmp_path, scenario)


def test_a_job_that_left_no_word_has_vanished(tmp_path):
    async def scenario(scene):
        await scene.orphan(scene.command("true"))
        leader = scene.leader
        os.killpg(leader.pid, signal.SIGKILL)
        assert await all_ended([leader], DEADLINE_SECONDS)
        async with scene.adopted() as job:
            end = await end_of(job)
        assert (end.ending, end.error.code) == (Ending.FAILED, "vanished")
        assert str(leader.pid) in end.error.description
        assert end.exit_status is None

    play(tmp_path, scenario)


def test_what_was_said_is_told_to_the_adopter_from_the_first_word(tmp_path):
    async def scenario(scene):
        rest = f"{say('alone')}; {say('second')}; echo up > {scene.mailbox.path}"
        last = f"read -r _ < {scene.go_on}; {say('third')}; exit 0"
        await scene.orphan(scene.command(f"{rest}; {last}", before=say("first")))
        # Two things are said while there is no worker at all.
        scene.go_on.write_text("go\n")
        await scene.mailbox.line()
        async with scene.adopted() as job:
            heard = [text for text, _ in scene.reports.messages]
            assert heard == ["first", "alone", "second"]
            scene.go_on.write_text("go\n")
            assert (await end_of(job)).ending is Ending.SUCCEEDED
        assert [text for text, _ in scene.reports.messages] == [*heard, "third"]

    play(tmp_path, scenario)


def test_what_an_ended_job_had_said_is_told_to_its_adopter(tmp_path):
    async def scenario(scene):
        await scene.orphan(scene.command(say("last words")))
        await scene.let_it_end()
        async with scene.adopted() as job:
            await end_of(job)
        assert scene.reports.messages == [("last words", None)]

    play(tmp_path, scenario)


@pytest.mark.parametrize(
    ("prelude", "grace", "code", "exit_status"),
    [
        ("true", LONG_GRACE_SECONDS, "signal", -signal.SIGTERM),
        ("trap '' TERM", SHORT_GRACE_SECONDS, "killed", None),
    ],
)
def test_an_adopted_job_is_stopped_like_any_other(tmp_path, prelude, grace, code, exit_status):
    async def scenario(scene):
        await scene.orphan(scene.command("true", prelude=prelude))
        leader = scene.leader
        async with scene.adopted() as job:
            await job.stop(grace)
            end = await end_of(job)
        assert (end.error.code, end.exit_status) == (code, exit_status)
        assert await all_ended([leader], DEADLINE_SECONDS)

    play(tmp_path, scenario)


def test_the_usage_of_an_adopted_job_is_sampled(tmp_path):
    async def scenario(scene):
        sampler = UsageSampler(0.05)
        await scene.orphan(scene.command("true"))
        async with scene.adopted(sampler=sampler) as job:
            await scene.reports.until(lambda said: said.samples)
            scene.go_on.write_text("go\n")
            await end_of(job)
        sampler.stop()
        assert scene.reports.samples[0].memory_bytes > 0

    play(tmp_path, scenario)


@pytest.mark.parametrize(
    "status",
    ["", "pid=7", "pid=7 start=1 boot=x", "no words\n", "pid=seven start=1 boot=x\n", "\0\0\n"],
)
def test_a_status_that_says_nothing_is_nothing_to_adopt(tmp_path, status):
    async def scenario(scene):
        scene.files.path.mkdir(parents=True)
        scene.files.status.write_text(status)
        async with scene.adopted() as job:
            assert job is None

    play(tmp_path, scenario)


def test_a_job_from_before_a_reboot_has_vanished(tmp_path):
    async def scenario(scene):
        scene.files.path.mkdir(parents=True)
        own = identify(os.getpid())
        scene.files.status.write_text(f"pid={own.pid} start={own.started} boot=other/1\n")
        async with scene.adopted() as job:
            assert (await end_of(job)).error.code == "vanished"

    play(tmp_path, scenario)


def test_a_later_process_with_the_same_pid_is_not_the_job(tmp_path):
    async def scenario(scene):
        scene.files.path.mkdir(parents=True)
        own = identify(os.getpid())
        status = f"pid={own.pid} start={own.started - 1} boot={boot_id()}\n"
        scene.files.status.write_text(status)
        async with scene.adopted() as job:
            assert (await end_of(job)).error.code == "vanished"

    play(tmp_path, scenario)


def test_a_job_of_another_container_is_left_alone(tmp_path):
    async def scenario(scene):
        scene.files.path.mkdir(parents=True)
        elsewhere = boot_id().partition("/")[0] + "/1"
        scene.files.status.write_text(f"pid=1 start=1 boot={elsewhere}\n")
        async with scene.adopted() as job:
            assert job is None

    play(tmp_path, scenario)


def test_a_process_is_dead_only_where_that_can_be_proven():
    own = this_process()
    assert is_process_alive(own)
    assert not is_process_alive(replace(own, started=own.started - 1))
    assert is_process_alive(replace(own, started=own.started - 1, host="another"))
    assert is_process_alive(replace(own, started=own.started - 1, boot_id="another"))


def test_a_zombie_is_dead():
    with subprocess.Popen(("sleep", "600")) as child:
        process = replace(this_process(), pid=child.pid)
        process = replace(process, started=float(identify(child.pid).started))
        assert is_process_alive(process)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not is_process_alive(process)
