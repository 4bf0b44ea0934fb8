"""The folders of a run that a job works in: made before it starts, tidied when it has ended."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tidewheel.core.operator.names import LATEST, RUN_DIRECTORY, JobName, read_job_name
from tidewheel.ports.runners import Assignment
from tidewheel.runners.job_directory import link_whole


@dataclass(frozen=True, slots=True)
class RunFolders:
    """Where one job of a run works."""

    run: Path
    name: JobName

    def prepare(self) -> None:
        """Here rather than in the job, where each would be a process more."""
        _make(self.run / self.name.work_folder)
        _make(self.run / self.name.share_folder)
        latest = self.run / "log" / "job" / self.name.point / self.name.node / LATEST
        link_whole(latest, Path(f"{self.name.submit:02d}"))

    def tidy_up(self) -> None:
        """An empty folder is of no use to anybody; one with files in it stays."""
        with suppress(OSError):
            os.rmdir(self.run / self.name.work_folder)


def run_folders(assignment: Assignment) -> RunFolders | None:
    """None for a job that belongs to no run."""
    run = assignment.environment.get(RUN_DIRECTORY)
    return None if run is None else RunFolders(Path(run), read_job_name(assignment.task.id))


def _make(folder: Path) -> None:
    with suppress(FileExistsError):
        try:
            os.mkdir(folder, 0o700)
        except FileNotFoundError:
            _make(folder.parent)
            os.mkdir(folder, 0o700)
