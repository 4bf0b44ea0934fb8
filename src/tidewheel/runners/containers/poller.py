"""Looks at the engine once for all jobs of a runner: what there is, and what it uses.

``docker ps`` tells of every container at once, and ``docker events`` when it is worth asking;
a Swarm tells nothing, so it is asked every second. While the engine does not answer nobody
learns anything, so nobody draws a conclusion.

One ``docker stats`` samples the running containers of all jobs. A Swarm's containers may run on
other machines, whose engines nobody here can ask: stages on a Swarm are not sampled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from tidewheel.core.queue.requests import UsageSample
from tidewheel.errors import BadSetting
from tidewheel.quantities import parse_size
from tidewheel.runners.containers.docker_cli import Cli, EngineAway, json_rows
from tidewheel.runners.containers.project import Engine, ProjectPart, Sightings

AWAY_SECONDS_FIRST = 0.2
AWAY_SECONDS_MAX = 5.0
GATHER_SECONDS = 0.05  # one look for all that happens together
AGAIN_SECONDS = 0.2
EVENTS_REST_SECONDS = 1.0


class Watched(Protocol):
    """A job that wants to know."""

    @property
    def project(self) -> str: ...
    def see(self, parts: tuple[ProjectPart, ...]) -> None: ...
    def miss(self) -> None:
        """The engine is away."""
        ...


class EnginePoller:
    """Looks while there is anybody who wants to know."""

    def __init__(self, engine: Engine, on_trouble: Callable[[str | None], None]) -> None:
        self._on_trouble = on_trouble
        self._engine = engine
        self._jobs: set[Watched] = set()
        self._alarm = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._resting: set[asyncio.Task[None]] = set()  # cancelled, and not yet over

    def add(self, job: Watched) -> None:
        self._jobs.add(job)
        self.poke()
        if not self._tasks:
            self._tasks = {asyncio.create_task(self._look_on())}
            arguments = self._engine.events_arguments()
            if arguments is not None:
                self._tasks.add(asyncio.create_task(self._listen(arguments)))

    def remove(self, job: Watched) -> None:
        self._jobs.discard(job)
        if not self._jobs:
            self._rest()

    def poke(self) -> None:
        """Something has happened: look."""
        self._alarm.set()

    async def stop(self) -> None:
        """Look no more."""
        self._rest()
        if self._resting:
            await asyncio.wait(set(self._resting))

    def _rest(self) -> None:
        for task in self._tasks:
            task.cancel()
            self._resting.add(task)
            task.add_done_callback(self._resting.discard)
        self._tasks = set()

    async def _look_on(self) -> None:
        is_away = False
        away_seconds, rest_seconds = AWAY_SECONDS_FIRST, AGAIN_SECONDS
        while True:
            self._alarm.clear()
            wanted = list(self._jobs)
            try:
                sightings = await self._engine.look()
            except (EngineAway, ValueError, KeyError) as away:  # nothing, or nonsense
                self._on_trouble(str(away))
                is_away = True
                for job in wanted:
                    job.miss()
                await asyncio.sleep(away_seconds)
                away_seconds = min(away_seconds * 2, AWAY_SECONDS_MAX)
                continue
            if is_away:
                self._on_trouble(None)
                is_away = False
            away_seconds = AWAY_SECONDS_FIRST
            _show(wanted, sightings)
            rest_seconds = await self._rest_until_alarmed(rest_seconds)

    async def _rest_until_alarmed(self, rest_seconds: float) -> float:
        """Returns how long to rest next: an engine tells of an end before it shows it."""
        try:
            async with asyncio.timeout(rest_seconds):
                await self._alarm.wait()
        except TimeoutError:
            return self._engine.look_seconds
        await asyncio.sleep(GATHER_SECONDS)
        return min(AGAIN_SECONDS, self._engine.look_seconds)

    async def _listen(self, arguments: tuple[str, ...]) -> None:
        """Be told of what happens; without that, the looks alone are enough."""
        while True:
            async with self._engine.cli.following(*arguments) as process:
                assert process.stdout is not None
                while await process.stdout.read(4096):
                    self.poke()
            for job in self._jobs:
                job.miss()
            self.poke()
            await asyncio.sleep(EVENTS_REST_SECONDS)


def _show(jobs: list[Watched], sightings: Sightings) -> None:
    for job in jobs:
        sighting = sightings.get(job.project)
        job.see(() if sighting is None else sighting.parts)


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
    """Makes a sample from ``12.34%`` and ``1.5MiB / 7.6GiB``; a container that has ended has
    ``--``."""
    return UsageSample(
        memory_bytes=parse_size(memory.partition("/")[0]),
        cpu_percent=round(float(cpu.rstrip("%")), 1),
    )


def _together(parts: Sequence[UsageSample]) -> UsageSample:
    return UsageSample(
        memory_bytes=sum(part.memory_bytes or 0 for part in parts),
        cpu_percent=round(sum(part.cpu_percent or 0.0 for part in parts), 1),
    )
