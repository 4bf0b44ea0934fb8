"""The simulated world of the queue: clients, workers, monitors, and faults, from one seed.

The workers and monitors are the real services. Everything around them is simulated: time,
the way to the store, the machines with their jobs, the people. All that was accepted must
come to its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from random import Random

from tests.kit.campaign import Outcome
from tests.kit.event_log import EVENTS_KEPT
from tests.kit.faults import QUIET_AT, SKEWED_CLOCK, Blow, Strike
from tests.kit.inhabitants import Inhabitant
from tests.kit.invariants import BrokenInvariant, Call, Invariants
from tests.kit.machines import Machine
from tests.kit.population import People, draw_monitors, draw_workers
from tests.kit.simulated_world import (
    KEEP_FOR_EVER,
    Beginning,
    SimulatedWorld,
    live_through,
)
from tests.kit.workload import draw_queues

HORIZON = QUIET_AT + 400.0  # by then everything must have ended


def run_schedule(seed: int, *, calm: bool = False, events_kept: int = EVENTS_KEPT) -> Outcome:
    """Live through one world; ``calm`` switches every fault off."""

    def make(loop: asyncio.AbstractEventLoop) -> QueueWorld:
        chance = Random(seed)
        return QueueWorld(
            Beginning(seed=seed, chance=chance, loop=loop, calm=calm, events_kept=events_kept)
        )

    return live_through(make)


class QueueWorld(SimulatedWorld):
    """Tasks that clients ask for, and those who see to them."""

    def __init__(self, beginning: Beginning) -> None:
        super().__init__(beginning)
        self._people_done = False
        self._retention_seconds = self._chance.choice((None, None, 10.0, 25.0))
        self.settle(
            Invariants(
                self._ground.database_now,
                retention_seconds=self._retention_seconds or KEEP_FOR_EVER,
                gone=self.is_gone,
                on_step=self.on_step,
            )
        )

    def populate(self) -> Coroutine[object, object, None]:
        scene, executions = self._scene, self._judge.executions
        queues = draw_queues(self._chance)
        for name, settings in queues.items():
            self._network.execute(Call("world", "configure_queue", (name, settings), {}))
        people = People(self._seed, scene, list(queues))
        machines = [
            Machine(f"machine-{number}", executions, people.script, self.breaks)
            for number in range(self._chance.randint(2, 6))
        ]
        self._inhabitants = [
            *draw_workers(scene, list(queues), machines),
            *draw_monitors(scene, self._retention_seconds),
        ]
        for inhabitant in self._inhabitants:
            self._loop.call_later(self._chance.random() * 2.0, inhabitant.begins)
        if self._plan.skewed_clocks:
            self._network.faults[SKEWED_CLOCK] += 1
        return people.live()

    def on_people_done(self, living: asyncio.Task[None]) -> None:
        super().on_people_done(living)
        self._people_done = True

    def victims(self, blow: Blow) -> list[Inhabitant]:
        """Only workers are asked to stop."""
        workers_only = blow.strike is Strike.STOP
        living = super().victims(blow)
        return [one for one in living if one.machine is not None or not workers_only]

    def is_done(self) -> bool:
        return self._people_done and self.is_quiet()

    def never_ends(self) -> BrokenInvariant | None:
        if self._loop.time() <= HORIZON:
            return None
        self.judge_ending()  # what is wrong in particular says more, and the first counts
        return BrokenInvariant("D2 everything comes to its end", "it is not quiet")

    def counts(self) -> dict[str, int]:
        return {"tasks": len(self._judge.facts.tasks), "steps": self._ground.log.count}
