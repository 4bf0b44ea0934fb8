"""Defines the state of a task: what is known of it, in the pool and out of it.

Two things are kept apart. A `PooledTask` is an entry of the pool: something that still can or
must happen. A `TaskHistory` is what a run knows of a (point, name) whether it is pooled or not:
the flows in which it was spawned, the outputs it made in them and how it ended there. Children
never look at a parent's entry, only at its history; so a parent may leave the pool at once, and
a child that comes late starts with everything already recorded (SEMANTICS §4.4, 4.5).
"""

from __future__ import annotations

from dataclasses import field, replace
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING

from tidewheel.core.cycling.calendar import Point
from tidewheel.lazy_dataclasses import NamedTuple, dataclass

if TYPE_CHECKING:
    from tidewheel.core.sched.dependency_index import IndexedNode

Key = tuple[Point, str]
Flows = frozenset[int]

NO_FLOW: Flows = frozenset()
FIRST_FLOW: Flows = frozenset({1})  # what is done for each task knows it, and needs no loop


def only(flow: int) -> Flows:
    """Returns the set of one flow. Nearly all tasks are in the first: they share its set."""
    return FIRST_FLOW if flow == 1 else frozenset({flow})


class AtomValue(IntEnum):
    """Is the value of an atom or a condition; of values, AND is the minimum, OR the maximum."""

    NOT_TAKEN = 0
    LOST = 1
    OPEN = 2
    TRUE = 3


class JobPhase(IntEnum):
    """Says where a pooled task is between spawning and leaving."""

    WAITING = 0
    PREPARING = 1  # its submission is in the queue
    SUBMITTED = 2
    RUNNING = 3
    INCOMPLETE = 4  # ended, not complete (SEMANTICS §3)


class PoolState(IntEnum):
    """Says why a task is in the pool. All but WAITING hold the runahead base (§4.3)."""

    WAITING = 0  # only for parents
    UNRELEASED = 1  # nothing is missing but the runahead limit; people read this word
    PENDING = 2  # for an xtrigger or a timer
    HELD = 3
    READY = 4  # waits for room in its limit group, or for the run to be resumed
    ACTIVE = 5
    INCOMPLETE = 6
    BLOCKED = 7  # needs something of another point that is lost (SEMANTICS §5)


class VerdictKind(StrEnum):
    """Says why nothing more will come of a task in a flow."""

    FINISHED = "finished"
    PRUNED = "pruned"
    SUICIDE = "removed by suicide"
    REMOVED = "removed"


class Verdict(NamedTuple):
    """Holds how a task ended in one flow.

    `death` is the value that outputs it did not make have for those that wait for them.
    """

    kind: VerdictKind
    death: AtomValue
    # How it ended, or what it needed that died: (point, name, output).
    ended: str = ""
    cause: tuple[Point, str, str] | None = None
    # Whether it was in the pool when it was pruned: then it comes back there.
    pooled: bool = False


@dataclass(slots=True, eq=False, repr=False)
class TaskHistory:
    """Holds what is remembered of a (point, name), by flow. Mutable, owned by the pool."""

    spawned: Flows = NO_FLOW
    made: dict[str, Flows] = field(default_factory=dict)
    verdicts: dict[int, Verdict] = field(default_factory=dict)
    submits: int = 0
    # Outputs of a task triggered with --wait: they are made when another flow arrives.
    held_back: tuple[str, ...] = ()

    @property
    def is_blank(self) -> bool:
        """Says whether nothing is known of the task yet."""
        return not (
            self.spawned or self.made or self.verdicts or self.submits or self.held_back
        )

    def copy(self) -> TaskHistory:
        """Returns a copy that can be changed without changing the original."""
        return replace(self, made=dict(self.made), verdicts=dict(self.verdicts))


@dataclass(slots=True, eq=False, repr=False)
class PooledTask:
    """Holds a task in the pool. Mutable, owned by the pool; a `PooledTaskRow` leaves the core.

    `true` has a bit for every atom that is true, `missing` counts the arrows that are not;
    `waits` are the names of xtriggers and timers that are still open.
    """

    plan: IndexedNode
    key: Key
    point: Point
    flows: Flows
    memory: TaskHistory  # its own; children read it
    submit: int
    true: int = 0
    stage: JobPhase = JobPhase.WAITING
    standing: PoolState = PoolState.WAITING
    missing: int = 0
    waits: dict[str, None] = field(default_factory=dict)
    outputs: dict[str, None] = field(default_factory=dict)
    by_hand: tuple[str, ...] = ()  # outputs completed by an operator
    # Outputs that members of families made which ran alone while this one waited.
    heard: tuple[tuple[Point, str, str], ...] = ()
    admitted: bool = False
    held: bool = False
    blocked: bool = False
    manual: bool = False  # triggered by hand and not ended since
    satisfied_by_hand: bool = False  # set --pre: is not pruned
    flow_wait: bool = False  # runs now, flows on when another flow arrives
    ended: str = ""
    try_number: int = 1
    submit_try: int = 1
    order: int = 0  # of becoming ready
    let_go: bool = False  # a service that is not needed any more: its job is being ended

    @property
    def has_job(self) -> bool:
        """Says whether a worker, or its batch system, has said that it has the job."""
        return self.stage in (JobPhase.SUBMITTED, JobPhase.RUNNING)

    @property
    def is_active(self) -> bool:
        return JobPhase.WAITING < self.stage < JobPhase.INCOMPLETE
