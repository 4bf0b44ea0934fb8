"""pgqueuer with the driver and batches its own benchmark recommends: asyncpg and uvloop."""

from __future__ import annotations

import time

import asyncpg
import psycopg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from bench.queue.crew import WorkerCommand, python_worker
from bench.queue.peer import Gate, Mark, Place
from bench.queue.timing import Stopwatch, time_drain, time_wakeups

BATCH = 500
ENQUEUE_BATCH = 1000
UNFINISHED = "SELECT EXISTS (SELECT FROM pgqueuer)"  # a job leaves the table when it ends


class PgqueuerPeer:
    """Jobs in one table; completions are buffered and moved to a log table in batches."""

    name = "pgqueuer"

    def __init__(self, place: Place) -> None:
        self._place = place
        self._url = ""
        self._count = 0

    def prepare(self) -> None:
        self._url = self._place.fresh_database(self.name)

        async def install() -> None:
            queries = await _queries(self._url)
            await queries.install()

        uvloop.run(install())

    def enqueue(self, count: int) -> float:
        self._count = count
        return uvloop.run(self._enqueue(count))

    def drain(self, workers: int) -> float:
        with psycopg.connect(self._url, autocommit=True) as connection:

            def unfinished() -> bool:
                row = connection.execute(UNFINISHED).fetchone()
                return bool(row and row[0])

            return time_drain(self._worker(), workers, self._count, unfinished)

    def wakeups(self, samples: int) -> list[float]:
        loop = uvloop.new_event_loop()
        queries = loop.run_until_complete(_queries(self._url))

        def submit() -> float:
            began_at = time.monotonic()
            loop.run_until_complete(queries.enqueue("no_op", None))
            return began_at

        try:
            return time_wakeups(self._worker(), submit, samples)
        finally:
            loop.close()

    async def _enqueue(self, count: int) -> float:
        queries = await _queries(self._url)
        with Stopwatch() as watch:
            for start in range(0, count, ENQUEUE_BATCH):
                batch = min(ENQUEUE_BATCH, count - start)
                await queries.enqueue(["no_op"] * batch, [None] * batch, [0] * batch)
        return watch.seconds

    def _worker(self) -> WorkerCommand:
        return python_worker(__name__, "postgres", self._url)


def open_peer(_: str, place: Place) -> PgqueuerPeer:
    return PgqueuerPeer(place)


def work(_: str, store: str, mark: Mark, gate: Gate) -> None:
    async def run() -> None:
        queuer = PgQueuer(AsyncpgDriver(await asyncpg.connect(store)))

        @queuer.entrypoint("no_op")
        async def no_op(_job: Job) -> None:
            mark()

        gate()
        await queuer.run(batch_size=BATCH)

    uvloop.run(run())


async def _queries(url: str) -> Queries:
    return Queries(AsyncpgDriver(await asyncpg.connect(url)))
