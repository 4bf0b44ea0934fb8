"""Counters of this process: whom it answered or turned away, what its schedulers wrote."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidewheel.api.tasks import Figure, QueueView, WorkerView
from tidewheel.core.operator.views import RunView

if TYPE_CHECKING:
    from tidewheel.scheduler.pending_batch import PendingBatch
    from tidewheel.scheduler.run_engine import RunEngine
    from tidewheel.server.load_shedding import Admission

# Seconds, and events of a batch; what is below the first is in all of them.
SECONDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
EVENTS = (1, 10, 100, 1_000)
SEEN_SECONDS = 1.0


class Histogram:
    """How many values were up to each bound."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...] = SECONDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)  # the last: above all of them
        self.total = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFigures:
    """What the store knew, a moment ago."""

    queues: Sequence[QueueView]
    workers: Sequence[WorkerView]
    runs: Sequence[RunView]
    figures: Sequence[Figure]


class Metrics:
    """What this process did since it started."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()  # by verb and status
        self.seconds: defaultdict[str, Histogram] = defaultdict(Histogram)  # by verb
        self.channels = 0  # of workers, open now
        self.streams = 0  # of events, open now
        self.streams_dropped = 0  # because nobody read them fast enough
        # Of schedulers in this process; others are known by what they store.
        self.batch_seconds = Histogram()
        self.batch_events = Histogram(EVENTS)
        self.admission: Admission | None = None
        self.connections: Callable[[], int] = lambda: 0
        self._seen: StoreFigures | None = None
        self._seen_at = 0.0
        self._looking = asyncio.Lock()

    async def seen(self, look: Callable[[], Awaitable[StoreFigures]]) -> StoreFigures:
        """What the store knows, asked for once a second however many look."""
        async with self._looking:
            if self._seen is None or time.monotonic() - self._seen_at >= SEEN_SECONDS:
                self._seen = await look()
                self._seen_at = time.monotonic()
            return self._seen

    def watch(self, admission: Admission, connections: Callable[[], int]) -> None:
        """Whose figures are asked for when somebody looks."""
        self.admission, self.connections = admission, connections

    def count(self, verb: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self.requests[verb, status] += 1
        self.seconds[verb].add(seconds)

    def batch(self, engine: RunEngine, batch: PendingBatch) -> None:
        """A scheduler wrote a batch."""
        del engine
        self.batch_seconds.add(batch.seconds)
        self.batch_events.add(len(batch.consumed))
