"""Takes runs that wait for a scheduler, or whose own one died, and drives them.

Theory of operation
-------------------
A run is leased (DESIGN §4). Its driver renews the lease with every write; if that ends, the
lease lapses and the run can be claimed. Any number of these services may look for such
runs: the store gives each to one of them, under a new epoch, and from then on refuses every
write of the one before. Runs know nothing of each other: one that fails is put aside by its own
driver, and one that cannot even be opened is left for the time of a lease.

A run that was begun through a server waits for whichever scheduler looks first; if it cannot be
taken, that is tried again after the time of a lease.

Where a scheduler died after it had ended its run, event handlers may be left that were not
called; another one calls them once the run has been over for longer than its own scheduler
would have needed.

A run that is a task of another is taken even where no more runs would be: the other one has a
place already, and would wait for it.

A service that is asked to stop gives its runs back at once, as they are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from tidewheel.config import SchedulerSettings
from tidewheel.core.operator.views import RunView
from tidewheel.errors import Refused
from tidewheel.ports.store import Store
from tidewheel.services.service import Service, ServiceReport, Surroundings, TaskGroup

LOOKED_AT_MAX = 10_000  # as many as one call may ask for
NESTED_AT_ONCE = 100  # runs that are tasks of another, taken with one look
# Claims a run and makes a driver for it; RunHeld if another was faster.
TakeRun = Callable[[RunView], AbstractAsyncContextManager["Drives"]]
# Delivers the events of a run that is over which its own scheduler did not.
DeliverLeft = Callable[[RunView], Awaitable[object]]
QUIET_SECONDS = 60.0  # twice as long as a scheduler waits for its handlers


class Drives(Protocol):
    """Describes what advances one run: a driver in this process, or one in another."""

    status: str  # how it ended
    reason: str

    async def run(self) -> None: ...
    def ask_stop(self) -> None: ...


class SchedulerService(Service):
    """Takes over runs until it is asked to stop."""

    def __init__(
        self,
        store: Store,
        take_run: TakeRun,
        settings: SchedulerSettings,
        surroundings: Surroundings,
        deliver_left: DeliverLeft | None = None,
        under: str | None = None,
    ) -> None:
        """Sets up the service; with ``under`` it takes only runs whose names begin so."""
        super().__init__("scheduler", surroundings)
        self._under = under
        self._nested: set[int] = set()  # those that are driven here and tasks of another
        self._deliver_left = deliver_left
        self._late: set[int] = set()  # runs whose events are being told
        self._store = store
        self._take_run = take_run
        self._settings = settings
        self._crew = TaskGroup()
        self._drivers: dict[int, Drives | None] = {}  # None: being claimed
        self._put_off: dict[int, float] = {}  # until when, by this process's clock

    def rest_seconds(self) -> float | None:
        return self._settings.interval_seconds

    async def run(self) -> None:
        await super().run()
        for driver in self._drivers.values():
            if driver is not None:
                driver.ask_stop()
        while self._drivers:
            await self._alarm.wait()
        await self._crew.dismiss()

    async def run_once(self) -> Sequence[ServiceReport]:
        room = self._settings.runs_max - len(self._drivers.keys() - self._nested)
        now = self._clock.monotonic()
        self._put_off = {run: at for run, at in self._put_off.items() if now < at}
        # Those that are put off, or are just being claimed, must not hide all others.
        passed_over = self._drivers.keys() | self._put_off.keys()
        count = min(LOOKED_AT_MAX, max(room, 0) + len(passed_over) + NESTED_AT_ONCE)
        found = await self._store.claimable_runs(count, self._under)
        new = [run for run in found if run.number not in passed_over]
        tasks = [run for run in new if run.parent is not None]
        self._nested.update(run.number for run in tasks)
        others = [run for run in new if run.parent is None]
        for run in (*tasks, *others[: max(room, 0)]):
            self._drivers[run.number] = None
            self._crew.add(self._drive(run))
        if self._deliver_left is not None and room > 0:
            for run in await self._store.undelivered_runs(QUIET_SECONDS, room):
                busy = self._late | self._drivers.keys() | self._put_off.keys()
                if run.number not in busy:
                    self._late.add(run.number)
                    self._crew.add(self._deliver(run, self._deliver_left))
        return []

    async def _deliver(self, run: RunView, deliver: DeliverLeft) -> None:
        try:
            count = await deliver(run)
            self.tell("run.told", run=run.name, count=count)
        except Exception as error:
            self.tell("run.not_told", run=run.name, error=repr(error))
            self._try_later(run)
        finally:
            self._late.discard(run.number)

    async def _drive(self, run: RunView) -> None:
        """Drives one run to its end; its failures are reported and harm no other run."""
        try:
            async with self._take_run(run) as driver:
                self._drivers[run.number] = driver
                self.tell("run.taken", run=run.name, status=run.status)
                if self._stop_asked:
                    driver.ask_stop()
                await driver.run()
                self.tell("run.left", run=run.name, status=driver.status, why=driver.reason)
        except Refused as refused:  # another was faster, or it was deleted meanwhile
            self.tell("run.not_taken", run=run.name, reason=str(refused))
            if run.given is not None:  # nobody has a lease that would have to run out first
                self._try_later(run)
        except Exception as error:
            self.tell("run.failed", run=run.name, error=repr(error))
            self._try_later(run)  # it may have failed before there was a lease
        finally:
            del self._drivers[run.number]
            self._nested.discard(run.number)
            if self._stop_asked:  # else the next look is soon enough, and never at once
                self.wake()

    def _try_later(self, run: RunView) -> None:
        self._put_off[run.number] = self._clock.monotonic() + self._settings.lease_seconds
