"""``python -m bench.scheduler.bare_loop RUN FOLDER AT_ONCE``: the jobs of a run, and nothing else.

RUN is the folder of a run that tidewheel has just done. Its job scripts are started once more
below FOLDER, so many at once, from a loop that knows no graph, no store and no limits: it makes
the same folders and links, writes the same script, starts it through the same wrapper with the
same environment, and waits. Prints the seconds it took.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tidewheel.runners.job_environment import RunAids, inherited_environment
from tidewheel.runners.processes import boot_id
from tidewheel.runners.shell import SHELL, WRAPPER, find_bash

SUBMIT, LATEST = "01", "NN"
LOG_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND
SECRET_LENGTH = 43


@dataclass(frozen=True, slots=True)
class Script:
    """The job of one task."""

    point: str
    node: str
    text: bytes


def read_scripts(run: Path) -> list[Script]:
    """In the order in which they were written."""
    found = sorted(run.glob(f"log/job/*/*/{SUBMIT}/job"), key=lambda path: path.stat().st_mtime)
    return [
        Script(path.parts[-4], path.parts[-3], path.read_bytes()) for path in found
    ]


class BareLoop:
    """Starts scripts below one folder."""

    def __init__(self, folder: Path, at_once: int) -> None:
        self._run = folder
        self._at_once = at_once
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
        self._work: dict[int, Path] = {}
        self.failed = 0

    def run(self, scripts: Iterable[Script]) -> float:
        """The seconds from the first start to the last end."""
        begin = time.monotonic()
        for script in scripts:
            while len(self._work) >= self._at_once:
                self._reap()
            self._start(script)
        while self._work:
            self._reap()
        return time.monotonic() - begin

    def _start(self, script: Script) -> None:
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
        facts = (str(job), self._boot_id, self._bash, "", str(path))
        pid = os.posix_spawn(
            SHELL,
            (SHELL, "-c", WRAPPER, "job", *facts),
            self._environment_of(script, job),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(job / "job.out"), LOG_FLAGS, 0o600),
                (os.POSIX_SPAWN_OPEN, 2, str(job / "job.err"), LOG_FLAGS, 0o600),
            ],
            setsid=True,
        )
        self._work[pid] = work

    def _environment_of(self, script: Script, job: Path) -> Mapping[str, str]:
        return {
            **self._environment,
            "TIDEWHEEL_JOB_DIR": str(job),
            "TIDEWHEEL_TASK_ID": f"bench/{script.point}/{script.node}/1",
        }

    def _reap(self) -> None:
        pid, status = os.wait()
        os.rmdir(self._work.pop(pid))
        self.failed += status != 0


def main() -> None:
    run, folder, at_once = sys.argv[1:]
    scripts = read_scripts(Path(run))
    loop = BareLoop(Path(folder), int(at_once))
    seconds = loop.run(scripts)
    if loop.failed:
        raise SystemExit(f"{loop.failed} of {len(scripts)} jobs failed")
    sys.stdout.write(str(seconds))


if __name__ == "__main__":
    main()
