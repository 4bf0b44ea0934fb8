"""The first step of a layout: in which column each box stands.

Every line goes to a later column. Where lines go round in a circle, one of them is turned for
the layout; columns start as far left as they can and are then moved to shorten the lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Pair = tuple[int, int]

PASSES = 8


def turned_lines(count: int, pairs: Sequence[Pair]) -> frozenset[Pair]:
    """The pairs to be turned so that no circle is left; those from a box to itself are none."""
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
    """A column for each box; the pairs have no circle."""
    following, preceding = _both_ways(count, pairs)
    order = _from_first_to_last(following, preceding)
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
    """How many lines lead to each box at most; the pairs have no circle."""
    following, preceding = _both_ways(count, pairs)
    depths = [0] * count
    for here in _from_first_to_last(following, preceding):
        depths[here] = max((depths[parent] + 1 for parent in preceding[here]), default=0)
    return depths


def without_circles(count: int, pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs with some of them turned, and none from a box to itself."""
    turned = turned_lines(count, pairs)
    return [
        (child, parent) if (parent, child) in turned else (parent, child)
        for parent, child in pairs
        if parent != child
    ]


def _shorten(
    here: int, ranks: list[int], preceding: Sequence[int], following: Sequence[int]
) -> bool:
    """Move a box to where its lines are shortest, between its parents and its children."""
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


def _from_first_to_last(
    following: Sequence[Sequence[int]], preceding: Sequence[Sequence[int]]
) -> list[int]:
    open_parents = [len(parents) for parents in preceding]
    order = [here for here, left in enumerate(open_parents) if not left]
    for here in order:
        for after in following[here]:
            open_parents[after] -= 1
            if not open_parents[after]:
                order.append(after)
    assert len(order) == len(following), "the lines go round in a circle"
    return order


def _both_ways(count: int, pairs: Sequence[Pair]) -> tuple[list[list[int]], list[list[int]]]:
    back = [(child, parent) for parent, child in pairs]
    return _neighbours(count, pairs), _neighbours(count, back)


def _neighbours(count: int, pairs: Iterable[Pair]) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(count)]
    for parent, child in dict.fromkeys(pairs):
        if parent != child:
            found[parent].append(child)
    return found
