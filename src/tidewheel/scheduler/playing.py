"""Jobs that are played instead of run: simulation and skip mode (SEMANTICS §12, run modes).

A played job is a timer of the run, kept in the store like any other, so a restart goes on with
it. Nothing enters the queue.
"""

from __future__ import annotations

from collections.abc import Callable

from tidewheel.core.graph.graph import Graph
from tidewheel.core.graph.node import RunMode
from tidewheel.core.graph.outputs import FAILED, STARTED
from tidewheel.core.operator.requests import TimerKey
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.effects import KillJob, Submit
from tidewheel.core.sched.events import JobEnd, JobEnded, OutputMade
from tidewheel.core.sched.task_state import Key
from tidewheel.scheduler.run_engine import Drive, timer_key
from tidewheel.services.rehearsal.assumptions import Assumptions, Jobs

PLAYED = "played"  # the timer at whose time a played job ends
_MODES = (RunMode.SIMULATION, RunMode.SKIP)


class PlayedJobs:
    """Which jobs are played, and how they go. `mode_of` knows about broadcasts."""

    def __init__(self, graph: Graph, mode_of: Callable[[Key], RunMode]) -> None:
        self._jobs = Jobs(graph, Assumptions(), graph.cycling.style.text)
        self._mode_of = mode_of

    def reload(self, graph: Graph) -> None:
        self._jobs = Jobs(graph, Assumptions(), graph.cycling.style.text)

    def plays(self, key: Key) -> bool:
        return self._mode_of(key) in _MODES

    def play(self, drive: Drive, one: Submit, now: Instant) -> None:
        """Begin one; it ends when its time is over, or at once."""
        key = one.task
        part = self._jobs.part(key[1])
        seconds = 0.0 if self._mode_of(key) is RunMode.SKIP else part.seconds
        fails = self._jobs.fails(key[0], key[1], one.try_number)
        if seconds > 0.0 or part.is_heard_at_start or fails:
            drive.todo.append(OutputMade(key, one.submit, STARTED, now))
        drive.agenda.set(timer_key(key, PLAYED), Instant(now + seconds))

    def is_playing(self, drive: Drive, key: Key) -> bool:
        return timer_key(key, PLAYED) in drive.agenda

    def end(self, drive: Drive, timer: TimerKey, now: Instant) -> None:
        """Its time is over."""
        assert timer.point is not None
        key = (timer.point, timer.name)
        task = drive.pool.tasks.get(key)
        if task is None or not task.is_active:
            return
        submit = task.submit
        if timer.name not in drive.graph.nodes:  # a reload removed it: nothing follows
            drive.todo.append(JobEnded(key, submit, JobEnd.SUCCEEDED, now))
            return
        if self._jobs.fails(timer.point, timer.name, task.try_number):
            drive.todo.append(JobEnded(key, submit, JobEnd.FAILED, now))
            return
        for output in self._jobs.part(timer.name).outputs:
            if output != FAILED:
                drive.todo.append(OutputMade(key, submit, output, now))
        drive.todo.append(JobEnded(key, submit, JobEnd.SUCCEEDED, now))

    def kill(self, drive: Drive, one: KillJob, now: Instant) -> None:
        drive.agenda.cancel(timer_key(one.task, PLAYED))
        drive.todo.append(JobEnded(one.task, one.submit, JobEnd.KILLED, now))
