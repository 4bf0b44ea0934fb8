"""``python -m bench.scheduler.timed_run ANSWER PROFILE -- ARGUMENTS``: tidewheel, with marks.

The whole command runs as people call it. Two marks are set at the door of the store: when the
scheduler first knows the time, which is just before its first submission, and when its last
batch is written, which is after the last one. What the process used until each is noted.
PROFILE: a file to which the costliest functions are appended, or "".
"""

from __future__ import annotations

import atexit
import cProfile
import json
import os
import pstats
import resource
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Any

from tidewheel.cli.main import main
from tidewheel.store.run_facade import RunOperations

FUNCTIONS_SHOWN = 45
Operation = Callable[..., Awaitable[Any]]


class Marks:
    """What the clock and the meter showed at the first and the last mark."""

    def __init__(self) -> None:
        self._marks: list[tuple[float, float]] = []

    def set_first(self) -> None:
        if not self._marks:
            self._marks.append(_mark())

    def set_last(self) -> None:
        del self._marks[1:]
        self._marks.append(_mark())

    def write(self, path: Path) -> None:
        if not self._marks:
            return  # the command has failed, and says why
        first, last = self._marks[0], self._marks[-1]
        answer = {
            "seconds": last[0] - first[0],
            "cpu_seconds": last[1] - first[1],
            "cpu_seconds_in_all": _cpu_seconds(),
            "peak_megabytes": _peak_megabytes(),
        }
        path.write_text(json.dumps(answer))


def _mark() -> tuple[float, float]:
    return time.monotonic(), _cpu_seconds()


def _cpu_seconds() -> float:
    """Of this process with all its threads; not of its jobs."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _peak_megabytes() -> float:
    """Of this program: the kernel's ru_maxrss would count what started it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def followed_by(operation: Operation, mark: Callable[[], None]) -> Operation:
    @wraps(operation)
    async def marked(*given: Any, **named: Any) -> Any:
        answer = await operation(*given, **named)
        mark()
        return answer

    return marked


class Profiler:
    """One profile per thread, as cProfile sees only its own; put together at the end."""

    def __init__(self, path: Path, title: str) -> None:
        self._path, self._title = path, title
        self._profiles = [cProfile.Profile()]
        run = threading.Thread.run
        if sys.version_info < (3, 12):  # from there on one profile at a time is allowed

            def profiled(thread: threading.Thread) -> None:
                profile = cProfile.Profile()
                self._profiles.append(profile)
                profile.runcall(run, thread)

            threading.Thread.run = profiled  # type: ignore[method-assign]

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
    marks = Marks()
    operations: Any = RunOperations
    operations.read_inbox = followed_by(operations.read_inbox, marks.set_first)
    operations.write_batch = followed_by(operations.write_batch, marks.set_last)
    atexit.register(marks.write, Path(answer))
    if profile:
        profiler = Profiler(Path(profile), f"tidewheel {' '.join(arguments)}")
        atexit.register(profiler.write)
        profiler.begin()
    os.environ.setdefault("COLUMNS", "100")
    sys.argv = ["tidewheel", *arguments]
    main()


if __name__ == "__main__":
    _run()
