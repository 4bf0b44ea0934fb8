"""What a rehearsal leaves: every submission, its times, its end, and what it waited for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.cycling.style import PointStyle
from tidewheel.core.graph.graph import Graph
from tidewheel.core.graph.outputs import SUCCEEDED
from tidewheel.core.queue.task import Instant
from tidewheel.services.rehearsal.scheduling import Cause, Key, RunStatus

CLOCK_FORMAT = "CCYY-MM-DDThh:mm:ssZ"


class WaitedFor(StrEnum):
    """What a task waited for last before it started."""

    START = "start"  # nothing: the rehearsal began
    PARENT = "parent"
    LIMIT = "limit"  # room in its limit group
    RUNAHEAD = "runahead"
    CLOCK = "clock"
    RETRY = "retry"
    XTRIGGER = "xtrigger"
    SLOT = "slot"  # of the worker


class Submission:
    """One submission of a task. Mutable until its job has ended."""

    __slots__ = (
        "blocker",
        "blocker_key",
        "end_at",
        "ended",
        "fails",
        "flows",
        "key",
        "parents",
        "ready_at",
        "start_at",
        "submit",
        "submitted_at",
        "try_number",
        "waited_for",
    )

    def __init__(
        self,
        key: Key,
        submit: int,
        try_number: int,
        flows: frozenset[int],
        parents: tuple[Key, ...],
        ready_at: Instant,
    ) -> None:
        self.key = key
        self.submit = submit
        self.try_number = try_number
        self.flows = flows
        self.parents = parents
        self.ready_at = self.submitted_at = ready_at
        self.start_at: Instant | None = None
        self.end_at: Instant | None = None
        self.fails = False  # it will
        self.ended = ""  # succeeded, failed; empty while it runs
        self.waited_for = WaitedFor.START
        # Whose end, start or output let it go; a task that expired has no submission.
        self.blocker: Submission | None = None
        self.blocker_key: Key | None = None

    @property
    def wait_seconds(self) -> float:
        """From being ready to its start."""
        return 0.0 if self.start_at is None else self.start_at - self.ready_at

    @property
    def length_seconds(self) -> float:
        if self.start_at is None or self.end_at is None:
            return 0.0
        return self.end_at - self.start_at


@dataclass(frozen=True, slots=True, kw_only=True)
class NameSummary:
    """All submissions of the tasks with one name."""

    name: str
    runs: int
    failures: int
    mean_wait_seconds: float
    mean_length_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """A whole rehearsal."""

    graph: Graph
    status: RunStatus
    begins_at: Instant
    ends_at: Instant
    submissions: list[Submission]
    causes: list[Cause]
    lost: list[str]  # sentences about tasks that will not run
    expired: list[Key]
    assumed: list[str]  # sentences about what nobody knows
    unused_failures: list[str]
    steps: int
    is_cut: bool  # there would have been more submissions than are played

    @property
    def is_stalled(self) -> bool:
        return self.status in (RunStatus.STALLED, RunStatus.WAITING_FOR_RELEASE)

    @property
    def ran_nothing(self) -> bool:
        """Whether it completed without a single job although there are tasks (SEMANTICS §9)."""
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
        return sum(one.ended not in ("", SUCCEEDED) for one in self.submissions)

    def id_of(self, key: Key) -> str:
        return f"{self.graph.cycling.style.text(key[0])}/{key[1]}"

    def clock_text(self, at: float) -> str | None:
        """What the virtual clock shows; None where points are plain numbers."""
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
        """In the order of the definition; names that never ran are not in it."""
        found: dict[str, list[Submission]] = {}
        for one in self.submissions:
            found.setdefault(one.key[1], []).append(one)
        return [_summary(name, found[name]) for name in self.graph.nodes if name in found]

    def trigger_lines(self) -> Iterator[str]:
        """One line per submission, comparable with other engines (SEMANTICS §13)."""
        for one in self.submissions:
            parents = [self.id_of(key) for key in one.parents]
            flows = ",".join(map(str, sorted(one.flows))) or "none"
            yield f"{self.id_of(one.key)} -triggered off {parents!r} in flow {flows}"


def _summary(name: str, runs: list[Submission]) -> NameSummary:
    return NameSummary(
        name=name,
        runs=len(runs),
        failures=sum(one.ended not in ("", SUCCEEDED) for one in runs),
        mean_wait_seconds=sum(one.wait_seconds for one in runs) / len(runs),
        mean_length_seconds=sum(one.length_seconds for one in runs) / len(runs),
    )
