"""Jobs given straight to a Slurm runner, without a worker or a store."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path

from tests.kit.runner_conformance import RecordedReports, assigned, claimed
from tests.support.patience import allowed
from tests.support.slurm import SlurmCluster
from tests.support.slurm_binaries import program
from tidewheel.core.queue.requests import Claimed, End
from tidewheel.core.queue.resources import Resources
from tidewheel.ports.runners import Assignment, Job
from tidewheel.runners.messages.server import MessageServer
from tidewheel.runners.registry import RunnerParts
from tidewheel.runners.slurm.directives import RUNNER_LABEL
from tidewheel.runners.slurm.runner import SlurmRunner

SECONDS_MAX = 90.0  # Slurm sends a message that was lost again after a minute
LAST_WORD_SECONDS = 1.0  # all nodes are on this machine
PROGRAMS = ("sbatch", "squeue", "scancel", "scontrol", "sstat")
FOR_SLURM = Resources(labels=frozenset({RUNNER_LABEL}))


class Stage:
    """A runner, and what its jobs and its troubles told."""

    def __init__(self, runner: SlurmRunner, home: Path) -> None:
        self.runner, self.home = runner, home
        self.reports = RecordedReports()
        self.troubles: list[str | None] = []
        runner.tell_trouble_to(self.troubles.append)

    def task(self, command: str, **fields: object) -> Claimed:
        return claimed(command=command, **({"resources": FOR_SLURM} | fields))

    def assignment(self, task: Claimed) -> Assignment:
        return assigned(task, self.home)

    async def start(self, command: str, **fields: object) -> Job:
        task = self.task(command, **fields)
        return await self.runner.start(self.assignment(task), self.reports)

    async def adopt(self, command: str, **fields: object) -> Job | None:
        return await self.runner.adopt(
            self.assignment(self.task(command, **fields)), self.reports
        )

    async def run(self, command: str, **fields: object) -> End:
        return await end_of(await self.start(command, **fields))


async def end_of(job: Job) -> End:
    async with asyncio.timeout(SECONDS_MAX):
        return await job.wait()


async def until_begun(job: Job, has_begun: Callable[[], object], slurm: SlurmCluster) -> None:
    """One that ends before it has begun never will: that is told at once, with its end."""
    ended = asyncio.ensure_future(job.wait())
    try:
        await until(lambda: has_begun() or ended.done(), slurm.told("it has begun"))
        assert has_begun(), f"it has ended without having begun: {ended.result()}"
    finally:
        ended.cancel()


@asynccontextmanager
async def open_stage(
    slurm: SlurmCluster, home: Path, programs: Path | None = None
) -> AsyncIterator[Stage]:
    """A runner for the length of a block; its jobs go on afterwards, as if it had died."""
    environ = os.environ | slurm.environment
    if programs is not None:
        environ["PATH"] = f"{programs}:{environ['PATH']}"
    messages = MessageServer(home)
    await messages.start()
    parts = RunnerParts(environ=environ, messages=messages)
    runner = SlurmRunner(parts, last_word_seconds=LAST_WORD_SECONDS)
    try:
        yield Stage(runner, home)
    finally:
        runner.stop()
        await messages.stop()


def play(
    slurm: SlurmCluster,
    home: Path,
    scenario: Callable[[Stage], Coroutine[object, object, None]],
    programs: Path | None = None,
) -> None:
    async def main() -> None:
        async with open_stage(slurm, home, programs) as stage:
            await scenario(stage)

    asyncio.run(main())


def faulty_sbatch(folder: Path, text: str) -> Path:
    """A folder of Slurm's programs in which sbatch is a script; `$SBATCH` is the real one."""
    folder.mkdir()
    for name in PROGRAMS[1:]:
        (folder / name).symlink_to(program(name))
    script = folder / "sbatch"
    script.write_text(f"#!/bin/sh\nSBATCH={shlex.quote(program('sbatch'))}\n{text}\n")
    script.chmod(0o755)
    return folder


async def until(
    look: Callable[[], object],
    what: str | Callable[[], str],
    seconds_max: float = SECONDS_MAX,
) -> None:
    """Wait while the runner goes on with its work."""
    try:
        async with asyncio.timeout(allowed(seconds_max)):
            while not await asyncio.to_thread(look):
                await asyncio.sleep(0.05)
    except TimeoutError:
        late = what() if callable(what) else what
        raise AssertionError(f"{late}: not within {allowed(seconds_max):g} s") from None
