"""The real program in an empty folder, as somebody meets it who has just installed it."""

from __future__ import annotations

import atexit
import io
import json
import os
import pty
import selectors
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.patience import allowed, eventually
from tests.support.typed_command import TypedCommand

PROGRAM = Path(sys.executable).parent / "tidewheel"
WARM = Path(__file__).with_name("warm_program.py")
SECONDS_MAX = 50  # on a quiet machine
CHUNK = 65_536
LANGUAGE = "C.UTF-8"
WARM_BYTES_MAX = 50_000  # of words and environment, which go as one packet
# An interpreter reads these when it starts, so a command that has them starts one.
AT_START = ("PYTHON", "LD_", "LC_", "FAKETIME", "MALLOC_")


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


class WarmProgram:
    """The program, loaded once; each command is a fork of it (warm_program.py)."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="tidewheel-warm-"))
        self.address = str(self._folder / "socket")
        self._server = subprocess.Popen(
            [sys.executable, "-P", WARM, self.address], stdin=subprocess.PIPE, env=environment
        )
        atexit.register(self.end)
        eventually(self._answers, "the warm program waits for commands")

    def _answers(self) -> bool:
        assert self._server.poll() is None, "the warm program has ended"
        return Path(self.address).exists()

    def end(self) -> None:
        """Commands that have not ended go on."""
        with self._server:  # closes its standard input and waits for it
            pass
        shutil.rmtree(self._folder)

    def start(
        self, words: Sequence[object], folder: Path, environment: dict[str, str], *files: int
    ) -> TypedCommand:
        """A command with these three standard files."""
        return TypedCommand(
            self.address,
            [str(word) for word in words],
            folder=str(folder),
            environment=environment,
            umask=own_umask(),
            files=files,
        )


@cache
def warm_program() -> WarmProgram:
    """One for all tests of this process."""
    return WarmProgram({"PATH": os.environ["PATH"], "LANG": LANGUAGE})


def is_warm(environment: Mapping[str, str], words: Sequence[object]) -> bool:
    """Whether a fork of a loaded program is the same as a new one."""
    size = sum(len(str(word)) for word in (*environment.items(), *words))
    starts = any(name.startswith(AT_START) for name in environment)
    return not starts and environment.get("LANG") == LANGUAGE and size < WARM_BYTES_MAX


def own_umask() -> int:
    [line] = [
        line
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("Umask:")
    ]
    return int(line.split()[1], 8)


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
        seconds_max = None if seconds_max is None else allowed(seconds_max)
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
            "LANG": LANGUAGE,
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
        words = (self.program, *arguments)
        surroundings = self.environment | environment
        if self.program == PROGRAM and is_warm(surroundings, words):
            return self._typed(words, surroundings, stdin)
        done = subprocess.run(
            words,
            input=stdin,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=surroundings,
            timeout=allowed(SECONDS_MAX),
            check=False,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def _typed(
        self, words: Sequence[object], environment: dict[str, str], stdin: str
    ) -> Answer:
        """The same in a fork of the warm program."""
        with ExitStack() as files:
            (their_in, our_in), (out, their_out), (err, their_err) = (
                tuple(map(files.enter_context, pipe())) for _ in range(3)
            )
            theirs = (their_in, their_out, their_err)
            command = warm_program().start(
                words, self.folder, environment, *(file.fileno() for file in theirs)
            )
            for file in theirs:
                file.close()
            try:
                said = exchanged(our_in, stdin.encode(), (out, err))
            except BaseException:
                command.hang_up()
                raise
            return Answer(command.wait(), *said)

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
        environment = self.environment | {"TERM": "xterm", "COLUMNS": str(columns)}
        command = warm_program().start(
            (self.program, *arguments), self.folder, environment, theirs, theirs, theirs
        )
        os.close(theirs)
        os.write(ours, typed.encode())
        shown = b""
        with suppress(OSError):  # which is how a terminal says that nobody is left
            while chunk := os.read(ours, CHUNK):
                shown += chunk
        os.close(ours)
        return Answer(command.wait(), shown.decode(), "")


def pipe() -> tuple[io.FileIO, io.FileIO]:
    """Where one reads what the other writes. To close them twice is nothing."""
    read, write = os.pipe()
    return io.FileIO(read, "r"), io.FileIO(write, "w")


def exchanged(to: io.FileIO, given: bytes, sources: Sequence[io.FileIO]) -> list[str]:
    """Writes to one file and reads others until all of them have ended, as text."""
    read = {source: b"" for source in sources}
    ends_at = time.monotonic() + allowed(SECONDS_MAX)
    os.set_blocking(to.fileno(), False)
    with selectors.DefaultSelector() as ready:
        ready.register(to, selectors.EVENT_WRITE)
        for source in sources:
            ready.register(source, selectors.EVENT_READ)
        while ready.get_map():
            left = ends_at - time.monotonic()
            assert left > 0, f"it did not end, and said {list(read.values())}"
            for key, _ in ready.select(left):
                if key.fileobj is to:
                    given = given[written(to, given) :]
                    done = not given
                else:
                    chunk = os.read(key.fd, CHUNK)
                    read[key.fileobj] += chunk
                    done = not chunk
                if done:
                    ready.unregister(key.fileobj)
                    key.fileobj.close()
    return [io.TextIOWrapper(io.BytesIO(one), "utf-8").read() for one in read.values()]


def written(to: io.FileIO, given: bytes) -> int:
    """How much of it needs no more writing; all, if nobody reads it."""
    try:
        return to.write(given) or 0
    except BrokenPipeError:
        return len(given)
