"""tidewheel itself, in the same shape as its peers: the public client, the real worker.

A worker process is ``tidewheel worker --slots N`` without its command line: the service with
its heartbeats, cancellations and reports, and on SQLite the monitor beside it.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable

import apsw
import psycopg

import tidewheel
from bench.queue.crew import WorkerCommand, python_worker
from bench.queue.peer import CLAIM_BATCH, ENQUEUE_BATCH, Gate, Mark, Place
from bench.queue.timing import Stopwatch, time_drain, time_wakeups, time_wakeups_in_loop
from tidewheel.client.embedded import worker_settings
from tidewheel.wiring.machine import spare_garbage_collector
from tidewheel.wiring.stores import open_store, opened_store
from tidewheel.wiring.workers import built_worker

QUEUE, HANDLER = "bench", "no_op"
SLOTS = 2 * CLAIM_BATCH  # a worker claims half of its slots in one call
TASK = {"queue": QUEUE, "handler": HANDLER}
UNFINISHED = "SELECT EXISTS (SELECT 1 FROM {task} WHERE status <> 'succeeded')"
EMBEDDED_SLOTS = 4  # for wake-ups one would do


class TidewheelPeer:
    """``postgres`` or ``sqlite``, fencing and history on, as they always are."""

    def __init__(self, variant: str, place: Place) -> None:
        self.name = f"tidewheel-{variant}"
        self._variant = variant
        self._place = place
        self._url = ""
        self._count = 0

    def prepare(self) -> None:
        if self._variant == "postgres":
            self._url = self._place.fresh_database(self.name)
        else:
            self._url = f"sqlite:///{self._place.fresh_file(self.name)}"
        asyncio.run(open_store(self._url).close())  # which makes the tables

    def enqueue(self, count: int) -> float:
        self._count = count
        with tidewheel.Client(self._url) as client:
            client.queues()  # connected before the clock starts
            with Stopwatch() as watch:
                for start in range(0, count, ENQUEUE_BATCH):
                    client.submit_many([TASK] * min(ENQUEUE_BATCH, count - start))
        return watch.seconds

    def drain(self, workers: int) -> float:
        return time_drain(self._worker(), workers, self._count, self._unfinished())

    def wakeups(self, samples: int) -> list[float]:
        if self._variant == "sqlite":
            return asyncio.run(self._wakeups_in_one_process(samples))
        with tidewheel.Client(self._url) as client:

            def submit() -> float:
                began_at = time.monotonic()
                client.submit(queue=QUEUE, handler=HANDLER)
                return began_at

            return time_wakeups(self._worker(), submit, samples)

    async def _wakeups_in_one_process(self, samples: int) -> list[float]:
        """P10 for SQLite: an application with a worker in its own event loop, one store."""
        starts: asyncio.Queue[float] = asyncio.Queue()
        handlers = _handlers(lambda: starts.put_nowait(time.monotonic()))
        settings = worker_settings(queues=[QUEUE], slots=EMBEDDED_SLOTS)
        async with (
            opened_store(self._url) as store,
            built_worker(self._url, store, settings, handlers=handlers) as worker,
        ):
            client = tidewheel.AsyncClient(store)

            async def submit() -> float:
                began_at = time.monotonic()
                await client.submit(queue=QUEUE, handler=HANDLER)
                return began_at

            running = asyncio.create_task(worker.run())
            seconds = await time_wakeups_in_loop(submit, starts.get, samples)
            worker.ask_stop()
            await running
        return seconds

    def _worker(self) -> WorkerCommand:
        return python_worker(__name__, self._variant, self._url)

    def _unfinished(self) -> Callable[[], bool]:
        """Asked behind the store's back, as for every peer: it costs the workers least."""
        if self._variant == "postgres":
            postgres = psycopg.connect(self._url, autocommit=True)
            question = UNFINISHED.format(task="tidewheel.task")
            return lambda: bool(postgres.execute(question.encode()).fetchall()[0][0])
        sqlite = apsw.Connection(str(self._place.file(self.name)))
        question = UNFINISHED.format(task="task")
        return lambda: bool(sqlite.execute(question).get)


def open_peer(variant: str, place: Place) -> TidewheelPeer:
    os.environ["TIDEWHEEL_HOME"] = str(place.folder / "home")  # workers inherit it
    return TidewheelPeer(variant, place)


def work(variant: str, store: str, mark: Mark, gate: Gate) -> None:
    """What ``tidewheel worker`` does after it has read its options."""
    worker = tidewheel.Worker(store, handlers=_handlers(mark), queues=[QUEUE], slots=SLOTS)
    monitors = [tidewheel.Monitor(store)] if variant == "sqlite" else []
    asyncio.run(open_store(store).close())  # modules are loaded before the start
    spare_garbage_collector()
    gate()
    asyncio.run(_run(worker, monitors))


async def _run(worker: tidewheel.Worker, beside: list[tidewheel.Monitor]) -> None:
    await asyncio.gather(worker.run(), *(monitor.run() for monitor in beside))


def _handlers(mark: Mark) -> tidewheel.Handlers:
    handlers = tidewheel.Handlers()

    @handlers.register(HANDLER)
    async def no_op(_spec: object, _job: tidewheel.JobContext) -> None:
        mark()

    return handlers
