"""Makes a page of a sketch: runs the steps of the layout and says where everything stands.

The second half of a layout finds the height at which each box and bend stands. In each column,
cells and the edges of frames form a chain from top to bottom, with a least distance between
neighbours. Frames have the same order in every column, so the chains have no circle, and one
walk along them, from top to bottom, settles everything.

The order in the columns is fixed. Each column is moved as near as it can be to its neighbours,
which makes chains straight; then the frames are pushed apart until each has its rectangle for
itself, and the columns are moved once more within these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from math import inf
from unicodedata import east_asian_width

from tidewheel.cli.drawing.layers import (
    Lattice,
    build_lattice,
    find_ranks,
    from_first_to_last,
    nearest_rising,
    order_columns,
    without_circles,
)
from tidewheel.cli.drawing.sketch import NO_FRAME, Frame, Sketch, frames_around
from tidewheel.lazy_dataclasses import NamedTuple, dataclass

LETTER_WIDTH = 7.3  # of the writer's font
LINE_HEIGHT = 15.0
BOX_PAD = 10.0
BEND_HEIGHT = 2.0
COLUMN_GAP = 52.0
LABEL_ROOM = 26.0  # a line's label has its width and this much between two columns
MARGIN = 16.0
SUICIDE_SHIFT = 7.0


class Rectangle(NamedTuple):
    """Holds a place on the page: its upper left corner, and its size."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class PageLayout:
    """Says where the boxes, lines and frames of a sketch stand on the page, in the sketch's
    order."""

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
    """Returns the places of boxes, lines and frames on a page; the same sketch gives the
    same page."""
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
    """Turns the columns of cells and the heights of their middles into places on the page."""

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
        # Each frame's title stands over the first of its columns.
        firsts: dict[int, int] = {}
        for frame, rank in zip(self._lattice.frames, self._lattice.ranks, strict=True):
            for around in frames_around(frame, self._sketch.frames):
                firsts[around] = min(firsts.get(around, rank), rank)
        for frame, rank in firsts.items():
            widths[rank] = max(widths[rank], text_width(self._sketch.frames[frame].title))
        labels = [text_width(line.label) for line in self._sketch.lines if line.label]
        gap = max(COLUMN_GAP, max(labels, default=0.0) + LABEL_ROOM, self._frame_room())
        lefts = [0.0]
        for width in widths:
            lefts.append(lefts[-1] + width + gap)
        return lefts, widths

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


# ---- the second half: the height at which each box and bend stands ----

# Rectangles for frames: pushes cells and frames down until nothing overlaps.

FRAME_GAP = 14.0
FRAME_PAD = 9.0
FRAME_HEAD = 24.0  # the padding above, with room for the title


Cells = Sequence[Sequence[int]]
Frames = tuple[Frame, ...]


class FrameSpan(NamedTuple):
    """Holds the heights at which a frame begins and ends."""

    top: float
    bottom: float


def parted(above: Sequence[int], below: Sequence[int]) -> tuple[list[int], list[int]]:
    """Returns the frames that end and those that begin between two cells, outermost first."""
    same = 0
    while same < min(len(above), len(below)) and above[same] == below[same]:
        same += 1
    return list(above[same:]), list(below[same:])


class _Walls:
    """Holds the least distances between cells, tops of frames and bottoms of frames.

    `paths` has the frames around each cell, outermost first; `count` is how many frames there
    are.
    """

    def __init__(
        self,
        paths: Cells,
        heights: Sequence[float],
        count: int,
        gap: Callable[[int, int], float],
    ) -> None:
        self._paths, self._heights, self._gap = paths, heights, gap
        self._cell_count = len(paths)
        self._below: list[dict[int, float]] = [{} for _ in range(self._cell_count + 2 * count)]

    def top(self, frame: int) -> int:
        return self._cell_count + 2 * frame

    def bottom(self, frame: int) -> int:
        return self._cell_count + 2 * frame + 1

    def add_column(self, column: Sequence[int]) -> None:
        chain: list[int] = []
        inside: Sequence[int] = ()
        for cell in column:
            path = self._paths[cell]
            closed, opened = parted(inside, path)
            chain += [self.bottom(frame) for frame in reversed(closed)]
            chain += [self.top(frame) for frame in opened]
            chain.append(cell)
            inside = path
        chain += [self.bottom(frame) for frame in reversed(inside)]
        for above, below in pairwise(chain):
            distance = self._distance(above, below)
            self._below[above][below] = max(distance, self._below[above].get(below, 0.0))

    def _distance(self, above: int, below: int) -> float:
        room = sum(self._heights[one] / 2 for one in (above, below) if self._is_cell(one))
        if self._is_top(above):
            return room + FRAME_HEAD
        if not self._is_cell(below) and not self._is_top(below):
            return room + FRAME_PAD
        if self._is_cell(above) and self._is_cell(below):
            return room + self._gap(above, below)
        return room + FRAME_GAP

    def settle(self, wished: Sequence[float]) -> list[float]:
        """Returns the height of each cell and of the top and bottom of each frame.

        Each has the height wished for, or one as little below it as the distances allow.
        """
        # Frames are in the same order everywhere, so there is one.
        order = from_first_to_last(self._below)
        places = [*wished, *([-inf] * (len(self._below) - len(wished)))]
        self._raise_tops(order, places)
        for one in order:
            for other, distance in self._below[one].items():
                places[other] = max(places[other], places[one] + distance)
        self._raise_tops(order, places)
        return places

    def _raise_tops(self, order: Sequence[int], places: list[float]) -> None:
        """Puts the top of each frame above the highest place of what is in it."""
        for top in filter(self._is_top, reversed(order)):
            below = self._below[top].items()
            places[top] = min(places[one] - distance for one, distance in below)

    def _is_cell(self, one: int) -> bool:
        return one < self._cell_count

    def _is_top(self, one: int) -> bool:
        return one >= self._cell_count and (one - self._cell_count) % 2 == 0


# Long lines made straight: bends that follow each other get one height where there is room.

Room = Callable[[int], tuple[float, float]]


def straighten(lattice: Lattice, middles: list[float], room: Room) -> None:
    """Straightens long lines by changing `middles`.

    `room` says how far up and down a cell may go right now.
    """
    left: dict[int, list[int]] = {}
    right: dict[int, list[int]] = {}
    for one, other in lattice.links:
        left.setdefault(other, []).append(one)
        right.setdefault(one, []).append(other)
    for run in sorted(_runs(lattice, left, right), key=len, reverse=True):
        ups, downs = zip(*map(room, run), strict=True)
        low, high = max(ups), min(downs)
        if low <= high:
            # The height of the end which is nearest to where the bends are.
            mean = sum(middles[bend] for bend in run) / len(run)
            ends = (middles[one] for one in (*left.get(run[0], ()), *right.get(run[-1], ())))
            height = min(ends, key=lambda end: abs(end - mean), default=mean)
            for bend in run:
                middles[bend] = max(low, min(height, high))


def _runs(
    lattice: Lattice, left: dict[int, list[int]], right: dict[int, list[int]]
) -> list[list[int]]:
    """Returns series of bends, each as long as possible, in which a bend leads to one other."""

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


# The fourth step of a layout: how far down each cell stands.

SWEEPS_ONE_WAY = 8  # a column looks at the one before it
SWEEPS = 12  # the others look both ways
BOX_GAP = 14.0
BEND_GAP = 7.0
# How hard a link pulls, by how many of its ends are bends: long lines shall be straight.
PULLS = (1.0, 2.0, 8.0)
AT_REST = 0.01  # the weight of staying where it is, for a cell without neighbours

# Who pulls at each cell, and how hard.
Pulls = list[list[tuple[int, float]]]


@dataclass(slots=True)
class _Column:
    cells: list[int]
    offsets: list[float]  # the least distance of each cell from the first


class Placer:
    """Finds the height of each cell by moving cells in their columns; `middles` has the
    heights."""

    def __init__(
        self, lattice: Lattice, columns: Cells, heights: Sequence[float], frames: Frames
    ) -> None:
        self._lattice, self._heights, self._frames = lattice, heights, frames
        around = (list(frames_around(frame, frames)) for frame in lattice.frames)
        self._paths = [path[::-1] for path in around]  # outermost first
        self._columns = [_Column(list(column), self._offsets(column)) for column in columns]
        self.middles = [0.0] * len(lattice.ranks)
        for column in self._columns:
            for cell, offset in zip(column.cells, column.offsets, strict=True):
                self.middles[cell] = offset - column.offsets[-1] / 2
        self._left, self._right = self._pulls()
        self.spans: list[FrameSpan] = []

    def place(self) -> None:
        self._sweep_all()
        if self._frames:
            self._push_apart()
            self._sweep_all()
        straighten(self._lattice, self.middles, self._room())

    def _push_apart(self) -> None:
        """Pushes frames apart until each has its rectangle for itself."""
        count = len(self._frames)
        walls = _Walls(self._paths, self._heights, count, self.gap)
        for column in self._columns:
            walls.add_column(column.cells)
        places = walls.settle(self.middles)
        self.middles = places[: len(self.middles)]
        self.spans = [
            FrameSpan(places[walls.top(one)], places[walls.bottom(one)]) for one in range(count)
        ]

    def gap(self, above: int, below: int) -> float:
        """Returns how much room must stay free between two cells."""
        is_box = self._lattice.is_box
        return BOX_GAP if is_box(above) and is_box(below) else BEND_GAP

    def _sweep_all(self) -> None:
        for number in range(SWEEPS):
            to_right = number % 2 == 0
            sides = [self._left if to_right else self._right]
            if number >= SWEEPS_ONE_WAY:
                sides = [self._left, self._right]
            for column in self._columns if to_right else reversed(self._columns):
                self._move(column, sides)

    def _move(self, column: _Column, sides: Sequence[Pulls]) -> None:
        wishes, weights = [], []
        for cell, offset in zip(column.cells, column.offsets, strict=True):
            pull, mass = self.middles[cell] * AT_REST, AT_REST
            for side in sides:
                for other, strength in side[cell]:
                    pull += self.middles[other] * strength
                    mass += strength
            wishes.append(pull / mass - offset)
            weights.append(mass)
        levels = nearest_rising(wishes, weights)
        if self.spans:
            levels = self._within_frames(column, levels)
        for cell, offset, level in zip(column.cells, column.offsets, levels, strict=True):
            self.middles[cell] = level + offset

    def _within_frames(self, column: _Column, levels: list[float]) -> list[float]:
        lows, highs = self._bounds(column)
        lows, highs = list(accumulate(lows, max)), list(accumulate(highs[::-1], min))[::-1]
        bounds = zip(lows, levels, highs, strict=True)
        return [max(low, min(level, high)) for low, level, high in bounds]

    def _bounds(self, column: _Column) -> tuple[list[float], list[float]]:
        """Returns the least and the greatest height of each cell in a column, less its
        offset."""
        lows, highs = [], []
        for cell, offset in zip(column.cells, column.offsets, strict=True):
            half = self._heights[cell] / 2
            frame = self._lattice.frames[cell]
            low, high = -inf, inf
            if frame != NO_FRAME:
                low = self.spans[frame].top + FRAME_HEAD + half
                high = self.spans[frame].bottom - FRAME_PAD - half
            lows.append(low - offset)
            highs.append(high - offset)
        for number, (above, below) in enumerate(pairwise(column.cells)):
            closed, opened = parted(self._paths[above], self._paths[below])
            if closed:
                edge = self.spans[closed[0]].bottom + FRAME_GAP + self._heights[below] / 2
                lows[number + 1] = max(lows[number + 1], edge - column.offsets[number + 1])
            if opened:
                edge = self.spans[opened[0]].top - FRAME_GAP - self._heights[above] / 2
                highs[number] = min(highs[number], edge - column.offsets[number])
        return lows, highs

    def _room(self) -> Callable[[int], tuple[float, float]]:
        """Returns a function that says how far up and down a cell may go between its
        neighbours and the walls of its frames."""
        where = {
            cell: (column, number)
            for column in self._columns
            for number, cell in enumerate(column.cells)
        }
        walls = [self._bounds(column) if self.spans else ([], []) for column in self._columns]

        def room(cell: int) -> tuple[float, float]:
            column, number = where[cell]
            offset = column.offsets[number]
            low, high = -inf, inf
            if self.spans:
                lows, highs = walls[self._lattice.ranks[cell]]
                low, high = lows[number] + offset, highs[number] + offset
            if number:
                above = column.cells[number - 1]
                low = max(low, self.middles[above] + offset - column.offsets[number - 1])
            if number + 1 < len(column.cells):
                below = column.cells[number + 1]
                high = min(high, self.middles[below] + offset - column.offsets[number + 1])
            return low, high

        return room

    def _offsets(self, column: Sequence[int]) -> list[float]:
        offsets = [0.0] if column else []
        for above, below in pairwise(column):
            closed, opened = parted(self._paths[above], self._paths[below])
            room = (self._heights[above] + self._heights[below]) / 2
            if closed or opened:
                room += FRAME_GAP + FRAME_PAD * len(closed) + FRAME_HEAD * len(opened)
            else:
                room += self.gap(above, below)
            offsets.append(offsets[-1] + room)
        return offsets

    def _pulls(self) -> tuple[Pulls, Pulls]:
        left: Pulls = [[] for _ in self.middles]
        right: Pulls = [[] for _ in self.middles]
        following = Counter(one for one, _ in self._lattice.links)
        preceding = Counter(other for _, other in self._lattice.links)
        for one, other in self._lattice.links:
            strength = PULLS[self._lattice.is_bend(one) + self._lattice.is_bend(other)]
            # A cell with many neighbours pulls each of them less: a child with one parent
            # keeps that box beside it, a child with many parents does not.
            left[other].append((one, strength / following[one]))
            right[one].append((other, strength / preceding[other]))
        return left, right
