"""Defines everything that can happen to a run, one frozen value each, with its time.

What jobs report is a tuple: there are three of these for each task, and a frozen dataclass
takes twice as long to make.

Effects are what a step wants done outside: jobs, timers, checks and news.
"""

from __future__ import annotations

from enum import Enum, StrEnum

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.definition import Retries
from tidewheel.core.graph.graph import Graph
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.task_state import Flows, Key
from tidewheel.lazy_dataclasses import NamedTuple, dataclass


class JobEnd(StrEnum):
    """Says how a job ended, as the store knows it (SEMANTICS §6)."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"  # exit status, signal, time limit, too many lapses
    KILLED = "killed"  # by an operator, or cancelled
    NOT_STARTED = "not started"  # the runner could not start it


class FlowChoice(Enum):
    """Says into which flows an intervention goes, where no flow numbers are given."""

    DEFAULT = "default"
    NEW = "new"
    ALL = "all"
    NONE = "none"


class StopMode(StrEnum):
    """Says how a run is stopped; the pool stays as it is."""

    CLEAN = "clean"  # active tasks finish first
    NOW = "now"  # active jobs run on and are found again
    KILL = "kill"


@dataclass(frozen=True, slots=True)
class RunStarted:
    """Says that the run begins: at the start point, or only with these tasks."""

    at: Instant
    tasks: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True)
class RunContinued:
    """Says that a stopped run goes on, up to this point if one is given."""

    at: Instant
    stop: Point | None = None


class JobSubmitted(NamedTuple):
    task: Key
    submit: int
    at: Instant


class OutputMade(NamedTuple):
    """Says that a job reported an output: `started` or a custom one."""

    task: Key
    submit: int
    output: str
    at: Instant


class JobEnded(NamedTuple):
    task: Key
    submit: int
    how: JobEnd
    at: Instant
    retries: Retries | None = None  # that this job had, if not those of its definition
    why: str = ""  # for people, where more is known than how


class TimerFired(NamedTuple):
    """Says that a timer fired which the core had asked for; with task None, one of the run."""

    task: Key | None
    name: str
    at: Instant


@dataclass(frozen=True, slots=True)
class XtriggerSatisfied:
    """Says that something outside has happened that these tasks wait for."""

    label: str
    tasks: tuple[Key, ...]
    at: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksTriggered:
    """Asks that these tasks run now. With `FlowChoice.NEW` a new flow starts (a reflow)."""

    tasks: tuple[Key, ...]
    at: Instant
    flow: FlowChoice | Flows = FlowChoice.DEFAULT
    until: Point | None = None
    until_tasks: frozenset[Key] = frozenset()
    wait: bool = False
    ignore_before: bool = False
    chains_from: Point | None = None
    on_resume: bool = False  # while the run is paused it only becomes ready


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputsSet:
    """Asks to complete outputs by hand; if none is named, those that complete the task."""

    task: Key
    at: Instant
    outputs: tuple[str, ...] = ()
    flow: FlowChoice | Flows = FlowChoice.DEFAULT
    wait: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PrerequisitesSet:
    """Asks to satisfy prerequisites by hand; `everything` is `--pre all`."""

    task: Key
    at: Instant
    atoms: tuple[tuple[Point, str, str], ...] = ()
    xtriggers: tuple[str, ...] = ()
    everything: bool = False
    flow: FlowChoice | Flows = FlowChoice.DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksRemoved:
    """Asks to take tasks out of flows, as if the flows had never come to the tasks."""

    tasks: tuple[Key, ...]
    at: Instant
    flows: Flows = frozenset()  # none named: all of the task's
    forget: bool = False
    kill: bool = False


@dataclass(frozen=True, slots=True)
class PlainEvent:
    """Is the form of events that concern the whole run and carry only their time."""

    at: Instant


@dataclass(frozen=True, slots=True)
class TasksEvent:
    """Is the form of events that carry only the tasks they concern, and their time."""

    tasks: tuple[Key, ...]
    at: Instant


class TasksHeld(TasksEvent):
    """Asks to keep tasks from being submitted."""


class TasksReleased(TasksEvent):
    """Asks to let held tasks go."""


@dataclass(frozen=True, slots=True)
class AllHeldAfter:
    """Asks to hold every task beyond a point."""

    point: Point
    at: Instant


class AllReleased(PlainEvent):
    """Asks to release every held task and to forget the hold point."""


class JobsKilled(TasksEvent):
    """Asks to end the jobs of tasks."""


class JobsPolled(TasksEvent):
    """Asks to find out in which state the jobs of tasks are."""


class RunPaused(PlainEvent):
    """Asks that nothing more is submitted."""


class RunResumed(PlainEvent):
    """Asks to go on submitting."""


@dataclass(frozen=True, slots=True)
class RunStopped:
    """Asks to end the run, with its pool as it is then."""

    mode: StopMode
    at: Instant


@dataclass(frozen=True, slots=True)
class StopPointSet:
    """Sets the stop point of the run; None takes it back."""

    point: Point | None
    at: Instant


@dataclass(frozen=True, slots=True)
class StopTaskSet:
    """Asks to stop the run once this task has ended."""

    task: Key
    at: Instant


@dataclass(frozen=True, slots=True)
class FlowStopped:
    """Stops a flow: its waiting tasks go, its active ones finish without spawning."""

    flow: int
    at: Instant


@dataclass(frozen=True, slots=True)
class RunReloaded:
    """Asks to go on with another definition."""

    graph: Graph
    at: Instant


Event = (
    RunStarted
    | RunContinued
    | JobSubmitted
    | OutputMade
    | JobEnded
    | TimerFired
    | XtriggerSatisfied
    | TasksTriggered
    | OutputsSet
    | PrerequisitesSet
    | TasksRemoved
    | TasksEvent
    | PlainEvent
    | AllHeldAfter
    | RunStopped
    | StopPointSet
    | StopTaskSet
    | FlowStopped
    | RunReloaded
)


class Submit(NamedTuple):
    """Asks to run a task once: as one new task of the store, `run/point/name/submit`."""

    task: Key
    submit: int
    try_number: int
    flows: Flows


class SetTimer(NamedTuple):
    task: Key | None
    name: str
    at: Instant


class CancelTimer(NamedTuple):
    task: Key | None
    name: str


class CheckXtrigger(NamedTuple):
    task: Key
    label: str


class DropXtrigger(NamedTuple):
    """Ends the check of an xtrigger for a task that no longer waits for it."""

    task: Key
    label: str


class KillJob(NamedTuple):
    task: Key
    submit: int


class PollJob(NamedTuple):
    task: Key
    submit: int


class Notice(NamedTuple):
    """Tells people and handlers of an event: name, task (None for the run) and a sentence."""

    event: str
    task: Key | None
    text: str


Effect = (
    Submit | SetTimer | CancelTimer | CheckXtrigger | DropXtrigger | KillJob | PollJob | Notice
)
