"""The jobs of a run that tidewheel has done, ready to be started once more by somebody else.

The same folders and links are made, the same script is written, and what starts it is the same
wrapper with the same environment.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from tidewheel.runners.job_environment import RunAids, inherited_environment
from tidewheel.runners.processes import boot_id
from tidewheel.runners.shell.runner import SHELL, WRAPPER, find_bash

SUBMIT, LATEST = "01", "NN"
SECRET_LENGTH = 43


@dataclass(frozen=True, slots=True)
class Script:
    """The job of one task."""

    point: str
    node: str
    text: bytes


@dataclass(frozen=True, slots=True)
class PreparedJob:
    """A job of which all files are written."""

    argv: list[str]
    environment: dict[str, str]
    out: str
    err: str
    work: str


def read_scripts(run: Path) -> list[Script]:
    """In the order in which they were written."""
    found = sorted(run.glob(f"log/job/*/*/{SUBMIT}/job"), key=lambda path: path.stat().st_mtime)
    return [Script(path.parts[-4], path.parts[-3], path.read_bytes()) for path in found]


class JobFiles:
    """Writes jobs below one folder."""

    def __init__(self, folder: Path) -> None:
        self._run = folder
        self._environment = {
            **inherited_environment(os.environ),
            **RunAids(programs=Path(sys.executable).parent).environment(),
            "TIDEWHEEL_RUN_DIR": str(folder),
            "TIDEWHEEL_ATTEMPT": "1",
            "TIDEWHEEL_QUEUE": "run:bench",
            "TIDEWHEEL_SECRET": "x" * SECRET_LENGTH,
        }
        self._bash = find_bash(self._environment["PATH"])
        self._boot_id = boot_id()

    def prepare(self, script: Script) -> PreparedJob:
        job = self._run / "log" / "job" / script.point / script.node / SUBMIT
        job.mkdir(0o700, parents=True)
        work = self._run / "work" / script.point / script.node
        work.mkdir(0o700, parents=True)
        (self._run / "share" / "cycle" / script.point).mkdir(0o700, parents=True, exist_ok=True)
        (job.parent / LATEST).symlink_to(SUBMIT)
        (job / "job.socket").symlink_to(self._run / "socket")
        path = job / "job"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o700), "wb") as file:
            file.write(script.text)
        facts = [str(job), self._boot_id, self._bash, "", str(path)]
        return PreparedJob(
            argv=[SHELL, "-c", WRAPPER, "job", *facts],
            environment={
                **self._environment,
                "TIDEWHEEL_JOB_DIR": str(job),
                "TIDEWHEEL_TASK_ID": f"bench/{script.point}/{script.node}/1",
            },
            out=str(job / "job.out"),
            err=str(job / "job.err"),
            work=str(work),
        )
