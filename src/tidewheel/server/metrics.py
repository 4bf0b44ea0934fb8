"""Counts in this process: whom it answered or turned away, what its schedulers wrote."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidewheel.api.tasks import Figure, QueueView, WorkerView
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.status import Status
from tidewheel.server.load_shedding import Urgency

if TYPE_CHECKING:
    from tidewheel.scheduler.pending_batch import PendingBatch
    from tidewheel.scheduler.run_engine import RunEngine
    from tidewheel.server.load_shedding import Admission

# Seconds, and events of a batch; what is below the first is in all of them.
SECONDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
EVENTS = (1, 10, 100, 1_000)
SEEN_SECONDS = 1.0


class Histogram:
    """Counts values up to each bound."""

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
        self.connections: Callable[[], int] = lambda: 0
        self._seen: StoreFigures | None = None
        self._seen_at = 0.0
        self._looking = asyncio.Lock()

    async def seen(self, look: Callable[[], Awaitable[StoreFigures]]) -> StoreFigures:
        """Returns the figures of the store, which is asked once a second however many look."""
        async with self._looking:
            if self._seen is None or time.monotonic() - self._seen_at >= SEEN_SECONDS:
                self._seen = await look()
                self._seen_at = time.monotonic()
            return self._seen

    def watch(self, admission: Admission, connections: Callable[[], int]) -> None:
        """Sets the sources whose figures are read when somebody looks."""
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


MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_OPEN = (Status.WAITING, Status.READY, Status.RUNNING, Status.CANCELLING)

Sample = tuple[dict[str, str], float]


def text(metrics: Metrics, seen: StoreFigures) -> str:
    """Returns all figures in the text format of Prometheus."""
    lines = [
        *_of_queues(seen.queues),
        *_of_workers(seen.workers),
        *_of_runs(seen.runs, seen.figures),
        *_of_database(seen.figures),
        *_of_requests(metrics),
        *_histogram(
            "tidewheel_scheduler_batch_seconds",
            "From reading what had happened to having written the batch, in this process.",
            [({}, metrics.batch_seconds)],
        ),
        *_histogram(
            "tidewheel_scheduler_batch_events",
            "Events that a batch consumed, in this process.",
            [({}, metrics.batch_events)],
        ),
    ]
    return "\n".join(lines) + "\n"


def _of_queues(queues: Sequence[QueueView]) -> list[str]:
    depths: list[Sample] = [
        ({"queue": one.queue, "status": status.value}, float(one.counts.get(status, 0)))
        for one in queues
        for status in _OPEN
    ]
    ages = [({"queue": one.queue}, one.oldest_ready_seconds or 0.0) for one in queues]
    paused = [({"queue": one.queue}, float(one.settings.paused)) for one in queues]
    return [
        *_gauge("tidewheel_queue_tasks", "Open tasks.", depths),
        *_gauge(
            "tidewheel_queue_oldest_ready_seconds",
            "How long the oldest ready task has waited.",
            ages,
        ),
        *_gauge(
            "tidewheel_queue_paused", "1 while no task of the queue is handed out.", paused
        ),
    ]


def _of_workers(workers: Sequence[WorkerView]) -> list[str]:
    leases, slots = sum(one.leases for one in workers), sum(one.slots for one in workers)
    return [
        *_gauge("tidewheel_workers", "Workers alive.", [({}, len(workers))]),
        *_gauge("tidewheel_leases", "Leases held by workers alive.", [({}, leases)]),
        *_gauge(
            "tidewheel_worker_slots",
            "Tasks that the workers alive can run at once.",
            [({}, slots)],
        ),
    ]


def _of_runs(runs: Sequence[RunView], figures: Sequence[Figure]) -> list[str]:
    statuses = Counter(run.status for run in runs)
    names = {str(run.number): run.name for run in runs}
    sizes: list[Sample] = [
        ({"run": names[one.label]}, one.value)
        for one in figures
        if one.name == "pool" and one.label in names
    ]
    return [
        *_gauge(
            "tidewheel_runs",
            "Runs by status, of the newest 1,000.",
            [({"status": status}, count) for status, count in sorted(statuses.items())],
        ),
        *_gauge("tidewheel_run_pool_tasks", "Tasks in the pool of a run.", sizes),
    ]


_DATABASE = {
    "dead_rows": ("table", "Rows that wait to be vacuumed."),
    "connections": ("state", "Connections to the database, of all programs."),
    "oldest_transaction_seconds": ("", "Age of the oldest transaction: vacuum waits for it."),
    "file_bytes": ("", "Size of the database file."),
    "free_bytes": ("", "Part of the database file that holds nothing."),
    "wal_bytes": ("", "Size of the write-ahead log; it grows while a checkpoint has to wait."),
}


def _of_database(figures: Sequence[Figure]) -> list[str]:
    lines: list[str] = []
    for name, (label, help_text) in _DATABASE.items():
        samples: list[Sample] = [
            ({label: one.label} if label else {}, one.value)
            for one in figures
            if one.name == name
        ]
        if samples:
            lines += _gauge(f"tidewheel_database_{name}", help_text, samples)
    return lines


def _of_requests(metrics: Metrics) -> list[str]:
    admission = metrics.admission
    away = admission.turned_away if admission else Counter[Urgency]()
    return [
        *_family(
            "tidewheel_http_requests_total",
            "counter",
            "Requests answered.",
            [
                ({"route": verb, "status": str(status)}, count)
                for (verb, status), count in sorted(metrics.requests.items())
            ],
        ),
        *_histogram(
            "tidewheel_http_request_seconds",
            "How long requests took.",
            [({"route": verb}, one) for verb, one in sorted(metrics.seconds.items())],
        ),
        *_family(
            "tidewheel_http_turned_away_total",
            "counter",
            "Requests refused because there was too much to do.",
            [({"kind": kind.name.lower()}, away[kind]) for kind in Urgency],
        ),
        *_gauge(
            "tidewheel_http_requests_under_way",
            "Requests that are being worked on.",
            [({}, admission.under_way if admission else 0)],
        ),
        *_gauge(
            "tidewheel_http_connections", "Connections open.", [({}, metrics.connections())]
        ),
        *_gauge(
            "tidewheel_worker_channels",
            "Workers that listen to this server.",
            [({}, metrics.channels)],
        ),
        *_gauge("tidewheel_event_streams", "Streams of events.", [({}, metrics.streams)]),
        *_family(
            "tidewheel_event_streams_dropped_total",
            "counter",
            "Streams that were closed because they were read too slowly.",
            [({}, metrics.streams_dropped)],
        ),
    ]


def _gauge(name: str, help_text: str, samples: Iterable[Sample]) -> list[str]:
    return _family(name, "gauge", help_text, samples)


def _family(name: str, kind: str, help_text: str, samples: Iterable[Sample]) -> list[str]:
    return [
        f"# HELP {name} {help_text}",
        f"# TYPE {name} {kind}",
        *(f"{name}{_labels(labels)} {value:.15g}" for labels, value in samples),
    ]


def _histogram(
    name: str, help_text: str, samples: Iterable[tuple[dict[str, str], Histogram]]
) -> list[str]:
    lines = [f"# HELP {name} {help_text}", f"# TYPE {name} histogram"]
    for labels, histogram in samples:
        total = 0
        bounds = [*(f"{bound:g}" for bound in histogram.bounds), "+Inf"]
        for bound, count in zip(bounds, histogram.counts, strict=True):
            total += count
            lines.append(f"{name}_bucket{_labels({**labels, 'le': bound})} {total}")
        lines.append(f"{name}_sum{_labels(labels)} {histogram.total:.15g}")
        lines.append(f"{name}_count{_labels(labels)} {total}")
    return lines


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
