"""The second step of a layout: cells in columns, so that every link is one column long.

A line over several columns gets a bend in each of them; lines from one box share their bends as
far as they go together. A frame that has nothing in one of its columns gets a filler there, so
that nothing else is put into the middle of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tidewheel.cli.drawing.sketch import NO_FRAME, Sketch, frames_around


@dataclass(slots=True)
class Lattice:
    """Cells: first the boxes of the sketch, then bends, then fillers."""

    box_count: int
    ranks: list[int]
    frames: list[int]
    # The cells of each line of the sketch, from left to right.
    chains: list[list[int]] = field(default_factory=list)
    links: list[tuple[int, int]] = field(default_factory=list)
    fillers_from: int = 0

    def is_box(self, cell: int) -> bool:
        return cell < self.box_count

    def is_bend(self, cell: int) -> bool:
        return self.box_count <= cell < self.fillers_from

    def columns(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in range(max(self.ranks, default=-1) + 1)]
        for cell, rank in enumerate(self.ranks):
            found[rank].append(cell)
        return found


def build_lattice(sketch: Sketch, ranks: Sequence[int]) -> Lattice:
    """Bends for long lines and fillers for frames; lines run from left to right here."""
    lattice = Lattice(len(sketch.boxes), list(ranks), [box.frame for box in sketch.boxes])
    bends: dict[tuple[int, int, int], int] = {}
    links: dict[tuple[int, int], None] = {}
    for line in sketch.lines:
        left, right = line.parent, line.child
        if ranks[left] > ranks[right]:
            left, right = right, left
        frame = _common_frame(sketch, left, right)
        chain = [left]
        for rank in range(ranks[left] + 1, ranks[right]):
            bend = bends.get((left, frame, rank))
            if bend is None:
                bend = bends[left, frame, rank] = _add(lattice, rank, frame)
            chain.append(bend)
        if right != left:
            chain.append(right)
        lattice.chains.append(chain)
        links.update(dict.fromkeys(pairwise(chain)))
    lattice.links = list(links)
    lattice.fillers_from = len(lattice.ranks)
    _add_fillers(lattice, sketch)
    return lattice


def _common_frame(sketch: Sketch, first: int, second: int) -> int:
    around = set(frames_around(sketch.boxes[first].frame, sketch.frames))
    others = frames_around(sketch.boxes[second].frame, sketch.frames)
    return next((frame for frame in others if frame in around), NO_FRAME)


def _add_fillers(lattice: Lattice, sketch: Sketch) -> None:
    present: list[set[int]] = [set() for _ in sketch.frames]
    for cell, rank in enumerate(lattice.ranks):
        for frame in frames_around(lattice.frames[cell], sketch.frames):
            present[frame].add(rank)
    for frame, ranks in enumerate(present):
        for rank in range(min(ranks, default=0), max(ranks, default=-1)):
            if rank not in ranks:
                _add(lattice, rank, frame)


def _add(lattice: Lattice, rank: int, frame: int) -> int:
    lattice.ranks.append(rank)
    lattice.frames.append(frame)
    return len(lattice.ranks) - 1
