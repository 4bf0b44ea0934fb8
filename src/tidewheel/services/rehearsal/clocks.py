"""When xtriggers are satisfied in a rehearsal: a clock's in time, others after one check."""

from __future__ import annotations

from typing import NamedTuple

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.graph import Graph
from tidewheel.core.queue.task import Instant
from tidewheel.services.clock_triggers import ClockTriggers

MESSAGE = "message/"  # how the core names an external trigger
INTERVAL_SECONDS = 10.0  # of what has none of its own


class Check(NamedTuple):
    """When a check ends well; `assumed` says what was taken for granted."""

    at: Instant
    is_clock: bool
    assumed: str = ""


class Clocks:
    """The xtriggers of a graph."""

    def __init__(self, graph: Graph) -> None:
        self._triggers = ClockTriggers(graph.xtriggers, graph.cycling)
        self._is_integer = graph.cycling.is_integer

    def check(self, label: str, point: Point, now: Instant) -> Check:
        """A check that begins now."""
        xtrigger = self._triggers.find(label)
        if xtrigger is None:
            text = f"the message {label.removeprefix(MESSAGE)!r} comes after "
            return Check(
                Instant(now + INTERVAL_SECONDS), False, f"{text}{INTERVAL_SECONDS:g} s"
            )
        due_at = self._triggers.due_at(label, point)
        if due_at is not None and not self._is_integer:
            return Check(Instant(max(now, due_at)), True)
        seconds = xtrigger.interval_seconds
        text = f"xtrigger {label} ({xtrigger.function}) is satisfied after {seconds:g} s"
        return Check(Instant(now + seconds), False, text)
