"""``python -m bench.values``: what a value costs that a task passes to the next one (P18).

A chain of live jobs, each of which takes a value of the one before and returns another, beside
the same chain whose jobs write the same text to nowhere. CPU is that of ``tidewheel run`` with
all its jobs; what it takes to start and to end is left out, as a short chain has it, too. The
two take turns in one run. The value's share is a small difference of two large figures: it is
taken within each round, whose four runs meet the machine in the same mood, and the median of
the rounds counts. (The least of each kind may be of different minutes: that gave 3 and 19 %.)
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Iterator
from pathlib import Path

from bench.folders import data_folder, put_aside
from bench.goals import Verdict, judged
from bench.scheduler.bounded import Failed, run
from bench.scheduler.tidewheel_side import NOT_PASSED_ON, PROGRAM

FEW, MANY = 20, 220  # tasks
SECONDS_MAX = 300.0
FLOW = """\
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = {tasks}
    [[graph]]
        P1 = a[-P1] => a
[runtime]
    [[a]]
        script = echo "{{\\"n\\": ${{N:-0}}, \\"file\\": \\"obs.nc\\"}}" > "{where}"
"""
TAKES = """\
        [[[inputs]]]
            N = a[-P1].n
"""
PLAIN = FLOW.replace("{where}", "/dev/null")
WITH_VALUE = FLOW.replace("{where}", "$TIDEWHEEL_OUTPUTS") + TAKES
KINDS = {"plain": PLAIN, "with a value": WITH_VALUE}


def cpu_seconds(folder: Path, text: str, tasks: int) -> float:
    """Of a whole run of this many tasks, in a new home."""
    flow, home = folder / "flow", folder / "home"
    flow.mkdir(exist_ok=True)
    (flow / "flow.cylc").write_text(text.format(tasks=tasks))
    put_aside(home)
    kept = {name: value for name, value in os.environ.items() if name not in NOT_PASSED_ON}
    environment = kept | {"TIDEWHEEL_HOME": str(home)}
    log = folder / "run.log"
    ran = run(
        [PROGRAM, "run", str(flow)], log, seconds_max=SECONDS_MAX, environment=environment
    )
    if not ran.is_complete or f"{tasks} succeeded" not in ran.output:
        raise Failed(f"tidewheel run: {ran.output[-300:]}")
    return ran.cpu_seconds


def rounds(folder: Path, count: int) -> Iterator[dict[tuple[str, int], float]]:
    """Yields the CPU of each kind and length, round by round; who is first changes."""
    for number in range(count):
        names = list(KINDS)[:: 1 if number % 2 else -1]
        yield {
            (name, tasks): cpu_seconds(folder, KINDS[name], tasks)
            for tasks in (FEW, MANY)
            for name in names
        }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.values", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    wish = parser.parse_args()
    with data_folder() as folder:
        found = list(rounds(folder, wish.rounds))
    costs_ms = [
        {name: (one[name, MANY] - one[name, FEW]) / (MANY - FEW) * 1000 for name in KINDS}
        for one in found
    ]
    typical = {name: statistics.median(one[name] for one in costs_ms) for name in KINDS}
    for name, cost in typical.items():
        print(f"{name}: {cost:.2f} ms of CPU a task, median of {len(found)} rounds")
    plain, valued = KINDS
    share = statistics.median(one[valued] / one[plain] - 1 for one in costs_ms)
    beside = f"{typical[valued]:.2f} to {typical[plain]:.2f} ms"
    print(judged([Verdict("value", share * 100, beside)]))


if __name__ == "__main__":
    main()
