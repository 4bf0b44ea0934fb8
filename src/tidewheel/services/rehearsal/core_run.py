"""Runs the scheduling core for a rehearsal: events by verbs, effects back, who waited why.

Nothing else in this package knows how the core keeps its tasks. What a submission waited for
last is read off the core's own standings: after each step the standing of every task that the
step touched is noted, so at a submission it is known why the task had still been waiting.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.graph import Graph
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched import events
from tidewheel.core.sched.effects import (
    CancelTimer,
    CheckXtrigger,
    DropXtrigger,
    Effect,
    Notice,
    SetTimer,
    Submit,
)
from tidewheel.core.sched.explain import triggered_off, why
from tidewheel.core.sched.spawn import EXPIRY, RETRY
from tidewheel.core.sched.stall import RunStatus, left_over, root_causes
from tidewheel.core.sched.step import new_pool, step
from tidewheel.core.sched.task_state import (
    FIRST_FLOW,
    Flows,
    Key,
    PooledTask,
    PoolState,
    TaskHistory,
)

__all__ = [
    "EXPIRY",
    "RETRY",
    "CancelTimer",
    "Cause",
    "CheckXtrigger",
    "DropXtrigger",
    "Key",
    "Notice",
    "RunStatus",
    "CoreRun",
    "SetTimer",
    "PoolState",
    "SubmittedTask",
]

CAUSES_MAX = 1_000  # of a stall that are explained


class SubmittedTask(NamedTuple):
    """A task is to be run once: off which parents, and how it stood before this step."""

    key: Key
    submit: int
    try_number: int
    flows: Flows
    parents: tuple[Key, ...]
    stood: PoolState | None  # None: it was not there
    ready_at: Instant  # since when nothing but room in its limit group was missing


class Cause(NamedTuple):
    """A task that keeps a run from completing, and every reason for it."""

    key: Key
    reasons: tuple[str, ...]
    commands: tuple[str, ...]


Wanted = SubmittedTask | Effect


class CoreRun:
    """A run of the core. Every verb says what the core wants done because of it."""

    def __init__(self, graph: Graph, until: Point | None = None) -> None:
        if until is not None:
            graph = replace(graph, cycling=replace(graph.cycling, stop=until))
        self._graph = graph
        self._submits: dict[Key, int] = {}
        self._pool = new_pool(graph, past=self)
        self._stood: dict[Key, PoolState] = {}
        self._ready_at: dict[Key, Instant] = {}
        self.steps = 0

    # What happens.

    def begins(self, at: Instant) -> list[Wanted]:
        return self._step(events.RunStarted(at))

    def job_makes(self, key: Key, submit: int, output: str, at: Instant) -> list[Wanted]:
        return self._step(events.OutputMade(key, submit, output, at))

    def job_succeeds(self, key: Key, submit: int, at: Instant) -> list[Wanted]:
        return self._step(events.JobEnded(key, submit, events.JobEnd.SUCCEEDED, at))

    def job_fails(self, key: Key, submit: int, at: Instant) -> list[Wanted]:
        return self._step(events.JobEnded(key, submit, events.JobEnd.FAILED, at))

    def timer_fires(self, key: Key | None, name: str, at: Instant) -> list[Wanted]:
        return self._step(events.TimerFired(key, name, at))

    def xtrigger_is_met(self, label: str, key: Key, at: Instant) -> list[Wanted]:
        return self._step(events.XtriggerSatisfied(label, (key,), at))

    def _step(self, event: events.Event) -> list[Wanted]:
        outcome = step(self._graph, self._pool, event)
        self.steps += 1
        wanted: list[Wanted] = []
        for effect in outcome.effects:
            if isinstance(effect, Submit):
                wanted.append(self._submitted(effect, event.at))
            else:
                wanted.append(effect)
        self._note_standings(outcome.touched.tasks, event.at)
        return wanted

    def _submitted(self, effect: Submit, at: Instant) -> SubmittedTask:
        key = effect.task
        self._submits[key] = effect.submit
        task = self._pool.tasks.get(key)
        parents = () if task is None else triggered_off(self._pool, task)
        stood = self._stood.get(key)
        ready_at = self._ready_at.pop(key, at)
        return SubmittedTask(
            key, effect.submit, effect.try_number, effect.flows, parents, stood, ready_at
        )

    def _note_standings(self, touched: dict[Key, None], at: Instant) -> None:
        tasks, stood = self._pool.tasks, self._stood
        for key in touched:
            task = tasks.get(key)
            if task is None:
                stood.pop(key, None)
                self._ready_at.pop(key, None)
                continue
            standing = task.standing
            stood[key] = standing
            if standing is PoolState.READY:
                self._ready_at.setdefault(key, at)

    # What can be seen.

    @property
    def status(self) -> RunStatus:
        return RunStatus(self._pool.run.status)

    def causes(self) -> list[Cause]:
        """Says why a run that stalled does not go on, or for which release it waits."""
        if self.status is RunStatus.WAITING_FOR_RELEASE:
            found = [one for one in self._pool.tasks.values() if one.standing is PoolState.HELD]
        elif self.status is RunStatus.STALLED:
            found = root_causes(self._pool) or left_over(self._pool)
        else:
            found = []
        found.sort(key=lambda task: (task.point, task.plan.rank))
        return [self._cause(task) for task in found[:CAUSES_MAX]]

    def _cause(self, task: PooledTask) -> Cause:
        reasons = why(self._pool, task.key)
        return Cause(
            task.key,
            tuple(reason.text for reason in reasons),
            tuple(dict.fromkeys(reason.command for reason in reasons if reason.command)),
        )

    # What the store would know of tasks that the core has forgotten.

    def recall(self, point: Point, name: str) -> TaskHistory | None:
        """Returns that a task ran, which is enough: here nobody intervenes."""
        if (point, name) not in self._submits:
            return None
        memory = TaskHistory()
        memory.spawned, memory.submits = FIRST_FLOW, self._submits[point, name]
        return memory
