"""A campaign: schedules of a simulator, one after the other, until one breaks.

Each schedule is one world from one seed; seeds count up from the first. A broken invariant
ends the campaign with status 1, the seed that shows it again, and the last events before it.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter
from dataclasses import dataclass
from typing import Protocol

from tests.kit.event_log import EVENTS_KEPT
from tests.kit.rules.facts import BrokenInvariant

PROGRESS_SECONDS = 10.0
EVENTS_KEPT_VERBOSE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one schedule went."""

    seed: int
    broken: BrokenInvariant | None
    digest: str
    faults: Counter[str]
    counts: dict[str, int]  # how much of what there was in it
    last_events: list[str]
    end: str = ""  # where there is more than one good end
    case: str = ""  # what somebody who looks for a mistake has to know besides


class RunSchedule(Protocol):
    """Lives through the world of one seed."""

    def __call__(self, seed: int, *, calm: bool, events_kept: int) -> Outcome: ...


class Tally:
    """What a campaign has seen so far."""

    def __init__(self) -> None:
        self.schedules = 0
        self.counts: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()
        self.started_at = time.monotonic()

    def add(self, outcome: Outcome) -> None:
        self.schedules += 1
        self.counts.update(outcome.counts)
        self.faults += outcome.faults
        if outcome.end:
            self.ends[outcome.end] += 1

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started_at

    def line(self) -> str:
        rate = self.schedules / max(self.seconds, 1e-9)
        counts = "".join(f", {count} {word}" for word, count in self.counts.items())
        return (
            f"{self.schedules} schedules{counts}, {self.faults.total()} faults "
            f"in {self.seconds:.1f} s ({rate:.1f} schedules/s)"
        )


def campaign(module: str, description: str, run_schedule: RunSchedule) -> int:
    """Run schedules until one breaks, all are done, or the time is over; the exit status.

    ``module`` is that of the simulator, by which it is started again.
    """
    options = _parser(module, description).parse_args()
    _say(f"seed {options.seed}")
    tally, told_at = Tally(), 0.0
    for seed in range(options.seed, options.seed + options.schedules):
        kept = EVENTS_KEPT_VERBOSE if options.verbose else EVENTS_KEPT
        again = f"python -m {module} --seed {seed} --schedules 1" + " --calm" * options.calm
        try:
            outcome = run_schedule(seed, calm=options.calm, events_kept=kept)
        except Exception:
            _say(f"again: {again}")
            raise
        tally.add(outcome)
        if outcome.broken is not None:
            _say_violation(outcome, outcome.broken, tally, again)
            return 1
        if options.verbose:
            _say("\n".join(outcome.last_events))
        if options.digests:
            _say(f"digest {seed} {outcome.digest}")
        if tally.seconds >= options.seconds and tally.schedules >= options.at_least:
            break
        if tally.seconds - told_at >= PROGRESS_SECONDS:
            told_at = tally.seconds
            _say(tally.line())
    for what, count in (*tally.faults.most_common(), *tally.ends.items()):
        _say(f"{count:>10} {what}")
    _say(f"no violation in {tally.line()}")
    return 0


def _parser(module: str, description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--seed", type=int, default=1, help="of the first schedule")
    parser.add_argument("--schedules", type=int, default=1000, help="how many at most")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so long …")
    parser.add_argument("--at-least", type=int, default=1, help="… but do so many in any case")
    parser.add_argument("--calm", action="store_true", help="switch every fault off")
    parser.add_argument("--digests", action="store_true", help="print each schedule's digest")
    parser.add_argument("--verbose", action="store_true", help="print every event")
    return parser


def _say_violation(outcome: Outcome, broken: BrokenInvariant, tally: Tally, again: str) -> None:
    _say("\n".join(outcome.last_events))
    if outcome.case:
        _say(outcome.case)
    _say(f"violation after {tally.line()}")
    _say(f"invariant: {broken.invariant}")
    _say(f"seen: {broken.seen}")
    _say(f"again: {again}")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
