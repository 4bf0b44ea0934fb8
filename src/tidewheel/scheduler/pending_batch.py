"""The batch of a run that is being built: what the steps since the last one led to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.operator.definition import RunOptions
from tidewheel.core.operator.requests import CommandAnswer, StoredBroadcast, XtriggerResult
from tidewheel.core.operator.run_log import RunLogLine
from tidewheel.core.queue.task import NewTask, TaskId
from tidewheel.core.sched.effects import Notice
from tidewheel.core.sched.pool import Past
from tidewheel.core.sched.step_context import Touched
from tidewheel.core.sched.task_state import Key, TaskHistory


class News(NamedTuple):
    """Something that happened to a task, in the words of its event handlers."""

    event: str
    key: Key
    submit: int
    text: str = ""


@dataclass(slots=True)
class PendingBatch:
    """Everything in a batch but the changes of the pool, which are found when it is written."""

    touched: Touched = field(default_factory=Touched)
    consumed: list[int] = field(default_factory=list)
    submissions: dict[TaskId, NewTask] = field(default_factory=dict)
    cancellations: dict[TaskId, None] = field(default_factory=dict)
    answers: list[CommandAnswer] = field(default_factory=list)
    xtriggers: list[XtriggerResult] = field(default_factory=list)
    broadcasts: list[StoredBroadcast] = field(default_factory=list)
    definition: str | None = None
    options: RunOptions | None = None
    goes_on: bool = False  # it had been let go
    steps: int = 0
    seconds: float = 0.0  # from reading what had happened to having written this
    # Told to people once it is committed.
    news: list[News] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    log: list[RunLogLine] = field(default_factory=list)
    triggers: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        happened = self.steps or self.consumed or self.answers or self.broadcasts
        return not (happened or self.submissions)


class HistoryCache:
    """The past of a run, with what the pending batch has evicted and no store knows yet.

    It is looked up here first, then in the store, and there once while a batch is built.
    """

    def __init__(self, stored: Past) -> None:
        self._stored = stored
        self._recent: dict[Key, TaskHistory | None] = {}

    def add(self, memories: dict[Key, TaskHistory]) -> None:
        """Keeps what the core has just evicted."""
        self._recent |= memories

    def written(self) -> None:
        """Drops everything: the store knows all of it now."""
        self._recent.clear()

    def recall(self, point: Point, name: str) -> TaskHistory | None:
        """Returns what is remembered of a task; None if it never was."""
        key = (point, name)
        if key not in self._recent:
            self._recent[key] = self._stored.recall(point, name)
        memory = self._recent[key]
        return None if memory is None else memory.copy()
