"""Keeps the timers of a run: a heap that is stored, and what the times in it are for.

`StoredTimers` is the heap. `RunTimers` sets and hears the times that concern a run as a whole:
how long it may stall, last, or do nothing. `TaskTimers` does so for single tasks, which are
queued or running for too long, or late. Timers of the core itself go to the core.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Generic, TypeVar

from tidewheel.core.cycling.calendar import Calendar
from tidewheel.core.graph.definition import NodeDef
from tidewheel.core.graph.graph import Graph
from tidewheel.core.graph.outputs import STARTED
from tidewheel.core.operator.requests import NEVER, RunTimer, TimerKey
from tidewheel.core.operator.run_log import WARNING, RunLogLine, glance, shown
from tidewheel.core.operator.views import aborted_for
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched import events
from tidewheel.core.sched.pool import RunStatus, TaskPool
from tidewheel.core.sched.spawn import STALL
from tidewheel.core.sched.step import Outcome
from tidewheel.core.sched.task_state import JobPhase, Key, PooledTask
from tidewheel.formats.flow_cylc.settings import WorkflowEvents
from tidewheel.quantities import show_iso_duration

if TYPE_CHECKING:
    from tidewheel.scheduler.run_engine import RunEngine
    from tidewheel.scheduler.submissions import DefinitionInForce, EffectiveSettings


_tuple = tuple.__new__  # as a tuple, the key of a timer costs a third


def timer_key(task: Key | None, name: str) -> TimerKey:
    """Returns the key of a timer of a task or, without a task, of the run."""
    return _tuple(TimerKey, (None, "", name) if task is None else (*task, name))


K = TypeVar("K")


class TimerHeap(Generic[K]):
    """Keeps timers, the earliest first; those of the same time in the order of their setting.

    A timer that is set again is moved; the heap is cleaned lazily.
    """

    def __init__(self) -> None:
        self._at: dict[K, Instant] = {}
        self._heap: list[tuple[Instant, int, K]] = []
        self._order = 0

    def set(self, key: K, at: Instant) -> None:
        """Sets a timer, or moves it."""
        self._order += 1
        self._at[key] = at
        heappush(self._heap, (at, self._order, key))

    def cancel(self, key: K) -> bool:
        """Cancels a timer; returns False if there was none."""
        return self._at.pop(key, None) is not None

    def at(self, key: K) -> Instant | None:
        """Returns when a timer is due; None if there is no such timer."""
        return self._at.get(key)

    def __contains__(self, key: K) -> bool:
        return key in self._at

    def next_at(self) -> Instant | None:
        """Returns when the earliest timer is due; None if there is none."""
        heap = self._heap
        while heap and self._at.get(heap[0][2]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else None

    def pop(self) -> K:
        """Takes the earliest timer out, after `next_at` has found it."""
        key = heappop(self._heap)[2]
        del self._at[key]
        return key


class StoredTimers(TimerHeap[TimerKey]):
    """Keeps the timers of one run, and the changes of them that the store does not know yet."""

    def __init__(self, timers: Iterable[RunTimer] = ()) -> None:
        super().__init__()
        # Changes that the store was not told yet; None: the timer is gone.
        self._changed: dict[TimerKey, Instant | None] = {}
        self._stored: set[TimerKey] = set()
        for timer in timers:
            key = TimerKey(timer.point, timer.name, timer.timer)
            self._stored.add(key)
            super().set(key, timer.at)

    def set(self, key: TimerKey, at: Instant) -> None:
        self._order += 1
        self._at[key] = self._changed[key] = at
        heappush(self._heap, (at, self._order, key))

    def cancel(self, key: TimerKey) -> bool:
        is_gone = super().cancel(key)
        if is_gone:
            self._changed[key] = None
        return is_gone

    def due(self, now: Instant) -> Iterator[TimerKey]:
        """Takes out and yields the timers that are due, one by one, also ones set meanwhile."""
        heap, set_for = self._heap, self._at
        while heap and heap[0][0] <= now:
            at, _, key = heappop(heap)
            if set_for.get(key) == at:  # else it was moved or cancelled
                del set_for[key]
                self._changed[key] = None
                yield key

    def take_changes(self) -> tuple[list[RunTimer], list[TimerKey]]:
        """Returns what the store has to be told: timers that were set, and those that are gone.

        The store need not know of a timer that was set and came due since the last time.
        """
        changed, self._changed = self._changed, {}
        there = [RunTimer(*key, at) for key, at in changed.items() if at is not None]
        gone = [key for key, at in changed.items() if at is None and key in self._stored]
        self._stored.difference_update(gone)
        self._stored.update(TimerKey(*one[:3]) for one in there)
        return there, gone


STOP_AT_TIME = "stop"
WORKFLOW_TIMEOUT = "workflow timeout"
INACTIVITY_TIMEOUT = "inactivity timeout"
STALL_TIMEOUT = "stall timeout"  # also the timer of a stall that stops no run
_STALL_KEYS = (timer_key(None, STALL), timer_key(None, STALL_TIMEOUT))


class RunTimers:
    """Sets and fires the timers of a run as a whole.

    `stall_seconds` is the option of the run, or else what its definition says.
    """

    def __init__(self, settings: WorkflowEvents, stall_seconds: float | None) -> None:
        self._settings = settings
        self.stall_seconds = (
            settings.stall_timeout_seconds if stall_seconds is None else stall_seconds
        )
        self._is_told = False  # that it has been stalled for too long

    def begin(self, engine: RunEngine, now: Instant) -> None:
        """Sets the timeouts of a run that starts or goes on; drops a stop time in the past."""
        stop_at = engine.timers.at(timer_key(None, STOP_AT_TIME))
        if stop_at is not None and stop_at <= now:
            engine.timers.cancel(timer_key(None, STOP_AT_TIME))
        self._set(engine, WORKFLOW_TIMEOUT, self._settings.workflow_timeout_seconds, now)
        self._set(engine, INACTIVITY_TIMEOUT, self._settings.inactivity_timeout_seconds, now)

    def after_steps(self, engine: RunEngine, now: Instant) -> None:
        """Sets or cancels the timers of inactivity and stall, after the steps of a batch.

        A stall starts its timer once.
        """
        seconds = self._settings.inactivity_timeout_seconds
        if seconds is not None and engine.batch.touched.tasks:
            self._set(engine, INACTIVITY_TIMEOUT, seconds, now)
        stalled = engine.pool.run.status == RunStatus.STALLED
        set_keys = [key for key in _STALL_KEYS if key in engine.timers]
        if stalled and not self._is_told and not set_keys:
            aborts = self._settings.abort_on_stall_timeout
            self._set(engine, STALL if aborts else STALL_TIMEOUT, self.stall_seconds, now)
            if self.stall_seconds:  # in the words that existing jobs look for
                told = f"{show_iso_duration(self.stall_seconds)} stall timer starts NOW"
                told += "" if aborts else "; it does not stop the run"
                engine.batch.log.append(RunLogLine(WARNING, told))
        elif not stalled:
            self._is_told = False
            for key in set_keys:
                engine.timers.cancel(key)

    def fire(self, engine: RunEngine, key: TimerKey, now: Instant) -> None:
        """Does what a timer of the run is for: stops or gives up the run, or tells people."""
        engine.batch.steps += 1  # also where somebody is only told: that waits for a batch
        aborts = {
            WORKFLOW_TIMEOUT: self._settings.abort_on_workflow_timeout,
            INACTIVITY_TIMEOUT: self._settings.abort_on_inactivity_timeout,
        }
        if key.timer in (STALL, STALL_TIMEOUT):
            self._give_up_stalled(engine, now)
        elif key.timer == STOP_AT_TIME:
            engine.step(events.RunStopped(events.StopMode.CLEAN, now))
        elif key.timer in aborts:
            text = f"the {key.timer} has passed"
            engine.batch.notices.append(events.Notice(key.timer, None, text))
            if aborts[key.timer]:
                engine.abort(aborted_for(f"the {key.timer} has passed"))

    def _give_up_stalled(self, engine: RunEngine, now: Instant) -> None:
        if not self._settings.abort_on_stall_timeout:
            self._is_told = True
            engine.batch.notices.append(
                events.Notice(STALL_TIMEOUT, None, "stalled for too long")
            )
            return
        engine.step(events.TimerFired(None, STALL, now))
        engine.gave_up = RunStatus.STALLED

    def _set(self, engine: RunEngine, timer: str, seconds: float | None, now: Instant) -> None:
        if seconds is not None:
            engine.timers.set(timer_key(None, timer), Instant(now + seconds))


SUBMISSION_TIMEOUT = "submission timeout"
EXECUTION_TIMEOUT = "execution timeout"
LATE = "late"
TASK_TIMERS = (SUBMISSION_TIMEOUT, EXECUTION_TIMEOUT, LATE)


class TaskTimers:
    """Sets and fires those timers of tasks of which only handlers and the log are told."""

    def __init__(self, graph: Graph, settings: EffectiveSettings, pool: TaskPool) -> None:
        self._settings = settings
        self._take(graph)
        # Tasks whose timer for being late is set, or has fired: that is told once. Tasks that
        # an earlier scheduler left in the pool got theirs with the batch that put them there.
        self._watched = {key for key in pool.tasks if self._late_at(key) is not None}

    def reload(self, new: DefinitionInForce) -> None:
        """Takes another definition; timers that are set stay."""
        self._take(new.restored.graph)

    def _take(self, graph: Graph) -> None:
        self._points_are_times = graph.cycling.style.calendar is Calendar.GREGORIAN
        self.concerned = {  # the nodes that have such timers
            name
            for name, node in graph.nodes.items()
            if any(_seconds(node.definition, timer) is not None for timer in TASK_TIMERS)
        }

    def after_step(self, engine: RunEngine, event: events.Event, outcome: Outcome) -> None:
        """Sets and cancels timers; need not be called if no task has any, nor a broadcast."""
        self._watch(engine, outcome.touched.tasks)
        for effect in outcome.effects:
            if isinstance(effect, events.Submit):
                self._set(engine, effect.task, SUBMISSION_TIMEOUT, event.at)
        # A report of an earlier submission changes nothing about the timers of this one.
        if (
            isinstance(event, events.OutputMade | events.JobEnded)
            and event.task in outcome.touched.tasks
        ):
            engine.timers.cancel(timer_key(event.task, SUBMISSION_TIMEOUT))
            if isinstance(event, events.JobEnded):
                engine.timers.cancel(timer_key(event.task, EXECUTION_TIMEOUT))
            elif event.output == STARTED:
                self._set(engine, event.task, EXECUTION_TIMEOUT, event.at)

    def _set(self, engine: RunEngine, key: Key, timer: str, at: Instant) -> None:
        seconds = _seconds(self._settings.node(key), timer)
        if seconds is not None:
            engine.timers.set(timer_key(key, timer), Instant(at + seconds))

    def _watch(self, engine: RunEngine, touched: Iterable[Key]) -> None:
        """Sets timers for new tasks that may be late; cancels those of tasks that are gone."""
        for key in touched:
            if key not in engine.pool.tasks:
                if key in self._watched:
                    self._watched.remove(key)
                    engine.timers.cancel(timer_key(key, LATE))
            elif key not in self._watched and (at := self._late_at(key)) is not None:
                self._watched.add(key)
                engine.timers.set(timer_key(key, LATE), at)

    def _late_at(self, key: Key) -> Instant | None:
        if not self._points_are_times:
            return None
        seconds = _seconds(self._settings.node(key), LATE)
        return None if seconds is None else Instant(key[0] + seconds)

    def fire(self, engine: RunEngine, timer: TimerKey) -> bool:
        """Tells handlers and the log of a due timer; returns False if it is none of these."""
        if timer.timer not in TASK_TIMERS:
            return False
        assert timer.point is not None
        key = (timer.point, timer.name)
        task = engine.pool.tasks.get(key)
        seconds = _seconds(self._settings.node(key), timer.timer)
        if task is not None and timer.timer == LATE:
            engine.timers.set(timer, NEVER)  # home finds late tasks of all runs by it
        if task is not None and seconds is not None and _is_told(task, timer.timer):
            text = f"{timer.timer} after {show_iso_duration(seconds)}"
            if timer.timer == LATE:
                text = f"late: unfinished {show_iso_duration(seconds)} after its point"
            name = shown(engine.pool.plan.name_of(key), glance(task))
            engine.batch.log.append(RunLogLine("WARNING", f"[{name}] {text}"))
            engine.batch.notices.append(events.Notice(timer.timer, key, text))
            engine.batch.steps += 1
        return True


def _is_told(task: PooledTask, timer: str) -> bool:
    """Says whether people are told that a timer of a task is due. An incomplete task has ended,
    and its failure was told instead."""
    return task.stage is not JobPhase.INCOMPLETE if timer == LATE else task.is_active


def _seconds(node: NodeDef, timer: str) -> float | None:
    if timer == SUBMISSION_TIMEOUT:
        return node.events.submission_timeout_seconds
    if timer == LATE:
        return node.events.late_offset_seconds
    return node.events.execution_timeout_seconds
