"""cylc-flow on one piece of work: ``cylc play --no-detach``, bounded in time."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bench.environments import ensure_own_environment, python_version_of
from bench.scheduler.bounded import Failed, Ran, run
from bench.scheduler.shapes import Shape

SIMULATED = ("--mode=simulation",)
# Jobs are login shells, and profiles set their own PATH.
_GLOBAL = """\
[platforms]
    [[localhost]]
        global init-script = export PATH={programs}:$PATH
"""
_ENDED = "SELECT time_submit, time_run_exit FROM task_jobs WHERE time_run_exit IS NOT NULL"


@dataclass(frozen=True, slots=True, kw_only=True)
class CylcFigures:
    """What Cylc did within the bound; its own times are whole seconds."""

    tasks: int  # that have ended
    seconds: float  # from the first submission to the last end
    cpu_seconds: float
    peak_megabytes: float
    is_complete: bool

    @property
    def rate(self) -> float:
        return self.tasks / self.seconds

    @property
    def cpu_ms(self) -> float:
        return self.cpu_seconds / self.tasks * 1000


class Cylc:
    """Installed by itself; a home of its own for each run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        interpreter = ensure_own_environment("cylc-flow")
        self._program = interpreter.with_name("cylc")
        self.version = python_version_of("cylc-flow", interpreter)
        self._runs = 0

    def run(self, shape: Shape, *options: str, seconds_max: float) -> CylcFigures:
        where, ran = self._play(shape, options, seconds_max)
        database = where / "log" / "db"
        if not database.exists():
            raise Failed(f"cylc play {shape.name}: {ran.output[-300:]}")
        with closing(sqlite3.connect(database)) as connection:
            ended = connection.execute(_ENDED).fetchall()
        if not ended:
            raise Failed(f"cylc play {shape.name}: nothing within {seconds_max:.0f} s")
        first, last = min(row[0] for row in ended), max(row[1] for row in ended)
        return CylcFigures(
            tasks=len(ended),
            seconds=max(1.0, _instant(last) - _instant(first)),
            cpu_seconds=ran.cpu_seconds,
            peak_megabytes=ran.peak_megabytes,
            is_complete=ran.is_complete,
        )

    def start_to_exit(self, shape: Shape, *options: str, seconds_max: float) -> Ran:
        """The whole command."""
        _, ran = self._play(shape, options, seconds_max)
        if not ran.is_complete:
            raise Failed(f"cylc play {shape.name}: took over {seconds_max:.0f} s")
        return ran

    def _play(
        self, shape: Shape, options: tuple[str, ...], seconds_max: float
    ) -> tuple[Path, Ran]:
        self._runs += 1
        home = self._folder / f"cylc-{self._runs}"
        where = home / "cylc-run" / "bench"
        where.mkdir(parents=True)
        (where / "flow.cylc").write_text(shape.flow())
        (home / "global.cylc").write_text(_GLOBAL.format(programs=self._program.parent))
        environment = {
            **os.environ,
            "HOME": str(home),
            "CYLC_CONF_PATH": str(home),
            "PATH": f"{self._program.parent}:{os.environ['PATH']}",
        }
        command = [str(self._program), "play", "--no-detach", *options, "bench"]
        log = home / "play.log"
        ran = run(command, log, seconds_max=seconds_max, environment=environment, cwd=home)
        return where, ran


def _instant(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
