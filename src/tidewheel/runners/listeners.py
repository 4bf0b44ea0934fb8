"""Which process listens on a port of this machine, as far as this user may know."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from tidewheel.runners.texts import printable

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
