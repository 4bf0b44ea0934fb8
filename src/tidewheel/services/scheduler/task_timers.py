"""Times after which somebody wants to hear of a task: queued or running for too long."""

from __future__ import annotations

from tidewheel.core.graph.graph import Graph
from tidewheel.core.graph.node import NodeDef
from tidewheel.core.graph.outputs import STARTED
from tidewheel.core.runs.requests import TimerKey
from tidewheel.core.sched.effects import Notice, Submit
from tidewheel.core.sched.events import Event, JobEnded, OutputMade
from tidewheel.core.sched.states import Key
from tidewheel.core.sched.step import Outcome
from tidewheel.core.tasks.task import Instant
from tidewheel.quantities import show_duration
from tidewheel.services.scheduler.driving import Drive, timer_key

SUBMISSION_TIMEOUT = "submission timeout"
EXECUTION_TIMEOUT = "execution timeout"
_TIMERS = (SUBMISSION_TIMEOUT, EXECUTION_TIMEOUT)


class TaskTimers:
    """They change nothing about a task; only its handlers are told."""

    def __init__(self, graph: Graph) -> None:
        self._nodes = graph.nodes
        self._concerned = {
            name
            for name, node in graph.nodes.items()
            if node.definition.events.submission_timeout_seconds is not None
            or node.definition.events.execution_timeout_seconds is not None
        }

    def after_step(self, drive: Drive, event: Event, outcome: Outcome) -> None:
        if not self._concerned:
            return
        for effect in outcome.effects:
            if isinstance(effect, Submit) and effect.task[1] in self._concerned:
                self._set(drive, effect.task, SUBMISSION_TIMEOUT, event.at)
        if isinstance(event, OutputMade | JobEnded) and event.task[1] in self._concerned:
            drive.agenda.cancel(timer_key(event.task, SUBMISSION_TIMEOUT))
            if isinstance(event, JobEnded):
                drive.agenda.cancel(timer_key(event.task, EXECUTION_TIMEOUT))
            elif event.output == STARTED:
                self._set(drive, event.task, EXECUTION_TIMEOUT, event.at)

    def _set(self, drive: Drive, key: Key, timer: str, at: Instant) -> None:
        seconds = _seconds(self._nodes[key[1]].definition, timer)
        if seconds is not None:
            drive.agenda.set(timer_key(key, timer), Instant(at + seconds))

    def fire(self, drive: Drive, key: TimerKey) -> bool:
        """Whether it was one of these."""
        if key.timer not in _TIMERS:
            return False
        assert key.point is not None
        seconds = _seconds(self._nodes[key.name].definition, key.timer) or 0.0
        text = f"{key.timer} after {show_duration(seconds)}"
        drive.work.notices.append(Notice(key.timer, (key.point, key.name), text))
        drive.work.steps += 1
        return True


def _seconds(node: NodeDef, timer: str) -> float | None:
    if timer == SUBMISSION_TIMEOUT:
        return node.events.submission_timeout_seconds
    return node.events.execution_timeout_seconds
