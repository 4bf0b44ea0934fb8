"""Counts what is free: slots of a worker, and resources of its machine.

Workers of one process may share a machine. Each claims what is free at that moment, so only one
of them claims at a time, and each is told what any of them gives back.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from tidewheel.core.queue.resources import Resources


class AwaitsCapacity(Protocol):
    """A claimer: it asks for more tasks when something becomes free."""

    def hear_freed(self, freed: Sequence[Resources]) -> None: ...


class Machine:
    """Counts what attempts take and give back; adopted jobs may take more than there is."""

    def __init__(self, capacity: Resources) -> None:
        self.claiming = asyncio.Lock()  # from the look at what is free until it is taken
        self._claimers: list[AwaitsCapacity] = []
        self._labels = capacity.labels
        self._cpu = capacity.cpu
        self._memory_bytes = capacity.memory_bytes
        self._gpu = capacity.gpu
        self._nodes = capacity.nodes  # less those that somebody has alone
        self._shared: Counter[int] = Counter()  # how many tasks share so many nodes
        self._buffer_bytes = capacity.buffer_bytes

    @property
    def resources(self) -> Resources:
        return Resources(
            cpu=self._cpu,
            memory_bytes=self._memory_bytes,
            gpu=self._gpu,
            labels=self._labels,
            nodes=max(0, self._nodes),
            idle_nodes=self.idle_nodes,
            buffer_bytes=self._buffer_bytes,
        )

    @property
    def has_nodes(self) -> bool:
        """Returns whether any task at all could begin."""
        return self._nodes > 0

    @property
    def idle_nodes(self) -> int:
        """Returns the number of nodes on which nothing runs."""
        return max(0, self._nodes - max(self._shared, default=0))

    def may_follow(self, asked: Resources) -> bool:
        """Returns whether more may be left of a claim that ended with this: one for nodes alone
        ends it, and so does the one before such a task."""
        return (self._nodes if asked.exclusive else self.idle_nodes) > 0

    def take(self, asked: Resources) -> None:
        self._add(asked, -1)

    def give_back(self, asked: Resources) -> None:
        self._add(asked, 1)

    def add_claimer(self, claimer: AwaitsCapacity) -> None:
        """Tells this claimer, too, what becomes free."""
        self._claimers.append(claimer)

    def tell_freed(self, freed: Sequence[Resources]) -> None:
        """Tells all claimers what attempts that are over have given back."""
        for claimer in self._claimers:
            claimer.hear_freed(freed)

    def _add(self, asked: Resources, sign: int) -> None:
        if asked.cpu:
            # Rounded as in the core, or 0.1 + 0.2 - 0.3 would leave less than there is.
            self._cpu = round(self._cpu + sign * asked.cpu, 6)
        self._memory_bytes += sign * asked.memory_bytes
        self._gpu += sign * asked.gpu
        self._buffer_bytes += sign * asked.buffer_bytes
        if asked.exclusive:
            self._nodes += sign * asked.nodes
            return
        self._shared[asked.nodes] -= sign
        if not self._shared[asked.nodes]:
            del self._shared[asked.nodes]


class Capacity:
    """The slots of one worker on a machine."""

    def __init__(self, slots: int, machine: Machine) -> None:
        self.slots = slots
        self.machine = machine

    def take(self, asked: Resources) -> None:
        self.slots -= 1
        self.machine.take(asked)

    def give_back(self, asked: Resources) -> None:
        self.slots += 1
        self.machine.give_back(asked)
