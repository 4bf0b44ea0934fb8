"""What running containers use: one ``docker stats`` for all jobs of a runner.

A Swarm's containers may run on other machines, whose engines nobody here can ask: stages on a
Swarm are not sampled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from tidewheel.core.queue.requests import UsageSample
from tidewheel.errors import BadSetting
from tidewheel.quantities import parse_size
from tidewheel.runners.engine.program import Cli, EngineAway, json_rows

CONTAINERS_MAX = 500  # that are asked for at once; of more, the first ones
FIELDS = "[{{json .ID}},{{json .CPUPerc}},{{json .MemUsage}}]"


class Sampled(Protocol):
    """A job that is told what it uses."""

    @property
    def running(self) -> tuple[str, ...]:
        """The ids of its containers."""
        ...

    def use(self, sample: UsageSample) -> None: ...


class ContainerSampler:
    """Samples while there are jobs, beside everything else: docker measures for a second."""

    def __init__(
        self, cli: Cli, jobs: Callable[[], Collection[Sampled]], interval_seconds: float
    ) -> None:
        self._cli, self._jobs = cli, jobs
        self._interval_seconds = interval_seconds
        self._sampling: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """There is a job."""
        if self._sampling is None or self._sampling.done():
            self._sampling = asyncio.create_task(self._sample_on(), name="container usage")

    async def stop(self) -> None:
        """Sample no more."""
        if self._sampling is not None:
            self._sampling.cancel()
            await asyncio.wait({self._sampling})

    async def _sample_on(self) -> None:
        while self._jobs():
            await asyncio.sleep(self._interval_seconds)
            await self.run_once()

    async def run_once(self) -> None:
        """Ask for all, and tell each what its containers use together."""
        wanted = [(job, job.running) for job in self._jobs()]
        ids = [one for _, running in wanted for one in running][:CONTAINERS_MAX]
        used = await self._ask(ids) if ids else {}
        for job, running in wanted:
            if parts := [used[one] for one in running if one in used]:
                job.use(_together(parts))

    async def _ask(self, ids: Sequence[str]) -> dict[str, UsageSample]:
        """Nothing if one of them is gone by now: the next time will do."""
        words = ("stats", "--no-stream", "--no-trunc", "--format", FIELDS)
        try:
            answer = await self._cli.call(self._cli.docker, *words, *ids)
            return {id_: _sample(cpu, memory) for id_, cpu, memory in json_rows(answer.out)}
        except (EngineAway, BadSetting, ValueError):
            return {}


def _sample(cpu: str, memory: str) -> UsageSample:
    """From ``12.34%`` and ``1.5MiB / 7.6GiB``; a container that has ended has ``--``."""
    return UsageSample(
        memory_bytes=parse_size(memory.partition("/")[0]),
        cpu_percent=round(float(cpu.rstrip("%")), 1),
    )


def _together(parts: Sequence[UsageSample]) -> UsageSample:
    return UsageSample(
        memory_bytes=sum(part.memory_bytes or 0 for part in parts),
        cpu_percent=round(sum(part.cpu_percent or 0.0 for part in parts), 1),
    )
