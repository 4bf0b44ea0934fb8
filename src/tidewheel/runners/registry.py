"""Opens the runners that a worker may have besides bash and handlers, each by its name."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from tidewheel.config import CONTAINERS
from tidewheel.errors import BadSetting
from tidewheel.ports.runners import Runner
from tidewheel.runners.runner_parts import RunnerParts


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
