"""Defines tasks: the request that makes one, the facts for decisions, and its changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NewType, overload

from tidewheel.core.queue.resources import NO_RESOURCES, Resources
from tidewheel.core.queue.retry import NO_DELAY, RetryPolicy
from tidewheel.core.queue.status import LEASED, Signal, Status
from tidewheel.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    Part = slice[int | None, int | None, int | None]

Instant = NewType("Instant", float)  # UTC seconds since 1970, from the database's clock
TaskId = NewType("TaskId", str)
WorkerId = NewType("WorkerId", str)

PRIORITY_DEFAULT = 50
PRIORITY_MAX = 2**32 - 1
MAX_LAPSES_DEFAULT = 5
MAX_TERMINATION_SECONDS_DEFAULT = 10.0
SUCCEEDED_OUTPUT = "succeeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Says what a task waits for: it may run once ``task_id`` has made ``output``."""

    task_id: TaskId
    output: str = SUCCEEDED_OUTPUT


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTask:
    """Holds what a client asks for. ``spec`` is JSON text, stored and returned exactly."""

    id: TaskId
    # The workflow run it is a submission of; set by the run's scheduler, never by a client. It
    # stands before the queue: what is before it is no part of the digest.
    run: int | None = None
    queue: str
    name: str | None = None
    spec: str | None = None  # for the worker that claims the task; never interpreted here
    command: str | None = None  # bash, for the shell runner
    handler: str | None = None  # a registered function, for the python runner
    priority: int = PRIORITY_DEFAULT
    delay_seconds: float = 0.0  # counted by the database's clock from the submission
    armed: bool = True
    needs: tuple[Need, ...] = ()
    continuations: tuple[TaskId, ...] = ()
    max_retries: int = 0
    retry: RetryPolicy = NO_DELAY
    max_lapses: int = MAX_LAPSES_DEFAULT
    timeout_seconds: float | None = None
    estimated_runtime_seconds: float | None = None
    max_termination_seconds: float = MAX_TERMINATION_SECONDS_DEFAULT
    resources: Resources = NO_RESOURCES
    unique_key: str | None = None
    limit_key: str | None = None
    tag: str | None = None
    # A JSON object of texts: what its command finds in its environment. Of `secret:NAME` the
    # worker that starts it makes the value.
    environment: str | None = None

    @property
    def executes(self) -> bool:
        """Says whether there is anything to run: a spec, a command or a handler.

        A task without any only joins others (seed 003).
        """
        return not (self.spec is None and self.command is None and self.handler is None)


class AlikeTasks(Sequence[NewTask]):
    """Holds new tasks that say the same but for their ids and specs.

    It stands for the tasks one by one, none of which is made unless it is asked for. ``said``
    is what all of them say: tasks that are ready at once, and wait for nothing. Specs is None
    if no task has one. ``ids_are_new``: the ids were made for this submission, so that no other
    task has one of them. ``specs_are_json``: ``exact_json`` wrote them.
    """

    def __init__(
        self,
        said: NewTask,
        ids: Sequence[TaskId],
        specs: Sequence[str] | None = None,
        *,
        ids_are_new: bool = False,
        specs_are_json: bool = False,
    ) -> None:
        assert said.armed and said.spec is None, said
        assert said.executes or specs is not None, said
        assert not (said.run or said.name or said.unique_key), said
        assert not (said.needs or said.continuations), said
        assert specs is None or len(specs) == len(ids)
        self.said, self.ids, self.specs = said, ids, specs
        self.ids_are_new, self.specs_are_json = ids_are_new, specs_are_json

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, which: int) -> NewTask: ...
    @overload
    def __getitem__(self, which: Part) -> list[NewTask]: ...
    def __getitem__(self, which: int | Part) -> NewTask | list[NewTask]:
        if isinstance(which, slice):
            return [self[place] for place in range(len(self))[which]]
        spec = None if self.specs is None else self.specs[which]
        return replace(self.said, id=self.ids[which], spec=spec)

    def __iter__(self) -> Iterator[NewTask]:
        return map(self.__getitem__, range(len(self.ids)))


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskError:
    """Holds why a task failed, in the form that seed 002 has; ``args`` is JSON text."""

    code: str
    args: str = "{}"
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Holds a worker's right to a task until the deadline, and how far the attempt is."""

    owner: WorkerId
    deadline_at: Instant
    lease_seconds: float
    claimed_at: Instant
    started_at: Instant | None
    progress: float
    messages: int  # how many numbered messages of this attempt are stored


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskState:
    """Holds the facts about a stored task that decisions look at."""

    seq: int
    id: TaskId
    queue: str
    status: Status
    attempt: int
    failures: int
    lapses: int
    max_retries: int
    retry: RetryPolicy
    max_lapses: int
    timeout_seconds: float | None
    armed: bool
    executes: bool
    graph: int | None  # which task graph it belongs to; None while it has no edge
    run: int | None = None  # the workflow run that hears of its end
    owner: WorkerId | None  # kept after the end
    lease: Lease | None
    is_prepared: bool = False  # it names its runner, which has a limit for what comes before

    def __post_init__(self) -> None:
        assert (self.lease is not None) == (self.status in LEASED), self


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Describes one step of one task.

    The store writes it only if the task still has ``from_status`` and ``from_attempt``.
    """

    seq: int
    signal: Signal
    from_status: Status
    to_status: Status
    from_attempt: int
    attempt: int
    failures: int
    lapses: int
    owner: WorkerId | None
    worker: WorkerId | None  # who held the lease, for the history
    progress: float  # how far the attempt came, for the history
    delay_seconds: float = 0.0
    ends_lease: bool = False
    exit_status: int | None = None
    metrics: str | None = None
    error_code: str | None = None
    error_args: str = "{}"
    error_description: str | None = None
    values: str | None = None  # JSON, of a success
