"""What is known about each task from the calls that were made and the history they left.

Nothing here is read from a task's row: rows are compared with these facts. The words are
plain text and the table of steps is written out by hand from DESIGN §2, so that a mistake in
the core's table cannot hide itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import cast

from tidewheel.core.queue.requests import QueueSettings
from tidewheel.core.queue.task import NewTask

FINAL = frozenset({"succeeded", "failed", "cancelled"})
LEASED = frozenset({"running", "cancelling"})

NEVER = float("-inf")

LEGAL_STEPS = frozenset(
    {
        ("waiting", "satisfy", "ready"),
        ("waiting", "skip", "succeeded"),
        ("waiting", "cancel", "cancelled"),
        ("ready", "claim", "running"),
        ("ready", "skip", "succeeded"),
        ("ready", "cancel", "cancelled"),
        ("running", "succeed", "succeeded"),
        ("running", "retry", "ready"),
        ("running", "fail", "failed"),
        ("running", "abort", "failed"),
        ("running", "yield", "ready"),
        ("running", "adopt", "running"),
        ("running", "lapse", "ready"),
        ("running", "lapse_out", "failed"),
        ("running", "time_out", "failed"),
        ("running", "cancel", "cancelling"),
        ("cancelling", "adopt", "cancelling"),
        ("cancelling", "succeed", "cancelled"),
        ("cancelling", "retry", "cancelled"),
        ("cancelling", "fail", "cancelled"),
        ("cancelling", "abort", "cancelled"),
        ("cancelling", "yield", "cancelled"),
        ("cancelling", "lapse", "cancelled"),
        ("cancelling", "lapse_out", "cancelled"),
    }
)


class BrokenInvariant(Exception):
    """A promise of RELIABILITY.md does not hold."""

    def __init__(self, invariant: str, seen: str) -> None:
        self.invariant, self.seen = invariant, seen
        super().__init__(f"{invariant}: {seen}")


def demand(holds: object, invariant: str, seen: str) -> None:
    """Raise unless it holds; callers on the hot path test first and build no text."""
    if not holds:
        raise BrokenInvariant(invariant, seen)


@dataclass(slots=True)
class Call:
    """One request as the store executes it."""

    process: str
    operation: str
    args: tuple[object, ...]
    kwargs: dict[str, object]
    sent_at: float = 0.0


@dataclass(slots=True)
class TaskFacts:
    """One task: what was asked for, and what happened to it since."""

    seq: int
    asked: NewTask
    created_at: float
    armed: bool
    status: str = ""
    attempt: int = 0
    failures: int = 0
    lapses: int = 0
    owner: str | None = None
    due_at: float | None = None
    ready_at: float = 0.0
    ended_at: float = 0.0
    # Of the current lease:
    claimed_at: float = 0.0
    started_at: float | None = None  # as its owner told
    lease_seconds: float = 0.0
    granted_until: float = 0.0
    progress: float = 0.0
    messages: int = 0
    # Over the whole life:
    outputs: set[str] = field(default_factory=set)
    signals: list[str] = field(default_factory=list)
    ended_by: dict[int, str] = field(default_factory=dict)  # how each attempt ended
    granted_last: dict[int, float] = field(default_factory=dict)  # when its lease was, if ended

    def ran_too_long(self, now: float) -> bool:
        """Whether the time limit is over: from the start, else from the claim, else never."""
        limit = self.asked.timeout_seconds
        if limit is None or self.status != "running":
            return False
        if any(label.startswith("runner:") for label in self.asked.resources.labels):
            # Its runner has a minute to tidy up.
            return self.started_at is not None and now > self.started_at + limit + 60.0
        begun_at = self.claimed_at if self.started_at is None else self.started_at
        return now > begun_at + limit

    @property
    def id(self) -> str:
        return self.asked.id

    @property
    def final(self) -> bool:
        return self.status in FINAL

    @property
    def leased(self) -> bool:
        return self.status in LEASED

    def held_by(self, worker: str, attempt: int) -> bool:
        """Whether this worker may report for this attempt."""
        return self.status in LEASED and self.attempt == attempt and self.owner == worker


@dataclass(slots=True)
class Disturbances:
    """Until when something was wrong, by process and with the store itself."""

    until: dict[str, float] = field(default_factory=dict)
    outage_until: float = NEVER  # of the last one that no monitor can have missed
    jumped: set[str] = field(default_factory=set)  # processes whose clocks were untrue

    def disturb(self, process: str, until: float) -> None:
        self.until[process] = max(until, self.until.get(process, NEVER))


@dataclass(slots=True)
class Bucket:
    """The starts that are left to a key under a rate."""

    tokens: float
    at: float


@dataclass(slots=True)
class Facts:
    """Everything that is known about one store."""

    tasks: dict[int, TaskFacts] = field(default_factory=dict)
    seq_of: dict[str, int] = field(default_factory=dict)  # by id, while stored
    live: dict[int, TaskFacts] = field(default_factory=dict)  # neither final nor deleted
    leased: dict[int, TaskFacts] = field(default_factory=dict)
    keys: dict[tuple[str, str], int] = field(default_factory=dict)  # live unique keys
    queues: dict[str, QueueSettings] = field(default_factory=dict)
    buckets: dict[tuple[str, str], Bucket] = field(default_factory=dict)
    withheld: set[str] = field(default_factory=set)  # queues of runs that were let go

    def file(self, facts: TaskFacts) -> None:
        """Keep the indexes of what is live and leased."""
        if facts.leased:
            self.leased[facts.seq] = facts
        else:
            self.leased.pop(facts.seq, None)
        if not facts.final:
            self.live[facts.seq] = facts
            return
        self.live.pop(facts.seq, None)
        if facts.asked.unique_key is not None:
            self.keys.pop((facts.asked.queue, facts.asked.unique_key), None)

    def note_settings(self, call: Call) -> None:
        """What operators said about queues and tasks."""
        match call.operation:
            case "configure_queue":
                queue, settings = cast("tuple[str, QueueSettings]", call.args)
                self.queues[queue] = settings
            case "pause_queue":
                queue = cast("str", call.args[0])
                paused = cast("bool", call.kwargs["paused"])
                self.queues[queue] = replace(self.queue(queue), paused=paused)
            case "arm":
                facts = self.find(cast("str", call.args[0]))
                if facts is not None:
                    facts.armed = True
            case _:
                pass

    def find(self, task_id: str) -> TaskFacts | None:
        seq = self.seq_of.get(task_id)
        return None if seq is None else self.tasks[seq]

    def queue(self, name: str) -> QueueSettings:
        return self.queues.get(name) or QueueSettings()
