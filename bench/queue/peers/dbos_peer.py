"""DBOS on PostgreSQL and SQLite: a durable workflow per task, through its queue."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import sqlalchemy
from dbos import DBOS, DBOSClient, DBOSConfig, EnqueueOptions

from bench.queue.crew import WorkerCommand, python_worker
from bench.queue.peer import Gate, Mark, Place
from bench.queue.timing import Stopwatch, time_drain, time_wakeups

APPLICATION = "bench"
VERSION = "1"  # the same for all processes, or they would not take each other's workflows
QUEUE = "bench"
WORKER_CONCURRENCY = 500
POLL_SECONDS = 0.01
ENQUEUE_BATCH = 1000
OPTIONS: EnqueueOptions = {
    "queue_name": QUEUE,
    "workflow_name": "no_op",
    "app_version": VERSION,
}
TABLES = {"postgres": "dbos.workflow_status", "sqlite": "workflow_status"}


class DbosPeer:
    """The same code for both stores; only the URL differs."""

    def __init__(self, variant: str, place: Place) -> None:
        self.name = f"dbos-{variant}"
        self._variant = variant
        self._place = place
        self._url = ""
        self._count = 0

    def prepare(self) -> None:
        self._url = self._fresh_url()
        launch(self._url, "prepare", lambda: None)
        DBOS.destroy(destroy_registry=True)

    def enqueue(self, count: int) -> float:
        self._count = count
        client = DBOSClient(system_database_url=self._url, application_name=APPLICATION)
        engine = sqlalchemy.create_engine(self._url)
        if self._variant == "postgres":
            engine = engine.execution_options(schema_translate_map={None: "dbos"})
        with Stopwatch() as watch:
            for start in range(0, count, ENQUEUE_BATCH):
                with engine.begin() as connection:
                    for _ in range(min(ENQUEUE_BATCH, count - start)):
                        client.enqueue_in_transaction(connection, OPTIONS)
        client.destroy()
        engine.dispose()
        return watch.seconds

    def drain(self, workers: int) -> float:
        engine = sqlalchemy.create_engine(self._url)
        table = TABLES[self._variant]
        question = f"SELECT EXISTS (SELECT 1 FROM {table} WHERE status <> 'SUCCESS')"

        def unfinished() -> bool:
            with engine.connect() as connection:
                return bool(connection.execute(sqlalchemy.text(question)).scalar())

        try:
            return time_drain(self._worker(), workers, self._count, unfinished)
        finally:
            engine.dispose()

    def wakeups(self, samples: int) -> list[float]:
        client = DBOSClient(system_database_url=self._url, application_name=APPLICATION)

        def submit() -> float:
            began_at = time.monotonic()
            client.enqueue(OPTIONS)
            return began_at

        try:
            return time_wakeups(self._worker(), submit, samples)
        finally:
            client.destroy()

    def _fresh_url(self) -> str:
        if self._variant == "sqlite":
            return f"sqlite:///{self._place.fresh_file(self.name)}"
        url = self._place.fresh_database(self.name)
        return url.replace("postgresql://", "postgresql+psycopg://", 1)

    def _worker(self) -> WorkerCommand:
        return python_worker(__name__, self._variant, self._url)


def open_peer(variant: str, place: Place) -> DbosPeer:
    return DbosPeer(variant, place)


def work(_: str, store: str, mark: Mark, gate: Gate) -> None:
    """DBOS consumes from its launch on, so the gate stands before the launch."""
    gate()
    launch(store, f"worker-{os.getpid()}", mark)
    threading.Event().wait()


def launch(url: str, executor: str, handler: Callable[[], None]) -> None:
    """Start DBOS in this process, with the workflow and its queue registered."""
    config: DBOSConfig = {
        "name": APPLICATION,
        "system_database_url": url,
        "application_version": VERSION,
        "executor_id": executor,
        "log_level": "ERROR",
    }
    DBOS(config=config)

    @DBOS.workflow(name="no_op")
    def no_op(*_: Any) -> None:
        handler()

    DBOS.launch()
    DBOS.register_queue(
        QUEUE, worker_concurrency=WORKER_CONCURRENCY, polling_interval_sec=POLL_SECONDS
    )
