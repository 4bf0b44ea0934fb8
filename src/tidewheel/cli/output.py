"""Prints answers: plain text by default, colour and tables on a terminal, JSON on request.

Whatever came from users or jobs goes through ``safe`` on its way to the screen: control
characters, escape sequences and bidirectional overrides are spelled out (S12).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

import click

from tidewheel.cli.palette import PALETTE, Look
from tidewheel.core.queue.status import Status
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.runners.sanitize import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

LAST_COLUMN_WIDTH_MIN = 24


class StyledWord(NamedTuple):
    """Is a word with the look that the palette has for it."""

    word: str
    look: Look | None


Cell = str | Status | StyledWord
Row = Sequence[Cell]
Item = TypeVar("Item")
# Of a table of things: each header has a function of the thing, or the name under which a
# document has it.
ColumnsOf = Mapping[str, Callable[[Item], Cell] | str]


def safe(text: object) -> str:
    """Returns a text as one line in which no character can control the terminal."""
    return printable(str(text))


def safe_lines(text: str) -> str:
    """Returns a text of several lines, such as a log, that cannot control the terminal."""
    return "".join(
        letter if letter in "\n\t" else printable(letter)
        for letter in text.replace("\r\n", "\n")
    )


def json_line(document: object) -> str:
    """Returns one line of JSON for programs."""
    return _printable_json(json.dumps(document, ensure_ascii=False, default=str))


def _printable_json(text: str) -> str:
    """Returns JSON with escapes for the characters that a terminal must not see. They stand in
    strings only: outside of these JSON has no such characters but line ends."""

    def spelled(letter: str) -> str:
        units = letter.encode("utf-16-be", "surrogatepass").hex()
        return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))

    return "".join(
        letter if letter.isprintable() or letter == "\n" else spelled(letter) for letter in text
    )


def plural(count: int, noun: str, nouns: str = "") -> str:
    """Returns a number with its noun, such as 1 task, 2 tasks, 2 entries."""
    return f"{count} {noun}" if count == 1 else f"{count} {nouns or noun + 's'}"


def say(text: str = "") -> None:
    """Prints the answer, for people and pipes."""
    click.echo(text)


def note(text: str) -> None:
    """Prints something beside the answer, for people only."""
    click.echo(text, err=True)


def say_json(document: object) -> None:
    """Prints the answer for programs: indented for eyes, on one line for pipes."""
    indent = 2 if on_terminal() else None
    text = json.dumps(document, ensure_ascii=False, indent=indent, default=str)
    click.echo(_printable_json(text))


def on_terminal() -> bool:
    """Says whether the answer appears on a terminal, and does not go into a pipe or a file."""
    return sys.stdout.isatty()


def coloured(cell: Cell) -> str:
    """Returns a word or status with its shape and colour on a terminal, plain elsewhere."""
    one = _styled(cell)
    if one.look is None or not on_terminal():
        return safe(one.word)
    return click.style(_shaped(one), fg=one.look.colour)


def _styled(cell: Cell) -> StyledWord:
    if isinstance(cell, StyledWord):
        return cell
    if isinstance(cell, Status):
        return StyledWord(cell.value, PALETTE[cell])
    return StyledWord(cell, None)


def _shaped(one: StyledWord) -> str:
    """Returns a word with its shape, where the output can show it."""
    encoding = (sys.stdout.encoding or "").lower()
    shape = f"{one.look.shape} " if one.look is not None and encoding.startswith("utf") else ""
    return shape + safe(one.word)


def say_table(
    headers: Sequence[str], rows: Sequence[Row], *, indent: int = 0, drop: Sequence[str] = ()
) -> None:
    """Prints a table; outside a terminal, as aligned text without colour.

    On a terminal that is too narrow, the columns in ``drop`` are left out, the first first.
    """
    if on_terminal():
        out = console()
        out.print(fitting_table(headers, rows, out.width, indent=indent, drop=drop))
        return
    texts = [list(headers), *([_plain(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for row in texts:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        say(" " * indent + "  ".join(cells).rstrip())


def say_columns(
    items: Iterable[Item],
    columns: ColumnsOf[Item],
    *,
    indent: int = 0,
    drop: Sequence[str] = (),
) -> None:
    """Prints a table with a row for each item, and a column for each of these headers."""
    rows = [[_cell(one, column) for column in columns.values()] for one in items]
    say_table(list(columns), rows, indent=indent, drop=drop)


def say_found(
    found: Sequence[Item], columns: ColumnsOf[Item], empty: str, *, drop: Sequence[str] = ()
) -> None:
    """Prints a table of the items found or, if there are none, a note how to get some."""
    if found:
        say_columns(found, columns, drop=drop)
    else:
        note(empty)


def _cell(one: Item, column: Callable[[Item], Cell] | str) -> Cell:
    if not isinstance(column, str):
        return column(one)
    value = cast("Mapping[str, object]", one)[column]
    return "" if value is None else str(value)


def fitting_table(
    headers: Sequence[str],
    rows: Sequence[Row],
    width: int,
    *,
    indent: int = 0,
    drop: Sequence[str] = (),
) -> Table:
    """Returns a table for rich with the columns that fit.

    Of the last column only the least width counts, since it may be cut.
    """
    texts = [list(headers), *([f"  {_plain(cell)}" for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    widths[-1] = min(widths[-1], LAST_COLUMN_WIDTH_MIN)
    kept = list(range(len(headers)))
    for header in drop:
        if sum(widths[column] + 2 for column in kept) <= width - indent:
            break
        kept.remove(headers.index(header))
    narrow = [[row[column] for column in kept] for row in rows]
    return rich_table([headers[column] for column in kept], narrow, indent=indent)


def _plain(cell: Cell) -> str:
    return safe(_styled(cell).word)


def console() -> Console:
    """Returns a console of rich, which is loaded only for a terminal."""
    from rich.console import Console

    return Console(highlight=False)


def rich_table(headers: Sequence[str], rows: Sequence[Row], *, indent: int = 0) -> Table:
    """Returns a table for rich to draw."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for number, header in enumerate(headers):
        last = number == len(headers) - 1
        texts = [header, *(_rich_cell(row[number]).plain for row in rows)]
        # Only the last column, which says what people wrote, may be cut: ids are copied.
        table.add_column(
            " " * indent + header if number == 0 else header,
            no_wrap=True,
            overflow="ellipsis" if last else "fold",
            min_width=None if last else max(map(len, texts)) + (indent if number == 0 else 0),
        )
    for row in rows:
        first, *rest = (_rich_cell(cell) for cell in row)
        first.pad_left(indent)
        table.add_row(first, *rest)
    return table


def _rich_cell(cell: Cell) -> Text:
    """Returns a cell for rich as text, never as markup: users see what they wrote."""
    from rich.text import Text

    one = _styled(cell)
    return Text(_shaped(one), style="" if one.look is None else one.look.colour)
