"""How fast tasks may be submitted: a bucket for each queue that fills at a steady rate."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from tidewheel.server.refusals import QuotaSpent

BURST_SECONDS = 10.0  # what was not used for so long can be used at once
QUEUES_MAX = 10_000


class SubmitQuota:
    """Tasks per second and queue, by this server; None: as many as come.

    A request is taken whole if there is anything in the bucket of each of its queues, and what
    it takes too much has to flow in before the next: so no list is too long for ever.
    """

    def __init__(
        self, per_second: float | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._clock = per_second, clock
        self._levels: dict[str, tuple[float, float]] = {}  # when, and how much there was

    def take(self, counts: Mapping[str, int]) -> None:
        """So many tasks for each queue; QuotaSpent if one has to wait, and nothing is taken."""
        if self._rate is None:
            return
        now, rate = self._clock(), self._rate
        levels = {queue: self._level(queue, now, rate) for queue in counts}
        for queue, level in levels.items():
            if level < min(1.0, self._full(rate)):
                raise QuotaSpent(queue, rate, (1.0 - level) / rate)
        for queue, level in levels.items():
            self._levels.pop(queue, None)
            self._levels[queue] = (now, level - counts[queue])
        while len(self._levels) > QUEUES_MAX:  # the one that was used longest ago
            del self._levels[next(iter(self._levels))]

    def _level(self, queue: str, now: float, rate: float) -> float:
        at, level = self._levels.get(queue, (now, self._full(rate)))
        return min(self._full(rate), level + (now - at) * rate)

    @staticmethod
    def _full(rate: float) -> float:
        return max(1.0, rate * BURST_SECONDS)
