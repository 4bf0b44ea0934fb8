"""Holds the results that a client returns: stored things with their JSON decoded."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from tidewheel.api.tasks import decoded
from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.requests import Claimed, Submitted
from tidewheel.core.queue.task import Instant, TaskId, WorkerId


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasedTask:
    """A task that this client may execute until the deadline; needed for every report on it."""

    id: TaskId
    attempt: int
    worker: WorkerId
    queue: str
    name: str | None
    spec: object
    spec_text: str | None
    command: str | None
    handler: str | None
    priority: int
    deadline_at: Instant
    lease_seconds: float
    limited: bool  # its queue has limits
    said: Said = field(compare=False, repr=False)

    @property
    def holder(self) -> Holder:
        """The claim to be its owner."""
        return Holder(task_id=self.id, attempt=self.attempt, worker=self.worker)

    @classmethod
    def of(cls, claimed: Claimed, worker: WorkerId) -> LeasedTask:
        """Makes a leased task of the store's answer to a claim."""
        shared = ("id", "attempt", "queue", "name", "command", "handler", "priority", "limited")
        return cls(
            **{name: getattr(claimed, name) for name in shared},
            worker=worker,
            spec=decoded(claimed.spec),
            spec_text=claimed.spec,
            deadline_at=claimed.deadline_at,
            lease_seconds=claimed.lease_seconds,
            said=Said(),
        )


class Said:
    """The number of an attempt's messages that the store has, and a lock for sending more."""

    __slots__ = ("count", "turn")

    def __init__(self) -> None:
        self.count = 0
        self.turn = asyncio.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The outcome of submitting many tasks, which never fails as a whole (002)."""

    inserted: tuple[TaskId, ...] = ()
    present: tuple[TaskId, ...] = ()  # the same task was there already
    failed: tuple[Submitted, ...] = ()  # taken ids and names, unknown or circular dependencies
    invalid: tuple[Submitted, ...] = ()  # tasks that break a rule by themselves
