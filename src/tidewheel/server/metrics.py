"""Counts what this process does: requests answered and refused, batches of its schedulers."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from tidewheel.api.tasks import Figure, QueueView, WorkerView
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.status import Status
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.server.load_shedding import Urgency

if TYPE_CHECKING:
    from tidewheel.scheduler.pending_batch import PendingBatch
    from tidewheel.scheduler.run_engine import RunEngine
    from tidewheel.server.load_shedding import Admission, Quotas

# The upper bounds of histograms: seconds, and events of a batch.
SECONDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
EVENTS = (1, 10, 100, 1_000)
SEEN_SECONDS = 1.0


class Histogram:
    """Counts values by the first bound that is not below them, and those above all bounds."""

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
    """Holds the figures of the store, as they were a moment ago."""

    queues: Sequence[QueueView]
    workers: Sequence[WorkerView]
    runs: Sequence[RunView]
    figures: Sequence[Figure]


class Metrics:
    """Holds the figures of this process since it started."""

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
        self.quotas: Quotas | None = None
        self.connections: Callable[[], int] = lambda: 0
        self._seen: StoreFigures | None = None
        self._seen_at = 0.0
        self._looking = asyncio.Lock()

    async def seen(self, look: Callable[[], Awaitable[StoreFigures]]) -> StoreFigures:
        """Returns the figures of the store; ``look`` reads them, once a second at most."""
        async with self._looking:
            if self._seen is None or time.monotonic() - self._seen_at >= SEEN_SECONDS:
                self._seen = await look()
                self._seen_at = time.monotonic()
            return self._seen

    def watch(self, admission: Admission, connections: Callable[[], int]) -> None:
        """Sets the sources of figures that are read only when somebody looks at them."""
        self.admission, self.connections = admission, connections

    def count(self, verb: str, status: int, seconds: float) -> None:
        """Counts a request that was answered."""
        self.requests[verb, status] += 1
        self.seconds[verb].add(seconds)

    def batch(self, stage: RunEngine, work: PendingBatch) -> None:
        """Counts a batch that a scheduler wrote."""
        del stage
        self.batch_seconds.add(work.seconds)
        self.batch_events.add(len(work.consumed))


# Figures as Prometheus reads them: what this process counted, and what the store knows.

POOL = "pool"  # the figure of the store that is of one run each; others are of the database
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_OPEN = (Status.WAITING, Status.READY, Status.RUNNING, Status.CANCELLING)

Samples = Sequence[tuple[dict[str, str], float | Histogram]]

# What each figure says, by its name behind `tidewheel_`, in the order in which they are told.
_SAYS = {
    "queue_tasks": "Tasks of a queue that have not ended, by status.",
    "queue_oldest_ready_seconds": "How long the oldest ready task has waited.",
    "queue_paused": "1 while the queue is paused, else 0.",
    "workers": "Workers that are running.",
    "leases": "Leases that running workers hold.",
    "worker_slots": "Tasks that the running workers can run at once.",
    "runs": "Runs by status; only the newest 1,000 runs are counted.",
    "run_pool_tasks": "Tasks in the pool of a run.",
    "database_dead_rows": "Dead rows that wait to be vacuumed.",
    "database_connections": "Connections to the database, of all programs.",
    "database_oldest_transaction_seconds": "Age of the oldest transaction: "
    "vacuum waits for it.",
    "database_file_bytes": "Size of the database file.",
    "database_free_bytes": "Unused part of the database file.",
    "database_wal_bytes": "Size of the write-ahead log; "
    "it grows while a checkpoint has to wait.",
    "http_requests_total": "Requests answered.",
    "http_request_seconds": "How long requests took.",
    "http_turned_away_total": "Requests refused because the server was overloaded.",
    "quota_refused_total": "Requests refused because a quota was spent.",
    "http_requests_under_way": "Requests that are being worked on.",
    "http_slow_requests": "Requests that do slow work, or wait for their turn to do it.",
    "http_connections": "Open connections.",
    "worker_channels": "Open channels of workers.",
    "event_streams": "Open streams of events.",
    "event_streams_dropped_total": "Streams that were closed because "
    "they were read too slowly.",
    "scheduler_batch_seconds": "Time from reading events until the batch is written, in this "
    "process.",
    "scheduler_batch_events": "Events that a batch consumed, in this process.",
}
_DATABASE = "database_"  # of these, a database has some
_HISTOGRAMS = ("http_request_seconds", "scheduler_batch_seconds", "scheduler_batch_events")
_LABELS = {"dead_rows": "table", "connections": "state"}  # of figures that there are several of


def text(metrics: Metrics | None, seen: StoreFigures) -> str:
    """Returns all figures in the text format of Prometheus; those of the server as a whole, in
    which everybody's requests are counted, are left out for None."""
    figures = _of_store(seen) | ({} if metrics is None else _of_process(metrics))
    lines: list[str] = []
    for name, says in _SAYS.items():
        samples = figures.get(name, [])
        if name in figures and (samples or not name.startswith(_DATABASE)):
            given = samples if isinstance(samples, Sequence) else [({}, samples)]
            lines += _family(name, says, given)
    return "\n".join(lines) + "\n"


def _of_store(seen: StoreFigures) -> dict[str, float | Histogram | Samples]:
    names = {str(run.number): run.name for run in seen.runs}
    sizes = [one for one in seen.figures if one.name == POOL and one.label in names]
    statuses = Counter(run.status for run in seen.runs)
    database: dict[str, Samples] = {
        f"{_DATABASE}{name}": [
            ({_LABELS[name]: one.label} if name in _LABELS else {}, one.value)
            for one in seen.figures
            if one.name == name
        ]
        for name in {one.name for one in seen.figures}
    }
    return {
        "queue_tasks": [
            ({"queue": one.queue, "status": status.value}, float(one.counts.get(status, 0)))
            for one in seen.queues
            for status in _OPEN
        ],
        "queue_oldest_ready_seconds": [
            ({"queue": one.queue}, one.oldest_ready_seconds or 0.0) for one in seen.queues
        ],
        "queue_paused": [
            ({"queue": one.queue}, float(one.settings.paused)) for one in seen.queues
        ],
        "workers": len(seen.workers),
        "leases": sum(one.leases for one in seen.workers),
        "worker_slots": sum(one.slots for one in seen.workers),
        "runs": [({"status": status}, count) for status, count in sorted(statuses.items())],
        "run_pool_tasks": [({"run": names[one.label]}, one.value) for one in sizes],
        **database,
    }


def _of_process(metrics: Metrics) -> dict[str, float | Histogram | Samples]:
    admission = metrics.admission
    away = admission.turned_away if admission else Counter[Urgency]()
    return {
        "http_requests_total": [
            ({"route": verb, "status": str(status)}, count)
            for (verb, status), count in sorted(metrics.requests.items())
        ],
        "http_request_seconds": [
            ({"route": verb}, one) for verb, one in sorted(metrics.seconds.items())
        ],
        "http_turned_away_total": [({"kind": one.name.lower()}, away[one]) for one in Urgency],
        "quota_refused_total": [
            ({"quota": name}, count)
            for name, count in (metrics.quotas.refused if metrics.quotas else {}).items()
        ],
        "http_requests_under_way": admission.places.held if admission else 0,
        "http_slow_requests": admission.slow.held if admission else 0,
        "http_connections": metrics.connections(),
        "worker_channels": metrics.channels,
        "event_streams": metrics.streams,
        "event_streams_dropped_total": metrics.streams_dropped,
        "scheduler_batch_seconds": metrics.batch_seconds,
        "scheduler_batch_events": metrics.batch_events,
    }


def _family(figure: str, says: str, samples: Samples) -> Iterable[str]:
    name = f"tidewheel_{figure}"
    kind = "counter" if figure.endswith("_total") else "gauge"
    yield f"# HELP {name} {says}"
    yield f"# TYPE {name} {'histogram' if figure in _HISTOGRAMS else kind}"
    for labels, value in samples:
        if not isinstance(value, Histogram):
            yield f"{name}{_labels(labels)} {value:.15g}"
            continue
        total = 0
        bounds = [*(f"{bound:g}" for bound in value.bounds), "+Inf"]
        for bound, count in zip(bounds, value.counts, strict=True):
            total += count
            yield f"{name}_bucket{_labels({**labels, 'le': bound})} {total}"
        yield f"{name}_sum{_labels(labels)} {value.total:.15g}"
        yield f"{name}_count{_labels(labels)} {total}"


def _labels(labels: dict[str, str]) -> str:
    quoted = (f'{name}="{value.translate(_ESCAPED)}"' for name, value in labels.items())
    return f"{{{','.join(quoted)}}}" if labels else ""


_ESCAPED = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})
