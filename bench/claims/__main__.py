"""``python -m bench.claims``: p50 and p99 of a claim with 10⁴ and with 10⁶ tasks stored.

``--rules``: claims under limits, rates, aging and keys beside a plain claim (goal P14).
"""

from __future__ import annotations

import argparse
import asyncio
import math
from functools import partial
from pathlib import Path

from bench.claims.rules import HEADER as RULES_HEADER
from bench.claims.rules import measure_rules
from bench.claims.stored import StoredTasks, make_stored_tasks
from bench.folders import data_folder
from bench.goals import Verdict, judged
from bench.machine import facts_text, machine_facts
from bench.markdown import publish, table
from bench.postgres import PostgresAddress, PostgresServer

SIZES = (10_000, 1_000_000)
CLAIMS = 1_000
RULES_SIZE = 100_000
STATUSES = {"ended": "succeeded", "ready": "ready"}
HEADER = ("store", "tasks are", "batch", "stored", "claim p50 ms", "p99 ms", "p99 ratio")


def main() -> None:
    wish = _arguments()
    rows: list[list[str]] = []
    verdicts: list[Verdict] = []
    with data_folder() as folder:
        facts = machine_facts(folder)
        with PostgresServer(folder) as server:
            for kind in wish.stores if wish.rules is not None else ():
                url = partial(_url, kind, server.address, folder)
                measured, verdict = asyncio.run(
                    measure_rules(kind, url, RULES_SIZE, wish.claims, wish.rules)
                )
                rows += measured
                verdicts.append(verdict)
            for kind in wish.stores if wish.rules is None else ():
                for tasks_are in STATUSES:
                    urls = [_url(kind, server.address, folder, size) for size in wish.sizes]
                    rows += asyncio.run(_measure(kind, tasks_are, urls, wish))
    header = HEADER if wish.rules is None else RULES_HEADER
    if wish.rules is None:
        verdicts.append(_worst(rows))
    publish(wish.write, "claims", facts_text(facts), table(header, rows), judged(verdicts))


async def _measure(
    kind: str, tasks_are: str, urls: list[str], wish: argparse.Namespace
) -> list[list[str]]:
    """Claims of all sizes take turns, so that a slow moment of the machine hits each alike."""
    fresh = sum(wish.claims * batch for batch in wish.batches)
    stored = [
        await make_stored_tasks(url, size, STATUSES[tasks_are], fresh)
        for url, size in zip(urls, wish.sizes, strict=True)
    ]
    rows = []
    for batch in wish.batches:
        for one in stored:
            one.seconds.clear()
        for _ in range(wish.claims):
            for one in stored:
                await one.claim_once(batch)
        rows += [_row(kind, tasks_are, batch, one, stored[0]) for one in stored]
    for one in stored:
        await one.store.close()
    return rows


def _url(kind: str, postgres: PostgresAddress, folder: Path, size: int | str) -> str:
    if kind == "postgres":
        return postgres.fresh_database(f"claims_{size}")
    path = folder / f"claims-{size}.db"
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    return f"sqlite:///{path}"


def _row(
    kind: str, tasks_are: str, batch: int, one: StoredTasks, small: StoredTasks
) -> list[str]:
    ratio = _percentile(one.seconds, 99) / _percentile(small.seconds, 99)
    numbers = (f"{_percentile(one.seconds, percent) * 1000:.2f}" for percent in (50, 99))
    shown = "" if one is small else f"{ratio:.2f}"
    return [kind, tasks_are, str(batch), f"{one.size:,}", *numbers, shown]


def _worst(rows: list[list[str]]) -> Verdict:
    """Returns the largest ratio of a large store to the small one, and where it was seen."""
    row = max((row for row in rows if row[-1]), key=lambda row: float(row[-1]))
    return Verdict("claims", float(row[-1]), f"{row[0]}, {row[1]}, {row[2]} at once")


def _percentile(seconds: list[float], percent: float) -> float:
    return sorted(seconds)[max(1, math.ceil(percent / 100 * len(seconds))) - 1]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.claims", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 100])
    parser.add_argument("--claims", type=int, default=CLAIMS, help="of each batch and size")
    parser.add_argument(
        "--stores", nargs="+", choices=("postgres", "sqlite"), default=["postgres", "sqlite"]
    )
    parser.add_argument("--rules", nargs="*", metavar="RULE", help="P14; only these rules")
    parser.add_argument("--write", type=Path, metavar="FILE.md")
    return parser.parse_args()


if __name__ == "__main__":
    main()
