"""Defines the requests of clients, workers and monitors to a store, and its answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, overload

from tidewheel.core.queue.lease import LEASE_SECONDS_DEFAULT, Holder
from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.status import Status
from tidewheel.core.queue.task import Instant, TaskError, TaskId, WorkerId
from tidewheel.errors import BadSetting, Refused
from tidewheel.lazy_dataclasses import NamedTuple, dataclass

if TYPE_CHECKING:
    from tidewheel.core.queue.task import Part

ANY_RESOURCES = Resources(
    cpu=1e6, memory_bytes=2**62, gpu=2**31 - 1, nodes=2**31 - 1, buffer_bytes=2**62
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """Holds what became of one submitted task."""

    id: TaskId  # of the stored task: with a unique key it may be another's
    created: bool = False  # False: the same task was there already
    refused: Refused | None = None


class AllCreated(Sequence[Submitted]):
    """Is the answer for tasks each of which was stored as a new one."""

    def __init__(self, ids: Sequence[TaskId]) -> None:
        self.ids = ids

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, which: int) -> Submitted: ...
    @overload
    def __getitem__(self, which: Part) -> AllCreated: ...
    def __getitem__(self, which: int | Part) -> Submitted | AllCreated:
        if isinstance(which, slice):
            return AllCreated(self.ids[which])
        return Submitted(id=self.ids[which], created=True)

    def __iter__(self) -> Iterator[Submitted]:
        return (Submitted(id=one, created=True) for one in self.ids)

    def __eq__(self, other: object) -> bool:
        """Says whether the other is a sequence of the same answers, of whatever kind."""
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True, kw_only=True)
class Amendment:
    """Holds changes to a task that waits; None leaves a field as it is (R003-12)."""

    name: str | None = None
    command: str | None = None
    max_retries: int | None = None
    estimated_runtime_seconds: float | None = None
    max_termination_seconds: float | None = None
    resources: Resources | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """The answer to one request to cancel."""

    id: TaskId
    status: Status
    changed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """Says which tasks to list; None matches all, everything given must match."""

    statuses: tuple[Status, ...] | None = None
    queue: str | None = None
    worker: WorkerId | None = None
    tag: str | None = None
    name: str | None = None
    estimated_runtime_seconds_max: float | None = None
    memory_bytes_min: int | None = None  # asks for at least so much (1 or more)
    jobs: bool | None = None  # False leaves out jobs of runs
    matching: str | None = None  # as `filters` reads it: of ids and names


PAGE_COUNT_MAX = 10_000  # that one call may ask for


def page_count(count: int) -> int:
    """Returns the count if one call may ask for so many, else raises BadSetting."""
    if not 1 <= count <= PAGE_COUNT_MAX:
        raise BadSetting("count", count, f"1 to {PAGE_COUNT_MAX}")
    return count


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysetPage:
    """Asks for a page of tasks: up to ``count``, newest first.

    All of them are older than the task with seq ``before``; None begins with the newest.
    """

    count: int = 100
    before: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """Holds how a queue behaves; every queue exists as soon as it is named."""

    paused: bool = False  # workers take no tasks of the queue
    aging: bool = False  # the priority of a ready task rises by 1 per second, up to 255
    fair: bool = False  # limit keys take turns, whatever the priorities of their tasks
    # A job is ended before its lease ends if the store cannot be reached, and when its worker
    # ends.
    fence_kill: bool = False
    lease_seconds: float = LEASE_SECONDS_DEFAULT  # how long a lease lasts without a heartbeat
    limits: tuple[Limit, ...] = ()  # how many tasks may run at once, or start within a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """Says which tasks the runners of a worker can execute."""

    commands: bool = True  # of the shell; those that name another runner need its label alone
    handlers: frozenset[str] | None = None  # None: any
    bare: bool = True  # tasks with only a spec, for applications that know what it means


ANY_TASKS = Abilities()


class ClaimedTasks(list["Claimed"]):
    """Holds the tasks that were claimed, and when to ask again.

    ``next_due_seconds`` is the time until the next delayed task is due; None: none is known.
    """

    def __init__(
        self, tasks: Iterable[Claimed] = (), next_due_seconds: float | None = None
    ) -> None:
        super().__init__(tasks)
        self.next_due_seconds = next_due_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    """Asks, for a worker, for the leases of up to ``count`` tasks of one queue."""

    queue: str
    worker: WorkerId
    count: int = 1
    lease_seconds: float | None = None  # None: as the queue says, else 10 s
    free: Resources = ANY_RESOURCES
    commands: bool = True  # whether tasks with a command for the shell are welcome
    handlers: frozenset[str] | None = None  # which handlers are known; None: any
    bare: bool = True  # whether tasks with only a spec are welcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """Describes a task that a worker has leased, with all that is needed to execute it."""

    seq: int
    id: TaskId
    queue: str
    name: str | None
    attempt: int
    spec: str | None
    command: str | None
    handler: str | None
    priority: int
    deadline_at: Instant
    lease_seconds: float
    timeout_seconds: float | None
    max_termination_seconds: float
    resources: Resources
    fence_kill: bool  # the job must end before its lease does, should the store be out of reach
    limited: bool = False  # the queue has limits: others may be waiting for this one's end
    run: int | None = None  # the workflow run that it is a submission of
    environment: str | None = None  # JSON: variables of its command, `secret:NAME` as it is
    has_inputs: bool = False  # a task that it needs has told values: the worker fetches them
    # With which its job speaks to the server that handed it out; a database gives none.
    token: str | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """Is a heartbeat for one lease: it says that the attempt goes on, and how far it is."""

    task_id: TaskId
    attempt: int
    progress: float | None = None


class WorkerBeats(NamedTuple):
    """Holds the heartbeats of one worker, for some of its leases."""

    worker: WorkerId
    beats: Sequence[Beat]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMessage:
    """Holds one message of a job, numbered 1, 2, … within its attempt.

    ``output`` names the output that it announces; None if it announces none.
    """

    number: int
    text: str
    output: str | None = None
    values: str | None = None  # JSON text of an object, for those that the output lets run


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSample:
    """Holds what a job used at one moment; None stands for what was not measured."""

    memory_bytes: int | None = None
    cpu_percent: float | None = None  # of one core
    gpu_percent: float | None = None
    gpu_memory_bytes: int | None = None


class Ending(StrEnum):
    """Says how an attempt ended, as its owner reports it."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"  # may be retried
    ABORTED = "aborted"  # must not be retried
    YIELDED = "yielded"  # given back: another worker shall take it at once


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Describes the end of an attempt, as its owner reports it last."""

    ending: Ending
    error: TaskError | None = None
    exit_status: int | None = None
    metrics: str | None = None  # JSON text
    values: str | None = None  # JSON text of an object, for those after it; see values

    def __post_init__(self) -> None:
        needs_error = self.ending in (Ending.FAILED, Ending.ABORTED)
        assert needs_error == (self.error is not None), self
        assert self.values is None or self.ending is Ending.SUCCEEDED, self


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Says what happened in an attempt since the last report; ``end`` makes it the last one."""

    holder: Holder
    started: bool = False
    started_seconds_ago: float = 0.0  # before this report was made
    messages: tuple[JobMessage, ...] = ()
    usage: tuple[UsageSample, ...] = ()
    end: End | None = None
    frees: str | None = None  # the queue in which this end leaves a place that was limited

    @property
    def started_ago(self) -> float | None:
        """Returns how many seconds ago the job started; None if the report does not say so."""
        return self.started_seconds_ago if self.started else None

    @property
    def is_mere_step(self) -> bool:
        """Says whether this tells of a start or of a success with its values, and of nothing
        else."""
        if self.messages or self.usage:
            return False
        end = self.end
        if end is None:
            return self.started
        return end.ending is Ending.SUCCEEDED


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """Answers one report: with the status now, or why the report was refused."""

    task_id: TaskId
    status: Status | None = None
    refused: Refused | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostProcess:
    """Identifies a process of a host, so that no later one with its pid is taken for it."""

    host: str
    boot_id: str
    pid: int
    started: float  # the kernel's start time of the process, in clock ticks since boot


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWorker:
    """A worker introduces itself."""

    name: str
    process: HostProcess
    queues: tuple[str, ...]
    slots: int
    capacity: Resources
    abilities: Abilities = ANY_TASKS


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldLease:
    """Describes a lease and the process of its owner; when that is dead, it can be adopted."""

    task: Claimed
    owner: WorkerId
    process: HostProcess
    messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """Says what changed that others wait for: queues with work, workers and runs with news."""

    queues: frozenset[str] = frozenset()
    workers: frozenset[WorkerId] = frozenset()
    runs: frozenset[int] = frozenset()
    everything: bool = False  # the store cannot tell what changed
