"""Ports of this machine for servers that are stopped and come back where they were.

The kernel gives none of them away: they lie below those that it picks for whoever asks for any
port, or just connects. Each is kept for this process by a name that one process can have at a
time, and that nobody has any more when the process is gone.
"""

from __future__ import annotations

import random
import socket
from pathlib import Path

FIRST, TRIES_MAX = 10_000, 1_000
PICKED_BY_KERNEL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_kept: list[socket.socket] = []
_chance = random.Random()  # of its own: a seed that tests share would give all the same port


def free_port() -> int:
    """One that is free, and is given to no other test until this process ends."""
    end = int(PICKED_BY_KERNEL.read_text().split()[0])
    for _ in range(TRIES_MAX):
        port = _chance.randrange(FIRST, end)
        if _is_free(port) and _keep(port):
            return port
    raise AssertionError(f"no port from {FIRST} to {end} is free")


def _is_free(port: int) -> bool:
    with socket.socket() as found:
        try:
            found.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True


def _keep(port: int) -> bool:
    name = socket.socket(socket.AF_UNIX)
    try:
        name.bind(f"\0tidewheel-test-port-{port}")
    except OSError:
        name.close()
        return False
    _kept.append(name)
    return True
