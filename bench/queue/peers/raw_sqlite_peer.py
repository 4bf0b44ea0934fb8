"""The limit on SQLite: a bare batched loop in apsw, WAL, synchronous=FULL, large batches."""

from __future__ import annotations

import hashlib
import json
import select
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

import apsw

from bench.queue.crew import WorkerCommand, python_worker
from bench.queue.peer import CLAIM_BATCH, ENQUEUE_BATCH, Gate, Mark, Place
from bench.queue.peers.statements import load_statements, tidewheel_schema
from bench.queue.timing import Stopwatch, time_drain, time_wakeups

POLL_SECONDS = 0.5
BUSY_SLEEP_SECONDS = 0.0002
NAMES = {"minimal": "raw-sqlite", "rows": "raw-rows-sqlite"}

Claimed = list[tuple[int, int]]  # (seq, attempt)


class RawSqlitePeer:
    """``minimal`` flips a status; ``rows`` writes the rows that tidewheel writes."""

    def __init__(self, variant: str, place: Place) -> None:
        self.name = NAMES[variant]
        self._variant = variant
        self._place = place
        self._sql = load_statements("sqlite")
        self._file = place.file(self.name)
        self._count = 0

    def prepare(self) -> None:
        self._file = self._place.fresh_file(self.name)
        connection = connect(self._file)
        if self._variant == "rows":
            connection.execute(tidewheel_schema("sqlite"))
        else:
            connection.execute(self._sql["schema_minimal"])

    def enqueue(self, count: int) -> float:
        self._count = count
        connection = connect(self._file)
        with Stopwatch() as watch:
            for start in range(0, count, ENQUEUE_BATCH):
                self._insert(connection, min(ENQUEUE_BATCH, count - start))
        return watch.seconds

    def drain(self, workers: int) -> float:
        connection = connect(self._file)

        def unfinished() -> bool:
            return bool(connection.execute(self._sql["unfinished"]).get)

        return time_drain(self._worker(), workers, self._count, unfinished)

    def wakeups(self, samples: int) -> list[float]:
        connection = connect(self._file)
        waker = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)

        def submit() -> float:
            began_at = time.monotonic()
            self._insert(connection, 1)
            waker.sendto(b"!", doorbell(self._file))
            return began_at

        with waker:
            return time_wakeups(self._worker(), submit, samples)

    def _insert(self, connection: apsw.Connection, count: int) -> None:
        ids = json.dumps([uuid.uuid4().hex for _ in range(count)])
        with transaction(connection):
            connection.execute(self._sql[f"enqueue_{self._variant}"], {"ids": ids})

    def _worker(self) -> WorkerCommand:
        return python_worker(__name__, self._variant, str(self._file))


def open_peer(variant: str, place: Place) -> RawSqlitePeer:
    return RawSqlitePeer(variant, place)


def work(variant: str, store: str, mark: Mark, gate: Gate) -> None:
    """Finish the last batch and claim the next in one transaction: one fsync per batch."""
    sql = load_statements("sqlite")
    connection = connect(Path(store))
    bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    with suppress(OSError):  # only the first worker of a file can have the bell
        bell.bind(doorbell(Path(store)))
    gate()
    done: Claimed = []
    while True:
        claimed = _turn(connection, sql, variant, done)
        for _ in claimed:
            mark()
        if not claimed and not done and select.select([bell], [], [], POLL_SECONDS)[0]:
            bell.recv(1)
        done = claimed


def connect(path: Path) -> apsw.Connection:
    """A durable connection that, while another process writes, looks again soon."""
    connection = apsw.Connection(str(path))
    connection.set_busy_handler(_look_again_soon)
    connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
    return connection


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """One write transaction; the loops have no error to roll back for."""
    connection.execute("BEGIN IMMEDIATE")
    yield
    connection.execute("COMMIT")


def doorbell(path: Path) -> str:
    """The abstract unix socket that wakes the worker of this file; a digest is short enough."""
    return "\0bench-" + hashlib.sha256(str(path).encode()).hexdigest()


def _turn(
    connection: apsw.Connection, sql: dict[str, str], variant: str, done: Claimed
) -> Claimed:
    with transaction(connection):
        if done:
            connection.execute(sql[f"finish_{variant}"], _batch(done)).fetchall()
        wish = {"limit": CLAIM_BATCH, "owner": "raw"}
        claimed = cast(Claimed, connection.execute(sql[f"claim_{variant}"], wish).fetchall())
        if claimed and variant == "rows":
            connection.execute(sql["lease_rows"], _batch(claimed)).fetchall()
    return claimed


def _batch(tasks: Claimed) -> dict[str, str]:
    return {"batch": json.dumps(tasks), "owner": "raw"}


def _look_again_soon(_: int) -> bool:
    time.sleep(BUSY_SLEEP_SECONDS)
    return True
