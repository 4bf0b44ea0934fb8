"""Writes a picture: a page as SVG (no script, no link, nothing to load), a sketch as DOT."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from tidewheel.cli.drawing.layout import (
    FRAME_PAD,
    LINE_HEIGHT,
    PageLayout,
    Rectangle,
    text_width,
)
from tidewheel.cli.drawing.sketch import NO_FRAME, Arc, Box, BoxKind, Frame, Sketch
from tidewheel.cli.palette import PALETTE
from tidewheel.core.graph.outputs import EXPIRED, FAILED, SUBMIT_FAILED
from tidewheel.core.queue.status import Status
from tidewheel.runners.sanitize import printable

FONT = "DejaVu Sans Mono, Menlo, Consolas, monospace"
INK = "#1d2430"
LABEL_SIZE = 10
SOLID_AGAIN = "4 3"  # the dashes

_BOX_COLOUR = {
    BoxKind.TASK: PALETTE[Status.RUNNING].web_colour,
    BoxKind.FAMILY: PALETTE[Status.SUCCEEDED].web_colour,
    BoxKind.XTRIGGER: PALETTE[Status.CANCELLING].web_colour,
}
PLAIN = PALETTE[Status.WAITING].web_colour
FRAME_COLOUR = PALETTE[Status.WAITING].web_colour
_BAD = PALETTE[Status.FAILED].web_colour
_SUICIDE = PALETTE[Status.CANCELLED].web_colour
_OTHER_OUTPUT = PALETTE[Status.READY].web_colour
_LINE_COLOURS = (PLAIN, _BAD, _SUICIDE, _OTHER_OUTPUT)


def svg_lines(sketch: Sketch, page: PageLayout, title: str) -> Iterator[str]:
    """Yields the SVG document of a page, line by line."""
    width, height = _number(page.width), _number(page.height)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" font-family="{FONT}" font-size="12">'
    )
    yield f"<title>{_text(title)}</title>"
    yield "<defs>"
    for colour in _LINE_COLOURS:
        yield (
            f'<marker id="{_marker(colour)}" viewBox="0 0 8 8" refX="7.5" refY="4" '
            'markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">'
            f'<path d="M0 .8 8 4 0 7.2Z" fill="{colour}"/></marker>'
        )
    yield "</defs>"
    yield f'<rect width="{width}" height="{height}" fill="#fff"/>'
    for frame, place in zip(sketch.frames, page.frames, strict=True):
        yield from _frame(frame, place)
    for line, route in zip(sketch.lines, page.routes, strict=True):
        yield _line(line, route, sketch)
    for line, route in zip(sketch.lines, page.routes, strict=True):
        if line.label and not line.suicide:
            yield _label(line, route)
    for box, place in zip(sketch.boxes, page.boxes, strict=True):
        yield from _box(box, place)
    yield "</svg>"


def _frame(frame: Frame, place: Rectangle) -> Iterator[str]:
    dash = "" if frame.order is not None else ' stroke-dasharray="1 3"'
    yield (
        f'<rect {_rectangle(place)} rx="8" fill="{FRAME_COLOUR}" fill-opacity=".07" '
        f'stroke="{FRAME_COLOUR}" stroke-opacity=".6"{dash}/>'
    )
    x, y = _number(place.x + FRAME_PAD), _number(place.y + LINE_HEIGHT)
    yield (
        f'<text x="{x}" y="{y}" font-size="11" fill="{INK}" fill-opacity=".7">'
        f"{_text(frame.title)}</text>"
    )


def _line(line: Arc, route: tuple[tuple[float, float], ...], sketch: Sketch) -> str:
    colour = _line_colour(line)
    dash = f' stroke-dasharray="{SOLID_AGAIN}"' if line.dashed or line.suicide else ""
    output = f":{line.label}" if line.label else ""
    said = f"{sketch.boxes[line.parent].key}{output} → {sketch.boxes[line.child].key}"
    return (
        f'<path d="{_path(route, loop=line.parent == line.child)}" fill="none" '
        f'stroke="{colour}" stroke-width="1.3"{dash} marker-end="url(#{_marker(colour)})">'
        f"<title>{_text(said)}</title></path>"
    )


def _path(route: tuple[tuple[float, float], ...], *, loop: bool) -> str:
    (x, y), *rest = route
    path = f"M{_number(x)} {_number(y)}"
    for next_x, next_y in rest:
        if loop:
            path += f"C{_numbers(x + 24, y, next_x, next_y - 24, next_x, next_y)}"
        elif next_y == y:
            path += f"H{_number(next_x)}"
        else:
            middle = (x + next_x) / 2
            path += f"C{_numbers(middle, y, middle, next_y, next_x, next_y)}"
        x, y = next_x, next_y
    return path


def _label(line: Arc, route: tuple[tuple[float, float], ...]) -> str:
    """Returns the label of a line, for its first part; on white, to hide the lines behind
    it."""
    (x, y), (next_x, next_y), *_ = route
    middle = (x + next_x) / 2
    height = (y + next_y) / 2
    width = text_width(line.label) * LABEL_SIZE / 12 + 4
    return (
        f"<rect {_rectangle(Rectangle(middle - width / 2, height - 7, width, 13))} "
        'fill="#fff" fill-opacity=".85"/>'
        f'<text x="{_number(middle)}" y="{_number(height + 3)}" font-size="{LABEL_SIZE}" '
        f'text-anchor="middle" fill="{_line_colour(line)}">{_text(line.label)}</text>'
    )


def _box(box: Box, place: Rectangle) -> Iterator[str]:
    colour = _BOX_COLOUR[box.kind]
    radius = {BoxKind.TASK: 5, BoxKind.FAMILY: 2, BoxKind.XTRIGGER: place.height / 2}[box.kind]
    yield f"<g><title>{_text(box.key)}</title>"
    if box.kind is BoxKind.FAMILY:  # a pile
        behind = Rectangle(place.x + 4, place.y - 4, place.width, place.height)
        yield f'<rect {_rectangle(behind)} rx="{radius}" fill="#fff" stroke="{colour}"/>'
    yield f'<rect {_rectangle(place)} rx="{_number(radius)}" fill="#fff"/>'
    yield (
        f'<rect {_rectangle(place)} rx="{_number(radius)}" fill="{colour}" '
        f'fill-opacity=".1" stroke="{colour}"/>'
    )
    first = place.y + place.height / 2 - (len(box.lines) - 1) * LINE_HEIGHT / 2 + 4
    x = _number(place.x + place.width / 2)
    for number, text in enumerate(box.lines):
        look = f' fill="{INK}"' if number == 0 else f' fill="{PLAIN}" font-size="{LABEL_SIZE}"'
        y = _number(first + number * LINE_HEIGHT)
        yield f'<text x="{x}" y="{y}" text-anchor="middle"{look}>{_text(text)}</text>'
    yield "</g>"


def _line_colour(line: Arc) -> str:
    """Returns the colour of a line and its label: red for a failure, violet for a suicide
    arrow."""
    if line.suicide:
        return _SUICIDE
    if line.label in (FAILED, SUBMIT_FAILED, EXPIRED):
        return _BAD
    return _OTHER_OUTPUT if line.label else PLAIN


def _marker(colour: str) -> str:
    return f"arrow-{colour[1:]}"


def _rectangle(place: Rectangle) -> str:
    x, y, width, height = map(_number, place)
    return f'x="{x}" y="{y}" width="{width}" height="{height}"'


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _numbers(*values: float) -> str:
    return " ".join(map(_number, values))


def _text(text: str) -> str:
    """Returns a text fit for XML: escaped, and without control characters, which XML does
    not allow."""
    return escape(printable(text))


# ---- in the language of Graphviz, for those who have it ----

_SHAPES = {BoxKind.TASK: "box", BoxKind.FAMILY: "folder", BoxKind.XTRIGGER: "ellipse"}


def dot_lines(sketch: Sketch, title: str) -> Iterator[str]:
    """Yields the DOT document of a sketch, line by line."""
    yield f"digraph {_quoted(title)} {{"
    yield "  rankdir=LR;"
    yield '  node [fontname="monospace", fontsize=11];'
    yield '  edge [fontname="monospace", fontsize=9];'
    yield from _inside(sketch, NO_FRAME, "  ")
    for line in sketch.lines:
        parent, child = sketch.boxes[line.parent].key, sketch.boxes[line.child].key
        style = "dashed" if line.dashed or line.suicide else "solid"
        label = f", label={_quoted(line.label)}" if line.label else ""
        yield (
            f"  {_quoted(parent)} -> {_quoted(child)} "
            f'[style={style}, color="{_line_colour(line)}"{label}];'
        )
    yield "}"


def _inside(sketch: Sketch, frame: int, indent: str) -> Iterator[str]:
    for box in sketch.boxes:
        if box.frame == frame:
            label = "\\n".join(_escaped(text) for text in box.lines)
            yield (
                f'{indent}{_quoted(box.key)} [label="{label}", shape={_SHAPES[box.kind]}, '
                f'color="{_BOX_COLOUR[box.kind]}"];'
            )
    for number, inner in enumerate(sketch.frames):
        if inner.parent == frame:
            yield f"{indent}subgraph cluster_{number} {{"
            yield f"{indent}  label={_quoted(inner.title)};"
            yield from _inside(sketch, number, indent + "  ")
            yield f"{indent}}}"


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    return printable(text).replace("\\", "\\\\").replace('"', '\\"')
