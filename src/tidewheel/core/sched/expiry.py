"""Tasks that are no longer wanted because their time has passed (SEMANTICS §4.9)."""

from __future__ import annotations

from tidewheel.core.graph.outputs import EXPIRED
from tidewheel.core.sched.draft import Draft
from tidewheel.core.sched.ending import end
from tidewheel.core.sched.states import Stage, Task


def expire(draft: Draft, task: Task) -> None:
    """Fires while the task waits, for whatever reason, unless it was triggered by hand."""
    if task.stage is not Stage.WAITING or task.manual:
        return
    draft.notice("expired", task.key, f"{draft.name_of(task.key)} expired")
    end(draft, task, EXPIRED)
