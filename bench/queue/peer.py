"""The one shape every measured system has, so that a reader sees how each is used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bench.postgres import PostgresAddress

# Tasks in one claim, and in one report of ends: the same for tidewheel and the raw loops, and
# what the fastest peers are set to.
CLAIM_BATCH = 500
ENQUEUE_BATCH = 1000

Mark = Callable[[], None]  # the no-op handler's only act: count itself on the scoreboard
Gate = Callable[[], None]  # a worker says that it is ready, and waits for the start


class PeerFailed(Exception):
    """The system under measurement did not do the work; the report shows the reason."""


class Peer(Protocol):
    """A task queue under measurement."""

    name: str

    def prepare(self) -> None:
        """Make an empty store with the system's schema; what was there is gone."""
        ...

    def enqueue(self, count: int) -> float:
        """Enqueue no-op tasks the fastest recommended way; seconds without client start-up."""
        ...

    def drain(self, workers: int) -> float:
        """Seconds from the first handler's start to the last completion being durable."""
        ...

    def wakeups(self, samples: int) -> list[float]:
        """Seconds from the submit call to the handler's start in an idle worker process."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """Where a peer keeps its store: a database of the shared server, or a file on disk."""

    folder: Path
    postgres: PostgresAddress

    def fresh_database(self, name: str) -> str:
        """The URL of an empty database."""
        return self.postgres.fresh_database(_identifier(name))

    def settle(self, name: str) -> None:
        """Bring the store to the state that every peer starts its drain from."""
        if not self.file(name).exists():
            self.postgres.settle(_identifier(name))

    def file(self, name: str) -> Path:
        """Where a peer of this name has its SQLite file, if that is its store."""
        return self.folder / f"{_identifier(name)}.db"

    def fresh_file(self, name: str) -> Path:
        """The path of a SQLite file that does not exist yet."""
        path = self.file(name)
        for suffix in ("", "-wal", "-shm", "-journal"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        return path


def _identifier(name: str) -> str:
    return name.replace("-", "_")
