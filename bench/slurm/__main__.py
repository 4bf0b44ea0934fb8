"""``python -m bench.slurm``: submissions per second, and what looking after N jobs costs."""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from bench.folders import data_folder
from bench.machine import facts_text, machine_facts
from bench.markdown import publish, table
from tests.support.slurm import SlurmCluster, slurm_cluster
from tests.support.slurm_binaries import SLURM, program
from tests.support.slurm_stage import open_stage

COMMAND = "#SBATCH --hold\ntrue"
ROUNDS = 5
HEADER = ("what", "jobs", "bare", "tidewheel", "ratio")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--write", type=Path)
    wish = parser.parse_args()
    if reason := SLURM.missing_reason():
        sys.exit(reason)
    with data_folder() as folder:
        facts = machine_facts(folder)
        with slurm_cluster() as cluster:
            rows = asyncio.run(_measure(cluster, folder, wish.jobs))
    publish(wish.write, "slurm", facts_text(facts), table(HEADER, rows))


async def _measure(cluster: SlurmCluster, folder: Path, count: int) -> list[tuple[str, ...]]:
    bare_rate = _bare_submissions(cluster, count // 4)
    async with open_stage(cluster, folder) as stage:
        began_at = time.monotonic()
        await asyncio.gather(*(stage.start(COMMAND, number=one) for one in range(count)))
        rate = count / (time.monotonic() - began_at)
        bare = [_bare_listing(cluster) for _ in range(ROUNDS)]
        await asyncio.sleep(1.5)  # rounds at their own pace, as a worker has them
        ours = await _watched_rounds(ROUNDS)
    wall, cpu = (min(one) * 1000 for one in zip(*bare, strict=True))
    return [
        (
            "submissions, 1/s",
            str(count),
            f"{bare_rate:.0f}",
            f"{rate:.0f}",
            f"{rate / bare_rate:.2f}",
        ),
        (
            "looking after all that wait: CPU a second, ms (bare: one squeue)",
            str(count),
            f"{cpu:.1f}",
            f"{ours:.1f}",
            f"{ours / cpu:.2f}",
        ),
        ("one squeue, ms", str(count), f"{wall:.1f}", "", ""),
    ]


def _bare_submissions(cluster: SlurmCluster, count: int) -> float:
    """One sbatch after the other, as a shell script would."""
    environment = os.environ | cluster.environment
    began_at = time.monotonic()
    for _ in range(count):
        subprocess.run(
            [program("sbatch"), "--parsable", "--hold", "--output=/dev/null", "--wrap=true"],
            env=environment,
            stdout=subprocess.DEVNULL,
            check=True,
        )
    rate = count / (time.monotonic() - began_at)
    cluster.ask("scancel", "--quiet", f"--user={os.getuid()}")
    return rate


def _bare_listing(cluster: SlurmCluster) -> tuple[float, float]:
    """(seconds, CPU seconds of the program)."""
    before, began_at = _child_seconds(), time.monotonic()
    cluster.ask("squeue", "--noheader", "--states=all", "--format=%i|%T|%r|%N|%j")
    return time.monotonic() - began_at, _child_seconds() - before


async def _watched_rounds(seconds: int) -> float:
    """CPU ms a second of this process and of what it starts, while all jobs wait."""
    before = _own_seconds() + _child_seconds()
    await asyncio.sleep(seconds)
    return (_own_seconds() + _child_seconds() - before) * 1000 / seconds


def _own_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _child_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
