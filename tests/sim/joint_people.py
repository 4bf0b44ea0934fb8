"""Who drives and operates the run of a joint simulation: schedulers that compete, an operator.

A scheduler is the real `RunDriver`, in a process that takes the run when nobody holds it. The
operator does what must not change what runs in the end: pauses, holds, stops, and undoes it.
A wild one does whatever comes to mind; then no oracle knows what the run must come to.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeVar

from tests.kit.faults import QUIET_AT
from tests.kit.network import LATE_SECONDS_MAX
from tests.kit.processes import Process
from tidewheel.core.operator import verbs
from tidewheel.core.operator.definition import StoredDefinition
from tidewheel.core.operator.requests import NewCommand, RunClaim
from tidewheel.core.operator.run_log import LogEntry
from tidewheel.core.operator.verbs import Command, command_text
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.requests import HostProcess
from tidewheel.core.queue.task import Instant
from tidewheel.errors import Refused, RunHeld, Unavailable
from tidewheel.ports.store import Store
from tidewheel.scheduler.open_run import SchedulerHome, driver_of
from tidewheel.scheduler.pending_batch import PendingBatch
from tidewheel.scheduler.run_driver import RunDriver
from tidewheel.scheduler.run_engine import RunEngine
from tidewheel.scheduler.run_files import RunFiles
from tidewheel.services.definitions.snapshot import RestoredDefinition, restore
from tidewheel.services.service import Service, ServiceReport, Surroundings

SETTLED_AT = QUIET_AT + LATE_SECONDS_MAX + 1.0  # no late repetition undoes what is done now
ANSWER_LOOKS_MAX = 20  # a second apart
CLOCKS_APART = 5.0  # seconds, after so long
HOME = Path("/nowhere")

T = TypeVar("T")


class NoFiles(RunFiles):
    """The directory of a run that nobody looks into."""

    def prepare(self, definition: StoredDefinition, *, anew: bool = False) -> None:
        """Nothing is written."""

    def write_log(self, entries: Sequence[LogEntry], at: Instant) -> None:
        """Nothing is written."""


@dataclass(slots=True, kw_only=True)
class Watch:
    """What schedulers tell the world."""

    is_over: Callable[[RunView], bool]  # nobody is to take it any more
    told: Callable[[RunEngine], None]  # a batch was written, and people are told of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """Where a scheduler sits: its process, who else lives on its host, and its patience."""

    process: HostProcess
    is_alive: Callable[[HostProcess], bool]
    lease_seconds: float


class Scheduler(Service):
    """One process: takes the run whenever nobody has it, and drives it."""

    def __init__(
        self,
        store: Store,
        number: int,
        seat: Seat,
        watch: Watch,
        surroundings: Surroundings,
    ) -> None:
        super().__init__("scheduler", surroundings)
        self._store = store
        self._number = number
        self._seat = seat
        self._watch = watch
        self._driver: RunDriver | None = None
        self._is_stalled = False

    def ask_stop(self) -> None:
        super().ask_stop()
        if self._driver is not None:
            self._driver.ask_stop()

    def rest_seconds(self) -> float:
        most = 40.0 if self._is_stalled else 4.0
        return 1.0 + self._surroundings.chance.random() * most

    async def run_once(self) -> Sequence[ServiceReport]:
        run = await self._store.run(self._number)
        self._is_stalled = run.status == "stalled"
        if self._watch.is_over(run):
            return ()
        is_dead = run.owner is not None and not self._seat.is_alive(run.owner)
        claim = RunClaim(
            run=run.number,
            process=self._seat.process,
            lease_seconds=self._seat.lease_seconds,
            dead_epoch=run.epoch if is_dead else None,
        )
        try:
            lease = await self._store.claim_run(claim)
        except RunHeld:
            return ()
        home = SchedulerHome(
            store=self._store,
            home=HOME,
            environment={},
            surroundings=self._surroundings,
            new_files=NoFiles,
            read=read_here,
        )
        self._driver = driver_of(run, lease, home, on_batch=self._tell)
        await self._driver.run()
        self._is_stalled = self._driver.status == "stalled"
        self._driver = None
        return ()

    def _tell(self, engine: RunEngine, _batch: PendingBatch) -> None:
        self._watch.told(engine)


async def read_here(*what: Any) -> RestoredDefinition:
    """In this thread: a simulated clock knows of no other."""
    return restore(*what)


class Place(NamedTuple):
    """Where the operator sits."""

    process: Process
    store: Store
    chance: Random


class Operator:
    """Gives commands; a good client, who asks again until there is an answer."""

    def __init__(self, place: Place, run: RunView, tasks: Sequence[str], *, wild: bool) -> None:
        self._process, self._store, chance = place
        self._wild = wild
        self._number, self._digest = run.number, run.definition
        self._tasks = tasks
        self._chance = chance
        self._kills = chance.random() < 0.4

    async def run(self) -> None:
        """Until things are quiet; then everything is let go."""
        started_at = self._process.monotonic()
        count = self._chance.choice((3, 8) if self._wild else (0, 0, 2, 6))
        if not count:
            return
        for _ in range(count):
            await self._process.sleep(self._chance.random() * 40.0)
            await self._say(self._draw())
        lasted = self._process.monotonic() - started_at
        await self._process.sleep(max(0.0, SETTLED_AT + CLOCKS_APART - lasted))
        await self._let_go()

    def _draw(self) -> Command:
        if self._kills and self._chance.random() < 0.5:
            return verbs.Kill(ids=("*",))
        one = self._chance.choice(self._tasks)
        if self._wild and self._chance.random() < 0.8:
            return self._draw_wild(one)
        drawn: list[Command] = [
            verbs.Pause(),
            verbs.Resume(),
            verbs.Hold(ids=(one,)),
            verbs.Release(everything=True),
            verbs.Poll(ids=(one,)),
            verbs.Stop(mode="clean"),
            verbs.Stop(mode="now"),
            verbs.Reload(definition=self._digest),
        ]
        return self._chance.choice(drawn)

    def _draw_wild(self, one: str) -> Command:
        flow = self._chance.choice(("", "new", "all", "none"))
        drawn: list[Command] = [
            verbs.Trigger(ids=(one,), flow=flow),
            verbs.Trigger(ids=(one,), flow=flow),
            verbs.Set(ids=(one,)),
            verbs.Set(ids=(one,), prerequisites=("all",)),
            verbs.Remove(ids=(one,), kill=True),
            verbs.Remove(ids=(one,), forget=True),
        ]
        return self._chance.choice(drawn)

    async def _let_go(self) -> None:
        """Both commands until they were obeyed, or there is nothing left to let go."""
        for command in (verbs.Resume(), verbs.Release(everything=True)):
            while not await self._is_obeyed(command):
                run = await self._insist(lambda: self._store.run(self._number))
                if run.status == "completed" and run.owner is None:
                    return
                await self._process.sleep(2.0)

    async def _is_obeyed(self, command: Command) -> bool:
        """A command may be taken and meet the end of the run: then it is refused later."""
        number = await self._say(command)
        for _ in range(ANSWER_LOOKS_MAX if number else 0):
            given = await self._insist(lambda: self._store.command(number))
            if given.answered_at is not None:
                return given.refused is None
            await self._process.sleep(1.0)
        return False

    async def _say(self, command: Command) -> int:
        """Its number; 0 if nobody drives the run, who could obey."""
        new = NewCommand(run=self._number, body=command_text(command), who="operator")
        try:
            number: int = await self._insist(lambda: self._store.post_command(new))
        except Refused:
            return 0
        return number

    async def _insist(self, call: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await call()
            except Unavailable:
                await self._process.sleep(self._chance.random() * 2.0)
