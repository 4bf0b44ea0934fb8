"""What services need from the outside world, as Protocols.

``TaskStore`` is the one door to a store; memory, SQLite and PostgreSQL stand behind it and
pass one conformance suite. ``Runner`` turns an attempt into a job. ``Clock`` is time that
can be waited for. Services know nothing else of the world.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from tidewheel.block_ports import BlockStore
from tidewheel.core.tasks.lease import Answer, Holder
from tidewheel.core.tasks.requests import (
    Amendment,
    Beat,
    Cancelled,
    Claimed,
    ClaimRequest,
    HeldLease,
    NewWorker,
    Page,
    QueueSettings,
    Report,
    Reported,
    Submitted,
    TaskFilter,
    UsageSample,
    Wake,
)
from tidewheel.core.tasks.status import Signal
from tidewheel.core.tasks.steps import End
from tidewheel.core.tasks.task import Instant, NewTask, TaskId, WorkerId
from tidewheel.core.tasks.views import (
    AttemptView,
    EdgeView,
    HistoryEntry,
    OutputView,
    QueueView,
    TaskView,
    UsageView,
    Violation,
    WorkerView,
)
from tidewheel.notebook_ports import NotebookStore
from tidewheel.registry_ports import RegistryStore
from tidewheel.server_ports import AccessStore, EventStore

if TYPE_CHECKING:
    # Only workflows and servers need them, and loading them takes as long as all of the queue.
    from tidewheel.core.runs.definition import NewRun, RunOptions, StoredDefinition
    from tidewheel.core.runs.requests import (
        Batch,
        Inbox,
        NewCommand,
        RunClaim,
        RunLease,
        StoredRun,
    )
    from tidewheel.core.runs.views import (
        ChangesView,
        CommandView,
        RunAttempt,
        RunView,
        SubmissionView,
    )
    from tidewheel.core.sched.pool import Past
    from tidewheel.core.sched.records import PutMemory
    from tidewheel.core.tasks.statistics import EndedAttempt


class TaskStore(Protocol):
    """Every operation is one transaction: it happened whole, or not at all."""

    # clients
    async def submit(self, tasks: Sequence[NewTask], *, atomic: bool = True) -> list[Submitted]:
        """Store tasks; atomic raises the first refusal, else each is answered by itself."""
        ...

    async def arm(self, task_id: TaskId) -> TaskView: ...
    async def amend(self, task_id: TaskId, amendment: Amendment) -> TaskView: ...
    async def cancel(self, task_ids: Sequence[TaskId]) -> list[Cancelled]: ...
    async def cancel_matching(
        self, which: TaskFilter, count_max: int = 1000
    ) -> list[Cancelled]: ...
    async def add_edges(self, edges: Sequence[tuple[TaskId, TaskId]]) -> None: ...
    async def remove_edges(self, edges: Sequence[tuple[TaskId, TaskId]]) -> None: ...
    async def configure_queue(self, queue: str, settings: QueueSettings) -> None: ...
    async def pause_queue(self, queue: str, *, paused: bool) -> None: ...

    # workers
    async def register_worker(self, worker: NewWorker) -> WorkerId: ...
    async def stop_worker(self, worker: WorkerId) -> None: ...
    async def set_trouble(self, worker: WorkerId, trouble: str | None) -> None:
        """Let people know why a worker takes no tasks just now; None: it does again."""
        ...

    async def claim(self, request: ClaimRequest) -> list[Claimed]: ...
    async def claim_by_id(
        self, task_id: TaskId, worker: WorkerId, lease_seconds: float | None = None
    ) -> Claimed: ...
    async def heartbeat(self, worker: WorkerId, beats: Sequence[Beat]) -> list[Answer]:
        """Extend leases in bulk; one answer per beat, in order."""
        ...

    async def report(self, reports: Sequence[Report]) -> list[Reported]:
        """Apply reports in bulk; one answer each, in order; one refusal stops no other."""
        ...

    async def cancelling(self, worker: WorkerId) -> list[tuple[TaskId, int]]:
        """The leases of this worker that were asked to cancel, as (id, attempt)."""
        ...

    async def orphans(self, host: str, boot_id: str) -> list[HeldLease]: ...
    async def adopt(self, holder: Holder, new_owner: WorkerId) -> Claimed: ...

    # monitors
    async def take_back_lapsed_leases(
        self, *, watched_seconds: float, count_max: int
    ) -> list[tuple[TaskId, Signal]]:
        """End leases that ran out, or whose task ran too long; never one whose length is more
        than ``watched_seconds``, the time the monitor itself has been connected: after an
        outage of the database every worker gets a full lease to be heard again."""
        ...

    async def expired_tasks(self, retention_seconds: float, count_max: int) -> list[TaskView]:
        """Final tasks older than the retention that nothing live depends on, oldest first."""
        ...

    async def delete_tasks(self, seqs: Sequence[int]) -> int:
        """Remove final tasks with all that belongs to them; others are left alone.

        By their seqs, which are used once for ever: an id may belong to a new task by the time
        a request that was delayed or repeated is executed."""
        ...

    async def delete_workers(self, retention_seconds: float, count_max: int) -> int:
        """Forget workers that stopped or fell silent longer ago than that and hold no lease."""
        ...

    # looking
    async def get(self, task_id: TaskId) -> TaskView: ...
    async def get_many(self, task_ids: Sequence[TaskId]) -> list[TaskView]:
        """Up to 10,000 tasks at one moment, in this order; NotFound names one that is not."""
        ...

    async def list_tasks(self, which: TaskFilter, page: Page) -> list[TaskView]: ...
    async def peek(self, queue: str, count: int) -> list[TaskView]: ...
    async def history(
        self, task_id: TaskId, after: int = 0, count: int = 100
    ) -> list[HistoryEntry]: ...
    async def attempts(self, task_id: TaskId) -> list[AttemptView]: ...
    async def outputs(self, task_id: TaskId) -> list[OutputView]: ...
    async def values_of(self, task_ids: Sequence[TaskId]) -> Mapping[TaskId, str]:
        """What up to 10,000 tasks that succeeded hand to those after them, as JSON text.

        Each is an object. Tasks that hand on nothing, or are not there, are left out."""
        ...

    async def usage(self, task_id: TaskId) -> list[UsageView]: ...
    async def edges(self, task_id: TaskId) -> list[EdgeView]: ...
    async def ended_attempts(self, count: int) -> list[EndedAttempt]:
        """The newest that are over, newest first, for statistics."""
        ...

    async def queues(self) -> list[QueueView]: ...
    async def ready_queues(self) -> Mapping[str, int]:
        """By name, those that hold ready tasks, each with the highest priority of these; a few
        steps for each, however many it holds."""
        ...

    async def workers(self, *, live_only: bool = True) -> list[WorkerView]: ...
    async def verify(self) -> list[Violation]: ...
    async def now(self) -> Instant: ...
    async def store_id(self) -> str: ...

    # being told
    def listen(self, listener: Callable[[Wake], None]) -> Callable[[], None]:
        """Call ``listener`` (from any thread) when something changed; the answer stops it."""
        ...

    async def close(self) -> None: ...


class RunStore(Protocol):
    """Runs, their definitions and what operators want of them; beside the tasks, in one store.

    Every operation is one transaction. Where a run is named by number it exists, else NotFound.
    """

    # definitions
    async def save_definition(self, definition: StoredDefinition) -> None:
        """Keep a definition under its digest; one that is there stays as it is."""
        ...

    async def definition(self, digest: str) -> StoredDefinition: ...

    # runs
    async def create_run(self, new: NewRun) -> RunView:
        """Status "created"; its queue exists afterwards, with the lease that was asked for."""
        ...

    async def run(self, number: int) -> RunView: ...
    async def find_run(self, text: str) -> RunView:
        """By name, by number, or by a prefix of its name that no other run has (the newest run
        of a workflow for the workflow's own name). NotFound, or AmbiguousRun with the names."""
        ...

    async def runs(
        self, *, workflow: str | None = None, count: int = 100, before: int | None = None
    ) -> list[RunView]:
        """Newest first; only those made before the one with this number."""
        ...

    async def delete_run(self, number: int) -> None:
        """With everything of it; refused while a scheduler holds it."""
        ...

    async def expired_runs(self, retention_seconds: float, count_max: int) -> list[int]:
        """Runs that were let go longer ago and that nobody holds, oldest first; also those
        whose deletion was interrupted."""
        ...

    async def delete_run_part(self, number: int) -> bool:
        """A part that is quickly done, and whether the run is gone by now."""
        ...

    # schedulers
    async def claim_run(self, claim: RunClaim) -> RunLease:
        """Epoch + 1. RunHeld while another's lease runs, unless that one is dead for sure."""
        ...

    async def claimable_runs(self, count_max: int) -> list[RunView]:
        """Runs with an open status whose lease ran out: their scheduler died; and those that
        any scheduler is asked to drive."""
        ...

    async def offer_run(self, number: int, given: RunOptions) -> RunView:
        """Ask any scheduler to drive a run that nobody holds; RunHeld while somebody does."""
        ...

    async def renew_run(self, lease: RunLease) -> None:
        """RunLost if the epoch is not the current one."""
        ...

    async def read_run(self, number: int) -> StoredRun: ...
    async def read_inbox(self, number: int, count_max: int) -> Inbox: ...
    async def write_batch(self, lease: RunLease, batch: Batch) -> None:
        """RunLost if the epoch is not the current one. A batch that was written already is
        left alone; the lease is renewed, or given back if the batch says so."""
        ...

    def past(self, number: int) -> Past:
        """What the store knows of tasks that the pool has forgotten; asked without waiting."""
        ...

    # operators
    async def post_command(self, command: NewCommand) -> int:
        """Its number. NotRunning if no scheduler holds the run."""
        ...

    async def command(self, number: int) -> CommandView: ...
    async def commands(self, run: int, count: int = 100) -> list[CommandView]:
        """Newest first."""
        ...

    # looking
    async def submissions(
        self, run: int, *, point: str | None = None, name: str | None = None, count: int = 1000
    ) -> list[SubmissionView]: ...  # newest first
    async def run_attempts(self, run: int, count: int) -> list[RunAttempt]: ...  # newest first
    async def run_changes(
        self, run: int, after: int = 0, count: int = 100
    ) -> list[ChangesView]: ...

    async def forgotten(self, run: int, count: int = 10_000) -> list[PutMemory]:
        """The last rows of tasks that the pool's memory has let go, newest points first."""
        ...


class Store(
    TaskStore,
    RunStore,
    AccessStore,
    EventStore,
    RegistryStore,
    BlockStore,
    NotebookStore,
    Protocol,
):
    """All of it: tasks, runs and who may use them, in one database."""


class Clock(Protocol):
    """Local time for waiting; never used for leases, which live on the database's clock."""

    def monotonic(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...


class JobReports(Protocol):
    """What a running job may tell its worker; may be called from any thread."""

    def started(self) -> None: ...
    def progress(self, value: float) -> None: ...
    def message(self, text: str, output: str | None = None) -> None: ...
    def usage(self, sample: UsageSample) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """An attempt as a runner sees it."""

    task: Claimed
    worker: WorkerId
    directory: Path  # of this attempt alone: job, job.out, job.err, job.status
    secret: str  # lets the job speak for this attempt and nothing else
    store: str = ""  # the beginning of its id: whose task it is, where several share an engine
    environment: dict[str, str] = field(default_factory=dict)


class Job(Protocol):
    """A started attempt."""

    async def wait(self) -> End:
        """How it ended; a job's own failure is an answer, not an exception."""
        ...

    async def stop(self, grace_seconds: float) -> None:
        """Ask it to end, then after the grace make the whole process tree end."""
        ...


class Runner(Protocol):
    """How an attempt becomes a job."""

    def accepts(self, task: Claimed) -> bool: ...
    async def start(self, assignment: Assignment, reports: JobReports) -> Job:
        """RunnerUnable if no job at all can be started here just now."""
        ...

    async def adopt(self, assignment: Assignment, reports: JobReports) -> Job | None:
        """The job that a dead worker left in this directory; None if there is none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """Something that an attempt holds outside of this machine's processes."""

    name: str
    task_id: TaskId
    attempt: int


@runtime_checkable
class TidyRunner(Runner, Protocol):
    """A runner whose jobs live elsewhere, and do not end because their worker did."""

    async def leftovers(self, store: str) -> list[Leftover]:
        """Every attempt of a store of which something is there, its lease over or not."""
        ...

    async def remove(self, leftover: Leftover) -> None: ...


@runtime_checkable
class PromptRunner(Runner, Protocol):
    """A runner that starts a job without waiting for anything and calls back at its end.

    Such a job needs neither a coroutine of the worker that waits for it nor, unless it asks
    for one, a directory: with handlers that do little, these would be most of the work.
    """

    def start_now(
        self,
        task: Claimed,
        directory: Callable[[], Path],
        reports: JobReports,
        on_end: Callable[[End], None],
    ) -> Job: ...
