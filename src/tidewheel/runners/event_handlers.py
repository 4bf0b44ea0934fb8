"""Runs the command of an event handler: by bash, in a process group, within a time.

What it prints comes through a pipe of ours, not of asyncio's: a daemon that a handler leaves
behind keeps the pipe open, and only the handler's own end may count. Its environment names the
run, and gives it a secret with which it may command the run.
"""

from __future__ import annotations

import asyncio
import getpass
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tidewheel.core.queue.requests import UsageSample
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.runners.job_environment import SECRET, inherited_environment
from tidewheel.runners.processes import MARKER


class Unheard:
    """Drops the reports of an event handler, of which only commands count."""

    def started(self) -> None: ...
    def progress(self, value: float) -> None: ...
    def message(
        self, text: str, output: str | None = None, values: str | None = None
    ) -> None: ...
    def usage(self, sample: UsageSample) -> None: ...
    def log_begun(self) -> None: ...
    async def told(self) -> None: ...


def handler_environment(
    environ: Mapping[str, str], run_name: str, run_directory: Path, programs: Path, secret: str
) -> dict[str, str]:
    """Returns the whole environment of a handler.

    `programs` is the folder with the `tidewheel` and `cylc` of this process.
    """
    inherited = inherited_environment(environ)
    path = (str(run_directory / "bin"), str(programs), inherited["PATH"])
    workflow = {
        "WORKFLOW_ID": run_name,
        "WORKFLOW_NAME": run_name.rpartition("/")[0] or run_name,
        "WORKFLOW_RUN_DIR": str(run_directory),
        "WORKFLOW_LOG_DIR": str(run_directory / "log" / "scheduler"),
        "WORKFLOW_SHARE_DIR": str(run_directory / "share"),
        "WORKFLOW_WORK_DIR": str(run_directory / "work"),
    }
    return {
        **inherited,
        "USER": user_name(),
        "PATH": os.pathsep.join(path),
        "TIDEWHEEL_RUN_DIR": str(run_directory),
        MARKER: str(handler_folder(run_directory)),
        SECRET: secret,
        **{f"TIDEWHEEL_{name}": value for name, value in workflow.items()},
        **{f"CYLC_{name}": value for name, value in workflow.items()},
    }


def handler_folder(run_directory: Path) -> Path:
    """Returns the folder with the link to the socket through which handlers give commands."""
    return run_directory / "log" / "scheduler" / "handlers"


def user_name() -> str:
    """Returns the name of this user; the number if this machine knows no name for it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


BASH = "/bin/bash"
READ_BYTES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerCommand:
    """Holds the command of a handler, where it runs, and what it may use."""

    command: str
    directory: Path
    environment: Mapping[str, str]
    seconds_max: float = 600.0
    output_bytes_max: int = 64 * 1024  # the rest of what it prints is dropped


@dataclass(frozen=True, slots=True)
class HandlerEnd:
    """Says how a handler ended, and what it printed.

    ``status`` is its exit status, or minus the signal; ``reason`` says why it failed, "" if it
    did not.
    """

    status: int
    reason: str
    output: str = ""


async def run_handler(one: HandlerCommand) -> HandlerEnd:
    """Runs a handler and returns how it ended; one that takes too long is killed."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    printed = _Printed(reader, one.output_bytes_max)
    try:
        process = await asyncio.create_subprocess_exec(
            BASH,
            "-c",
            one.command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=writer,
            stderr=writer,
            cwd=one.directory,
            env=dict(one.environment),
            # Not a session: it would be reaped as an orphan, by its session (processes.py).
            process_group=0,
        )
    except (OSError, ValueError) as error:  # a value error: bytes that no command can have
        os.close(reader)
        return HandlerEnd(127, f"it could not be started: {error}")
    finally:
        os.close(writer)
    printed.begin()
    try:
        async with asyncio.timeout(one.seconds_max):
            status = await process.wait()
        reason = f"exit status {status}" if status else ""
        if status < 0:
            reason = f"it was ended by {signal.Signals(-status).name}"
        return HandlerEnd(status, reason, printed.text())
    except TimeoutError:
        _kill_group(process)
        status = await process.wait()
        reason = f"it took more than {one.seconds_max:g} seconds and was killed"
        return HandlerEnd(status, reason, printed.text())
    finally:
        _kill_group(process)
        await process.wait()
        printed.close()


def _kill_group(process: asyncio.subprocess.Process) -> None:
    """Kills the process group of a handler that has not ended. After its end the number of the
    group may be that of another one."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


class _Printed:
    """Keeps what comes out of a pipe, up to a bound."""

    def __init__(self, reader: int, bytes_max: int) -> None:
        self._reader = reader
        self._bytes_max = bytes_max
        self._kept = bytearray()
        self._dropped = 0

    def begin(self) -> None:
        asyncio.get_running_loop().add_reader(self._reader, self._read)

    def text(self) -> str:
        """Returns what was printed, up to the bound; to be called after the end."""
        while self._read():
            pass
        text = self._kept.decode(errors="replace")
        return f"{text}\n… and {self._dropped} bytes more" if self._dropped else text

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._reader)
        os.close(self._reader)

    def _read(self) -> bool:
        try:
            read = os.read(self._reader, READ_BYTES)
        except BlockingIOError:
            return False
        if not read:
            asyncio.get_running_loop().remove_reader(self._reader)
        room = self._bytes_max - len(self._kept)
        self._kept += read[:room]
        self._dropped += max(0, len(read) - room)
        return bool(read)
