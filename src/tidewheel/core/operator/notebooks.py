"""What a service writes down so that whoever comes after it knows, held by one at a time."""

from __future__ import annotations

from typing import NamedTuple

from tidewheel.core.queue.task import Instant

BODY_BYTES_MAX = 4 * 1024 * 1024


class Notebook(NamedTuple):
    """One text of a store, under a lease; the epoch is the fencing token."""

    epoch: int
    owner: str | None  # None: nobody holds it
    deadline_at: Instant | None
    body: str  # "" before anybody wrote
    updated_at: Instant

    def is_held(self, now: Instant) -> bool:
        return self.deadline_at is not None and now < self.deadline_at
