"""The context of one step: what it touched, what it wants done, what is still to be looked at.

Every rule is handed the context. Rules change the pool in place and say what they touched; the
frozen changes are made from that afterwards, once for all steps of a batch
(`persistence.changes`).
"""

from __future__ import annotations

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.dependency_index import NodePlan
from tidewheel.core.sched.effects import Effect, Notice
from tidewheel.core.sched.pool import AbsoluteKey, Pool
from tidewheel.core.sched.task_state import Flows, Key, Memory, Task


class Touched:
    """What a step, or several, may have changed. Names, never values."""

    __slots__ = ("absolute", "chains", "flows", "forgotten", "memory", "run", "tasks")

    def __init__(self) -> None:
        self.tasks: dict[Key, None] = {}
        self.memory: dict[Key, None] = {}
        self.chains: dict[tuple[str, int], None] = {}
        self.absolute: dict[AbsoluteKey, None] = {}
        self.flows: dict[int, None] = {}
        self.forgotten: dict[Key, Memory] = {}
        self.run = False

    def add(self, other: Touched) -> None:
        """What a whole batch touched is what its steps touched."""
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


class Draft:
    """The step that is being made."""

    __slots__ = (
        "base_is_firm",
        "effects",
        "freed",
        "now",
        "plan",
        "pool",
        "ready",
        "to_come",
        "to_consider",
        "to_flow_on",
        "to_judge",
        "to_move",
        "to_seek",
        "to_start",
        "touched",
    )

    def __init__(self, pool: Pool, now: Instant) -> None:
        self.pool = pool
        self.plan = pool.plan
        self.now = now
        # Whether nothing in this step can lead to a task before the runahead base.
        self.base_is_firm = False
        self.touched = Touched()
        self.effects: list[Effect] = []
        # Tasks that became ready, in order.
        self.ready: list[Task] = []
        # Tasks of which an atom died: (task, flow).
        self.to_judge: list[tuple[Key, int]] = []
        # Nodes of which the next one is sought that a lost atom at a fixed point blocks: (node,
        # flow, the last point that was judged, how many more may be).
        self.to_seek: list[tuple[NodePlan, int, Point, int]] = []
        # Tasks into which a suicide arrow leads from an output that was made.
        self.to_consider: list[tuple[NodePlan, Point, Flows]] = []
        # Tasks that ran with --wait, and the flows that have now arrived there.
        self.to_flow_on: list[tuple[NodePlan, Point, Flows]] = []
        # Tasks that are spawned whatever they lack.
        self.to_come: list[tuple[NodePlan, Point, Flows]] = []
        # Limit groups in which there may be room again.
        self.freed: dict[int, None] = {}
        # Heads of chains that left, and chains to be begun: (node, flow, first point).
        self.to_move: list[Task] = []
        self.to_start: list[tuple[NodePlan, int, Point]] = []

    def begin(self, now: Instant) -> None:
        """Another step: what was to be looked at has been, so only the results are new."""
        self.plan = self.pool.plan
        self.now = now
        self.touched = Touched()
        self.effects = []

    def notice(self, event: str, task: Key | None, text: str) -> None:
        self.effects.append(Notice(event, task, text))

    def name_of(self, key: Key) -> str:
        return f"{self.plan.text(key[0])}/{key[1]}"
