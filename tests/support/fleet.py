"""Workers and monitors as processes of the real program, to be killed, stopped and counted.

Whatever a fleet started is gone when it is left: its programs, and every job of theirs,
however far away from its worker it got.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from tests.support.command_line import PROGRAM, ForkedProcess, started_process
from tests.support.patience import SECONDS_MAX, allowed, eventually
from tidewheel.client import Client
from tidewheel.runners.processes import MARKER, read_row, read_table

# Python functions for `--handlers jobs:handlers`. Each execution is a line of the journal,
# written with O_APPEND: lines of many processes do not mix.
HANDLERS = """
import os, time
import tidewheel

handlers = tidewheel.Handlers()
JOURNAL = os.open(os.environ["JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def note(word, job):
    line = f"{word} {job.task.id} {job.attempt} {os.getpid()}\\n"
    os.write(JOURNAL, line.encode())


@handlers.register("note")
def only_note(spec, job):
    note("begin", job)


@handlers.register("last")
def last(spec, job):
    note("begin", job)
    if not job.wait_for_stop(spec):
        note("end", job)


@handlers.register("poison")
def poison(spec, job):
    note("begin", job)
    os.kill(os.getpid(), 9)
"""
NOTE = 'echo "{word} $TIDEWHEEL_TASK_ID $TIDEWHEEL_ATTEMPT $$" >> {journal}'


class Execution(NamedTuple):
    """One line of the journal."""

    word: str
    task_id: str
    attempt: int
    pid: int


class Program:
    """One process of `tidewheel`."""

    def __init__(self, process: ForkedProcess | subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.pid = process.pid
        self._log = log

    @property
    def log(self) -> str:
        """What it has printed so far."""
        return self._log.read_text(errors="replace")

    def says(self, text: str, seconds_max: float = SECONDS_MAX) -> None:
        """Wait until it has printed this."""
        eventually(lambda: text in self.log, lambda: f"{text!r} in {self.log}", seconds_max)

    @property
    def runs(self) -> bool:
        return self.process.poll() is None

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """kill -9, and no corpse is left."""
        self.process.kill()
        self.process.wait()

    def end(self, seconds_max: float = SECONDS_MAX) -> int:
        """Ask it to stop; its exit status."""
        self.send(signal.SIGTERM)
        return self.process.wait(allowed(seconds_max))


class Fleet:
    """Programs that share a store, a home and a journal."""

    def __init__(self, folder: Path, store: str | None = None) -> None:
        self.folder, self.home = folder, folder / "home"
        self.store = store or f"sqlite:///{folder}/tidewheel.db"
        self.journal = folder / "journal"
        self.journal.touch()
        self.programs: list[Program] = []
        (folder / "jobs.py").write_text(HANDLERS)
        self.environment = {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(folder),
            "TIDEWHEEL_HOME": str(self.home),
            "TIDEWHEEL_STORE": self.store,
            "TIDEWHEEL_MONITOR_INTERVAL_SECONDS": "0.2",
            "JOURNAL": str(self.journal),
        }
        if self.store.startswith("sqlite:"):
            with self.client() as client:
                client.queues()  # workers that come first make no file that was named

    def start(self, *arguments: str, prefix: Sequence[str] = (), **environment: str) -> Program:
        """A command of `tidewheel`; `prefix` is a program that turns into it."""
        return self._start([*prefix, PROGRAM, *arguments], environment)

    def run_python(self, *arguments: str, **environment: str) -> Program:
        """A program in Python that uses tidewheel."""
        return self._start([sys.executable, *arguments], environment)

    def _start(self, command: Sequence[object], environment: dict[str, str]) -> Program:
        log = self.folder / f"log-{len(self.programs)}"
        with log.open("wb") as out:
            process = started_process(
                command,
                self.folder,
                self.environment | environment,
                out.fileno(),
                own_session=True,
            )
        self.programs.append(Program(process, log))
        return self.programs[-1]

    def worker(self, *arguments: str, **environment: str) -> Program:
        """A worker that knows the handlers above."""
        return self.start("worker", "--handlers", "jobs:handlers", *arguments, **environment)

    def monitor(self, **environment: str) -> Program:
        return self.start("monitor", **environment)

    def client(self) -> Client:
        return Client(self.store)

    def noting(self, word: str) -> str:
        """A line of bash that writes itself into the journal."""
        return NOTE.format(word=word, journal=self.journal)

    def executions(self, word: str = "begin") -> list[Execution]:
        lines = (line.split() for line in self.journal.read_text().splitlines())
        noted = (Execution(one[0], one[1], int(one[2]), int(one[3])) for one in lines)
        return [one for one in noted if one.word == word]

    def jobs(self, home: Path | None = None) -> list[int]:
        """The processes of all jobs that have not ended; or only of one home."""
        table, folder = read_table(), os.fsencode(home or self.folder)
        return [
            row.pid
            for row in table.rows.values()
            if not row.ended and folder in table.environment(row.pid).get(MARKER.encode(), b"")
        ]

    def end(self) -> None:
        """Nothing of it is left."""
        for program in self.programs:
            if program.runs:
                program.send(signal.SIGCONT)
                program.kill()
        while jobs := self.jobs():
            for pid in jobs:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


@contextmanager
def fleet(folder: Path, store: str | None = None) -> Iterator[Fleet]:
    """A fleet for the length of a `with` block."""
    started = Fleet(folder, store)
    try:
        yield started
    finally:
        started.end()


def is_gone(pid: int) -> bool:
    """Whether nothing of this process runs; a corpse that nobody has buried is no process."""
    row = read_row(pid)
    return row is None or row.ended
