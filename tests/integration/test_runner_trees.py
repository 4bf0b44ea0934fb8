"""The end of a job is the end of everything it started."""

import asyncio
import os
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager

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
from tests.support.patience import allowed
from tidewheel.core.queue.requests import Ending
from tidewheel.errors import BadSetting
from tidewheel.runners.processes import (
    ProcessTree,
    all_ended,
    identify,
    is_alive,
    read_table,
)
from tidewheel.runners.registry import RunnerParts
from tidewheel.runners.shell.fence_guard import tying_prefix
from tidewheel.runners.shell.runner import ShellRunner

# Says "NAME PID" to the mailbox, then lasts; ignores SIGTERM if it is told to.
LASTING = """
import os, signal, sys
name, mailbox, *how = sys.argv[1:]
if "daemon" in how:
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    os.chdir("/")
    for descriptor in (0, 1, 2):
        os.close(descriptor)
if "stubborn" in how:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open(mailbox, "w") as told:
    told.write(f"{name} {os.readlink('/proc/self')}\\n")
while True:
    signal.pause()
"""


@contextmanager
def mailbox_in(home):
    mailbox = Mailbox(home / "mailbox")
    try:
        yield mailbox
    finally:
        mailbox.close()


def lasting(mailbox, name, *how):
    words = (sys.executable, "-c", LASTING, name, str(mailbox.path), *how)
    return " ".join(map(shlex.quote, words))


async def processes_told(mailbox, count):
    """Who told the mailbox that it is there."""
    lines = [(await mailbox.line()).split() for _ in range(count)]
    return {name: identify(int(pid)) for name, pid in lines}


async def end_of(job):
    async with asyncio.timeout(DEADLINE_SECONDS):
        return await job.wait()


async def are_gone(processes):
    return await all_ended(processes.values(), DEADLINE_SECONDS)


def test_a_tree_that_ignores_sigterm_is_killed(tmp_path):
    """RELIABILITY 18."""

    async def scenario(mailbox):
        child = lasting(mailbox, "child", "stubborn")
        grandchild = "bash -c " + shlex.quote(f"trap '' TERM; {child} & wait")
        command = f"trap '' TERM; {grandchild} & {lasting(mailbox, 'own', 'stubborn')}"
        runner = ShellRunner(RunnerParts(environ=os.environ))
        job = await runner.start(
            assigned(claimed(command=command), tmp_path), RecordedReports()
        )
        processes = await processes_told(mailbox, 2)
        await job.stop(SHORT_GRACE_SECONDS)
        end = await end_of(job)
        assert (end.error.code, end.exit_status) == ("killed", None)
        assert await are_gone(processes)

    with mailbox_in(tmp_path) as mailbox:
        asyncio.run(scenario(mailbox))


@pytest.mark.req("R003-45")
@pytest.mark.parametrize("how", [(), ("stubborn",)])
def test_daemons_of_a_job_end_with_it(tmp_path, how):
    async def scenario(mailbox):
        command = f"{lasting(mailbox, 'daemon', 'daemon', *how)}; {lasting(mailbox, 'own')}"
        runner = ShellRunner(RunnerParts(environ=os.environ))
        job = await runner.start(
            assigned(claimed(command=command), tmp_path), RecordedReports()
        )
        processes = await processes_told(mailbox, 2)
        await job.stop(SHORT_GRACE_SECONDS if how else LONG_GRACE_SECONDS)
        end = await end_of(job)
        # The job obeyed, whatever its daemon did: its exit status is known.
        assert (end.error.code, end.exit_status) == ("signal", -signal.SIGTERM)
        assert await are_gone(processes)

    with mailbox_in(tmp_path) as mailbox:
        asyncio.run(scenario(mailbox))


def test_a_daemon_that_outlived_its_job_is_still_found(tmp_path):
    async def scenario(mailbox):
        command = lasting(mailbox, "daemon", "daemon")
        runner = ShellRunner(RunnerParts(environ=os.environ))
        job = await runner.start(
            assigned(claimed(command=command), tmp_path), RecordedReports()
        )
        processes = await processes_told(mailbox, 1)
        assert (await end_of(job)).ending is Ending.SUCCEEDED
        await job.stop(LONG_GRACE_SECONDS)
        assert await are_gone(processes)

    with mailbox_in(tmp_path) as mailbox:
        asyncio.run(scenario(mailbox))


def test_a_stopped_job_hears_the_request_to_end(tmp_path):
    async def scenario(mailbox):
        runner = ShellRunner(RunnerParts(environ=os.environ))
        task = claimed(command=lasting(mailbox, "own"))
        job = await runner.start(assigned(task, tmp_path), RecordedReports())
        process = (await processes_told(mailbox, 1))["own"]
        os.kill(process.pid, signal.SIGSTOP)
        await job.stop(LONG_GRACE_SECONDS)
        assert (await end_of(job)).exit_status == -signal.SIGTERM

    with mailbox_in(tmp_path) as mailbox:
        asyncio.run(scenario(mailbox))


@pytest.mark.req("R003-44", "R003-46")
def test_a_job_may_use_its_grace_to_leave_in_order(tmp_path):
    async def scenario(mailbox):
        tell = f"echo up > {shlex.quote(str(mailbox.path))}"
        command = f"trap 'echo saved > state; exit 0' TERM; {tell}; sleep 600 & wait"
        runner = ShellRunner(RunnerParts(environ=os.environ))
        assignment = assigned(claimed(command=command), tmp_path)
        job = await runner.start(assignment, RecordedReports())
        await mailbox.line()
        await job.stop(LONG_GRACE_SECONDS)
        end = await end_of(job)
        assert (end.ending, end.exit_status) == (Ending.SUCCEEDED, 0)
        assert (assignment.directory / "state").read_text() == "saved\n"

    with mailbox_in(tmp_path) as mailbox:
        asyncio.run(scenario(mailbox))


def test_a_second_request_with_less_grace_does_not_wait_for_the_first(tmp_path):
    async def scenario(mailbox):
        runner = ShellRunner(RunnerParts(environ=os.environ))
        task = claimed(command=f"trap '' TERM; {lasting(mailbox, 'own', 'stubborn')}")
        job = await runner.start(assigned(task, tmp_path), RecordedReports())
        await processes_told(mailbox, 1)
        patient = asyncio.create_task(job.stop(600.0))
        await asyncio.wait((patient,), timeout=0)
        await job.stop(SHORT_GRACE_SECONDS)
        assert (await end_of(job)).error.code == "killed"
        async with asyncio.timeout(DEADLINE_SECONDS):
            await patient

    with mailbox_in(tmp_path) as mailbox:
        asyncio.run(scenario(mailbox))


def test_only_the_job_that_is_stopped_ends(tmp_path):
    async def scenario(mailbox):
        runner = ShellRunner(RunnerParts(environ=os.environ))
        jobs = [
            await runner.start(
                assigned(claimed(number, command=lasting(mailbox, f"{number}")), tmp_path),
                RecordedReports(),
            )
            for number in range(2)
        ]
        processes = await processes_told(mailbox, 2)
        await jobs[0].stop(LONG_GRACE_SECONDS)
        assert is_alive(processes["1"].pid, processes["1"].started)
        await jobs[1].stop(LONG_GRACE_SECONDS)

    with mailbox_in(tmp_path) as mailbox:
        asyncio.run(scenario(mailbox))


# A worker in miniature: it starts one job and waits for it, until it is killed.
WORKER = """
import asyncio, os, sys
from pathlib import Path
from tidewheel.runners.registry import RunnerParts
from tidewheel.runners.shell.runner import ShellRunner
from tests.kit.runner_conformance import RecordedReports, assigned, claimed

async def work():
    runner = ShellRunner(RunnerParts(environ=os.environ), tie_jobs=True)
    task = claimed(command=sys.argv[2])
    job = await runner.start(assigned(task, Path(sys.argv[1])), RecordedReports())
    await job.wait()

asyncio.run(work())
"""


def path_with(folder, *programs):
    """A PATH on which there are these programs and no others."""
    folder.mkdir()
    for program in programs:
        found = shutil.which(program)
        if found is None:
            pytest.skip(f"{program} is not installed here")
        (folder / program).symlink_to(found)
    return str(folder)


@pytest.mark.parametrize("programs", [("bash", "bwrap"), ("bash", "setpriv", "unshare")])
def test_tied_jobs_and_their_daemons_die_with_their_worker(tmp_path, programs):
    """RELIABILITY 10: kill -9 of the worker leaves nothing behind."""
    environ = os.environ | {"PATH": path_with(tmp_path / "programs", *programs)}

    async def scenario(mailbox):
        daemon = lasting(mailbox, "daemon", "daemon", "stubborn")
        command = f"{daemon}; trap '' TERM; {lasting(mailbox, 'own', 'stubborn')}"
        with subprocess.Popen(
            (sys.executable, "-c", WORKER, str(tmp_path), command), env=environ
        ) as worker:
            assert {(await mailbox.line()).split()[0] for _ in range(2)} == {"daemon", "own"}
            tree = ProcessTree(
                leader=identify(worker.pid),
                directory=str(assigned(claimed(), tmp_path).directory),
            )
            processes = tree.members(read_table())
            assert len(processes) >= 5  # worker, keeper, wrapper, job and daemon
            worker.kill()
        assert await all_ended(processes, DEADLINE_SECONDS)

    with mailbox_in(tmp_path) as mailbox:
        asyncio.run(scenario(mailbox))


def test_tied_jobs_are_refused_where_they_cannot_be_had():
    with pytest.raises(BadSetting, match="bubblewrap"):
        tying_prefix((("bwrap", "--no-such-option"), ("no-such-program",)))


SUBREAPER = """
import asyncio, ctypes, os, sys
from pathlib import Path
from tidewheel.runners.processes import reap_orphans, takes_in_orphans
from tidewheel.runners.registry import RunnerParts
from tidewheel.runners.shell.runner import ShellRunner
from tests.kit.runner_conformance import RecordedReports, assigned, claimed

async def work():
    assert not takes_in_orphans()
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    assert takes_in_orphans()
    own_child = os.posix_spawnp("true", ["true"], os.environ)
    runner = ShellRunner(RunnerParts(environ=os.environ))
    task = claimed(command="(setsid bash -c 'read -r _ < go_on' &)")
    assignment = assigned(task, Path(sys.argv[1]))
    assignment.directory.mkdir(parents=True)
    os.mkfifo(assignment.directory / "go_on")
    job = await runner.start(assignment, RecordedReports())
    await job.wait()
    assert reap_orphans(()) == 0
    (assignment.directory / "go_on").write_text("now\\n")
    while os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT).si_pid == own_child:
        os.waitpid(own_child, 0)  # still ours to wait for
    assert reap_orphans(()) == 1

asyncio.run(work())
"""


def test_a_subreaper_reaps_what_jobs_leave_and_nothing_else(tmp_path):
    subprocess.run(
        (sys.executable, "-c", SUBREAPER, str(tmp_path)), check=True, timeout=allowed(30)
    )


def test_a_job_with_many_processes_does_not_take_the_worker_s_file_descriptors():
    many = 300
    held = [subprocess.Popen(["cat"], stdin=subprocess.PIPE) for _ in range(many)]
    processes = [identify(one.pid) for one in held]

    async def wait_for_them():
        before = len(os.listdir("/proc/self/fd"))
        waiting = asyncio.create_task(all_ended(processes, allowed(30)))
        await asyncio.sleep(0)
        taken = len(os.listdir("/proc/self/fd")) - before
        for one in held:
            one.stdin.close()
        assert await waiting
        kept = 1  # in which the loop watches processes, one at a time or many
        assert len(os.listdir("/proc/self/fd")) <= before - many + kept
        return taken

    taken = asyncio.run(wait_for_them())
    for one in held:
        one.wait()
    assert 0 < taken < many / 2
