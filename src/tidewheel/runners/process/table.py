"""Reads the processes of this machine at one moment, and who listens on a port, from /proc.

One reading serves every job of a worker: asking for the children of each job by itself would
walk /proc once per job. Ticks and page sizes are turned into seconds and bytes here.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tidewheel.runners.sanitize import printable

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
ENDED_STATES = frozenset("ZXx")  # a zombie has ended: only its number is still taken

# A process may go away between two reads, and another user's may be hidden from us.
_NOT_READABLE = (FileNotFoundError, ProcessLookupError, PermissionError)


class ProcessRow(NamedTuple):
    """One process; ``started`` (ticks since boot) tells it from a later one of its pid."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    cpu_seconds: float  # its own and that of the children it has waited for
    started: int
    memory_bytes: int

    @property
    def ended(self) -> bool:
        """Returns whether nothing of it runs any more."""
        return self.state in ENDED_STATES


def read_row(pid: int) -> ProcessRow | None:
    """The process with this number, or None."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            text = stat.read()
    except _NOT_READABLE:
        return None
    return parse_row(pid, text)


def parse_row(pid: int, stat: bytes) -> ProcessRow:
    """Returns what ``/proc/PID/stat`` says; the name in it may hold brackets and blanks."""
    fields = stat[stat.rindex(b")") + 2 :].split()
    return ProcessRow(
        pid=pid,
        state=chr(fields[0][0]),
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        cpu_seconds=sum(map(int, fields[11:15])) / TICKS_PER_SECOND,
        started=int(fields[19]),
        memory_bytes=int(fields[21]) * PAGE_BYTES,
    )


class ProcessTable:
    """Every process that could be seen at one moment."""

    def __init__(self, rows: Mapping[int, ProcessRow]) -> None:
        self.rows = rows
        self._environments: dict[int, dict[bytes, bytes]] = {}

    @cached_property
    def children(self) -> Mapping[int, list[int]]:
        """The pids below each pid."""
        children = defaultdict(list)
        for row in self.rows.values():
            children[row.parent].append(row.pid)
        return children

    def environment(self, pid: int) -> Mapping[bytes, bytes]:
        """The environment of a process, read once for all who ask."""
        if pid not in self._environments:
            self._environments[pid] = read_environment(pid)
        return self._environments[pid]

    def with_descendants(self, roots: Iterable[int]) -> set[int]:
        """The roots that are in the table and everything below them."""
        found: set[int] = set()
        open_pids = [pid for pid in roots if pid in self.rows]
        while open_pids:
            pid = open_pids.pop()
            if pid not in found:
                found.add(pid)
                open_pids += self.children.get(pid, ())
        return found


def read_table() -> ProcessTable:
    """The processes of this moment."""
    pids = (int(entry) for entry in os.listdir("/proc") if entry.isdigit())
    return ProcessTable({pid: row for pid in pids if (row := read_row(pid)) is not None})


def read_environment(pid: int) -> dict[bytes, bytes]:
    """The environment a process was started with; empty for a zombie or another user's."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as environ:
            entries = environ.read().split(b"\0")
    except _NOT_READABLE:
        return {}
    pairs = (entry.partition(b"=") for entry in entries if entry)
    return {name: value for name, _, value in pairs}


_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_LISTENING = "0A"
_COMMAND_LENGTH_MAX = 80


def listener_on(port: int) -> str:
    """`process 4711 (python tidewheel up)`; empty if it belongs to another user, or is gone."""
    sockets = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    for process in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        with suppress(OSError):
            if sockets & {os.readlink(link) for link in (process / "fd").iterdir()}:
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").strip()
                shown = printable(command.decode(errors="replace"))[:_COMMAND_LENGTH_MAX]
                return f"process {process.name} ({shown})"
    return ""


def _listening_inodes(port: int) -> set[str]:
    found: set[str] = set()
    for table in _TABLES:
        with suppress(OSError):
            for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
                columns = line.split()
                _, _, own_port = columns[1].rpartition(":")
                if columns[3] == _LISTENING and int(own_port, 16) == port:
                    found.add(columns[9])
    return found
