"""graphile-worker, the fastest queue here; its two sides run in node, this side only asks."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from bench.folders import NODE
from bench.queue.crew import WorkerCommand
from bench.queue.peer import Gate, Mark, PeerFailed, Place
from bench.queue.timing import time_drain, time_wakeups

SCRIPTS = Path(__file__).resolve().parent / "graphile"
ENQUEUE_BATCH = 1000
UNFINISHED = (
    "SELECT EXISTS (SELECT FROM graphile_worker.jobs)"  # a job that succeeds is deleted
)


class Client:
    """A node process that submits; one line asked, one line answered."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, *words: object) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().strip()
        if not answer:
            raise PeerFailed(f"the node client ended at {words[0]}")
        return answer


class GraphilePeer:
    """Completions are batched, by id and without fencing."""

    name = "graphile-worker"

    def __init__(self, place: Place) -> None:
        self._place = place
        self._url = ""
        self._count = 0
        os.environ["BENCH_NODE"] = str(NODE)
        os.environ["NO_LOG_SUCCESS"] = "1"  # else it logs a line per job

    def prepare(self) -> None:
        self._url = self._place.fresh_database(self.name)
        with self._client() as client:
            client.ask("migrate")

    def enqueue(self, count: int) -> float:
        self._count = count
        with self._client() as client:
            return float(client.ask("enqueue", count, ENQUEUE_BATCH))

    def drain(self, workers: int) -> float:
        with psycopg.connect(self._url, autocommit=True) as connection:

            def unfinished() -> bool:
                row = connection.execute(UNFINISHED).fetchone()
                return bool(row and row[0])

            return time_drain(self._worker(), workers, self._count, unfinished)

    def wakeups(self, samples: int) -> list[float]:
        with self._client() as client:
            return time_wakeups(self._worker(), lambda: float(client.ask("submit")), samples)

    @contextmanager
    def _client(self) -> Iterator[Client]:
        command = ["node", str(SCRIPTS / "client.mjs"), self._url]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            yield Client(process)

    def _worker(self) -> WorkerCommand:
        def command(board: Path, slot: int) -> list[str]:
            return ["node", str(SCRIPTS / "worker.mjs"), self._url, str(board), str(slot)]

        return command


def open_peer(_: str, place: Place) -> GraphilePeer:
    return GraphilePeer(place)


def work(_variant: str, _store: str, _mark: Mark, _gate: Gate) -> None:
    raise NotImplementedError("the workers of graphile-worker are node processes: worker.mjs")
