"""Builds the next batch of a run: what its steps led to, and what people are told of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import field
from datetime import UTC, datetime

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.outputs import STARTED, SUBMITTED, SUCCEEDED
from tidewheel.core.operator.definition import NewRun, RunOptions
from tidewheel.core.operator.requests import (
    CommandAnswer,
    NestedCommand,
    StoredBroadcast,
    StoredValues,
    XtriggerResult,
)
from tidewheel.core.operator.run_log import (
    INFO,
    WARNING,
    LogEntry,
    RunLog,
    RunLogLine,
    glance,
    shown,
)
from tidewheel.core.queue.requests import Report
from tidewheel.core.queue.task import Instant, NewTask, TaskId
from tidewheel.core.sched.events import (
    Event,
    JobEnd,
    JobEnded,
    JobSubmitted,
    Notice,
    OutputMade,
    SetTimer,
    TimerFired,
)
from tidewheel.core.sched.pool import PastNeeded, TaskPool, Touched
from tidewheel.core.sched.spawn import RETRY as RETRY_TIMER
from tidewheel.core.sched.step import Outcome
from tidewheel.core.sched.task_state import JobPhase, Key, TaskHistory
from tidewheel.lazy_dataclasses import NamedTuple, dataclass
from tidewheel.ports.store import Store
from tidewheel.quantities import show_iso_duration


class News(NamedTuple):
    """Says what happened to a task, in the words of its event handlers."""

    event: str
    key: Key
    submit: int
    text: str = ""


@dataclass(slots=True)
class PendingBatch:
    """Holds a batch that is being made; changes of the pool are derived from `touched` last."""

    touched: Touched = field(default_factory=Touched)
    consumed: list[int] = field(default_factory=list)
    job_reports: Sequence[Report] = ()
    submissions: dict[TaskId, NewTask] = field(default_factory=dict)
    cancellations: dict[TaskId, None] = field(default_factory=dict)
    nested: list[NewRun] = field(default_factory=list)
    nested_commands: list[NestedCommand] = field(default_factory=list)
    answers: list[CommandAnswer] = field(default_factory=list)
    xtriggers: list[XtriggerResult] = field(default_factory=list)
    broadcasts: list[StoredBroadcast] = field(default_factory=list)
    values: list[StoredValues] = field(default_factory=list)
    definition: str | None = None
    options: RunOptions | None = None
    goes_on: bool = False  # it had been let go
    steps: int = 0
    seconds: float = 0.0  # from reading what had happened to having written this
    # The rest is told to people once the batch is committed.
    news: list[News] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    log: list[LogEntry] = field(default_factory=list)
    triggers: list[str] = field(default_factory=list)


class OfferedReports(NamedTuple):
    """Holds reports that are to be written with the next batch, and who waits for that."""

    reports: Sequence[Report]
    answer: asyncio.Future[bool]  # whether they are written


class HistoryCache:
    """Holds histories that the pool has dropped: those fetched, and those evicted since.

    The store does not have the latter yet. Both are kept until the batch is written.
    """

    def __init__(self) -> None:
        self.evicted: dict[Key, TaskHistory] = {}
        self._fetched: dict[Key, TaskHistory | None] = {}  # None: the store knows nothing

    async def fetch(self, store: Store, run: int, keys: Iterable[Key]) -> None:
        """Fetches the histories of these tasks from the store, except those that are here."""
        unknown = sorted(set(keys) - self.evicted.keys() - self._fetched.keys())
        if unknown:
            self._fetched |= await store.histories(run, unknown)

    def written(self) -> None:
        """Drops everything, once a batch is written: the store has it, and may have newer."""
        self.evicted.clear()
        self._fetched.clear()

    def recall(self, point: Point, name: str) -> TaskHistory | None:
        """Returns a copy of a task's history; None if it has none.

        Raises PastNeeded if it was not fetched.
        """
        key = (point, name)
        if key in self.evicted:
            return self.evicted[key].copy()
        if key not in self._fetched:
            raise PastNeeded(key)
        memory = self._fetched[key]
        return None if memory is None else memory.copy()


# News are the events of single tasks, in the words of their event handlers: handlers, mail and
# a terminal follow them. Both are derived here, once for each step, from the event that was
# handed in and from what the core answered.


FAILED = "failed"
SUBMISSION_FAILED = "submission failed"
FAILURES = (FAILED, SUBMISSION_FAILED)
RETRY = "retry"
SUBMISSION_RETRY = "submission retry"
# What is told of a job that succeeded or started, by the stage that its task had before: also
# outputs on its way that went unheard.
_SUCCESS: dict[JobPhase | None, tuple[str, ...]] = {
    JobPhase.PREPARING: (SUBMITTED, STARTED, SUCCEEDED),
    JobPhase.SUBMITTED: (STARTED, SUCCEEDED),
}
_START: dict[JobPhase | None, tuple[str, ...]] = {JobPhase.PREPARING: (SUBMITTED, STARTED)}
_JOB_SUCCEEDED = JobEnd.SUCCEEDED  # looked up once, not at each step
# Notices of the core that are events of a task under the same name.
_NOTICES = ("expired", "blocked", "lost")


class TaskEvents:
    """Derives the log and the news of one run, step after step."""

    def __init__(self, pool: TaskPool) -> None:
        self._pool = pool
        self.log = RunLog(pool)

    def told(
        self, event: Event, outcome: Outcome, before: JobPhase | None, failure: str
    ) -> tuple[list[LogEntry], list[News]]:
        """Returns the log lines and the news of a step.

        `before` is the stage that the task had before it: outputs that its job passed without a
        report are told, too. `failure` is the signal with which a job ended that failed.
        """
        log = self.log.lines(event, outcome, failure)
        retry: Notice | None = None
        noticed: list[News] = []
        of_job = event.task if type(event) is JobEnded else None
        for effect in outcome.effects:
            if type(effect) is Notice:
                if effect.task is None:
                    continue
                if effect.event in _NOTICES:
                    noticed.append(News(effect.event, effect.task, 0, effect.text))
                elif retry is None and effect.event == RETRY and effect.task == of_job:
                    retry = effect
            elif type(effect) is SetTimer and of_job is not None:
                log += self._retry_lines(of_job, effect, event.at)
        if type(event) is TimerFired and event.name == RETRY_TIMER and event.task is not None:
            # In the shape that existing jobs look for.
            call = f"wall_clock(trigger_time={int(event.at)})"
            name = self._pool.plan.name_of(event.task)
            text = f"xtrigger succeeded: _tidewheel_retry_{name} = {call}"
            log.append(RunLogLine(INFO, text))
        return log, _news(event, outcome, before, retry) + noticed

    def _retry_lines(self, key: Key, timer: SetTimer, at: Instant) -> list[RunLogLine]:
        """Returns the line for a failed job's retry; none if a suicide removed the task."""
        task = self._pool.tasks.get(key)
        if task is None or timer.name != RETRY_TIMER:
            return []
        delay = show_iso_duration(round(timer.at - at, 3))
        name = shown(self._pool.plan.name_of(key), glance(task))
        when = datetime.fromtimestamp(timer.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return [RunLogLine(WARNING, f"[{name}] - retrying in {delay} (after {when})")]


def _news(
    event: Event, outcome: Outcome, before: JobPhase | None, retry: Notice | None
) -> list[News]:
    """Returns what a step means to a task's event handlers; nothing for a report too late."""
    if type(event) is JobSubmitted:
        return [News(SUBMITTED, event.task, event.submit)]
    if type(event) is JobEnded and event.task in outcome.touched.tasks:
        if event.how is not _JOB_SUCCEEDED:
            return [_failure(event, retry, was_running=before is JobPhase.RUNNING)]
        outputs = _SUCCESS.get(before) or (SUCCEEDED,)
    elif type(event) is OutputMade and event.task in outcome.touched.tasks:
        known = _START.get(before) if event.output == STARTED else None
        outputs = known or (event.output,)
    else:
        return []
    task, submit = event.task, event.submit
    # As tuples: there are three for each task.
    return [tuple.__new__(News, (output, task, submit, "")) for output in outputs]


def _failure(event: JobEnded, retry: Notice | None, *, was_running: bool) -> News:
    key, submit = event.task, event.submit
    failed = was_running and event.how is not JobEnd.NOT_STARTED
    if retry is not None:
        return News(RETRY if failed else SUBMISSION_RETRY, key, submit, retry.text)
    # A job that failed before it ran, as a stage that may not be run, was never started.
    how = event.how if failed or event.how is JobEnd.KILLED else JobEnd.NOT_STARTED
    return News(FAILED if failed else SUBMISSION_FAILED, key, submit, event.why or str(how))
