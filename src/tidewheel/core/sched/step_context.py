"""The context of one step: what it touched, what it wants done, what is still to be looked at.

Every rule is handed the context. Rules change the pool in place and say what they touched; the
frozen changes are made from that afterwards, once for all steps of a batch
(`persistence.changes`).
"""

from __future__ import annotations

from collections.abc import Iterable

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.dependency_index import IndexedNode
from tidewheel.core.sched.effects import Effect, Notice
from tidewheel.core.sched.pool import AbsoluteKey, TaskPool
from tidewheel.core.sched.task_state import Flows, Key, PooledTask, TaskHistory


class Touched:
    """Holds what a step, or several, may have changed. Names, never values."""

    __slots__ = ("absolute", "chains", "flows", "forgotten", "memory", "run", "tasks")

    def __init__(self) -> None:
        self.tasks: dict[Key, None] = {}
        self.memory: dict[Key, None] = {}
        self.chains: dict[tuple[str, int], None] = {}
        self.absolute: dict[AbsoluteKey, None] = {}
        self.flows: dict[int, None] = {}
        self.forgotten: dict[Key, TaskHistory] = {}
        self.run = False

    def add(self, other: Touched) -> None:
        """Adds what another step touched: a batch has touched what its steps have."""
        self.tasks |= other.tasks
        for key in other.forgotten:
            # Remembered anew it would be empty, and take the place of what is kept of it.
            self.memory.pop(key, None)
        self.memory |= other.memory
        self.chains |= other.chains
        self.absolute |= other.absolute
        self.flows |= other.flows
        self.forgotten |= other.forgotten
        self.run = self.run or other.run


class StepContext:
    """The step that is being made, with its agenda: what is still to be done before it ends.

    The agenda has a list for each kind of work. `step._follow_up` takes the kinds in one order,
    and a whole list at a time: suicides, evaluations and searches for blocked tasks,
    chains; then suicides again, flows that arrived and tasks to be spawned. So what is decided
    does not depend on which rule was first to ask for it. Tasks that became ready, and limit
    groups that were freed, wait until nothing else is left.
    """

    __slots__ = (
        "base_is_firm",
        "chains_to_advance",
        "chains_to_start",
        "effects",
        "flows_arrived",
        "freed",
        "now",
        "plan",
        "pool",
        "ready",
        "suicides",
        "to_evaluate",
        "to_seek_blocked",
        "to_spawn",
        "touched",
    )

    def __init__(self, pool: TaskPool, now: Instant) -> None:
        self.pool = pool
        self.plan = pool.plan
        self.now = now
        # Whether nothing in this step can lead to a task before the runahead base.
        self.base_is_firm = False
        self.touched = Touched()
        self.effects: list[Effect] = []
        # Tasks into which a suicide arrow leads from an output that was made.
        self.suicides: list[tuple[IndexedNode, Point, Flows]] = []
        # Tasks of which an atom became unreachable, or reachable again: (task, flow).
        self.to_evaluate: list[tuple[Key, int]] = []
        # Nodes of which the next task is sought that a lost atom at a fixed point blocks:
        # (node, flow, the last point that was evaluated, how many more may be).
        self.to_seek_blocked: list[tuple[IndexedNode, int, Point, int]] = []
        # Heads of chains that left, and chains to be begun: (node, flow, first point).
        self.chains_to_advance: list[PooledTask] = []
        self.chains_to_start: list[tuple[IndexedNode, int, Point]] = []
        # Tasks that ran with --wait, and the flows that have now arrived there.
        self.flows_arrived: list[tuple[IndexedNode, Point, Flows]] = []
        # Tasks that are spawned whatever they lack.
        self.to_spawn: list[tuple[IndexedNode, Point, Flows]] = []
        # Tasks that became ready, in order, and limit groups in which there may be room again.
        self.ready: list[PooledTask] = []
        self.freed: dict[int, None] = {}

    def begin(self, now: Instant) -> None:
        """Begins another step: what was to be looked at has been; only the results are new."""
        self.plan = self.pool.plan
        self.now = now
        self.touched = Touched()
        self.effects = []

    def evaluate(self, key: Key, flows: Iterable[int]) -> None:
        """Have a task evaluated again in each of these flows."""
        self.to_evaluate.extend([(key, flow) for flow in flows])

    def notice(self, event: str, task: Key | None, text: str) -> None:
        self.effects.append(Notice(event, task, text))

    def name_of(self, key: Key) -> str:
        return f"{self.plan.text(key[0])}/{key[1]}"
