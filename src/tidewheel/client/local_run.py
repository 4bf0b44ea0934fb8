"""Drives one run in one process: with scheduler, worker, monitor and notifier (DESIGN §3)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidewheel import config
from tidewheel.client.embedded import worker_settings
from tidewheel.core.operator.definition import RunOptions, code_queue
from tidewheel.core.operator.requests import NewCommand
from tidewheel.core.operator.verbs import Stop, command_text
from tidewheel.core.operator.views import RunView, Undone, ran_nothing, undone_in, was_aborted
from tidewheel.core.queue.requests import KeysetPage, TaskFilter
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.status import LEASED, Status
from tidewheel.errors import NotRunning, Unavailable
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.ports.store import Store
from tidewheel.runners.registry import found_runners
from tidewheel.scheduler.nested_runs import waking_for_nested
from tidewheel.scheduler.run_driver import OnBatch, RunDriver
from tidewheel.services.service import BACKOFF_DEFAULT, OnReport, ServiceReport
from tidewheel.wiring.services import (
    RunProcess,
    build_monitor,
    build_notifier,
    driving,
    driving_apart,
    surroundings,
)
from tidewheel.wiring.workers import built_worker, machine_capacity
from tidewheel.worker.worker import Worker

if TYPE_CHECKING:
    from tidewheel.scheduler.service import SchedulerService

END_SECONDS_MAX = 60.0
HURRIED_SECONDS_MAX = 2.0  # for a process that leaves; what is not sent stays in the notebook


@asynccontextmanager
async def told_meanwhile(
    store: Store, home: Path, on_report: OnReport | None, is_hurried: Callable[[], bool]
) -> AsyncIterator[None]:
    """Runs a notifier while the block runs, if the state directory has notification rules.

    When the block ends, the notifier sends what is due. It gets only a short time for that if
    ``is_hurried`` then returns True, as when the process is asked to leave at once.
    """
    if not (home / config.RULES_FILE).exists():
        yield
        return
    notifier = build_notifier(store, home, config.scheduler_settings().smtp, on_report)
    # Before the run goes on: a first notifier reads events from now on, so also of this start.
    telling = [asyncio.create_task(notifier.begin())]
    await asyncio.wait(telling)
    telling.append(asyncio.create_task(notifier.run()))
    try:
        yield
    finally:
        notifier.ask_stop()
        seconds_max = HURRIED_SECONDS_MAX if is_hurried() else END_SECONDS_MAX
        for task in telling:
            await _to_its_end(task, on_report, seconds_max)
        finishing = asyncio.create_task(notifier.finish())
        await _to_its_end(finishing, on_report, seconds_max)


async def _to_its_end(
    task: asyncio.Task[None], on_report: OnReport | None, seconds_max: float
) -> None:
    try:
        async with asyncio.timeout(seconds_max):
            await task
    except Exception as error:  # a bug in telling must not end a run
        if on_report is not None:
            facts = {"error": repr(error)}
            on_report(ServiceReport(service="notifier", event="notifier.failed", facts=facts))


# The run.

SLOTS_DEFAULT = 100
STOP_MODES = ("clean", "now")  # for the first and the second request
# Jobs of a run that was lost to another scheduler may take their time: nobody ends them.
GRACE_SECONDS = 10 * 365 * 86_400.0
LOST, LEFT = "lost", "left"
CODE_SECONDS_MAX = 30.0
CODE_LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHereSettings:
    """Holds the settings of a run that is driven in this process."""

    slots: int = SLOTS_DEFAULT
    tie_jobs: bool = False
    capacity: Resources | None = None  # None: what this machine has
    runners: tuple[str, ...] = ()  # none: those whose programs are found
    allow_compose: tuple[str, ...] = ()  # what compose files may ask of this host
    prepare_seconds: float = config.PREPARE_SECONDS_DEFAULT
    secrets: Path | None = None
    secrets_command: tuple[str, ...] = ()
    trigger_log: Path | None = None
    home: Path | None = None
    given: RunOptions | None = None  # for a run that is carried on


@dataclass(frozen=True, slots=True)
class RunEnd:
    """Holds the status that a run had when it was no longer driven here, and the reason."""

    status: str
    reason: str

    @property
    def has_run_anything(self) -> bool:
        """Says whether any task was ever ready; False only for a completed run that ran no
        task."""
        return not ran_nothing(self.reason)

    @property
    def was_aborted(self) -> bool:
        return was_aborted(self.reason)

    @property
    def undone(self) -> Undone:
        """Returns how many tasks a completed run has not done, by why not."""
        return undone_in(self.reason)


def own_settings() -> config.SchedulerSettings:
    """Returns the settings of a scheduler in a process that somebody started for their run.

    Code of definitions from their folders runs in it: they could run it themselves.
    """
    return replace(config.scheduler_settings(), trust_definitions=True)


class NestedHere:
    """Drives the runs that are tasks of a run that is driven here, or tasks of those; there is
    nothing to do before the first of them."""

    def __init__(
        self,
        where: str | config.StoreSettings | None,
        store: Store,
        run: RunView,
        home: Path,
        on_report: OnReport | None,
    ) -> None:
        self._where, self._store, self._run, self._home = where, store, run, home
        self._on_report = on_report
        self._service: SchedulerService | None = None
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Drives those that were begun before, if there are some."""
        if self._run.batch and await self._store.runs(parent=self._run.number, count=1):
            self.wake()

    def wake(self) -> None:
        """Takes up what was begun."""
        if self._service is None:
            self._service = self._made()
            self._task = asyncio.get_running_loop().create_task(self._service.run())
        self._service.wake()

    def _made(self) -> SchedulerService:
        from tidewheel.scheduler.service import SchedulerService  # noqa: PLC0415 - seldom used

        shared: Any = {"settings": own_settings(), "on_report": self._on_report}
        shared["on_batch"] = waking_for_nested(self.wake, None)

        def drive(nested: RunView) -> AbstractAsyncContextManager[RunDriver | RunProcess]:
            return driving_apart(self._where, self._store, nested, self._home, **shared)

        around, under = surroundings(self._on_report), f"{self._run.name}/"
        return SchedulerService(self._store, drive, shared["settings"], around, under=under)

    async def end(self) -> None:
        """Gives them back as they are."""
        if self._service is not None and self._task is not None:
            self._service.ask_stop()
            await self._task


class RunHere:
    """Drives one run until it is over, or until it is asked to stop."""

    def __init__(  # noqa: PLR0913 - each by name
        self,
        where: str | config.StoreSettings | None,
        store: Store,
        run: RunView,
        settings: RunHereSettings,
        *,
        on_claimed: Callable[[], None] = lambda: None,
        on_batch: OnBatch | None = None,
        on_report: OnReport | None = None,
    ) -> None:
        """Prepares the run; `on_claimed` is called once its lease is held, before anything
        is run."""
        self._where, self._store, self._run = where, store, run
        self._on_claimed = on_claimed
        self._settings = settings
        self._on_batch, self._on_report = on_batch, on_report
        self._stops_asked = 0
        self._is_unheard = False  # the store did not take what was asked
        self._is_leaving = False
        self._asking: set[asyncio.Task[None]] = set()
        self._driver: RunDriver | None = None
        self._draining: Worker | None = None  # of a run that is lost to another scheduler

    async def to_the_end(self) -> RunEnd:
        settings = self._settings
        home = settings.home or config.home_directory()
        nested = NestedHere(self._where, self._store, self._run, home, self._on_report)
        async with AsyncExitStack() as stack:
            driver = self._driver = await stack.enter_async_context(
                driving(
                    self._where,
                    self._store,
                    self._run,
                    home,
                    given=settings.given,
                    settings=own_settings(),
                    trigger_log=settings.trigger_log,
                    on_batch=waking_for_nested(nested.wake, self._on_batch),
                    on_report=self._on_report,
                )
            )
            self._on_claimed()
            worker = await stack.enter_async_context(
                built_worker(
                    self._where,
                    self._store,
                    self._worker_settings(home),
                    on_report=self._on_report,
                )
            )
            if self._is_leaving:  # asked before there was anybody to ask
                driver.ask_stop()
            async with told_meanwhile(
                self._store, home, self._on_report, is_hurried=lambda: self._is_leaving
            ):
                await nested.begin()
                await self._drive(driver, worker, nested)
            for one in self._asking:  # nobody is left to be asked
                one.cancel()
        return RunEnd(driver.status or LEFT, driver.reason)

    def _worker_settings(self, home: Path) -> config.WorkerSettings:
        settings, own = self._settings, self._run.queue
        # As a pattern it costs no claims while nothing is there; see `OpenQueues`.
        code = code_queue(self._run.name, own)
        return worker_settings(
            queues=(own,) if code == own else (own, f"{code}*"),
            slots=settings.slots,
            capacity=settings.capacity or machine_capacity(),
            tie_jobs=settings.tie_jobs,
            runners=settings.runners or (() if settings.tie_jobs else found_runners()),
            shell=True,  # the definition is of whoever runs it here
            allow_compose=settings.allow_compose,
            prepare_seconds=settings.prepare_seconds,
            secrets=settings.secrets,
            secrets_command=settings.secrets_command,
            home=home,
            on_stop=config.OnStop.LEAVE,
            grace_seconds=GRACE_SECONDS,
        )

    async def _drive(self, driver: RunDriver, worker: Worker, nested: NestedHere) -> None:
        home = self._settings.home
        monitor = build_monitor(self._store, config.monitor_settings(), self._on_report, home)
        main = asyncio.create_task(driver.run())
        others = [asyncio.create_task(worker.run()), asyncio.create_task(monitor.run())]
        await asyncio.wait([main, *others], return_when=asyncio.FIRST_COMPLETED)
        driver.ask_stop()
        await nested.end()
        if main.done() and driver.status and not self._is_leaving:
            await self._code_ended()
        monitor.ask_stop()
        if driver.status == LOST:
            # Somebody else drives the run now. Its jobs here are ours to the end: to leave them
            # would let another worker begin them again once their leases have run out.
            self._draining = worker
            worker.ask_stop(config.OnStop.DRAIN)
        else:
            worker.ask_stop()
        for task in (main, *others):
            await task

    async def _code_ended(self) -> None:
        """Waits for handlers that were left to the worker here, but not for long.

        What is not begun by then is for the next worker that serves the run's queues.
        """
        queue, clock = code_queue(self._run.name, self._run.queue), asyncio.get_running_loop()
        give_up_at = clock.time() + CODE_SECONDS_MAX
        live = TaskFilter(queue=queue, statuses=(Status.READY, *LEASED))
        while queue != self._run.queue and clock.time() < give_up_at and not self._is_leaving:
            try:
                found = await self._store.list_tasks(live, KeysetPage())
            except Unavailable:
                return
            if all(task.due_at is not None for task in found):  # for a later try
                return
            await asyncio.sleep(CODE_LOOK_SECONDS)

    # ---- stopping ----

    def ask_stop(self) -> None:
        """Asks the run to stop, more urgently with each call.

        The first call lets running jobs finish and starts no more; a store that does not answer
        is asked again until it does. The second leaves the jobs running and ends this process.
        The third does so without waiting for the store, as the second does if the store did not
        answer the first. A
        process that does not drive the run yet, or cannot open it, hears no commands and leaves
        at once.
        """
        self._stops_asked += 1
        if self._draining is not None:
            self._draining.ask_stop(config.OnStop.LEAVE)
            return
        is_heard = self._driver is not None and self._driver.is_open
        if self._stops_asked > len(STOP_MODES) or self._is_unheard or not is_heard:
            self._leave()
            return
        self._ask(STOP_MODES[self._stops_asked - 1])

    def _ask(self, mode: str) -> None:
        task = asyncio.get_running_loop().create_task(self._post(mode))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    def leave(self) -> None:
        """Stops driving the run at once; its jobs go on, and the next start adopts them."""
        if self._draining is not None:
            self._draining.ask_stop(config.OnStop.LEAVE)
        self._leave()

    async def _post(self, mode: str) -> None:
        body = command_text(Stop(mode=mode))
        command = NewCommand(run=self._run.number, body=body, who="Ctrl-C")
        failures, chance = 0, random.Random()
        while not self._is_leaving:
            try:
                await self._store.post_command(command)
            except NotRunning:  # it is over already
                self._leave()
            except Unavailable as error:
                failures += 1
                self._is_unheard = True
                if mode == STOP_MODES[-1]:  # who wants to leave at once need not be heard
                    self._leave()
                self._tell("store.unavailable", error=str(error), failures=failures)
                await asyncio.sleep(BACKOFF_DEFAULT.delay_seconds(failures, chance))
            else:
                if failures:
                    self._is_unheard = False
                    self._tell("store.back", failures=failures)
                return

    def _tell(self, event: str, **facts: object) -> None:
        if self._on_report is not None:
            self._on_report(ServiceReport(service="stopping", event=event, facts=facts))

    def _leave(self) -> None:
        self._is_leaving = True
        if self._driver is not None:
            self._driver.ask_stop()
