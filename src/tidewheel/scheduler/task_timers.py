"""Times after which somebody hears of a task: queued or running for too long, or late."""

from __future__ import annotations

from collections.abc import Iterable

from tidewheel.core.cycling.calendar import Calendar
from tidewheel.core.graph.graph import Graph
from tidewheel.core.graph.node import NodeDef
from tidewheel.core.graph.outputs import STARTED
from tidewheel.core.operator.requests import TimerKey
from tidewheel.core.operator.run_log import RunLogLine, glance, shown
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.effects import Notice, Submit
from tidewheel.core.sched.events import Event, JobEnded, OutputMade
from tidewheel.core.sched.pool import TaskPool
from tidewheel.core.sched.step import Outcome
from tidewheel.core.sched.task_state import JobPhase, Key, PooledTask
from tidewheel.quantities import show_iso_duration
from tidewheel.scheduler.broadcasts import Nodes
from tidewheel.scheduler.run_engine import Drive, timer_key

SUBMISSION_TIMEOUT = "submission timeout"
EXECUTION_TIMEOUT = "execution timeout"
LATE = "late"
TASK_TIMERS = (SUBMISSION_TIMEOUT, EXECUTION_TIMEOUT, LATE)


class TaskTimers:
    """They change nothing about a task; only its handlers and the log are told."""

    def __init__(self, graph: Graph, nodes: Nodes, pool: TaskPool) -> None:
        self._nodes = nodes
        self.reload(graph)
        # Tasks that are told late once: their timer is set, or has fired. What a scheduler
        # before us left in the pool had its timer with the batch that put it there.
        self._watched = {key for key in pool.tasks if self._late_at(key) is not None}

    def reload(self, graph: Graph) -> None:
        """Another definition; timers that are set stay."""
        self._points_are_times = graph.cycling.style.calendar is Calendar.GREGORIAN
        self._concerned = {
            name
            for name, node in graph.nodes.items()
            if any(_seconds(node.definition, timer) is not None for timer in TASK_TIMERS)
        }

    def after_step(self, drive: Drive, event: Event, outcome: Outcome) -> None:
        if not self._concerned and not self._nodes.has_broadcasts:
            return
        self._watch(drive, outcome.touched.tasks)
        for effect in outcome.effects:
            if isinstance(effect, Submit):
                self._set(drive, effect.task, SUBMISSION_TIMEOUT, event.at)
        # A report of an earlier submission changes nothing about the timers of this one.
        if isinstance(event, OutputMade | JobEnded) and event.task in outcome.touched.tasks:
            drive.agenda.cancel(timer_key(event.task, SUBMISSION_TIMEOUT))
            if isinstance(event, JobEnded):
                drive.agenda.cancel(timer_key(event.task, EXECUTION_TIMEOUT))
            elif event.output == STARTED:
                self._set(drive, event.task, EXECUTION_TIMEOUT, event.at)

    def _set(self, drive: Drive, key: Key, timer: str, at: Instant) -> None:
        seconds = _seconds(self._nodes.node(key), timer)
        if seconds is not None:
            drive.agenda.set(timer_key(key, timer), Instant(at + seconds))

    def _watch(self, drive: Drive, touched: Iterable[Key]) -> None:
        """Whoever enters the pool may be late one day; whoever left it is not any more."""
        for key in touched:
            if key not in drive.pool.tasks:
                if key in self._watched:
                    self._watched.remove(key)
                    drive.agenda.cancel(timer_key(key, LATE))
            elif key not in self._watched and (at := self._late_at(key)) is not None:
                self._watched.add(key)
                drive.agenda.set(timer_key(key, LATE), at)

    def _late_at(self, key: Key) -> Instant | None:
        if not self._points_are_times:
            return None
        seconds = _seconds(self._nodes.node(key), LATE)
        return None if seconds is None else Instant(key[0] + seconds)

    def fire(self, drive: Drive, timer: TimerKey) -> bool:
        """Whether it was one of these."""
        if timer.timer not in TASK_TIMERS:
            return False
        assert timer.point is not None
        key = (timer.point, timer.name)
        task = drive.pool.tasks.get(key)
        seconds = _seconds(self._nodes.node(key), timer.timer)
        if task is not None and seconds is not None and _is_told(task, timer.timer):
            text = f"{timer.timer} after {show_iso_duration(seconds)}"
            if timer.timer == LATE:
                text = f"late: unfinished {show_iso_duration(seconds)} after its point"
            name = shown(drive.pool, key, glance(task))
            drive.work.log.append(RunLogLine("WARNING", f"[{name}] {text}"))
            drive.work.notices.append(Notice(timer.timer, key, text))
            drive.work.steps += 1
        return True


def _is_told(task: PooledTask, timer: str) -> bool:
    """An incomplete task has ended: whoever wants to hear of that hears of its failure."""
    return task.stage is not JobPhase.INCOMPLETE if timer == LATE else task.is_active


def _seconds(node: NodeDef, timer: str) -> float | None:
    if timer == SUBMISSION_TIMEOUT:
        return node.events.submission_timeout_seconds
    if timer == LATE:
        return node.events.late_offset_seconds
    return node.events.execution_timeout_seconds
