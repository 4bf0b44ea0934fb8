"""Who is measured, on which store, and how each is set up: the fairness in one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PEERS = "bench.queue.peers"
POSTGRESQL: Store = "PostgreSQL"
SQLITE: Store = "SQLite"
SLOW_TASKS_MAX = (
    5_000  # for systems below about 2,000 tasks/s: a minute says as much as an hour
)

Store = Literal["PostgreSQL", "SQLite"]
Role = Literal["ours", "peer", "limit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the table: a system on a store."""

    name: str
    role: Role
    store: Store
    module: str
    variant: str
    setup: str
    distribution: str  # whose version the report shows
    tasks_max: int | None = None
    node: bool = False


OURS_POSTGRES = "tidewheel-postgres"
OURS_SQLITE = "tidewheel-sqlite"

ROSTER = (
    Entry(
        name=OURS_POSTGRES,
        role="ours",
        store=POSTGRESQL,
        module="bench.queue.tidewheel_peer",
        variant="postgres",
        distribution="tidewheel",
        setup="tidewheel worker with 1000 slots, async handler; submit_many of 1000",
    ),
    Entry(
        name="procrastinate",
        role="peer",
        store=POSTGRESQL,
        module=f"{PEERS}.procrastinate_peer",
        variant="postgres",
        distribution="procrastinate",
        tasks_max=SLOW_TASKS_MAX,
        setup="async tasks, concurrency 10, batch_defer of 1000",
    ),
    Entry(
        name="pgqueuer",
        role="peer",
        store=POSTGRESQL,
        module=f"{PEERS}.pgqueuer_peer",
        variant="postgres",
        distribution="pgqueuer",
        setup="asyncpg, uvloop, batch_size 500, enqueue of 1000",
    ),
    Entry(
        name="dbos-postgres",
        role="peer",
        store=POSTGRESQL,
        module=f"{PEERS}.dbos_peer",
        variant="postgres",
        distribution="dbos",
        tasks_max=SLOW_TASKS_MAX,
        setup="worker_concurrency 500, poll 10 ms, enqueue_in_transaction of 1000",
    ),
    Entry(
        name="graphile-worker",
        role="peer",
        store=POSTGRESQL,
        module=f"{PEERS}.graphile_peer",
        variant="postgres",
        distribution="graphile-worker",
        node=True,
        setup="its documented fastest preset: 24 jobs, local queue 500, batched completion",
    ),
    Entry(
        name="raw-postgres",
        role="limit",
        store=POSTGRESQL,
        module=f"{PEERS}.raw_postgres_peer",
        variant="minimal",
        distribution="psycopg",
        setup="SKIP LOCKED loop, batch 500, LISTEN; status flip only",
    ),
    Entry(
        name="raw-rows-postgres",
        role="limit",
        store=POSTGRESQL,
        module=f"{PEERS}.raw_postgres_peer",
        variant="rows",
        distribution="psycopg",
        setup="the same, tidewheel's schema and rows",
    ),
    Entry(
        name=OURS_SQLITE,
        role="ours",
        store=SQLITE,
        module="bench.queue.tidewheel_peer",
        variant="sqlite",
        distribution="tidewheel",
        setup="the same, monitor included; wake-up: worker and client in one process",
    ),
    Entry(
        name="huey-sqlite",
        role="peer",
        store=SQLITE,
        module=f"{PEERS}.huey_peer",
        variant="sqlite",
        distribution="huey",
        setup="WAL, fsync, one thread a process, poll 1 ms; at most once, no completion stored",
    ),
    Entry(
        name="dbos-sqlite",
        role="peer",
        store=SQLITE,
        module=f"{PEERS}.dbos_peer",
        variant="sqlite",
        distribution="dbos",
        tasks_max=SLOW_TASKS_MAX,
        setup="worker_concurrency 500, poll 10 ms",
    ),
    Entry(
        name="raw-sqlite",
        role="limit",
        store=SQLITE,
        module=f"{PEERS}.raw_sqlite_peer",
        variant="minimal",
        distribution="apsw",
        setup="batch 500, WAL, synchronous=FULL; status flip only",
    ),
    Entry(
        name="raw-rows-sqlite",
        role="limit",
        store=SQLITE,
        module=f"{PEERS}.raw_sqlite_peer",
        variant="rows",
        distribution="apsw",
        setup="the same, tidewheel's schema and rows",
    ),
)


def chosen(names: list[str]) -> list[Entry]:
    """The entries whose name starts with one of the names; all without names."""
    if not names:
        return list(ROSTER)
    entries = [entry for entry in ROSTER if entry.name.startswith(tuple(names))]
    if not entries:
        known = ", ".join(entry.name for entry in ROSTER)
        raise SystemExit(f"no system called {' or '.join(names)}; there are: {known}")
    return entries
