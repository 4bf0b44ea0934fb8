"""Describes one attempt that is a Slurm job: its script, its record, its reports, its stop.

``job.slurm`` is what a worker and a job on a compute node agree on, in the attempt's folder:

    key=…    made anew for each submission, and part of the name that Slurm knows the job by
    store=…  task=…  attempt=…   whose it is, for a worker that finds the job in Slurm
    id=…     Slurm's number of it, once sbatch has answered
    void     this submission is given up: a job that begins all the same ends at once
    over     its end was seen: nothing of it is left in Slurm

The key is there before sbatch is called. A worker that finds a key without a number looks for a
job of that name; if there is none it makes the record void before it lets another have the
task. So a submission whose answer was lost, or is still on its way, runs once or not at all.

The script that Slurm runs has directives, then a wrapper around the job as it was submitted. As
with the shell runner the wrapper writes down how the job ended, so that nobody has to ask
Slurm for an exit status within the minutes for which it remembers. It begins nothing if its
record is void, or if the job has begun before: a job that Slurm puts back into its queue, after
a node died, is not this attempt any more.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from shlex import quote
from typing import Protocol

from tidewheel.core.graph.outputs import SUBMITTED
from tidewheel.core.queue.requests import End, UsageSample
from tidewheel.lazy_dataclasses import dataclass, pattern
from tidewheel.ports.runners import Assignment, JobReports
from tidewheel.runners import OUTLIVED
from tidewheel.runners.job_directory import WRITE_EXIT, JobDirectory, write_whole
from tidewheel.runners.outcome import exit_status_of, killed
from tidewheel.runners.processes import Exit
from tidewheel.runners.slurm.outcome import TIMES_NAME, is_of_queue
from tidewheel.runners.slurm.programs import SlurmRow, SlurmUsage

ENVIRONMENT_NAME = "job.environment"
NOT_OURS = 125  # exit status of a job that must not begin

_WRAPPER = """\
umask 077
cd -- {directory} || exit 126
unset OLDPWD
asked= mine=
trap asked=1 {outlived}
while read -r line; do
  case $line in
    key={key}) mine=1 ;;
    void) mine= ;;
  esac
done < job.slurm
[ -n "$mine" ] || exit {not_ours}
if [ -e job.status ]; then
  echo "tidewheel: this attempt began before; Slurm may not begin it again" >&2
  exit {not_ours}
fi
. ./{environment}
read -r row < /proc/$$/stat
set -- $row
echo "pid=$$ start=${{22}} boot=slurm/$SLURM_JOB_ID node=$SLURMD_NODENAME" > job.status
[ -z "$asked" ] || exit 143
{run}
code=$?
times > {times}
{write_exit}echo "exit=$code${{asked:+ asked=1}}" >> job.status
exit $code
"""


def batch_script(
    lines: Sequence[str], directory: Path, key: str, *, script: str, limits: str
) -> str:
    """Returns the script for sbatch, which reads the directives at the head by itself."""
    run = f"bash {quote(script)}"
    if limits:
        limited = f'{limits} exec bash "$0"'
        run = f"bash -c {quote(limited)} {quote(script)}"
    body = _WRAPPER.format(
        directory=quote(str(directory)),
        outlived=" ".join(OUTLIVED),
        key=key,
        not_ours=NOT_OURS,
        environment=ENVIRONMENT_NAME,
        times=TIMES_NAME,
        run=run,
        write_exit=WRITE_EXIT,
    )
    return "\n".join(["#!/bin/sh", *lines, body])


def write_environment(directory: Path, environment: Mapping[str, str]) -> None:
    """Writes the environment into a file that only this user can read.

    Neither Slurm's files nor the arguments of a process may show it.
    """
    lines = [f"export {name}={quote(value)}" for name, value in environment.items()]
    content = "\n".join([*lines, ""]).encode(errors="surrogateescape")
    write_whole(directory / ENVIRONMENT_NAME, content, mode=0o600)


def read_variable(directory: Path, name: str) -> str:
    """Returns a variable of a job's environment, for an adopter; empty if it is not known."""
    beginning = f"export {name}="
    try:
        text = (directory / ENVIRONMENT_NAME).read_text(errors="surrogateescape")
    except OSError:
        return ""
    found = (
        line.removeprefix(beginning) for line in text.split("\n") if line.startswith(beginning)
    )
    return next(found, "").strip("'")


RECORD_NAME = "job.slurm"
RECORD_BYTES_MAX = 4096
ID_LENGTH_MAX = 500
VOID = "void"
OVER = "over"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmRecord:
    """Holds what ``job.slurm`` says; without an id nobody has heard sbatch answer."""

    key: str
    id: str | None = None
    store: str = ""
    task_id: str = ""
    attempt: int = 0
    is_void: bool = False
    is_over: bool = False  # a worker that begins a later attempt need not look for this one


def known_id(task_id: str) -> str:
    """Returns the id of a task if a line of the record can hold it unchanged, else "".

    So nobody takes one task for another and ends its job.
    """
    return task_id if task_id.isprintable() and len(task_id) <= ID_LENGTH_MAX else ""


def write_record(directory: Path, record: SlurmRecord) -> None:
    """Writes a record as a whole: a job that begins meanwhile reads the old or the new one."""
    lines = [
        f"key={record.key}",
        *((f"id={record.id}",) if record.id is not None else ()),
        *(f"store={record.store}", f"task={record.task_id}", f"attempt={record.attempt}"),
        *((VOID,) if record.is_void else ()),
        *((OVER,) if record.is_over else ()),
    ]
    text = "".join(f"{line}\n" for line in lines)
    write_whole(directory / RECORD_NAME, text.encode(errors="replace"), mode=0o600)


def make_void(directory: Path, record: SlurmRecord) -> None:
    """Writes the record so that no job with this key may begin any more."""
    write_record(directory, replace(record, is_void=True))


def read_record(directory: Path) -> SlurmRecord | None:
    """Returns the record of a submission; None where nothing was submitted."""
    with suppress(OSError):
        with open(
            os.open(directory / RECORD_NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb"
        ) as file:
            lines = file.read(RECORD_BYTES_MAX).decode(errors="replace").split("\n")
        facts = dict(line.partition("=")[::2] for line in lines if line)
        if facts.get("key"):
            return SlurmRecord(
                key=facts["key"],
                id=facts.get("id") or None,
                store=facts.get("store", ""),
                task_id=facts.get("task", ""),
                attempt=int(facts["attempt"]) if facts.get("attempt", "").isdecimal() else 0,
                is_void=VOID in facts,
                is_over=OVER in facts,
            )
    return None


@dataclass(slots=True)
class SlurmReports:
    """Implements the port ``JobReports``; reports that a job began before all that it says.

    A job on the worker's own host may be heard through its socket before a round of the watch
    sees that it has begun.
    """

    reports: JobReports
    begun: bool = False

    def started(self) -> None:
        """Reports once that the job has begun."""
        if not self.begun:
            self.begun = True
            self.reports.started()

    def progress(self, value: float) -> None:
        self.started()
        self.reports.progress(value)

    def message(self, text: str, output: str | None = None, values: str | None = None) -> None:
        is_of_runner = output == SUBMITTED or (output is None and is_of_queue(text))
        if not is_of_runner:  # the runner itself says that before the job begins
            self.started()
        self.reports.message(text, output, values)

    def usage(self, sample: UsageSample) -> None:
        self.reports.usage(sample)

    def log_begun(self) -> None:
        self.reports.log_begun()

    async def told(self) -> None:
        self.started()  # a job that asks has begun
        await self.reports.told()


NAME_LENGTH_MAX = 200
REPEAT_SECONDS = 5.0  # a job that does not end is killed again, should Slurm not have heard it
KILLED = -signal.SIGKILL
_UNUSUAL = pattern(r"[^A-Za-z0-9_.:/+@-]")


class Stopping(Protocol):
    """Asks a job to end, or kills it; neither waits until the job has ended."""

    async def terminate(self, job: SlurmJob) -> None: ...
    async def kill(self, job: SlurmJob) -> None: ...


@dataclass(slots=True, kw_only=True, eq=False)
class SlurmJob:
    """Implements the port ``Job``; the worker's ``SlurmWatch`` sets ``over`` at its end."""

    assignment: Assignment
    reports: SlurmReports
    record: SlurmRecord
    stopping: Stopping
    submitted_at: float = field(default_factory=time.monotonic)
    row: SlurmRow | None = None  # as Slurm showed it last
    unclear_since: float | None = None  # over, as it seems, but its last word is missing
    waits: str = ""  # why it stays in Slurm's queue, as was told last
    spool_bytes: int = 0
    usage: SlurmUsage | None = None
    usage_at: float = 0.0
    stop_asked: bool = False
    killed_after_seconds: float | None = None
    over: asyncio.Future[End] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    @property
    def files(self) -> JobDirectory:
        return JobDirectory(self.assignment.directory)

    async def wait(self) -> End:
        return await asyncio.shield(self.over)

    async def stop(self, grace_seconds: float) -> None:
        """Sends SIGTERM to all processes of the job, and SIGKILL after the grace.

        It repeats that until the job is over.
        """
        self.stop_asked = True
        if await self._asked_within(self.stopping.terminate, grace_seconds):
            return
        self.killed_after_seconds = grace_seconds
        while not await self._asked_within(self.stopping.kill, REPEAT_SECONDS):
            pass

    async def _asked_within(
        self, ask: Callable[[SlurmJob], Awaitable[None]], seconds: float
    ) -> bool:
        """Asks the job to end, waits at most so long, and returns whether the job is over."""
        asking = asyncio.ensure_future(ask(self))
        done, _ = await asyncio.wait((self.over,), timeout=max(0.0, seconds))
        if done:
            asking.cancel()
        else:
            await asyncio.wait((asking,))
        return self.over.done()

    def seen_end(self, end: End, exit_status: int | None) -> End:
        """Returns the end to report: that it was killed, if it was, and by this worker."""
        if self.killed_after_seconds is None:
            return end
        if exit_status is None or exit_status_of(Exit(status=exit_status)) == KILLED:
            return killed(self.killed_after_seconds)
        return end


def job_name(assignment: Assignment, key: str) -> str:
    """Returns the name of a job in Slurm's lists: task and attempt for people, then the key."""
    task = assignment.task
    shown = _UNUSUAL.sub("_", f"{task.name or task.id}")[:NAME_LENGTH_MAX]
    return f"{shown}.{task.attempt}.{key}"


def key_of(name: str) -> str:
    """Returns the key in a name that ``job_name`` made; of other names some text, no key."""
    return name.rpartition(".")[2]
