"""Taking in processes whose parents ended: the duty of a subreaper and of pid 1.

A process that becomes a subreaper is the new parent of every orphan below it, and must reap
them or its machine runs out of pids. It cannot tell an orphan from a child that other code in
the same process started and waits for, except by the session: jobs have sessions of their
own. So only a process that starts nothing else with a new session may become a subreaper.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from tidewheel.runners.process_table import read_row

_PR_GET_CHILD_SUBREAPER = 37


def takes_in_orphans() -> bool:
    """Whether orphans come to this process."""
    answer = ctypes.c_int()
    ctypes.CDLL(None).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0)
    return bool(answer.value) or os.getpid() == 1


def reap_orphans(own_children: Collection[int]) -> int:
    """Reap every ended orphan, but none of ``own_children``; how many there were."""
    own_session = os.getsid(0)
    reaped = 0
    for pid in _children():
        row = read_row(pid)
        if row is None or not row.ended or row.session == own_session or pid in own_children:
            continue
        with suppress(ChildProcessError):
            reaped += os.waitpid(pid, os.WNOHANG)[0] == pid
    return reaped


def _children() -> list[int]:
    """The children of this process: the kernel lists them by the thread that they belong to."""
    pids: list[int] = []
    for thread in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):
            pids += map(int, (thread / "children").read_text(encoding="ascii").split())
    return pids
