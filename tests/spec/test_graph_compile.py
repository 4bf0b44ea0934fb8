"""SEMANTICS §2, Compile: who hears of what, and where tasks stand."""

from __future__ import annotations

import pickle

import pytest

from tests.support.flows import children, flow, graph_of, points_of, reference
from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.graph import meaning, reference_lines, window


@pytest.mark.req("R001-3")
def test_a_parent_knows_its_children_by_output() -> None:
    graph = graph_of(flow('R1 = """\na => b & c\na:fail => d\n"""'))
    assert children(graph, "1/a") == ["1/b", "1/c"]
    assert children(graph, "1/a", "failed") == ["1/d"]
    assert children(graph, "1/a", "started") == []


@pytest.mark.req("R001-2", "R001-3")
def test_a_child_lies_at_the_parents_point_less_the_offset() -> None:
    graph = graph_of(flow("P1 = a[-P1] => a => b"))
    assert children(graph, "2/a") == ["2/b", "3/a"]
    assert children(graph, "4/a") == ["4/b"], "5 is beyond the final point"


@pytest.mark.req("R001-3")
def test_a_child_point_off_the_arrows_sequence_is_no_child() -> None:
    graph = graph_of(flow("P1 = a\nP2 = a[-P1] => b", final="6"))
    assert children(graph, "1/a") == []
    assert children(graph, "2/a") == ["3/b"]


@pytest.mark.req("R001-2")
def test_an_arrow_holds_on_its_own_sequence_only() -> None:
    graph = graph_of(flow("P1 = a & c\nR/1/P2 = a => b\nR/1/P3 = c => b"))
    assert children(graph, "1/a") == ["1/b"]
    assert children(graph, "2/a") == []
    wanted = {1: ["a", "c"], 2: [], 3: ["a"], 4: ["c"]}
    for point, parents in wanted.items():
        found = [arrow.condition.node for arrow in graph.prerequisites("b", Point(point))]
        assert found == parents


def test_a_task_without_an_offset_stands_on_the_sequence_of_its_section() -> None:
    graph = graph_of(flow("R1/2 = start\nP2 = start[2] => a"))
    assert points_of(graph, "start") == ["2"]
    assert points_of(graph, "a") == ["1", "3"]


@pytest.mark.req("R001-2")
def test_an_offset_places_nobody() -> None:
    graph = graph_of(flow("R1 = a\nP1 = a[^] => b"))
    assert points_of(graph, "a") == ["1"]
    assert points_of(graph, "b") == ["1", "2", "3", "4"]


@pytest.mark.req("R001-7", "R001-8")
def test_an_absolute_parent_is_kept_once_for_all_points_of_its_children() -> None:
    graph = graph_of(flow("R1/2 = start\nP1 = start[2] => foo"))
    ((key, arrows),) = graph.absolute_links.items()
    assert key == ("start", 2, "succeeded")
    assert [graph.arrows[index].targets for index in arrows] == [("foo",)]
    assert children(graph, "2/start") == []


@pytest.mark.req("R001-46")
def test_a_suicide_arrow_places_nobody_and_is_no_prerequisite() -> None:
    graph = graph_of(flow('R1 = """\na => b\na:fail => !b\n"""'))
    assert children(graph, "1/a", "failed") == ["1/b"]
    assert len(graph.nodes["b"].suicides) == 1
    assert [arrow.suicide for arrow in graph.prerequisites("b", Point(1))] == [False]


@pytest.mark.req("R001-2")
def test_a_chain_is_an_arrow_between_each_two_neighbours() -> None:
    graph = graph_of(flow("R1 = a => b => c"))
    assert children(graph, "1/a") == ["1/b"]
    assert children(graph, "1/b") == ["1/c"]


@pytest.mark.req("R001-2")
def test_custom_outputs_have_children_of_their_own() -> None:
    runtime = "[[a]]\n    [[[outputs]]]\n        out1 = first\n        out2 = second\n"
    graph = graph_of(flow('R1 = """\na:out1 => b\na:out2 => c\n"""', runtime))
    assert children(graph, "1/a", "out1") == ["1/b"]
    assert children(graph, "1/a", "out2") == ["1/c"]


@pytest.mark.req("R001-2")
def test_finish_is_heard_at_either_end() -> None:
    graph = graph_of(flow("R1 = a:finish => b"))
    assert children(graph, "1/a", "succeeded") == ["1/b"]
    assert children(graph, "1/a", "failed") == ["1/b"]


FAMILIES = "\n".join(
    ["[[FAM]]", "[[KIN]]"]
    + [f"[[m{n}]]\n    inherit = FAM" for n in range(30)]
    + [f"[[k{n}]]\n    inherit = KIN" for n in range(20)]
)


def test_an_arrow_between_families_is_one_group_and_one_arrow() -> None:
    """N + M links for N × M edges."""
    graph = graph_of(flow("R1 = FAM:succeed-all => KIN", FAMILIES))
    assert len(graph.arrows) == 1
    assert len(graph.groups) == 1
    assert graph.nodes["m7"].groups == {"succeeded": (0,)}
    assert graph.nodes["m7"].links == {}
    assert len(children(graph, "1/m7")) == 20


def test_a_family_on_the_right_is_its_members() -> None:
    graph = graph_of(flow("R1 = a => FAM", FAMILIES))
    assert len(children(graph, "1/a")) == 30


def test_members_of_members_are_members() -> None:
    runtime = "[[A]]\n[[B]]\n    inherit = A\n[[x]]\n    inherit = B\n[[y]]\n    inherit = A"
    graph = graph_of(flow("R1 = s => A", runtime))
    assert children(graph, "1/s") == ["1/x", "1/y"]


def test_xtriggers_belong_to_the_task_and_not_to_its_arrows() -> None:
    graph = graph_of(
        flow("P1 = @tick & a => b", scheduling="[[xtriggers]]\n    tick = echo(succeed=True)")
    )
    (xtrigger,) = graph.nodes["b"].xtriggers
    assert xtrigger[1] == "tick"
    assert children(graph, "1/a") == ["1/b"]


def test_texts_under_one_recurrence_add_up() -> None:
    text = flow("P1 = a => b\nP1 = b => c")
    assert children(graph_of(text), "1/b") == ["1/c"]


def test_a_graph_survives_pickling() -> None:
    graph = graph_of(flow("P1 = a[-P1] => a => FAM\nP1 = FAM:fail-any => b", FAMILIES))
    assert pickle.loads(pickle.dumps(graph)) == graph


def test_two_ways_to_write_a_graph_mean_the_same() -> None:
    one = graph_of(flow('P1 = """\na & b => c\nd\n"""'))
    two = graph_of(flow('R/1/P1 = """\na => c\nd\nb => c\n"""'))
    other = graph_of(flow('P1 = """\na | b => c\nd\n"""'))
    assert meaning(one) == meaning(two)
    assert meaning(one) != meaning(other)


def test_the_reference_format_lists_edges_then_nodes_by_name_and_point() -> None:
    graph = graph_of(
        flow(
            'P1 = """\na[-P1] => a => b\n@wall => b\n"""',
            scheduling="[[xtriggers]]\n    wall = echo(succeed=True)",
        )
    )
    assert reference(graph, 1, 2) == [
        'edge "1/@wall" "1/b"',
        'edge "2/@wall" "2/b"',
        'edge "1/a" "2/a"',
        'edge "1/a" "1/b"',
        'edge "2/a" "2/b"',
        "graph",
        'node "1/@wall" "@wall\\n1"',
        'node "2/@wall" "@wall\\n2"',
        'node "1/a" "a\\n1"',
        'node "2/a" "a\\n2"',
        'node "1/b" "b\\n1"',
        'node "2/b" "b\\n2"',
        "stop",
    ]


def test_a_parent_beyond_the_last_point_is_drawn_and_one_before_the_first_is_not() -> None:
    graph = graph_of(flow("P1 = a[+P1] & c[-P1] => b\nP1 = a & c", final="9"))
    lines = reference(graph, 2, 2)
    assert 'node "3/a" "a\\n3"' in lines
    assert 'node "1/c" "c\\n1"' not in lines


def test_points_that_are_dates_are_sorted_before_names_in_the_reference_format() -> None:
    graph = graph_of(
        """
        [scheduling]
            initial cycle point = 2030
            final cycle point = 2031
            [[graph]]
                P1Y = b => a
        """
    )
    shown = window(graph, graph.cycling.initial, graph.cycling.final)
    assert list(reference_lines(graph, shown)) == [
        'edge "20300101T0000Z/b" "20300101T0000Z/a"',
        'edge "20310101T0000Z/b" "20310101T0000Z/a"',
        "graph",
        'node "20300101T0000Z/a" "a\\n20300101T0000Z"',
        'node "20300101T0000Z/b" "b\\n20300101T0000Z"',
        'node "20310101T0000Z/a" "a\\n20310101T0000Z"',
        'node "20310101T0000Z/b" "b\\n20310101T0000Z"',
        "stop",
    ]


ENDLESS = """
    [scheduling]
        cycling mode = integer
        initial cycle point = 1
        [[graph]]
            {}
"""


def test_a_window_without_an_end_has_the_first_three_points() -> None:
    graph = graph_of(ENDLESS.format("P2 = a\n            R1/6 = b"))
    shown = window(graph, Point(3))
    assert shown.tasks == {("a", 3), ("a", 5), ("b", 6)}
    assert not shown.cut


def test_a_window_after_the_last_task_is_empty() -> None:
    shown = window(graph_of(ENDLESS.format("R1 = a => b")), Point(2))
    assert (shown.tasks, shown.edges, shown.cut) == (set(), set(), False)


def test_a_window_of_too_many_tasks_and_edges_is_cut() -> None:
    graph = graph_of(flow("P1 = a => b", final="9"))
    whole = window(graph, Point(1), Point(9))
    assert (len(whole.tasks), len(whole.edges), whole.cut) == (18, 9, False)
    assert window(graph, Point(1), Point(9), parts_max=27) == whole
    for parts_max in (1, 10, 18, 20):
        shown = window(graph, Point(1), Point(9), parts_max=parts_max)
        assert shown.cut
        assert shown.tasks <= whole.tasks and shown.edges <= whole.edges
        assert len(shown.tasks) + len(shown.edges) == parts_max + 1


def test_a_warm_start_may_begin_now() -> None:
    daily = """
        [scheduling]
            initial cycle point = 20000101T00Z
            [[graph]]
                P1D = a
        [runtime]
            [[a]]
    """
    cycling = graph_of(daily, start="now").cycling
    assert cycling.start is not None
    assert cycling.style.text(cycling.start) == "20300317T1746Z"
