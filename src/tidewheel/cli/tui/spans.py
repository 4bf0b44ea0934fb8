"""Makes lines of text with styles and cuts them to a width: nothing else is ever painted."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import wrap

from tidewheel.cli.palette import Look
from tidewheel.lazy_dataclasses import NamedTuple

ROOM_MIN = 20  # for a text beside another
BOLD, DIM, REVERSE = "bold", "dim", "reverse"


class StyledText(NamedTuple):
    """Holds a piece of a line. Its text cannot move the cursor, as it went through ``safe``."""

    text: str
    style: str = ""  # a colour of the palette, and words of above, with spaces


Line = tuple[StyledText, ...]


def line(text: str, style: str = "") -> Line:
    return (StyledText(text, style),)


def shaped(word: str, look: Look | None) -> StyledText:
    """Returns a word with the shape and the colour that the palette has for it."""
    return StyledText(word) if look is None else StyledText(f"{look.shape} {word}", look.colour)


def cut(spans: Iterable[StyledText], width: int) -> Line:
    """Returns a line of exactly this width: a longer one ends with "…", a shorter is filled."""
    from rich.cells import cell_len, set_cell_size

    found: list[StyledText] = []
    left = width
    for span in spans:
        size = cell_len(span.text)
        if size > left:
            text = set_cell_size(span.text, max(0, left - 1)) + "…" if left else ""
            found.append(span._replace(text=text))
            left = 0
            break
        found.append(span)
        left -= size
    return (*found, StyledText(" " * left)) if left else tuple(found)


def fold(spans: Line, width: int) -> list[Line]:
    """Returns a text on as many lines as it needs, broken between words.

    Further lines are indented more. Of a line of several styles the last is broken, and goes on
    below itself, or on a line of its own if there is little room beside the others.
    """
    if sum(len(one.text) for one in spans) <= width:
        return [spans]
    *head, (text, style) = spans
    before = sum(len(one.text) for one in head)
    if not head:
        indent = text[: len(text) - len(text.lstrip())]
        parts = wrap(text, max(width, 20), subsequent_indent=f"{indent}  ")
        return [(StyledText(part, style),) for part in parts]
    if width - before < ROOM_MIN:
        parts = wrap(text, max(width, 20), initial_indent="    ", subsequent_indent="    ")
        return [tuple(head), *((StyledText(part, style),) for part in parts)]
    first, *others = wrap(text, width - before) or [""]
    below = [(StyledText(" " * before), StyledText(part, style)) for part in others]
    return [(*head, StyledText(first, style)), *below]


def restyled(spans: Iterable[StyledText], style: str) -> Line:
    """Returns the line with this style added to each of its pieces."""
    return tuple(one._replace(style=f"{one.style} {style}".strip()) for one in spans)
