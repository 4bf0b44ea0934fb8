"""huey on SQLite, with WAL and fsync; it promises at most once, which is less than we do."""

from __future__ import annotations

import time

from huey import SqliteHuey
from huey.api import TaskWrapper

from bench.queue.crew import WorkerCommand, python_worker
from bench.queue.peer import Gate, Mark, Place
from bench.queue.timing import Stopwatch, time_drain, time_wakeups

POLL_SECONDS = 0.001


def make_huey(path: str, handler: Mark) -> tuple[SqliteHuey, TaskWrapper]:
    """The queue with one task; ``results=False`` saves it the result table."""
    huey = SqliteHuey("bench", filename=path, fsync=True, journal_mode="wal", results=False)

    @huey.task(name="no_op")
    def no_op() -> None:
        handler()

    return huey, no_op


class HueyPeer:
    """A task is deleted when it is taken: one write less a task, and a crash loses it."""

    name = "huey-sqlite"

    def __init__(self, place: Place) -> None:
        self._place = place
        self._path = ""
        self._count = 0

    def prepare(self) -> None:
        self._path = str(self._place.fresh_file(self.name))
        make_huey(self._path, _nothing)

    def enqueue(self, count: int) -> float:
        self._count = count
        huey, no_op = make_huey(self._path, _nothing)
        with Stopwatch() as watch:
            for _ in range(count):  # its API has no bulk enqueue
                huey.enqueue(no_op.s())
        return watch.seconds

    def drain(self, workers: int) -> float:
        huey, _ = make_huey(self._path, _nothing)
        return time_drain(
            self._worker(), workers, self._count, lambda: huey.pending_count() > 0
        )

    def wakeups(self, samples: int) -> list[float]:
        huey, no_op = make_huey(self._path, _nothing)

        def submit() -> float:
            began_at = time.monotonic()
            huey.enqueue(no_op.s())
            return began_at

        return time_wakeups(self._worker(), submit, samples)

    def _worker(self) -> WorkerCommand:
        return python_worker(__name__, "sqlite", self._path)


def open_peer(_: str, place: Place) -> HueyPeer:
    return HueyPeer(place)


def work(_: str, store: str, mark: Mark, gate: Gate) -> None:
    """One thread a process: more only contend for SQLite's write lock."""
    huey, _task = make_huey(store, mark)
    consumer = huey.create_consumer(
        workers=1,
        periodic=False,
        initial_delay=POLL_SECONDS,
        max_delay=POLL_SECONDS,
        backoff=1.0,
        check_worker_health=False,
    )
    gate()
    consumer.run()


def _nothing() -> None:
    pass
