"""Workers that beat over HTTP, each on a connection of its own, to a server in its own process.

What counts is the CPU of that server (and of PostgreSQL), not of the load that is made here.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from bench.heartbeats.tidewheel_store import TidewheelStore
from bench.postgres import cpu_seconds
from bench.requests.__main__ import API, started
from bench.requests.load import Asker, Question
from tidewheel.core.queue.task import WorkerId

COMMAND = [sys.executable, "-m", "tidewheel", "server", "--no-monitor", "--port"]
TOKEN = 1  # the admin's, which the server makes at its first start


class ServerStore(TidewheelStore):
    """Leases are taken at the store; what is measured goes through the server."""

    def __init__(self) -> None:
        super().__init__()
        self._questions: dict[int, Question] = {}
        self._askers: dict[int, Asker] = {}

    async def open(self, url: str) -> None:
        await super().open(url)
        self._stack = ExitStack()
        home = Path(tempfile.mkdtemp(prefix="bench-server-"))
        self._stack.callback(shutil.rmtree, home, ignore_errors=True)
        environment = {"TIDEWHEEL_HOME": str(home), "TIDEWHEEL_STORE": url}
        self.port, self._pid = self._stack.enter_context(started(COMMAND, environment))
        self.token = (home / "token").read_text().strip()

    async def lease(self, worker: int, leases: int, lease_seconds: float) -> None:
        await super().lease(worker, leases, lease_seconds)
        registered, beats = self.held[worker]
        await self.store.assign_worker(WorkerId(registered), TOKEN)
        body = {
            "worker": registered,
            "beats": [{"id": one.task_id, "attempt": one.attempt} for one in beats],
        }
        text = json.dumps(body).encode()
        self._questions[worker] = Question(
            name="heartbeats", method="POST", path=f"{API}/heartbeats", body=lambda _: text
        )

    async def heartbeat(self, worker: int) -> int:
        # Only now: whoever connects and asks nothing for long is sent away.
        if worker not in self._askers:
            connected = await asyncio.open_connection("127.0.0.1", self.port)
            self._askers[worker] = Asker(*connected)
        answer = await self._askers[worker].ask(self._questions[worker], 0, self.token)
        return sum(one["answer"] != "lost" for one in json.loads(answer)["answers"])

    def cpu_seconds(self) -> float:
        return cpu_seconds(self._pid)

    async def close(self) -> None:
        for asker in self._askers.values():
            asker.close()
        self._stack.close()
        await super().close()


def open_store() -> ServerStore:
    return ServerStore()
