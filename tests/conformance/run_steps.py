"""Words for what schedulers, workers and operators do with runs in these tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.conformance.door import PROCESS, Door, Held
from tidewheel.core.cycling.calendar import Point
from tidewheel.core.operator.definition import NewRun, StoredDefinition
from tidewheel.core.operator.requests import RunBatch, RunClaim, RunLease
from tidewheel.core.queue.requests import HostProcess
from tidewheel.core.queue.task import Instant, NewTask, TaskId
from tidewheel.core.sched.persistence import DropTask, PooledTaskRow, PutMemory, PutTask
from tidewheel.core.sched.task_state import FIRST_FLOW, Flows, JobPhase

OTHER_PROCESS = HostProcess(host="teal", boot_id="boot-9", pid=12, started=99.0)


def make_run(store: Door, workflow: str = "wf", **fields: Any) -> Any:
    """A run of a definition that is stored for it."""
    digest = fields.setdefault("definition", f"digest of {workflow}")
    store.save_definition(StoredDefinition(digest=digest, workflow=workflow, text="graph"))
    return store.create_run(NewRun(workflow=workflow, **fields))


def claim_run(store: Door, run: Any, **fields: Any) -> Any:
    """Drive a run."""
    return store.claim_run(RunClaim(run=run.number, **({"process": PROCESS} | fields)))


@dataclass
class Driver:
    """A scheduler without a mind of its own: it writes one batch after the other."""

    store: Door
    run: Any
    lease: RunLease

    @classmethod
    def of(cls, store: Door, workflow: str = "wf", **fields: Any) -> Driver:
        run = make_run(store, workflow, **fields)
        return cls(store, run, claim_run(store, run))

    def batch(self, **fields: Any) -> RunBatch:
        """The next one."""
        given: dict[str, Any] = {"at": Instant(0.0), "status": "running"} | fields
        return RunBatch(number=self.lease.batch + 1, **given)

    def write(self, **fields: Any) -> None:
        batch = self.batch(**fields)
        self.store.write_batch(self.lease, batch)
        self.lease = replace(self.lease, batch=batch.number)

    def task(self, node: str, submit: int = 1, point: str = "1", **fields: Any) -> NewTask:
        """A submission."""
        task_id = TaskId(f"{self.run.name}/{point}/{node}/{submit}")
        given = {"queue": self.run.queue, "command": "true"} | fields
        return NewTask(id=task_id, run=self.run.number, **given)

    def submit(self, *names: str, **fields: Any) -> list[str]:
        """Tasks of point 1 that are active in the pool; their ids."""
        tasks = [self.task(name, **fields) for name in names]
        self.write(submissions=tasks, changes=[c for name in names for c in active(name)])
        return [task.id for task in tasks]

    def over(self, *names: str, **fields: Any) -> None:
        """They leave the pool."""
        self.write(changes=[DropTask((Point(1), name)) for name in names], **fields)

    def take(self, count: int = 1, **fields: Any) -> list[Held]:
        return self.store.take(count, queue=self.run.queue, **fields)

    def inbox(self, count_max: int = 1000) -> list[Any]:
        return list(self.store.read_inbox(self.run.number, count_max).happenings)

    def said(self) -> list[tuple[Any, ...]]:
        """What happened, in short, and dealt with."""
        happenings = self.inbox()
        self.write(consumed=[one.seq for one in happenings])
        return [(type(one).__name__, *one[2:]) for one in happenings]

    def changes(self) -> Sequence[Any]:
        return list(self.store.read_run(self.run.number).changes)


def task_row(name: str, point: int = 1, **fields: Any) -> PooledTaskRow:
    """A task that waits in the pool."""
    plain = PooledTaskRow(Point(point), name, FIRST_FLOW, missing=True)
    return plain._replace(**fields)


def memory(
    name: str, point: int = 1, submits: int = 0, spawned: Flows = FIRST_FLOW
) -> PutMemory:
    return PutMemory((Point(point), name), spawned, (), (), submits)


def active(name: str, point: int = 1, submit: int = 1) -> list[PutTask | PutMemory]:
    """A task whose submission is in the queue."""
    return [
        PutTask(task_row(name, point, stage=JobPhase.PREPARING, submit=submit)),
        memory(name, point, submit),
    ]
