"""A program that does one thing with a run, to be killed at a failpoint.

`python run_program.py OPERATION`: run 1 is driven under epoch 1, run 2 by nobody.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.operator.definition import NewRun, StoredDefinition
from tidewheel.core.operator.requests import NewCommand, RunBatch, RunClaim, RunLease, RunTimer
from tidewheel.core.queue.requests import HostProcess
from tidewheel.core.queue.task import Instant, NewTask, TaskId
from tidewheel.core.sched.persistence import PutMemory
from tidewheel.core.sched.task_state import FIRST_FLOW
from tidewheel.ports.store import Store
from tidewheel.wiring.stores import open_store

PROCESS = HostProcess(host="tern", boot_id="boot", pid=1, started=2.0)
LEASE = RunLease(run=1, epoch=1, batch=0, lease_seconds=1_000.0)
DEFINITION = StoredDefinition(digest="new", workflow="wf", text="graph")


def batch() -> RunBatch:
    return RunBatch(
        number=1,
        at=Instant(0.0),
        status="running",
        changes=[PutMemory((Point(1), "a"), FIRST_FLOW, (), (), 1)],
        submissions=[
            NewTask(id=TaskId("wf/run1/1/a/1"), run=1, queue="run:wf/run1", command="true")
        ],
        timers=[RunTimer(Point(1), "a", "retry", Instant(1.0))],
    )


OPERATIONS: dict[str, Callable[[Store], Coroutine[object, object, object]]] = {
    "save_definition": lambda store: store.save_definition(DEFINITION),
    "create_run": lambda store: store.create_run(NewRun(workflow="wf", definition="d")),
    "claim_run": lambda store: store.claim_run(RunClaim(run=2, process=PROCESS)),
    "scheduler_lease_renew": lambda store: store.renew_run(LEASE),
    "write_batch": lambda store: store.write_batch(LEASE, batch()),
    "post_command": lambda store: store.post_command(
        NewCommand(run=1, body='{"verb": "pause"}', who="me")
    ),
    "delete_run": lambda store: store.delete_run(2),
    "delete_definitions": lambda store: store.delete_definitions(0.0, 10),
}


async def main(operation: str) -> None:
    store = open_store()
    await OPERATIONS[operation](store)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
