"""Brings what a handler prints to the log of its own task, although handlers share a process.

Theory of operation
-------------------
While a worker has handlers, ``sys.stdout`` and ``sys.stderr`` are streams that ask a context
variable who prints. Inside a handler that is its job: the text goes to ``job.out`` or
``job.err`` in the folder of the attempt. Everywhere else, and after the end of the attempt, it
goes where it always went. The variable follows ``await``, tasks and ``asyncio.to_thread``;
a thread that a handler starts itself has none before Python 3.14, nor has a program.

A handler that prints nothing pays for setting the variable: file and folder are made by the
first text. A log that cannot be written costs no task its success: the text goes to the
worker's stream instead. A log that has become too large is cut, as those of other jobs are.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO, Protocol, TextIO, cast

from tidewheel.lazy_dataclasses import dataclass
from tidewheel.runners.job_directory import make_private_directory
from tidewheel.runners.job_logs import FILES, cut_log

STREAMS = {"out": "stdout", "err": "stderr"}
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Prints(Protocol):
    """Takes what somebody prints."""

    def printed(self, stream: str, content: bytes) -> bool:
        """Keeps a part of a stream, and returns whether it could."""

    def flush_printed(self) -> None:
        """Writes what was kept back until the end of a line."""


# Who prints; None outside of handlers.
WHO_PRINTS: ContextVar[Prints | None] = ContextVar("tidewheel_who_prints", default=None)


class HandlerLog:
    """Writes what one handler prints, from any thread, until its attempt is over."""

    def __init__(self, directory: Path, bytes_max: int) -> None:
        self._directory, self._bytes_max = directory, bytes_max
        self._files: dict[str, BinaryIO] = {}
        self._sizes: dict[str, int] = {}
        self._is_closed = False
        self._lock = threading.RLock()  # again, if what is freed meanwhile prints, too

    def write(self, stream: str, content: bytes) -> bool:
        """Adds to a stream, up to the last end of a line at once; returns whether it could."""
        with self._lock:
            if self._is_closed:
                return False
            try:
                file = self._files.get(stream) or self._open(stream)
                file.write(content)
                if b"\n" in content:
                    file.flush()
                self._sizes[stream] += len(content)
                if self._sizes[stream] > self._bytes_max:
                    self._cut(stream, file)
            except OSError:
                return False
            return True

    def flush(self) -> None:
        with self._lock:
            for file in self._files.values():
                file.flush()

    def close(self) -> None:
        """Closes the files; nothing is written any more."""
        with self._lock:
            self._is_closed = True
            for file in self._files.values():
                try:
                    file.close()
                except OSError:  # a full disk: what was kept back is lost with it
                    continue

    def _open(self, stream: str) -> BinaryIO:
        make_private_directory(self._directory)
        descriptor = os.open(self._directory / FILES[stream], _FLAGS, 0o600)
        file = self._files[stream] = open(descriptor, "ab")  # noqa: SIM115 - until close
        self._sizes[stream] = os.fstat(descriptor).st_size
        return file

    def _cut(self, stream: str, file: BinaryIO) -> None:
        file.flush()
        cut_log(self._directory / FILES[stream], self._bytes_max)
        self._sizes[stream] = os.fstat(file.fileno()).st_size


@dataclass(slots=True, eq=False)
class RoutedBytes:
    """Stands in for ``sys.stdout.buffer`` while handlers print."""

    _stream: RoutedStream

    def write(self, content: bytes) -> int:
        return self._stream.write_bytes(bytes(content))

    def flush(self) -> None:
        self._stream.flush()

    close = detach = flush  # the stream beneath is the worker's

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream.beneath.buffer, name)


class RoutedStream:
    """Stands in for ``sys.stdout`` or ``sys.stderr``: a handler prints to its own log."""

    def __init__(self, name: str, beneath: TextIO) -> None:
        self._name = name
        self.beneath = beneath  # which everybody else writes to
        self.users = 0  # how many runners have handlers

    def write(self, text: str) -> int:
        """Writes a text to the log of the handler that prints, or to the stream beneath."""
        who = WHO_PRINTS.get()
        if who is None or not isinstance(text, str):
            return self.beneath.write(text)
        if text and not who.printed(self._name, text.encode("utf-8", "backslashreplace")):
            return self.beneath.write(text)
        return len(text)

    def write_bytes(self, content: bytes) -> int:
        """Writes bytes to the log of the handler that prints, or to the stream beneath."""
        who = WHO_PRINTS.get()
        if who is None or (content and not who.printed(self._name, content)):
            return self.beneath.buffer.write(content)
        return len(content)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if (who := WHO_PRINTS.get()) is not None:
            who.flush_printed()
        self.beneath.flush()

    close = detach = flush  # the stream beneath is the worker's

    @property
    def buffer(self) -> RoutedBytes:
        return RoutedBytes(self)

    def isatty(self) -> bool:
        """Says whether a terminal is there; a log is none."""
        return WHO_PRINTS.get() is None and self.beneath.isatty()

    def __getattr__(self, name: str) -> object:
        return getattr(self.beneath, name)


_ROUTING = threading.Lock()


def route_output() -> Callable[[], None]:
    """Puts streams in place of ``sys.stdout`` and ``sys.stderr``; returns what takes them away.

    Several may ask for it: the streams go with the last of them. What the root logger writes
    to these streams follows.
    """
    with _ROUTING:
        routed = [_routed(name, attribute) for name, attribute in STREAMS.items()]
        for stream in routed:
            stream.users += 1

    def take_away() -> None:
        with _ROUTING:
            for stream, attribute in zip(routed, STREAMS.values(), strict=True):
                stream.users -= 1
                if not stream.users and getattr(sys, attribute) is stream:
                    _put(attribute, cast("TextIO", stream), stream.beneath)

    return take_away


def _routed(name: str, attribute: str) -> RoutedStream:
    there = getattr(sys, attribute)
    if isinstance(there, RoutedStream):
        return there
    stream = RoutedStream(name, there)
    if there is not None:  # else there is nothing to print to, as in a daemon
        _put(attribute, there, cast("TextIO", stream))
    return stream


def _put(attribute: str, before: TextIO, after: TextIO) -> None:
    setattr(sys, attribute, after)
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.StreamHandler) and handler.stream is before:
            handler.setStream(after)
