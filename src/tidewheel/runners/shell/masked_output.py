"""Runs the bash of a job that was given secrets, and masks them in what it prints.

Theory of operation
-------------------
The wrapper of the shell runner starts this program in the place of bash, only for jobs with
secrets. It starts bash with two pipes instead of the logs, and a fork of itself that copies
what comes out of them to the logs. So a secret that a job prints never reaches a file, whoever
reads that later; and since all of this belongs to the job and not to its worker, it goes on
when the worker is killed. The values come by the environment, which the job has as well.

What ends like the beginning of a secret is held back until more comes: a job may write half of
it now. After the end of bash the values that it left for others (``outputs.json``) are masked,
too, before anybody is told of the end. Processes in the background keep the copying fork alive.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

from tidewheel.runners import OUTLIVED
from tidewheel.runners.sanitize import MASK, masked_texts, secrets_in

READ_BYTES = 65_536
DRAIN_SECONDS_MAX = 2.0  # for what is still in the pipes when bash has ended
POLL_SECONDS = 0.01
FILE_BYTES_MAX = 16 * 1024 * 1024
SIGNAL_BASE = 128
NOT_FOUND = 127
_GLANCE = 32  # bytes that are compared before a whole rest is


class MaskedStream:
    """Masks secrets in bytes that come piece by piece."""

    def __init__(self, hidden: Sequence[str]) -> None:
        self._hidden = [text.encode() for text in hidden]
        self._pattern = re.compile(b"|".join(map(re.escape, self._hidden)))
        self._longest = max(map(len, self._hidden), default=1)
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        """Returns what can be written by now."""
        text, made = self._held + piece, []
        done, held_from = 0, self._held_from(text, 0)
        if any(one in text for one in self._hidden):
            for found in self._pattern.finditer(text):
                if found.start() >= held_from:
                    break
                made += [text[done : found.start()], MASK.encode()]
                done = found.end()
                if done > held_from:
                    held_from = self._held_from(text, done)
        made.append(text[done:held_from])
        self._held = text[held_from:]
        return b"".join(made)

    def end(self) -> bytes:
        """Returns what was held back, now that nothing follows."""
        rest, self._held = self._held, b""
        return self._pattern.sub(MASK.encode(), rest) if self._hidden else rest

    def _held_from(self, text: bytes, start: int) -> int:
        """Returns where the rest begins that may be the beginning of a secret."""
        first = len(text)
        for one in self._hidden:
            at = text.find(one[:1], max(start, len(text) - len(one) + 1), first)
            while at >= 0:
                glance = text[at : at + _GLANCE]
                if one.startswith(glance) and one.startswith(text[at:]):
                    first = at
                    break
                at = text.find(one[:1], at + 1, first)
        return first


def masked_bytes(content: bytes, hidden: Sequence[str]) -> bytes:
    """Returns the whole of a text with its secrets masked."""
    stream = MaskedStream(hidden)
    return stream.feed(content) + stream.end()


def _copy(pipes: dict[int, int], hidden: Sequence[str]) -> None:
    """Copies from each pipe to its log until all who write have ended."""
    selector = selectors.DefaultSelector()
    streams = {}
    for pipe in pipes:
        selector.register(pipe, selectors.EVENT_READ)
        streams[pipe] = MaskedStream(hidden)
    while streams:
        for key, _ in selector.select():
            pipe = key.fd
            piece = os.read(pipe, READ_BYTES)
            stream = streams[pipe]
            _write(pipes[pipe], stream.feed(piece) if piece else stream.end())
            if not piece:
                selector.unregister(pipe)
                del streams[pipe]


def _write(log: int, content: bytes) -> None:
    with suppress(OSError):  # a full disk: the job goes on without its log
        while content:
            content = content[os.write(log, content) :]


def _mask_file(path: str, hidden: Sequence[str]) -> None:
    """Masks a file that the job left; nothing happens if it is none, or is not the job's."""
    with (
        suppress(OSError),
        open(os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK), "r+b") as file,
    ):
        content = file.read(FILE_BYTES_MAX)
        safe = masked_bytes(content, hidden)
        if safe != content:
            file.seek(0)
            file.write(safe)
            file.truncate()


def _run(words: Sequence[str], out: int, err: int, closed: Sequence[int]) -> None:
    """Becomes bash, whose output goes into the pipes."""
    try:
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.closerange(3, max(out, err, *closed) + 1)
        os.execv(words[0], list(words))
    except OSError as error:
        os.write(2, f"{words[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(NOT_FOUND)


def main() -> int:
    """Runs the words of the command line; returns their exit status, as a shell says it."""
    words, hidden = sys.argv[1:], masked_texts(secrets_in(os.environ))
    # Taken by a handler, which bash does not inherit; what Python itself ignores it would.
    for name in OUTLIVED:
        signal.signal(getattr(signal, f"SIG{name}"), lambda *_: None)
    (out, to_out), (err, to_err) = os.pipe(), os.pipe()
    bash = os.fork()
    if bash == 0:
        _run(words, to_out, to_err, (out, err))
    os.close(to_out)
    os.close(to_err)
    copier = os.fork()
    if copier == 0:
        try:
            _copy({out: 1, err: 2}, hidden)
        finally:
            os._exit(0)
    os.close(out)
    os.close(err)
    status = os.waitstatus_to_exitcode(os.waitpid(bash, 0)[1])
    if outputs := os.environ.get("TIDEWHEEL_OUTPUTS"):
        _mask_file(outputs, hidden)
    give_up_at = time.monotonic() + DRAIN_SECONDS_MAX
    while os.waitpid(copier, os.WNOHANG)[0] == 0 and time.monotonic() < give_up_at:
        time.sleep(POLL_SECONDS)
    return SIGNAL_BASE - status if status < 0 else status


if __name__ == "__main__":
    sys.exit(main())
