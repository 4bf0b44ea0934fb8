"""Describes this machine to packages that may not know runners: processes, private folders.

It imports nothing of ours before that is needed: the first thing that a service does is here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tidewheel.core.queue.requests import HostProcess

# Objects that came and stayed; by default 700. More than a batch of a run holds until it is
# written: else the collector would search each one, with all that it has in the pool.
GARBAGE_THRESHOLD = 150_000
# So often only what is new is searched, before all that stayed since the last such search is;
# by default 10, which for a large run is half a million objects in a tenth of a second.
SEARCHES_OF_THE_NEW = 50


def spare_garbage_collector() -> None:
    """Exempts all that is loaded by now from garbage collection, in a process of our own.

    The collector would search all of it again and again while tasks come and go by the
    thousand, which was a fifth of a worker's time. An application decides this for itself.
    """
    import gc

    gc.freeze()  # without a collection first: it would find next to nothing, in 20 ms
    gc.set_threshold(GARBAGE_THRESHOLD, SEARCHES_OF_THE_NEW)


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
    """Raises BadSetting for a file with a key that others can read (S31)."""
    from tidewheel.credentials import is_readable_by_others
    from tidewheel.errors import BadSetting

    found = path.stat()
    if found.st_uid not in (os.geteuid(), 0):
        raise BadSetting(setting, str(path), "a file that belongs to this user or to root")
    if is_readable_by_others(found):
        also = "; if it belongs to root, its group may read it: chmod 640"
        accepted = f"a file that only its owner can read: chmod 600 {path}{also}"
        raise BadSetting(setting, str(path), accepted)


def make_private_directory(path: Path) -> None:
    """Makes a directory that nobody else may enter, such as the state directory (S31)."""
    from tidewheel.runners import job_directory

    job_directory.make_private_directory(path)


_PR_SET_DUMPABLE = 4
_STANDARD_ERROR = 2
_MEMORY_FIELDS = slice(45, 49)  # of /proc/self/stat behind the name: arguments, environment


def keep_keys_from_jobs(token_file: str | None = None, passwords: Iterable[str] = ()) -> None:
    """Closes this process to the jobs that it starts, which may be of the same user (H3).

    The keys in its environment, and the token in a file, are read now and are known to this
    process alone from here on: its children do not inherit them. What the kernel shows of it as
    it was started (``/proc/PID/environ``, and these passwords in ``/proc/PID/cmdline``) is
    overwritten, files that it was started with are not handed on, and on Linux no process of
    its user may read its memory, its environment or its files, or trace it. Root still may.
    """
    from tidewheel.config import KEY_VARIABLES
    from tidewheel.credentials import STANDARD_INPUT, take_keys

    take_keys(token_file)
    if token_file == STANDARD_INPUT:
        with open(os.devnull) as nothing:
            os.dup2(nothing.fileno(), 0)
    if not sys.platform.startswith("linux"):
        return
    _wipe_beginnings(tuple(f"{name}=".encode() for name in KEY_VARIABLES), passwords)
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # that of the listing itself is closed by now
            if int(name) > _STANDARD_ERROR:
                os.set_inheritable(int(name), False)
    hide_memory()


def hide_memory() -> None:
    """Lets no process of this user read the memory of this one, or trace it; Linux only."""
    if sys.platform.startswith("linux"):
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _wipe_beginnings(variables: tuple[bytes, ...], passwords: Iterable[str]) -> None:
    """Overwrites variables and passwords in the memory that /proc shows of this process.

    To unset a variable does not: the kernel shows the block that the process was started with.
    """
    import ctypes

    with open("/proc/self/stat", "rb") as stat:
        fields = stat.read().rpartition(b")")[2].split()
    begin, end, environment, environment_end = map(int, fields[_MEMORY_FIELDS])
    if not 0 < begin <= end <= environment <= environment_end:
        return  # it is not shown here
    entries = ctypes.string_at(environment, environment_end - environment).split(b"\0")
    for entry in entries:
        if entry.startswith(variables):
            ctypes.memset(environment, 0, len(entry))
        environment += len(entry) + 1
    words = ctypes.string_at(begin, end - begin)
    for password in filter(None, map(str.encode, passwords)):
        at = words.find(password)
        while at >= 0:
            ctypes.memset(begin + at, ord("x"), len(password))
            at = words.find(password, at + len(password))
