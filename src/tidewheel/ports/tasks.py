"""Holds the Protocol of the store of tasks.

``TaskStore`` is the one way to a store; memory, SQLite and PostgreSQL stand behind it and
pass one conformance suite.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from tidewheel.api import tasks as things
from tidewheel.core.queue import requests
from tidewheel.core.queue.lease import Holder, LeaseAnswer
from tidewheel.core.queue.status import Signal
from tidewheel.core.queue.task import Instant, NewTask, TaskId, WorkerId

if TYPE_CHECKING:
    # Only workflows and servers need them, and loading them takes as long as all of the queue.
    from tidewheel.core.queue.statistics import EndedAttempt


class TaskStore(Protocol):
    """Holds tasks, queues and workers.

    Every operation is one transaction: it happens as a whole, or not at all.
    """

    # clients
    async def submit(
        self, tasks: Sequence[NewTask], *, atomic: bool = True
    ) -> list[requests.Submitted]:
        """Stores tasks; atomic raises the first refusal, else each is answered by itself."""

    async def arm(self, task_id: TaskId) -> things.Task: ...
    async def amend(self, task_id: TaskId, amendment: requests.Amendment) -> things.Task: ...
    async def cancel(self, task_ids: Sequence[TaskId]) -> list[requests.Cancelled]: ...
    async def cancel_matching(
        self, which: requests.TaskFilter, count_max: int = 1000
    ) -> list[requests.Cancelled]: ...
    async def add_edges(self, edges: Sequence[tuple[TaskId, TaskId]]) -> None: ...
    async def remove_edges(self, edges: Sequence[tuple[TaskId, TaskId]]) -> None: ...
    async def configure_queue(self, queue: str, settings: requests.QueueSettings) -> None: ...
    async def pause_queue(self, queue: str, *, paused: bool) -> None: ...

    # workers
    async def register_worker(self, worker: requests.NewWorker) -> WorkerId: ...
    async def stop_worker(self, worker: WorkerId) -> None: ...
    async def set_trouble(self, worker: WorkerId, trouble: str | None) -> None:
        """Lets people know why a worker takes no tasks just now; None: it does again."""

    async def claim(self, request: requests.ClaimRequest) -> requests.ClaimedTasks: ...
    async def claim_by_id(
        self, task_id: TaskId, worker: WorkerId, lease_seconds: float | None = None
    ) -> requests.Claimed: ...
    async def heartbeat(
        self, worker: WorkerId, beats: Sequence[requests.Beat]
    ) -> list[LeaseAnswer]:
        """Extends leases in bulk; one answer per beat, in order."""

    async def report(self, reports: Sequence[requests.Report]) -> list[requests.Reported]:
        """Applies reports in bulk; one answer each, in order; one refusal stops no other."""

    async def cancelling(self, worker: WorkerId) -> list[tuple[TaskId, int]]:
        """Returns the leases of this worker that were asked to cancel, as (id, attempt)."""

    async def orphans(self, host: str, boot_id: str) -> list[requests.HeldLease]: ...
    async def adopt(self, holder: Holder, new_owner: WorkerId) -> requests.Claimed: ...

    # monitors
    async def take_back_lapsed_leases(
        self, *, watched_seconds: float, count_max: int
    ) -> list[tuple[TaskId, Signal]]:
        """Ends leases that ran out, or whose task ran too long; never one whose length is more
        than ``watched_seconds``, the time the monitor itself has been connected: after an
        outage of the database every worker gets a full lease to be heard again."""

    async def expired_tasks(
        self, retention_seconds: float, count_max: int
    ) -> list[things.Task]:
        """Returns final tasks older than the retention that nothing live depends on, oldest
        first."""

    async def delete_tasks(self, seqs: Sequence[int]) -> int:
        """Deletes final tasks with all that belongs to them; others are left alone.

        By their seqs, which are used once for ever: an id may belong to a new task by the time
        a request that was delayed or repeated is executed."""

    async def delete_workers(self, retention_seconds: float, count_max: int) -> int:
        """Deletes workers that stopped or fell silent longer ago than that and hold no
        lease."""

    # looking
    async def get(self, task_id: TaskId) -> things.Task: ...
    async def get_many(self, task_ids: Sequence[TaskId]) -> list[things.Task]:
        """Returns up to 10,000 tasks at one moment, in this order; NotFound names one that is
        not."""

    async def list_tasks(
        self, which: requests.TaskFilter, page: requests.KeysetPage
    ) -> list[things.Task]: ...
    async def peek(self, queue: str, count: int) -> list[things.Task]: ...
    async def history(
        self, task_id: TaskId, after: int = 0, count: int = 100
    ) -> list[things.HistoryEntry]: ...
    async def attempts(self, task_id: TaskId) -> list[things.AttemptView]: ...
    async def outputs(self, task_id: TaskId) -> list[things.OutputView]: ...
    async def values_of(self, task_ids: Sequence[TaskId]) -> Mapping[TaskId, str]:
        """Returns what up to 10,000 tasks that succeeded hand to those after them, as JSON
        text.

        Each is an object. Tasks that hand on nothing, or are not there, are left out."""

    async def usage(self, task_id: TaskId) -> list[things.UsageView]: ...
    async def edges(self, task_id: TaskId) -> list[things.EdgeView]: ...
    async def ended_attempts(self, count: int) -> list[EndedAttempt]:
        """Returns the newest attempts that are over, newest first, for statistics."""

    async def queues(self) -> list[things.QueueView]: ...
    async def ready_queues(self) -> Mapping[str, int]:
        """Returns the queues that hold ready tasks, each with the highest priority of these; a
        few steps for each, however many it holds."""

    async def workers(self, *, live_only: bool = True) -> list[things.WorkerView]: ...
    async def verify(self) -> list[things.Violation]: ...
    async def now(self) -> Instant: ...
    async def store_id(self) -> str: ...

    # being told
    def listen(self, listener: Callable[[requests.Wake], None]) -> Callable[[], None]:
        """Calls ``listener`` (from any thread) when something changed; the answer stops it."""

    async def close(self) -> None: ...
