"""What running Slurm jobs use, as Slurm's daemons on the nodes have measured it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from tidewheel.core.queue.requests import UsageSample
from tidewheel.runners.slurm.job import SlurmJob
from tidewheel.runners.slurm.programs import Slurm, SlurmRefused, SlurmSilent, SlurmUsage

SHARE_MAX = 20  # asking may take one twentieth of the time
UNSUPPORTED_SECONDS = 600.0  # then a cluster that measures nothing is asked again


class SlurmSampler:
    """Asks beside everything else: a node that is gone makes sstat wait."""

    def __init__(self, slurm: Slurm, interval_seconds: float) -> None:
        self._slurm = slurm
        self._interval_seconds = interval_seconds
        self._next_at = 0.0
        self._sampling: asyncio.Task[None] | None = None

    def sample(self, jobs: Iterable[SlurmJob]) -> None:
        """Sample those that run, if it is time."""
        is_busy = self._sampling is not None and not self._sampling.done()
        if is_busy or time.monotonic() < self._next_at:
            return
        running = {job.row.id: job for job in jobs if job.row and job.row.state == "RUNNING"}
        if running:
            self._sampling = asyncio.create_task(self._sample(running), name="slurm usage")

    def stop(self) -> None:
        if self._sampling is not None:
            self._sampling.cancel()

    async def _sample(self, running: dict[str, SlurmJob]) -> None:
        now = time.monotonic()
        try:
            used = await self._slurm.usage(list(running))
        except (SlurmRefused, SlurmSilent):
            self._next_at = now + UNSUPPORTED_SECONDS
            return
        took = time.monotonic() - now
        self._next_at = now + max(self._interval_seconds, SHARE_MAX * took)
        for job_id in used.keys() & running.keys():
            _tell(running[job_id], used[job_id], now)


def _tell(job: SlurmJob, usage: SlurmUsage, now: float) -> None:
    cpu_before = job.usage.cpu_seconds if job.usage else 0.0
    elapsed = max(now - (job.usage_at or job.submitted_at), 1e-6)
    percent = round(100.0 * max(0.0, usage.cpu_seconds - cpu_before) / elapsed, 1)
    job.usage, job.usage_at = usage, now
    job.reports.usage(UsageSample(memory_bytes=usage.memory_bytes, cpu_percent=percent))
