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
            "TIDEWHEEL_SOCKET": str(folder / "socket"),
        }
        self._bash = find_bash(self._environment["PATH"])
        self._boot_id = boot_id()

    def prepare(self, script: Script) -> PreparedJob:
        node = f"{self._run}/log/job/{script.point}/{script.node}"
        job, work = f"{node}/{SUBMIT}", f"{self._run}/work/{script.point}/{script.node}"
        os.makedirs(job, 0o700)
        os.makedirs(work, 0o700)
        os.makedirs(f"{self._run}/share/cycle/{script.point}", 0o700, exist_ok=True)
        os.symlink(SUBMIT, f"{node}/{LATEST}")
        path = f"{job}/job"
        file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o700)
        os.write(file, script.text)
        os.close(file)
        facts = [job, self._boot_id, self._bash, "", path]
        return PreparedJob(
            argv=[SHELL, "-c", WRAPPER, "job", *facts],
            environment={
                **self._environment,
                "TIDEWHEEL_JOB_DIR": job,
                "TIDEWHEEL_TASK_ID": f"bench/{script.point}/{script.node}/1",
            },
            out=f"{job}/job.out",
            err=f"{job}/job.err",
            work=work,
        )
