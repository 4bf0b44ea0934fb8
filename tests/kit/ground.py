"""What everything in a simulated world stands on: its time, its log, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from tests.kit.event_log import EventLog
from tests.kit.rules.facts import BrokenInvariant

EPOCH = 1_700_000_000.0  # the database's clock at the beginning


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Shared by all; ``on_broken`` ends the world."""

    loop: asyncio.AbstractEventLoop
    log: EventLog
    on_broken: Callable[[BrokenInvariant], None]

    def note(self, *what: object) -> None:
        self.log.add(self.loop.time(), *what)

    def database_now(self) -> float:
        """The only clock that leases know."""
        return EPOCH + self.loop.time()
