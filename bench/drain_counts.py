"""Counts what it takes to drain a queue, in numbers that do not depend on the machine.

A worker with 200 slots, which claims 100 tasks at once, executes no-op handlers, in one process
on SQLite. Counted are 3,000 tasks less 1,000 of them, so what it takes to begin is left out.
``asked_of_postgres`` counts the statements of one claim.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.counts import count_into

FEW, MANY = 1_000, 3_000
SLOTS = 200
QUEUE = "drained"
KEYS = 5


def of_each_drained() -> dict[str, float]:
    """Returns what each further task of a queue costs that is drained."""
    few, many = map(_in_child, (FEW, MANY))
    return {name: round((many[name] - few[name]) / (MANY - FEW), 3) for name in many}


def _in_child(tasks: int) -> dict[str, int]:
    with tempfile.TemporaryDirectory(prefix="counts-") as name:
        asked = [sys.executable, "-m", "bench.drain_counts", name, str(tasks)]
        environment = {**os.environ, "TIDEWHEEL_HOME": name}
        subprocess.run(asked, env=environment, check=True, stdout=subprocess.DEVNULL)
        counts: dict[str, int] = json.loads((Path(name) / "counts").read_text())
        return counts


async def drain(url: str, tasks: int, counts: Counter[str]) -> dict[str, int]:
    """Fills a queue, and returns what it takes to drain it."""
    from tidewheel import AsyncClient, Handlers
    from tidewheel.client.embedded import worker_settings
    from tidewheel.wiring.stores import opened_store
    from tidewheel.wiring.workers import built_worker

    handlers, is_empty, begun = Handlers(), asyncio.Event(), 0

    @handlers.register("no_op")
    async def no_op(_spec: object, _job: object) -> None:
        nonlocal begun
        begun += 1
        if begun == tasks:
            is_empty.set()

    settings = worker_settings(queues=[QUEUE], slots=SLOTS)
    async with (
        opened_store(url) as store,
        built_worker(url, store, settings, handlers=handlers) as worker,
    ):
        await AsyncClient(store).submit_many([{"queue": QUEUE, "handler": "no_op"}] * tasks)
        before = Counter(counts)
        running = asyncio.create_task(worker.run())
        await is_empty.wait()
        worker.ask_stop()
        await running  # every end is reported by then
        spent = counts - before
        assert not await store.ready_queues()
        assert await store.verify() == []
    return {name: spent[name] for name in ("syncs", "statements", "calls")}


async def asked_of_postgres(url: str, asked: Sequence[str]) -> Mapping[str, list[str]]:
    """Returns which statements a claim of one makes, without rules and under limits of keys.
    ``asked`` grows by the name of each statement."""
    from tidewheel.core.queue.limits import Limit
    from tidewheel.core.queue.requests import (
        ClaimRequest,
        HostProcess,
        NewWorker,
        QueueSettings,
    )
    from tidewheel.core.queue.resources import Resources
    from tidewheel.core.queue.task import NewTask, TaskId
    from tidewheel.wiring.stores import opened_store

    found = {}
    async with opened_store(url) as store:
        process = HostProcess(host="here", boot_id="b", pid=1, started=1.0)
        worker = await store.register_worker(
            NewWorker(name="w", process=process, queues=("*",), slots=1, capacity=Resources())
        )
        limits = (Limit(key="*", concurrency_max=KEYS),)
        await store.configure_queue("keys", QueueSettings(limits=limits))
        for queue in ("plain", "keys"):
            for n in range(2 * KEYS):
                task = NewTask(
                    id=TaskId(f"{queue}{n}"), queue=queue, handler="h", limit_key=f"k{n % KEYS}"
                )
                await store.submit([task])
            await store.claim(ClaimRequest(queue=queue, worker=worker))  # leaves notes behind
            before = len(asked)
            tasks = await store.claim(ClaimRequest(queue=queue, worker=worker))
            assert len(tasks) == 1, queue
            found[queue] = list(asked[before:])
    return found


if __name__ == "__main__":
    folder, wanted = Path(sys.argv[1]), int(sys.argv[2])
    noted: Counter[str] = Counter()
    disk = count_into(noted)
    answer = asyncio.run(drain(f"sqlite:///{folder}/drained.db", wanted, noted))
    (folder / "counts").write_text(json.dumps(answer))
    os._exit(0)
