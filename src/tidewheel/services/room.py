"""What is free on a worker: slots and resources."""

from __future__ import annotations

from tidewheel.core.tasks.resources import Resources


class Room:
    """Counts what attempts take and give back; adopted jobs may take more than there is."""

    def __init__(self, slots: int, capacity: Resources) -> None:
        self.slots = slots
        self._labels = capacity.labels
        self._cpu = capacity.cpu
        self._memory_bytes = capacity.memory_bytes
        self._gpu = capacity.gpu

    @property
    def resources(self) -> Resources:
        return Resources(
            cpu=self._cpu,
            memory_bytes=self._memory_bytes,
            gpu=self._gpu,
            labels=self._labels,
        )

    def take(self, asked: Resources) -> None:
        self.slots -= 1
        self._add(asked, -1)

    def give_back(self, asked: Resources) -> None:
        self.slots += 1
        self._add(asked, 1)

    def _add(self, asked: Resources, sign: int) -> None:
        if asked.cpu:
            # Rounded as in the core, or 0.1 + 0.2 - 0.3 would leave less than there is.
            self._cpu = round(self._cpu + sign * asked.cpu, 6)
        self._memory_bytes += sign * asked.memory_bytes
        self._gpu += sign * asked.gpu
