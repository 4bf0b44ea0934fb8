"""Queues and workers on their way in and out."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.status import Status
from tidewheel.core.queue.views import QueueView, WorkerView
from tidewheel.server.wire.forms import In, Out
from tidewheel.server.wire.reports import ResourcesIn
from tidewheel.server.wire.tasks import ResourcesOut, resources_out
from tidewheel.vocabulary import time_text

UNKNOWN_BOOT = "http"


class LimitOut(Out):
    """A limit; the key is "" for the whole queue and "*" for each key."""

    key: str
    concurrency_max: int | None
    rate_max: int | None
    rate_seconds: float


class QueueOut(Out):
    """How a queue is set, and how much waits in it."""

    queue: str
    paused: bool
    aging: bool
    fence_kill: bool
    lease_seconds: float
    limits: list[LimitOut]
    counts: dict[str, int]
    oldest_ready_seconds: float | None


class QueuesOut(Out):
    queues: list[QueueOut]


class ReadyQueuesOut(Out):
    queues: list[str]
    priorities: dict[str, int]  # the highest of each


class LimitIn(In):
    """A limit; null leaves that side open."""

    key: str = ""
    concurrency_max: Annotated[int, msgspec.Meta(le=2**31 - 1)] | None = None
    rate_max: Annotated[int, msgspec.Meta(le=2**31 - 1)] | None = None
    rate_seconds: float = 1.0

    def value(self) -> Limit:
        """For the store."""
        return Limit(
            key=self.key,
            concurrency_max=self.concurrency_max,
            rate_max=self.rate_max,
            rate_seconds=self.rate_seconds,
        )


class QueueIn(In):
    """What shall change; null leaves it as it is."""

    paused: bool | None = None
    aging: bool | None = None
    fence_kill: bool | None = None
    lease_seconds: float | None = None
    limits: Annotated[list[LimitIn], msgspec.Meta(max_length=1_000)] | None = None


class WorkerIn(In):
    """A worker introduces itself."""

    name: str
    queues: Annotated[list[str], msgspec.Meta(min_length=1, max_length=1_000)]
    slots: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 1
    capacity: ResourcesIn = msgspec.field(default_factory=ResourcesIn)
    commands: bool = True
    handlers: list[str] | None = None
    bare: bool = True
    host: str = ""
    # Which boot of that host, which process and which of those with its number: with them a
    # worker that is started there later can take over its jobs. Without, nobody can.
    boot_id: str = UNKNOWN_BOOT
    pid: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = 0
    started: Annotated[float, msgspec.Meta(ge=0, le=1e15)] = 0.0


class WorkerIdOut(Out):
    id: str


class WorkerOut(Out):
    """A worker and what it holds."""

    id: str
    name: str
    host: str
    boot_id: str
    pid: int
    started: float
    queues: list[str]
    slots: int
    leases: int
    capacity: ResourcesOut
    registered_at: str | None
    seen_at: str | None
    stopped_at: str | None
    trouble: str | None
    commands: bool
    handlers: list[str] | None
    bare: bool


class WorkersOut(Out):
    workers: list[WorkerOut]


class TroubleIn(In):
    """Why a worker takes no tasks just now; null: it does again."""

    trouble: Annotated[str, msgspec.Meta(max_length=1_000)] | None = None


_OPEN = (Status.WAITING, Status.READY, Status.RUNNING, Status.CANCELLING)


def queue_out(view: QueueView) -> QueueOut:
    settings = view.settings
    return QueueOut(
        queue=view.queue,
        paused=settings.paused,
        aging=settings.aging,
        fence_kill=settings.fence_kill,
        lease_seconds=settings.lease_seconds,
        limits=[
            LimitOut(
                key=limit.key,
                concurrency_max=limit.concurrency_max,
                rate_max=limit.rate_max,
                rate_seconds=limit.rate_seconds,
            )
            for limit in settings.limits
        ],
        counts={status.value: view.counts.get(status, 0) for status in _OPEN},
        oldest_ready_seconds=view.oldest_ready_seconds,
    )


def worker_out(worker: WorkerView) -> WorkerOut:
    handlers = worker.abilities.handlers
    return WorkerOut(
        id=worker.id,
        name=worker.name,
        host=worker.process.host,
        boot_id=worker.process.boot_id,
        pid=worker.process.pid,
        started=worker.process.started,
        queues=list(worker.queues),
        slots=worker.slots,
        leases=worker.leases,
        capacity=resources_out(worker.capacity),
        registered_at=time_text(worker.registered_at),
        seen_at=time_text(worker.seen_at),
        stopped_at=time_text(worker.stopped_at),
        trouble=worker.trouble,
        commands=worker.abilities.commands,
        handlers=None if handlers is None else sorted(handlers),
        bare=worker.abilities.bare,
    )
