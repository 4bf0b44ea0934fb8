"""Figures as Markdown: told to whoever waits for them, and kept in a document."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns padded, so that the text reads as well in a terminal as rendered."""
    widths = [max(len(cell) for cell in column) for column in zip(header, *rows, strict=True)]
    rule = ["-" * width for width in widths]
    return "\n".join(_line(cells, widths) for cells in (header, rule, *rows))


def publish(path: Path | None, name: str, *parts: str) -> None:
    """Print what was measured; with a path, keep it there as well."""
    text = "\n\n".join(part.strip("\n") for part in parts if part) + "\n"
    sys.stdout.write(text)
    if path is not None:
        _write_between_markers(path, name, text)


def _write_between_markers(path: Path, name: str, text: str) -> None:
    """Replace what stands between the markers of ``name``; add them at the end if missing."""
    begin, end = f"<!-- bench:{name} begin -->", f"<!-- bench:{name} end -->"
    old = path.read_text() if path.exists() else ""
    block = f"{begin}\n{text.rstrip()}\n{end}"
    if begin in old and end in old:
        before, _, rest = old.partition(begin)
        after = rest.partition(end)[2]
        path.write_text(before + block + after)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text((old.rstrip() + "\n\n" if old.strip() else "") + block + "\n")


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"| {' | '.join(padded)} |"
