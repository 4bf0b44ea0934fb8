"""The goals P1 to P14 and P18, said once: each bench judges its figures by this table.

A figure is a ratio to a peer in the same run, or a count or time of ours where no peer does the
same. ``python -m bench`` runs all benches with ``BENCH_FIGURES=FILE`` in their environment;
each adds its verdicts to that file, from which the page on performance is written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass

FIGURES = "BENCH_FIGURES"
DIGITS = 3


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound on one figure; ``least`` means that larger is better."""

    number: str
    what: str
    bound: float
    unit: str = "×"
    least: bool = False

    @property
    def wanted(self) -> str:
        return f"{'≥' if self.least else '≤'} {shown(self.bound, self.unit)}"

    def is_met(self, value: float) -> bool:
        return value >= self.bound if self.least else value <= self.bound


def _least(number: str, what: str, bound: float, unit: str = "×") -> Goal:
    return Goal(number, what, bound, unit, least=True)


SHAPES = {"cycles": "100 × 10", "fan": "fan of 1,000", "chain": "chain of 100"}
GOALS: dict[str, Goal] = {
    "cycles rate": _least("P1", "1,000 cycles × 10, simulated, durable", 20_000, "tasks/s"),
    "cycles cylc": _least("P1", "1,000 cycles × 10, relative to Cylc", 2_000),
    "cycles cpu": Goal("P1", "1,000 cycles × 10, CPU of a task, start-up included", 0.06, "ms"),
    "cycles memory": Goal("P1", "1,000 cycles × 10, peak memory", 80, "MB"),
    "chain handlers": _least("P2", "chain through queue and no-op handler", 1_000, "hops/s"),
    "chain syncs": Goal("P2", "chain through the queue, fdatasyncs of a hop", 2, ""),
    "fan seconds": Goal("P3", "fan 1 → 10,000 → 1, simulated, durable", 1, "s"),
    "live bare cycles": _least("P4", "live jobs, 100 × 10, relative to the bare loop", 0.8),
    "live bare fan": _least("P4", "live jobs, fan of 1,000, relative to the bare loop", 0.8),
    "live bare chain": _least("P4", "live jobs, chain, relative to the bare loop", 0.7),
    **{
        f"live {peer} {key}": _least(
            "P4", f"live jobs, {words}, relative to {peer} with the same jobs", 1
        )
        for peer in ("HyperQueue", "Dask")
        for key, words in SHAPES.items()
    },
    "live cylc fan": _least("P4", "live jobs, independent, relative to Cylc", 500),
    "live cylc chain": _least("P4", "live jobs, chain, relative to Cylc", 500),
    "live cpu": Goal("P4", "live jobs, fan, CPU of our process a task", 1.5, "ms"),
    "live chain syncs": Goal("P4", "live jobs, fdatasyncs of a hop in a chain", 2, ""),
    "live fan syncs": Goal("P4", "live jobs, fdatasyncs of a task in a fan", 0.5, ""),
    "start run": Goal("P5", "`tidewheel run` of one task, start to exit", 0.25, "s"),
    "start version": Goal("P5", "`tidewheel --version`", 0.05, "s"),
    "start runs": Goal("P5", "`tidewheel runs` on a store of 5,000 runs", 0.2, "s"),
    "core chain": _least("P6", "core, completions per CPU second, chain", 100_000, "/s"),
    "core cycles": _least("P6", "core, completions per CPU second, cycles", 100_000, "/s"),
    "core parentless": _least(
        "P6", "core, completions per CPU second, lone tasks", 100_000, "/s"
    ),
    "growth width": Goal("P7", "CPU of a task, from 10 to 10,000 tasks a cycle", 1.2),
    "growth runahead": Goal("P7", "CPU of a task, from runahead 5 to 50", 1.2),
    "restart": Goal("P7", "a pool of 100,000 tasks comes back", 3, "s"),
    "claims": Goal("P7", "claim p99 with 10⁶ stored, relative to 10⁴; the worst case", 1.5),
    "drain postgres": _least(
        "P8", "PostgreSQL, drain by 2 workers, relative to the best peer", 1.2
    ),
    "enqueue postgres": _least("P8", "PostgreSQL, enqueue, relative to the best peer", 1),
    "drain huey": _least("P9", "SQLite, drain by 2 workers, relative to huey", 6),
    "drain raw": _least("P9", "SQLite, drain by 2 workers, relative to the raw loop", 0.6),
    "wakeup sqlite p50": Goal("P10", "wake-up in one process, p50", 2, "ms"),
    "wakeup sqlite p99": Goal("P10", "wake-up in one process, p99", 5, "ms"),
    "wakeup postgres p50": Goal("P10", "wake-up over PostgreSQL, p50", 3, "ms"),
    "wakeup postgres p99": Goal("P10", "wake-up over PostgreSQL, p99", 8, "ms"),
    "heartbeats": Goal("P11", "500 workers × 10 leases, server and database", 0.15, "cores"),
    "lapses": Goal("P11", "500 workers × 10 leases, lapses without cause", 0, ""),
    "compile command": _least(
        "P12", "a flow.cylc of 5,000 lines, relative to `cylc validate`", 25
    ),
    "compile process": _least(
        "P12", "a flow.cylc of 5,000 lines, relative to Cylc in process", 10
    ),
    "healthz": Goal("P13", "`GET /healthz`, CPU relative to a bare route", 3),
    "get sqlite": Goal("P13", "`GET /tasks/{id}` on SQLite, CPU relative to a bare route", 3),
    "get postgres": Goal("P13", "`GET /tasks/{id}` on PostgreSQL", 3),
    "post sqlite": Goal("P13", "`POST /tasks` of one task on SQLite", 5),
    "post postgres": Goal("P13", "`POST /tasks` of one task on PostgreSQL", 8),
    "overload sqlite": _least(
        "P13", "stored in overload on SQLite, relative to the peak", 0.95
    ),
    "overload postgres": _least(
        "P13", "stored in overload on PostgreSQL, relative to the peak", 0.95
    ),
    "rules sqlite": Goal("P14", "SQLite, claim under rules, time relative to a plain claim", 2),
    "rules postgres": Goal(
        "P14", "PostgreSQL, claim under rules, time relative to a plain claim", 2
    ),
    "value": Goal("P18", "a value passed to a child, live jobs: of the CPU of a task", 10, "%"),
}


def shown(value: float, unit: str) -> str:
    """Returns a figure with three digits that say something, and its unit."""
    decimals = max(0, DIGITS - len(str(int(value))))
    text = f"{value:,.{decimals}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"{text}{'' if unit in ('', '×') else ' '}{unit}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was measured for a goal; ``beside`` has the figures that a ratio is made of."""

    goal: str
    value: float
    beside: str = ""

    def line(self) -> str:
        goal = GOALS[self.goal]
        seen = shown(self.value, goal.unit) + (f" ({self.beside})" if self.beside else "")
        return f"- {goal.number} {goal.what} {goal.wanted}: {seen}: {word(self)}"


def word(verdict: Verdict) -> str:
    return "met" if GOALS[verdict.goal].is_met(verdict.value) else "MISSED"


def judged(verdicts: Iterable[Verdict]) -> str:
    """Returns a line for each verdict, and keeps it for the page, if that was asked for."""
    verdicts = list(verdicts)
    if path := os.environ.get(FIGURES):
        with open(path, "a", encoding="utf-8") as file:
            file.writelines(json.dumps(asdict(one)) + "\n" for one in verdicts)
    return "\n".join(one.line() for one in verdicts)
