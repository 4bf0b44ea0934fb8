"""Calls Slurm's own programs, with arguments and never through a shell.

A call has one of three outcomes, and they are kept apart: an answer, a refusal of this request
(``SlurmRefused``), and silence (``SlurmSilent``): nobody knows whether it was heard. Silence
says nothing about any job.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence

from tidewheel.errors import BadSetting, Refused, Unavailable
from tidewheel.lazy_dataclasses import NamedTuple, pattern
from tidewheel.runners.job_environment import inherited_environment
from tidewheel.runners.sanitize import printable, storable

CALL_SECONDS_MAX = 60.0
CALLS_AT_ONCE = 8  # of sbatch: Slurm's controller serves all users
IDS_PER_CALL_MAX = 500
ANSWER_LENGTH_MAX = 600
CELL = "|"
JOB_FIELDS = CELL.join(("%i", "%T", "%r", "%N", "%j", "%Z"))
USAGE_FIELDS = "JobID,AveCPU,MaxRSS,NTasks"
ALL_STATES = "--states=all"
UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

# How Slurm says that it was not reached at all; after these nothing can have been submitted.
_NOT_REACHED = (
    "unable to contact slurm controller",
    "connection refused",
    "no route to host",
    "configuration source",  # there is no slurm.conf here
    "fetch_config",
)
# How it says that the answer is missing.
_SILENCE = (
    *_NOT_REACHED,
    "timed out",
    "zero bytes",
    "not responding",
    "munge",
    "authentication error",
    "temporarily unable",
    "standby mode",
)


# `slurm_load_jobs error: …`: the same sentence follows with the program's own name.
_LEAD = pattern(r"^(?:\w+ )?error: ", re.MULTILINE)


class SlurmRefused(Refused):
    """Slurm heard a request and does not do it."""

    code = "slurm_refused"


class SlurmSilent(Unavailable):
    """Slurm gave no answer; what was asked may have been done."""

    code = "slurm_silent"


class SlurmNotReached(SlurmSilent):
    """Slurm's controller is not there; what was asked was not done."""

    code = "slurm_not_reached"


class SlurmRow(NamedTuple):
    """Describes a job as squeue shows it."""

    id: str
    state: str
    reason: str
    nodes: str
    name: str
    folder: str = ""


class SlurmUsage(NamedTuple):
    """Holds what a job has used so far."""

    cpu_seconds: float
    memory_bytes: int


class Slurm:
    """Calls the Slurm programs on PATH; they decide to which cluster they speak."""

    def __init__(
        self, environ: Mapping[str, str], *, call_seconds_max: float = CALL_SECONDS_MAX
    ) -> None:
        # Settings of a site for its users count; settings of how lists look (SQUEUE_*) do not.
        self._environment = inherited_environment(environ) | {
            name: value
            for name, value in environ.items()
            if name == "SLURM_CONF" or name.startswith("SBATCH_")
        }
        self._call_seconds_max = call_seconds_max
        self._submitting = asyncio.Semaphore(CALLS_AT_ONCE)
        path = self._environment["PATH"]
        self._sbatch = shutil.which("sbatch", path=path)
        if self._sbatch is None:
            accepted = "a PATH with the programs sbatch, squeue and scancel of Slurm"
            raise BadSetting("PATH", path, accepted)
        self._folder = os.path.dirname(self._sbatch)

    async def submit(self, options: Sequence[str], script: str) -> str:
        """Submits a script and returns Slurm's number of the new job, as a text."""
        async with self._submitting:
            said = await self._call("sbatch", "--parsable", *options, text=script)
        number = said.partition(";")[0].strip()
        if not number.isdecimal():
            raise SlurmSilent(f"sbatch answered {_shown(said)!r} instead of a number")
        return number

    async def jobs(self, *options: str) -> list[SlurmRow]:
        """Returns the jobs of this user that wait or run, by one call of squeue.

        With ALL_STATES it returns all that Slurm remembers.
        """
        asked = ("--noheader", f"--user={os.getuid()}", f"--format={JOB_FIELDS}", *options)
        lines = (await self._call("squeue", *asked)).split("\n")
        # The last field, the folder, may hold a separator.
        rows = [line.split(CELL, JOB_FIELDS.count(CELL)) for line in lines]
        return [SlurmRow(*row) for row in rows if len(row) == len(SlurmRow._fields)]

    async def signal(self, ids: Iterable[str], signal_name: str) -> None:
        """Sends a signal to every process of running jobs."""
        await self.cancel(ids, "--full", f"--signal={signal_name}")

    async def cancel(self, ids: Iterable[str], *options: str) -> None:
        """Ends jobs, in Slurm's queue or on nodes; those that have ended are ignored.

        ``options`` are more of scancel's.
        """
        for part in _parts(list(ids)):
            await self._call("scancel", "--quiet", *options, *part)

    async def exit_code(self, job_id: str) -> tuple[int, int] | None:
        """Returns (exit status, signal) of a job, or None if Slurm does not remember them."""
        try:
            said = await self._call("scontrol", "--oneliner", "show", "job", job_id)
        except SlurmRefused:
            return None
        for word in said.split():
            name, _, value = word.partition("=")
            status, colon, number = value.partition(":")
            if name == "ExitCode" and colon and status.isdecimal() and number.isdecimal():
                return int(status), int(number)
        return None

    async def usage(self, ids: Sequence[str]) -> dict[str, SlurmUsage]:
        """Returns what running jobs have used, all steps together, by their numbers."""
        found: dict[str, SlurmUsage] = {}
        for part in _parts(ids):
            said = await self._call(
                "sstat",
                *("--allsteps", "--parsable2", "--noheader"),
                f"--jobs={','.join(part)}",
                f"--format={USAGE_FIELDS}",
            )
            for line in said.split("\n"):
                if usage := parse_usage(line):
                    known = found.get(usage[0], SlurmUsage(0.0, 0))
                    found[usage[0]] = SlurmUsage(
                        known.cpu_seconds + usage[1].cpu_seconds,
                        known.memory_bytes + usage[1].memory_bytes,
                    )
        return found

    async def _call(self, program: str, *arguments: str, text: str = "") -> str:
        try:
            process = await asyncio.create_subprocess_exec(
                os.path.join(self._folder, program),
                *arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._environment,
                umask=0o077,
                process_group=0,  # Ctrl-C is meant for the worker, and not for what it asks
            )
        except OSError as error:
            raise SlurmNotReached(f"{program} cannot be started: {error}") from error
        try:
            async with asyncio.timeout(self._call_seconds_max):
                said, complained = await process.communicate(text.encode(errors="replace"))
        except TimeoutError:
            process.kill()
            await process.wait()
            seconds = self._call_seconds_max
            raise SlurmSilent(f"{program} did not end within {seconds:g} s") from None
        except asyncio.CancelledError:
            process.kill()
            raise
        status = process.returncode
        if status is None or status < 0:
            raise SlurmSilent(f"{program} was killed")
        if status:
            raise _failure(program, complained.decode(errors="replace") or f"status {status}")
        return said.decode(errors="replace")


def parse_usage(line: str) -> tuple[str, SlurmUsage] | None:
    """Returns the job's number and usage in a line of sstat; None if it holds no figures."""
    try:
        step, cpu, memory, tasks = line.split(CELL)
        job_id = step.partition(".")[0]
        return job_id, SlurmUsage(_cpu_seconds(cpu) * int(tasks), _bytes(memory) * int(tasks))
    except ValueError:
        return None


def _cpu_seconds(text: str) -> float:
    """Returns the seconds of a time such as ``1-02:03:04``, ``02:03:04`` or ``03:04.500``."""
    days, _, clock = text.rpartition("-")
    seconds = 0.0
    for part in clock.split(":"):
        seconds = seconds * 60 + float(part)
    return seconds + 86_400 * int(days or 0)


def _bytes(text: str) -> int:
    unit = UNITS.get(text[-1:])
    return int(text) if unit is None else int(float(text[:-1]) * unit)


def _failure(program: str, complained: str) -> SlurmRefused | SlurmSilent:
    said = _shown(_LEAD.sub("", complained.replace(f"{program}: ", "")))
    lowered = complained.lower()
    if any(phrase in lowered for phrase in _NOT_REACHED):
        return SlurmNotReached(said)
    if any(phrase in lowered for phrase in _SILENCE):
        return SlurmSilent(said)
    return SlurmRefused(said)


def _shown(text: str) -> str:
    """Returns a text as one line, in which repeated lines stand once."""
    lines = dict.fromkeys(line.strip().rstrip(".") for line in text.split("\n"))
    told = [one for one in lines if one and not any(one in two for two in lines if two != one)]
    return printable(storable("; ".join(told), ANSWER_LENGTH_MAX))


def _parts(ids: Sequence[str]) -> list[Sequence[str]]:
    return [ids[at : at + IDS_PER_CALL_MAX] for at in range(0, len(ids), IDS_PER_CALL_MAX)]
