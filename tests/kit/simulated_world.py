"""What every simulated world has: its time, a store behind a network, faults, and an end.

Worlds differ in who lives there, in what is judged, and in when all of it is done. For two
minutes things go wrong; then nothing does any more.

The order in which chance is asked is part of what a seed means: the faults, then what a world
draws for itself, then the store, the network and the scene.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.kit.campaign import Outcome
from tests.kit.event_log import EventLog
from tests.kit.faults import Blow, FaultPlan, Strike, draw_faults
from tests.kit.ground import Ground
from tests.kit.inhabitants import Inhabitant, Scene
from tests.kit.invariants import BrokenInvariant, Invariants
from tests.kit.memory import MemoryStore
from tests.kit.moving_loop import MovingLoop
from tests.kit.network import Network, run_at_once
from tests.kit.rules.ending import check_ending
from tests.kit.rules.executions import check_calm
from tests.kit.rules.steps import Step
from tests.kit.virtual_time import Standstill

LOOK_SECONDS = 1.0
KEEP_FOR_EVER = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """What a world is made from."""

    seed: int
    chance: Random
    loop: asyncio.AbstractEventLoop
    calm: bool  # switches every fault off
    events_kept: int


def live_through(
    make_world: Callable[[asyncio.AbstractEventLoop], SimulatedWorld],
) -> Outcome:
    """One world, from its beginning to its end."""
    loop = MovingLoop()
    loop.set_exception_handler(_ignore)
    world = make_world(loop)
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
    """Until nobody is left: while the last ones end, somebody may begin."""
    while left := asyncio.all_tasks(loop):
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))


class SimulatedWorld(ABC):
    """Everything that exists in one schedule; a subclass calls ``settle`` when it has drawn."""

    def __init__(self, beginning: Beginning) -> None:
        loop = beginning.loop
        self._seed, self._loop, self._chance = beginning.seed, loop, beginning.chance
        self._broken: BrokenInvariant | None = None
        self._over: asyncio.Future[None] = loop.create_future()
        log = EventLog(kept=beginning.events_kept)
        self._ground = Ground(loop=loop, log=log, on_broken=self.breaks)
        drawn = draw_faults(self._chance)
        self._plan = FaultPlan(skewed_clocks=True) if beginning.calm else drawn
        self._inhabitants: Sequence[Inhabitant] = ()

    def settle(self, judge: Invariants) -> None:
        """The store and the way to it, before the eyes of this judge."""
        chance = self._chance
        self._judge = judge
        self._store = MemoryStore(
            self._ground.database_now,
            chance=Random(chance.random()).random,
            on_commit=judge.on_commit,
        )
        dice = Random(chance.random())
        self._network = Network(self._store, judge, self._plan, dice, self._ground)
        self._scene = Scene(
            ground=self._ground,
            network=self._network,
            judge=judge,
            chance=Random(chance.random()),
            skewed_clocks=self._plan.skewed_clocks,
        )

    async def run(self) -> None:
        """From the beginning to the end, or to the first broken invariant."""
        people = self.populate()
        for blow in self._plan.blows:
            self._loop.call_at(blow.at, self._strike, blow)
        living = self._loop.create_task(people)
        living.add_done_callback(self.on_people_done)
        self._loop.call_later(LOOK_SECONDS, self._look)
        await self._over
        if self._broken is None:
            self.judge_ending()

    def breaks(self, broken: BrokenInvariant) -> None:
        """The first broken invariant ends the world."""
        self._broken = self._broken or broken
        if not self._over.done():
            self._over.set_result(None)

    def outcome(self) -> Outcome:
        """How it went."""
        log = self._ground.log
        return Outcome(
            seed=self._seed,
            broken=self._broken,
            digest=log.digest,
            faults=self._network.faults,
            counts=self.counts(),
            last_events=log.last(),
        )

    # ---- in which worlds differ ----

    @abstractmethod
    def populate(self) -> Coroutine[object, object, None]:
        """Everybody who lives there; the life of those who ask for things."""

    @abstractmethod
    def is_done(self) -> bool:
        """Whether all has come to its end."""

    @abstractmethod
    def never_ends(self) -> BrokenInvariant | None:
        """What is wrong, if it never will."""

    @abstractmethod
    def counts(self) -> dict[str, int]:
        """How much of what there was, for people."""

    def on_people_done(self, living: asyncio.Task[None]) -> None:
        """Whoever asks for things has had the last answer."""
        if not living.cancelled() and (error := living.exception()) is not None:
            self.breaks(BrokenInvariant("D2 whoever asks is answered", repr(error)))

    def victims(self, blow: Blow) -> list[Inhabitant]:
        """Whom a blow may strike."""
        del blow
        return [one for one in self._inhabitants if one.alive]

    def check_ending(self) -> None:
        """BrokenInvariant if the end is not as it must be."""
        check_ending(self._store, self._judge.facts, self._judge.executions, run_at_once)

    def on_step(self, step: Step) -> None:
        """A task has taken a step."""
        self._ground.note(
            "  ", step.seq, step.signal, step.to_status, step.attempt, step.worker
        )

    # ---- what happens in all of them ----

    def _strike(self, blow: Blow) -> None:
        """Let the store have it, or one of those who live."""
        living = self.victims(blow)
        victim = living[int(blow.victim * len(living))] if living else None
        self._network.faults[blow.strike.value] += 1
        self._ground.note(victim.name if victim else "nobody", blow.strike.value, blow.seconds)
        if blow.strike is Strike.OUTAGE:
            self._network.goes_down(blow.seconds)
        elif victim is not None:
            victim.suffers(blow)

    def _look(self) -> None:
        """Every second: whether all is done, or never will be."""
        if self._over.done():
            return
        if self.is_done():
            self._over.set_result(None)
        elif (broken := self.never_ends()) is not None:
            self.breaks(broken)
        else:
            self._loop.call_later(LOOK_SECONDS, self._look)

    def judge_ending(self) -> None:
        """Whether all is as it must be when nothing is under way any more."""
        try:
            self.check_ending()
            if self._plan.calm:
                check_calm(self._judge.facts.tasks.values())
        except BrokenInvariant as broken:
            self.breaks(broken)

    def is_quiet(self) -> bool:
        """Whether no task is open and no job runs."""
        return not self._judge.facts.live and self._judge.executions.quiet

    def is_gone(self, worker: str) -> bool:
        """Whether the process of a worker is dead."""
        return self._scene.processes[self._judge.workers[worker]].dead
