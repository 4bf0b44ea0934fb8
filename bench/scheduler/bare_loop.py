"""``python -m bench.scheduler.bare_loop RUN FOLDER AT_ONCE``: jobs of a run, and nothing else.

RUN is the folder of a run that tidewheel has just done. Its jobs are written and started once
more below FOLDER, so many at once, by a loop that knows no graph, no store and no limits. It
prints the seconds they took.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from bench.scheduler.job_files import JobFiles, Script, read_scripts

LOG_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND


class BareLoop:
    """Starts scripts below one folder."""

    def __init__(self, folder: Path, at_once: int) -> None:
        self._files = JobFiles(folder)
        self._at_once = at_once
        self._work: dict[int, str] = {}
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
        job = self._files.prepare(script)
        pid = os.posix_spawn(
            job.argv[0],
            job.argv,
            job.environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, job.out, LOG_FLAGS, 0o600),
                (os.POSIX_SPAWN_OPEN, 2, job.err, LOG_FLAGS, 0o600),
            ],
            setsid=True,
        )
        self._work[pid] = job.work

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
    sys.stdout.write(json.dumps(seconds))


if __name__ == "__main__":
    main()
