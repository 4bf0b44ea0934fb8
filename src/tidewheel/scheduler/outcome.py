"""What a batch in the making holds besides the changes of the pool."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tidewheel.core.operator.definition import RunOptions
from tidewheel.core.operator.requests import CommandAnswer, StoredBroadcast, XtriggerResult
from tidewheel.core.operator.run_log import RunLogLine
from tidewheel.core.queue.task import NewTask, TaskId
from tidewheel.core.sched.effects import Notice
from tidewheel.core.sched.step_context import Touched
from tidewheel.core.sched.task_state import Key


class News(NamedTuple):
    """Something that happened to a task, in the words of its event handlers."""

    event: str
    key: Key
    submit: int
    text: str = ""


@dataclass(slots=True)
class Work:
    """What the steps of one batch led to."""

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
    outbox: list[str] = field(default_factory=list)  # of what somebody is to be told
    # Told to people once it is committed.
    news: list[News] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    log: list[RunLogLine] = field(default_factory=list)
    triggers: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        happened = self.steps or self.consumed or self.answers or self.broadcasts
        return not (happened or self.submissions)
