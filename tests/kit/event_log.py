"""What happened in a schedule: a hash of everything, and the last events in full."""

from __future__ import annotations

import hashlib
from collections import deque

EVENTS_KEPT = 30


class EventLog:
    """Two runs of one seed have the same digest, or the simulation is not deterministic."""

    def __init__(self, *, kept: int = EVENTS_KEPT) -> None:
        self.count = 0
        self._hash = hashlib.blake2b(digest_size=16)
        self._last: deque[tuple[object, ...]] = deque(maxlen=kept)

    def add(self, at: float, *what: object) -> None:
        event = (at, *what)
        self.count += 1
        self._hash.update(repr(event).encode())
        self._last.append(event)

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def last(self) -> list[str]:
        """The last events, one line each."""
        return [
            f"{at:10.3f}  " + "  ".join(str(part) for part in what) for at, *what in self._last
        ]
