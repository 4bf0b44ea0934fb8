"""A run under its real scheduler, with jobs, clock and crashes in the hands of a test.

    run = DrivenRun(folder, flow_text)
    run.ends("1/a").says("1/b", "the file is ready").fails("1/b")
    assert run.status == "completed"

The store is one in memory; jobs are tasks of its queue that the test claims and ends. Each verb
is followed by passes of the scheduler until nothing is left to do. `crash` drops the scheduler
without a word and lets another take over from what the store knows.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from types import MappingProxyType
from typing import Self, TypeVar

from tests.kit.faulty_store import FaultyStore
from tests.kit.memory import MemoryStore
from tests.kit.virtual_time import SleepingTimers
from tidewheel.config import CONTAINER_RUNNERS, runner_labels
from tidewheel.core.graph.findings import Findings
from tidewheel.core.graph.graph import Graph
from tidewheel.core.operator.definition import (
    NewRun,
    RunOptions,
    StoredDefinition,
    code_queue,
    sealed,
    stored_files,
)
from tidewheel.core.operator.registry import NewWorkflow
from tidewheel.core.operator.requests import NewCommand, RunBatch, RunClaim, RunLease
from tidewheel.core.operator.verbs import REOPENING, Command, command_text
from tidewheel.core.operator.views import CommandView, RunView
from tidewheel.core.queue.lease import Holder
from tidewheel.core.queue.requests import (
    ANY_RESOURCES,
    Claimed,
    ClaimRequest,
    End,
    Ending,
    HostProcess,
    JobMessage,
    NewWorker,
    Report,
)
from tidewheel.core.queue.task import TaskError, TaskId
from tidewheel.core.sched.dependency_index import DependencyIndex
from tidewheel.core.sched.index_builder import build_index
from tidewheel.errors import Refused
from tidewheel.formats.flow_cylc.source_loader import SourceOptions
from tidewheel.formats.flow_cylc.workflow import load_workflow
from tidewheel.scheduler.open_run import SchedulerHome, driver_of
from tidewheel.scheduler.run_driver import RunDriver
from tidewheel.services.definitions.snapshot import Captured, capture, load_options, read_sip
from tidewheel.services.service import ServiceReport, Surroundings

START = 1_900_000_000.0
PASSES_MAX = 200
TURNS = 20  # of the loop, until everybody waits for something
REAL_SECONDS_MAX = 20.0
REAL_LOOK_SECONDS = 0.01
SCHEDULER = HostProcess(host="here", boot_id="boot", pid=1, started=1.0)

T = TypeVar("T")
Flow = str | Mapping[str, str]


class HandClock(SleepingTimers):
    """Time that stands still until it is moved; whoever sleeps wakes when it is."""

    def __init__(self) -> None:
        self.now = START
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.now + seconds, woken))
        await woken

    def wake(self) -> None:
        for at, woken in [one for one in self._sleepers if one[0] <= self.now]:
            self._sleepers.remove((at, woken))
            if not woken.done():
                woken.set_result(None)


class DrivenRun:
    """The door to `scheduler`."""

    def __init__(
        self,
        folder: Path,
        flow: Flow,
        *,
        trusted: bool = True,
        trusting: bool = True,
        sees: tuple[str, ...] | None = None,
        files: Mapping[str, str] = MappingProxyType({}),
        **options: object,
    ) -> None:
        """``flow`` is a flow.cylc, or the files of a SIP definition, its own the first.

        ``trusted``: it came from its owner's folder, not over the network; and the scheduler
        is ``trusting``: it runs code of such definitions. ``sees``: what the token covers that
        began the run. ``files`` lie beside a flow.cylc.
        """
        self._nested: dict[int, RunDriver] = {}  # of runs that are tasks of it, or of those
        self._nested_epochs: dict[int, int] = {}
        self.takes_nested = True
        self.trusted, self._trusting, self._sees = trusted, trusting, sees
        self.home = folder / "home"
        self.reports: list[ServiceReport] = []
        self._clock = HandClock()
        self._loop = asyncio.new_event_loop()
        self._store = MemoryStore(clock=lambda: self._clock.now)
        self.way_to_store = FaultyStore(self._store, self._clock)  # of the scheduler
        self._source = folder / "flow"
        self._source.mkdir()
        for name, text in files.items():
            (self._source / name).parent.mkdir(parents=True, exist_ok=True)
            (self._source / name).write_text(dedent(text))
        self._options = RunOptions(now=START, **options)  # type: ignore[arg-type]
        self.tasks: dict[str, Claimed] = {}  # the last of each name, as it was claimed
        self._heard: dict[str, int] = {}
        self.worker_has_room = True
        self.plan_of: Callable[[Graph], DependencyIndex] = (
            build_index  # of the version that takes it next
        )
        self._epoch: int | None = None
        self.submitted: list[str] = []
        self.jobs: dict[str, str] = {}  # the script of each submission
        self.triggers = folder / "triggers.log"
        self._number = self._run(self._create(flow))
        self._worker = self._run(self._store.register_worker(_WORKER))
        self._driver = self._run(self._take())
        self.goes_on()

    def close(self) -> None:
        """Nothing of it is left behind."""
        self._run(self._end_everything())
        self._loop.close()

    async def _end_everything(self) -> None:
        for driver in (self._driver, *self._nested.values()):
            await driver.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _run(self, doing: Awaitable[T]) -> T:
        return self._loop.run_until_complete(doing)

    async def _create(self, flow: Flow) -> int:
        digest = await self._save(flow)
        new = NewRun(
            workflow="flow",
            definition=digest,
            options=self._options,
            folder=str(self._source),
            sees=self._sees,
        )
        return (await self._store.create_run(new)).number

    async def _save(self, flow: Flow) -> str:
        definition = self._captured(flow).definition
        await self._store.save_definition(definition)
        return definition.digest

    def _captured(self, flow: Flow) -> Captured:
        findings = Findings()
        if not isinstance(flow, str):
            for name, text in flow.items():
                path = self._source / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(dedent(text))
            return read_sip(self._source / next(iter(flow)), self._options, findings, "flow")
        (self._source / "flow.cylc").write_text(dedent(flow))
        how = load_options(self._options, "flow")
        source = SourceOptions(workflow_name="flow", code_trusted=self.trusted)
        loaded = load_workflow(self._source, replace(how, source=source), findings)
        assert not findings.has_errors, [str(one) for one in findings]
        return capture(loaded, self._source, trusted=self.trusted)

    async def _take(self) -> RunDriver:
        view = await self._store.run(self._number)
        claim = RunClaim(run=self._number, process=SCHEDULER, dead_epoch=self._epoch)
        lease = await self._store.claim_run(claim)
        self._epoch = lease.epoch
        return driver_of(view, lease, self._scheduler_home())

    async def _take_nested(self) -> None:
        """Takes the runs that are tasks of this one and that nobody drives."""
        if not self.takes_nested:
            return
        name = (await self._store.run(self._number)).name
        for view in await self._store.claimable_runs(100, under=f"{name}/"):
            dead = self._nested_epochs.get(view.number)
            claim = RunClaim(run=view.number, process=SCHEDULER, dead_epoch=dead)
            lease = await self._store.claim_run(claim)
            self._nested_epochs[view.number] = lease.epoch
            home = replace(self._scheduler_home(), trigger_log=None)
            self._nested[view.number] = driver_of(view, lease, home, given=view.given)

    def _scheduler_home(self) -> SchedulerHome:
        return SchedulerHome(
            store=self.way_to_store.as_store(),
            home=self.home,
            environment={"PATH": "/usr/bin:/bin", "USER": "me"},
            surroundings=Surroundings(clock=self._clock, on_report=self.reports.append),
            trigger_log=self.triggers,
            plan_of=self.plan_of,
            trusts_definitions=self._trusting,
        )

    # ---- what happens ----

    def goes_on(self) -> Self:
        """Passes of the scheduler, and claims of the worker, until nothing happens."""
        self._run(self._settle())
        return self

    async def _settle(self) -> None:
        for _ in range(PASSES_MAX):
            before = await self._batches()
            for driver in (self._driver, *self._nested.values()):
                if not driver.status:
                    for report in await driver.run_once():
                        self.reports.append(report)
            await self._take_nested()
            for _ in range(5):
                await asyncio.sleep(0)
            await self._claim()
            if await self._batches() == before:
                return
        raise AssertionError("the scheduler never comes to rest")

    async def _batches(self) -> dict[int, tuple[int, int]]:
        runs = await self._store.runs(nested=True)
        return {one.number: (one.batch, one.epoch) for one in runs}

    async def _claim(self) -> None:
        if not self.worker_has_room:
            return
        view = await self._store.run(self._number)
        asked = ClaimRequest(queue=view.queue, worker=self._worker, count=100, free=_ROOM)
        for task in await self._store.claim(asked):
            name = task.id.removeprefix(f"{view.name}/")
            task_name, _, submit = name.rpartition("/")
            if task.attempt == 1:
                self.submitted.append(f"{task_name}/{int(submit):02d}")
            self.jobs[f"{task_name}/{int(submit):02d}"] = task.command or ""
            self.tasks[task_name] = task
            self._heard[task_name] = 0

    def takes_code(self) -> dict[str, str]:
        """The commands of handlers and functions that were submitted, by the task's name."""
        return self._run(self._claim_code())

    async def _claim_code(self) -> dict[str, str]:
        view = await self._store.run(self._number)
        queue = code_queue(view.name, view.queue)
        asked = ClaimRequest(queue=queue, worker=self._worker, count=100, free=_ROOM)
        found = await self._store.claim(asked)
        return {
            task.id.removeprefix(f"{view.name}/code/"): task.command or "" for task in found
        }

    def starts(self, *names: str) -> Self:
        """Their processes exist."""
        return self._report(names, started=True)

    def ends(self, *names: str, **values: object) -> Self:
        """They succeed, and hand on values."""
        return self._report(names, started=True, end=_success(values))

    def fails(self, *names: str) -> Self:
        error = TaskError(code="exit", description="exit status 1")
        end = End(ending=Ending.FAILED, error=error, exit_status=1)
        return self._report(names, started=True, end=end)

    def cannot_start(self, *names: str) -> Self:
        error = TaskError(code="start", description="no such program")
        return self._report(names, end=End(ending=Ending.FAILED, error=error))

    def says(
        self, name: str, text: str = "", output: str | None = None, values: str | None = None
    ) -> Self:
        return self.says_unheard(name, text, output, values).goes_on()

    def says_unheard(
        self, name: str, text: str = "", output: str | None = None, values: str | None = None
    ) -> Self:
        """It says something, and the scheduler has not looked yet."""
        self._heard[name] += 1
        said = JobMessage(number=self._heard[name], text=text, output=output, values=values)
        self._tell_store((name,), messages=(said,))
        return self

    def ends_unheard(self, *names: str, **values: object) -> Self:
        """They succeed, and the scheduler has not looked yet."""
        self._tell_store(names, started=True, end=_success(values))
        return self

    def offers_start(self, *names: str) -> bool | None:
        """The same of their start."""
        return self._run(self._offer(self._reports(names, started=True)))

    def offers(self, *names: str, **values: object) -> bool | None:
        """A worker beside the scheduler offers their success. Says whether that was written
        with a batch of the scheduler; None if it did not take it."""
        return self._run(self._offer(self._reports(names, end=_success(values))))

    async def _offer(self, reports: list[Report]) -> bool | None:
        name = (await self._store.run(self._number)).name
        leave = self._store.attend(name, self._driver.take_reports)
        offered = self._store.offer_reports(reports)
        leave()
        if offered is None:
            return None
        await self._settle()
        return await offered

    def _report(self, names: tuple[str, ...], **facts: object) -> Self:
        self._tell_store(names, **facts)
        return self.goes_on()

    def _reports(self, names: tuple[str, ...], **facts: object) -> list[Report]:
        reports = []
        for name in names:
            task = self.tasks[name]
            holder = Holder(task_id=task.id, attempt=task.attempt, worker=self._worker)
            reports.append(Report(holder=holder, **facts))  # type: ignore[arg-type]
        return reports

    def _tell_store(self, names: tuple[str, ...], **facts: object) -> None:
        answers = self._run(self._store.report(self._reports(names, **facts)))
        for answer in answers:
            if answer.refused is not None:
                raise answer.refused

    def gives(self, command: Command) -> dict[str, object]:
        """A command, and its answer; a refusal is raised."""
        return self._run(self._give(command))

    def asks(self, command: Command) -> int:
        """A command that nobody has heard yet."""
        return self._run(self._store.post_command(self._asked(command)))

    def _asked(self, command: Command) -> NewCommand:
        return NewCommand(
            run=self._number,
            body=command_text(command),
            who="me",
            reopens=isinstance(command, REOPENING),
        )

    def lets_go(self) -> Self:
        """The scheduler ends the run with a batch that was made before anything new came."""
        view = self.view
        lease = RunLease(
            run=self._number, epoch=view.epoch, batch=view.batch, lease_seconds=10.0
        )
        last = RunBatch(number=view.batch + 1, at=view.updated_at, status="stopped", ends=True)
        self._run(self._store.write_batch(lease, last))
        return self

    def answer(self, number: int) -> CommandView:
        return self._run(self._store.command(number))

    async def _give(self, command: Command) -> dict[str, object]:
        number = await self._store.post_command(self._asked(command))
        await self._settle()
        view = await self._store.command(number)
        assert view.answered_at is not None
        if view.refused is not None:
            raise Refused(view.refused)
        answer: dict[str, object] = json.loads(view.answer or "{}")
        return answer

    def reads(self, flow: Flow) -> str:
        """Store another definition; its digest, for `reload`."""
        return self._run(self._save(flow))

    def until(self, condition: Callable[[], object]) -> Self:
        """For what really takes time, such as a process that answers an xtrigger."""
        give_up_at = time.monotonic() + REAL_SECONDS_MAX
        while not condition():
            assert time.monotonic() < give_up_at, "it did not happen"
            self._run(asyncio.sleep(REAL_LOOK_SECONDS))
            self.goes_on()
        return self

    def waits(self, seconds: float) -> Self:
        """Time passes."""
        self._clock.now += seconds
        self._clock.wake()
        return self.goes_on()

    def waits_in_the_middle(self, seconds: float, times: int) -> Self:
        """Time passes, in steps, while the scheduler is in the middle of a pass."""
        self._run(self._settle_while_time_passes(seconds, times))
        return self

    async def _settle_while_time_passes(self, seconds: float, times: int) -> None:
        settling = asyncio.ensure_future(self._settle())
        for _ in range(times):
            for _ in range(TURNS):
                await asyncio.sleep(0)
            self._clock.now += seconds
            self._clock.wake()
        await settling

    def goes_on_slowly(self, seconds: float, meanwhile: Command | None = None) -> Self:
        """Time passes in steps until nothing happens; after the first a command is given."""
        self._run(self._settle_slowly(seconds, meanwhile))
        return self

    async def _settle_slowly(self, seconds: float, meanwhile: Command | None) -> None:
        settling = asyncio.ensure_future(self._settle())
        while not settling.done():
            await asyncio.sleep(REAL_LOOK_SECONDS)  # for processes that take real time
            self._clock.now += seconds
            self._clock.wake()
            if meanwhile is not None:
                asked, meanwhile = self._asked(meanwhile), None
                await self._store.post_command(asked)
        await settling

    def lapses(self, times: int = 1) -> Self:
        """The worker falls silent until its leases run out; another one takes the tasks."""
        for _ in range(times):
            self._clock.now += 61.0
            self._run(self._store.take_back_lapsed_leases(watched_seconds=1e9, count_max=100))
            self.goes_on()
        return self

    def crash(self) -> Self:
        """The scheduler is gone; another reads the run from the store."""
        if not self._driver.status:
            self._run(self._driver.close())
            self._driver = self._run(self._take())
        return self.goes_on()

    def crash_everywhere(self) -> Self:
        """All schedulers are gone, those of the runs that are its tasks, too."""
        for number, driver in self._nested.items():
            if not driver.status:
                self._run(driver.close())
                self._nested[number] = self._run(self._retake(number))
        return self.crash()

    async def _retake(self, number: int) -> RunDriver:
        view = await self._store.run(number)
        claim = RunClaim(run=number, process=SCHEDULER, dead_epoch=view.epoch)
        lease = await self._store.claim_run(claim)
        self._nested_epochs[number] = lease.epoch
        return driver_of(view, lease, replace(self._scheduler_home(), trigger_log=None))

    def registers(
        self, name: str, version: str, flow: str, sees: tuple[str, ...] | None = None
    ) -> Self:
        """Somebody who may see this registers a flow.cylc."""
        files = stored_files({"flow.cylc": dedent(flow).encode()}, ())
        definition = sealed(
            StoredDefinition(digest="", workflow=name, text=dedent(flow), files=files)
        )
        new = NewWorkflow(
            name=name, version=version, definition=definition, runnable=True, sees=sees
        )
        self._run(self._store.register([new]))
        return self

    def nested(self, name: str) -> RunView:
        """A run that is a task, by its name below this one."""
        return self._run(self._store.find_run(f"{self.view.name}/{name}"))

    def tells(self, name: str, command: Command) -> Self:
        """A command to a run that is a task."""
        asked = replace(self._asked(command), run=self.nested(name).number)
        self._run(self._store.post_command(asked))
        return self.goes_on()

    def carries_on(self) -> Self:
        """`tidewheel run` once more, after it ended."""
        self._run(self._driver.close())
        self._driver = self._run(self._take())
        return self.goes_on()

    # ---- what is seen ----

    @property
    def view(self) -> RunView:
        return self._run(self._store.run(self._number))

    @property
    def status(self) -> str:
        return self.view.status

    @property
    def running(self) -> list[str]:
        """The submissions that are in the queue or at work."""
        found = self._run(self._store.submissions(self._number))
        live = [one for one in found if one.status in ("ready", "running", "cancelling")]
        return sorted(one.task_id.removeprefix(f"{self.view.name}/") for one in live)

    @property
    def log(self) -> str:
        return (self.directory / "log/scheduler/log").read_text()

    @property
    def directory(self) -> Path:
        """The run's own, where its jobs may write."""
        return self.home / "runs" / self.view.name

    @property
    def definition(self) -> StoredDefinition:
        """What the run runs now."""
        return self._run(self._store.definition(self.view.definition))

    def look(self, question: Callable[[MemoryStore, int], Awaitable[T]]) -> T:
        return self._run(question(self._store, self._number))

    def task_id(self, name: str) -> TaskId:
        return self.tasks[name].id


def _success(values: Mapping[str, object]) -> End:
    return End(ending=Ending.SUCCEEDED, values=json.dumps(values) if values else None)


_ROOM = replace(ANY_RESOURCES, labels=runner_labels(CONTAINER_RUNNERS))
_WORKER = NewWorker(
    name="test",
    process=HostProcess(host="here", boot_id="boot", pid=2, started=2.0),
    queues=("any",),
    slots=100,
    capacity=_ROOM,
)
