"""Proves on a machine with an NVIDIA card that the GPU use of a job is sampled.

Run it by hand: PYTHONPATH=src python tests/gpu/prove_gpu_usage.py
It needs nvidia-ml-py and nothing else beside this package. A child process takes memory on
the first card and keeps it busy through libcuda alone, while the worker's own sampler
reports. Exit status 0: its memory and utilisation were seen, and none of it was taken for
that of an idle job beside it. 1: not so. 2: there is no card here.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from pathlib import Path

from tidewheel.core.queue.requests import UsageSample
from tidewheel.runners.processes import MARKER, ProcessTree, identify
from tidewheel.runners.usage import UsageSampler, open_gpus

HELD_BYTES = 2 * 2**30
BUSY_SECONDS = 20.0
INTERVAL_SECONDS = 0.5
MEMSETS_PER_WAIT = 50


def keep_card_busy() -> None:
    """Hold memory on the first card and write it over and over, until killed."""
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name: str, *args: object) -> None:
        status = getattr(cuda, name)(*args)
        if status != 0:
            raise RuntimeError(f"{name} answered {status}")

    device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(HELD_BYTES))
    words = ctypes.c_size_t(HELD_BYTES // 4)
    say("the card is busy")
    while True:
        for value in range(MEMSETS_PER_WAIT):
            call("cuMemsetD32_v2", memory, ctypes.c_uint(value), words)
        call("cuCtxSynchronize")


class PrintedReports:
    """Prints every sample and remembers it."""

    def __init__(self, name: str, is_enough: threading.Event) -> None:
        self.name = name
        self.samples: list[UsageSample] = []
        self._is_enough = is_enough

    def started(self) -> None: ...
    def progress(self, value: float) -> None: ...
    def message(
        self, text: str, output: str | None = None, values: str | None = None
    ) -> None: ...
    def log_begun(self) -> None: ...
    async def told(self) -> None: ...

    def usage(self, sample: UsageSample) -> None:
        self.samples.append(sample)
        say(f"{self.name}: {sample}")
        # The first samples may fall into the time before the memory is taken.
        if (sample.gpu_memory_bytes or 0) >= HELD_BYTES and sample.gpu_percent:
            self._is_enough.set()


def main() -> int:
    gpus = open_gpus()
    if gpus is None:
        say("no GPU, no driver or no nvidia-ml-py on this machine")
        return 2
    say(f"on the cards before: {gpus.read()}")
    is_enough = threading.Event()
    busy = PrintedReports("busy", is_enough)
    idle = PrintedReports("idle", threading.Event())
    sampler = UsageSampler(INTERVAL_SECONDS)
    with (
        started_as_job("busy", [sys.executable, __file__, "busy"]) as busy_job,
        started_as_job("idle", ["sleep", "600"]) as idle_job,
    ):
        for job, reports in ((busy_job, busy), (idle_job, idle)):
            leader = identify(job.pid)
            assert leader is not None
            sampler.watch(ProcessTree(leader=leader, directory=reports.name), reports)
        is_enough.wait(BUSY_SECONDS)
        say(f"on the cards during: {gpus.read()}; the busy job is {busy_job.pid}")
        busy_job.kill()
        idle_job.kill()
    sampler.stop()
    return verdict(busy.samples, idle.samples)


def started_as_job(name: str, command: list[str]) -> subprocess.Popen[bytes]:
    path = [str(Path(__file__).resolve().parents[2] / "src"), *filter(None, sys.path)]
    environment = os.environ | {MARKER: name, "PYTHONPATH": ":".join(path)}
    return subprocess.Popen(command, start_new_session=True, env=environment)


def verdict(busy: list[UsageSample], idle: list[UsageSample]) -> int:
    memory = max((sample.gpu_memory_bytes or 0 for sample in busy), default=0)
    percent = max((sample.gpu_percent or 0.0 for sample in busy), default=0.0)
    stray = [sample for sample in idle if sample.gpu_memory_bytes or sample.gpu_percent]
    say(f"busy: up to {memory} bytes and {percent} %; idle: {len(stray)} of {len(idle)} wrong")
    proven = memory >= HELD_BYTES and percent > 0 and not stray
    say("proven" if proven else "not proven")
    return 0 if proven else 1


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1:] == ["busy"]:
        keep_card_busy()
    sys.exit(main())
