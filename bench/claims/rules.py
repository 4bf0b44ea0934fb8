"""Claims under limits, rates, aging and keys, each beside a plain claim (goal P14)."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bench.claims.stored import HANDLER, QUEUE, SUBMIT_BATCH, StoredTasks, make_stored_tasks
from bench.goals import Verdict
from tidewheel.client.async_client import new_id
from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.requests import ClaimRequest, QueueSettings
from tidewheel.core.queue.task import NewTask, TaskId

HEADER = ("store", "rule", "ready", "claim p50 ms", "max ms", "of a plain claim")
MANY = 1_000_000


@dataclass(slots=True)
class Case:
    """One rule, and the tasks that wait under it; ``running`` of them are held all along."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    keys: int = 0
    priorities: int = 1
    running: int = 0
    gives: bool = True  # whether a claim finds a task


def _limited(*limits: Limit) -> dict[str, Any]:
    return {"limits": limits}


CASES = (
    Case("plain"),
    Case("queue limit", _limited(Limit(concurrency_max=MANY))),
    Case("queue limit, full", _limited(Limit(concurrency_max=0)), gives=False),
    Case("rate", _limited(Limit(rate_max=MANY))),
    Case("aging", {"aging": True}, priorities=5),
    Case("10 keys", _limited(Limit(key="*", concurrency_max=5)), keys=10),
    Case("10 keys, 9 full", _limited(Limit(key="*", concurrency_max=1)), keys=10, running=9),
    Case("10,000 keys", _limited(Limit(key="*", concurrency_max=1)), keys=10_000),
    Case(
        "10,000 keys, 9,990 full",
        _limited(Limit(key="*", concurrency_max=1)),
        keys=10_000,
        running=9_990,
    ),
    Case("all full", _limited(Limit(key="*", concurrency_max=0)), keys=10_000, gives=False),
    Case("rate of each key", _limited(Limit(key="*", rate_max=MANY)), keys=10_000),
)


async def measure_rules(
    kind: str, url: Callable[[str], str], size: int, claims: int, only: list[str]
) -> tuple[list[list[str]], Verdict]:
    """Every case in a store of its own; claims of all cases take turns."""
    cases = [one for one in CASES if not only or one.name in (*only, "plain")]
    stored = [await _filled(url(f"{place}"), one, size) for place, one in enumerate(cases)]
    for one, case in zip(stored, cases, strict=True):
        for _ in range(3):
            await _claim(one, case)
        one.seconds.clear()
    for _ in range(claims):
        for one, case in zip(stored, cases, strict=True):
            await _claim(one, case)
    plain = statistics.median(stored[0].seconds)
    rows, ratios = [], {}
    for one, case in zip(stored, cases, strict=True):
        middle = statistics.median(one.seconds)
        figures = (f"{middle * 1000:.2f}", f"{max(one.seconds) * 1000:.2f}")
        ratios[case.name] = middle / plain
        rows.append([kind, case.name, f"{size:,}", *figures, f"{middle / plain:.2f}"])
        await one.store.close()
    worst = max(ratios, key=lambda name: ratios[name])
    return rows, Verdict(f"rules {kind}", ratios[worst], worst)


async def _claim(one: StoredTasks, case: Case) -> None:
    if case.gives:
        await one.claim_once(1)
        return
    started = asyncio.get_running_loop().time()
    found = await one.store.claim(ClaimRequest(queue=QUEUE, worker=one.worker, count=1))
    one.seconds.append(asyncio.get_running_loop().time() - started)
    assert not found


async def _filled(url: str, case: Case, size: int) -> StoredTasks:
    one = await make_stored_tasks(url, 0, "ready", 0)
    tasks = [
        NewTask(
            id=TaskId(new_id()),
            queue=QUEUE,
            handler=HANDLER,
            priority=10 + number % case.priorities,
            limit_key=f"k{number % case.keys}" if case.keys else None,
        )
        for number in range(size + case.running)
    ]
    for start in range(0, len(tasks), SUBMIT_BATCH):
        await one.store.submit(tasks[start : start + SUBMIT_BATCH])
    await one.store.configure_queue(QUEUE, QueueSettings(lease_seconds=86_400, **case.settings))
    left = case.running
    while left:
        wish = ClaimRequest(queue=QUEUE, worker=one.worker, count=min(left, SUBMIT_BATCH))
        left -= len(await one.store.claim(wish))
    return one
