"""Makes the environment and the limits of a job from an allow-list, never from all there is."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tidewheel.config import JobLimits
from tidewheel.ports.runners import Assignment
from tidewheel.runners.job_directory import OUTPUTS, OUTPUTS_NAME
from tidewheel.runners.process.tree import MARKER

KIB = 1024
NOT_APPLICABLE = 126  # the exit status of a job whose limits cannot be set


def limits_script(limits: JobLimits) -> str:
    """Returns what sets the limits; empty if there are none. bash counts memory and files in
    KiB."""
    asked = {
        "t": None if limits.cpu_seconds is None else math.ceil(limits.cpu_seconds),
        "v": None if limits.memory_bytes is None else limits.memory_bytes // KIB,
        "n": limits.open_files,
        "u": limits.processes,
        "f": None if limits.file_bytes is None else limits.file_bytes // KIB,
    }
    return " ".join(
        f"ulimit -{letter} {value} || exit {NOT_APPLICABLE};"
        for letter, value in asked.items()
        if value is not None
    )


INHERITED = frozenset({"PATH", "HOME", "LANG", "TZ", "USER", "TMPDIR", "SHELL"})
INHERITED_PREFIX = "LC_"
PATH_DEFAULT = "/usr/local/bin:/usr/bin:/bin"
SECRET = "TIDEWHEEL_SECRET"
JOB_LIBRARY = Path(__file__).with_name("job_library.sh")


def inherited_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The part of a worker's environment that every job gets."""
    inherited = {
        name: value
        for name, value in environ.items()
        if name in INHERITED or name.startswith(INHERITED_PREFIX)
    }
    # Last, so that a job's own python is not hidden by the one that tidewheel runs in.
    programs = str(Path(sys.executable).parent)
    path = inherited.get("PATH", PATH_DEFAULT)
    if programs not in path.split(os.pathsep):
        path = f"{path}{os.pathsep}{programs}"
    return inherited | {"PATH": path}


@dataclass(frozen=True, slots=True)
class RunAids:
    """Holds what the jobs of a run find beside themselves."""

    programs: Path  # a folder with `tidewheel` and `cylc`
    library: Path = JOB_LIBRARY

    def environment(self) -> dict[str, str]:
        return {"TIDEWHEEL_BIN": str(self.programs), "TIDEWHEEL_JOB_LIBRARY": str(self.library)}


def job_environment(
    inherited: Mapping[str, str], assignment: Assignment, spec_file: Path
) -> dict[str, str]:
    """The whole environment of one job; what tells it who it is cannot be overridden."""
    task = assignment.task
    identity = {
        "TIDEWHEEL_TASK_ID": task.id,
        "TIDEWHEEL_ATTEMPT": str(task.attempt),
        "TIDEWHEEL_QUEUE": task.queue,
        "TIDEWHEEL_TASK_NAME": task.name or "",
        MARKER: str(assignment.directory),
        SECRET: assignment.secret,
        OUTPUTS: str(assignment.directory / OUTPUTS_NAME),
    }
    if task.spec is not None:
        identity["TIDEWHEEL_SPEC_FILE"] = str(spec_file)
    return {**inherited, **assignment.environment, **identity}
