"""Times after which somebody wants to hear of a task: queued or running for too long."""

from __future__ import annotations

from tidewheel.core.graph.graph import Graph
from tidewheel.core.graph.node import NodeDef
from tidewheel.core.graph.outputs import STARTED
from tidewheel.core.runs.requests import TimerKey
from tidewheel.core.runs.run_log import Line, glance, shown
from tidewheel.core.sched.effects import Notice, Submit
from tidewheel.core.sched.events import Event, JobEnded, OutputMade
from tidewheel.core.sched.states import Key
from tidewheel.core.sched.step import Outcome
from tidewheel.core.tasks.task import Instant
from tidewheel.quantities import show_iso_duration
from tidewheel.services.scheduler.driving import Drive, timer_key
from tidewheel.services.scheduler.nodes import Nodes

SUBMISSION_TIMEOUT = "submission timeout"
EXECUTION_TIMEOUT = "execution timeout"
_TIMERS = (SUBMISSION_TIMEOUT, EXECUTION_TIMEOUT)


class TaskTimers:
    """They change nothing about a task; only its handlers and the log are told."""

    def __init__(self, graph: Graph, nodes: Nodes) -> None:
        self._nodes = nodes
        self._concerned = {
            name
            for name, node in graph.nodes.items()
            if any(_seconds(node.definition, timer) is not None for timer in _TIMERS)
        }

    def after_step(self, drive: Drive, event: Event, outcome: Outcome) -> None:
        if not self._concerned and not self._nodes.has_broadcasts:
            return
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

    def fire(self, drive: Drive, timer: TimerKey) -> bool:
        """Whether it was one of these."""
        if timer.timer not in _TIMERS:
            return False
        assert timer.point is not None
        key = (timer.point, timer.name)
        task = drive.pool.tasks.get(key)
        if task is not None and task.is_active:
            seconds = _seconds(self._nodes.node(key), timer.timer) or 0.0
            text = f"{timer.timer} after {show_iso_duration(seconds)}"
            name = shown(drive.pool, key, glance(task))
            drive.work.log.append(Line("WARNING", f"[{name}] {text}"))
            drive.work.notices.append(Notice(timer.timer, key, text))
            drive.work.steps += 1
        return True


def _seconds(node: NodeDef, timer: str) -> float | None:
    if timer == SUBMISSION_TIMEOUT:
        return node.events.submission_timeout_seconds
    return node.events.execution_timeout_seconds
