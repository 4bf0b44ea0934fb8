"""``python -m bench.overload``: what a server does when far more is asked than it can do.

First a few connections submit as fast as they are answered: the peak. Then many times as many
submit and read at once and come again when the server says so, while workers heartbeat as ever.
What must hold: about as many tasks are stored as at the peak, every heartbeat is heard in time,
and no lease is lost; and soon after the crowd has left, answers are as fast as before.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from bench.folders import data_folder
from bench.goals import Verdict, judged
from bench.heartbeats.load import LoadReport, LoadSettings, lease_all, run_load
from bench.heartbeats.server_store import ServerStore
from bench.machine import facts_text, machine_facts
from bench.markdown import publish, table
from bench.postgres import PostgresServer
from bench.requests.__main__ import API, GOAL_NAMES
from bench.requests.load import Asker, Question

PEAK_CONNECTIONS, CROWD = 16, 400
REFUSALS = (429, 503)
HEADER = (
    "store",
    "peak/s",
    "stored/s in the crowd",
    "of peak",
    "turned away/s",
    "slowest heartbeat s",
    "leases lost",
    "p50 ms before / after",
)


@dataclass
class Crowd:
    """What callers were answered."""

    counts: Counter[int] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)

    @property
    def median_ms(self) -> float:
        return sorted(self.latencies)[len(self.latencies) // 2] * 1000


class Submitting:
    """Tasks with ids that are used once, and looks at one of them."""

    def __init__(self) -> None:
        self._number = 0

    def body(self, _: int) -> bytes:
        self._number += 1
        one = {"id": f"o-{self._number}", "queue": "crowd", "handler": "h", "spec": {"n": 1}}
        return json.dumps(one).encode()


TASKS = Submitting()
SUBMIT = Question(
    name="submit", method="POST", path=f"{API}/tasks", body=TASKS.body, status=201
)
READ = Question(name="read", method="GET", path=f"{API}/tasks?limit=20")


async def press(store: ServerStore, questions: list[Question], seconds: float) -> list[Crowd]:
    """Each question on a connection of its own, again and again; what became of each."""
    ends_at = time.monotonic() + seconds

    async def one(question: Question) -> Crowd:
        crowd = Crowd()
        asker = Asker(*await asyncio.open_connection("127.0.0.1", store.port))
        while (asked_at := time.monotonic()) < ends_at:
            reply = await asker.answer(question, 0, store.token)
            crowd.counts[reply.status] += 1
            crowd.latencies.append(time.monotonic() - asked_at)
            await asyncio.sleep(reply.retry_seconds)
        asker.close()
        return crowd

    return await asyncio.gather(*map(one, questions))


def stored(crowds: list[Crowd]) -> int:
    return sum(crowd.counts[SUBMIT.status] for crowd in crowds)


async def measure(name: str, url: str, seconds: float) -> tuple[list[str], Verdict]:
    store = ServerStore()
    await store.open(url)
    settings = LoadSettings(workers=50, leases=10, seconds=seconds)
    await lease_all(store, settings)
    peak = await press(store, [SUBMIT] * PEAK_CONNECTIONS, seconds / 2)
    beats, crowd = await asyncio.gather(
        run_load(store, settings), press(store, [SUBMIT, READ] * (CROWD // 2), seconds)
    )
    after = await press(store, [SUBMIT] * PEAK_CONNECTIONS, seconds / 4)
    await store.close()
    return row(name, peak, crowd, after, beats, seconds)


def row(
    name: str,
    peak: list[Crowd],
    crowd: list[Crowd],
    after: list[Crowd],
    beats: LoadReport,
    seconds: float,
) -> tuple[list[str], Verdict]:
    at_peak, in_crowd = stored(peak) / (seconds / 2), stored(crowd) / seconds
    refused = sum(one.counts[status] for one in crowd for status in REFUSALS)
    beside = f"{in_crowd:,.0f} to {at_peak:,.0f} tasks/s"
    verdict = Verdict(f"overload {GOAL_NAMES[name]}", in_crowd / at_peak, beside)
    cells = [
        name,
        f"{at_peak:,.0f}",
        f"{in_crowd:,.0f}",
        f"{in_crowd / at_peak:.2f}",
        f"{refused / seconds:,.0f}",
        f"{beats.beat_seconds_max:.2f}",
        str(beats.lapsed + beats.lost),
        f"{peak[0].median_ms:.0f} / {after[0].median_ms:.0f}",
    ]
    return cells, verdict


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.overload", description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--write", type=Path, metavar="FILE.md")
    wish = parser.parse_args()
    with data_folder() as folder:
        facts = machine_facts(folder)
        with PostgresServer(folder) as server:
            stores = {
                "SQLite": f"sqlite:///{folder}/overload.db",
                "PostgreSQL": server.address.fresh_database("overload"),
            }
            found = [
                asyncio.run(measure(name, url, wish.seconds)) for name, url in stores.items()
            ]
    load = f"{CROWD} connections, half of them submit and half read, {wish.seconds:g} s"
    figures = table(HEADER, [cells for cells, _ in found])
    verdicts = judged(verdict for _, verdict in found)
    publish(wish.write, "overload", facts_text(facts), load, figures, verdicts)


if __name__ == "__main__":
    main()
