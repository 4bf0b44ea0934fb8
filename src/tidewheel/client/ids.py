"""Ids that a client makes up: unique anywhere, and in the order in which they were made."""

from __future__ import annotations

import os
import threading
import time

_TICKS_PER_MS = 4096  # twelve bits of a version 7 UUID hold the fraction of a millisecond


class TimeOrderedIds:
    """UUIDs of version 7 (RFC 9562): sorted as text they are sorted by time.

    The clock only orders them, it decides nothing; a clock that is set back is waited out by
    counting on from the last id.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last_ticks = 0

    def __call__(self) -> str:
        ticks = time.time_ns() * _TICKS_PER_MS // 1_000_000
        with self._lock:
            self._last_ticks = ticks = max(ticks, self._last_ticks + 1)
        milliseconds, fraction = divmod(ticks, _TICKS_PER_MS)
        chance = int.from_bytes(os.urandom(8)) & (2**62 - 1) | 2**63
        digits = f"{milliseconds:012x}7{fraction:03x}{chance:016x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


new_id = TimeOrderedIds()
