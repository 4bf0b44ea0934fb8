"""A network that can be cut: a namespace of its own, a road to PostgreSQL, and iptables on it.

`unshare --net python -m tests.support.partition SOCKET DATABASE` prints what a store sees
before, during and after a cut in which packets vanish and nobody says so.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time

from tidewheel.config import StoreSettings
from tidewheel.core.queue.task import NewTask, TaskId
from tidewheel.errors import Unavailable
from tidewheel.ports.store import Store
from tidewheel.store.postgres import open_postgres_store

PORT = 5433
RULE = ("INPUT", "--protocol", "tcp", "--dport", str(PORT), "--jump", "DROP")


async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One direction of one connection."""
    while chunk := await reader.read(65_536):
        writer.write(chunk)
        await writer.drain()
    writer.close()


async def serve(socket: str) -> asyncio.Server:
    """A TCP port that leads to a unix socket; those do not care about network namespaces."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_unix_connection(socket)
        await asyncio.gather(forward(reader, inner_writer), forward(inner_reader, writer))

    return await asyncio.start_server(accept, "127.0.0.1", PORT)


async def attempt(store: Store, task_id: str) -> dict[str, object]:
    """Submit one task; what came of it, and after how long."""
    started = time.monotonic()
    try:
        await store.submit([NewTask(id=TaskId(task_id), queue="q", spec="{}")])
        outcome = "stored"
    except Unavailable as error:
        outcome = error.code
    return {"outcome": outcome, "seconds": time.monotonic() - started}


async def main(socket: str, database: str) -> None:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    impatience = "keepalives_idle=1&keepalives_interval=1&keepalives_count=2"
    url = f"postgresql://postgres@127.0.0.1:{PORT}/{database}?{impatience}"
    async with await serve(socket):
        settings = StoreSettings(url=f"{url}&tcp_user_timeout=2000", connections_max=1)
        store = await asyncio.to_thread(open_postgres_store, settings)
        seen = [await attempt(store, "before")]
        subprocess.run(["iptables", "--insert", *RULE], check=True)
        seen.append(await attempt(store, "during"))
        subprocess.run(["iptables", "--delete", *RULE], check=True)
        seen.append(await attempt(store, "after"))
        await store.close()
    print(json.dumps(seen))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
