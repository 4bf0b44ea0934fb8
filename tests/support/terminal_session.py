"""A program on a terminal of its own, and what somebody in front of it sees.

The terminal is a real one of the kernel (a pty). What the program writes is put on a screen as
a terminal would; a sequence that this does not know fails the test, so a program cannot come to
rely on more than every terminal has.
"""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.support.command_line import PROGRAM, CommandLine
from tests.support.patience import SECONDS_MAX

_PARTS = re.compile(r"\x1b\[(\??[0-9;]*)([A-Za-z])|([\r\n\x07])|([^\x00-\x1f\x7f])")
KEYS = {
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "enter": "\r",
    "esc": "\x1b",
    "tab": "\t",
    "pgdn": "\x1b[6~",
    "end": "\x1b[F",
    "home": "\x1b[H",
    "backspace": "\x7f",
}


class Screen:
    """Letters at places; styles are counted only."""

    def __init__(self, columns: int, lines: int) -> None:
        self.resize(columns, lines)
        self.is_second = self.is_new_size = False
        self.has_cursor = True
        self.styles: set[str] = set()
        self._left = ""

    def resize(self, columns: int, lines: int) -> None:
        self.columns, self.height = columns, lines
        self._cells = [[" "] * columns for _ in range(lines)]
        self._row = self._column = 0

    @property
    def lines(self) -> list[str]:
        return ["".join(row).rstrip() for row in self._cells]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def feed(self, text: str) -> None:
        text = self._left + text
        at = 0
        while at < len(text):
            part = _PARTS.match(text, at)
            if part is None:
                assert text[at] == "\x1b" and len(text) - at < 20, repr(text[at : at + 20])
                break
            at = part.end()
            self._put(*part.groups())
        self._left = text[at:]

    def _put(
        self, numbers: str | None, verb: str | None, control: str | None, letter: str
    ) -> None:
        if letter and self._is_stale():
            return
        if letter:
            assert self._column < self.columns, f"too long: {self.lines[self._row]}"
            self._cells[self._row][self._column] = letter
            self._column += 1
        elif control == "\n":
            self._row = min(self._row + 1, self.height - 1)
        elif control == "\r":
            self._column = 0
        elif verb is not None:
            self._obey(numbers or "", verb)

    def _is_stale(self) -> bool:
        """Written for the size before, which the program has not heard of yet."""
        beyond = self._column >= self.columns or self._row >= self.height
        return self.is_new_size and beyond

    def _obey(self, numbers: str, verb: str) -> None:
        match numbers, verb:
            case "?1049", ("h" | "l"):
                self.is_second = verb == "h"
                self.resize(self.columns, self.height)
            case "?25", ("h" | "l"):
                self.has_cursor = verb == "h"
            case "2", "J":
                self.is_new_size = False
                self.resize(self.columns, self.height)
            case _, "H":
                row, column = map(int, numbers.split(";"))
                self._row, self._column = row - 1, column - 1
            case _, "m":
                self.styles |= set(numbers.split(";")) - {"0", ""}
            case _:
                raise AssertionError(f"a sequence that not every terminal has: {numbers}{verb}")


class TerminalSession:
    """Somebody at the keyboard."""

    def __init__(self, process: subprocess.Popen[bytes], ours: int, screen: Screen) -> None:
        self._process, self._ours, self.screen = process, ours, screen
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def press(self, *keys: str) -> TerminalSession:
        """One after the other, by name or as they are typed."""
        for key in keys:
            os.write(self._ours, KEYS.get(key, key).encode())
        return self

    def sees(self, *texts: str) -> TerminalSession:
        """Wait until all of these are on the screen."""
        self._until(lambda: all(one in self.screen.text for one in texts), texts)
        return self

    def sees_no(self, text: str) -> TerminalSession:
        self._until(lambda: text not in self.screen.text, f"no {text}")
        return self

    def sees_line(self, *texts: str) -> TerminalSession:
        """Wait until one line has all of these: a screen may come in pieces."""

        def is_there() -> bool:
            return any(all(one in line for one in texts) for line in self.screen.lines)

        self._until(is_there, texts)
        return self

    def sees_styles(self, *wanted: str) -> TerminalSession:
        """Wait until each of these was used."""
        self._until(lambda: self.screen.styles.issuperset(wanted), wanted)
        return self

    def resize(self, columns: int, lines: int) -> TerminalSession:
        self.screen.resize(columns, lines)
        self.screen.is_new_size = True
        _set_size(self._ours, columns, lines)
        self.send(signal.SIGWINCH)  # which a shell's terminal would do
        return self

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def ends(self) -> int:
        """Wait for the end, and its exit status."""
        self._until(lambda: self._process.poll() is not None, "its end")
        return self._process.returncode

    def is_given_back(self) -> TerminalSession:
        """Wait until the terminal is as before; what a program wrote last may still travel."""

        def is_as_before() -> bool:
            local_modes = termios.tcgetattr(self._ours)[3]
            echoes = bool(local_modes & termios.ECHO and local_modes & termios.ICANON)
            return echoes and self.screen.has_cursor and not self.screen.is_second

        self._until(is_as_before, "the terminal as it was")
        return self

    def _until(self, is_so, what) -> None:
        end_at = time.monotonic() + SECONDS_MAX
        while not is_so():
            assert time.monotonic() < end_at, (
                f"never seen: {what}; this is:\n{self.screen.text}"
            )
            self._read(0.05)

    def _read(self, seconds: float) -> None:
        while select.select([self._ours], [], [], seconds)[0]:
            try:
                content = os.read(self._ours, 65_536)
            except OSError:  # which is how a terminal says that nobody is left
                return
            self.screen.feed(self._decoder.decode(content))
            seconds = 0.0


@contextmanager
def on_terminal(
    tidewheel: CommandLine, *arguments: str, size: tuple[int, int] = (80, 24), **more: str
) -> Iterator[TerminalSession]:
    """A command on a terminal of this size until the end of the block."""
    ours, theirs = pty.openpty()
    _set_size(ours, *size)
    environment = {**tidewheel.environment, "TERM": "xterm", **more}
    process = subprocess.Popen(
        [PROGRAM, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=tidewheel.folder,
        env=environment,
        start_new_session=True,
    )
    os.set_inheritable(ours, False)
    session = TerminalSession(process, ours, Screen(*size))
    try:
        yield session
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        process.wait()
        os.close(theirs)
        os.close(ours)


def _set_size(terminal: int, columns: int, lines: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
