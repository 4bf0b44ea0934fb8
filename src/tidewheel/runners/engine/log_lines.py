"""Lines of a log as docker prints them, with times, put together from what was read."""

from __future__ import annotations

from typing import NamedTuple

LINE_BYTES_MAX = 64 * 1024  # a longer one becomes several


class LogLine(NamedTuple):
    """One line; ``at`` is when it was written, as text that sorts by time."""

    at: bytes
    text: bytes


class LineReader:
    """Makes lines of chunks; what came before ``after`` is known already and passed over."""

    def __init__(self, after: bytes = b"") -> None:
        self._after = after
        self._rest = b""
        self.latest = after

    def take(self, chunk: bytes) -> list[LogLine]:
        """The lines that are complete now."""
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > LINE_BYTES_MAX:
            lines.append(self._rest)
            # What follows belongs to the same moment.
            self._rest = self._rest.partition(b" ")[0] + b" "
        return [line for line in map(self._read, lines) if line is not None]

    def finish(self) -> list[LogLine]:
        """The last line, which had no end."""
        line = self._read(self._rest) if self._rest.strip() else None
        self._rest = b""
        return [] if line is None else [line]

    def _read(self, line: bytes) -> LogLine | None:
        at, _, text = line.partition(b" ")
        if not at[:4].isdigit():  # no time: docker itself speaks
            return None
        if at <= self._after:
            return None
        self.latest = max(self.latest, at)
        return LogLine(at, text.rstrip(b"\r"))
