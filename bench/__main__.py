"""``python -m bench``: every figure of the goals, measured twice, as one table.

The second round says how far figures spread. What takes minutes and hardly varies, Cylc and the
stores of a million tasks, is measured in the first round alone. ``--write`` puts the table into
docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.folders import REPOSITORY, data_folder
from bench.goals import FIGURES, GOALS, Verdict, shown, word
from bench.machine import facts_text, machine_facts
from bench.markdown import publish, table

PAGE = REPOSITORY / "docs" / "performance.md"
QUEUES = ("tidewheel", "pgqueuer", "graphile", "huey", "raw-rows")
# Each bench with its words, and those of the first and the second round (None: it has none).
BENCHES: tuple[tuple[str, str, str | None], ...] = (
    ("bench.scheduler --short", "", "--no-cylc"),
    (f"bench.queue --tasks 30000 --samples 60 --only {' '.join(QUEUES)}", "", ""),
    ("bench.counts", "", None),  # counts do not vary
    ("bench.requests --seconds 3", "", ""),
    ("bench.overload --seconds 8", "", ""),
    ("bench.claims --rules --claims 60", "", None),
    ("bench.claims --claims 1000", "", None),
    ("bench.heartbeats --seconds 15 --only tidewheel-server", "", ""),
    ("bench.compile --tasks 100", "", ""),
    ("bench.values", "", ""),
)
HEADER = ("goal", "what", "wanted", "measured", "second round", "verdict")
MISSING = "–"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--rounds", type=int, choices=(1, 2), default=2)
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    wish = parser.parse_args()
    began = time.monotonic()
    with data_folder() as folder:
        facts = machine_facts(folder)
        rounds = [_round(number, folder, wish.only) for number in range(wish.rounds)]
    minutes = (time.monotonic() - began) / 60
    remark = f"{facts_text(facts)}; load after: {os.getloadavg()[0]:.1f}; {minutes:.0f} minutes"
    rows = [row for goal in GOALS if (row := _row(goal, rounds))]
    publish(PAGE if wish.write else None, "goals", remark, table(HEADER, rows), _sum(rounds))


def _round(number: int, folder: Path, only: Sequence[str]) -> dict[str, Verdict]:
    """Runs all benches once; returns the worst verdict of each goal."""
    figures = folder / f"figures-{number}"
    for words, *by_round in BENCHES:
        name, extra = words.split()[0], by_round[number]
        if extra is None or (only and name.removeprefix("bench.") not in only):
            continue
        began = time.monotonic()
        log = folder / "bench.log"
        with log.open("w") as output:
            status = subprocess.run(
                [sys.executable, "-m", *words.split(), *extra.split()],
                cwd=REPOSITORY,
                env=os.environ | {FIGURES: str(figures)},
                stdout=output,
                stderr=output,
                check=False,
            ).returncode
        end = "" if status == 0 else f", exit status {status}: {log.read_text()[-500:]}"
        sys.stderr.write(f"{words}: {time.monotonic() - began:.0f} s{end}\n")
        sys.stderr.write(log.read_text())
    lines = figures.read_text().splitlines() if figures.exists() else []
    worst: dict[str, Verdict] = {}
    for one in (Verdict(**json.loads(line)) for line in lines):
        goal, known = GOALS[one.goal], worst.get(one.goal)
        if known is None or (one.value < known.value) == goal.least:
            worst[one.goal] = one
    return worst


def _row(goal: str, rounds: Sequence[dict[str, Verdict]]) -> list[str] | None:
    first, *others = [found.get(goal) for found in rounds]
    if first is None:
        return None
    unit = GOALS[goal].unit
    measured = shown(first.value, unit) + (f" ({first.beside})" if first.beside else "")
    again = [shown(one.value, unit) if one else MISSING for one in others]
    seen = [one for one in (first, *others) if one is not None]
    verdict = " / ".join(dict.fromkeys(word(one) for one in seen))
    number, what = GOALS[goal].number, GOALS[goal].what
    return [number, what, GOALS[goal].wanted, measured, *(again or [MISSING]), verdict]


def _sum(rounds: Sequence[dict[str, Verdict]]) -> str:
    words = [word(one) for one in rounds[0].values()]
    missing = [f"{one.number} {one.what}" for key, one in GOALS.items() if key not in rounds[0]]
    text = f"{words.count('met')} of {len(GOALS)} are met in the first round."
    return text + (f" Not measured: {'; '.join(missing)}." if missing else "")


if __name__ == "__main__":
    main()
