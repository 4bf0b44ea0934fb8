"""The least that heartbeats cost on PostgreSQL: one UPDATE of the lease table per beat."""

from __future__ import annotations

import time

from psycopg_pool import AsyncConnectionPool

CONNECTIONS = 8
SCHEMA = """
CREATE TABLE lease (
    seq           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner         text NOT NULL,
    deadline_at   timestamptz NOT NULL,
    lease_seconds double precision NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX lease_owner ON lease (owner);
"""
LEASE = """
INSERT INTO lease (owner, deadline_at, lease_seconds)
SELECT %(owner)s, clock_timestamp() + make_interval(secs => %(seconds)s), %(seconds)s
  FROM generate_series(1, %(leases)s)
"""
BEAT = """
UPDATE lease SET deadline_at = clock_timestamp() + make_interval(secs => lease_seconds)
 WHERE owner = %(owner)s
"""
TAKE_BACK = "DELETE FROM lease WHERE deadline_at < clock_timestamp()"


class RawPostgresStore:
    """A pool of a few connections serves all workers, as a server would."""

    _pool: AsyncConnectionPool

    async def open(self, url: str) -> None:
        self._pool = AsyncConnectionPool(
            url,
            min_size=CONNECTIONS,
            max_size=CONNECTIONS,
            open=False,
            kwargs={"autocommit": True},
        )
        await self._pool.open(wait=True)
        await self._run(SCHEMA)

    async def lease(self, worker: int, leases: int, lease_seconds: float) -> None:
        values = {"owner": str(worker), "leases": leases, "seconds": lease_seconds}
        await self._run(LEASE, values)

    async def heartbeat(self, worker: int) -> int:
        return await self._run(BEAT, {"owner": str(worker)})

    async def take_back_lapsed(self) -> int:
        return await self._run(TAKE_BACK)

    def cpu_seconds(self) -> float:
        return time.process_time()

    async def close(self) -> None:
        await self._pool.close()

    async def _run(self, sql: str, values: dict[str, object] | None = None) -> int:
        async with self._pool.connection() as connection:
            cursor = await connection.execute(sql, values)
            return cursor.rowcount


def open_store() -> RawPostgresStore:
    return RawPostgresStore()
