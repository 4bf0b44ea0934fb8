"""The real program in an empty folder, as somebody meets it who has just installed it."""

from __future__ import annotations

import atexit
import io
import json
import os
import pty
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TextIO

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
ALL_NEW = "TIDEWHEEL_TEST_NEW_PROCESSES"  # in our environment: no command is a fork


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
        self,
        words: Sequence[object],
        folder: Path,
        environment: dict[str, str],
        *files: int,
        own_session: bool = False,
    ) -> TypedCommand:
        """A command with these three standard files."""
        return TypedCommand(
            self.address,
            [str(word) for word in words],
            folder=str(folder),
            environment=environment,
            umask=own_umask(),
            own_session=own_session,
            files=files,
        )


@cache
def warm_program() -> WarmProgram:
    """One for all tests of this process."""
    return WarmProgram({"PATH": os.environ["PATH"], "LANG": LANGUAGE})


class ForkedProcess:
    """A command in a fork of the warm program; to its test, what subprocess.Popen is."""

    def __init__(self, command: TypedCommand) -> None:
        self._command = command
        self.pid = command.pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self.returncode if self._has_ended(0.0) else None

    def wait(self, timeout: float | None = None) -> int:
        if not self._has_ended(timeout):
            raise subprocess.TimeoutExpired("tidewheel", timeout or 0.0)
        assert self.returncode is not None
        return self.returncode

    def _has_ended(self, seconds_max: float | None) -> bool:
        if self.returncode is None:
            with selectors.DefaultSelector() as ready:
                ready.register(self._command, selectors.EVENT_READ)
                if not ready.select(seconds_max):
                    return False
            self.returncode = self._command.wait()
        return True

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it ends just now
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def started_process(
    words: Sequence[object],
    folder: Path,
    environment: dict[str, str],
    stdout: int,
    *,
    own_session: bool = False,
) -> ForkedProcess | subprocess.Popen[bytes]:
    """A command of `tidewheel` that reads nothing and prints there: a fork where it may be."""
    if words[0] == PROGRAM and is_warm(environment, words):
        null = os.open(os.devnull, os.O_RDWR)
        try:
            files = (null, stdout, stdout)
            command = warm_program().start(
                words, folder, environment, *files, own_session=own_session
            )
        finally:
            os.close(null)
        return ForkedProcess(command)
    return subprocess.Popen(
        [str(word) for word in words],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=environment,
        start_new_session=own_session,
    )


def is_warm(environment: Mapping[str, str], words: Sequence[object]) -> bool:
    """Whether a fork of a loaded program is the same as a new one."""
    if os.environ.get(ALL_NEW):
        return False
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

    def __init__(
        self, process: ForkedProcess | subprocess.Popen[bytes], printed: TextIO
    ) -> None:
        self._process, self._printed = process, printed
        self._reader: threading.Thread | None = None
        self.lines: list[str] = []

    def read_until(self, text: str) -> str:
        """The first line with this text in it; the test fails if the command ends before."""
        for line in self._printed:
            self.lines.append(line)
            if text in line:
                return line
        raise AssertionError(f"{text!r} never came; the command said {''.join(self.lines)}")

    def read_on(self) -> None:
        """Nobody waits for a line any more; all are kept, and the pipe never fills up."""
        assert self._reader is None
        self._reader = threading.Thread(target=self.lines.extend, args=(self._printed,))
        self._reader.start()

    def send(self, number: int) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def wait(self, seconds_max: float | None = SECONDS_MAX) -> Answer:
        """Its end, with everything it printed."""
        seconds_max = None if seconds_max is None else allowed(seconds_max)
        if self._reader is None:
            self.read_on()
        assert self._reader is not None
        status = self._process.wait(seconds_max)
        self._reader.join(seconds_max)
        if self._reader.is_alive():
            raise subprocess.TimeoutExpired("tidewheel", seconds_max or 0.0)
        return Answer(status, "".join(self.lines), "")


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
        ours, theirs = os.pipe()
        try:
            process = started_process(
                (self.program, *arguments), self.folder, self.environment | environment, theirs
            )
        finally:
            os.close(theirs)
        with open(ours, encoding="utf-8") as printed:
            running = RunningCommand(process, printed)
            try:
                yield running
            finally:
                with suppress(ProcessLookupError):
                    process.kill()
                running.wait(None)

    def on_terminal(
        self,
        *arguments: str,
        columns: int = 100,
        typed: str = "",
        when_asked: tuple[str, Callable[[], object]] | None = None,
    ) -> Answer:
        """Run a command on a terminal; what it shows comes as one text. ``when_asked`` is what
        it asks, and what is done then, before anything is typed."""
        ours, theirs = pty.openpty()
        environment = self.environment | {"TERM": "xterm", "COLUMNS": str(columns)}
        command = warm_program().start(
            (self.program, *arguments), self.folder, environment, theirs, theirs, theirs
        )
        os.close(theirs)
        shown = b""
        if when_asked is not None:
            while when_asked[0].encode() not in shown:
                shown += os.read(ours, CHUNK)
            when_asked[1]()
        os.write(ours, typed.encode())
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
