"""Describes this machine to packages that may not know runners: processes, private folders."""

from __future__ import annotations

from pathlib import Path

from tidewheel.core.queue.requests import HostProcess

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


def make_private_directory(path: Path) -> None:
    """Makes a directory that nobody else may enter, such as the state directory (S31)."""
    from tidewheel.runners import job_directory

    job_directory.make_private_directory(path)
