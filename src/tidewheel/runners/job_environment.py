"""Makes what jobs find around them: environment, limits and programs.

The environment comes from an allow-list, never from all there is. A home (the state directory)
has an identity, by which two processes find out whether they share one folder, and programs
that jobs of a run find on their PATH: `tidewheel`, and a `cylc` that calls it, too. These are
scripts of one line, so that they start the very tidewheel that the worker is, and not another
one, or a Cylc, that may be installed.
"""

from __future__ import annotations

import math
import os
import secrets
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from tidewheel.config import JobLimits
from tidewheel.core.queue.requests import Claimed
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.ports.runners import Assignment
from tidewheel.runners import job_directory
from tidewheel.runners.processes import MARKER
from tidewheel.runners.sanitize import VARIABLES
from tidewheel.runners.secret_values import environment_of

KIB = 1024
NOT_APPLICABLE = 126  # the exit status of a job whose limits cannot be set


def limits_script(limits: JobLimits) -> str:
    """Returns commands of bash that set the limits; "" if there are none.

    bash counts memory and files in KiB.
    """
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
# Only where the first python3 of the path has no tidewheel: the Python that has.
PYTHON = "TIDEWHEEL_PYTHON"
_PYTHON_SECONDS_MAX = 10.0
JOB_LIBRARY = Path(__file__).with_name("job_library.sh")


def inherited_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the part of a worker's environment that every job gets."""
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
    """Holds where jobs of a run find `tidewheel`, `cylc` and a library of shell functions."""

    programs: Path  # a folder with `tidewheel` and `cylc`
    library: Path = JOB_LIBRARY

    def environment(self) -> dict[str, str]:
        return {"TIDEWHEEL_BIN": str(self.programs), "TIDEWHEEL_JOB_LIBRARY": str(self.library)}


def identity(task: Claimed) -> dict[str, str]:
    """Returns the environment variables that tell a job its task, attempt and queue."""
    return {
        "TIDEWHEEL_TASK_ID": task.id,
        "TIDEWHEEL_ATTEMPT": str(task.attempt),
        "TIDEWHEEL_QUEUE": task.queue,
        "TIDEWHEEL_TASK_NAME": task.name or "",
    }


def job_environment(inherited: Mapping[str, str], assignment: Assignment) -> dict[str, str]:
    """Returns the whole environment of one job.

    A task cannot override the variables that tell the job its task, its directory and its
    secret.
    """
    task, directory = assignment.task, assignment.folder
    own = identity(task) | {
        MARKER: directory,
        SECRET: assignment.secret,
        job_directory.OUTPUTS: f"{directory}/{job_directory.OUTPUTS_NAME}",
    }
    if task.spec is not None:
        own["TIDEWHEEL_SPEC_FILE"] = f"{directory}/{job_directory.SPEC_NAME}"
    if assignment.inputs is not None:
        own[job_directory.INPUTS] = f"{directory}/{job_directory.INPUTS_NAME}"
    if task.environment is not None:
        inherited = {**inherited, **environment_of(task, assignment.secrets)}
    if task.command is not None and PYTHON in task.command:
        inherited = {**other_python(inherited["PATH"]), **inherited}
    if assignment.secrets:
        own[VARIABLES] = " ".join(assignment.secrets)
    return {**inherited, **assignment.environment, **own}


@cache
def other_python(path: str) -> dict[str, str]:
    """Returns what tells function tasks which Python to take; nothing if python3 will do.

    A worker that pipx or uv installed runs in an environment of its own, and the python3 of its
    user has no tidewheel. A python3 that has tidewheel is preferred: it may have what the
    function imports, too.
    """
    python = shutil.which("python3", path=path)
    if python is not None and Path(python).parent == Path(sys.executable).parent:
        return {}
    code = "import importlib.util as i, sys; sys.exit(i.find_spec('tidewheel') is None)"
    with suppress(OSError, subprocess.TimeoutExpired):
        if python is not None and not subprocess.call(
            (python, "-P", "-c", code),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_PYTHON_SECONDS_MAX,
        ):
            return {}
    return {PYTHON: sys.executable}


HOME_FILE = "home.id"
_LENGTH_MAX = 64


def home_id(home: Path) -> str:
    """Returns the identity of this home (the state directory); the first call makes it."""
    if found := known_home_id(home):
        return found
    job_directory.make_private_directory(home)
    new = home / f"{HOME_FILE}.{secrets.token_hex(4)}"
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_hex(16))
    try:
        with suppress(FileExistsError):  # of several that are first, one is
            os.link(new, home / HOME_FILE)
    finally:
        os.unlink(new)
    found = known_home_id(home)
    assert found is not None, "it was just written"
    return found


def known_home_id(home: Path) -> str | None:
    """Returns the identity of this home; None if it has none, or it cannot be read."""
    try:
        return (home / HOME_FILE).read_text(encoding="ascii")[:_LENGTH_MAX] or None
    except (OSError, UnicodeDecodeError):
        return None


# -E -P: modules of a workflow's lib/python and of the folder that a job is in are not ours.
_PROGRAMS = {
    "tidewheel": "-E -P -m tidewheel",
    "cylc": "-E -P -m tidewheel.cli.cylc",
    "tidewheel-function": "-E -P -m tidewheel.runners.python.function_server",
}


def write_programs(home: Path) -> Path:
    """Writes the programs for jobs into `<home>/bin`, if need be; returns that folder."""
    folder = home.absolute() / "bin"
    job_directory.make_private_directory(folder)
    python = shlex.quote(sys.executable)
    for name, arguments in _PROGRAMS.items():
        content = f'#!/bin/sh\nexec {python} {arguments} "$@"\n'.encode()
        path = folder / name
        # Written once for all workers of a home: a job may be just starting it.
        if not path.exists() or path.read_bytes() != content:
            job_directory.write_whole(path, content, mode=0o700)
    return folder
