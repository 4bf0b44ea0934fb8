"""The chain of waits that determined when a rehearsal ended.

Each submission knows what let it go: the task whose end, start or output did, or a clock. From
the one that ended last the chain is followed back until something is reached that no task
delayed.
"""

from __future__ import annotations

from typing import NamedTuple

from tidewheel.quantities import show_duration
from tidewheel.services.rehearsal.record import Rehearsal, Submission, WaitedFor

_WORDS = {
    WaitedFor.START: "start",
    WaitedFor.PARENT: "parent {blocker}",
    WaitedFor.LIMIT: "limit: room in its group, left by {blocker}",
    WaitedFor.RUNAHEAD: "runahead: {blocker} was among the oldest",
    WaitedFor.CLOCK: "clock: {clock}",
    WaitedFor.RETRY: "retry delay of {idle}",
    WaitedFor.XTRIGGER: "xtrigger, {idle} after {blocker}",
    WaitedFor.SLOT: "slot: the worker was full, until {blocker}",
}


class Hop(NamedTuple):
    """A submission on the path; `idle_seconds` are those before it in which none of it ran."""

    submission: Submission
    idle_seconds: float


def critical_path(rehearsal: Rehearsal) -> list[Hop]:
    """From the first to the last; empty if nothing ran."""
    last = max(
        (one for one in rehearsal.submissions if one.end_at is not None),
        key=lambda one: one.end_at or 0.0,
        default=None,
    )
    path: list[Hop] = []
    while last is not None:
        before = last.blocker
        path.append(Hop(last, _idle(rehearsal, before, last)))
        last = before
    path.reverse()
    return path


def _idle(rehearsal: Rehearsal, before: Submission | None, after: Submission) -> float:
    """Time in which neither ran; a child may start before its parent ends."""
    assert after.start_at is not None
    since = rehearsal.begins_at if before is None else before.end_at
    return 0.0 if since is None else max(0.0, after.start_at - since)


def reason_text(hop: Hop, rehearsal: Rehearsal) -> str:
    """Why a submission did not start earlier, in words."""
    one = hop.submission
    blocker = "the start" if one.blocker_key is None else rehearsal.id_of(one.blocker_key)
    clock = None if one.start_at is None else rehearsal.clock_text(one.start_at)
    return _WORDS[one.waited_for].format(
        blocker=blocker, clock=clock, idle=span(hop.idle_seconds)
    )


def span(seconds: float) -> str:
    """Nothing is 0s, not 0ms."""
    return show_duration(seconds) if seconds else "0s"
