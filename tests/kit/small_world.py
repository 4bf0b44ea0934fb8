"""A store, one host, its workers and monitors in virtual time, for tests of services."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.kit.faulty_store import FaultyStore
from tests.kit.memory import MemoryStore
from tests.kit.scripted_runner import (
    Script,
    ScriptedHost,
    ScriptedJob,
    ScriptedRunner,
    until_told,
)
from tests.kit.virtual_time import VirtualClock
from tidewheel.api.tasks import Task
from tidewheel.config import MonitorSettings, WorkerSettings
from tidewheel.core.queue.requests import Claimed, HostProcess
from tidewheel.core.queue.task import NewTask, TaskId
from tidewheel.ports.store import Store
from tidewheel.services.monitor import Monitor
from tidewheel.services.service import ServiceReport, Surroundings
from tidewheel.worker.worker import Host, Worker

QUEUE = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerProcess:
    """A worker and the process it lives in, with its own way to the store."""

    worker: Worker
    store: FaultyStore
    process: HostProcess
    runner: ScriptedRunner
    host: ScriptedHost
    running: asyncio.Task[None]

    async def crashes(self) -> None:
        """As after kill -9: the worker is gone in the middle of whatever it did."""
        self.running.cancel()
        await asyncio.wait((self.running,))
        self.runner.dies()
        self.host.ends_process(self.process)


class SmallWorld:
    """Made inside of an event loop; everything in it follows that loop's time."""

    def __init__(self, script: Callable[[Claimed], Script] = until_told) -> None:
        self.clock = VirtualClock()
        self._database_ahead_seconds = 0.0
        self.store = MemoryStore(
            clock=lambda: self.clock.monotonic() + self._database_ahead_seconds
        )
        self.host = ScriptedHost(self.clock, script)
        self.reports: list[ServiceReport] = []
        self._chance = Random(1)

    async def worker(
        self, *, registered: bool = True, near: bool = False, **settings: object
    ) -> WorkerProcess:
        """A worker that is registered and waits for tasks, or cannot reach the store yet."""
        process, runner = self.host.new_process(), self.host.runner()
        store = FaultyStore(self.store, self.clock, near=near)
        store.out_of_reach = not registered
        defaults: dict[str, object] = {"name": "worker", "slots": 4, "home": Path("home")}
        worker = Worker(
            store.as_store(),
            WorkerSettings(**{**defaults, **settings}),  # type: ignore[arg-type]
            [runner],
            Host(process=process, is_alive=self.host.is_alive),
            self.surroundings(),
        )
        running = asyncio.create_task(worker.run())
        await self.passes(0.0)
        return WorkerProcess(
            worker=worker,
            store=store,
            process=process,
            runner=runner,
            host=self.host,
            running=running,
        )

    def monitor(
        self,
        *,
        clock: VirtualClock | None = None,
        store: Store | None = None,
        home: Path | None = None,
        **settings: object,
    ) -> Monitor:
        """A monitor, not started."""
        return Monitor(
            store or self.store,
            MonitorSettings(**settings),  # type: ignore[arg-type]
            self.surroundings(clock),
            home,
        )

    def surroundings(self, clock: VirtualClock | None = None) -> Surroundings:
        return Surroundings(
            clock=clock or self.clock, chance=self._chance, on_report=self.reports.append
        )

    async def submit(self, *ids: str, **fields: object) -> None:
        defaults: Mapping[str, object] = {"queue": QUEUE, "command": "true"}
        await self.store.submit(
            [NewTask(**{"id": TaskId(one), **defaults, **fields}) for one in ids]  # type: ignore[arg-type]
        )
        await self.passes(0.0)

    async def passes(self, seconds: float) -> None:
        """Time passes, and everything that is ready by then has run."""
        await self.clock.sleep(seconds)
        for _ in range(20):  # turns of the loop; the longest chain of callbacks is shorter
            await asyncio.sleep(0)

    def database_clock_jumps(self, seconds: float) -> None:
        """Somebody sets the clock of the database's machine."""
        self._database_ahead_seconds += seconds

    async def task(self, task_id: str) -> Task:
        return await self.store.get(TaskId(task_id))

    async def status(self, task_id: str) -> str:
        return (await self.task(task_id)).status.value

    async def story(self, task_id: str) -> list[str]:
        """What happened to a task, as the names of its signals."""
        entries = await self.store.history(TaskId(task_id), count=1_000)
        return [entry.signal.value for entry in entries if entry.signal is not None]

    def job(self, task_id: str) -> ScriptedJob:
        return self.host.job(task_id)

    def events(self, event: str) -> list[ServiceReport]:
        return [report for report in self.reports if report.event == event]
