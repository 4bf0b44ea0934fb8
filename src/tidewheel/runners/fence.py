"""The worker's side of its keeper: which jobs must not outlive this process."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tidewheel.runners.keeper import entry
from tidewheel.runners.processes import identify, watch

KEEPER = "tidewheel.runners.keeper"
PIPE_BYTES = 4096  # that any pipe holds before anybody reads it


class Fence:
    """Starts a keeper with the first fenced job, and another one if somebody kills it."""

    def __init__(self) -> None:
        self._directories: dict[str, None] = {}
        self._keeper: subprocess.Popen[bytes] | None = None

    def close_around(self, directory: Path) -> None:
        """Before a job is started: from now on it dies with this process. May fail."""
        self._directories[str(directory)] = None
        self._tell(str(directory), fenced=True)

    def open_for(self, directory: Path) -> None:
        """The job has ended, or never began."""
        if str(directory) not in self._directories:
            return
        del self._directories[str(directory)]
        if self._keeper is not None:
            with suppress(OSError):  # no keeper can be started now: the next job will try
                self._tell(str(directory), fenced=False)

    def stop(self) -> None:
        """The worker ends; whatever it has left behind goes with it."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            _leave(keeper)
            keeper.wait()

    def _tell(self, directory: str, *, fenced: bool) -> None:
        keeper = self._keeper
        if keeper is None:
            self._start()
        elif not _write(keeper, entry(directory, fenced=fenced)):
            self._replace(keeper)

    def _start(self) -> None:
        said = b"".join(entry(one, fenced=True) for one in self._directories)
        keeper = self._keeper = _keeper_told(said[:PIPE_BYTES])
        assert keeper.stdin is not None
        keeper.stdin.write(said[PIPE_BYTES:])  # waits for the keeper, if there is so much
        keeper.stdin.flush()
        os.set_blocking(keeper.stdin.fileno(), False)
        process = identify(keeper.pid)
        assert process is not None, "a child keeps its pid until it is reaped"
        if watch(process, lambda: self._replace(keeper)) is None:
            raise OSError("the keeper of fenced jobs does not stay alive")

    def _replace(self, keeper: subprocess.Popen[bytes]) -> None:
        """Somebody killed it, or it does not read; the jobs need another one at once."""
        if self._keeper is not keeper:
            return
        self._keeper = None
        keeper.kill()
        _leave(keeper)
        keeper.wait()
        if self._directories:
            self._start()


def _keeper_told(said: bytes) -> subprocess.Popen[bytes]:
    """One that finds this in its pipe: it knows it even if this process dies at once."""
    reading, writing = os.pipe()
    telling = os.fdopen(writing, "wb")
    try:
        telling.write(said)
        telling.flush()
        keeper = subprocess.Popen(
            (sys.executable, "-m", KEEPER, str(os.getpid())),
            stdin=reading,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # a signal for the worker's group is not meant for it
        )
    except BaseException:
        telling.close()
        raise
    finally:
        os.close(reading)
    keeper.stdin = telling
    return keeper


def _write(keeper: subprocess.Popen[bytes], said: bytes) -> bool:
    assert keeper.stdin is not None
    try:
        return os.write(keeper.stdin.fileno(), said) == len(said)
    except OSError:  # its end, or a pipe that is full
        return False


def _leave(keeper: subprocess.Popen[bytes]) -> None:
    assert keeper.stdin is not None
    with suppress(OSError):  # what it could not be told any more
        keeper.stdin.close()
