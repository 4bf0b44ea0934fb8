"""``python -m bench.scheduler.timed_run ANSWER PROFILE -- ARGUMENTS``: tidewheel, with marks.

The whole command runs as people call it; `marks` says what is noted meanwhile.
PROFILE: a file to which the costliest functions are appended, or "".
"""

from __future__ import annotations

import atexit
import cProfile
import gc
import os
import pstats
import sys
import threading
import time
from pathlib import Path

from bench.scheduler.marks import marks_of_store
from tidewheel.__main__ import GARBAGE_THRESHOLD
from tidewheel.cli.main import program

FUNCTIONS_SHOWN = 45


class Profiler:
    """One profile per thread, as cProfile sees only its own; put together at the end.

    By the thread's own processor time: waiting costs nothing, and neither do others.
    """

    def __init__(self, path: Path, title: str) -> None:
        self._path, self._title = path, title
        self._profiles = [cProfile.Profile(time.thread_time)]
        run = threading.Thread.run
        if sys.version_info < (3, 12):  # from there on one profile at a time is allowed

            def profiled(thread: threading.Thread) -> None:
                profile = cProfile.Profile(time.thread_time)
                self._profiles.append(profile)
                profile.runcall(run, thread)

            setattr(threading.Thread, "run", profiled)  # noqa: B010 - mypy forbids the plain way

    def begin(self) -> None:
        self._profiles[0].enable()

    def write(self) -> None:
        for profile in self._profiles:
            profile.disable()
        with self._path.open("a") as file:
            file.write(f"\n==== {self._title}\n")
            stats = pstats.Stats(*self._profiles, stream=file)
            stats.strip_dirs().sort_stats("tottime").print_stats(FUNCTIONS_SHOWN)
            stats.sort_stats("cumulative").print_stats(FUNCTIONS_SHOWN)


def _run() -> None:
    answer, profile, _, *arguments = sys.argv[1:]
    atexit.register(marks_of_store().write, Path(answer))
    if profile:
        profiler = Profiler(Path(profile), f"tidewheel {' '.join(arguments)}")
        atexit.register(profiler.write)
        profiler.begin()
    os.environ.setdefault("COLUMNS", "100")
    sys.argv = ["tidewheel", *arguments]
    gc.set_threshold(GARBAGE_THRESHOLD)  # as the command has it
    sys.exit(program())  # not `main`, which does not wait for atexit


if __name__ == "__main__":
    _run()
