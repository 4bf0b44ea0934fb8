"""What the drawings say about a graph: looks of lines, frames, texts, valid documents."""

from xml.etree import ElementTree

import pytest

from tidewheel.cli.drawing.layout import lay_out
from tidewheel.cli.drawing.sketch import Arc, Box, BoxKind, Frame, Sketch, Wishes, make_sketch
from tidewheel.cli.drawing.svg import dot_lines, svg_lines
from tidewheel.cli.drawing.terminal import text_points
from tidewheel.core.graph.findings import Findings
from tidewheel.core.graph.graph import window
from tidewheel.formats.flow_cylc.workflow import LoadOptions, load_workflow
from tidewheel.services.definitions.graph import edge_facts

HEAD = "[scheduling]\n cycling mode = integer\n initial cycle point = 1\n [[graph]]\n"
RUNTIME = """
[runtime]
    [[FAM]]
    [[SUB]]
        inherit = FAM
    [[m1, m2]]
        inherit = SUB
    [[m3]]
        inherit = FAM
    [[a, b, c, d]]
        [[[outputs]]]
            half = half
"""
DRAWN_IN = {"m1": "SUB", "m2": "SUB", "m3": "FAM", "SUB": "FAM"}


@pytest.fixture
def graph_of(tmp_path):
    def load(text):
        flow = tmp_path / "flow.cylc"
        flow.write_text(f'{HEAD}P1 = """\n{text}\n"""\n{RUNTIME}', encoding="utf-8")
        graph = load_workflow(flow, LoadOptions(now=0.0), Findings()).graph
        assert graph is not None
        return graph

    return load


def sketch_of(graph, stop=1, **wishes):
    shown = window(graph, 1, stop, suicides=True)
    return make_sketch(graph, shown, edge_facts(graph, shown, 1), Wishes(**wishes))


def lines_of(sketch):
    return {
        (sketch.boxes[line.parent].key, sketch.boxes[line.child].key, line.suicide): line
        for line in sketch.lines
    }


@pytest.mark.parametrize(
    ("text", "dashed", "label"),
    [
        ("a => b", False, ""),
        ("a? => b", True, ""),
        ("a:fail => b", True, "failed"),
        ("a:finish => b", False, "finished"),
        ("a:start => b", False, "started"),
        ("a:half? => b", True, "half"),
        ("a | c => b", True, ""),
        ("(a & c) | (a & d) => b", False, ""),
        ("a & (c | d) => b", False, ""),
        ("a | c => b\na => b", False, ""),
    ],
)
def test_a_line_is_dashed_if_the_child_can_do_without_or_the_output_need_not_happen(
    graph_of, text, dashed, label
):
    line = lines_of(sketch_of(graph_of(text)))["1/a", "1/b", False]
    assert (line.dashed, line.label) == (dashed, label)


def test_any_member_of_a_family_will_do(graph_of):
    lines = lines_of(sketch_of(graph_of("FAM:succeed-any => a\nFAM:succeed-all => b")))
    assert lines["1/m1", "1/a", False].dashed
    assert not lines["1/m1", "1/b", False].dashed


def test_suicide_arrows_are_lines_of_their_own(graph_of):
    lines = lines_of(sketch_of(graph_of("a:fail? => b\na? => !b")))
    assert lines["1/a", "1/b", True].suicide
    assert lines["1/a", "1/b", False].label == "failed"


def test_families_are_frames_within_frames_and_points_around_them(graph_of):
    sketch = sketch_of(
        graph_of("a[-P1] => a => FAM"), stop=2, drawn_in=DRAWN_IN, frame_points=True
    )
    assert [frame.key for frame in sketch.frames if frame.order is not None] == ["1", "2"]
    frames = {frame.key: frame for frame in sketch.frames}
    assert sketch.frames[frames["1/SUB"].parent].key == "1/FAM"
    assert sketch.frames[frames["2/FAM"].parent].key == "2"
    assert all(len(box.lines) == 1 for box in sketch.boxes)


def test_a_collapsed_family_is_one_box_and_its_inner_lines_are_gone(graph_of):
    graph = graph_of("a => m1 => m2 => b\nFAM:start-all => c")
    outer = sketch_of(graph, drawn_in=DRAWN_IN, collapsed=frozenset({"FAM", "SUB"}))
    assert [box.key for box in outer.boxes if box.kind is BoxKind.FAMILY] == ["1/FAM"]
    assert set(lines_of(outer)) == {
        ("1/a", "1/FAM", False),
        ("1/FAM", "1/b", False),
        ("1/FAM", "1/c", False),
    }
    inner = sketch_of(graph, drawn_in=DRAWN_IN, collapsed=frozenset({"SUB"}))
    assert {"1/SUB", "1/m3"} <= {box.key for box in inner.boxes}


def test_the_text_says_what_each_task_waits_for(graph_of):
    graph = graph_of(
        "a => b\n(b | c:fail) & c[-P1] => d\nd:finish & FAM:fail-any => FAM2 => e\na => !e"
    )
    [first, second] = text_points(graph, window(graph, 1, 2))
    rows = {row.name: row for row in second.rows}
    assert (first.point, second.point) == ("1", "2")
    assert rows["b"].waits_for == "a"
    assert rows["d"].waits_for == "(b | c:failed) & 1/c"
    assert rows["FAM2"].waits_for == "d:finished & any of FAM:failed"
    assert rows["e"].removed_by == "a"
    assert [rows[name].depth for name in "abde"] == [0, 1, 2, 4]


def test_nothing_is_waited_for_before_the_initial_point(graph_of):
    graph = graph_of("a[-P1] & b => c\na[-P1] | b => d")
    [point] = text_points(graph, window(graph, 1, 1))
    assert {row.name: row.waits_for for row in point.rows}["c"] == "b"
    assert {row.name: row.waits_for for row in point.rows}["d"] == ""


def test_names_cannot_break_out_of_the_documents():
    nasty = '</text><script>"\\\x1b&'
    sketch = Sketch(
        (Box(nasty, (nasty,), frame=0), Box("b", ("b",)), Box("@x", ("@x",), BoxKind.XTRIGGER)),
        (Arc(0, 1, nasty), Arc(1, 0, "failed"), Arc(1, 1), Arc(2, 1, dashed=True)),
        (Frame(nasty, nasty),),
    )
    svg = "\n".join(svg_lines(sketch, lay_out(sketch), nasty))
    root = ElementTree.fromstring(svg)
    assert not [one for one in root.iter() if one.tag.endswith("script")]
    assert "\x1b" not in svg
    dot = "\n".join(dot_lines(sketch, nasty))
    assert dot.replace('\\"', "").count('"') % 2 == 0
    assert "\x1b" not in dot


def test_the_picture_shows_dashes_labels_and_colours(graph_of):
    sketch = sketch_of(graph_of("a:fail? => b\na? => c"))
    svg = "\n".join(svg_lines(sketch, lay_out(sketch), "w"))
    assert svg.count("stroke-dasharray") == 2
    assert ">failed</text>" in svg
    assert "<title>1/a:failed → 1/b</title>" in svg
