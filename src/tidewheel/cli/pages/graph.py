"""A window of a graph in each form that people look at: text, dot, SVG."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from tidewheel.cli.drawing.sketch import Wishes, make_sketch
from tidewheel.cli.output import safe
from tidewheel.services.definitions.graph import BadWindow, ShownWindow, edge_facts

if TYPE_CHECKING:
    from tidewheel.cli.drawing.sketch import Sketch

BOXES_MAX = 3000  # of a picture; nobody reads more
LINES_MAX = 20_000
EDGES_LOOKED_AT_MAX = 200_000  # before families are collapsed


def text_lines(shown: ShownWindow, *, suicides: bool) -> Iterator[str]:
    """Yields the lines that show the graph to a person at a terminal."""
    from tidewheel.cli.drawing.terminal import text_points

    if shown.is_empty:
        yield "there is no task between START and STOP"
    for page in text_points(shown.graph, shown.window):
        yield click.style(page.point, bold=True)
        width = max(2 * row.depth + len(row.name) for row in page.rows)
        for row in page.rows:
            name = "  " * row.depth + row.name
            waits = f"after {row.waits_for}" if row.waits_for else ""
            removed = f"removed by {row.removed_by}" if suicides and row.removed_by else ""
            told = "; ".join(part for part in (waits, removed) if part)
            if told:
                yield f"  {name:<{width}}  " + click.style(safe(told), dim=True)
            else:
                yield f"  {name}"


def dot_document(shown: ShownWindow, wishes: Wishes) -> Iterator[str]:
    from tidewheel.cli.drawing.dot import dot_lines

    return dot_lines(_sketch(shown, wishes), shown.graph.name)


def svg_document(shown: ShownWindow, wishes: Wishes) -> Iterator[str]:
    from tidewheel.cli.drawing.layout import lay_out
    from tidewheel.cli.drawing.svg import svg_lines

    seen = shown.window
    if len(seen.tasks) + len(seen.edges) > EDGES_LOOKED_AT_MAX:
        raise _too_large(len(seen.tasks), len(seen.edges))
    sketch = _sketch(shown, wishes)
    if len(sketch.boxes) > BOXES_MAX or len(sketch.lines) > LINES_MAX:
        raise _too_large(len(sketch.boxes), len(sketch.lines))
    return svg_lines(sketch, lay_out(sketch), shown.graph.name)


def _too_large(boxes: int, lines: int) -> BadWindow:
    return BadWindow(
        f"the picture would have {boxes} boxes and {lines} lines; at most {BOXES_MAX} and "
        f"{LINES_MAX} are drawn: give a STOP nearer to START, or collapse families with "
        "--group-all"
    )


def _sketch(shown: ShownWindow, wishes: Wishes) -> Sketch:
    facts = edge_facts(shown.graph, shown.window, shown.start)
    return make_sketch(shown.graph, shown.window, facts, wishes)
