"""Who runs when, ready to be drawn: lanes in which no two bars overlap, and an axis."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from tidewheel.services.rehearsal.record import Rehearsal, Submission

MARKS_WANTED = 8
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
# Between two marks on an axis, as people divide time.
_STEPS = (
    *(1, 2, 5, 10, 15, 30),
    *(minutes * _MINUTE for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * _HOUR for hours in (1, 2, 3, 6, 12)),
    *(days * _DAY for days in (1, 2, 5, 10, 30, 60, 90, 180, 365, 730, 1825, 3650)),
)


class Lane(NamedTuple):
    """Bars beside each other; only the first lane of a name has a title."""

    title: str
    bars: list[Submission]


def lanes(rehearsal: Rehearsal, bars_max: int) -> tuple[list[Lane], int]:
    """As many lanes for a name as run at once; and how many bars were left out."""
    started = [one for one in rehearsal.submissions if one.start_at is not None]
    shown = started[:bars_max]
    by_name: dict[str, list[Submission]] = {}
    for one in shown:
        by_name.setdefault(one.key[1], []).append(one)
    found: list[Lane] = []
    for name in rehearsal.graph.nodes:
        for number, bars in enumerate(_apart(by_name.get(name, ()))):
            found.append(Lane("" if number else name, bars))
    return found, len(started) - len(shown)


def _apart(submissions: Sequence[Submission]) -> list[list[Submission]]:
    rows: list[list[Submission]] = []
    free: list[int] = []  # rows, the topmost first
    busy: list[tuple[float, int]] = []  # until when which row is
    for one in sorted(submissions, key=lambda one: (one.start_at or 0.0, one.key)):
        begin = min(one.ready_at, one.start_at or 0.0)
        while busy and busy[0][0] <= begin:
            heappush(free, heappop(busy)[1])
        if free:
            row = heappop(free)
        else:
            row = len(rows)
            rows.append([])
        rows[row].append(one)
        heappush(busy, (one.end_at or begin, row))
    return rows


def marks(seconds: float, wanted: int = MARKS_WANTED) -> list[int]:
    """Round numbers of seconds from 0 to the end."""
    step = next((one for one in _STEPS if seconds / one <= wanted), None)
    if step is None:
        step = max(_STEPS[-1], int(seconds / wanted))
    return list(range(0, int(seconds) + 1, step))
