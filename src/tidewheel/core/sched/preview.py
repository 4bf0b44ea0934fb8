"""A preview says what an intervention would do, without doing it (SEMANTICS §8, `--dry-run`).

The events are applied to a copy of the pool by `step` itself. Then every job that follows is
taken to succeed, one after the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from tidewheel.core.graph.graph import Graph
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.effects import Effect, Notice, Submit
from tidewheel.core.sched.events import Event, JobEnd, JobEnded, RunReloaded
from tidewheel.core.sched.explain import Reason, why
from tidewheel.core.sched.persistence import everything, rebuild
from tidewheel.core.sched.pool import TaskPool
from tidewheel.core.sched.step import step
from tidewheel.core.sched.task_state import JobPhase, Key

SUBMISSIONS_MAX = 1_000  # that are looked ahead


class Tried(NamedTuple):
    """A copy of the pool after some events, what they touched, and what they want done."""

    graph: Graph
    pool: TaskPool
    touched: tuple[Key, ...]
    effects: tuple[Effect, ...]


class InterventionPreview(NamedTuple):
    """Holds what would run, in order; what would then wait and for what; what would be said."""

    runs: tuple[Submit, ...]
    waits: dict[Key, list[Reason]]
    notices: tuple[Notice, ...]
    cut: bool


def tried(pool: TaskPool, events: Iterable[Event]) -> Tried:
    """Returns what is so at once, before any job has done anything."""
    copy = rebuild(pool.plan, everything(pool), pool.past)
    graph = pool.plan.graph
    touched: dict[Key, None] = {}
    effects: list[Effect] = []
    for event in events:
        outcome = step(graph, copy, event)
        touched |= dict.fromkeys((*outcome.touched.tasks, *outcome.touched.memory))
        effects += outcome.effects
        graph = event.graph if isinstance(event, RunReloaded) else graph
    return Tried(graph, copy, tuple(sorted(touched)), tuple(effects))


def look_ahead(pool: TaskPool, start: Tried, at: Instant) -> InterventionPreview:
    """Returns what follows if every job succeeds; `pool` is as it was before.

    Changes `start.pool`.
    """
    copy = start.pool
    runs: list[Submit] = []
    notices: list[Notice] = []
    todo: deque[Submit] = deque()

    def take(effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Submit):
                todo.append(effect)
                runs.append(effect)
            elif isinstance(effect, Notice):
                notices.append(effect)

    take(start.effects)
    while todo and len(runs) < SUBMISSIONS_MAX:
        one = todo.popleft()
        end = JobEnded(one.task, one.submit, JobEnd.SUCCEEDED, at)
        take(step(start.graph, copy, end).effects)
    waits = {
        key: why(copy, key)
        for key, task in copy.tasks.items()
        if task.stage is JobPhase.WAITING and key not in pool.tasks
    }
    return InterventionPreview(tuple(runs), waits, tuple(notices), cut=bool(todo))


def preview(pool: TaskPool, event: Event) -> InterventionPreview:
    """Look ahead from one event."""
    return look_ahead(pool, tried(pool, (event,)), event.at)
