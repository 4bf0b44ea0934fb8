"""One simulated world, made and driven by one seed: clients, workers, monitors, and faults.

The workers and monitors are the real services. Everything around them is simulated: time,
the way to the store, the machines with their jobs, the people. For two minutes things go
wrong; then nothing does any more, and all that was accepted must come to its end.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

from tidewheel.store.memory import MemoryStore
from tidewheel.testing.event_log import EVENTS_KEPT, EventLog
from tidewheel.testing.faults import (
    QUIET_AT,
    SKEWED_CLOCK,
    Blow,
    FaultPlan,
    Strike,
    draw_faults,
)
from tidewheel.testing.ground import Ground
from tidewheel.testing.inhabitants import Inhabitant, Scene
from tidewheel.testing.invariants import BrokenInvariant, Call, Invariants
from tidewheel.testing.machines import Machine
from tidewheel.testing.moving_loop import MovingLoop
from tidewheel.testing.network import Network, run_at_once
from tidewheel.testing.population import People, draw_monitors, draw_workers
from tidewheel.testing.rules.ending import check_ending
from tidewheel.testing.rules.executions import check_calm
from tidewheel.testing.rules.steps import Step
from tidewheel.testing.virtual_time import Standstill
from tidewheel.testing.workload import draw_queues

HORIZON = QUIET_AT + 400.0  # by then everything must have ended
LOOK_SECONDS = 1.0
KEEP_FOR_EVER = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one schedule went."""

    seed: int
    broken: BrokenInvariant | None
    steps: int
    digest: str
    faults: Counter[str]
    tasks: int
    seconds: float  # of virtual time
    last_events: list[str]


def run_schedule(seed: int, *, calm: bool = False, events_kept: int = EVENTS_KEPT) -> Outcome:
    """Live through one world; ``calm`` switches every fault off."""
    loop = MovingLoop()
    loop.set_exception_handler(_ignore)
    world = World(seed, loop, calm=calm, events_kept=events_kept)
    try:
        loop.run_until_complete(world.run())
    except Standstill as standstill:
        world.breaks(BrokenInvariant("D2 time goes on", str(standstill)))
    finally:
        loop.turns = 0
        _cancel_everything(loop)
        loop.close()
    return world.outcome()


def _ignore(_loop: asyncio.AbstractEventLoop, _context: dict[str, Any]) -> None:
    """Answers that nobody fetched, because whoever asked is dead."""


def _cancel_everything(loop: asyncio.AbstractEventLoop) -> None:
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))


class World:
    """Everything that exists in one schedule."""

    def __init__(
        self, seed: int, loop: asyncio.AbstractEventLoop, *, calm: bool, events_kept: int
    ) -> None:
        self._seed = seed
        self._loop = loop
        self._broken: BrokenInvariant | None = None
        self._over: asyncio.Future[None] = loop.create_future()
        self._ground = Ground(loop=loop, log=EventLog(kept=events_kept), on_broken=self.breaks)
        chance = self._chance = Random(seed)
        drawn = draw_faults(chance)
        self._plan = FaultPlan(skewed_clocks=True) if calm else drawn
        self._retention_seconds = chance.choice((None, None, 10.0, 25.0))
        self._judge = Invariants(
            self._ground.database_now,
            retention_seconds=self._retention_seconds or KEEP_FOR_EVER,
            gone=self._is_gone,
            on_step=self._on_step,
        )
        self._store = MemoryStore(
            self._ground.database_now,
            chance=Random(chance.random()).random,
            on_commit=self._judge.on_commit,
        )
        dice = Random(chance.random())
        self._network = Network(self._store, self._judge, self._plan, dice, self._ground)
        self._scene = Scene(
            ground=self._ground,
            network=self._network,
            judge=self._judge,
            chance=Random(chance.random()),
            skewed_clocks=self._plan.skewed_clocks,
        )
        self._inhabitants: list[Inhabitant] = []

    async def run(self) -> None:
        """From the beginning to the end, or to the first broken invariant."""
        people = self._populate()
        for blow in self._plan.blows:
            self._loop.call_at(blow.at, self._strike, blow)
        living = self._loop.create_task(people.live())
        self._loop.call_later(LOOK_SECONDS, self._look, living)
        await self._over
        if self._broken is None:
            self._judge_ending()

    def breaks(self, broken: BrokenInvariant) -> None:
        """The first broken invariant ends the world."""
        self._broken = self._broken or broken
        if not self._over.done():
            self._over.set_result(None)

    def outcome(self) -> Outcome:
        log = self._ground.log
        return Outcome(
            seed=self._seed,
            broken=self._broken,
            steps=log.count,
            digest=log.digest,
            faults=self._network.faults,
            tasks=len(self._judge.facts.tasks),
            seconds=self._loop.time(),
            last_events=log.last(),
        )

    def _populate(self) -> People:
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
        return people

    def _strike(self, blow: Blow) -> None:
        """Let the store have it, or one of those who live."""
        workers_only = blow.strike is Strike.STOP
        living = [
            one
            for one in self._inhabitants
            if one.alive and (one.machine is not None or not workers_only)
        ]
        victim = living[int(blow.victim * len(living))] if living else None
        self._network.faults[blow.strike.value] += 1
        self._ground.note(victim.name if victim else "nobody", blow.strike.value, blow.seconds)
        if blow.strike is Strike.OUTAGE:
            self._network.goes_down(blow.seconds)
        elif victim is not None:
            victim.suffers(blow)

    def _look(self, living: asyncio.Task[None]) -> None:
        """Every second: whether all is done, or never will be."""
        if living.done() and (error := living.exception()) is not None:
            self.breaks(BrokenInvariant("D2 clients are answered", repr(error)))
        elif living.done() and not self._judge.facts.live and self._judge.executions.quiet:
            self._over.set_result(None)
        elif self._loop.time() > HORIZON:
            self._judge_ending()
            self.breaks(BrokenInvariant("D2 everything comes to its end", "it is not quiet"))
        if not self._over.done():
            self._loop.call_later(LOOK_SECONDS, self._look, living)

    def _judge_ending(self) -> None:
        facts, executions = self._judge.facts, self._judge.executions
        try:
            check_ending(self._store, facts, executions, run_at_once)
            if self._plan.calm:
                check_calm(facts.tasks.values())
        except BrokenInvariant as broken:
            self.breaks(broken)

    def _is_gone(self, worker: str) -> bool:
        return self._scene.processes[self._judge.workers[worker]].dead

    def _on_step(self, step: Step) -> None:
        self._ground.note(
            "  ", step.seq, step.signal, step.to_status, step.attempt, step.worker
        )
