"""Samples what jobs use: one thread for memory, CPU and GPU of every job of a worker.

A sample covers the whole tree of a job. CPU is the tree's time since the sample before, in
percent of one core; a child that ended in between is counted through its parent, which has
waited for it.

NVIDIA's management library tells how much of the GPUs each process uses. No library, no driver
or no card means "no GPU" and is not an error. Memory is known per process. Utilisation per
process is not told by every card or driver; where it is not, the utilisation of the whole card
stands for each process on it.
"""

from __future__ import annotations

import importlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

from tidewheel.core.queue.requests import UsageSample
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.ports.runners import JobReports
from tidewheel.runners.job_directory import StrPath
from tidewheel.runners.job_logs import LOG_BYTES_MAX, cut_log
from tidewheel.runners.processes import ProcessTable, ProcessTree, read_table

PID_NONE = 0xFFFFFFFF  # the library's "this slot holds no process"

Card = object  # a handle of the library's
Library = Any  # pynvml, which has no types of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUse:
    """Holds what one process, or several together, use of all GPUs."""

    percent: float = 0.0  # of one GPU: two busy ones are 200
    memory_bytes: int = 0

    def __add__(self, other: GpuUse) -> GpuUse:
        """Returns what both use together."""
        return GpuUse(
            percent=self.percent + other.percent,
            memory_bytes=self.memory_bytes + other.memory_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CardReading:
    """Holds what one card says about its processes, by pid."""

    memory_bytes: dict[int, int]
    percent: dict[int, float]


def use_by_process(readings: Iterable[CardReading]) -> dict[int, GpuUse]:
    """Returns what each process uses of all cards together."""
    use: dict[int, GpuUse] = defaultdict(GpuUse)
    for reading in readings:
        for pid in reading.memory_bytes.keys() | reading.percent.keys():
            use[pid] += GpuUse(
                percent=reading.percent.get(pid, 0.0),
                memory_bytes=reading.memory_bytes.get(pid, 0),
            )
    return dict(use)


class Gpus:
    """Reads what processes use of the GPUs of this machine."""

    def __init__(self, library: Library) -> None:
        self._library = library
        count = library.nvmlDeviceGetCount()
        self._cards = [library.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
        # Per card: utilisation samples up to this time (µs) have been read.
        self._seen_until = [0] * count

    def read(self) -> dict[int, GpuUse]:
        """Returns what each process uses of the GPUs, by pid: memory now, and percent since the
        last read (of the whole card where no more is known)."""
        return use_by_process(self._read_card(index) for index in range(len(self._cards)))

    def _read_card(self, index: int) -> CardReading:
        card = self._cards[index]
        memory: dict[int, int] = {}
        with suppress(self._library.NVMLError):
            for one in self._library.nvmlDeviceGetComputeRunningProcesses(card):
                # Memory is None where the driver does not tell it (some virtual cards).
                memory[one.pid] = one.usedGpuMemory or 0
        percent = self._percent_by_process(index, card)
        if percent is None:
            of_card = 0.0
            with suppress(self._library.NVMLError):
                of_card = float(self._library.nvmlDeviceGetUtilizationRates(card).gpu)
            percent = dict.fromkeys(memory, of_card)
        return CardReading(memory_bytes=memory, percent=percent)

    def _percent_by_process(self, index: int, card: Card) -> dict[int, float] | None:
        """Returns how busy each process keeps a card, in percent. None if the card does not
        tell that, or has nothing new to tell."""
        since = self._seen_until[index]
        try:
            samples = self._library.nvmlDeviceGetProcessUtilization(card, since)
        except self._library.NVMLError:
            return None
        told = {one.pid: one for one in samples if one.pid != PID_NONE and one.timeStamp}
        if not told:
            return None
        self._seen_until[index] = max(one.timeStamp for one in told.values())
        return {pid: float(one.smUtil) for pid, one in told.items()}


def open_gpus() -> Gpus | None:
    """Returns the GPUs of this machine, or None if it has none that can be asked."""
    try:
        library: Library = importlib.import_module("pynvml")
    except ImportError:
        return None
    try:
        library.nvmlInit()
        return Gpus(library)
    except library.NVMLError:
        return None


GpuReading = dict[int, GpuUse]


@dataclass(slots=True, kw_only=True, eq=False)
class WatchedJob:
    """Holds a job that is sampled, and its CPU time at the last sample."""

    tree: ProcessTree
    reports: JobReports
    logs: tuple[StrPath, ...]
    sampled_at: float  # by the monotonic clock
    cpu_seconds: float = 0.0


class UsageSampler:
    """Samples jobs in one thread, each from ``watch`` on until its sampling is ended."""

    def __init__(self, interval_seconds: float, *, log_bytes_max: int = LOG_BYTES_MAX) -> None:
        assert interval_seconds > 0
        self._interval_seconds = interval_seconds
        self._log_bytes_max = log_bytes_max
        self._jobs: set[WatchedJob] = set()  # add, discard and list() are atomic
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(
        self, tree: ProcessTree, reports: JobReports, logs: tuple[StrPath, ...] = ()
    ) -> Callable[[], None]:
        """Samples a job from now on; returns a function that ends this.

        Only the worker's loop may call it.
        """
        job = WatchedJob(tree=tree, reports=reports, logs=logs, sampled_at=time.monotonic())
        self._jobs.add(job)
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._sample_for_ever, name="usage-sampler", daemon=True
            )
            self._thread.start()
        return partial(self._jobs.discard, job)

    def stop(self) -> None:
        """Stops sampling, and waits until the thread has ended."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def run_once(self, gpu: GpuReading) -> None:
        """Samples every job now, and cuts logs that are too large."""
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
    """Returns one sample of one job, or None if nothing of it runs."""
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
