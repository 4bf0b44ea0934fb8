"""A sketch in the language of Graphviz, for those who have it."""

from __future__ import annotations

from collections.abc import Iterator

from tidewheel.cli.drawing.sketch import NO_FRAME, BoxKind, Sketch
from tidewheel.cli.drawing.svg import box_colour, line_colour
from tidewheel.runners.sanitize import printable

_SHAPES = {BoxKind.TASK: "box", BoxKind.FAMILY: "folder", BoxKind.XTRIGGER: "ellipse"}


def dot_lines(sketch: Sketch, title: str) -> Iterator[str]:
    """Yields the document, line by line."""
    yield f"digraph {quoted(title)} {{"
    yield "  rankdir=LR;"
    yield '  node [fontname="monospace", fontsize=11];'
    yield '  edge [fontname="monospace", fontsize=9];'
    yield from _inside(sketch, NO_FRAME, "  ")
    for line in sketch.lines:
        parent, child = sketch.boxes[line.parent].key, sketch.boxes[line.child].key
        style = "dashed" if line.dashed or line.suicide else "solid"
        label = f", label={quoted(line.label)}" if line.label else ""
        yield (
            f"  {quoted(parent)} -> {quoted(child)} "
            f'[style={style}, color="{line_colour(line)}"{label}];'
        )
    yield "}"


def _inside(sketch: Sketch, frame: int, indent: str) -> Iterator[str]:
    for box in sketch.boxes:
        if box.frame == frame:
            label = "\\n".join(_escaped(text) for text in box.lines)
            yield (
                f'{indent}{quoted(box.key)} [label="{label}", shape={_SHAPES[box.kind]}, '
                f'color="{box_colour(box)}"];'
            )
    for number, inner in enumerate(sketch.frames):
        if inner.parent == frame:
            yield f"{indent}subgraph cluster_{number} {{"
            yield f"{indent}  label={quoted(inner.title)};"
            yield from _inside(sketch, number, indent + "  ")
            yield f"{indent}}}"


def quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    return printable(text).replace("\\", "\\\\").replace('"', '\\"')
