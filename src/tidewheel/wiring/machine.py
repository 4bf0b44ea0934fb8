"""Describes this machine to packages that may not know runners: processes, private folders."""

from __future__ import annotations

from pathlib import Path

from tidewheel.core.queue.requests import HostProcess

GARBAGE_THRESHOLD = 10_000  # objects that came and stayed; by default 700


def spare_garbage_collector() -> None:
    """Keeps the garbage collector from what is loaded by now, in a process of our own.

    The collector would search all of it again and again while tasks come and go by the
    thousand, which was a fifth of a worker's time. An application decides this for itself.
    """
    import gc

    gc.freeze()  # without a collection first: it would find next to nothing, in 20 ms
    gc.set_threshold(GARBAGE_THRESHOLD)


def this_process() -> HostProcess:
    """Returns this process, so that it can be told apart from any later one."""
    from tidewheel.runners import processes

    return processes.this_process()


def is_process_alive(process: HostProcess) -> bool:
    """Returns whether a process may still run; False only if its death can be proven here."""
    from tidewheel.runners import processes

    return processes.is_process_alive(process)


def listener_on(port: int) -> str:
    """Returns which process of this machine listens there; empty if nobody can tell."""
    from tidewheel.runners.processes import listener_on

    return listener_on(port)


def make_private_directory(path: Path) -> None:
    """Makes the state directory, which nobody else may enter (S31)."""
    from tidewheel.runners import job_directory

    job_directory.make_private_directory(path)
