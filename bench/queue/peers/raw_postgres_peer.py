"""The limit on PostgreSQL: a bare SKIP LOCKED loop in psycopg 3, LISTEN, large batches."""

from __future__ import annotations

import time
import uuid

import psycopg

from bench.queue.crew import WorkerCommand, python_worker
from bench.queue.peer import CLAIM_BATCH, ENQUEUE_BATCH, Gate, Mark, Place
from bench.queue.peers.statements import load_statements, tidewheel_schema
from bench.queue.timing import Stopwatch, time_drain, time_wakeups

POLL_SECONDS = 0.5
NAMES = {"minimal": "raw-postgres", "rows": "raw-rows-postgres"}

Claimed = list[tuple[int, int]]  # (seq, attempt)


class RawPostgresPeer:
    """``minimal`` flips a status; ``rows`` writes the rows that tidewheel writes."""

    def __init__(self, variant: str, place: Place) -> None:
        self.name = NAMES[variant]
        self._variant = variant
        self._place = place
        self._sql = load_statements("postgres")
        self._url = ""
        self._count = 0

    def prepare(self) -> None:
        self._url = self._place.fresh_database(self.name)
        with self._connect() as connection:
            if self._variant == "rows":
                connection.execute(tidewheel_schema("postgres"))
            else:
                connection.execute(self._sql["schema_minimal"])

    def enqueue(self, count: int) -> float:
        self._count = count
        with self._connect() as connection, Stopwatch() as watch:
            for start in range(0, count, ENQUEUE_BATCH):
                self._insert(connection, min(ENQUEUE_BATCH, count - start))
        return watch.seconds

    def drain(self, workers: int) -> float:
        with self._connect() as connection:

            def unfinished() -> bool:
                row = connection.execute(self._sql[f"unfinished_{self._variant}"]).fetchone()
                return bool(row and row[0])

            return time_drain(self._worker(), workers, self._count, unfinished)

    def wakeups(self, samples: int) -> list[float]:
        with self._connect() as connection:

            def submit() -> float:
                began_at = time.monotonic()
                self._insert(connection, 1)
                return began_at

            return time_wakeups(self._worker(), submit, samples)

    def _insert(self, connection: psycopg.Connection, count: int) -> None:
        """Insert and wake in one commit, as a queue must that wants no polling."""
        ids = [uuid.uuid4().hex for _ in range(count)]
        with connection.transaction(), connection.pipeline():
            connection.execute(self._sql[f"enqueue_{self._variant}"], {"ids": ids})
            connection.execute("NOTIFY task")

    def _connect(self) -> psycopg.Connection:
        return connect(self._url, self._sql, self._variant)

    def _worker(self) -> WorkerCommand:
        return python_worker(__name__, self._variant, self._url)


def open_peer(variant: str, place: Place) -> RawPostgresPeer:
    return RawPostgresPeer(variant, place)


def connect(url: str, sql: dict[str, str], variant: str) -> psycopg.Connection:
    connection = psycopg.connect(url, autocommit=True)
    if variant == "rows":
        connection.execute(sql["settings_rows"])
    return connection


def work(variant: str, store: str, mark: Mark, gate: Gate) -> None:
    """Finish the last batch and claim the next in one transaction: one fsync per batch."""
    sql = load_statements("postgres")
    with connect(store, sql, variant) as connection:
        connection.execute("LISTEN task")
        gate()
        done: Claimed = []
        while True:
            claimed = _turn(connection, sql, variant, done)
            for _ in claimed:
                mark()
            if not claimed and not done:
                for _ in connection.notifies(timeout=POLL_SECONDS, stop_after=1):
                    pass
            done = claimed


def _turn(
    connection: psycopg.Connection, sql: dict[str, str], variant: str, done: Claimed
) -> Claimed:
    seqs = [seq for seq, _ in done]
    attempts = [attempt for _, attempt in done]
    with connection.transaction(), connection.pipeline():
        if done:
            ends = {"seqs": seqs, "attempts": attempts}
            connection.execute(sql[f"finish_{variant}"], ends)
        wish = {"batch": CLAIM_BATCH, "owner": "raw"}
        claim = connection.execute(sql[f"claim_{variant}"], wish)
    return claim.fetchall()
