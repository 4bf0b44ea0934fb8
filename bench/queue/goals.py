"""Judges one run of the queues by the goals P8, P9 and P10."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bench.goals import Verdict, shown
from bench.queue.figures import DRAIN_2, ENQUEUE, Figures
from bench.queue.roster import OURS_POSTGRES, OURS_SQLITE

# The fastest queues on PostgreSQL.
BEST = ("pgqueuer", "graphile-worker")
RATES = (
    ("drain postgres", OURS_POSTGRES, BEST, DRAIN_2),
    ("enqueue postgres", OURS_POSTGRES, BEST, ENQUEUE),
    ("drain huey", OURS_SQLITE, ("huey-sqlite",), DRAIN_2),
    ("drain raw", OURS_SQLITE, ("raw-rows-sqlite",), DRAIN_2),
)


def verdicts(results: Mapping[str, Figures]) -> Iterator[Verdict]:
    """Yields a verdict for each goal that this run can judge."""
    nothing = Figures()
    for goal, own, peers, phase in RATES:
        ours = results.get(own, nothing).rate(phase)
        rates = {one: results.get(one, nothing).rate(phase) or 0.0 for one in peers}
        best = max(rates, key=lambda one: rates[one])
        if ours and rates[best]:
            beside = f"{shown(ours, '')} to {shown(rates[best], 'tasks/s')} of {best}"
            yield Verdict(goal, ours / rates[best], beside)
    for store, own in (("sqlite", OURS_SQLITE), ("postgres", OURS_POSTGRES)):
        for percent in (50, 99):
            milliseconds = results.get(own, nothing).wakeup_ms(percent)
            if milliseconds is not None:
                yield Verdict(f"wakeup {store} p{percent}", milliseconds)
