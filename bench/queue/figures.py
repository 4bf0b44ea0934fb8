"""What was measured of one system, how it travels between processes and over rounds."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path

ENQUEUE, DRAIN_1, DRAIN_2, WAKEUP = "enqueue", "drain 1", "drain 2", "wake-up"


@dataclass(slots=True)
class Figures:
    """Rates in tasks per second, wake-ups in seconds; a phase is here or in ``failures``."""

    tasks: int = 0
    rates: dict[str, float] = field(default_factory=dict)
    wakeups: list[float] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)

    def rate(self, phase: str) -> float | None:
        return self.rates.get(phase)

    def wakeup_ms(self, percent: float) -> float | None:
        """A percentile of the wake-ups, by the nearest rank."""
        if not self.wakeups:
            return None
        rank = max(1, math.ceil(percent / 100 * len(self.wakeups)))
        return sorted(self.wakeups)[rank - 1] * 1000

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))


def load(path: Path) -> Figures:
    return Figures(**json.loads(path.read_text()))


def failed(reason: str) -> Figures:
    """Figures of a system that could not be measured at all."""
    return Figures(failures={"all": reason})


def best_of(rounds: list[Figures]) -> Figures:
    """The best rates and all wake-ups: what else the machine does only ever slows down."""
    best = Figures(tasks=max(one.tasks for one in rounds))
    for one in rounds:
        for phase, rate in one.rates.items():
            best.rates[phase] = max(rate, best.rates.get(phase, 0.0))
        best.wakeups.extend(one.wakeups)
        best.failures.update(one.failures)
    return best
