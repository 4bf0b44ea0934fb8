"""Records a rehearsal: its submissions, the critical path, and the lanes of a chart.

Each submission knows its times, its end, and what let it go: the task whose end, start or
output did, or a clock. The critical path is the chain of waits that determined when the
rehearsal ended: from the submission that ended last it is followed back until something is
reached that no task delayed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from heapq import heappop, heappush

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.cycling.style import PointStyle
from tidewheel.core.graph.graph import Graph, element_of
from tidewheel.core.graph.outputs import SUCCEEDED
from tidewheel.core.graph.shown_names import task_text
from tidewheel.core.operator.task_inputs import NO_INPUTS, Inputs
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.pool import RunStatus
from tidewheel.core.sched.task_state import Key
from tidewheel.lazy_dataclasses import NamedTuple, dataclass
from tidewheel.quantities import show_duration
from tidewheel.services.rehearsal.assumptions import AssumedEnd

CLOCK_FORMAT = "CCYY-MM-DDThh:mm:ssZ"


class WaitedFor(StrEnum):
    """Names what a task may wait for last before it starts."""

    START = "start"  # nothing: the rehearsal began
    PARENT = "parent"
    LIMIT = "limit"  # room in its limit group
    RUNAHEAD = "runahead"
    CLOCK = "clock"
    RETRY = "retry"
    XTRIGGER = "xtrigger"
    SLOT = "slot"  # of the worker


@dataclass(slots=True, eq=False)
class PlayedSubmission:
    """Holds one submission of a task in a rehearsal; it changes until its job has ended."""

    key: Key
    submit: int
    try_number: int
    flows: frozenset[int]
    parents: tuple[Key, ...]
    ready_at: Instant
    submitted_at: Instant
    start_at: Instant | None = None
    end_at: Instant | None = None
    end: AssumedEnd | None = None  # None: it will succeed as usual
    ended: str = ""  # succeeded, failed, submit-failed; empty while it runs
    inputs: Inputs = NO_INPUTS  # what it is given of values, where those are looked at
    waited_for: WaitedFor = WaitedFor.START
    # Whose end, start or output let it go; a task that expired has no submission.
    blocker: PlayedSubmission | None = None
    blocker_key: Key | None = None

    @property
    def fails(self) -> bool:
        return self.end is not None and self.end.fails

    @property
    def wait_seconds(self) -> float:
        """Returns the seconds from when the task was ready to its start; 0 before the start."""
        return 0.0 if self.start_at is None else self.start_at - self.ready_at

    @property
    def length_seconds(self) -> float:
        if self.start_at is None or self.end_at is None:
            return 0.0
        return self.end_at - self.start_at


class Cause(NamedTuple):
    """Names a task that keeps a run from completing, and every reason for it."""

    key: Key
    reasons: tuple[str, ...]
    commands: tuple[str, ...]


class NameSummary(NamedTuple):
    """Sums up all submissions of the tasks with one name."""

    name: str
    runs: int
    failures: int
    mean_wait_seconds: float
    mean_length_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """Holds all that a rehearsal showed."""

    graph: Graph
    status: RunStatus
    begins_at: Instant
    ends_at: Instant
    submissions: list[PlayedSubmission]
    causes: list[Cause]
    lost: list[str]  # sentences about tasks that will not run
    expired: list[Key]
    assumed: list[str]  # sentences about what nobody knows
    unused_ends: list[str]  # that were assumed, and met no job
    steps: int
    is_cut: bool  # there would have been more submissions than are played

    @property
    def is_stalled(self) -> bool:
        return self.status in (RunStatus.STALLED, RunStatus.WAITING_FOR_RELEASE)

    @property
    def ran_nothing(self) -> bool:
        """Says whether the run completed without a job although it has tasks (SEMANTICS §9)."""
        completed = self.status is RunStatus.COMPLETED
        return completed and not self.submissions and bool(self.graph.nodes)

    @property
    def makespan_seconds(self) -> float:
        return self.ends_at - self.begins_at

    @property
    def task_count(self) -> int:
        return len({one.key for one in self.submissions})

    @property
    def failure_count(self) -> int:
        return failures(self.submissions)

    def id_of(self, key: Key) -> str:
        return f"{self.graph.cycling.style.text(key[0])}/{key[1]}"

    def name_of(self, key: Key) -> str:
        """Returns a task as people read it."""
        return task_text(self.graph, *key)

    def clock_text(self, at: float) -> str | None:
        """Returns what the virtual clock shows at a time; None where points are numbers."""
        style = self.graph.cycling.style
        if self.graph.cycling.is_integer:
            return None
        digits = style.expanded_year_digits
        clock = PointStyle(
            calendar=style.calendar,
            format=f"+X{CLOCK_FORMAT}" if digits else CLOCK_FORMAT,
            expanded_year_digits=digits,
        )
        return clock.text(Point(round(at)))

    def by_name(self) -> list[NameSummary]:
        """Returns a summary of each name that ran, in the order of the definition."""
        return [
            NameSummary(
                name,
                len(runs),
                failures(runs),
                sum(one.wait_seconds for one in runs) / len(runs),
                sum(one.length_seconds for one in runs) / len(runs),
            )
            for name, runs in self.named(self.submissions)
        ]

    def named(
        self, submissions: Iterable[PlayedSubmission]
    ) -> Iterator[tuple[str, list[PlayedSubmission]]]:
        """Yields the submissions of each name, in the order of the definition."""
        found: dict[str, list[PlayedSubmission]] = {}
        for one in submissions:
            element = element_of(self.graph.mapped, one.key[1])
            name = one.key[1] if element is None else element[0]
            found.setdefault(name, []).append(one)
        yield from ((name, found[name]) for name in self.graph.nodes if name in found)

    def trigger_lines(self) -> Iterator[str]:
        """Yields one line per submission, comparable with other engines (SEMANTICS §13)."""
        for one in self.submissions:
            parents = [self.id_of(key) for key in one.parents]
            flows = ",".join(map(str, sorted(one.flows))) or "none"
            yield f"{self.id_of(one.key)} -triggered off {parents!r} in flow {flows}"


def failures(submissions: Iterable[PlayedSubmission]) -> int:
    return sum(one.ended not in ("", SUCCEEDED) for one in submissions)


_WORDS = {
    WaitedFor.START: "start",
    WaitedFor.PARENT: "parent {blocker}",
    WaitedFor.LIMIT: "limit: its group was full until {blocker} ended",
    WaitedFor.RUNAHEAD: "runahead: {blocker} was among the oldest unfinished tasks",
    WaitedFor.CLOCK: "clock: {clock}",
    WaitedFor.RETRY: "retry delay of {idle}",
    WaitedFor.XTRIGGER: "xtrigger, {idle} after {blocker}",
    WaitedFor.SLOT: "slot: the worker was full until {blocker} ended",
}


class Hop(NamedTuple):
    """Holds a submission on the critical path; before it no job of the path ran for a while.

    That while is `idle_seconds`.
    """

    submission: PlayedSubmission
    idle_seconds: float


def critical_path(rehearsal: Rehearsal) -> list[Hop]:
    """Returns the submissions whose waits decided when the rehearsal ended, oldest first.

    It is empty if no job ended.
    """
    ended = [one for one in rehearsal.submissions if one.end_at is not None]
    last = max(ended, key=lambda one: one.end_at or 0.0, default=None)
    path: list[Hop] = []
    while last is not None:
        assert last.start_at is not None
        before = last.blocker
        since = rehearsal.begins_at if before is None else before.end_at
        # Neither ran in this time; a child may start before its parent ends.
        path.append(Hop(last, 0.0 if since is None else max(0.0, last.start_at - since)))
        last = before
    return path[::-1]


def reason_text(hop: Hop, rehearsal: Rehearsal) -> str:
    """Says why a submission did not start earlier."""
    one = hop.submission
    blocker = "the start" if one.blocker_key is None else rehearsal.name_of(one.blocker_key)
    clock = None if one.start_at is None else rehearsal.clock_text(one.start_at)
    return _WORDS[one.waited_for].format(
        blocker=blocker, clock=clock, idle=span(hop.idle_seconds)
    )


def span(seconds: float) -> str:
    """Returns a duration as text; zero is 0s, not 0ms."""
    return show_duration(seconds) if seconds else "0s"


MARKS_WANTED = 8
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
# Between two marks on an axis, as people divide time.
_STEPS = (
    *(1, 2, 5, 10, 15, 30),
    *(minutes * _MINUTE for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * _HOUR for hours in (1, 2, 3, 6, 12)),
    *(days * _DAY for days in (1, 2, 5, 10, 30, 60, 90, 180, 365, 730, 1825, 3650)),
)


class Lane(NamedTuple):
    """Holds one row of a chart, whose bars do not overlap.

    Only the first row of a name has a title; that of the others is "".
    """

    title: str
    bars: list[PlayedSubmission]


def lanes(rehearsal: Rehearsal, bars_max: int) -> tuple[list[Lane], int]:
    """Returns the rows of a chart, and how many bars were left out of it.

    A name has as many lanes as it has submissions at once.
    """
    started = [one for one in rehearsal.submissions if one.start_at is not None]
    shown = started[:bars_max]
    found = [
        Lane("" if number else name, bars)
        for name, submissions in rehearsal.named(shown)
        for number, bars in enumerate(_apart(submissions))
    ]
    return found, len(started) - len(shown)


def _apart(submissions: Sequence[PlayedSubmission]) -> list[list[PlayedSubmission]]:
    rows: list[list[PlayedSubmission]] = []
    free: list[int] = []  # rows, the topmost first
    busy: list[tuple[float, int]] = []  # until when which row is
    for one in sorted(submissions, key=lambda one: (one.start_at or 0.0, one.key)):
        begin = min(one.ready_at, one.start_at or 0.0)
        while busy and busy[0][0] <= begin:
            heappush(free, heappop(busy)[1])
        if free:
            row = heappop(free)
        else:
            row = len(rows)
            rows.append([])
        rows[row].append(one)
        heappush(busy, (one.end_at or begin, row))
    return rows


def marks(seconds: float, wanted: int = MARKS_WANTED) -> list[int]:
    """Returns the seconds at which an axis has marks: round numbers, about as many as asked."""
    step = next((one for one in _STEPS if seconds / one <= wanted), None)
    if step is None:
        step = max(_STEPS[-1], int(seconds / wanted))
    return list(range(0, int(seconds) + 1, step))
