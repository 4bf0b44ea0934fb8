"""Runs the commands and sends the mail that a definition wants when something happens.

Theory of operation. `wants` is asked for every event and is a look-up; nothing else is done for
an event that nobody handles. What is wanted is queued by `notice`, which never waits. A command
runs at most once for (event, task, submit) in this process, apart from its retries. Over a
crash it is at least once: the event lies in the run's outbox (`event_outbox`) until `done` was
called for it, which is when its commands have ended and its mail is out. Whatever was queued or
running when the process died, or was cut off when it left, is begun again by the next one.

A handler that fails is reported and logged; it never stops the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tidewheel.core.graph.definition import NO_EVENTS, Events, NodeDef, RunMode
from tidewheel.formats.flow_cylc.settings import WorkflowEvents
from tidewheel.ports.clock import Clock
from tidewheel.runners.event_handlers import HandlerCommand, HandlerEnd, run_handler
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
from tidewheel.scheduler.mail import Mailer
from tidewheel.services.service import OnReport, ServiceReport, tell_nobody

__all__ = ["EventHandlers", "HandledNotice", "HandledRun", "HandlerSettings", "TaskFacts"]

NODES_KNOWN_MAX = 10_000
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


@dataclass(frozen=True, slots=True)
class _Handling:
    name: str  # event-handler-00, as Cylc's logs call it
    notice: HandledNotice
    command: FilledCommand
    delays_seconds: tuple[float, ...]
    done: Done


class EventHandlers:
    """Runs the event handlers of one run; it is used in the run's loop only."""

    def __init__(self, events: WorkflowEvents, around: HandlerSurroundings) -> None:
        self._events = events
        self._around = around
        self._room = asyncio.Semaphore(around.settings.at_once_max)
        self._running: set[asyncio.Task[None]] = set()
        self._handled: dict[tuple[str, str, str], None] = {}
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
        return event in known[1] and not self._is_disabled(node)

    def notice(self, notice: HandledNotice, done: Done = nobody_waits) -> None:
        """Begins what is wanted because of an event; returns at once.

        `done` is called when all of it is over, whether it went well or not, with False if some
        of it was dropped; it is never called for what `drain` cuts off.
        """
        task = notice.task
        if not self.wants(notice.event, None if task is None else task.node):
            done(True)
            return
        if task is not None and notice.event not in REPEATABLE:
            if (notice.event, task.id, str(task.submit)) in self._handled:
                done(True)
                return
            self._remember(notice.event, task)
        events = self._events if task is None else task.node.events
        commands = commands_for(notice.event, events)
        is_mailed = notice.event in events.mail_events
        part_done = after_all(is_mailed + len(commands), done)
        if is_mailed:
            self._around.mailer.post(notice, part_done)
        for number, command in enumerate(commands):
            self._begin(f"event-handler-{number:02}", notice, command, part_done)

    def redefine(self, events: WorkflowEvents) -> None:
        """Takes the events of a definition that was reloaded."""
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

    def _is_disabled(self, node: NodeDef) -> bool:
        mode = self._around.mode if node.run_mode is RunMode.LIVE else node.run_mode
        if mode is RunMode.LIVE:
            return False
        settings = node.skip if mode is RunMode.SKIP else node.simulation
        return settings.handlers_disabled

    def _remember(self, event: str, task: TaskFacts) -> None:
        self._handled[event, task.id, str(task.submit)] = None
        if len(self._handled) > self._around.settings.remembered_max:
            del self._handled[next(iter(self._handled))]

    def _begin(self, name: str, notice: HandledNotice, template: str, done: Done) -> None:
        if len(self._running) >= self._around.settings.queued_max:
            self._tell("handler.dropped", event=notice.event, count=1)
            done(False)  # it stays in the outbox, for the next scheduler
            return
        try:
            command = filled(template, notice, self._around.run)
        except ValueError as error:
            self._tell("handler.failed", event=notice.event, error=str(error))
            done(True)
            return
        # As in Cylc, the first delay is one before the first try.
        delays = () if notice.task is None else notice.task.node.events.handler_retry_delays
        handling = _Handling(name, notice, command, delays or (0.0,), done)
        task = asyncio.create_task(self._handle(handling), name=f"handler {notice.event}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _handle(self, one: _Handling) -> None:
        try:
            await self._try(one)
        except Exception as error:  # `done` must be called in any case
            self._tell_failure(one, error=f"a bug of tidewheel, {error!r}")
        one.done(True)

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
            event=one.notice.event,
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


def _log(directory: Path, one: _Handling, end: HandlerEnd) -> None:
    """Logs the end of a handler beside the job's logs, or with the scheduler's.

    A full disk costs log lines only.
    """
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
