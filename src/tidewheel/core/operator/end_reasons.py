"""The reason beside the status of a run says how it ended: it is written and read here.

A completed run may hold tasks whose work was not done. *Lost*: a task that did not run because
something it needs failed and was handled (SEMANTICS §5). *Skipped*: a task that expired, or
that somebody removed by hand. A branch that was not taken is neither, nor is a task that the
graph removed (suicide), nor one that succeeds without a job because its run mode says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tidewheel.core.sched.stall import NOTHING_RAN

UndoneKind = Literal["lost", "skipped"]
UNDONE_KINDS: tuple[UndoneKind, ...] = ("lost", "skipped")

_COMPLETED = re.compile(r"completed(?:, (?P<lost>\d+) lost)?(?:, (?P<skipped>\d+) skipped)?")
_RAN_NOTHING = NOTHING_RAN.removeprefix("completed")
ABORTED_BY = "aborted by "  # so begins the reason of a block that somebody has aborted
_ABORTED_FOR = "aborted: "
_OWN_STOP_POINT = "stopped: at its stop point "
_LATER_STOP_POINT = "stopped: after point "


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """Holds how many tasks of a completed run were not done, by why not."""

    lost: int = 0
    skipped: int = 0

    @property
    def text(self) -> str:
        """`2 lost, 1 skipped`; empty if all was done."""
        counts = [(kind, self.count(kind)) for kind in UNDONE_KINDS]
        return ", ".join(f"{count} {kind}" for kind, count in counts if count)

    def count(self, kind: UndoneKind) -> int:
        return self.lost if kind == "lost" else self.skipped


def with_undone(reason: str, undone: Undone) -> str:
    """The reason of a completed run, with what was not done: `completed, 2 lost`."""
    told = ", ".join(["completed", undone.text] if undone.text else ["completed"])
    return _COMPLETED.sub(told, reason, count=1)


def undone_in(reason: str) -> Undone:
    """Returns what `with_undone` wrote."""
    found = _COMPLETED.match(reason)
    counts = {} if found is None else found.groupdict(default="0")
    return Undone(**{kind: int(counts.get(kind, "0")) for kind in UNDONE_KINDS})


def ran_nothing(reason: str) -> bool:
    """Says whether a completed run had no task that was ever ready, whatever else is told."""
    found = _COMPLETED.match(reason)
    return found is not None and reason.startswith(_RAN_NOTHING, found.end())


def aborted_for(why: str) -> str:
    """The reason of a run that has aborted by itself."""
    return f"{_ABORTED_FOR}{why}"


def was_aborted(reason: str) -> bool:
    """Says whether the run aborted, by itself or since somebody wanted it."""
    return reason.startswith((_ABORTED_FOR, ABORTED_BY))


def stopped_at(point: str, *, is_own: bool) -> str:
    """The reason of a run that has reached its stop point: its own, or one that it was told."""
    return f"{_OWN_STOP_POINT if is_own else _LATER_STOP_POINT}{point}"


def is_at_own_stop_point(reason: str) -> bool:
    """Says whether the run stopped where its definition or its options say."""
    return reason.startswith(_OWN_STOP_POINT)
