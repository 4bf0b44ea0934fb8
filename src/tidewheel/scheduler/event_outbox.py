"""Delivers the events of a run to its event handlers and by mail, at least once.

Theory of operation. An event that is to be delivered is written with the batch that decided it,
as a row of the run's outbox. Once the batch is in the store, handlers are called and mail is
sent; when all of that is over for an event, its row is deleted. The scheduler that takes the
run after a crash finds the rows that are left, and does them again: an event may be delivered
twice, and is never left out. Of a run that was over by then, any scheduler of the store does it
(`deliver_left`).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.definition import NO_EVENTS, RunMode
from tidewheel.core.graph.graph import Graph
from tidewheel.core.graph.outputs import STARTED, SUCCEEDED
from tidewheel.core.operator.requests import Undelivered
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.events import Notice
from tidewheel.core.sched.pool import RunStatus
from tidewheel.core.sched.task_state import Key
from tidewheel.errors import Unavailable
from tidewheel.ports.store import Store
from tidewheel.scheduler.broadcasts import DefinitionInForce, EffectiveSettings
from tidewheel.scheduler.event_handlers import (
    EventHandlers,
    HandledNotice,
    HandledRun,
    HandlerSurroundings,
    TaskFacts,
)
from tidewheel.scheduler.mail import Mailer, MailSettings
from tidewheel.scheduler.pending_batch import (
    FAILED,
    RETRY,
    SUBMISSION_FAILED,
    SUBMISSION_RETRY,
    News,
)
from tidewheel.scheduler.run_files import RunFiles
from tidewheel.scheduler.timers import TASK_TIMERS
from tidewheel.services.definitions.snapshot import RestoredDefinition
from tidewheel.services.service import Surroundings

if TYPE_CHECKING:
    from tidewheel.scheduler.run_engine import RunEngine

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


_ENDS = (SUCCEEDED, FAILED, SUBMISSION_FAILED, RETRY, SUBMISSION_RETRY)


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

    def __init__(  # noqa: PLR0913, PLR0917 - made in one place, by open_run.py
        self,
        run: RunView,
        restored: RestoredDefinition,
        files: RunFiles,
        surroundings: Surroundings,
        environment: Mapping[str, str],
        mail: MailSettings,
        outbox: OutboxRows,
    ) -> None:
        self._run = run
        self._outbox = outbox
        self._is_begun = False
        self._decided: list[_Decided] = []  # in the batch that is being written
        settings = restored.settings
        handled = HandledRun(
            name=run.name,
            host=socket.gethostname(),
            owner=environment.get("USER", ""),
            meta=settings.meta,
        )
        mailer = Mailer(
            handled,
            settings.scheduler.mail,
            surroundings.clock,
            mail,
            on_report=surroundings.on_report,
        )
        self._handlers = EventHandlers(
            settings.scheduler.events,
            HandlerSurroundings(
                run=handled,
                directory=files.directory,
                environment=environment,
                clock=surroundings.clock,
                mailer=mailer,
                mode=RunMode(run.options.mode),
                on_report=surroundings.on_report,
            ),
        )
        self._jobs: dict[Key, _Job] = {}  # of nodes with handlers

    def reload(self, new: DefinitionInForce) -> None:
        """Takes another definition."""
        self._handlers.redefine(new.restored.settings.scheduler.events)

    def decide(self, engine: RunEngine, now: Instant) -> list[str]:
        """Decides which events to deliver; returns their rows for the batch written next."""
        self._decided = []
        if not self._is_begun:
            how = "was started" if engine.lease.batch == 0 else "is carried on"
            self._add(HandledNotice(event=STARTUP, message=f"{self._run.name} {how}"))
        for one in engine.batch.news:
            node = engine.settings.node(one.key) if one.key[1] in engine.graph.nodes else None
            if node is not None and self._handlers.wants(one.event, node):
                self._add_task(engine, one, now)
            self._note_course(one, now)
        self._note_submissions(engine, now)
        for notice in engine.batch.notices:
            self._add_notice(engine, notice, now)
        if engine.gave_up and engine.gave_up != RunStatus.STALLED:
            self._add(HandledNotice(event=ABORT, message=engine.gave_up))
        return [body_of(*one) for one in self._decided]

    def deliver(self, batch: int) -> None:
        """Begins to deliver what was decided, as the batch is in the store now."""
        self._is_begun = True
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
        self._handlers.notice(notice, lambda is_told: self._outbox.done(row, is_told=is_told))

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
            self._add_task(engine, News(event, notice.task, submit, notice.text), now)

    def _add_task(self, engine: RunEngine, one: News, now: Instant) -> None:
        job = self._jobs.get(one.key, _UNKNOWN)
        facts = TaskFacts(
            node=engine.settings.node(one.key),
            point=engine.graph.cycling.style.text(one.key[0]),
            submit=one.submit,
            try_number=job.try_number,
            submitted_at=job.submitted_at,
            started_at=now if one.event == STARTED else job.started_at,
            ended_at=now if one.event in _ENDS else None,
        )
        message = one.text or f"job {one.event}"
        self._add(HandledNotice(event=one.event, message=message, task=facts), one.key[0])

    def _note_submissions(self, engine: RunEngine, now: Instant) -> None:
        for task_id in engine.batch.submissions:
            key, _ = engine.jobs.get(task_id, (None, 0))
            task = None if key is None else engine.pool.tasks.get(key)
            if task is not None and engine.settings.node(task.key).events is not NO_EVENTS:
                self._jobs[task.key] = _Job(task.try_number, now)

    def _note_course(self, one: News, now: Instant) -> None:
        if one.event == STARTED and one.key in self._jobs:
            self._jobs[one.key] = self._jobs[one.key]._replace(started_at=now)
        elif one.event in _ENDS:
            self._jobs.pop(one.key, None)

    async def settled(self) -> None:
        """Waits until all events are delivered that can be, however long that takes."""
        await self._outbox.settled()

    async def close(self, *, is_hurried: bool = False) -> None:
        """Waits for deliveries that are under way, but not for long."""
        await self._handlers.drain(HURRIED_SECONDS if is_hurried else DRAIN_SECONDS)
        await self._outbox.close()


def body_of(notice: HandledNotice, point: Point) -> str:
    """Writes an event as a row of the outbox."""
    task = notice.task
    kept: dict[str, Any] = {}
    if task is not None:
        kept = {"point": point, "name": task.node.name} | _kept_facts(task)
    body = OutboxBody(event=notice.event, message=notice.message, **kept)
    return msgspec.json.encode(body).decode()


def notice_of(text: str, graph: Graph, settings: EffectiveSettings) -> HandledNotice:
    """Reads a row, with the node as it is now, so that the handlers in force are called."""
    body, facts = msgspec.json.decode(text, type=OutboxBody), None
    if body.name:
        point = Point(body.point)
        node, shown = settings.node((point, body.name)), graph.cycling.style.text(point)
        facts = TaskFacts(node=node, point=shown, **_kept_facts(body))
    return HandledNotice(event=body.event, message=body.message, task=facts)


def _kept_facts(one: TaskFacts | OutboxBody) -> dict[str, Any]:
    """Returns the facts of a task that a row keeps under the same names."""
    names = ("submit", "try_number", "submitted_at", "started_at", "ended_at")
    return {name: getattr(one, name) for name in names}
