"""The real program in an empty folder, as somebody meets it who has just installed it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAM = Path(sys.executable).parent / "tidewheel"
SECONDS_MAX = 50
CHUNK = 65_536


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command left: exit status, standard output, standard error."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def word(self) -> str:
        """The one word that was printed."""
        [word] = self.out.split()
        return word


class RunningCommand:
    """A command that has not ended; what it prints is read line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._reader: threading.Thread | None = None
        self.lines: list[str] = []

    def read_until(self, text: str) -> str:
        """The first line with this text in it; the test fails if the command ends before."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line)
            if text in line:
                return line
        raise AssertionError(f"{text!r} never came; the command said {''.join(self.lines)}")

    def read_on(self) -> None:
        """Nobody waits for a line any more; all are kept, and the pipe never fills up."""
        assert self._reader is None and self._process.stdout is not None
        self._reader = threading.Thread(target=self.lines.extend, args=(self._process.stdout,))
        self._reader.start()

    def send(self, number: int) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def wait(self, seconds_max: float | None = SECONDS_MAX) -> Answer:
        """Its end, with everything it printed."""
        if self._reader is None:
            out, _ = self._process.communicate(timeout=seconds_max)
            self.lines.append(out)
        else:
            self._process.wait(seconds_max)
            self._reader.join(seconds_max)
            assert self._process.stdout is not None
            self._process.stdout.close()
        return Answer(self._process.returncode, "".join(self.lines), "")


class CommandLine:
    """A user with an empty home and an empty folder to work in."""

    def __init__(self, root: Path, program: Path = PROGRAM) -> None:
        self.program = program
        self.home, self.folder = root / "home", root / "folder"
        self.home.mkdir()
        self.folder.mkdir()
        self.environment = {
            "HOME": str(self.home),
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
        }

    @property
    def state(self) -> Path:
        """Where the program keeps its things unless it is told otherwise."""
        return self.home / ".local" / "state" / "tidewheel"

    @property
    def store(self) -> str:
        return f"sqlite:///{self.state}/tidewheel.db"

    def __call__(self, *arguments: str, stdin: str = "", **environment: str) -> Answer:
        """Run a command to its end."""
        done = subprocess.run(
            [self.program, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.environment | environment,
            timeout=SECONDS_MAX,
            check=False,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def started(self, *arguments: str, **environment: str) -> Iterator[RunningCommand]:
        """A command that goes on while the test does something else."""
        process = subprocess.Popen(
            [self.program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
            env=self.environment | environment,
        )
        running = RunningCommand(process)
        try:
            yield running
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            running.wait(None)

    def on_terminal(self, *arguments: str, columns: int = 100, typed: str = "") -> Answer:
        """Run a command on a terminal; what it shows comes as one text."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [self.program, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=self.folder,
            env=self.environment | {"TERM": "xterm", "COLUMNS": str(columns)},
        )
        os.close(theirs)
        os.write(ours, typed.encode())
        shown = b""
        with suppress(OSError):  # which is how a terminal says that nobody is left
            while chunk := os.read(ours, CHUNK):
                shown += chunk
        os.close(ours)
        return Answer(process.wait(SECONDS_MAX), shown.decode(), "")
