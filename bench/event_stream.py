"""``python -m bench.event_stream``: how soon readers of the event stream hear, at what cost.

Two loads on one server: 200 readers while 20 events a second happen, each told to all of them;
then 1,000 readers while nothing happens. Every reader is a connection of its own, and comes
again if it is turned away; every event is counted, and a missing or repeated one fails the run.
Times are from before the request that makes an event to its arrival.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import resource
import sys
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from bench.folders import data_folder
from bench.machine import facts_text, machine_facts
from bench.markdown import publish, table
from bench.postgres import PostgresServer
from bench.requests.__main__ import API, started

HEADER = (
    "store",
    "readers",
    "events/s",
    "told",
    "p50 ms",
    "p99 ms",
    "max ms",
    "CPU %",
    "RSS + MB",
)
EVENT = re.compile(rb'"id":"at-(\d+)-(\d+)"')
OPEN_FILES = 8_192
AGAIN_SECONDS = (0.2, 1.0)
SETTLE_SECONDS = 1.0
LAST_SECONDS_MAX = 20.0
CHUNK, MEGA, MILLI, NANO = 65_536, 2**20, 1_000, 1_000_000_000


@dataclass
class Heard:
    """What all readers together heard."""

    begun: int = 0
    seconds: list[float] = field(default_factory=list)
    events: Counter[bytes] = field(default_factory=Counter)
    progress: asyncio.Event = field(default_factory=asyncio.Event)

    def milliseconds(self, part: float) -> str:
        """A quantile; nothing was heard of what did not happen."""
        if not self.seconds:
            return "–"
        ordered = sorted(self.seconds)
        return f"{ordered[min(len(ordered) - 1, int(len(ordered) * part))] * MILLI:.0f}"


@dataclass(frozen=True)
class Server:
    """A server under load."""

    port: int
    token: str
    process: psutil.Process

    def cpu_seconds(self) -> float:
        times = self.process.cpu_times()
        return float(times.user + times.system)

    def rss(self) -> int:
        return int(self.process.memory_info().rss)

    def request(self, method: str, path: str, body: bytes = b"") -> bytes:
        lines = (
            f"{method} {API}{path} HTTP/1.1",
            f"Host: 127.0.0.1:{self.port}",
            f"Authorization: Bearer {self.token}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
        )
        return "\r\n".join((*lines, "", "")).encode() + body


async def listen(server: Server, heard: Heard) -> None:
    """One reader, until it is cancelled."""
    reader, writer = await _connected(server)
    rest = b""
    try:
        while part := await reader.read(CHUNK):
            now = time.monotonic_ns()
            if b"event: start" in part:
                heard.begun += 1
            *blocks, rest = (rest + part).split(b"\n\n")
            for block in blocks:
                if found := EVENT.search(block):
                    heard.seconds.append((now - int(found[2])) / NANO)
                    heard.events[found[1]] += 1
            heard.progress.set()
    finally:
        writer.close()


async def _connected(server: Server) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Whoever is turned away, because too many come at once, comes again."""
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(server.request("GET", "/events"))
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " in head[:20]:
            return reader, writer
        assert b" 503 " in head[:20], head
        writer.close()
        await asyncio.sleep(random.uniform(*AGAIN_SECONDS))


async def happen(server: Server, seconds: float, per_second: float) -> int:
    """Tasks are stored at a steady rate; how many."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    begun, count = time.monotonic(), int(seconds * per_second)
    for number in range(count):
        await asyncio.sleep(max(0.0, begun + number / per_second - time.monotonic()))
        body = b'{"id": "at-%d-%d", "spec": 1}' % (number, time.monotonic_ns())
        writer.write(server.request("POST", "/tasks", body))
        head = await reader.readuntil(b"\r\n\r\n")
        assert b" 201 " in head[:20], head
        length = re.search(rb"content-length: (\d+)", head)
        assert length is not None
        await reader.readexactly(int(length[1]))
    writer.close()
    return count


async def load(server: Server, readers: int, seconds: float, per_second: float) -> list[str]:
    """One row: readers, and what happens while they listen."""
    heard = Heard()
    before = server.rss()
    listening = [asyncio.create_task(listen(server, heard)) for _ in range(readers)]
    await _until(heard, lambda: heard.begun == readers)
    await asyncio.sleep(SETTLE_SECONDS)
    cpu, at = server.cpu_seconds(), time.monotonic()
    if per_second:
        count = await happen(server, seconds, per_second)
        await _until(heard, lambda: sum(heard.events.values()) >= count * readers)
        assert set(heard.events.values()) == {readers}, "an event was missed or repeated"
        assert len(heard.events) == count
    else:
        await asyncio.sleep(seconds)
    used = (server.cpu_seconds() - cpu) / (time.monotonic() - at)
    grown = server.rss() - before
    for one in listening:
        one.cancel()
    await asyncio.gather(*listening, return_exceptions=True)
    return [
        *(str(readers), f"{per_second:g}", f"{len(heard.seconds):,}"),
        *map(heard.milliseconds, (0.5, 0.99, 1.0)),
        *(f"{used * 100:.1f}", f"{grown / MEGA:.0f}"),
    ]


async def _until(heard: Heard, is_so: object) -> None:
    assert callable(is_so)
    async with asyncio.timeout(LAST_SECONDS_MAX):
        while not is_so():
            heard.progress.clear()
            await heard.progress.wait()


def main() -> None:
    wish = _arguments()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(OPEN_FILES, hard), hard))
    with data_folder() as folder:
        facts = machine_facts(folder)
        rows = _measured(folder, wish)
    publish(wish.write, "event_stream", facts_text(facts), table(HEADER, rows))


def _measured(folder: Path, wish: argparse.Namespace) -> list[list[str]]:
    with ExitStack() as stack:
        stores = {"SQLite": f"sqlite:///{folder}/events.db"}
        if not wish.sqlite_only:
            database = stack.enter_context(PostgresServer(folder))
            stores["PostgreSQL"] = database.address.fresh_database("events")
        return [row for name, url in stores.items() for row in _on(name, url, folder, wish)]


def _on(store: str, url: str, folder: Path, wish: argparse.Namespace) -> list[list[str]]:
    home = folder / store
    environment = {"TIDEWHEEL_HOME": str(home), "TIDEWHEEL_STORE": url}
    command = [sys.executable, "-m", "tidewheel", "server", "--no-monitor", "--port"]
    seconds = 3.0 if wish.quick else wish.seconds
    with started(command, environment) as (port, pid):
        token = (home / "token").read_text().strip()
        server = Server(port, token, psutil.Process(pid))
        busy = asyncio.run(load(server, wish.readers, seconds, wish.rate))
        idle = asyncio.run(load(server, wish.idle, seconds, 0.0))
    return [[store, *busy], [store, *idle]]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.event_stream", description=__doc__)
    parser.add_argument("--readers", type=int, default=200)
    parser.add_argument("--rate", type=float, default=20.0, help="events per second")
    parser.add_argument("--idle", type=int, default=1_000, help="readers while nothing happens")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--quick", action="store_true", help="three seconds each")
    parser.add_argument("--sqlite-only", action="store_true")
    parser.add_argument("--write", type=Path, metavar="FILE.md")
    return parser.parse_args()


if __name__ == "__main__":
    main()
