"""Runs tasks that have a command, by bash.

Theory of operation
-------------------
``sh`` runs a small wrapper which is the leader of the job's session: it writes its pid into
``job.status``, runs ``bash ./job`` and writes down how that ended. The wrapper survives the
worker, so a later worker of this host learns how a job ended of which it is not the parent.
It is a process of its own, at a millisecond each, because a trap inside bash is lost when the
command sets its own or ends with ``exec``; and the command runs exactly as it was submitted.

Of a job of another user, the wrapper makes the folders in which the job works: below ``work``
and ``share`` of a run all is that user's, and its worker, which may not follow where a link of
a job leads, neither makes nor removes anything there.

A shell says "exit status 128 + N" for "ended by signal N" and so does the wrapper: a status
of 129 to 192 is reported as that signal. A fenced job does not survive its worker: a keeper
sees to that, unless jobs are tied anyway. What a job leaves in the background when it ends by
itself goes on (``exec > >(tee log)`` must not lose its last lines); ``stop`` ends all of it.
"""

from __future__ import annotations

import math
import os
import shutil
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

from tidewheel.core.queue.requests import Claimed, End
from tidewheel.core.queue.resources import needs_runner
from tidewheel.errors import BadSetting, Refused
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.ports.runners import Assignment, Job, JobReports
from tidewheel.runners import OUTLIVED, outcome, processes
from tidewheel.runners.job_directory import (
    ERR_NAME,
    OUT_NAME,
    WRITE_EXIT,
    JobDirectory,
    make_private_directory,
    prepare_run_folders,
    script_name,
    tidy_run_folders,
    write_whole,
)
from tidewheel.runners.job_environment import SECRET, limits_script
from tidewheel.runners.job_logs import LOG_BYTES_MAX, cut_log
from tidewheel.runners.job_users import make_way, own_folders
from tidewheel.runners.processes import (
    Child,
    Exit,
    ProcessId,
    ProcessTree,
    all_ended,
    boot_id,
    is_alive,
    read_environment,
    reap,
    reap_orphans,
    spawn,
    takes_in_orphans,
    watch,
    watch_descriptor,
)
from tidewheel.runners.registry import RunnerParts
from tidewheel.runners.secret_values import SecretRefused, references_of
from tidewheel.runners.shell.fence_guard import Fence, tying_prefix
from tidewheel.runners.usage import UsageSampler

SHELL = "/bin/sh"
REAP_INTERVAL_SECONDS = 1.0
MASKER = "tidewheel.runners.shell.masked_output"  # only for jobs with secrets

# Signals are taken by a handler, not ignored: what is ignored would be so in the job too.
WRAPPER = f"""\
umask "$6"
cd -- "$1" || exit 126
unset OLDPWD
boot=$2 bash=$3 limits=$4 job=$5 work=$7 share=$8 masker=$9 asked=
trap asked=1 {" ".join(OUTLIVED)}
if [ -n "$boot" ]; then
  read -r row < /proc/$$/stat
  set -- $row
  echo "pid=$$ start=${{22}} boot=$boot" > job.status
fi
if [ -n "$work" ] && ! (umask 0; exec mkdir -p -- "$work" "$share"); then
  echo exit=126 >> job.status
  exit 126
fi
[ -z "$asked" ] || exit 143
set -- "$bash" "$job"
[ -z "$limits" ] || set -- "$bash" -c "$limits exec \"\\$0\" \"\\$1\"" "$@"
[ -z "$masker" ] || set -- "$masker" -I -m {MASKER} "$@"
"$@"
code=$?
[ -z "$work" ] || rmdir -- "$work" 2> /dev/null
{WRITE_EXIT}echo "exit=$code" >> job.status
exit $code
"""


Signalled = Callable[[ProcessTree, signal.Signals], Awaitable[None]]


class ShellJob:
    """Is a running command, which this worker has started or adopted."""

    def __init__(
        self,
        tree: ProcessTree,
        files: JobDirectory,
        end: outcome.AwaitedEnd,
        signalled: Signalled | None = None,
    ) -> None:
        self._tree = tree
        self._files = files
        self._signalled = signalled  # None: the job is of the worker's own user
        self._asked_at = math.inf  # by the local clock: when it was first sent SIGTERM
        self._killed_after_seconds: float | None = None
        self._end = end

    async def wait(self) -> End:
        return await self._end.wait()

    async def stop(self, grace_seconds: float) -> None:
        """Sends SIGTERM to the whole tree, waits for the grace, and kills what is left."""
        self._asked_at = min(self._asked_at, time.monotonic())
        if self._signalled is None:
            asked = await processes.terminate(self._tree)
        else:
            asked = await processes.read_members(self._tree)
            await self._signalled(self._tree, signal.SIGTERM)
        await all_ended(asked, grace_seconds)
        if self._end.known is None:
            self._killed_after_seconds = round(time.monotonic() - self._asked_at, 1)
        if self._signalled is None:
            await processes.kill(self._tree)
        else:
            await self._signalled(self._tree, signal.SIGKILL)

    def find_end(self, exited: Exit | None) -> None:
        """Finds out how the job ended, now that its leader has, and tells those that wait.

        None: the leader left no exit status.
        """
        killed_by_us = self._killed_after_seconds is not None and (
            exited is None or outcome.exit_status_of(exited) == -signal.SIGKILL
        )
        if killed_by_us:
            end = outcome.killed(self._killed_after_seconds or 0.0)
        elif exited is None:
            end = outcome.vanished(self._tree.leader)
        else:
            end = outcome.end_of(exited, self._files)
        self._end.set(end)


class UnwatchedJob(NamedTuple):
    """Holds a job that was started, and cannot be watched."""

    leader: ProcessId | Child
    why: OSError


class ShellRunner:
    """Runs commands; a worker has one such runner for all of its jobs."""

    def __init__(
        self,
        parts: RunnerParts,
        *,
        sampler: UsageSampler | None = None,
        tie_jobs: bool = False,
        log_bytes_max: int = LOG_BYTES_MAX,
    ) -> None:
        self._parts = parts
        self._environment = parts.inherited_environment()
        self._bash = find_bash(self._environment["PATH"])
        self._prefix = tying_prefix() if tie_jobs else ()
        self._limits = limits_script(parts.limits)
        self._boot_id = boot_id()
        self._sampler = sampler
        self._log_bytes_max = log_bytes_max
        # The jobs that this process has to reap, apart from orphans that came to it.
        self._children: set[int] = set()
        self._takes_in_orphans = takes_in_orphans()
        self._orphans_reaped_at = time.monotonic()
        self._fence = Fence()

    def accepts(self, task: Claimed) -> bool:
        """Says whether the task has a command, and not one for another runner."""
        return task.command is not None and not needs_runner(task.resources)

    async def start(self, assignment: Assignment, reports: JobReports) -> Job:
        """Starts a command; one that cannot be started becomes a job that has failed.

        If the host is the reason, RunnerUnable is raised instead: the task is for another
        worker.
        """
        try:
            if assignment.task.environment is not None:
                values = await self._parts.secrets.values_for(assignment.task)
                assignment = replace(assignment, secrets=values)
        except SecretRefused as refused:
            return self._without_secret(assignment, str(refused))
        except (Refused, OSError, ValueError) as error:
            return self._without_process(assignment, error)
        job = self._begin(assignment, reports, outcome.tell_no_end)
        if isinstance(job, UnwatchedJob):
            await self._give_up(job.leader, assignment)
            return outcome.not_started(job.why, assignment.directory)
        return job

    def start_now(
        self,
        task: Claimed,
        assign: Callable[[], Assignment],
        reports: JobReports,
        on_end: Callable[[End], None],
    ) -> Job | None:
        """Starts a command as ``start`` does; None for one with secrets or of another user."""
        if task.environment is not None or self._parts.job_users is not None:
            return None
        assignment = assign()
        job = self._begin(assignment, reports, on_end)
        if isinstance(job, UnwatchedJob):
            self._kill_unwatched(job.leader, assignment)
            job = outcome.not_started(job.why, assignment.directory)
        if isinstance(job, outcome.EndedJob):
            on_end(job.end)
        return job

    def _begin(
        self, assignment: Assignment, reports: JobReports, on_end: Callable[[End], None]
    ) -> Job | UnwatchedJob:
        """Starts a command whose secrets are known, and follows it."""
        try:
            if assignment.task.fence_kill and not self._prefix and not self._parts.job_users:
                self._fence.close_around(assignment.directory)
            leader = self._spawn(assignment, reports)
        except (Refused, OSError, ValueError) as error:
            return self._without_process(assignment, error)
        self._parts.failpoint("job_spawned_before_record")
        try:
            if isinstance(leader, Child):
                self._children.add(leader.pid)
            else:
                JobDirectory(assignment.folder).write_leader(leader, self._boot_id)
            job = self._follow(assignment, reports, leader, on_end)
        except OSError as error:  # no file descriptor is left to watch it with
            return UnwatchedJob(leader, error)
        reports.started()
        return job

    def _without_process(
        self, assignment: Assignment, error: Refused | OSError | ValueError
    ) -> outcome.EndedJob:
        """Returns a job that could not be started; raises RunnerUnable if the host is why."""
        self._forget(assignment)
        if isinstance(error, Refused):
            return outcome.refused(str(error))
        return outcome.not_started(error, assignment.directory)

    async def adopt(self, assignment: Assignment, reports: JobReports) -> Job | None:
        """Watches the job of a worker that died; None if there is no job that can be adopted.

        Every message of the attempt is reported again from the first; the worker drops those
        that the store has.
        """
        files = JobDirectory(assignment.folder)
        status = files.read_status()
        if status.process is None and status.exit_status is None:
            return None
        if status.exit_status is None and is_elsewhere(status.boot_id, self._boot_id):
            return None
        reports.started()
        leader = status.process
        is_here = status.boot_id == self._boot_id
        if leader is None or not (is_here and is_alive(leader.pid, leader.started)):
            self._parts.expect_adopted(assignment, reports)
            self._forget(assignment)
            exited = _recorded_exit(files)  # read again: it may have ended since
            if exited is not None:
                return outcome.EndedJob(outcome.end_of(exited, files))
            assert leader is not None, "a job without any trace is not adopted"
            return outcome.EndedJob(outcome.vanished(leader))
        secret = read_environment(leader.pid).get(SECRET.encode(), b"").decode()
        if self._parts.job_users is not None:  # whose environment cannot be read
            secret = files.read_secret()
        secrets = await self._known_secrets(assignment, leader)
        known = replace(assignment, secret=secret or assignment.secret, secrets=secrets)
        self._parts.expect_adopted(known, reports)
        return self._follow(known, reports, leader, outcome.tell_no_end)

    def _without_secret(self, assignment: Assignment, why: str) -> Job:
        """Returns a job that was not started, and leaves the reason where its log would be."""
        files = JobDirectory(assignment.folder)
        with suppress(OSError):
            if self._parts.job_users is not None:
                make_way(self._parts.home, assignment)
            make_private_directory(files.folder)
            prepare_run_folders(assignment)
            write_whole(files.err, f"{why}\n".encode(), mode=0o600)
        return outcome.EndedJob(outcome.failed("start", why))

    async def _known_secrets(self, assignment: Assignment, leader: ProcessId) -> dict[str, str]:
        """Returns the secrets of an adopted job, for what it says from now on: those that it
        was given, else what they are now. What it said before was masked when it did."""
        if assignment.task.environment is None:
            return {}
        told = read_environment(leader.pid)  # nothing, if the job is of another user
        with suppress(Refused):
            names = references_of(assignment.task)
            given = {one: told[one.encode()].decode() for one in names if one.encode() in told}
            return given or await self._parts.secrets.values_for(assignment.task)
        return {}

    def stop(self) -> None:
        """Ends the fence: its guard kills the fenced jobs that are left."""
        self._fence.stop()

    def _spawn(self, assignment: Assignment, reports: JobReports) -> ProcessId | Child:
        """Returns the leader of a new job: a child of this process, or of the launcher."""
        users, home, directory = self._parts.job_users, self._parts.home, assignment.folder
        if users is not None:
            make_way(home, assignment)
        environment = self._parts.prepare(assignment, reports, self._environment)
        self._parts.failpoint("job_before_start")
        # In a namespace of its own the job cannot know its pid here; nobody will adopt it.
        boot = "" if self._prefix else self._boot_id
        facts = (
            *(directory, boot, self._bash, self._limits, script_name(assignment)),
            # The worker reads what a job leaves.
            *(("077", "", "") if users is None else ("022", *own_folders(assignment))),
            sys.executable if assignment.secrets else "",
        )
        if users is not None:
            files = JobDirectory(directory)
            files.write_secret(assignment.secret)
            words, logs = ("-c", WRAPPER, "job", *facts), (files.out, files.err)
            return users.start(home, assignment, words, environment, logs)
        return spawn(
            (*self._prefix, SHELL, "-c", WRAPPER, "job", *facts),
            environment,
            out=f"{directory}/{OUT_NAME}",
            err=f"{directory}/{ERR_NAME}",
        )

    def _follow(
        self,
        assignment: Assignment,
        reports: JobReports,
        leader: ProcessId | Child,
        on_end: Callable[[End], None],
    ) -> ShellJob:
        """Returns the job with this leader, which is sampled and watched from now on."""
        directory = assignment.folder
        files = JobDirectory(directory)
        tree = ProcessTree(leader=leader, directory=directory, spare_leader=bool(self._prefix))
        logs = (f"{directory}/{OUT_NAME}", f"{directory}/{ERR_NAME}")
        job = ShellJob(tree, files, outcome.AwaitedEnd(on_end), self._signalled(assignment))

        def leader_ended() -> None:
            try:
                if let_go is not None:
                    let_go()
                self._forget(assignment)
                for log in logs:
                    cut_log(log, self._log_bytes_max)
            finally:  # no trouble with what a job left costs its end
                exited = leader.reap() if isinstance(leader, Child) else None
                self._children.discard(leader.pid)
                job.find_end(exited or _recorded_exit(files))
            # The next job has begun by now: a disk may let its folder wait for a while.
            if self._parts.job_users is None:
                tidy_run_folders(assignment)
            if self._takes_in_orphans:
                self._reap_orphans()

        if isinstance(leader, Child):  # else nobody here reaps it
            watch_descriptor(leader.descriptor, leader_ended)
            watched = True
        else:
            watched = watch(leader, leader_ended) is not None
        let_go = self._sampler.watch(tree, reports, logs) if self._sampler else None
        if not watched:
            leader_ended()
        return job

    def _signalled(self, assignment: Assignment) -> Signalled | None:
        """Returns how to signal a job of another user; None for a job of the worker's own."""
        users = self._parts.job_users
        return None if users is None else partial(users.end, assignment.task)

    async def _give_up(self, leader: ProcessId | Child, assignment: Assignment) -> None:
        """Kills a job that cannot be watched, because nobody would ever stop it."""
        if (signalled := self._signalled(assignment)) is not None:
            tree = ProcessTree(leader=leader, directory=assignment.folder)
            await signalled(tree, signal.SIGKILL)
            self._forget(assignment)
        else:
            self._kill_unwatched(leader, assignment)

    def _kill_unwatched(self, leader: ProcessId | Child, assignment: Assignment) -> None:
        with suppress(ProcessLookupError):
            os.killpg(leader.pid, signal.SIGKILL)
        reap(leader.pid)
        self._children.discard(leader.pid)
        self._forget(assignment)

    def _reap_orphans(self) -> None:
        """Reaps the orphans that came to this process, at most once a second."""
        now = time.monotonic()
        if now - self._orphans_reaped_at > REAP_INTERVAL_SECONDS:
            self._orphans_reaped_at = now
            reap_orphans(self._children)

    def _forget(self, assignment: Assignment) -> None:
        """Passes on what an ended job said last, and hears nothing more of it. The guard of
        fenced jobs is told that it has ended."""
        if assignment.task.fence_kill:
            self._fence.open_for(assignment.directory)
        if self._parts.messages is not None:
            self._parts.messages.forget(assignment.secret)


def find_bash(path: str) -> str:
    """Returns the path of bash; raises BadSetting if there is none."""
    bash = shutil.which("bash", path=path)
    if bash is None:
        raise BadSetting("PATH", path, "a PATH with the program bash, which runs the commands")
    return bash


def is_elsewhere(job_boot_id: str, own_boot_id: str) -> bool:
    """Says whether a job is in another pid namespace of this boot, where it may still run."""
    same_kernel = job_boot_id.partition("/")[0] == own_boot_id.partition("/")[0]
    return same_kernel and job_boot_id != own_boot_id


def _recorded_exit(files: JobDirectory) -> Exit | None:
    recorded = files.read_status().exit_status
    return None if recorded is None else Exit(status=recorded)
