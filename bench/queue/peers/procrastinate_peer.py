"""procrastinate as its documentation advises for speed: async tasks, concurrency, batches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import procrastinate
import psycopg
import uvloop

from bench.queue.crew import WorkerCommand, python_worker
from bench.queue.peer import Gate, Mark, Place
from bench.queue.timing import Stopwatch, time_drain, time_wakeups

CONCURRENCY = 10
POOL = CONCURRENCY + 2
ENQUEUE_BATCH = 1000
UNFINISHED = "SELECT EXISTS (SELECT FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))"

App = procrastinate.App
Task = procrastinate.tasks.Task[[], Any, []]


def make_app(url: str, handler: Callable[[], None]) -> tuple[App, Task]:
    """The application with one task; async, because a sync one costs a thread hop each."""
    connector = procrastinate.PsycopgConnector(conninfo=url, min_size=POOL, max_size=POOL)
    app = App(connector=connector)

    @app.task(name="no_op")
    async def no_op() -> None:
        handler()

    return app, no_op


class ProcrastinatePeer:
    """Jobs in one table with triggers that write its events."""

    name = "procrastinate"

    def __init__(self, place: Place) -> None:
        self._place = place
        self._url = ""
        self._count = 0

    def prepare(self) -> None:
        self._url = self._place.fresh_database(self.name)
        connector = procrastinate.SyncPsycopgConnector(conninfo=self._url)
        with App(connector=connector).open() as app:
            app.schema_manager.apply_schema()

    def enqueue(self, count: int) -> float:
        self._count = count
        return uvloop.run(self._defer(count))

    def drain(self, workers: int) -> float:
        with psycopg.connect(self._url, autocommit=True) as connection:

            def unfinished() -> bool:
                row = connection.execute(UNFINISHED).fetchone()
                return bool(row and row[0])

            return time_drain(self._worker(), workers, self._count, unfinished)

    def wakeups(self, samples: int) -> list[float]:
        connector = procrastinate.SyncPsycopgConnector(conninfo=self._url)
        with App(connector=connector).open() as app:
            deferrer = app.configure_task("no_op")

            def submit() -> float:
                began_at = time.monotonic()
                deferrer.defer()
                return began_at

            return time_wakeups(self._worker(), submit, samples)

    async def _defer(self, count: int) -> float:
        app, no_op = make_app(self._url, lambda: None)
        async with app.open_async():
            with Stopwatch() as watch:
                for start in range(0, count, ENQUEUE_BATCH):
                    batch = min(ENQUEUE_BATCH, count - start)
                    await no_op.batch_defer_async(*({} for _ in range(batch)))
        return watch.seconds

    def _worker(self) -> WorkerCommand:
        return python_worker(__name__, "postgres", self._url)


def open_peer(_: str, place: Place) -> ProcrastinatePeer:
    return ProcrastinatePeer(place)


def work(_: str, store: str, mark: Mark, gate: Gate) -> None:
    app, _task = make_app(store, mark)

    async def run() -> None:
        async with app.open_async():
            await asyncio.sleep(0.2)  # the pool opens its connections in the background
            gate()
            await app.run_worker_async(
                concurrency=CONCURRENCY, install_signal_handlers=False, listen_notify=True
            )

    uvloop.run(run())
