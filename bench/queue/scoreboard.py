"""Counts of handler calls in shared memory: the one clock and counter all systems share.

Each worker process owns a slot of three 8-byte words: calls (int64), first start and last start
(float64, CLOCK_MONOTONIC seconds, which all processes of a machine share, node included). The
count is written last, so a reader that sees a call also sees its time.
"""

from __future__ import annotations

import mmap
import threading
import time
from pathlib import Path

WORDS = 3
WORD_BYTES = 8
SLOT_BYTES = WORDS * WORD_BYTES
CALLS, FIRST, LAST = range(WORDS)


class Scoreboard:
    """The measuring side: reads every slot."""

    def __init__(self, path: Path, slots: int) -> None:
        self.path = path
        path.write_bytes(bytes(slots * SLOT_BYTES))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), slots * SLOT_BYTES)
        self._slots = range(slots)
        self._counts = memoryview(self._map).cast("q")
        self._times = memoryview(self._map).cast("d")

    def calls(self) -> int:
        """Handler calls so far, of all workers."""
        return sum(self._counts[slot * WORDS + CALLS] for slot in self._slots)

    def first_start(self) -> float:
        """When the first handler of any worker started."""
        return min(self._times[slot * WORDS + FIRST] for slot in self._busy())

    def last_start(self) -> float:
        """When the latest handler of any worker started."""
        return max(self._times[slot * WORDS + LAST] for slot in self._busy())

    def close(self) -> None:
        self._counts.release()
        self._times.release()
        self._map.close()
        self.path.unlink(missing_ok=True)

    def _busy(self) -> list[int]:
        return [slot for slot in self._slots if self._counts[slot * WORDS + CALLS]]


class Slot:
    """The worker's side: ``mark`` is called by the handler, from any thread."""

    def __init__(self, path: Path, slot: int) -> None:
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        self._counts = memoryview(self._map).cast("q")
        self._times = memoryview(self._map).cast("d")
        self._base = slot * WORDS
        self._calls = 0
        self._lock = threading.Lock()

    def mark(self) -> None:
        """Count one handler call; about half a microsecond."""
        with self._lock:
            now = time.monotonic()
            if not self._calls:
                self._times[self._base + FIRST] = now
            self._calls += 1
            self._times[self._base + LAST] = now
            self._counts[self._base + CALLS] = self._calls
