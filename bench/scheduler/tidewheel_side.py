"""tidewheel on one piece of work: the whole command, in a process and a home of its own."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.folders import put_aside
from bench.scheduler.bounded import Failed, Ran, run
from bench.scheduler.shapes import Shape

SECONDS_MAX = 600.0
SIMULATED = ("--mode", "simulation")
# Installed by pip, modules are compiled; those of a checkout are at their first import.
NOT_PASSED_ON = ("TIDEWHEEL_STORE", "PYTHONDONTWRITEBYTECODE")
PROGRAM = str(Path(sys.executable).with_name("tidewheel"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a run took from just before its first submission until its end was written."""

    tasks: int
    seconds: float
    cpu_seconds: float
    cpu_seconds_in_all: float  # with start and end of the command
    peak_megabytes: float

    @property
    def rate(self) -> float:
        return self.tasks / self.seconds

    @property
    def cpu_ms(self) -> float:
        """Per task."""
        return self.cpu_seconds / self.tasks * 1000

    @property
    def cpu_ms_in_all(self) -> float:
        return self.cpu_seconds_in_all / self.tasks * 1000


@dataclass(slots=True)
class Tidewheel:
    """Runs the command; ``profile`` is a file in which the costliest functions are listed."""

    folder: Path
    profile: str = ""
    home: Path = field(init=False)

    def __post_init__(self) -> None:
        self.home = self.folder / "home"

    def run(self, shape: Shape, *options: str, keep: bool = False) -> Figures:
        """Run a shape; with ``keep`` its home is there until the next one."""
        flow = self.write_flow(shape)
        answer = self.folder / "timed-run.json"
        answer.unlink(missing_ok=True)
        command = [sys.executable, "-m", "bench.scheduler.timed_run", str(answer)]
        command += [self.profile, "--", "run", str(flow), *options]
        ran = self._ran(command)
        if not answer.exists() or not ran.is_complete:
            raise Failed(f"tidewheel run {shape.name}: not complete: {ran.output[-300:]}")
        self._check(ran, shape)
        if not keep:
            put_aside(self.home)
        return Figures(tasks=shape.size, **json.loads(answer.read_text()))

    def best_of(self, rounds: int, shape: Shape, *options: str) -> Figures:
        return min(
            (self.run(shape, *options) for _ in range(rounds)), key=lambda one: one.seconds
        )

    def command(self, *arguments: str) -> Ran:
        """The command as it is installed, in a new home, nothing measured inside."""
        return self._ran([PROGRAM, *arguments])

    def write_flow(self, shape: Shape, length: str = "PT0S") -> Path:
        flow = self.folder / "flow"
        flow.mkdir(exist_ok=True)
        (flow / "flow.cylc").write_text(shape.flow(length))
        return flow

    def _ran(self, command: Sequence[str]) -> Ran:
        put_aside(self.home)
        environment = {
            **{name: value for name, value in os.environ.items() if name not in NOT_PASSED_ON},
            "TIDEWHEEL_HOME": str(self.home),
        }
        log = self.folder / "tidewheel.log"
        return run(command, log, seconds_max=SECONDS_MAX, environment=environment)

    @staticmethod
    def _check(ran: Ran, shape: Shape) -> None:
        """A run that lost a task would be fast."""
        said = f"{shape.size} succeeded"
        if said not in ran.output.splitlines()[-1]:
            last = ran.output.splitlines()[-1]
            raise Failed(f"tidewheel run {shape.name}: expected {said!r}, found {last!r}")
