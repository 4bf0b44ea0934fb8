"""Delivers the events of a run to its event handlers and by mail, at least once.

Theory of operation. An event that is to be delivered is written with the batch that decided it,
as a row of the run's outbox. Once the batch is in the store, handlers are called and mail is
sent; when all of that is over for an event, its row is deleted. The scheduler that takes the
run after a crash finds the rows that are left, and does them again: an event may be delivered
twice, and is never left out. Of a run that was over by then, any scheduler of the store does it
(`deliver_left`).

A command of a definition that the scheduler does not trust is not run here: it becomes a task
of the queue (`code_tasks`), and its event counts as delivered once that is stored. The same
goes for handlers that were broadcast, since anybody with the right to operate may do that.

`EventHandlers.wants` is asked for every event and is a look-up; nothing else is done for an
event that nobody handles. What is wanted is queued by `notice`, which never waits. A command
runs at most once for (event, task, submit) in this process, apart from its retries; `done` is
called when its commands have ended and its mail is out. Whatever was queued or running when the
process died, or was cut off when it left, is begun again by the next one. A handler that fails
is reported and logged; it never stops the run.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.definition import NO_EVENTS, Events, NodeDef, RunMode
from tidewheel.core.graph.graph import Graph
from tidewheel.core.graph.outputs import STARTED, SUCCEEDED
from tidewheel.core.operator.requests import JobOver, Undelivered
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.events import Notice
from tidewheel.core.sched.pool import RunStatus
from tidewheel.core.sched.task_state import Key
from tidewheel.errors import Refused, Unavailable
from tidewheel.formats.flow_cylc.settings import WorkflowEvents
from tidewheel.lazy_dataclasses import NamedTuple, dataclass
from tidewheel.ports.clock import Clock
from tidewheel.ports.store import Store
from tidewheel.runners.event_handlers import HandlerCommand, HandlerEnd, run_handler
from tidewheel.scheduler import pending_batch
from tidewheel.scheduler.code_tasks import CodeTasks, until_stored
from tidewheel.scheduler.handler_templates import (
    REPEATABLE,
    Done,
    FilledCommand,
    HandledNotice,
    HandledRun,
    TaskFacts,
    after_all,
    commands_for,
    filled,
    nobody_waits,
)
from tidewheel.scheduler.mail import Mailer, MailSettings
from tidewheel.scheduler.run_files import DeliveryTroubles, RunFiles
from tidewheel.scheduler.submissions import DefinitionInForce, EffectiveSettings
from tidewheel.scheduler.timers import TASK_TIMERS
from tidewheel.services.definitions.snapshot import RestoredDefinition
from tidewheel.services.service import OnReport, ServiceReport, tell_nobody

if TYPE_CHECKING:
    from tidewheel.scheduler.open_run import SchedulerHome
    from tidewheel.scheduler.run_engine import RunEngine


NODES_KNOWN_MAX = 10_000
NO_PLACE = Undelivered(0, 0, "")  # of an event that is stored nowhere
ACTIVITY_LOG = "job-activity.log"
RUN_ACTIVITY_LOG = Path("log") / "scheduler" / "handlers" / "activity.log"


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerSettings:
    """Bounds how many handlers run, wait and are remembered, and how long one may take."""

    at_once_max: int = 4
    seconds_max: float = 600.0
    queued_max: int = 10_000  # further ones are dropped and reported
    remembered_max: int = 100_000  # (event, task, submit) that were handled


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerSurroundings:
    """Holds what handlers of a run are given; `environment` is all that a command sees."""

    run: HandledRun
    directory: Path
    environment: Mapping[str, str]
    clock: Clock
    mailer: Mailer
    mode: RunMode = RunMode.LIVE
    on_report: OnReport = tell_nobody
    settings: HandlerSettings = field(default_factory=HandlerSettings)
    execute: Callable[[HandlerCommand], Awaitable[HandlerEnd]] = run_handler
    code: CodeTasks | None = None  # None: every command runs here


@dataclass(frozen=True, slots=True)
class _Handling:
    name: str  # event-handler-00, as Cylc's logs call it
    notice: HandledNotice
    command: FilledCommand
    delays_seconds: tuple[float, ...]
    done: Done
    place: Undelivered  # of the event
    number: int  # among the commands of the event


class EventHandlers:
    """Runs the event handlers of one run; it is used in the run's loop only."""

    def __init__(self, events: WorkflowEvents, around: HandlerSurroundings) -> None:
        self._events = events
        self._around = around
        self._room = asyncio.Semaphore(around.settings.at_once_max)
        self._running: set[asyncio.Task[None]] = set()
        self._handled: dict[tuple[str, str, int], None] = {}
        # By identity: most nodes share one value, and to compare them takes longer.
        self._wanted: dict[int, tuple[Events, frozenset[str]]] = {}
        self._wanted_of_run = _wanted(events)

    def wants(self, event: str, node: NodeDef | None = None) -> bool:
        """Says whether an event of this node, or without a node of the run, is handled."""
        if node is None:
            return event in self._wanted_of_run
        events = node.events
        if events is NO_EVENTS:
            return False
        known = self._wanted.get(id(events))
        if known is None or known[0] is not events:
            if len(self._wanted) >= NODES_KNOWN_MAX:  # broadcasts make ever new ones
                self._wanted.clear()
            known = self._wanted[id(events)] = (events, _wanted(events))
        mode = self._around.mode if node.run_mode is RunMode.LIVE else node.run_mode
        settings = node.skip if mode is RunMode.SKIP else node.simulation
        return event in known[1] and (mode is RunMode.LIVE or not settings.handlers_disabled)

    def notice(
        self,
        notice: HandledNotice,
        done: Done = nobody_waits,
        place: Undelivered = NO_PLACE,
    ) -> None:
        """Begins what is wanted because of an event; returns at once.

        `place` is where the event stands in the outbox.
        `done` is called when all of it is over, whether it went well or not, with False if some
        of it was dropped; it is never called for what `drain` cuts off.
        """
        task = notice.task
        if not self.wants(notice.event, None if task is None else task.node):
            done(True)
            return
        if task is not None and notice.event not in REPEATABLE:
            key = (notice.event, task.id, task.submit)
            if key in self._handled:
                done(True)
                return
            self._handled[key] = None
            if len(self._handled) > self._around.settings.remembered_max:
                del self._handled[next(iter(self._handled))]
        events = self._events if task is None else task.node.events
        commands = commands_for(notice.event, events)
        is_mailed = notice.event in events.mail_events
        part_done = after_all(is_mailed + len(commands), done)
        if is_mailed:
            self._around.mailer.post(notice, part_done)
        for number, command in enumerate(commands):
            self._begin(number, notice, command, part_done, place)

    def redefine(self, events: WorkflowEvents) -> None:
        """Replaces the handlers of the run's events by those of a reloaded definition."""
        self._events = events
        self._wanted_of_run = _wanted(events)
        self._wanted.clear()

    async def drain(self, seconds_max: float) -> None:
        """Waits at the end of the run for handlers that are under way, then ends them."""
        clock = self._around.clock
        give_up_at = clock.monotonic() + seconds_max
        if self._running:
            await asyncio.wait(self._running, timeout=seconds_max)
        unfinished = list(self._running)
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)
        if unfinished:
            self._tell("handler.dropped", count=len(unfinished))
        await self._around.mailer.drain(max(1.0, give_up_at - clock.monotonic()))

    def _begin(
        self, number: int, notice: HandledNotice, template: str, done: Done, place: Undelivered
    ) -> None:
        if len(self._running) >= self._around.settings.queued_max:
            self._tell("handler.dropped", handled=notice.event, count=1)
            done(False)  # it stays in the outbox, for the next scheduler
            return
        try:
            command = filled(template, notice, self._around.run)
        except ValueError as error:
            facts = {"handled": notice.event, "error": str(error)}
            self._tell("handler.failed", id=self._around.run.name, **facts)
            done(True)
            return
        # As in Cylc, the first delay is one before the first try.
        delays = () if notice.task is None else notice.task.node.events.handler_retry_delays
        name = f"event-handler-{number:02}"
        handling = _Handling(name, notice, command, delays or (0.0,), done, place, number)
        task = asyncio.create_task(self._handle(handling), name=f"handler {notice.event}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _handle(self, one: _Handling) -> None:
        try:
            if self._runs_here(one):
                await self._try(one)
            else:
                await self._submit(one)
        except Exception as error:  # `done` must be called in any case
            self._tell_failure(one, error=f"a bug in tidewheel, {error!r}")
        one.done(True)

    def _runs_here(self, one: _Handling) -> bool:
        code, task = self._around.code, one.notice.task
        return code is None or (code.runs_here and not (task and task.is_broadcast))

    async def _submit(self, one: _Handling) -> None:
        """Has a command run as a task of the queue, which sees to its retries."""
        code = self._around.code
        assert code is not None
        task = code.handler(one.place, one.number, one.command, one.delays_seconds)
        try:
            await until_stored(lambda: code.submit(task), self._around.clock)
        except Refused as refused:  # the run was deleted
            self._tell_failure(one, error=str(refused))

    def tell_failed_task(self, task: JobOver) -> None:
        """Reports a handler that failed as a task of the queue."""
        self._tell("handler.failed", id=task.task_id, error=task.error or task.status)

    async def _try(self, one: _Handling) -> None:
        around = self._around
        for delay in one.delays_seconds:
            if delay > 0:
                await around.clock.sleep(delay)
            async with self._room:
                end = await around.execute(
                    HandlerCommand(
                        command=one.command.command,
                        directory=around.directory,
                        environment={**around.environment, **one.command.environment},
                        seconds_max=around.settings.seconds_max,
                    )
                )
            await asyncio.to_thread(_log, around.directory, one, end)
            if not end.reason:
                break
            self._tell_failure(one, error=end.reason, output=end.output[-500:])

    def _tell_failure(self, one: _Handling, **facts: object) -> None:
        task = one.notice.task
        self._tell(
            "handler.failed",
            handled=one.notice.event,
            id=self._around.run.name if task is None else task.job,
            command=one.command.shown,
            **facts,
        )

    def _tell(self, what: str, /, **facts: object) -> None:
        self._around.on_report(ServiceReport(service="scheduler", event=what, facts=facts))


def _wanted(events: Events | WorkflowEvents) -> frozenset[str]:
    named = {event for event, commands in events.handlers if event and commands}
    listed = events.handled_events if any(not event for event, _ in events.handlers) else ()
    return frozenset((*named, *listed, *events.mail_events))


def _handles_any(restored: RestoredDefinition) -> bool:
    """Says whether a definition has handlers or mail of any event."""
    nodes = restored.graph.nodes.values()
    return bool(_wanted(restored.settings.scheduler.events)) or any(
        node.definition.events is not NO_EVENTS for node in nodes
    )


def _log(directory: Path, one: _Handling, end: HandlerEnd) -> None:
    """Logs the end of a handler beside the job's logs, or with the scheduler's. A full disk
    costs log lines only."""
    notice = one.notice
    path = directory / RUN_ACTIVITY_LOG
    if notice.task is not None:
        job = directory / "log" / "job" / notice.task.point / notice.task.node.name
        folder = job / f"{notice.task.submit:02}"
        path = folder / ACTIVITY_LOG if folder.is_dir() else path
    about = f"[({one.name}, {notice.event})"
    lines = [f"{about} cmd] {one.command.shown}", f"{about} ret_code] {end.status}"]
    if end.reason:
        lines.append(f"{about} failed] {end.reason}")
    if end.output:
        lines.append(f"{about} out] {end.output.rstrip()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as log:
            log.write("\n".join(lines) + "\n")
    except OSError:
        return


DRAIN_SECONDS = 30.0
HURRIED_SECONDS = 2.0  # for a scheduler that leaves a run which goes on
STARTUP, SHUTDOWN, ABORT, STALL = "startup", "shutdown", "abort", "stall"
MESSAGE = "message/"  # how notices of what jobs say begin
# The statuses of a run that are events of the workflow, and how those are called.
_STATUS_EVENTS = {
    RunStatus.STALLED: STALL,
    RunStatus.COMPLETED: SHUTDOWN,
    RunStatus.STOPPED: SHUTDOWN,
}


_ENDS = (
    SUCCEEDED,
    pending_batch.FAILED,
    pending_batch.SUBMISSION_FAILED,
    pending_batch.RETRY,
    pending_batch.SUBMISSION_RETRY,
)


class _Job(NamedTuple):
    """Holds facts of a job for handlers; a job of an earlier scheduler process has none."""

    try_number: int
    submitted_at: Instant | None
    started_at: Instant | None = None


_UNKNOWN = _Job(1, None)
NO_POINT = Point(0)


class _Decided(NamedTuple):
    notice: HandledNotice
    point: Point  # of its task


class OutboxBody(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Is an event as its row keeps it: of a task or, without a name, of the run.

    Another version may know more fields, or fewer: those that are not known are passed over,
    and those that are missing have the values that they have here.
    """

    event: str
    message: str = ""
    point: int = 0
    name: str = ""
    submit: int = 0
    try_number: int = 1
    submitted_at: float | None = None
    started_at: float | None = None
    ended_at: float | None = None


class OutboxRows:
    """Deletes rows of one run's outbox, a moment after their events were delivered."""

    def __init__(self, store: Store, run: int) -> None:
        self._store, self._run = store, run
        self._told: list[Undelivered] = []
        self._writing: asyncio.Task[None] | None = None
        self._under_way = 0
        self._settled = asyncio.Event()

    def begun(self) -> None:
        """Notes that an event is being delivered."""
        self._under_way += 1
        self._settled.clear()

    def done(self, one: Undelivered, *, is_told: bool) -> None:
        """Notes that an event's delivery is over; its row stays unless all were told."""
        self._under_way -= 1
        if not self._under_way:
            self._settled.set()
        if not is_told:
            return
        self._told.append(one)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write(), name="outbox")
            self._writing.add_done_callback(self._wrote)

    def _wrote(self, _: asyncio.Task[None]) -> None:
        self._writing = None

    async def _write(self) -> None:
        while self._told:
            told, self._told = self._told, []
            try:
                await self._store.delivered(self._run, told)
            except Unavailable:  # tried again with the next; else they are told twice
                self._told = told + self._told
                return

    async def settled(self) -> None:
        """Waits until no event is being delivered any more."""
        if self._under_way:
            await self._settled.wait()

    async def close(self) -> None:
        if self._writing is not None:
            await self._writing
        with suppress(Unavailable):
            await self._write()


class EventDelivery:
    """Calls the handlers and sends the mail of one run; an unhandled event costs a look-up."""

    def __init__(
        self,
        run: RunView,
        restored: RestoredDefinition,
        files: RunFiles,
        home: SchedulerHome,
        code: CodeTasks,
    ) -> None:
        surroundings, environment = home.surroundings, home.environment
        self._run, self._code = run, code
        clock = surroundings.clock
        self._troubles = DeliveryTroubles(run, files, clock, surroundings.on_report)
        self._outbox = OutboxRows(home.store, run.number)
        self._decided: list[_Decided] = []  # in the batch that is being written
        settings = restored.settings
        host, owner = socket.gethostname(), environment.get("USER", "")
        handled = HandledRun(name=run.name, host=host, owner=owner, meta=settings.meta)
        mailer = Mailer(
            handled,
            settings.scheduler.mail,
            clock,
            MailSettings(smtp=home.smtp),
            on_report=self._troubles.tell,
        )
        self._handlers = EventHandlers(
            settings.scheduler.events,
            HandlerSurroundings(
                run=handled,
                directory=files.directory,
                environment=environment,
                clock=clock,
                mailer=mailer,
                mode=RunMode(run.options.mode),
                on_report=self._troubles.tell,
                code=code,
            ),
        )
        self.tell_failed_task = self._handlers.tell_failed_task
        self._jobs: dict[Key, _Job] = {}  # of nodes with handlers
        # Whether an event may be handled. A broadcast may bring handlers, too: its engine says.
        self.is_used = _handles_any(restored)

    def reload(self, new: DefinitionInForce) -> None:
        """Replaces the definition by one that was reloaded."""
        self._code.reload(new)
        self._handlers.redefine(new.restored.settings.scheduler.events)
        self.is_used = self.is_used or _handles_any(new.restored)

    def decide(self, engine: RunEngine, now: Instant) -> list[str]:
        """Decides which events to deliver; returns their rows for the batch written next."""
        self._decided = []
        self._troubles.heed(now)
        if not engine.has_written:
            how = "was started" if engine.lease.batch == 0 else "was resumed"
            self._add(HandledNotice(event=STARTUP, message=f"{self._run.name} {how}"))
        for one in engine.batch.news:
            node = engine.settings.node(one.key) if one.key[1] in engine.graph.nodes else None
            if node is not None and self._handlers.wants(one.event, node):
                self._add_task(engine, one, now)
            if one.event == STARTED and one.key in self._jobs:
                self._jobs[one.key] = self._jobs[one.key]._replace(started_at=now)
            elif one.event in _ENDS:
                self._jobs.pop(one.key, None)
        for task_id in engine.batch.submissions:
            key, _ = engine.jobs.get(task_id, (None, 0))
            task = None if key is None else engine.pool.tasks.get(key)
            if task is not None and engine.settings.node(task.key).events is not NO_EVENTS:
                self._jobs[task.key] = _Job(task.try_number, now)
        for notice in engine.batch.notices:
            self._add_notice(engine, notice, now)
        if engine.gave_up and engine.gave_up != RunStatus.STALLED:
            self._add(HandledNotice(event=ABORT, message=engine.gave_up))
        return [body_of(*one) for one in self._decided]

    def deliver(self, batch: int) -> None:
        """Begins to deliver what was decided, as the batch is in the store now."""
        decided, self._decided = self._decided, []
        for place, one in enumerate(decided):
            self._notice(Undelivered(batch, place, ""), one.notice)

    def deliver_again(
        self, rows: Sequence[Undelivered], graph: Graph, settings: EffectiveSettings
    ) -> None:
        """Begins to deliver the events that an earlier scheduler left."""
        for row in rows:
            self._notice(row, notice_of(row.body, graph, settings))

    def _notice(self, row: Undelivered, notice: HandledNotice) -> None:
        self._outbox.begun()
        self._handlers.notice(
            notice, lambda is_told: self._outbox.done(row, is_told=is_told), row
        )

    def _add(self, notice: HandledNotice, point: Point = NO_POINT) -> None:
        node = None if notice.task is None else notice.task.node
        if self._handlers.wants(notice.event, node):
            self._decided.append(_Decided(notice, point))

    def _add_notice(self, engine: RunEngine, notice: Notice, now: Instant) -> None:
        if notice.task is None:
            event = _STATUS_EVENTS.get(notice.event, notice.event)  # type: ignore[call-overload]
            self._add(HandledNotice(event=event, message=notice.text))
            return
        task, is_said = engine.pool.tasks.get(notice.task), notice.event.startswith(MESSAGE)
        if (is_said and notice.task[1] in engine.graph.nodes) or (
            task is not None and notice.event in TASK_TIMERS
        ):
            event = notice.event.removeprefix(MESSAGE).lower()
            submit = 0 if task is None else task.submit
            self._add_task(
                engine, pending_batch.News(event, notice.task, submit, notice.text), now
            )

    def _add_task(self, engine: RunEngine, one: pending_batch.News, now: Instant) -> None:
        job = self._jobs.get(one.key, _UNKNOWN)
        facts = TaskFacts(
            **_node_facts(one.key, engine.graph, engine.settings),
            point=engine.graph.cycling.style.text(one.key[0]),
            submit=one.submit,
            try_number=job.try_number,
            submitted_at=job.submitted_at,
            started_at=now if one.event == STARTED else job.started_at,
            ended_at=now if one.event in _ENDS else None,
        )
        message = one.text or f"job {one.event}"
        self._add(HandledNotice(event=one.event, message=message, task=facts), one.key[0])

    async def settled(self) -> None:
        """Waits until all events are delivered that can be, however long that takes."""
        await self._outbox.settled()

    async def close(self, *, is_hurried: bool = False) -> None:
        """Waits for deliveries that are under way, but not for long."""
        await self._handlers.drain(HURRIED_SECONDS if is_hurried else DRAIN_SECONDS)
        await self._outbox.close()


def body_of(notice: HandledNotice, point: Point) -> str:
    """Returns an event as the text of its row in the outbox."""
    task = notice.task
    kept: dict[str, Any] = {}
    if task is not None:
        kept = {"point": point, "name": task.node.name} | _kept_facts(task)
    body = OutboxBody(event=notice.event, message=notice.message, **kept)
    return msgspec.json.encode(body).decode()


def notice_of(text: str, graph: Graph, settings: EffectiveSettings) -> HandledNotice:
    """Returns the event of a row, with the node as it is now: handlers in force are called."""
    body, facts = msgspec.json.decode(text, type=OutboxBody), None
    if body.name:
        point = Point(body.point)
        known = _node_facts((point, body.name), graph, settings)
        shown = graph.cycling.style.text(point)
        facts = TaskFacts(point=shown, **known, **_kept_facts(body))
    return HandledNotice(event=body.event, message=body.message, task=facts)


def _node_facts(key: Key, graph: Graph, settings: EffectiveSettings) -> dict[str, Any]:
    """Returns a task's node as it is now, and whether a broadcast gave it other handlers."""
    node, known = settings.node(key), graph.nodes.get(key[1])
    own = NO_EVENTS if known is None else known.definition.events
    return {"node": node, "is_broadcast": node.events.handlers != own.handlers}


def _kept_facts(one: TaskFacts | OutboxBody) -> dict[str, Any]:
    """Returns the facts of a task that a row keeps under the same names."""
    names = ("submit", "try_number", "submitted_at", "started_at", "ended_at")
    return {name: getattr(one, name) for name in names}
