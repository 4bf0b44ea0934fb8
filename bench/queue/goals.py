"""Goals P8, P9 and P10 of the performance document, judged from one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.queue.figures import DRAIN_2, ENQUEUE, Figures
from bench.queue.roster import OURS_POSTGRES, OURS_SQLITE


@dataclass(frozen=True, slots=True)
class RateGoal:
    """Our two-worker drain rate is at least ``ratio`` of the peer's."""

    number: str
    ours: str
    peer: str
    ratio: float


@dataclass(frozen=True, slots=True)
class WakeupGoal:
    """Our wake-up percentiles are at most so many milliseconds."""

    number: str
    ours: str
    p50_ms_max: float
    p99_ms_max: float


RATE_GOALS = (
    RateGoal("P8", OURS_POSTGRES, "procrastinate", 1.0),
    RateGoal("P8", OURS_POSTGRES, "dbos-postgres", 1.0),
    RateGoal("P8", OURS_POSTGRES, "pgqueuer", 1.0),
    RateGoal("P8", OURS_POSTGRES, "graphile-worker", 1.0),
    RateGoal("P8", OURS_POSTGRES, "raw-rows-postgres", 0.5),
    RateGoal("P9", OURS_SQLITE, "huey-sqlite", 5.0),
    RateGoal("P9", OURS_SQLITE, "dbos-sqlite", 5.0),
    RateGoal("P9", OURS_SQLITE, "raw-rows-sqlite", 0.2),
)
WAKEUP_GOALS = (
    WakeupGoal("P10", OURS_SQLITE, 3.0, 15.0),
    WakeupGoal("P10", OURS_POSTGRES, 5.0, 25.0),
)


def verdicts(results: Mapping[str, Figures]) -> list[str]:
    """One line per goal that this run can judge."""
    rates = (_rate_verdict(goal, results) for goal in RATE_GOALS)
    wakeups = (_wakeup_verdict(goal, results) for goal in WAKEUP_GOALS)
    return [line for line in (*rates, *wakeups) if line]


def _rate_verdict(goal: RateGoal, results: Mapping[str, Figures]) -> str:
    ours, theirs = results.get(goal.ours, Figures()), results.get(goal.peer, Figures())
    seen = [
        (phase, mine / other)
        for phase in (ENQUEUE, DRAIN_2)
        if (mine := ours.rate(phase)) and (other := theirs.rate(phase))
    ]
    if not seen:
        return ""
    # The rates that the goals name are of the drain; enqueue is shown beside it.
    met = dict(seen).get(DRAIN_2, 0.0) >= goal.ratio
    text = ", ".join(f"{phase} {ratio:.2f}×" for phase, ratio in seen)
    return f"{goal.number} {goal.ours} ≥ {goal.ratio:g}× {goal.peer}: {text}: {_word(met)}"


def _wakeup_verdict(goal: WakeupGoal, results: Mapping[str, Figures]) -> str:
    ours = results.get(goal.ours, Figures())
    p50, p99 = ours.wakeup_ms(50), ours.wakeup_ms(99)
    if p50 is None or p99 is None:
        return ""
    met = p50 <= goal.p50_ms_max and p99 <= goal.p99_ms_max
    limit = f"{goal.p50_ms_max:g} / {goal.p99_ms_max:g} ms"
    return f"{goal.number} {goal.ours} wake-up ≤ {limit}: {p50:.1f} / {p99:.1f}: {_word(met)}"


def _word(met: bool) -> str:
    return "met" if met else "MISSED"
