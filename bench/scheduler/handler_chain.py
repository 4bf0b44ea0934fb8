"""``python -m bench.scheduler.handler_chain FLOW HOME``: a run whose jobs are functions.

Tasks of a definition are scripts; here each submission is given a handler that does nothing
instead, on its way into the store. All the rest is what ``tidewheel run`` does: scheduler,
queue, worker and reports in one process, durable.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import tidewheel
from bench.scheduler.marks import marks_of_store
from bench.scheduler.one_process import create_run, store_address, store_in
from tidewheel.client.embedded import worker_settings
from tidewheel.core.operator.requests import RunBatch, RunLease
from tidewheel.core.queue.task import NewTask
from tidewheel.store.store import DatabaseStore
from tidewheel.wiring.machine import spare_garbage_collector
from tidewheel.wiring.services import driving
from tidewheel.wiring.workers import built_worker

HANDLER = "no_op"
SLOTS = 4
WriteBatch = Callable[[Any, RunLease, RunBatch], Awaitable[None]]


def give_handler(task: NewTask) -> None:
    """Makes its handler the task's, in its place: a copy would count as tidewheel's time."""
    object.__setattr__(task, "command", None)
    object.__setattr__(task, "handler", HANDLER)


def writing_handlers(write_batch: WriteBatch) -> WriteBatch:
    """The same, with functions in place of scripts."""

    async def write(store: Any, lease: RunLease, batch: RunBatch) -> None:
        for task in batch.submissions:
            give_handler(task)
        await write_batch(store, lease, batch)

    return write


async def run(flow: Path, home: Path) -> str:
    """Drive it to its end; its status then."""
    handlers = tidewheel.Handlers()

    @handlers.register(HANDLER)
    async def no_op(_spec: object, _job: tidewheel.JobContext) -> None:
        pass

    address = store_address(home)
    async with store_in(home) as store:
        view = await create_run(store, flow, "live")
        settings = worker_settings(queues=[view.queue], slots=SLOTS, home=home)
        async with (
            driving(address, store, view, home) as driver,
            built_worker(address, store, settings, handlers=handlers) as worker,
        ):
            working = asyncio.create_task(worker.run())
            await driver.run()
            worker.ask_stop()
            await working
    return driver.status


def use_handlers() -> None:
    """Every submission of this process has the handler from now on."""
    operations: Any = DatabaseStore
    operations.write_batch = writing_handlers(operations.write_batch)


def main() -> None:
    flow, home = map(Path, sys.argv[1:])
    use_handlers()
    marks = marks_of_store()
    spare_garbage_collector()
    status = asyncio.run(run(flow, home))
    if status != "completed":
        raise SystemExit(f"the run is {status!r}")
    sys.stdout.write(json.dumps(marks.figures()))


if __name__ == "__main__":
    main()
