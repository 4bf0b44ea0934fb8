"""Runs a worker, a monitor, a scheduler or a notifier inside an application (002).

    async with tidewheel.Worker(handlers=handlers, queues=["mail"]):    in an event loop
        ...
    with tidewheel.Worker(handlers=handlers):                           in a thread of its own
        ...
    tidewheel.Worker(handlers=handlers).run_blocking()                  for ever

Leaving the block stops the service as its settings say, and raises the failure that ended it.
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self, TypedDict, Unpack

from tidewheel.api.tasks import QueueView, Task
from tidewheel.client.fields import QUEUE_DEFAULT
from tidewheel.config import (
    CONTAINER_RUNNERS,
    RULES_FILE,
    SHELL,
    JobLimits,
    MonitorSettings,
    OnStop,
    SchedulerSettings,
    StoreSettings,
    WorkerSettings,
    adopt_interval_seconds,
    allow_labels,
    home_directory,
    monitor_settings,
    runner_labels,
    scheduler_settings,
)
from tidewheel.core.queue.access import Served, is_pattern
from tidewheel.core.queue.requests import Claimed, End, KeysetPage, TaskFilter
from tidewheel.core.queue.resources import Resources, fits, needs_runner, offered_in
from tidewheel.core.queue.status import LEASED, Status
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.ports.runners import (
    Assignment,
    Job,
    JobReports,
    Leftover,
    PreparedJob,
    PromptRunner,
    Runner,
    TidyRunner,
)
from tidewheel.ports.store import Store
from tidewheel.quantities import show_instant
from tidewheel.services.service import OnReport, SystemClock, Wakeup
from tidewheel.wiring import services, workers
from tidewheel.wiring.stores import require_database
from tidewheel.worker.attempts import Machine

if TYPE_CHECKING:
    from tidewheel.core.operator.views import RunView
    from tidewheel.runners.job_users import JobUsers
    from tidewheel.runners.python.runner import Handlers
    from tidewheel.scheduler.run_driver import OnBatch, RunDriver
    from tidewheel.wiring.services import RunProcess
    from tidewheel.worker.worker import Worker as WorkerService

LOOK_SECONDS = 0.1
TASKS_LOOKED_AT_MAX = 1_000
DUE = "due at "  # with a time: why a worker leaves a task that it could run later


async def until_idle(
    store: Store, settings: WorkerSettings, handlers: frozenset[str], rests: Callable[[], bool]
) -> None:
    """Waits until a worker rests, so that it has no job, and no task in its queues is running,
    or is ready in a queue that is not paused and could be run by it."""
    while not rests() or await _has_work(store, settings, handlers):
        await asyncio.sleep(LOOK_SECONDS)


async def left_behind(
    store: Store, settings: WorkerSettings, handlers: frozenset[str]
) -> Counter[str]:
    """Counts, by reason, the ready tasks in its queues that a worker could not have taken."""
    found: Counter[str] = Counter()
    for view in await _served(store, settings):
        if view.settings.paused:
            found[f"queue {view.queue!r} is paused"] += view.counts.get(Status.READY, 0)
            continue
        for task in await _ready(store, view):
            due = "" if task.due_at is None else f"{DUE}{show_instant(int(task.due_at))}"
            if reason := _why_not(task, settings, handlers) or due:
                found[reason] += 1
    return +found


async def unknown_queues(store: Store, settings: WorkerSettings) -> list[str]:
    """Returns those queues of a worker of which the store has neither a task nor a setting.

    Their names may be mistyped. Patterns and the default queue are never among them.
    """
    known = {view.queue for view in await store.queues()} | {QUEUE_DEFAULT}
    named = [one for one in settings.queues if not is_pattern(one) and one not in known]
    return [
        one
        for one in named
        if not await store.list_tasks(TaskFilter(queue=one), KeysetPage(count=1))
    ]


async def _has_work(store: Store, settings: WorkerSettings, handlers: frozenset[str]) -> bool:
    for view in await _served(store, settings):
        if any(view.counts.get(status) for status in LEASED):
            return True
        counted = view.counts.get(Status.READY, 0)
        if view.settings.paused or not counted:
            continue
        ready = await _ready(store, view)
        # Some that were taken since they were counted may run now.
        if len(ready) < min(counted, TASKS_LOOKED_AT_MAX):
            return True
        if not all(_why_not(task, settings, handlers) for task in ready):
            return True
    return False


async def _served(store: Store, settings: WorkerSettings) -> list[QueueView]:
    served = Served(settings.queues)
    return [view for view in await store.queues() if view.queue in served]


async def _ready(store: Store, view: QueueView) -> list[Task]:
    which = TaskFilter(statuses=(Status.READY,), queue=view.queue)
    return await store.list_tasks(which, KeysetPage(count=TASKS_LOOKED_AT_MAX))


def _why_not(task: Task, settings: WorkerSettings, handlers: frozenset[str]) -> str:
    """Returns what this worker lacks to run a task; "" if it lacks nothing."""
    from tidewheel.services.explain import short_of  # noqa: PLC0415 - few ask

    if task.command is None and task.handler not in handlers:
        return f"no handler {task.handler!r}" if task.handler else "neither command nor handler"
    asked, offered = task.resources, offered_in(task.queue, settings.capacity)
    if task.command is not None and not settings.shell and not needs_runner(asked):
        return "this worker runs no shell commands (add --runner shell)"
    if fits(asked, offered):
        return ""
    if absent := sorted(asked.labels - offered.labels):
        return f"no label {', '.join(map(repr, absent))}"
    return f"{short_of(asked, offered)} (tidewheel worker --help)"


RULES_LOOK_SECONDS = 5.0  # of the roles


class WorkerFields(TypedDict, total=False):
    """Holds the settings of a worker by name, as ``tidewheel.config.WorkerSettings``."""

    name: str  # host:pid if it is not given
    queues: Sequence[str]
    slots: int  # how many tasks it runs at once; one per core if it is not given
    capacity: Resources  # what it offers to tasks; by default this machine's cores and memory
    lease_seconds: float | None
    poll_seconds: float
    adopt_interval_seconds: float
    on_stop: OnStop
    grace_seconds: float
    tie_jobs: bool
    job_limits: JobLimits
    usage_interval_seconds: float
    runners: Sequence[str]
    shell: bool
    allow_compose: Sequence[str]
    prepare_seconds: float
    secrets: Path | None
    secrets_command: Sequence[str]
    home: Path


def worker_settings(**fields: Unpack[WorkerFields]) -> WorkerSettings:
    """Returns the settings of a worker; what is not given is what this machine has."""
    given = dict(fields)
    given["queues"] = tuple(fields.get("queues", (QUEUE_DEFAULT,)))
    given.setdefault("name", workers.worker_name())
    given.setdefault("slots", workers.usable_cores())
    allowed = given["allow_compose"] = tuple(fields.get("allow_compose", ()))
    given["secrets_command"] = tuple(fields.get("secrets_command", ()))
    named = tuple(fields.get("runners", ()))
    runners = given["runners"] = tuple(one for one in named if one != SHELL)
    given.setdefault("shell", SHELL in named or not set(runners) & set(CONTAINER_RUNNERS))
    offered = fields.get("capacity") or workers.machine_capacity()
    labels = runner_labels(runners) | workers.compose_labels(runners) | allow_labels(allowed)
    given["capacity"] = workers.capacity_with(offered, labels)
    given.setdefault("home", home_directory())
    given.setdefault("adopt_interval_seconds", adopt_interval_seconds())
    return WorkerSettings(**given)  # type: ignore[arg-type]  # the keys are those of WorkerFields


class Attended(Protocol):
    """Describes a service that runs until it is asked to stop."""

    async def run(self) -> None: ...
    def ask_stop(self) -> None: ...


class Shared(TypedDict, total=False):
    """Holds the options that all roles have."""

    on_report: OnReport | None
    wait_for_store_seconds: float


class Role(ABC):
    """Runs one kind of service on a store: in an event loop, in a thread, or blocking.

    ``at_database`` is what error messages call a role that needs the database itself and cannot
    work through a server; "" for a role that can.
    """

    at_database = ""

    def __init__(
        self,
        store: str | StoreSettings | None = None,
        *,
        on_report: OnReport | None = None,
        wait_for_store_seconds: float = 0.0,
    ) -> None:
        if self.at_database:
            require_database(store, self.at_database)
        self._where = store
        self._wait_for_store_seconds = wait_for_store_seconds
        self._stop_alarm = Wakeup(SystemClock())
        self._on_report = on_report
        self._service: Attended | None = None
        self._stop_asked = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started = threading.Event()
        self._on_started: Callable[[], None] = lambda: None
        self._running: asyncio.Task[None] | None = None
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    @abstractmethod
    def serve(self, store: Store) -> Coroutine[object, object, None]:
        """Builds the service, runs it with ``attend``, and closes what it needed."""

    async def run(self) -> None:
        """Opens the store and runs the service until ``ask_stop`` is called."""
        async with services.awaited_store(
            self._where,
            self._wait_for_store_seconds,
            self._stop_alarm,
            lambda: bool(self._stop_asked),
            self._on_report,
        ) as store:
            if store is not None:
                await self.run_on(store)

    async def run_on(self, store: Store) -> None:
        """Runs the service on a store that is open already, and that others may use as well."""
        self._loop = asyncio.get_running_loop()
        await self.serve(store)

    async def until_started(self) -> None:
        """Waits until the store has answered and the service has started."""
        loop, arrived = asyncio.get_running_loop(), asyncio.Event()
        self._on_started = partial(_ring, loop, arrived)
        if self._service is None:
            await arrived.wait()

    async def attend(self, service: Attended) -> None:
        """Runs the service; passes on requests to stop that came before it was built."""
        self._service = service
        self._started.set()
        self._on_started()
        for _ in range(self._stop_asked):
            service.ask_stop()
        await service.run()

    def ask_stop(self) -> None:
        """Asks the service to stop: a first call as its settings say, a second call at once.

        It may be called from any thread.
        """
        self._stop_asked += 1
        self._stop_alarm.ring()
        if self._service is not None and self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: it has stopped already
                self._loop.call_soon_threadsafe(self._service.ask_stop)

    def run_blocking(self) -> None:
        """Runs the service until another thread or a signal handler calls ``ask_stop``."""
        asyncio.run(self.run())

    async def __aenter__(self) -> Self:
        started = asyncio.Event()
        self._on_started = started.set
        self._running = asyncio.create_task(self.run())
        waiting = asyncio.create_task(started.wait())
        await asyncio.wait((self._running, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._running.done():
            await self._running
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._running is not None
        self.ask_stop()
        await self._running

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run_in_thread, name="tidewheel service")
        self._thread.daemon = True
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(self, *_: object) -> None:
        assert self._thread is not None
        self.ask_stop()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run_in_thread(self) -> None:
        try:
            self.run_blocking()
        except BaseException as failure:
            self._failure = failure
        finally:
            self._started.set()


def _ring(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    loop.call_soon_threadsafe(event.set)


class Worker(Role):
    """Executes tasks: commands with bash, and handlers by calling the functions in
    ``handlers``.

        from tidewheel import Client, Worker

        with Client() as client, Worker(slots=4):
            [ended] = client.wait(client.submit(command="echo hello").id, timeout=60)
            assert ended.status == "succeeded"
    """

    def __init__(  # noqa: PLR0913 - each by name
        self,
        store: str | StoreSettings | None = None,
        *,
        handlers: Handlers | None = None,
        around_runner: workers.AroundRunner | None = None,
        beside: Worker | None = None,
        job_users: JobUsers | None = None,
        on_report: OnReport | None = None,
        wait_for_store_seconds: float = 0.0,
        **settings: Unpack[WorkerFields],
    ) -> None:
        """Makes a worker. ``beside`` is another worker in the same event loop that offers the
        same machine: resources that tasks of one worker use are not free for the other.
        ``job_users`` starts jobs as other users. ``wait_for_store_seconds`` is how long to wait
        at the start for a store that does not answer; later it is tried again without limit."""
        super().__init__(
            store, on_report=on_report, wait_for_store_seconds=wait_for_store_seconds
        )
        self.settings = worker_settings(**settings)
        self._machine: Machine = beside._machine if beside else Machine(self.settings.capacity)
        self._handlers, self._around, self._job_users = handlers, around_runner, job_users
        self._worker: WorkerService | None = None

    async def serve(self, store: Store) -> None:
        async with workers.built_worker(
            self._where,
            store,
            self.settings,
            handlers=self._handlers,
            around=self._around,
            machine=self._machine,
            on_report=self._on_report,
            job_users=self._job_users,
        ) as worker:
            self._worker = worker
            await self.attend(worker)

    def rests(self) -> bool:
        """Says whether the worker has no job, and has looked for jobs to adopt."""
        return self._worker is not None and self._worker.is_idle


class Monitor(Role):
    """Takes back lapsed leases, and deletes ended tasks and runs after their retention.

    Without settings, the variables of the environment apply.
    """

    at_database = "a monitor"

    def __init__(
        self,
        store: str | StoreSettings | None = None,
        *,
        settings: MonitorSettings | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(store, **shared)
        self.settings = settings or monitor_settings()

    async def serve(self, store: Store) -> None:
        await self.attend(services.build_monitor(store, self.settings, self._on_report))


class Scheduler(Role):
    """Drives runs that wait for a scheduler, or lost theirs; workers execute their tasks."""

    at_database = "a scheduler"

    def __init__(
        self,
        store: str | StoreSettings | None = None,
        *,
        settings: SchedulerSettings | None = None,
        home: Path | None = None,
        on_batch: OnBatch | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(store, **shared)
        self.settings = settings or scheduler_settings()
        self._home = home or home_directory()
        self._on_batch = on_batch

    async def serve(self, store: Store) -> None:
        from tidewheel.scheduler.nested_runs import waking_for_nested  # noqa: PLC0415 - slow
        from tidewheel.scheduler.service import SchedulerService  # noqa: PLC0415 - slow to load

        where, home, on_report = self._where, self._home, self._on_report

        def drive(run: RunView) -> AbstractAsyncContextManager[RunDriver | RunProcess]:
            return services.driving_apart(
                *(where, store, run, home),
                settings=self.settings,
                on_batch=waking_for_nested(service.wake, self._on_batch),
                on_report=on_report,
            )

        def deliver(run: RunView) -> Awaitable[int]:
            return services.deliver_left(where, store, run, home, self.settings, on_report)

        around = services.surroundings(on_report)
        service = SchedulerService(store, drive, self.settings, around, deliver)
        await self.attend(service)


class Notifier(Role):
    """Sends notifications by the rules in the state directory (docs/notifications.md)."""

    at_database = "a notifier"

    def __init__(
        self,
        store: str | StoreSettings | None = None,
        *,
        home: Path | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(store, **shared)
        self._home = home or home_directory()

    async def run(self) -> None:
        """Runs the notifier once there are rules; without rules no store is opened.

        Most state directories have no rules, and connections to a database are few.
        """
        while not (self._home / RULES_FILE).exists() and not self._stop_asked:
            self._started.set()
            self._on_started()
            await self._stop_alarm.wait(RULES_LOOK_SECONDS)
        if not self._stop_asked:
            await super().run()

    async def serve(self, store: Store) -> None:
        smtp = scheduler_settings().smtp
        await self.attend(services.build_notifier(store, self._home, smtp, self._on_report))


OnJob = Callable[[Claimed, End | None], None]  # without an end: it begins


@dataclass(frozen=True, slots=True)
class ToldJob:
    """Wraps a job so that ``on_job`` is called with its end when ``wait`` returns."""

    job: Job
    task: Claimed
    on_job: OnJob

    async def wait(self) -> End:
        end = await self.job.wait()
        self.on_job(self.task, end)
        return end

    async def stop(self, grace_seconds: float) -> None:
        await self.job.stop(grace_seconds)

    async def begun(self) -> float:
        return await self.job.begun() if isinstance(self.job, PreparedJob) else 0.0

    @property
    def is_ending(self) -> bool:
        return isinstance(self.job, PreparedJob) and self.job.is_ending


@dataclass(frozen=True, slots=True)
class ToldRunner:
    """Wraps a Runner (the port) so that ``on_job`` is called when each job begins and ends."""

    runner: Runner
    on_job: OnJob

    def accepts(self, task: Claimed) -> bool:
        return self.runner.accepts(task)

    async def start(self, assignment: Assignment, reports: JobReports) -> Job:
        """Starts the job, then calls ``on_job``: one that could not start has not begun."""
        return self._told(assignment, await self.runner.start(assignment, reports))

    async def adopt(self, assignment: Assignment, reports: JobReports) -> Job | None:
        """Adopts the job, and calls ``on_job`` if there was one; returns None if not."""
        job = await self.runner.adopt(assignment, reports)
        return None if job is None else self._told(assignment, job)

    def _told(self, assignment: Assignment, job: Job) -> Job:
        self.on_job(assignment.task, None)
        return ToldJob(job, assignment.task, self.on_job)


@dataclass(frozen=True, slots=True)
class PromptToldRunner(ToldRunner):
    """Wraps a PromptRunner so that ``on_job`` is called when each job begins and ends."""

    runner: PromptRunner

    def start_now(
        self,
        task: Claimed,
        assign: Callable[[], Assignment],
        reports: JobReports,
        on_end: Callable[[End], None],
    ) -> Job | None:
        """Calls ``on_job`` when the job begins, and at its end before ``on_end``."""
        begun = False

        def tell_begin() -> None:
            nonlocal begun
            if not begun:
                begun = True
                self.on_job(task, None)

        def tell_end(end: End) -> None:
            tell_begin()  # it may have ended before its start has returned
            self.on_job(task, end)
            on_end(end)

        job = self.runner.start_now(task, assign, reports, tell_end)
        if job is not None:
            tell_begin()
        return job


@dataclass(frozen=True, slots=True)
class TidyToldRunner(ToldRunner):
    """Wraps a TidyRunner so that ``on_job`` is called when each job begins and ends."""

    runner: TidyRunner

    async def leftovers(self, store: str) -> list[Leftover]:
        return await self.runner.leftovers(store)

    async def remove(self, leftover: Leftover) -> None:
        await self.runner.remove(leftover)


def told(runner: Runner, on_job: OnJob) -> Runner:
    """Wraps a runner, which stays a PromptRunner or TidyRunner: ``on_job`` is called when each
    job begins and ends."""
    if isinstance(runner, PromptRunner):
        return PromptToldRunner(runner, on_job)
    if isinstance(runner, TidyRunner):
        return TidyToldRunner(runner, on_job)
    return ToldRunner(runner, on_job)
