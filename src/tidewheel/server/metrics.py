"""Counters of this process, and the text that Prometheus reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tidewheel.core.tasks.status import Status
from tidewheel.core.tasks.views import QueueView, WorkerView

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Seconds; a request below the first is in all of them.
BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)

Sample = tuple[dict[str, str], float]


class Metrics:
    """What this server did since it started."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()  # by verb and status
        self.seconds: Counter[float] = Counter()  # by the bucket's upper end
        self.seconds_sum = 0.0
        self.turned_away = 0
        self.channels = 0  # open now

    def count(self, verb: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self.requests[verb, status] += 1
        self.seconds_sum += seconds
        self.seconds[next((end for end in BUCKETS if seconds <= end), float("inf"))] += 1


def text(metrics: Metrics, queues: Sequence[QueueView], workers: Sequence[WorkerView]) -> str:
    """All of it in the text format."""
    lines = [
        *_family("tidewheel_queue_tasks", "gauge", "Open tasks.", _depths(queues)),
        *_family(
            "tidewheel_queue_oldest_ready_seconds",
            "gauge",
            "How long the oldest ready task has waited.",
            [({"queue": one.queue}, one.oldest_ready_seconds or 0.0) for one in queues],
        ),
        *_family(
            "tidewheel_queue_paused",
            "gauge",
            "1 while no task of the queue is handed out.",
            [({"queue": one.queue}, float(one.settings.paused)) for one in queues],
        ),
        *_family("tidewheel_workers", "gauge", "Workers alive.", [({}, float(len(workers)))]),
        *_family(
            "tidewheel_leases",
            "gauge",
            "Leases held by workers alive.",
            [({}, float(sum(one.leases for one in workers)))],
        ),
        *_family(
            "tidewheel_worker_slots",
            "gauge",
            "Tasks that the workers alive can run at once.",
            [({}, float(sum(one.slots for one in workers)))],
        ),
        *_family(
            "tidewheel_http_requests_total",
            "counter",
            "Requests answered.",
            [
                ({"route": verb, "status": str(status)}, float(count))
                for (verb, status), count in sorted(metrics.requests.items())
            ],
        ),
        *_family(
            "tidewheel_http_turned_away_total",
            "counter",
            "Reads refused because there was too much to do.",
            [({}, float(metrics.turned_away))],
        ),
        *_family(
            "tidewheel_worker_channels",
            "gauge",
            "Workers that listen to this server.",
            [({}, float(metrics.channels))],
        ),
        *_histogram(metrics),
    ]
    return "\n".join(lines) + "\n"


def _depths(queues: Iterable[QueueView]) -> list[Sample]:
    return [
        ({"queue": one.queue, "status": status.value}, float(one.counts.get(status, 0)))
        for one in queues
        for status in (Status.WAITING, Status.READY, Status.RUNNING, Status.CANCELLING)
    ]


def _family(name: str, kind: str, help_text: str, samples: Iterable[Sample]) -> list[str]:
    return [
        f"# HELP {name} {help_text}",
        f"# TYPE {name} {kind}",
        *(f"{name}{_labels(labels)} {value:.15g}" for labels, value in samples),
    ]


def _histogram(metrics: Metrics) -> list[str]:
    name, total, samples = "tidewheel_http_request_seconds", 0, []
    for end in (*BUCKETS, float("inf")):
        total += metrics.seconds[end]
        le = "+Inf" if end == float("inf") else f"{end:g}"
        samples.append(f'{name}_bucket{{le="{le}"}} {total}')
    return [
        f"# HELP {name} How long requests took.",
        f"# TYPE {name} histogram",
        *samples,
        f"{name}_sum {metrics.seconds_sum:.15g}",
        f"{name}_count {total}",
    ]


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
