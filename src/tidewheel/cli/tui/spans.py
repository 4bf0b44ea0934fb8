"""Lines of text with styles, cut to a width: all that is ever painted."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import wrap
from typing import NamedTuple

BOLD, DIM, REVERSE = "bold", "dim", "reverse"


class StyledText(NamedTuple):
    """A piece of a line. The text moves no cursor: it went through ``safe``."""

    text: str
    style: str = ""  # a colour of the palette, and words of above, with spaces


Line = tuple[StyledText, ...]


def line(text: str, style: str = "") -> Line:
    return (StyledText(text, style),)


def cut(spans: Iterable[StyledText], width: int) -> Line:
    """Exactly so wide: what is too long ends with "…", what is too short is filled."""
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
    """On as many lines as it needs; what is of one style breaks between words, further in."""
    if sum(len(one.text) for one in spans) <= width:
        return [spans]
    if len(spans) > 1:
        return [spans]  # a row of facts, whose end may be cut
    text, style = spans[0]
    indent = text[: len(text) - len(text.lstrip())]
    parts = wrap(text, max(width, 20), subsequent_indent=f"{indent}  ")
    return [(StyledText(part, style),) for part in parts]


def restyled(spans: Iterable[StyledText], style: str) -> Line:
    """All of it in this style, too."""
    return tuple(one._replace(style=f"{one.style} {style}".strip()) for one in spans)


def plain(spans: Iterable[StyledText]) -> str:
    return "".join(one.text for one in spans)
