"""The clock of the machine, for waiting."""

from __future__ import annotations

import asyncio
import time


class SystemClock:
    """Local time that only goes forward (port Clock)."""

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
