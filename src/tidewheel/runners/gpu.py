"""How much of the GPUs each process uses, as NVIDIA's management library tells it.

No library, no driver or no card means "no GPU" and is not an error. Memory is known per
process. Utilisation per process is not told by every card or driver; where it is not, the
utilisation of the whole card stands for each process on it.
"""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

PID_NONE = 0xFFFFFFFF  # the library's "this slot holds no process"

Card = object  # a handle of the library's


class ComputeProcess(Protocol):
    """A process that has memory on a card."""

    pid: int
    usedGpuMemory: int | None


class ProcessUtilization(Protocol):
    """How busy a process kept a card, up to ``timeStamp`` in microseconds."""

    pid: int
    timeStamp: int
    smUtil: int


class CardUtilization(Protocol):
    """How busy a card was."""

    gpu: int


class ManagementLibrary(Protocol):
    """What is used of ``pynvml``, which has no types of its own."""

    NVMLError: type[Exception]

    def nvmlInit(self) -> None: ...
    def nvmlDeviceGetCount(self) -> int: ...
    def nvmlDeviceGetHandleByIndex(self, index: int) -> Card: ...
    def nvmlDeviceGetComputeRunningProcesses(self, card: Card) -> Sequence[ComputeProcess]: ...
    def nvmlDeviceGetProcessUtilization(
        self, card: Card, since: int
    ) -> Sequence[ProcessUtilization]: ...
    def nvmlDeviceGetUtilizationRates(self, card: Card) -> CardUtilization: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUse:
    """What one process, or several together, use of all GPUs."""

    percent: float = 0.0  # of one GPU: two busy ones are 200
    memory_bytes: int = 0

    def __add__(self, other: GpuUse) -> GpuUse:
        """Both together."""
        return GpuUse(
            percent=self.percent + other.percent,
            memory_bytes=self.memory_bytes + other.memory_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CardReading:
    """What one card says about its processes, by pid."""

    memory_bytes: dict[int, int]
    percent: dict[int, float]


def use_by_process(readings: Iterable[CardReading]) -> dict[int, GpuUse]:
    """What each process uses of all cards together."""
    use: dict[int, GpuUse] = defaultdict(GpuUse)
    for reading in readings:
        for pid in reading.memory_bytes.keys() | reading.percent.keys():
            use[pid] += GpuUse(
                percent=reading.percent.get(pid, 0.0),
                memory_bytes=reading.memory_bytes.get(pid, 0),
            )
    return dict(use)


class Gpus:
    """The GPUs of this machine."""

    def __init__(self, library: ManagementLibrary) -> None:
        self._library = library
        count = library.nvmlDeviceGetCount()
        self._cards = [library.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
        # Per card: utilisation samples up to this time (µs) have been read.
        self._seen_until = [0] * count

    def read(self) -> dict[int, GpuUse]:
        """What each process uses now."""
        return use_by_process(self._read_card(index) for index in range(len(self._cards)))

    def _read_card(self, index: int) -> CardReading:
        card = self._cards[index]
        memory = self._memory_by_process(card)
        percent = self._percent_by_process(index, card)
        if percent is None:
            percent = dict.fromkeys(memory, self._percent_of_card(card))
        return CardReading(memory_bytes=memory, percent=percent)

    def _memory_by_process(self, card: Card) -> dict[int, int]:
        try:
            processes = self._library.nvmlDeviceGetComputeRunningProcesses(card)
        except self._library.NVMLError:
            return {}
        # Memory is None where the driver does not tell it (some virtual cards).
        return {one.pid: one.usedGpuMemory or 0 for one in processes}

    def _percent_by_process(self, index: int, card: Card) -> dict[int, float] | None:
        """None where the card does not tell, or has nothing new to tell."""
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

    def _percent_of_card(self, card: Card) -> float:
        try:
            return float(self._library.nvmlDeviceGetUtilizationRates(card).gpu)
        except self._library.NVMLError:
            return 0.0


def open_gpus() -> Gpus | None:
    """The GPUs of this machine, or None if it has none that can be asked."""
    try:
        library = cast(ManagementLibrary, importlib.import_module("pynvml"))
    except ImportError:
        return None
    try:
        library.nvmlInit()
        return Gpus(library)
    except library.NVMLError:
        return None
