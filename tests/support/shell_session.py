"""A person at a shell who types what the documentation shows, in an empty home.

Each command is a bash of its own that begins where the last one ended: directory and exported
variables carry over. What stays behind in the background ends with the session.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from tests.support import typed_command
from tests.support.command_line import LANGUAGE, PROGRAM, warm_program
from tests.support.patience import allowed
from tests.support.ports import free_port

SECONDS_MAX = 50
SHOWN_HOME = "/home/ada"
SHOWN_PORT = "8450"
# Lines of one kind are alike: each of these is replaced on both sides before they are compared.
VARYING = (
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"\btw_[\w…-]+"), "TOKEN"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?"), "TIME"),
    (re.compile(r"(?<![\w+])\d\d:\d\d:\d\d(\.\d+)?\b"), "TIME"),
    (re.compile(r"\b\d+(\.\d+)?(ms|s|m|h)\b(?: \d+(ms|s|m|h)\b)*"), "SPAN"),
    (re.compile(r"\bprocess \d+ on \S+"), "process N on HOST"),
    (re.compile(r"#+\.*|#*\.{4,}"), "BAR"),
    (re.compile(r"[█·]+"), "BAR"),
    (re.compile(r"\s+"), " "),
)
# What people do not see who follow the pages as themselves.
AS_ROOT = ("this process runs as root, ", "this worker runs as root, ")
# The program that a line calls is warm. It is a function, made before `set -a`: nobody inherits
# it: jobs and other programs call the real one, as do lines with something in the background.
WARM = """
tidewheel() { {python} -I -S {typed} {address} {program} "$@"; }
"""
REAL = re.compile(r"[^&]&(?!&|>)|\bkill|\bexec\b")
KEEP = """
status=$?
{ declare -px; echo "cd $(printf %q "$PWD")"; } > "$SESSION" 2>/dev/null
exit $status
"""


class ShellSession:
    """A home, a shell, and whatever runs in the background."""

    def __init__(self, root: Path, names: dict[str, str] | None = None) -> None:
        self.home = root / "home"
        self.home.mkdir()
        self._state = root / "session"
        port = str(free_port())
        # What the pages call it, and what it is here; an address may name the port.
        self._names = {**(names or {}), SHOWN_PORT: port, SHOWN_HOME: str(self.home)}
        self._begun_all: list[subprocess.Popen[str]] = []
        self._readers: list[tuple[subprocess.Popen[str], threading.Thread]] = []
        self._environment = {
            "HOME": str(self.home),
            "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}",
            "LANG": LANGUAGE,
            "TZ": "UTC",
            "SESSION": str(self._state),
        }
        self._state.write_text(f"cd {self.home}\n", encoding="utf-8")

    def write(self, name: str, text: str) -> None:
        """A file of the page, where the person is; a script may be executed."""
        folder = self._state.read_text(encoding="utf-8").rstrip().rpartition("cd ")[2]
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._real(text), encoding="utf-8")
        if text.startswith("#!/"):
            path.chmod(0o755)

    def type(self, line: str) -> tuple[int, str]:
        """A command to its end: its exit status, and what it said."""
        process = self._begun(f"{self._command(line)}\n{KEEP}", warm=not REAL.search(line))
        said, _ = process.communicate(timeout=allowed(SECONDS_MAX))
        return process.returncode, said

    def start(self, line: str, answer: tuple[str, ...]) -> str:
        """A command that goes on; what it said until the last line of its answer came."""
        process = self._begun(f"exec {self._command(line)}")
        assert process.stdout is not None
        reader = threading.Thread(target=process.stdout.read)  # nobody else reads on
        self._readers.append((process, reader))
        said: list[str] = []
        for text in process.stdout:
            said.append(text)
            if not answer or self.is_shown(answer[-1:], text):
                break
        else:
            raise AssertionError(f"{line}: ended, and said\n{''.join(said)}")
        reader.start()
        return "".join(said)

    def close(self) -> None:
        """Everything that was left in the background ends, and its jobs with it."""
        for process in self._begun_all:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(allowed(SECONDS_MAX))
        for process, reader in self._readers:
            with suppress(RuntimeError):  # it never began to read
                reader.join(allowed(SECONDS_MAX))
            assert process.stdout is not None
            process.stdout.close()

    def _begun(self, script: str, *, warm: bool = False) -> subprocess.Popen[str]:
        """A bash with a group of its own, so that what it leaves behind can be ended."""
        process = subprocess.Popen(
            ["bash", "-c", f'{warm_function() if warm else ""}set -a\n. "$SESSION"\n{script}'],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self._environment,
            start_new_session=True,
        )
        self._begun_all.append(process)
        return process

    def is_shown(self, expected: tuple[str, ...], said: str) -> bool:
        """Whether a command said what the page shows, with the real names."""
        return is_shown(tuple(map(self._real, expected)), said)

    def _real(self, text: str) -> str:
        for shown, real in self._names.items():
            text = text.replace(shown, real)
        return text

    def _command(self, line: str) -> str:
        """The server of a page has a port of its own."""
        serves = re.search(r"(?<!systemctl )\btidewheel (up|server)\b", line)
        if serves and "--port" not in line:
            line = line.replace(serves[0], f"{serves[0]} --port {SHOWN_PORT}", 1)
        return self._real(line)


def warm_function() -> str:
    """The program as a function of bash."""
    parts = {
        "{python}": sys.executable,
        "{typed}": typed_command.__file__,
        "{address}": warm_program().address,
        "{program}": str(PROGRAM),
    }
    text = WARM
    for name, value in parts.items():
        text = text.replace(name, shlex.quote(value))
    return text


def alike(line: str) -> str:
    """A line without what differs from one time to the next."""
    for pattern, word in VARYING:
        line = pattern.sub(word, line)
    return line.strip()


def is_shown(expected: tuple[str, ...], said: str) -> bool:
    """Whether a command said what the page shows; `…` stands for anything, alone for lines."""
    parts = []
    for line in expected:
        if line.strip() == "…":
            parts.append(r"(?:.*\n)*?")
        else:
            text = r".*?".join(re.escape(part) for part in alike(line).split("…"))
            parts.append(text + r"\n")
    lines = (line for line in said.strip("\n").split("\n") if not line.startswith(AS_ROOT))
    given = "".join(alike(line) + "\n" for line in lines)
    return re.fullmatch("".join(parts), given) is not None
