"""Long lines made straight: bends that follow each other get one height where there is room."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from tidewheel.cli.drawing.lattice import Lattice

Room = Callable[[int], tuple[float, float]]


def straighten(lattice: Lattice, middles: list[float], room: Room) -> None:
    """Changes `middles`; `room` says how far up and down a cell may go right now."""
    left: dict[int, list[int]] = {}
    right: dict[int, list[int]] = {}
    for one, other in lattice.links:
        left.setdefault(other, []).append(one)
        right.setdefault(one, []).append(other)
    for run in sorted(_runs(lattice, left, right), key=len, reverse=True):
        low, high = _shared_room(run, room)
        if low <= high:
            ends = [*left.get(run[0], ()), *right.get(run[-1], ())]
            height = _wished_height(run, ends, middles)
            for bend in run:
                middles[bend] = max(low, min(height, high))


def _runs(
    lattice: Lattice, left: dict[int, list[int]], right: dict[int, list[int]]
) -> list[list[int]]:
    """Bends that lead to one bend each, as long as possible."""

    def next_bend(cell: int) -> int | None:
        bends = [one for one in right.get(cell, ()) if lattice.is_bend(one)]
        return bends[0] if len(bends) == 1 else None

    runs = []
    for cell in range(lattice.box_count, lattice.fillers_from):
        if any(lattice.is_bend(one) and next_bend(one) == cell for one in left.get(cell, ())):
            continue  # in the middle of another run
        run = [cell]
        while (following := next_bend(run[-1])) is not None:
            run.append(following)
        runs.append(run)
    return runs


def _shared_room(run: Sequence[int], room: Room) -> tuple[float, float]:
    low, high = -inf, inf
    for bend in run:
        up, down = room(bend)
        low, high = max(low, up), min(high, down)
    return low, high


def _wished_height(run: Sequence[int], ends: Sequence[int], middles: Sequence[float]) -> float:
    """That of the end which is nearest to where the bends are."""
    mean = sum(middles[bend] for bend in run) / len(run)
    heights = (middles[one] for one in ends)
    return min(heights, key=lambda height: abs(height - mean), default=mean)
