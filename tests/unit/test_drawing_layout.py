"""The steps of a layout: columns, order, places. Each is a pure function."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.cli.drawing.layers import (
    build_lattice,
    crossings,
    find_depths,
    find_ranks,
    nearest_rising,
    order_columns,
    turned_lines,
    without_circles,
)
from tidewheel.cli.drawing.layout import lay_out
from tidewheel.cli.drawing.sketch import NO_FRAME, Arc, Box, Frame, Sketch, frames_around

BOXES_MAX = 14


@st.composite
def pairs_drawn(draw):
    count = draw(st.integers(1, BOXES_MAX))
    box = st.integers(0, count - 1)
    return count, draw(st.lists(st.tuples(box, box), max_size=2 * BOXES_MAX, unique=True))


@st.composite
def sketches(draw):
    count, pairs = draw(pairs_drawn())
    frame_count = draw(st.integers(0, 5))
    frames = tuple(
        Frame(
            str(number),
            f"FAMILY_WITH_A_LONG_NAME_{number}",
            draw(st.integers(NO_FRAME, number - 1)),
        )
        for number in range(frame_count)
    )
    inside = st.integers(NO_FRAME, frame_count - 1)
    boxes = tuple(Box(str(n), (f"task_{n}",), frame=draw(inside)) for n in range(count))
    used = {one for box in boxes for one in frames_around(box.frame, frames)}
    kept = {old: new for new, old in enumerate(sorted(used))} | {NO_FRAME: NO_FRAME}
    return Sketch(
        tuple(Box(box.key, box.lines, frame=kept[box.frame]) for box in boxes),
        tuple(Arc(parent, child) for parent, child in pairs),
        tuple(
            Frame(frames[old].key, frames[old].title, kept[frames[old].parent])
            for old in sorted(used)
        ),
    )


def overlap(one, other):
    return (
        one.x < other.x + other.width
        and other.x < one.x + one.width
        and one.y < other.y + other.height
        and other.y < one.y + one.height
    )


@pytest.mark.slow
@given(pairs_drawn())
def test_every_line_goes_to_a_later_column_once_circles_are_broken(drawn):
    count, pairs = drawn
    forward = without_circles(count, pairs)
    ranks = find_ranks(count, forward)
    assert min(ranks) == 0
    assert all(ranks[parent] < ranks[child] for parent, child in forward)
    assert all(find_depths(count, forward)[box] <= count for box in range(count))


def test_only_a_circle_turns_a_line():
    assert turned_lines(3, [(0, 1), (1, 2)]) == frozenset()
    assert turned_lines(3, [(0, 1), (1, 2), (2, 0)]) == {(2, 0)}


def test_a_box_stands_beside_the_only_child_it_has():
    # 3 feeds only the end of the chain, so it does not stand at the far left.
    assert find_ranks(4, [(0, 1), (1, 2), (3, 2)]) == [0, 1, 2, 1]


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=20))
def test_levels_rise_and_leave_rising_numbers_alone(wished):
    levels = nearest_rising(wished, [1.0] * len(wished))
    assert levels == sorted(levels)
    assert nearest_rising(sorted(wished), [1.0] * len(wished)) == sorted(wished)
    assert abs(sum(levels) - sum(wished)) < 1e-6


def test_two_levels_in_the_wrong_order_meet_where_the_heavier_one_pulls():
    assert nearest_rising([4.0, 1.0], [1.0, 2.0]) == [2.0, 2.0]


def test_lines_that_need_not_cross_do_not():
    boxes = tuple(Box(str(number), (str(number),)) for number in range(6))
    sketch = Sketch(boxes, (Arc(0, 5), Arc(1, 4), Arc(2, 3)))
    lattice = build_lattice(sketch, [0, 0, 0, 1, 1, 1])
    right = [[5], [4], [3], [], [], []]
    assert crossings(lattice.columns(), right) == 3
    assert crossings(order_columns(lattice, ()), right) == 0


def test_a_long_line_bends_in_every_column_it_passes_and_shares_its_bends():
    boxes = tuple(Box(str(number), (str(number),)) for number in range(4))
    lines = (Arc(0, 1), Arc(1, 2), Arc(2, 3), Arc(0, 3), Arc(0, 2))
    lattice = build_lattice(Sketch(boxes, lines), [0, 1, 2, 3])
    assert lattice.chains[3] == [0, 4, 5, 3]
    assert lattice.chains[4] == [0, 4, 2]


@pytest.mark.slow
@given(sketches())
def test_nothing_overlaps_and_frames_hold_exactly_what_is_theirs(sketch):
    page = lay_out(sketch)
    around = [set(frames_around(box.frame, sketch.frames)) for box in sketch.boxes]
    for number, place in enumerate(page.boxes):
        assert place.x >= 0
        assert place.x + place.width <= page.width
        assert place.y + place.height <= page.height
        assert not any(overlap(place, other) for other in page.boxes[:number])
        for frame, wall in enumerate(page.frames):
            assert overlap(place, wall) == (frame in around[number])
    for frame, wall in enumerate(page.frames):
        for other in range(frame):
            nested = other in frames_around(frame, sketch.frames)
            assert overlap(wall, page.frames[other]) == nested


@pytest.mark.slow
@given(sketches())
def test_a_line_begins_at_its_parent_and_ends_at_its_child(sketch):
    page = lay_out(sketch)
    for line, route in zip(sketch.lines, page.routes, strict=True):
        for box, (x, y) in ((line.parent, route[0]), (line.child, route[-1])):
            place = page.boxes[box]
            assert place.x - 0.2 <= x <= place.x + place.width + 0.2
            assert place.y - 0.2 <= y <= place.y + place.height + 0.2


@pytest.mark.slow
@given(sketches())
def test_the_same_sketch_gives_the_same_page(sketch):
    assert lay_out(sketch) == lay_out(sketch)


def test_frames_in_the_same_columns_are_in_their_order_from_top_to_bottom():
    boxes = tuple(Box(str(n), (str(n),), frame=n // 2) for n in range(6))
    frames = tuple(Frame(str(n), str(n), order=n) for n in range(3))
    page = lay_out(Sketch(boxes, (Arc(4, 5), Arc(0, 1), Arc(2, 3), Arc(4, 1)), frames))
    tops = [place.y for place in page.frames]
    assert tops == sorted(tops)


def test_an_empty_sketch_is_an_empty_page():
    page = lay_out(Sketch((), ()))
    assert (page.boxes, page.routes, page.frames) == ((), (), ())
