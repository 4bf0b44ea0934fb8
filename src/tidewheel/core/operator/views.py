"""Describes runs as people and programs look at them.

The reason beside the status of a run says how it ended: it is written and read here. A
completed run may hold tasks whose work was not done. *Lost*: a task that did not run because
something it needs failed and was handled (SEMANTICS §5). *Skipped*: a task that expired, or
that somebody removed by hand. A branch that was not taken is neither, nor is a task that the
graph removed (suicide), nor one that succeeds without a job because its run mode says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from tidewheel.core.operator.definition import RunOptions
from tidewheel.core.queue.access import covers, run_name, workflow_name
from tidewheel.core.queue.requests import HostProcess
from tidewheel.core.queue.task import Instant, TaskId
from tidewheel.errors import Refused
from tidewheel.lazy_dataclasses import NamedTuple, dataclass, pattern

if TYPE_CHECKING:  # who only lists runs would load the core with it
    from tidewheel.core.cycling.calendar import Point
    from tidewheel.core.cycling.style import PointWords
    from tidewheel.core.sched.persistence import PooledTaskRow, PutMemory

UndoneKind = Literal["lost", "skipped"]
UNDONE_KINDS: tuple[UndoneKind, ...] = ("lost", "skipped")

# What views of a completed run say of a task that had succeeded, but failed when run again,
# alone: the task and the run stay what they were.
FAILED_AGAIN = "failed again"
_COMPLETED = pattern(r"completed(?:, (?P<lost>\d+) lost)?(?:, (?P<skipped>\d+) skipped)?")
ABORTED_BY = "aborted by "  # so begins the reason of a block that somebody has aborted
_ABORTED_FOR = "aborted: "
_OWN_STOP_POINT = "stopped: at its stop point "
_LATER_STOP_POINT = "stopped: after point "


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """Holds how many tasks of a completed run were not done, lost and skipped ones apart."""

    lost: int = 0
    skipped: int = 0

    @property
    def text(self) -> str:
        """Returns `2 lost, 1 skipped`; empty if all was done."""
        counts = [(kind, self.count(kind)) for kind in UNDONE_KINDS]
        return ", ".join(f"{count} {kind}" for kind, count in counts if count)

    def count(self, kind: UndoneKind) -> int:
        return self.lost if kind == "lost" else self.skipped

    def __add__(self, other: Undone) -> Undone:
        """Returns the counts of both."""
        return Undone(lost=self.lost + other.lost, skipped=self.skipped + other.skipped)


def with_undone(reason: str, undone: Undone) -> str:
    """Returns the reason of a completed run, with what was not done: `completed, 2 lost`."""
    told = ", ".join(["completed", undone.text] if undone.text else ["completed"])
    return _COMPLETED.sub(told, reason, count=1)


def undone_in(reason: str) -> Undone:
    """Returns the counts that `with_undone` wrote into a reason; zeros if it wrote none."""
    found = _COMPLETED.match(reason)
    counts = {} if found is None else found.groupdict(default="0")
    return Undone(**{kind: int(counts.get(kind, "0")) for kind in UNDONE_KINDS})


def ran_nothing(reason: str) -> bool:
    """Says whether the reason of a completed run is that none of its tasks was ever ready."""
    found = _COMPLETED.match(reason)
    if found is None:
        return False
    # Not at the head: who only lists runs would load the core with it.
    from tidewheel.core.sched.pool import NOTHING_RAN  # noqa: PLC0415

    return reason.startswith(NOTHING_RAN.removeprefix("completed"), found.end())


def aborted_for(why: str) -> str:
    """Returns the reason of a run that has aborted by itself."""
    return f"{_ABORTED_FOR}{why}"


def was_aborted(reason: str) -> bool:
    """Says whether the run aborted, by itself or since somebody wanted it."""
    return reason.startswith((_ABORTED_FOR, ABORTED_BY))


def stopped_at(point: str, *, is_own: bool) -> str:
    """Returns the reason of a run that reached its stop point: its own, or one it was told."""
    return f"{_OWN_STOP_POINT if is_own else _LATER_STOP_POINT}{point}"


def is_at_own_stop_point(reason: str) -> bool:
    """Says whether the run stopped where its definition or its options say."""
    return reason.startswith(_OWN_STOP_POINT)


OPEN_STATUSES = ("running", "paused", "waiting for release", "stalled", "stopping")
# Every status of a run: those that need action first.
RUN_STATES = (
    "stalled",
    "error",
    *OPEN_STATUSES[:3],
    "stopping",
    "created",
    "stopped",
    "completed",
)
CARRY_ON_STATUSES = ("stopped", "stalled", "error")
# Nobody drives such a run until it is carried on.
LET_GO_STATUSES = ("stopped", "completed", "error")
# No worker may claim anything of such a run: what nobody has taken is withdrawn.
WITHDRAWN_STATUSES = ("stopping", *LET_GO_STATUSES)
# By trigger, set and release; an open one whose scheduler died, when its lease has lapsed.
REOPENED_STATUSES = ("stopped", "completed", *OPEN_STATUSES)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """Describes a run as it is now."""

    number: int
    name: str  # WORKFLOW/runN unless it was given one
    workflow: str
    definition: str  # the digest of what it runs now
    options: RunOptions
    folder: str
    queue: str
    status: str  # as in RunStatus, or "created", "error"
    reason: str
    epoch: int
    batch: int
    owner: HostProcess | None  # None: no scheduler holds it
    deadline_at: Instant | None
    created_at: Instant
    updated_at: Instant
    ended_at: (
        Instant | None
    )  # when a scheduler let it go last; of a complete run, since when it is
    # Any scheduler is asked to drive it, with these options anew; None: none is asked.
    given: RunOptions | None = None
    # What its jobs may look at beside their own run: the names that both tokens covered, which
    # asked for the run and which brought its code. None: everything, as for somebody who can
    # open the store.
    sees: tuple[str, ...] | None = None
    # The number of the run in which this one is a task; its name is that of the submission.
    parent: int | None = None

    def is_driven(self, now: Instant) -> bool:
        """Says whether a scheduler holds the run: its lease has not run out."""
        return self.deadline_at is not None and now < self.deadline_at

    @property
    def is_aborted(self) -> bool:
        """Says whether somebody has aborted the run, which is final."""
        return self.status == "stopped" and self.reason.startswith(ABORTED_BY)

    def can_be_reopened(self, now: Instant) -> bool:
        """Says whether nobody drives the run, and a command would make it go on."""
        return self.status in REOPENED_STATUSES and not self.is_driven(now)

    @property
    def wants_scheduler(self) -> bool:
        """Says whether a scheduler was asked for, or holds the run, or died holding it."""
        is_open = self.status in ("created", *OPEN_STATUSES)
        return self.given is not None or (self.owner is not None and is_open)


def may_look_at(run: RunView, other: RunView) -> bool:
    """Says whether jobs and xtriggers of a run may look at another run."""
    return (
        run.sees is None or run.number == other.number or covers(run.sees, run_name(other.name))
    )


def is_of_others(names: tuple[str, ...] | None, text: str) -> bool:
    """Says whether a text that led to no run which these patterns cover is another's name.

    Then it is refused as that, whether there is such a run or not. A number tells no name: it
    is answered as one that is not there.
    """
    return names is not None and not text.isdecimal() and not covers(names, run_name(text))


def sees_object(run: RunView, name: str) -> bool:
    """Says whether stages of a run may wait for a buffer object of this name."""
    return run.sees is None or covers(run.sees, workflow_name(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandView:
    """Describes a command and what became of it; while it waits, `answered_at` is None."""

    number: int
    run: int
    at: Instant
    who: str
    body: str
    answered_at: Instant | None
    answer: str | None
    refused: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionVersion:
    """Describes a definition that a run had, and who reloaded it; the first is what it began
    with."""

    version: int
    definition: str  # its digest
    at: Instant
    who: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionView:
    """Describes a submission of a run as the queue knows it, with its last attempt."""

    task_id: TaskId
    seq: int
    status: str
    attempt: int
    submitted_at: Instant
    started_at: Instant | None
    ended_at: Instant | None
    exit_status: int | None
    error: str | None
    worker: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAttempt:
    """Describes an attempt at a submission: when it waited and ran, what it asked for and used.

    One that nobody has claimed yet has no worker and no times.
    """

    task_id: TaskId
    submitted_at: Instant
    attempt: int
    worker: str | None
    claimed_at: Instant | None
    started_at: Instant | None
    ended_at: Instant | None
    ended_by: str | None
    exit_status: int | None
    cpu_asked: float
    memory_asked_bytes: int
    gpu_asked: int
    memory_used_bytes: int | None  # the peak
    cpu_used_percent: float | None  # the mean, of one core
    gpu_used_percent: float | None  # the mean
    gpu_memory_used_bytes: int | None  # the peak


@dataclass(frozen=True, slots=True)
class ChangesView:
    """Holds the changes of one batch, as JSON; from those a run can be shown as it was."""

    batch: int
    at: Instant
    changes: str


# What a grid of runs and points is made of.


class GridCandidate(NamedTuple):
    """Names a run that a grid may show."""

    number: int
    name: str
    workflow: str
    status: str


class GridFacts(NamedTuple):
    """Holds what a grid shows of a run beside its tasks."""

    words: PointWords | None  # None: it is not known how the run writes its points
    earliest: Point | None  # at which something is left to do
    since: Instant | None  # when it got its status, if that is stalled or error


class TasksAtPoint(NamedTuple):
    """Counts tasks of a run at one point that stand alike.

    `pooled` or `memory` holds what they have in common, the other one is None; `first` is the
    first of their names.
    """

    run: int
    point: Point
    tasks: int
    first: str
    pooled: PooledTaskRow | None
    memory: PutMemory | None


class TasksDue(NamedTuple):
    """Counts tasks of a run at one point that are unfinished and have a time to finish by.

    `at` is that time; `NEVER` if it is over, and the scheduler has said so.
    """

    run: int
    point: Point
    at: Instant
    tasks: int


RUNS_NAMED_MAX = 5


def only_run(views: Sequence[RunView], now: Instant) -> RunView:
    """Returns the only run, or the only driven one; else raises Refused with the names."""
    if not views:
        raise Refused("there is no run in this store; start one: tidewheel run DIR")
    driven = [view for view in views if view.is_driven(now)]
    found = views if len(views) == 1 else driven
    if len(found) == 1:
        return found[0]
    names = [view.name for view in found or views]
    more = f" and {len(names) - RUNS_NAMED_MAX} more" if len(names) > RUNS_NAMED_MAX else ""
    raise Refused(
        f"which run? There are {', '.join(names[:RUNS_NAMED_MAX])}{more}; "
        "name one as RUN: its name, its number or the beginning of its name"
    )
