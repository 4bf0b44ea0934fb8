"""The store's port as tests speak to it: without `await`, with a word for each common step."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.requests import (
    Beat,
    Claimed,
    ClaimRequest,
    End,
    Ending,
    HostProcess,
    JobMessage,
    KeysetPage,
    NewWorker,
    Report,
    TaskFilter,
)
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.task import Need, NewTask, TaskError, TaskId
from tidewheel.errors import NotFound
from tidewheel.ports.store import Store

BROKEN = TaskError(code="exit", args='{"status": 3}', description="it exited with 3")
PROCESS = HostProcess(host="tern", boot_id="boot-1", pid=4711, started=1234.0)
NEVER_OUT = 1e9  # a monitor that has been connected for ever


def new_task(task_id: str, **fields: Any) -> NewTask:
    """A task of queue `q` that executes something, unless told otherwise."""
    needs = tuple(
        need if isinstance(need, Need) else Need(task_id=need)
        for need in fields.pop("needs", ())
    )
    defaults: dict[str, Any] = {"queue": "q", "spec": "{}"}
    return NewTask(id=task_id, needs=needs, **(defaults | fields))


def messages(*texts: str, first: int = 1, output: str | None = None) -> tuple[JobMessage, ...]:
    """Numbered messages; each names the same output, if any."""
    return tuple(
        JobMessage(number=number, text=text, output=output)
        for number, text in enumerate(texts, start=first)
    )


@dataclass(frozen=True, slots=True)
class Held:
    """A lease in the hand of a worker."""

    task: Claimed
    worker: str

    @property
    def id(self) -> str:
        return self.task.id

    @property
    def holder(self) -> Holder:
        return Holder(task_id=self.task.id, attempt=self.task.attempt, worker=self.worker)

    def by(self, worker: str) -> Held:
        """The same attempt in another's mouth."""
        return replace(self, worker=worker)

    def rename(self, task_id: str, worker: str, attempt: int) -> Held:
        """A claim to hold something else altogether."""
        return Held(replace(self.task, id=TaskId(task_id), attempt=attempt), worker)

    def again(self, attempt: int) -> Held:
        """The same worker speaking of another attempt."""
        return replace(self, task=replace(self.task, attempt=attempt))


class Door:
    """One process's way into a store; every operation of the port is a plain call.

    What is not said here is passed on to the store as it is.
    """

    def __init__(self, opening: Callable[[], Coroutine[Any, Any, Store]]) -> None:
        self._runner = asyncio.Runner()
        self.store = self._runner.run(opening())

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self.store, name)

        def call(*arguments: Any, **options: Any) -> Any:
            answer = operation(*arguments, **options)
            return self._runner.run(answer) if inspect.iscoroutine(answer) else answer

        return call

    def in_loop(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run what has to run in the loop of this process."""
        return self._runner.run(coroutine)

    def leave(self) -> None:
        """Let go of the store."""
        self._runner.run(self.store.close())
        self._runner.close()

    # ---- clients ----

    def put(self, *task_ids: str, **fields: Any) -> None:
        """Submit tasks that differ in their ids only."""
        self.submit([new_task(task_id, **fields) for task_id in task_ids])

    def submit_chain(self, first: str, *task_ids: str, **fields: Any) -> None:
        """Each needs the one before; the first is stored already."""
        for before, task_id in pairwise((first, *task_ids)):
            self.put(task_id, needs=[before], **fields)

    def cancel_one(self, task_id: str) -> Any:
        return self.cancel([task_id])[0]

    # ---- workers ----

    def hire(self, name: str = "w", **fields: Any) -> str:
        """Register a worker."""
        offered: dict[str, Any] = {
            "process": PROCESS,
            "queues": ("q",),
            "slots": 100,
            "capacity": Resources(cpu=8),
        }
        return self.register_worker(NewWorker(name=name, **(offered | fields)))

    def take(self, count: int = 1, worker: str | None = None, **fields: Any) -> list[Held]:
        """Claim whatever comes first."""
        worker = worker or self.hire()
        wanted: dict[str, Any] = {"queue": "q", "worker": worker, "count": count}
        claimed = self.claim(ClaimRequest(**(wanted | fields)))
        return [Held(task, worker) for task in claimed]

    def taken(self, count: int = 1, **fields: Any) -> list[str]:
        """The ids of what a claim gives."""
        return [held.id for held in self.take(count, **fields)]

    def hold(self, task_id: str, worker: str | None = None, **fields: Any) -> Held:
        """Claim one task by its id."""
        worker = worker or self.hire()
        return Held(self.claim_by_id(task_id, worker, **fields), worker)

    def beat(self, held: Held, progress: float | None = None) -> Any:
        """One heartbeat, and its answer."""
        beat = Beat(task_id=held.id, attempt=held.task.attempt, progress=progress)
        return self.heartbeat(held.worker, [beat])[0]

    def tell(self, held: Held, **fields: Any) -> Any:
        """One report: the status it leads to; a refusal is raised."""
        reported = self.report([Report(holder=held.holder, **fields)])[0]
        if reported.refused is not None:
            assert reported.status is None
            raise reported.refused
        return reported.status

    def finish(self, held: Held, ending: str = "succeeded", **fields: Any) -> Any:
        """Report the end of an attempt."""
        if ending in ("failed", "aborted"):
            fields = {"error": BROKEN} | fields
        frees = held.task.queue if held.task.limited else None
        return self.tell(held, end=End(ending=Ending(ending), **fields), frees=frees)

    def run_through(self, *task_ids: str, ending: str = "succeeded") -> None:
        """Let tasks be claimed and end, one after the other."""
        for task_id in task_ids:
            self.finish(self.hold(task_id), ending)

    # ---- monitors ----

    def lapse(self, count_max: int = 1000, watched_seconds: float = NEVER_OUT) -> Any:
        """One pass of a monitor."""
        return self.take_back_lapsed_leases(
            watched_seconds=watched_seconds, count_max=count_max
        )

    def delete(self, task_ids: Iterable[str]) -> Any:
        """What retention does with tasks that it has just seen; how many it removed."""
        seqs = []
        for task_id in task_ids:
            with suppress(NotFound):
                seqs.append(self.get(task_id).seq)
        return self.delete_tasks(seqs)

    # ---- looking ----

    def status(self, task_id: str) -> str:
        return str(self.get(task_id).status.value)

    def statuses(self, *task_ids: str) -> list[str]:
        return [self.status(task_id) for task_id in task_ids]

    def signals(self, task_id: str) -> list[str | None]:
        """What happened to a task; None is its creation."""
        entries = self.history(task_id, count=10_000)
        return [entry.signal and entry.signal.value for entry in entries]

    def listed(self, count: int = 10_000, **fields: Any) -> list[str]:
        """The ids that a filter finds, newest first."""
        return [
            view.id for view in self.list_tasks(TaskFilter(**fields), KeysetPage(count=count))
        ]

    def everything(self) -> dict[str, Any]:
        """All there is to see, to compare it with what is there later."""
        tasks = self.list_tasks(TaskFilter(), KeysetPage(count=10_000))
        looks = (self.history, self.attempts, self.outputs, self.usage, self.edges)
        return {
            "tasks": tasks,
            "details": {task.id: [look(task.id) for look in looks] for task in tasks},
            "values": self.values_of([task.id for task in tasks]),
            "queues": self.queues(),
            "workers": self.workers(live_only=False),
        }
