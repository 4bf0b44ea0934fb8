"""Who drives and operates the run of a joint simulation: schedulers that compete, an operator.

A scheduler is the real `RunDriver`, in a process that takes the run when nobody holds it. The
operator does what must not change what runs in the end: pauses, holds, stops, and undoes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tidewheel.core.runs import commands
from tidewheel.core.runs.commands import Command, command_text
from tidewheel.core.runs.definition import StoredDefinition
from tidewheel.core.runs.requests import NewCommand, RunClaim
from tidewheel.core.runs.run_log import Line
from tidewheel.core.runs.views import RunView
from tidewheel.core.tasks.requests import HostProcess
from tidewheel.core.tasks.task import Instant
from tidewheel.errors import Refused, RunHeld, Unavailable
from tidewheel.ports import Store
from tidewheel.services.scheduler.outcome import Work
from tidewheel.services.scheduler.run_driver import RunDriver
from tidewheel.services.scheduler.run_files import RunFiles
from tidewheel.services.scheduler.stage import Stage
from tidewheel.services.scheduler.taking import SchedulerHome, driver_of
from tidewheel.services.service import Service, ServiceReport, Surroundings
from tidewheel.testing.faults import QUIET_AT
from tidewheel.testing.network import LATE_SECONDS_MAX
from tidewheel.testing.processes import Process

SETTLED_AT = QUIET_AT + LATE_SECONDS_MAX + 1.0  # no late repetition undoes what is done now
CLOCKS_APART = 5.0  # seconds, after so long
HOME = Path("/nowhere")


class NoFiles(RunFiles):
    """The directory of a run that nobody looks into."""

    def prepare(self, definition: StoredDefinition, *, anew: bool = False) -> None:
        """Nothing is written."""

    def write_log(self, lines: Sequence[Line], at: Instant) -> None:
        """Nothing is written."""


@dataclass(slots=True, kw_only=True)
class Watch:
    """What schedulers tell the world."""

    is_over: Callable[[RunView], bool]  # nobody is to take it any more
    told: Callable[[int, int], None]  # epoch and number of a batch that people are told of


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
        )
        self._driver = driver_of(run, lease, home, on_batch=self._tell)
        await self._driver.run()
        self._is_stalled = self._driver.status == "stalled"
        self._driver = None
        return ()

    def _tell(self, stage: Stage, _work: Work) -> None:
        lease = stage.drive.lease
        self._watch.told(lease.epoch, lease.batch)


class Operator:
    """Gives commands; a good client, who asks again until there is an answer."""

    def __init__(
        self, process: Process, store: Store, run: RunView, tasks: Sequence[str], chance: Random
    ) -> None:
        self._process = process
        self._store = store
        self._number, self._digest = run.number, run.definition
        self._tasks = tasks
        self._chance = chance
        self._kills = chance.random() < 0.4

    async def run(self) -> None:
        """Until things are quiet; then everything is let go."""
        started_at = self._process.monotonic()
        count = self._chance.choice((0, 0, 2, 6))
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
            return commands.Kill(ids=("*",))
        one = self._chance.choice(self._tasks)
        drawn = [
            commands.Pause(),
            commands.Resume(),
            commands.Hold(ids=(one,)),
            commands.Release(everything=True),
            commands.Poll(ids=(one,)),
            commands.Stop(mode="clean"),
            commands.Stop(mode="now"),
            commands.Reload(definition=self._digest),
        ]
        return self._chance.choice(drawn)

    async def _let_go(self) -> None:
        for command in (commands.Resume(), commands.Release(everything=True)):
            while not await self._say(command):
                if (
                    await self._insist(lambda: self._store.run(self._number))
                ).status == "completed":
                    return
                await self._process.sleep(2.0)

    async def _say(self, command: Command) -> bool:
        """Whether it was taken; a run that nobody drives takes none."""
        new = NewCommand(run=self._number, body=command_text(command), who="operator")
        try:
            await self._insist(lambda: self._store.post_command(new))
        except Refused:
            return False
        return True

    async def _insist(self, call):  # type: ignore[no-untyped-def]  # whatever the store answers
        while True:
            try:
                return await call()
            except Unavailable:
                await self._process.sleep(self._chance.random() * 2.0)
