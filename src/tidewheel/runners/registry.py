"""Opens the runners that a worker may have besides bash and handlers, each by its name."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from tidewheel.config import CONTAINERS, JobLimits, WorkerSettings
from tidewheel.core.queue.submission import MESSAGE_BYTES_MAX
from tidewheel.errors import BadSetting
from tidewheel.failpoints import Failpoint, go_on
from tidewheel.ports.runners import Runner
from tidewheel.runners.job_environment import RunAids
from tidewheel.runners.messages.server import MessageServer

NO_LIMITS = JobLimits()
RUN_AIDS = RunAids(programs=Path(sys.executable).parent)
USAGE_INTERVAL_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerParts:
    """The parts that all runners of a worker share."""

    environ: Mapping[str, str]
    messages: MessageServer | None = None  # None: jobs cannot speak
    limits: JobLimits = NO_LIMITS
    aids: RunAids = RUN_AIDS
    usage_interval_seconds: float = USAGE_INTERVAL_SECONDS
    failpoint: Failpoint = go_on
    allow_compose: tuple[str, ...] = ()
    runners: tuple[str, ...] = ()  # all that the worker has

    @classmethod
    def of(
        cls,
        settings: WorkerSettings,
        messages: MessageServer,
        aids: RunAids,
        environ: Mapping[str, str],
        failpoint: Failpoint,
    ) -> RunnerParts:
        """Returns those of a worker with these settings."""
        return cls(
            environ=environ,
            messages=messages,
            limits=settings.job_limits,
            aids=aids,
            usage_interval_seconds=settings.usage_interval_seconds,
            failpoint=failpoint,
            allow_compose=settings.allow_compose,
            runners=settings.runners,
        )

    @property
    def message_bytes_max(self) -> int:
        """Returns how long a message may be."""
        return MESSAGE_BYTES_MAX if self.messages is None else self.messages.message_bytes_max


class OtherRunner(Runner, Protocol):
    """A runner whose jobs somebody else runs, who may be out of reach."""

    def tell_trouble_to(self, hear: Callable[[str | None], None]) -> None: ...
    def stop(self) -> None: ...


@runtime_checkable
class LingeringRunner(Protocol):
    """A runner that has listeners to end after ``stop``."""

    async def stopped(self) -> None: ...


async def stop_runners(runners: Sequence[OtherRunner]) -> None:
    """Stops runners; they let go of their jobs, which run on."""
    for runner in runners:
        runner.stop()
        if isinstance(runner, LingeringRunner):
            await runner.stopped()


def _slurm(name: str, parts: RunnerParts) -> OtherRunner:
    from tidewheel.runners.slurm.runner import SlurmRunner

    del name
    return SlurmRunner(parts)


def _containers(name: str, parts: RunnerParts) -> OtherRunner:
    from tidewheel.runners.containers.compose import ComposeEngine
    from tidewheel.runners.containers.docker_cli import Cli
    from tidewheel.runners.containers.runner import EngineRunner
    from tidewheel.runners.containers.swarm import SwarmEngine

    cli = Cli(parts.environ)
    cli.check_compose(name)
    # A worker with both has a Swarm for a reason.
    takes_any = name == "swarm" or "swarm" not in parts.runners
    return EngineRunner(
        ComposeEngine(cli) if name == "compose" else SwarmEngine(cli),
        called=(name, CONTAINERS) if takes_any else (name,),
        allowed=parts.allow_compose,
        message_bytes_max=parts.message_bytes_max,
        usage_interval_seconds=parts.usage_interval_seconds,
    )


class RunnerKind(NamedTuple):
    """One runner: how it is opened, and by which program it is found on a machine."""

    open: Callable[[str, RunnerParts], OtherRunner]  # what it needs is loaded then
    program: str | None = None  # None: a worker has it only if it is asked for


# A row for each name in `config.RUNNERS`.
RUNNER_KINDS: Mapping[str, RunnerKind] = {
    "slurm": RunnerKind(_slurm, program="sbatch"),
    "compose": RunnerKind(_containers),
    "swarm": RunnerKind(_containers),
}


def found_runners() -> tuple[str, ...]:
    """Returns the names of those whose programs are on this machine."""
    return tuple(
        name
        for name, kind in RUNNER_KINDS.items()
        if kind.program is not None and shutil.which(kind.program)
    )


def open_runner(name: str, parts: RunnerParts) -> OtherRunner:
    """Opens the runner of this name."""
    kind = RUNNER_KINDS.get(name)
    if kind is None:
        raise BadSetting("runner", name, " or ".join(RUNNER_KINDS))
    return kind.open(name, parts)
