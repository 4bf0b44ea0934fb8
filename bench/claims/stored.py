"""A store with many tasks in it, and how long its claims take."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

import apsw
import psycopg

from tidewheel.client.async_client import new_id
from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.requests import (
    Claimed,
    ClaimRequest,
    End,
    Ending,
    HostProcess,
    NewWorker,
    Report,
)
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.task import NewTask, TaskId, WorkerId
from tidewheel.ports.store import Store
from tidewheel.wiring.stores import open_store

QUEUE, HANDLER = "bench", "no_op"
SQL = Path(__file__).resolve().parent / "sql"
SUBMIT_BATCH = 1000


@dataclass(slots=True)
class StoredTasks:
    """One database under measurement."""

    size: int
    store: Store
    worker: WorkerId
    seconds: list[float] = field(default_factory=list)

    async def claim_once(self, count: int) -> None:
        """Time one claim; what was claimed ends, as a worker would end it."""
        wish = ClaimRequest(queue=QUEUE, worker=self.worker, count=count)
        asked_at = time.monotonic()
        claimed = await self.store.claim(wish)
        self.seconds.append(time.monotonic() - asked_at)
        assert len(claimed) == count, f"{len(claimed)} of {count} tasks"
        await self.store.report([self._success(task) for task in claimed])

    def _success(self, task: Claimed) -> Report:
        holder = Holder(task_id=task.id, attempt=task.attempt, worker=self.worker)
        return Report(holder=holder, started=True, end=End(ending=Ending.SUCCEEDED))


async def make_stored_tasks(url: str, size: int, status: str, fresh: int) -> StoredTasks:
    """``size`` tasks by plain SQL, which is quick, then ``fresh`` ready ones by the store."""
    await open_store(url).close()  # which makes its tables
    if size:
        preload(url, size, status)
    store = open_store(url)
    for start in range(0, fresh, SUBMIT_BATCH):
        count = min(SUBMIT_BATCH, fresh - start)
        tasks = [
            NewTask(id=TaskId(new_id()), queue=QUEUE, handler=HANDLER) for _ in range(count)
        ]
        await store.submit(tasks)
    worker = await store.register_worker(
        NewWorker(
            name="bench",
            process=HostProcess(host="bench", boot_id="bench", pid=1, started=0.0),
            queues=(QUEUE,),
            slots=1,
            capacity=Resources(),
        )
    )
    return StoredTasks(size, store, worker)


def preload(url: str, count: int, status: str) -> None:
    """Rows by SQL; afterwards the planner knows them, as it would after a day."""
    if url.startswith("sqlite:"):
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        with connection:
            text = (SQL / "preload_sqlite.sql").read_text()
            connection.execute(text, {"count": count, "status": status})
        connection.close()
        return
    with psycopg.connect(url, autocommit=True, cursor_factory=psycopg.ClientCursor) as postgres:
        text = (SQL / "preload_postgres.sql").read_text()
        postgres.execute(text.encode(), {"count": count, "status": status})
        postgres.execute("VACUUM ANALYZE")
        postgres.execute("CHECKPOINT")
