"""Describes this machine to packages that may not know runners: processes, private folders."""

from __future__ import annotations

import os
from pathlib import Path

from tidewheel.core.queue.requests import HostProcess
from tidewheel.errors import BadSetting

GARBAGE_THRESHOLD = 10_000  # objects that came and stayed; by default 700


def spare_garbage_collector() -> None:
    """Exempts all that is loaded by now from garbage collection, in a process of our own.

    The collector would search all of it again and again while tasks come and go by the
    thousand, which was a fifth of a worker's time. An application decides this for itself.
    """
    import gc

    gc.freeze()  # without a collection first: it would find next to nothing, in 20 ms
    gc.set_threshold(GARBAGE_THRESHOLD)


def this_process() -> HostProcess:
    """Returns the identity of this process, which no later one has: host, boot, pid, start."""
    from tidewheel.runners import processes

    return processes.this_process()


def is_process_alive(process: HostProcess) -> bool:
    """Says whether a process may still run; False only if its death can be proven here."""
    from tidewheel.runners import processes

    return processes.is_process_alive(process)


def listener_on(port: int) -> str:
    """Returns a text that names the process listening on a port of this machine; "" if it
    cannot be found out."""
    from tidewheel.runners.processes import listener_on

    return listener_on(port)


def require_private_file(setting: str, path: Path) -> None:
    """Raises BadSetting for a file with a key that others can read (S31).

    The rule is that of PostgreSQL: a file of this user is for nobody else; one that belongs to
    root may be readable for a group, as where the system keeps keys for several services.
    """
    found = path.stat()
    if found.st_uid not in (os.geteuid(), 0):
        raise BadSetting(setting, str(path), "a file that belongs to this user or to root")
    allowed = 0o640 if found.st_uid == 0 else 0o600
    if found.st_mode & 0o777 & ~allowed & 0o077:
        also = "; if it belongs to root, its group may read it: chmod 640"
        accepted = f"a file that only its owner can read: chmod 600 {path}{also}"
        raise BadSetting(setting, str(path), accepted)


def make_private_directory(path: Path) -> None:
    """Makes a directory that nobody else may enter, such as the state directory (S31)."""
    from tidewheel.runners import job_directory

    job_directory.make_private_directory(path)
