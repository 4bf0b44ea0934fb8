"""Leases tasks for an application that executes them by itself, and reports on them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import field

from tidewheel.api.tasks import decoded
from tidewheel.client.connection import Connection
from tidewheel.client.fields import QUEUE_DEFAULT
from tidewheel.core.queue import requests
from tidewheel.core.queue.lease import Holder, LeaseAnswer
from tidewheel.core.queue.requests import End, Ending
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.status import LEASED, Status
from tidewheel.core.queue.task import Instant, TaskError, TaskId, WorkerId
from tidewheel.errors import BadSetting
from tidewheel.exact_json import encode
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.wiring.machine import this_process

ErrorGiven = TaskError | Mapping[str, object] | str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasedTask:
    """Holds a task that this client has leased and may execute until the deadline. Each
    method that reports on the task takes this object."""

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
        """Returns the task id, attempt and worker that a report names to show who holds the
        lease."""
        return Holder(task_id=self.id, attempt=self.attempt, worker=self.worker)

    @classmethod
    def of(cls, claimed: requests.Claimed, worker: WorkerId) -> LeasedTask:
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
    """Counts the messages of an attempt that the store has; its lock lets one be sent at a
    time."""

    __slots__ = ("count", "turn")

    def __init__(self) -> None:
        self.count = 0
        self.turn = asyncio.Lock()


class LeaseApi(Connection):
    """Holds the methods with which a client leases tasks and reports on them, as a worker does.

    A report for a lease that was lost raises LeaseLost or WrongStatus.
    """

    _worker: WorkerId | None = None

    async def register_worker(
        self,
        name: str | None = None,
        queues: Sequence[str] = (QUEUE_DEFAULT,),
        slots: int = 1,
        capacity: Resources | None = None,
    ) -> WorkerId:
        """Registers this client as a worker and returns the worker's id; from now on the client
        leases tasks as this worker."""
        self._worker = await self.store.register_worker(
            requests.NewWorker(
                name=name or sys.argv[0].rpartition("/")[2] or "application",
                process=this_process(),
                queues=tuple(queues),
                slots=slots,
                capacity=capacity or Resources(),
            )
        )
        return self._worker

    async def sign_off(self) -> None:
        """Signs this client off as a worker; its leases end at their deadlines."""
        worker, self._worker = self._worker, None
        if worker is not None:
            await self.store.stop_worker(worker)

    async def lease(
        self,
        queue: str = QUEUE_DEFAULT,
        n: int = 1,
        lease_seconds: float | None = None,
        *,
        worker: str | None = None,
    ) -> list[LeasedTask]:
        """Leases up to ``n`` ready tasks of a queue, the oldest of the highest priority first.

        The list is empty if no task is ready. ``worker`` is the id of the worker that leases.
        Without it the client leases for itself, and registers as a worker before its first
        lease.
        """
        owner = await self._own_id(worker)
        request = requests.ClaimRequest(
            queue=queue, worker=owner, count=n, lease_seconds=lease_seconds
        )
        return [LeasedTask.of(one, owner) for one in await self.store.claim(request)]

    async def lease_by_id(
        self, task_id: str, lease_seconds: float | None = None, *, worker: str | None = None
    ) -> LeasedTask:
        """Leases the task with this id; raises WrongStatus unless it is ready."""
        owner = await self._own_id(worker)
        claimed = await self.store.claim_by_id(TaskId(task_id), owner, lease_seconds)
        return LeasedTask.of(claimed, owner)

    async def _own_id(self, worker: str | None) -> WorkerId:
        if worker is not None:
            return WorkerId(worker)
        return self._worker or await self.register_worker()

    async def heartbeat(self, task: LeasedTask, progress: float | None = None) -> None:
        """Extends the lease, and stores the progress if it is given.

        Raises WrongStatus, with the status, if the task was cancelled or has ended, and
        LeaseLost if this worker no longer holds the lease of the task.
        """
        beat = requests.Beat(task_id=task.id, attempt=task.attempt, progress=progress)
        [answer] = await self.store.heartbeat(task.worker, [beat])
        if answer is not LeaseAnswer.GO_ON:
            view = await self.store.get(task.id)
            raise view.report_refused(task.worker, task.attempt, "heartbeat")

    async def cancel_requested(self, task: LeasedTask) -> bool:
        """Says whether the task was cancelled, so that its work should stop.

        Raises LeaseLost if this worker no longer holds the lease of the task, and WrongStatus
        if the task has ended.
        """
        view = await self.store.get(task.id)
        is_holder = (view.owner, view.attempt) == (task.worker, task.attempt)
        if view.status not in LEASED or not is_holder:
            raise view.report_refused(task.worker, task.attempt, "a report")
        return view.status is Status.CANCELLING

    async def started(self, task: LeasedTask) -> None:
        """Reports that the work has begun."""
        await self._report(requests.Report(holder=task.holder, started=True))

    async def message(
        self,
        task: LeasedTask,
        text: str,
        output: str | None = None,
        *,
        values: Mapping[str, object] | None = None,
    ) -> None:
        """Stores a message of the task. If the message announces an output, ``output`` is the
        name of the output, and ``values`` are passed to the tasks that wait for it.

        If the store did not answer, call this again with the same arguments: the message is
        stored once.
        """
        async with task.said.turn:
            told = None if values is None else _json("values", values)
            number = task.said.count + 1
            said = requests.JobMessage(number=number, text=text, output=output, values=told)
            await self._report(requests.Report(holder=task.holder, messages=(said,)))
            task.said.count += 1

    async def report_usage(self, task: LeasedTask, *samples: requests.UsageSample) -> None:
        """Stores samples of what the task uses; ``usage`` returns all that were stored."""
        await self._report(requests.Report(holder=task.holder, usage=samples))

    async def complete(
        self,
        task: LeasedTask,
        metrics: object = None,
        *,
        values: Mapping[str, object] | None = None,
    ) -> Status:
        """Reports a success. Returns the new status: succeeded, or cancelled if the task was
        cancelled before.

        ``values`` are passed to later tasks. Raises BadValues if they have more than 64 KiB of
        JSON.
        """
        end = End(
            ending=Ending.SUCCEEDED,
            metrics=None if metrics is None else _json("metrics", metrics),
            values=None if values is None else _json("values", values),
        )
        return await self._end(task, end)

    async def fail(self, task: LeasedTask, error: ErrorGiven) -> Status:
        """Reports a failure; the task is tried again while retries are left.

        Returns the new status: ready if the task is tried again, failed if not, or cancelled
        if the task was cancelled before.
        """
        return await self._end(task, End(ending=Ending.FAILED, error=_error(error)))

    async def abort(self, task: LeasedTask, error: ErrorGiven) -> Status:
        """Reports a failure after which the task must not be tried again; returns the new
        status."""
        return await self._end(task, End(ending=Ending.ABORTED, error=_error(error)))

    async def yield_(self, task: LeasedTask) -> Status:
        """Gives the lease back: another worker may take the task at once. Returns the new
        status."""
        return await self._end(task, End(ending=Ending.YIELDED))

    async def _end(self, task: LeasedTask, end: End) -> Status:
        frees = task.queue if task.limited else None
        return await self._report(requests.Report(holder=task.holder, end=end, frees=frees))

    async def _report(self, report: requests.Report) -> Status:
        [answer] = await self.store.report([report])
        if answer.refused is not None:
            raise answer.refused
        assert answer.status is not None
        return answer.status


def _error(given: ErrorGiven) -> TaskError:
    """Returns the caller's error as a TaskError; raises BadSetting if it says nothing.

    A text must not be blank, and an object needs a code or a description, because an abort
    needs an error (002).
    """
    match given:
        case TaskError():
            return given
        case str() if given.strip():
            return TaskError(code="error", description=given)
        case Mapping() if given.get("code") or given.get("description"):
            return TaskError(
                code=str(given.get("code") or "error"),
                description=str(given.get("description") or ""),
                args=_json("error args", given.get("args") or {}),
            )
        case _:
            accepted = "a text, or an object with code, args and description"
            raise BadSetting("error", given, accepted)


def _json(what: str, value: object) -> str:
    try:
        return encode(value)
    except ValueError as error:
        raise BadSetting(what, value, f"a value that JSON can express ({error})") from None
