"""Simulates the queue under faults: clients, workers, monitors and a store from one seed.

Each schedule is one world from one seed; seeds count up from the first. A broken invariant
ends the run with status 1, the seed that shows it again, and the last events before it.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Sequence

from tidewheel.testing.event_log import EVENTS_KEPT
from tidewheel.testing.world import Outcome, run_schedule

PROGRESS_SECONDS = 10.0
EVENTS_KEPT_VERBOSE = 1_000_000


class Tally:
    """What a run of schedules has seen so far."""

    def __init__(self) -> None:
        self.schedules = 0
        self.tasks = 0
        self.steps = 0
        self.faults: Counter[str] = Counter()
        self.started_at = time.monotonic()

    def add(self, outcome: Outcome) -> None:
        self.schedules += 1
        self.tasks += outcome.tasks
        self.steps += outcome.steps
        self.faults += outcome.faults

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started_at

    def line(self) -> str:
        rate = self.schedules / max(self.seconds, 1e-9)
        return (
            f"{self.schedules} schedules, {self.tasks} tasks, {self.steps} steps, "
            f"{self.faults.total()} faults in {self.seconds:.1f} s ({rate:.1f} schedules/s)"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run schedules until one breaks, all are done, or the time is over."""
    options = _parser().parse_args(arguments)
    print(f"seed {options.seed}", flush=True)
    tally, told_at = Tally(), 0.0
    for seed in range(options.seed, options.seed + options.schedules):
        kept = EVENTS_KEPT_VERBOSE if options.verbose else EVENTS_KEPT
        outcome = run_schedule(seed, calm=options.calm, events_kept=kept)
        tally.add(outcome)
        if outcome.broken is not None:
            _print_violation(outcome, tally, calm=options.calm)
            return 1
        if options.verbose:
            print("\n".join(outcome.last_events))
        if options.digests:
            print(f"digest {seed} {outcome.digest}")
        if tally.seconds >= options.seconds and tally.schedules >= options.at_least:
            break
        if tally.seconds - told_at >= PROGRESS_SECONDS:
            told_at = tally.seconds
            print(tally.line(), flush=True)
    _print_end(tally)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tidewheel.testing.simulate", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--seed", type=int, default=1, help="of the first schedule")
    parser.add_argument("--schedules", type=int, default=1000, help="how many at most")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so long …")
    parser.add_argument("--at-least", type=int, default=1, help="… but do so many in any case")
    parser.add_argument("--calm", action="store_true", help="switch every fault off")
    parser.add_argument("--digests", action="store_true", help="print each schedule's digest")
    parser.add_argument("--verbose", action="store_true", help="print every event")
    return parser


def _print_violation(outcome: Outcome, tally: Tally, *, calm: bool) -> None:
    assert outcome.broken is not None
    print("\n".join(outcome.last_events))
    print(f"violation after {tally.line()}")
    print(f"invariant: {outcome.broken.invariant}")
    print(f"seen: {outcome.broken.seen}")
    again = f"--seed {outcome.seed} --schedules 1" + (" --calm" if calm else "")
    print(f"again: python -m tidewheel.testing.simulate {again}", flush=True)


def _print_end(tally: Tally) -> None:
    for fault, count in tally.faults.most_common():
        print(f"{count:>10} {fault}")
    print(f"no violation in {tally.line()}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
