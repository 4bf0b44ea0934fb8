"""Simulates runs under faults: schedulers, workers, monitors, an operator and a store.

    python -m tests.sim.joint_campaign --seed 7 --schedules 1000

Each schedule is one world from one seed; seeds count up from the first. A broken invariant
ends the campaign with status 1, the seed that shows it again, and the last events before it.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections import Counter

from tests.sim.joint_world import Outcome, run_schedule
from tidewheel.testing.event_log import EVENTS_KEPT

PROGRESS_SECONDS = 10.0
EVENTS_KEPT_VERBOSE = 1_000_000


class Tally:
    """What a campaign has seen so far."""

    def __init__(self) -> None:
        self.schedules = self.submissions = self.attempts = self.epochs = 0
        self.faults: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()
        self.started_at = time.monotonic()

    def add(self, outcome: Outcome) -> None:
        self.schedules += 1
        self.submissions += outcome.tasks
        self.attempts += outcome.attempts
        self.epochs += outcome.epochs
        self.faults += outcome.faults
        self.statuses[outcome.status] += 1

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started_at

    def line(self) -> str:
        rate = self.schedules / max(self.seconds, 1e-9)
        return (
            f"{self.schedules} schedules, {self.submissions} submissions, "
            f"{self.attempts} attempts, {self.epochs} schedulers, {self.faults.total()} faults "
            f"in {self.seconds:.1f} s ({rate:.1f} schedules/s)"
        )


def main() -> int:
    """Run schedules until one breaks, all are done, or the time is over."""
    options = _parser().parse_args()
    say(f"seed {options.seed}")
    tally, told_at = Tally(), 0.0
    for seed in range(options.seed, options.seed + options.schedules):
        kept = EVENTS_KEPT_VERBOSE if options.verbose else EVENTS_KEPT
        outcome = run_schedule(seed, calm=options.calm, events_kept=kept)
        tally.add(outcome)
        if outcome.broken is not None:
            _print_violation(outcome, tally, calm=options.calm)
            return 1
        if options.verbose:
            say("\n".join(outcome.last_events))
        if options.digests:
            say(f"digest {seed} {outcome.digest}")
        if tally.seconds >= options.seconds and tally.schedules >= options.at_least:
            break
        if tally.seconds - told_at >= PROGRESS_SECONDS:
            told_at = tally.seconds
            say(tally.line())
    for what, count in (*tally.faults.most_common(), *tally.statuses.items()):
        say(f"{count:>10} {what}")
    say(f"no violation in {tally.line()}")
    return 0


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.sim.joint_campaign", description=__doc__.partition("\n")[0]
    )
    seed = int(os.environ.get("SIM_SEED") or 1)
    parser.add_argument("--seed", type=int, default=seed, help="of the first schedule")
    parser.add_argument("--schedules", type=int, default=1000, help="how many at most")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so long …")
    parser.add_argument("--at-least", type=int, default=1, help="… but do so many in any case")
    parser.add_argument("--calm", action="store_true", help="switch every fault off")
    parser.add_argument("--digests", action="store_true", help="print each schedule's digest")
    parser.add_argument("--verbose", action="store_true", help="print every event")
    return parser


def _print_violation(outcome: Outcome, tally: Tally, *, calm: bool) -> None:
    assert outcome.broken is not None
    say("\n".join(outcome.last_events))
    say(outcome.flow)
    say(f"violation after {tally.line()}")
    say(f"invariant: {outcome.broken.invariant}")
    say(f"seen: {outcome.broken.seen}")
    again = f"--seed {outcome.seed} --schedules 1" + (" --calm" if calm else "")
    say(f"again: python -m tests.sim.joint_campaign {again}")


if __name__ == "__main__":
    sys.exit(main())
