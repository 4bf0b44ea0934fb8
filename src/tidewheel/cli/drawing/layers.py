"""Does the first half of a layout: finds each box's column, and the order within a column.

Every line goes to a later column. Where lines go round in a circle, one of them is turned for
the layout; columns start as far left as they can and are then moved to shorten the lines.

A line over several columns gets a bend in each of them; lines from one box share their bends as
far as they go together. A frame that has nothing in one of its columns gets a filler there, so
that nothing else is put into the middle of it.

Sweeps to and fro put each cell near the mean of its neighbours in the column before; the order
with the fewest crossings wins. A frame keeps its cells together, and two frames have the same
order in every column: that is what makes it possible to draw a rectangle around each.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import field
from itertools import chain, pairwise

from tidewheel.cli.drawing.sketch import NO_FRAME, Frame, Sketch, frames_around
from tidewheel.lazy_dataclasses import dataclass

# The first step of a layout: in which column each box stands.

Pair = tuple[int, int]

PASSES = 8


def turned_lines(count: int, pairs: Sequence[Pair]) -> frozenset[Pair]:
    """Returns the pairs to turn round so that no circle is left; pairs of a box with itself
    are ignored."""
    following = _neighbours(count, pairs)
    turned: set[Pair] = set()
    state = [0] * count  # 0 not seen, 1 on the path, 2 left for good
    for root in range(count):
        if state[root]:
            continue
        path = [(root, iter(following[root]))]
        state[root] = 1
        while path:
            here, others = path[-1]
            after = next(others, None)
            if after is None:
                state[here] = 2
                path.pop()
            elif state[after] == 1:
                turned.add((here, after))
            elif state[after] == 0:
                state[after] = 1
                path.append((after, iter(following[after])))
    return frozenset(turned)


def find_ranks(count: int, pairs: Sequence[Pair]) -> list[int]:
    """Returns the column of each box, so that lines are short; the pairs must have no
    circle."""
    following = _neighbours(count, pairs)
    preceding = _neighbours(count, [(child, parent) for parent, child in pairs])
    order = from_first_to_last(following)
    ranks = find_depths(count, pairs)
    for number in range(PASSES):
        moved = [
            _shorten(here, ranks, preceding[here], following[here])
            for here in (reversed(order) if number % 2 == 0 else order)
        ]
        if not any(moved):
            break
    lowest = min(ranks, default=0)
    return [rank - lowest for rank in ranks]


def find_depths(count: int, pairs: Sequence[Pair]) -> list[int]:
    """Returns the length of the longest path to each box; the pairs must have no circle."""
    following = _neighbours(count, pairs)
    depths = [0] * count
    for here in from_first_to_last(following):
        for after in following[here]:
            depths[after] = max(depths[after], depths[here] + 1)
    return depths


def without_circles(count: int, pairs: Sequence[Pair]) -> list[Pair]:
    """Returns pairs that have no circle: some are turned round, those of a box with itself
    left out."""
    turned = turned_lines(count, pairs)
    return [
        (child, parent) if (parent, child) in turned else (parent, child)
        for parent, child in pairs
        if parent != child
    ]


def _shorten(
    here: int, ranks: list[int], preceding: Sequence[int], following: Sequence[int]
) -> bool:
    """Moves a box to where its lines are shortest, between its parents and its children. Says
    whether it moved."""
    if not following:
        return False
    left = max((ranks[one] + 1 for one in preceding), default=None)
    right = min(ranks[one] - 1 for one in following)
    # Each parent pulls to the left, each child to the right; a tie moves nothing.
    if left is None or len(following) > len(preceding):
        target = right
    elif len(following) < len(preceding):
        target = left
    else:
        return False
    moved = ranks[here] != target
    ranks[here] = target
    return moved


def from_first_to_last(following: Sequence[Collection[int]]) -> list[int]:
    """Returns all numbers in an order in which each comes before those that follow it
    (topological)."""
    counts = Counter(chain.from_iterable(following))
    open_parents = [counts[here] for here in range(len(following))]
    order = [here for here, left in enumerate(open_parents) if not left]
    for here in order:
        for after in following[here]:
            open_parents[after] -= 1
            if not open_parents[after]:
                order.append(after)
    assert len(order) == len(following), "it goes round in a circle"
    return order


def _neighbours(count: int, pairs: Iterable[Pair]) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(count)]
    for parent, child in dict.fromkeys(pairs):
        if parent != child:
            found[parent].append(child)
    return found


# Levels: numbers that must not go down, as near as possible to those that are wished for.


def nearest_rising(wished: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Returns the rising numbers with the least weighted squared distance from those wished
    for (pool adjacent violators)."""
    means: list[float] = []
    masses: list[float] = []
    counts: list[int] = []
    for value, weight in zip(wished, weights, strict=True):
        mean, mass, count = value, weight, 1
        while means and means[-1] > mean:
            total = mass + masses[-1]
            mean = (mean * mass + means.pop() * masses.pop()) / total
            mass = total
            count += counts.pop()
        means.append(mean)
        masses.append(mass)
        counts.append(count)
    return [mean for mean, count in zip(means, counts, strict=True) for _ in range(count)]


# The second step of a layout: cells in columns, so that every link is one column long.


@dataclass(slots=True)
class Lattice:
    """Holds the cells of a layout, numbered: boxes first, then bends, then fillers. ``ranks``
    has the column of each."""

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
    """Returns the cells of a sketch: its boxes, bends for long lines, fillers for frames.

    In the lattice every line runs from left to right, also one that points to the left.
    """
    lattice = Lattice(len(sketch.boxes), list(ranks), [box.frame for box in sketch.boxes])
    bends: dict[tuple[int, int, int], int] = {}
    links: dict[tuple[int, int], None] = {}
    for line in sketch.lines:
        left, right = line.parent, line.child
        if ranks[left] > ranks[right]:
            left, right = right, left
        around = set(frames_around(sketch.boxes[left].frame, sketch.frames))
        others = frames_around(sketch.boxes[right].frame, sketch.frames)
        frame = next((one for one in others if one in around), NO_FRAME)
        cells = [left]
        for rank in range(ranks[left] + 1, ranks[right]):
            bend = bends.get((left, frame, rank))
            if bend is None:
                bend = bends[left, frame, rank] = _add(lattice, rank, frame)
            cells.append(bend)
        if right != left:
            cells.append(right)
        lattice.chains.append(cells)
        links.update(dict.fromkeys(pairwise(cells)))
    lattice.links = list(links)
    lattice.fillers_from = len(lattice.ranks)
    _add_fillers(lattice, sketch)
    return lattice


def _add_fillers(lattice: Lattice, sketch: Sketch) -> None:
    present: list[set[int]] = [set() for _ in sketch.frames]
    for inner, rank in zip(lattice.frames, lattice.ranks, strict=True):
        for frame in frames_around(inner, sketch.frames):
            present[frame].add(rank)
    for frame, ranks in enumerate(present):
        for rank in range(min(ranks, default=0), max(ranks, default=-1)):
            if rank not in ranks:
                _add(lattice, rank, frame)


def _add(lattice: Lattice, rank: int, frame: int) -> int:
    lattice.ranks.append(rank)
    lattice.frames.append(frame)
    return len(lattice.ranks) - 1


# The third step of a layout: the order of cells in each column, so that few lines cross.

SWEEPS = 16

Columns = list[list[int]]


@dataclass(slots=True)
class _Item:
    """Holds a cell, or the cells of a frame, to be ordered among its siblings in one column."""

    wish: float
    weight: int
    cells: list[int]
    frame: int = NO_FRAME


def order_columns(lattice: Lattice, frames: tuple[Frame, ...]) -> Columns:
    """Returns the cells of each column from top to bottom."""
    return _Orderer(lattice, frames).best()


class _Orderer:
    def __init__(self, lattice: Lattice, frames: tuple[Frame, ...]) -> None:
        self._lattice, self._frames = lattice, frames
        count = len(lattice.ranks)
        self._right = _neighbours(count, lattice.links)
        self._left = _neighbours(count, ((right, left) for left, right in lattice.links))
        self._place = [0.0] * count
        self._frame_place: list[float] = []

    def best(self) -> Columns:
        columns = self._start()
        best, fewest = columns, crossings(columns, self._right)
        for number in range(SWEEPS):
            if not fewest:
                break
            columns = self._sweep(columns, to_right=number % 2 == 0)
            crossed = crossings(columns, self._right)
            if crossed < fewest:
                best, fewest = columns, crossed
        return best

    def _start(self) -> Columns:
        """Orders cells as a walk along the links meets them, so that neighbours are near."""
        met: dict[int, None] = {}
        for root in range(len(self._lattice.ranks)):
            waiting = [] if self._left[root] else [root]
            while waiting:
                cell = waiting.pop()
                if cell not in met:
                    met[cell] = None
                    waiting.extend(reversed(self._right[cell]))
        for number, cell in enumerate(met):
            self._place[cell] = float(number)
        self._place_frames()
        columns = [self._arranged(column, self._place) for column in self._lattice.columns()]
        self._remember(columns)
        return columns

    def _sweep(self, columns: Columns, *, to_right: bool) -> Columns:
        neighbours = self._left if to_right else self._right
        fresh = [list(column) for column in columns]
        for rank in range(len(columns)) if to_right else reversed(range(len(columns))):
            near = {cell: neighbours[cell] or [cell] for cell in columns[rank]}
            wishes = {
                cell: sum(self._place[one] for one in others) / len(others)
                for cell, others in near.items()
            }
            fresh[rank] = self._arranged(columns[rank], wishes)
            self._remember([fresh[rank]])
        self._place_frames()
        # The frames may have changed places: every column must agree with them.
        settled = [self._arranged(column, self._place) for column in fresh]
        self._remember(settled)
        return settled

    def _remember(self, columns: Columns) -> None:
        for column in columns:
            middle = len(column) / 2
            for number, cell in enumerate(column):
                self._place[cell] = number - middle

    def _place_frames(self) -> None:
        """Puts each frame where its cells are on average, or where its `order` says."""
        sums = [0.0] * len(self._frames)
        counts = [0] * len(self._frames)
        for place, frame in zip(self._place, self._lattice.frames, strict=True):
            for around in frames_around(frame, self._frames):
                sums[around] += place
                counts[around] += 1
        means = (total / max(count, 1) for total, count in zip(sums, counts, strict=True))
        self._frame_place = [
            mean if frame.order is None else float(frame.order)
            for frame, mean in zip(self._frames, means, strict=True)
        ]

    def _arranged(
        self, column: Sequence[int], wishes: dict[int, float] | list[float]
    ) -> list[int]:
        """Returns the column sorted by the places that are wished for, as far as the frames
        allow it."""
        if not self._frames:
            return sorted(column, key=lambda cell: wishes[cell])
        inside: dict[int, list[_Item]] = {}
        for cell in column:
            item = _Item(wishes[cell], 1, [cell])
            inside.setdefault(self._lattice.frames[cell], []).append(item)
        # From the innermost frames outwards: a frame comes after the frame around it.
        for frame in range(len(self._frames) - 1, -1, -1):
            if frame in inside:
                item = self._joined(frame, inside.pop(frame))
                inside.setdefault(self._frames[frame].parent, []).append(item)
        return self._joined(NO_FRAME, inside.get(NO_FRAME, [])).cells

    def _joined(self, frame: int, items: list[_Item]) -> _Item:
        framed = [item for item in items if item.frame != NO_FRAME]
        framed.sort(key=lambda item: (self._frame_place[item.frame], item.frame))
        levels = nearest_rising(
            [item.wish for item in framed], [item.weight for item in framed]
        )
        for item, level in zip(framed, levels, strict=True):
            item.wish = level
        loose = [item for item in items if item.frame == NO_FRAME]
        merged = sorted([*framed, *loose], key=lambda item: item.wish)
        weight = sum(item.weight for item in merged)
        wish = sum(item.wish * item.weight for item in merged) / max(weight, 1)
        return _Item(wish, weight, [cell for item in merged for cell in item.cells], frame)


def crossings(columns: Columns, right: Sequence[Sequence[int]]) -> int:
    """Counts the pairs of links that cross; `right` has the neighbours to the right of each
    cell."""
    total = 0
    for here, there in pairwise(columns):
        place = {cell: number for number, cell in enumerate(there)}
        seen: list[int] = []
        for cell in here:
            ends = sorted(place[one] for one in right[cell])
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total
