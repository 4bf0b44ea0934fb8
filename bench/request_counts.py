"""Counts what a request costs the server, in numbers that do not depend on the machine.

Asked are 60 requests less 20 of a kind, one after the other on one connection of a real server
on SQLite, so what it takes to begin is left out; and the same in crowds of 16, which the server
hands to the store together. Syncs are commits. A change of thread is a call of ours in another
thread than the call before it. Garbage is what no count of references frees, so that the
collector has to look for it.

    python -m bench.request_counts
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import tempfile
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from subprocess import run
from types import FrameType
from typing import TYPE_CHECKING

from bench.counts import FEW, MANY, SOURCE, count_into
from bench.requests.__main__ import API, OURS
from bench.requests.load import Asker, Question

if TYPE_CHECKING:
    from tidewheel.ports.store import Store

CROWD = 16
LEASES = 10
TOKEN = 1  # the admin's, which is made first
RUNS = Question(name="GET /runs", method="GET", path=f"{API}/runs")
BEATS = Question(name="POST /heartbeats", method="POST", path=f"{API}/heartbeats")
QUESTIONS = {one.name: one for one in (*OURS[:3], RUNS, BEATS)}
COUNTED = ("syncs", "statements", "calls", "changes of thread", "garbage")


def of_requests() -> dict[str, dict[str, float]]:
    """Returns what each further request costs, by its name; in a crowd, too."""
    with tempfile.TemporaryDirectory(prefix="counts-") as name:
        ours = {"TIDEWHEEL_HOME": name, "HOME": name}
        others = {n: v for n, v in os.environ.items() if not n.startswith("TIDEWHEEL_")}
        told = Path(name, "counts")
        asked = [sys.executable, "-m", "bench.request_counts", str(told)]
        run(asked, env=others | ours, check=True)
        found: dict[str, dict[str, float]] = json.loads(told.read_text())
        return found


def _counted(counts: Counter[str]) -> None:
    """Counts calls and changes of thread from now on, beside what is counted already."""
    last = threading.get_ident()

    def hook(frame: FrameType, event: str, argument: object) -> None:
        nonlocal last
        del argument
        if event == "call" and frame.f_code.co_filename.startswith(SOURCE):
            counts["calls"] += 1
            if (here := threading.get_ident()) != last:
                counts["changes of thread"] += 1
                last = here

    threading.setprofile(hook)
    sys.setprofile(hook)


async def _measured(home: Path) -> dict[str, dict[str, float]]:
    from tidewheel.client.tokens import first_token
    from tidewheel.config import ServerSettings
    from tidewheel.server.app import HttpServer
    from tidewheel.server.load_shedding import kept_reserve
    from tidewheel.wiring.stores import opened_store

    gc.disable()  # but when it is asked how much there is
    counts: Counter[str] = Counter()
    disk = count_into(counts)
    _counted(counts)
    url = f"sqlite:///{home}/requests.db"
    found: dict[str, dict[str, float]] = {}
    async with opened_store(url) as store, kept_reserve(url, store) as reserve:
        token_file = await first_token(store, home, "")
        assert token_file is not None
        token = token_file.read_text().strip()
        settings = ServerSettings(port=0, home=home)
        started = asyncio.Event()
        server = HttpServer(store, settings, lambda _: started.set(), reserve=reserve)
        serving = asyncio.create_task(server.run())
        await started.wait()
        port, numbers = int(server.url.rpartition(":")[2]), iter(range(10**9))
        askers = [
            Asker(*await asyncio.open_connection("127.0.0.1", port)) for _ in range(CROWD)
        ]

        beating = await _beats(store)
        questions = QUESTIONS | {BEATS.name: replace(BEATS, body=lambda _: beating)}

        async def ask(question: Question, count: int, crowd: int) -> Counter[str]:
            gc.collect()
            before = counts.copy()
            for _ in range(count):
                asking = (one.ask(question, next(numbers), token) for one in askers[:crowd])
                await asyncio.gather(*asking)
            counts["garbage"] += gc.collect()
            return Counter({name: counts[name] - before[name] for name in COUNTED})

        await ask(questions["POST /tasks"], 1, CROWD)  # one of them is read by the next
        for crowd, name in ((1, "{}"), (CROWD, f"{{}}, {CROWD} at once")):
            for question in questions.values():
                few, many = [await ask(question, count, crowd) for count in (FEW, MANY)]
                found[name.format(question.name)] = {
                    one: round((many[one] - few[one]) / (MANY - FEW) / crowd, 2)
                    for one in COUNTED
                }
        for asker in askers:
            asker.close()
        server.ask_stop()
        await serving
    disk.unregister()
    return found


async def _beats(store: Store) -> bytes:
    """Returns a heartbeat for the leases of a worker that the first token registered."""
    from tidewheel.core.queue.requests import ClaimRequest, HostProcess, NewWorker
    from tidewheel.core.queue.resources import Resources
    from tidewheel.core.queue.task import NewTask, TaskId

    process = HostProcess(host="host", boot_id="bench", pid=1, started=0.0)
    worker = await store.register_worker(
        NewWorker(name="w", process=process, queues=("q",), slots=LEASES, capacity=Resources())
    )
    await store.assign_worker(worker, TOKEN)
    await store.submit(
        [NewTask(id=TaskId(f"leased-{n}"), queue="q", handler="h") for n in range(LEASES)]
    )
    claimed = await store.claim(
        ClaimRequest(queue="q", worker=worker, count=LEASES, lease_seconds=600)
    )
    beats = [{"id": one.id, "attempt": one.attempt} for one in claimed]
    return json.dumps({"worker": worker, "beats": beats}).encode()


def main() -> None:
    for name, costs in of_requests().items():
        print(f"{name}: " + ", ".join(f"{count:g} {what}" for what, count in costs.items()))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        told_to = Path(sys.argv[1])
        told_to.write_text(json.dumps(asyncio.run(_measured(told_to.parent))))
        os._exit(0)
    main()
