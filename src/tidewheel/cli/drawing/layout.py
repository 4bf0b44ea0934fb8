"""Makes a page of a sketch: runs the steps of the layout and says where everything stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import NamedTuple
from unicodedata import east_asian_width

from tidewheel.cli.drawing.layers import (
    Lattice,
    build_lattice,
    find_ranks,
    order_columns,
    without_circles,
)
from tidewheel.cli.drawing.placement import FRAME_HEAD, FRAME_PAD, Placer
from tidewheel.cli.drawing.sketch import NO_FRAME, Sketch, frames_around

LETTER_WIDTH = 7.3  # of the writer's font
LINE_HEIGHT = 15.0
BOX_PAD = 10.0
BEND_HEIGHT = 2.0
COLUMN_GAP = 52.0
LABEL_ROOM = 26.0  # a line's label has its width and this much between two columns
MARGIN = 16.0
SUICIDE_SHIFT = 7.0


class Rectangle(NamedTuple):
    """Is a place on the page, measured from its upper left corner."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class PageLayout:
    """Says where everything stands, in the order of the sketch."""

    width: float
    height: float
    boxes: tuple[Rectangle, ...]
    # From the parent to the child; two neighbouring points of one height are a straight line.
    routes: tuple[tuple[tuple[float, float], ...], ...]
    frames: tuple[Rectangle, ...]


def text_width(text: str) -> float:
    """Returns the width of a text in the writers' font; wide letters count twice."""
    return LETTER_WIDTH * sum(2 if east_asian_width(one) in "WF" else 1 for one in text)


def lay_out(sketch: Sketch) -> PageLayout:
    """Gives boxes and lines their places on a page. The same sketch gives the same page."""
    count = len(sketch.boxes)
    pairs = without_circles(count, [(line.parent, line.child) for line in sketch.lines])
    lattice = build_lattice(sketch, find_ranks(count, pairs))
    columns = order_columns(lattice, sketch.frames)
    heights = [LINE_HEIGHT * len(box.lines) + BOX_PAD for box in sketch.boxes]
    heights += [BEND_HEIGHT] * (lattice.fillers_from - count)
    heights += [0.0] * (len(lattice.ranks) - lattice.fillers_from)
    placer = Placer(lattice, columns, heights, sketch.frames)
    placer.place()
    return _Drafter(sketch, lattice, placer.middles, heights).page()


class _Drafter:
    """Turns columns and middles into places on the page."""

    def __init__(
        self, sketch: Sketch, lattice: Lattice, middles: list[float], heights: list[float]
    ) -> None:
        self._sketch, self._lattice = sketch, lattice
        self._middles, self._heights = middles, heights
        self._widths = [
            max(text_width(text) for text in box.lines) + 2 * BOX_PAD for box in sketch.boxes
        ]
        self._lefts, self._column_widths = self._columns()

    def page(self) -> PageLayout:
        boxes = [self._box(cell) for cell in range(len(self._sketch.boxes))]
        frames = self._frames(boxes)
        everything = [*boxes, *frames]
        routes = [self._route(number, boxes) for number in range(len(self._sketch.lines))]
        heights = [y for route in routes for _, y in route]
        heights += [edge for one in everything for edge in (one.y, one.y + one.height)]
        left = min((one.x for one in everything), default=0.0) - MARGIN
        right = max((one.x + one.width for one in everything), default=0.0) + MARGIN
        top, bottom = min(heights, default=0.0) - MARGIN, max(heights, default=0.0) + MARGIN
        return PageLayout(
            round(right - left, 1),
            round(bottom - top, 1),
            tuple(_moved(one, -left, -top) for one in boxes),
            tuple(
                tuple((round(x - left, 1), round(y - top, 1)) for x, y in route)
                for route in routes
            ),
            tuple(_moved(one, -left, -top) for one in frames),
        )

    def _columns(self) -> tuple[list[float], list[float]]:
        """Returns the left edge and the width of each column."""
        widths = [0.0] * (max(self._lattice.ranks, default=-1) + 1)
        for width, rank in zip(self._widths, self._lattice.ranks, strict=False):
            widths[rank] = max(widths[rank], width)
        for title, rank in self._titles():
            widths[rank] = max(widths[rank], text_width(title))
        labels = [text_width(line.label) for line in self._sketch.lines if line.label]
        gap = max(COLUMN_GAP, max(labels, default=0.0) + LABEL_ROOM, self._frame_room())
        lefts = [0.0]
        for width in widths:
            lefts.append(lefts[-1] + width + gap)
        return lefts, widths

    def _titles(self) -> Iterator[tuple[str, int]]:
        """Yields each frame's title, and the column that it stands over."""
        firsts: dict[int, int] = {}
        for frame, rank in zip(self._lattice.frames, self._lattice.ranks, strict=True):
            for around in frames_around(frame, self._sketch.frames):
                firsts[around] = min(firsts.get(around, rank), rank)
        for frame, rank in firsts.items():
            yield self._sketch.frames[frame].title, rank

    def _frame_room(self) -> float:
        depths: list[int] = []
        for frame in self._sketch.frames:
            depths.append(1 if frame.parent == NO_FRAME else depths[frame.parent] + 1)
        return 2 * FRAME_PAD * max(depths, default=0) + LABEL_ROOM

    def _box(self, cell: int) -> Rectangle:
        rank = self._lattice.ranks[cell]
        width, height = self._widths[cell], self._heights[cell]
        left = self._lefts[rank] + (self._column_widths[rank] - width) / 2
        return Rectangle(left, self._middles[cell] - height / 2, width, height)

    def _route(self, number: int, boxes: list[Rectangle]) -> list[tuple[float, float]]:
        line, chain = self._sketch.lines[number], self._lattice.chains[number]
        first, last = boxes[chain[0]], boxes[chain[-1]]
        if line.parent == line.child:  # a loop around its upper right corner
            right, middle = first.x + first.width, first.y + first.height / 2
            return [(right, middle), (right - BOX_PAD, first.y)]
        points = [(first.x + first.width, self._middles[chain[0]])]
        for bend in chain[1:-1]:
            left = self._lefts[self._lattice.ranks[bend]]
            width = self._column_widths[self._lattice.ranks[bend]]
            points += [(left, self._middles[bend]), (left + width, self._middles[bend])]
        points.append((last.x, self._middles[chain[-1]]))
        if line.suicide:  # beside the ordinary line between the same boxes
            points = [(x, y + SUICIDE_SHIFT) for x, y in points]
        return points if chain[0] == line.parent else points[::-1]

    def _frames(self, boxes: list[Rectangle]) -> list[Rectangle]:
        """Returns each frame, around the columns and heights of its cells, bends included."""
        edges = [[inf, inf, -inf, -inf] for _ in self._sketch.frames]
        for cell, frame in enumerate(self._lattice.frames):
            if frame == NO_FRAME:
                continue
            left = self._lefts[self._lattice.ranks[cell]]
            right = left + self._column_widths[self._lattice.ranks[cell]]
            half = boxes[cell].height / 2 if self._lattice.is_box(cell) else 0.0
            middle = self._middles[cell]
            _widen(edges[frame], left, middle - half, right, middle + half)
        for number in reversed(range(len(edges))):
            left, top, right, bottom = edges[number]
            around = [left - FRAME_PAD, top - FRAME_HEAD, right + FRAME_PAD, bottom + FRAME_PAD]
            edges[number] = around
            parent = self._sketch.frames[number].parent
            if parent != NO_FRAME:
                _widen(edges[parent], *around)
        return [Rectangle(x, y, right - x, bottom - y) for x, y, right, bottom in edges]


def _widen(edges: list[float], left: float, top: float, right: float, bottom: float) -> None:
    edges[0], edges[1] = min(edges[0], left), min(edges[1], top)
    edges[2], edges[3] = max(edges[2], right), max(edges[3], bottom)


def _moved(one: Rectangle, right: float, down: float) -> Rectangle:
    moved = (one.x + right, one.y + down, one.width, one.height)
    return Rectangle(*(round(value, 1) for value in moved))
