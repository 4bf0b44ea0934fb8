"""Worker processes held at a gate until all are ready, so that start-up is not measured."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from bench.folders import REPOSITORY
from bench.queue.peer import PeerFailed
from bench.queue.scoreboard import Scoreboard

READY, GO = "ready", "go"
SILENCE_SECONDS_MAX = 60.0
WorkerCommand = Callable[[Path, int], list[str]]  # (scoreboard, slot) -> command line


def python_worker(module: str, variant: str, store: str) -> WorkerCommand:
    """The command of a worker whose loop is ``work`` of a peer module."""

    def command(board: Path, slot: int) -> list[str]:
        python = [sys.executable, "-m", "bench.queue.work"]
        return [*python, module, variant, store, str(board), str(slot)]

    return command


class Crew:
    """Starts the workers in ``with``; they wait for ``go`` and are killed at the end."""

    def __init__(self, command: WorkerCommand, workers: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="crew-")
        self.board = Scoreboard(Path(self._folder.name) / "scoreboard", workers)
        self._errors = Path(self._folder.name) / "stderr"
        self._command = command
        self._workers = workers
        self._processes: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Crew:
        with self._errors.open("w") as errors:
            for slot in range(self._workers):
                self._processes.append(self._start(slot, errors))
        try:
            for process in self._processes:
                self._wait_for_ready(process)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()
        self.board.close()
        self._folder.cleanup()

    def go(self) -> None:
        """Open the gate for all workers at once."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(GO + "\n")
            process.stdin.flush()

    def wait_until(self, reached: Callable[[], bool], interval_seconds: float) -> None:
        """Wait for a condition; a dead worker, or no handler call for long, is a failure."""
        calls, heard_at = -1, time.monotonic()
        while not reached():
            if self.board.calls() != calls:
                calls, heard_at = self.board.calls(), time.monotonic()
            if time.monotonic() - heard_at > SILENCE_SECONDS_MAX:
                raise PeerFailed(f"no progress after {calls} handler calls{self._complaint()}")
            if any(process.poll() is not None for process in self._processes):
                raise PeerFailed(f"a worker ended early{self._complaint()}")
            time.sleep(interval_seconds)

    def _start(self, slot: int, errors: IO[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self._command(self.board.path, slot),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=REPOSITORY,
        )

    def _wait_for_ready(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:  # some systems print a banner first
            if line.strip() == READY:
                return
        raise PeerFailed(f"a worker could not start{self._complaint()}")

    def _complaint(self) -> str:
        lines = self._errors.read_text().strip().splitlines()
        return f": {lines[-1]}" if lines else ""
