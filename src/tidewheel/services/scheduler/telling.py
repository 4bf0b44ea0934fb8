"""Who is told what happens in a run: event handlers and mail, once it is in the store."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import NamedTuple

from tidewheel.core.graph.node import NO_EVENTS, RunMode
from tidewheel.core.graph.outputs import STARTED, SUCCEEDED
from tidewheel.core.runs.views import RunView
from tidewheel.core.sched.effects import Notice
from tidewheel.core.sched.pool import RunStatus
from tidewheel.core.sched.states import Key
from tidewheel.core.tasks.task import Instant
from tidewheel.services.definitions.kept import RestoredDefinition
from tidewheel.services.scheduler.driving import Drive
from tidewheel.services.scheduler.handlers import (
    EventHandlers,
    HandledNotice,
    HandledRun,
    HandlerSurroundings,
    TaskFacts,
)
from tidewheel.services.scheduler.mail import Mailer, MailSettings
from tidewheel.services.scheduler.news import (
    FAILED,
    RETRY,
    SUBMISSION_FAILED,
    SUBMISSION_RETRY,
)
from tidewheel.services.scheduler.nodes import Nodes
from tidewheel.services.scheduler.outcome import News, Work
from tidewheel.services.scheduler.run_files import RunFiles
from tidewheel.services.scheduler.task_timers import TASK_TIMERS
from tidewheel.services.service import Surroundings

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
    """What handlers may want to know of a job. One of an earlier process is not known."""

    try_number: int
    submitted_at: Instant | None
    started_at: Instant | None = None


_UNKNOWN = _Job(1, None)


class Telling:
    """Of one run. What nobody handles costs a look-up."""

    def __init__(
        self,
        run: RunView,
        restored: RestoredDefinition,
        files: RunFiles,
        surroundings: Surroundings,
        environment: Mapping[str, str],
        mail: MailSettings,
    ) -> None:
        self._run = run
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

    def reload(self, restored: RestoredDefinition) -> None:
        self._handlers.redefine(restored.settings.scheduler.events)

    def begun(self, *, is_new: bool) -> None:
        """The run is driven from now on."""
        text = f"{self._run.name} {'was started' if is_new else 'is carried on'}"
        self._handlers.notice(HandledNotice(event=STARTUP, message=text))

    def tell(self, drive: Drive, nodes: Nodes, work: Work, now: Instant) -> None:
        """A batch is in the store."""
        for one in work.news:
            node = nodes.node(one.key) if one.key[1] in drive.graph.nodes else None
            if node is not None and self._handlers.wants(one.event, node):
                self._tell_task(drive, nodes, one, now)
            self._note_course(one, now)
        self._note_submissions(drive, nodes, work, now)
        for notice in work.notices:
            self._tell_notice(drive, nodes, notice, now)
        if drive.gave_up and drive.gave_up != RunStatus.STALLED:
            self._handlers.notice(HandledNotice(event=ABORT, message=drive.gave_up))

    def _tell_notice(self, drive: Drive, nodes: Nodes, notice: Notice, now: Instant) -> None:
        if notice.task is None:
            event = _STATUS_EVENTS.get(notice.event, notice.event)  # type: ignore[call-overload]
            self._handlers.notice(HandledNotice(event=event, message=notice.text))
        elif notice.event.startswith(MESSAGE) and notice.task[1] in drive.graph.nodes:
            event = notice.event.removeprefix(MESSAGE).lower()
            task = drive.pool.tasks.get(notice.task)
            submit = 0 if task is None else task.submit
            self._tell_task(drive, nodes, News(event, notice.task, submit, notice.text), now)
        elif notice.event in TASK_TIMERS and notice.task in drive.pool.tasks:
            submit = drive.pool.tasks[notice.task].submit
            news = News(notice.event, notice.task, submit, notice.text)
            self._tell_task(drive, nodes, news, now)

    def _tell_task(self, drive: Drive, nodes: Nodes, one: News, now: Instant) -> None:
        job = self._jobs.get(one.key, _UNKNOWN)
        facts = TaskFacts(
            node=nodes.node(one.key),
            point=drive.graph.cycling.style.text(one.key[0]),
            submit=one.submit,
            try_number=job.try_number,
            submitted_at=job.submitted_at,
            started_at=now if one.event == STARTED else job.started_at,
            ended_at=now if one.event in _ENDS else None,
        )
        message = one.text or f"job {one.event}"
        self._handlers.notice(HandledNotice(event=one.event, message=message, task=facts))

    def _note_submissions(self, drive: Drive, nodes: Nodes, work: Work, now: Instant) -> None:
        for task_id in work.submissions:
            key, _ = drive.jobs.get(task_id, (None, 0))
            task = None if key is None else drive.pool.tasks.get(key)
            if task is not None and nodes.node(task.key).events is not NO_EVENTS:
                self._jobs[task.key] = _Job(task.try_number, now)

    def _note_course(self, one: News, now: Instant) -> None:
        if one.event == STARTED and one.key in self._jobs:
            self._jobs[one.key] = self._jobs[one.key]._replace(started_at=now)
        elif one.event in _ENDS:
            self._jobs.pop(one.key, None)

    async def close(self, *, is_hurried: bool = False) -> None:
        """Wait for what is under way."""
        await self._handlers.drain(HURRIED_SECONDS if is_hurried else DRAIN_SECONDS)
