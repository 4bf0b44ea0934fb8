"""What jobs use: one thread samples memory, CPU and GPU of every job of a worker.

A sample covers the whole tree of a job. CPU is the tree's time since the sample before, in
percent of one core; a child that ended in between is counted through its parent, which has
waited for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tidewheel.core.queue.requests import UsageSample
from tidewheel.ports.runners import JobReports
from tidewheel.runners.gpu import GpuUse, open_gpus
from tidewheel.runners.job_logs import LOG_BYTES_MAX, cut_log
from tidewheel.runners.process_table import ProcessTable, read_table
from tidewheel.runners.process_tree import ProcessTree

GpuReading = dict[int, GpuUse]


@dataclass(slots=True, kw_only=True, eq=False)
class WatchedJob:
    """A job that is sampled, and where its CPU time stood at the last sample."""

    tree: ProcessTree
    reports: JobReports
    logs: tuple[Path, ...]
    sampled_at: float  # by the monotonic clock
    cpu_seconds: float = 0.0


class UsageSampler:
    """Samples the jobs it is told of until it is told to let go of them."""

    def __init__(self, interval_seconds: float, *, log_bytes_max: int = LOG_BYTES_MAX) -> None:
        assert interval_seconds > 0
        self._interval_seconds = interval_seconds
        self._log_bytes_max = log_bytes_max
        self._jobs: set[WatchedJob] = set()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(
        self, tree: ProcessTree, reports: JobReports, logs: tuple[Path, ...] = ()
    ) -> Callable[[], None]:
        """Sample a job from now on; the answer lets go of it."""
        job = WatchedJob(tree=tree, reports=reports, logs=logs, sampled_at=time.monotonic())
        with self._lock:
            self._jobs.add(job)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._sample_for_ever, name="usage-sampler", daemon=True
                )
                self._thread.start()
        return lambda: self._let_go(job)

    def stop(self) -> None:
        """Sample no more."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def run_once(self, gpu: GpuReading) -> None:
        """Sample every job now."""
        with self._lock:
            jobs = list(self._jobs)
        if not jobs:
            return
        table = read_table()
        for job in jobs:
            sample = sample_job(job, table, gpu, time.monotonic())
            if sample is not None:
                job.reports.usage(sample)
            for log in job.logs:
                cut_log(log, self._log_bytes_max)

    def _let_go(self, job: WatchedJob) -> None:
        with self._lock:
            self._jobs.discard(job)

    def _sample_for_ever(self) -> None:
        if self._stopped.wait(self._interval_seconds):
            return  # before anything had to be sampled: loading the GPU's library takes a while
        gpus = open_gpus()
        while True:
            self.run_once(gpus.read() if gpus is not None and self._jobs else {})
            if self._stopped.wait(self._interval_seconds):
                return


def sample_job(
    job: WatchedJob, table: ProcessTable, gpu: GpuReading, now: float
) -> UsageSample | None:
    """One sample of one job, or None if nothing of it runs."""
    rows = [table.rows[member.pid] for member in job.tree.members(table)]
    if not rows:
        return None
    cpu_seconds = sum(row.cpu_seconds for row in rows)
    elapsed = max(now - job.sampled_at, 1e-6)
    # Less than before: a daemon of the job ended and took its time with it.
    used = max(0.0, cpu_seconds - job.cpu_seconds)
    job.sampled_at, job.cpu_seconds = now, cpu_seconds
    on_gpu = [gpu[row.pid] for row in rows if row.pid in gpu]
    gpu_use = sum(on_gpu, start=GpuUse())
    return UsageSample(
        memory_bytes=sum(row.memory_bytes for row in rows),
        cpu_percent=round(100.0 * used / elapsed, 1),
        gpu_percent=round(gpu_use.percent, 1) if on_gpu else None,
        gpu_memory_bytes=gpu_use.memory_bytes if on_gpu else None,
    )
