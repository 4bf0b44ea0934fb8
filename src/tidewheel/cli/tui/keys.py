"""From the bytes of a keyboard to names of keys.

A key that is more than a letter comes as an escape sequence, perhaps in parts. An escape with
nothing behind it is the key itself once nothing has followed for a moment: ``flush`` says so.
"""

from __future__ import annotations

import codecs
import re

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
    """Remembers the beginning of a key that has not come as a whole."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    @property
    def is_waiting(self) -> bool:
        """Whether it is not known yet what was pressed."""
        return bool(self._rest)

    def feed(self, content: bytes) -> list[str]:
        """The keys that are complete; those that mean nothing here are left out."""
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
        """Nothing more came: what is left was pressed by itself."""
        rest, self._rest = self._rest, ""
        return [name for name in map(_name, rest[:1]) if name]


def _name(key: str) -> str:
    if key.startswith("\x1bO"):  # as some terminals have the same keys
        key = f"\x1b[{key[2:]}"
    if key in NAMES:
        return NAMES[key]
    return key if key.isprintable() else ""
