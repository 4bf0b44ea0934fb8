"""What the machine is, because a figure without its machine says nothing."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from bench.folders import filesystem_of

SYNC_SAMPLES = 200
GIB = 2**30


def machine_facts(folder: Path) -> dict[str, str]:
    """Name and value of each fact; ``folder`` is where the databases are."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": f"{_processor_name()}, {os.cpu_count()} cores",
        "memory": f"{memory / GIB:.0f} GiB",
        "file system": f"{filesystem_of(folder)}, fdatasync {fdatasync_ms(folder):.2f} ms",
        "python": platform.python_version(),
        "postgresql": _first_line("pg_config", "--version"),
        "node": _first_line("node", "--version"),
        "load before": f"{os.getloadavg()[0]:.1f}",
    }


def facts_text(facts: Mapping[str, str]) -> str:
    """In one line, above the figures."""
    return "; ".join(f"{name}: {value}" for name, value in facts.items())


def fdatasync_ms(folder: Path) -> float:
    """The median cost of making one 8 KiB block durable: the unit of every commit."""
    path = folder / "fdatasync"
    block = bytes(8192)
    seconds = []
    with path.open("wb", buffering=0) as file:
        for _ in range(SYNC_SAMPLES):
            began = time.monotonic()
            file.seek(0)
            file.write(block)
            os.fdatasync(file.fileno())
            seconds.append(time.monotonic() - began)
    path.unlink()
    return statistics.median(seconds) * 1000


def _processor_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _first_line(*command: str) -> str:
    try:
        answer = subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return "not installed"
    return answer.stdout.splitlines()[0].strip()
