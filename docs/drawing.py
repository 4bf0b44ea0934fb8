"""Pictures for the documentation as SVG that reads in light and in dark.

A picture has classes, no colours. Alone it carries the styles below and follows the reader's
system; `build_site.py` takes those out and the site's own stylesheet, which has the same rules,
follows the reader's choice on the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

FONT = "ui-sans-serif, system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
# class: (light, dark)
FILLS = {
    "ink": ("#1d2733", "#e4e9f0"),
    "soft": ("#5b6875", "#9aa7b5"),
    "box": ("#eef3f8", "#25303c"),
    "store": ("#dcebf7", "#173a55"),
    "ours": ("#1f7a8c", "#4fb3c6"),
    "theirs": ("#a9b4bf", "#6c7a88"),
    "waiting": ("#e3e6ea", "#3a424c"),
    "ready": ("#c9ecef", "#0d4c53"),
    "running": ("#cfdffb", "#1d3f7d"),
    "succeeded": ("#cdeed7", "#1b5430"),
    "failed": ("#f7d2d2", "#6b2323"),
    "warned": ("#f6e3bd", "#5b4410"),
    "cancelled": ("#e8d7ef", "#4d2b5b"),
    "second": ("#e6d8f3", "#43285c"),
}
STROKES = {"line": ("#7b8896", "#8b98a6"), "edge": ("#b7c2cd", "#4b5866")}
CHAR_WIDTH = 0.56  # of the font size, on average


def rules(which: int, prefix: str = "") -> str:
    """The colours of one of the two schemes."""
    fills = [f"{prefix}.{name}{{fill:{pair[which]}}}" for name, pair in FILLS.items()]
    strokes = [
        f"{prefix}.{name}{{stroke:{pair[which]};fill:none}}" for name, pair in STROKES.items()
    ]
    outline = f"{prefix}.outlined{{stroke:{STROKES['line'][which]}}}"
    return "".join([*fills, *strokes, outline])


def style_of_a_picture() -> str:
    dark = rules(1)
    return f"{rules(0)}@media(prefers-color-scheme:dark){{{dark}}}"


def style_of_the_site() -> str:
    """The same rules for pictures that are part of a page."""
    slate = '[data-md-color-scheme="slate"] .tw '
    return (
        "/* Made by docs/write_pictures.py; do not edit by hand. */\n"
        f".tw{{max-width:100%;height:auto;font-family:{FONT}}}\n"
        f"{rules(0, '.tw ')}\n{rules(1, slate)}\n"
    )


@dataclass(slots=True)
class Picture:
    """Something to draw on; y grows downwards."""

    width: int
    height: int
    parts: list[str] = field(default_factory=list)

    def text(  # noqa: PLR0913 - a text has a place and a look
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: int = 13,
        look: str = "ink",
        anchor: str = "middle",
        bold: bool = False,
    ) -> None:
        weight = ' font-weight="600"' if bold else ""
        self.parts.append(
            f'<text class="{look}" x="{x:g}" y="{y:g}" font-size="{size}" '
            f'text-anchor="{anchor}"{weight}>{escape(words)}</text>'
        )

    def box(  # noqa: PLR0913
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        look: str = "box",
        *,
        radius: int = 6,
        dashed: bool = False,
    ) -> None:
        dashes = ' stroke-dasharray="4 3"' if dashed else ""
        self.parts.append(
            f'<rect class="{look} outlined" x="{x:g}" y="{y:g}" width="{width:g}" '
            f'height="{height:g}" rx="{radius}"{dashes}/>'
        )

    def line(  # noqa: PLR0913
        self,
        x1: float,
        y1: float,
        x2: float,
        y2: float,
        *,
        arrow: bool = True,
        look: str = "line",
        dashed: bool = False,
    ) -> None:
        head = ' marker-end="url(#tw-head)"' if arrow else ""
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(
            f'<path class="{look}" d="M{x1:g} {y1:g}L{x2:g} {y2:g}" '
            f'stroke-width="1.5"{dashes}{head}/>'
        )

    def svg(self) -> str:
        body = "\n".join(self.parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="tw" '
            f'viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'font-family="{escape(FONT)}">\n<style>{style_of_a_picture()}</style>\n'
            '<defs><marker id="tw-head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto-start-reverse">'
            f'<path class="soft" d="M0 0L8 4L0 8z"/></marker></defs>\n{body}\n</svg>\n'
        )


@dataclass(frozen=True, slots=True)
class Node:
    """A box in a diagram: where its middle is, what stands in it, how it looks."""

    x: float
    y: float
    words: str
    look: str = "box"
    width: float = 0.0
    dashed: bool = False

    @property
    def size(self) -> tuple[float, float]:
        lines = self.words.split("\n")
        width = self.width or max(len(line) for line in lines) * 13 * CHAR_WIDTH + 22
        return width, 18 * len(lines) + 14


Edge = tuple[str, str, str]  # from, to, words; words that begin with "--" make it dashed


def diagram(
    width: int, height: int, nodes: Mapping[str, Node], edges: Sequence[Edge]
) -> Picture:
    """Boxes and arrows between them."""
    picture = Picture(width, height)
    for start, end, words in edges:
        _edge(picture, nodes[start], nodes[end], words)
    for node in nodes.values():
        _node(picture, node)
    return picture


def _node(picture: Picture, node: Node) -> None:
    width, height = node.size
    picture.box(
        node.x - width / 2, node.y - height / 2, width, height, node.look, dashed=node.dashed
    )
    lines = node.words.split("\n")
    top = node.y - 9 * len(lines) + 14
    for number, line in enumerate(lines):
        look = "ink" if number == 0 else "soft"
        picture.text(node.x, top + 18 * number, line, look=look, size=13 if number == 0 else 12)


def _edge(picture: Picture, start: Node, end: Node, words: str) -> None:
    x1, y1 = _border(start, end)
    x2, y2 = _border(end, start)
    dashed = words.startswith("--")
    picture.line(x1, y1, x2, y2, dashed=dashed)
    words = words.removeprefix("--")
    if not words:
        return
    x, y = (x1 + x2) / 2, (y1 + y2) / 2
    if abs(y2 - y1) < abs(x2 - x1):
        picture.text(x, y - 6, words, size=11, look="soft")
    else:
        picture.text(x + 6, y + 4, words, size=11, look="soft", anchor="start")


def _border(node: Node, towards: Node) -> tuple[float, float]:
    """Where the line between two middles leaves the first box."""
    width, height = node.size
    dx, dy = towards.x - node.x, towards.y - node.y
    if dx == dy == 0:
        return node.x, node.y
    across = (width / 2) / abs(dx) if dx else float("inf")
    along = (height / 2) / abs(dy) if dy else float("inf")
    part = min(across, along)
    return node.x + dx * part, node.y + dy * part
