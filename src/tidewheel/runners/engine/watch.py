"""One look at the engine for all jobs of a runner.

``docker ps`` tells of every container at once, and ``docker events`` when it is worth asking;
a Swarm tells nothing, so it is asked every second. While the engine does not answer nobody
learns anything, so nobody draws a conclusion.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from tidewheel.runners.engine.program import EngineAway
from tidewheel.runners.engine.project import Engine, Part, Sightings

AWAY_SECONDS_FIRST = 0.2
AWAY_SECONDS_MAX = 5.0
GATHER_SECONDS = 0.05  # one look for all that happens together
AGAIN_SECONDS = 0.2
EVENTS_REST_SECONDS = 1.0


class Watched(Protocol):
    """A job that wants to know."""

    @property
    def project(self) -> str: ...
    def see(self, parts: tuple[Part, ...]) -> None: ...
    def miss(self) -> None:
        """The engine is away."""
        ...


class Watch:
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
        """How long to rest the next time: an engine tells of an end before it shows it."""
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
