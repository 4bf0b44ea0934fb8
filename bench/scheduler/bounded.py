"""Running a command with a bound on its time, and what it used."""

from __future__ import annotations

import os
import resource
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.folders import REPOSITORY

KIB = 1_024
MB = 1e6


class Failed(Exception):
    """A system did not do its work; the report shows the reason instead of figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A command that has ended."""

    seconds: float
    cpu_seconds: float  # with the children that it waited for
    peak_megabytes: float
    is_complete: bool  # it ended by itself
    output: str


def run(
    command: Sequence[str],
    log: Path,
    *,
    seconds_max: float,
    environment: Mapping[str, str] | None = None,
    cwd: Path = REPOSITORY,
) -> Ran:
    """Run it; raise ``Failed`` if its status says so. What it started is ended with it."""
    with log.open("w") as output:
        begin = time.monotonic()
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=None if environment is None else dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    status, used = _wait(process.pid, begin + seconds_max)
    seconds = time.monotonic() - begin
    is_complete = status is not None
    if status is None:
        os.killpg(process.pid, signal.SIGKILL)
        _, _, used = os.wait4(process.pid, 0)
        status = 0
    process.returncode = status  # reaped here: subprocess must not wait for it
    text = log.read_text(errors="replace")
    if status:
        lines = text.strip().splitlines()
        raise Failed(f"{Path(command[0]).name}: exit status {status}: {lines[-1:] or ['']}")
    assert used is not None
    return Ran(
        seconds=seconds,
        cpu_seconds=used.ru_utime + used.ru_stime,
        peak_megabytes=used.ru_maxrss * KIB / MB,
        is_complete=is_complete,
        output=text,
    )


def _wait(pid: int, until: float) -> tuple[int | None, resource.struct_rusage | None]:
    """Exit status and what was used; no status if it took too long."""
    descriptor = os.pidfd_open(pid)
    try:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        if not poller.poll(max(0.0, until - time.monotonic()) * 1000):
            return None, None
    finally:
        os.close(descriptor)
    _, status, used = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), used
