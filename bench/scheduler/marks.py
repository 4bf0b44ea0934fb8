"""What a process that runs workflows used between two moments: marks at the door of its store.

The first is set when the scheduler first knows the time, just before its first submission; the
last when a batch is written, so at the end it is that after the last submission.
"""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Any

from tidewheel.store.store import DatabaseStore

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
        if self._marks:  # else the command has failed, and says why
            path.write_text(json.dumps(self.figures()))

    def figures(self) -> dict[str, float]:
        """What was used, by the names of ``Figures`` in tidewheel_side."""
        first, last = self._marks[0], self._marks[-1]
        return {
            "seconds": last[0] - first[0],
            "cpu_seconds": last[1] - first[1],
            "cpu_seconds_in_all": _cpu_seconds(),
            "peak_megabytes": _peak_megabytes(),
        }


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


def marks_of_store() -> Marks:
    """Marks that the stores of this process set from now on."""
    marks = Marks()
    operations: Any = DatabaseStore
    operations.read_inbox = followed_by(operations.read_inbox, marks.set_first)
    operations.write_batch = followed_by(operations.write_batch, marks.set_last)
    return marks
