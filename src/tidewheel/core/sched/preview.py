"""What an intervention would do, without doing it (SEMANTICS §8, `--dry-run`).

The event is applied to a copy of the pool, and every job that follows from it is taken to
succeed, one after the other.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from tidewheel.core.sched.effects import Effect, Notice, Submit
from tidewheel.core.sched.events import Event, JobEnd, JobEnded
from tidewheel.core.sched.explain import Reason, why
from tidewheel.core.sched.pool import Pool
from tidewheel.core.sched.records import everything, rebuild
from tidewheel.core.sched.states import Key, Stage
from tidewheel.core.sched.step import step

SUBMISSIONS_MAX = 1_000  # that are looked ahead


class Preview(NamedTuple):
    """What would run, in order; what would then wait and for what; what would be said."""

    runs: tuple[Submit, ...]
    waits: dict[Key, list[Reason]]
    notices: tuple[Notice, ...]
    cut: bool


def preview(pool: Pool, event: Event) -> Preview:
    """Look ahead from an event."""
    copy = rebuild(pool.plan, everything(pool), pool.past)
    graph = pool.plan.graph
    runs: list[Submit] = []
    notices: list[Notice] = []
    todo: deque[Submit] = deque()

    def take(effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Submit):
                todo.append(effect)
                runs.append(effect)
            elif isinstance(effect, Notice):
                notices.append(effect)

    take(step(graph, copy, event).effects)
    while todo and len(runs) < SUBMISSIONS_MAX:
        one = todo.popleft()
        end = JobEnded(one.task, one.submit, JobEnd.SUCCEEDED, event.at)
        take(step(graph, copy, end).effects)
    waits = {
        key: why(copy, key)
        for key, task in copy.tasks.items()
        if task.stage is Stage.WAITING and key not in pool.tasks
    }
    return Preview(tuple(runs), waits, tuple(notices), cut=bool(todo))
