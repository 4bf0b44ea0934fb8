"""Takes the terminal over for a while, gives it back whatever happens, and paints its lines.

Only what changed is painted: a line is written when it differs from what stands there, so that
a slow connection carries little. Lines are as wide as the terminal, so nothing is ever erased.
The sequences used are those that every terminal knows: a place, styles, the second screen.
"""

from __future__ import annotations

import codecs
import os
import re
import sys
import termios
import tty
from collections.abc import Sequence
from typing import Self

from tidewheel.cli.tui.spans import Line, StyledText

COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
STYLES = {"bold": "1", "dim": "2", "reverse": "7"}
STYLES |= {name: str(30 + number) for number, name in enumerate(COLOURS)}
STYLES |= {f"bright_{name}": str(90 + number) for number, name in enumerate(COLOURS)}
ENTER = "\x1b[?1049h\x1b[?25l\x1b[2J"
LEAVE = "\x1b[0m\x1b[?25h\x1b[?1049l"
SMALLEST = (20, 5)
# For what cannot show them: shapes as letters, lines as signs.
SHAPES = dict(zip("○◔▶◌✔✖⊘·◑◕✓‖■│─…▾▸█░", "o->~+xX.<>v=#|-~v>#.", strict=True))
ASCII = str.maketrans(SHAPES)


class Terminal:
    """Takes the terminal for a ``with`` block: its second screen, keys as they are pressed."""

    def __init__(self, *, has_colour: bool, has_shapes: bool) -> None:
        self._has_colour, self._has_shapes = has_colour, has_shapes
        self.input, self._out = sys.stdin.fileno(), sys.stdout
        self._before: list[object] | None = None
        self._shown: dict[int, str] = {}

    def __enter__(self) -> Self:
        self.take()
        return self

    def __exit__(self, *_error: object) -> None:
        self.give_back()

    def take(self) -> None:
        self._before = termios.tcgetattr(self.input)
        tty.setcbreak(self.input)
        self._write(ENTER)
        self._shown.clear()

    def give_back(self) -> None:
        if self._before is not None:
            termios.tcsetattr(self.input, termios.TCSADRAIN, self._before)  # type: ignore[arg-type]
            self._before = None
            self._write(LEAVE)

    @property
    def size(self) -> tuple[int, int]:
        """Returns the number of columns and lines."""
        columns, lines = os.get_terminal_size(
            self.input
        )  # as it is now, not as a shell knew it
        return max(columns, SMALLEST[0]), max(lines, SMALLEST[1])

    def read(self) -> bytes:
        """Returns the bytes of the keys that were pressed; empty if the terminal is gone."""
        try:
            return os.read(self.input, 4_096)
        except OSError:
            return b""

    def forget(self) -> None:
        """Clears the screen, so that everything is painted anew next time."""
        self._shown.clear()
        self._write("\x1b[2J")

    def paint(self, lines: Sequence[Line]) -> None:
        parts = []
        for number, one in enumerate(lines):
            text = "".join(map(self._styled, one))
            if self._shown.get(number) != text:
                self._shown[number] = text
                parts.append(f"\x1b[{number + 1};1H{text}")
        if parts:
            self._write("".join(parts))

    def _styled(self, span: StyledText) -> str:
        text = span.text if self._has_shapes else span.text.translate(ASCII)
        shown = STYLES if self._has_colour else ("bold", "reverse")
        codes = [STYLES[word] for word in span.style.split() if word in shown]
        return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if codes and text else text

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


# ---- From the bytes of a keyboard to names of keys. ----

NAMES = {
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x0c": "redraw",
    "\x04": "q",
    "\x1b": "esc",
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1b[C": "right",
    "\x1b[D": "left",
    "\x1b[H": "home",
    "\x1b[F": "end",
    "\x1b[1~": "home",
    "\x1b[4~": "end",
    "\x1b[7~": "home",
    "\x1b[8~": "end",
    "\x1b[5~": "pgup",
    "\x1b[6~": "pgdn",
    "\x1b[Z": "tab",
}
_KEY = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Z]|\x1b(?=\x1b)|[^\x1b]", re.DOTALL)
_PART = re.compile(r"\x1b(?:\[[0-9;]*|O)?")
PART_LENGTH_MAX = 20


class Keys:
    """Turns bytes from the keyboard into names of keys; keeps the beginning of an incomplete
    one."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    @property
    def is_waiting(self) -> bool:
        """Says whether more bytes have to come before it is known what was pressed."""
        return bool(self._rest)

    def feed(self, content: bytes) -> list[str]:
        """Returns the keys that are complete; those that mean nothing here are left out."""
        text = self._rest + self._decoder.decode(content)
        found: list[str] = []
        at = 0
        while at < len(text):
            key = _KEY.match(text, at)
            if key is None:
                if _PART.fullmatch(text, at) and len(text) - at <= PART_LENGTH_MAX:
                    break
                found.append("\x1b")
                at += 1
                continue
            found.append(key[0])
            at = key.end()
        self._rest = text[at:]
        return [name for name in map(_name, found) if name]

    def flush(self) -> list[str]:
        """Returns the key that is left when nothing more came: it was pressed by itself."""
        rest, self._rest = self._rest, ""
        return [name for name in map(_name, rest[:1]) if name]


def _name(key: str) -> str:
    if key.startswith("\x1bO"):  # as some terminals have the same keys
        key = f"\x1b[{key[2:]}"
    if key in NAMES:
        return NAMES[key]
    return key if key.isprintable() else ""
