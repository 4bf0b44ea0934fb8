"""Defines what schedulers, workers and operators ask of the store about runs.

A scheduler reads what happened (`Happening`s, oldest first), decides, and writes one `Batch`:
everything that it decided, in one transaction, guarded by the epoch of its lease and the number
of the batch. A batch that was committed although its answer got lost is known by its number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.operator.definition import NewRun, RunOptions
from tidewheel.core.queue.lease import RUN_LEASE_SECONDS_DEFAULT
from tidewheel.core.queue.requests import HostProcess, Report
from tidewheel.core.queue.status import Status
from tidewheel.core.queue.task import Instant, NewTask, TaskId
from tidewheel.lazy_dataclasses import NamedTuple, dataclass

if TYPE_CHECKING:
    from tidewheel.core.sched.persistence import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLease:
    """Holds a scheduler's right to a run; each of its writes carries the epoch."""

    run: int
    epoch: int
    batch: int  # the number of the last batch that was written
    lease_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunClaim:
    """Holds a scheduler's request for a run."""

    run: int
    process: HostProcess
    lease_seconds: float = RUN_LEASE_SECONDS_DEFAULT
    # Take it although its lease runs: its owner with this epoch is known to be dead.
    dead_epoch: int | None = None
    # Only if nobody has had it since it was seen with this epoch: it may be over by now.
    seen_epoch: int | None = None


# ---- what happened ----


class JobStarted(NamedTuple):
    """Says that the runner accepted a job: its process exists."""

    seq: int
    at: Instant
    task_id: TaskId
    attempt: int


class JobSaid(NamedTuple):
    """Holds a message of a job, numbered within its attempt."""

    seq: int
    at: Instant
    task_id: TaskId
    attempt: int
    text: str
    output: str | None
    told: str | None = None  # all values that the attempt has told so far, as JSON


class JobOver(NamedTuple):
    """Says that the task of a submission is final in the store."""

    seq: int
    at: Instant
    task_id: TaskId
    attempt: int
    status: str  # succeeded, failed, cancelled
    error_code: str | None
    error: str | None
    exit_status: int | None
    text: str | None = None  # the values that it returned, as JSON


class CommandGiven(NamedTuple):
    """Says that an operator, a job or a handler wants something."""

    seq: int
    at: Instant
    number: int  # of the command
    who: str
    body: str  # JSON, see verbs.py


Happening = JobStarted | JobSaid | JobOver | CommandGiven


class Inbox(NamedTuple):
    """Holds what happened to a run and was not dealt with yet, and when that was read."""

    now: Instant
    happenings: list[Happening]


# ---- what a scheduler decided ----


class RunTimer(NamedTuple):
    """Says what is to happen at a time; without a task, to the run itself."""

    point: Point | None
    name: str  # of the node; "" for the run's own
    timer: str
    at: Instant


# The end of the year 9999: the time of a timer that only marks a task
NEVER = Instant(253_402_300_799.0)


class TimerKey(NamedTuple):
    point: Point | None
    name: str
    timer: str


class CommandAnswer(NamedTuple):
    """Holds what became of a command: an answer as JSON, or why it was refused."""

    number: int
    answer: str = "{}"
    refused: str | None = None


class XtriggerResult(NamedTuple):
    """Holds the result of an xtrigger that was satisfied, as JSON; "" deletes a stored one."""

    signature: str
    result: str


class StoredBroadcast(NamedTuple):
    """Holds a setting that was broadcast to tasks that have not started yet."""

    point: str  # as text, or "*"
    namespace: str  # a node, a family or root
    setting: str  # "[environment]NAME", "script", …
    value: str | None  # None: taken back


class StoredValues(NamedTuple):
    """Holds the values that a submission of a task returned, or that were set by hand."""

    point: Point
    name: str
    submit: int  # 0: they were set before there was any
    flows: str  # JSON array
    body: str  # JSON object; "": this one returned none, which hides what earlier ones did


class Undelivered(NamedTuple):
    """Holds an event that somebody is still to be told of: its batch, place there, and JSON."""

    batch: int
    place: int
    body: str


class CodeEnd(NamedTuple):
    """Says how a task ended in which a function of a definition was called."""

    task_id: TaskId
    status: Status
    values: str | None  # JSON; None: it handed on none
    error: str | None


class NestedCommand(NamedTuple):
    """Holds a command to a run that is a task of this one; it is void if that has ended."""

    run: str  # its name
    body: str  # JSON, see verbs.py


class ParentReport(NamedTuple):
    """Holds what a run tells the run whose task it is, as if it was a job: that it has begun,
    something to be known, or how it ended."""

    run: int  # the number of the parent
    task_id: TaskId
    status: Status | None = None  # of the task, which is final; None: it goes on
    error: str | None = None
    values: str | None = None  # JSON object
    said: str = ""  # a message; "": it has begun, or ended


@dataclass(slots=True, kw_only=True)
class RunBatch:
    """Holds all that follows from some happenings, written whole or not at all."""

    number: int  # one more than the last
    at: Instant
    status: str  # of the run, afterwards
    reason: str = ""  # why it has this status, for people
    consumed: Sequence[int] = ()  # seqs of happenings
    job_reports: Sequence[Report] = ()  # upon which it was decided; written with it
    changes: Sequence[Change] = ()
    submissions: Sequence[NewTask] = ()
    cancellations: Sequence[TaskId] = ()
    nested: Sequence[NewRun] = ()  # runs that are tasks of this one
    nested_commands: Sequence[NestedCommand] = ()
    report: ParentReport | None = None
    timers: Sequence[RunTimer] = ()
    timers_gone: Sequence[TimerKey] = ()
    answers: Sequence[CommandAnswer] = ()
    xtriggers: Sequence[XtriggerResult] = ()
    broadcasts: Sequence[StoredBroadcast] = ()
    values: Sequence[StoredValues] = ()
    outbox: Sequence[str] = ()  # events that somebody is to be told of, as JSON
    definition: str | None = None  # a reload: the digest of the new one
    options: RunOptions | None = None  # carried on with others than it had
    ends: bool = False  # the scheduler lets the run go with this batch
    goes_on: bool = False  # it had been let go: what was withdrawn then can be claimed again


class Overtaken(Exception):
    """A batch was decided upon reports that the store does not accept; nothing was written."""


# ---- commands ----


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCommand:
    """Holds a command to a run that is to be stored."""

    run: int
    body: str
    who: str
    reopens: bool = False  # a run that has ended goes on with it


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """Holds all that a scheduler needs to go on with a run, or a person to look at it."""

    changes: Sequence[Change]
    timers: Sequence[RunTimer] = ()
    xtriggers: Sequence[XtriggerResult] = ()
    broadcasts: Sequence[StoredBroadcast] = field(default=())
    has_values: bool = False  # a task has returned some
