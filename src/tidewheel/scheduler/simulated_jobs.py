"""Plays jobs instead of running them: simulation and skip mode (SEMANTICS §12, run modes).

A played job is a timer of the run, kept in the store like any other, so a restart goes on with
it. Nothing enters the queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.definition import RunMode, assumed_sizes
from tidewheel.core.graph.outputs import FAILED, STARTED
from tidewheel.core.operator.requests import TimerKey
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.dependency_index import MappedTasks
from tidewheel.core.sched.elements import has_told
from tidewheel.core.sched.events import JobEnd, JobEnded, KillJob, OutputMade, Submit
from tidewheel.core.sched.task_state import PooledTask
from tidewheel.scheduler.submissions import DefinitionInForce, EffectiveSettings
from tidewheel.scheduler.timers import timer_key
from tidewheel.services.rehearsal.assumptions import AssumedJobs, Assumptions

if TYPE_CHECKING:
    from tidewheel.scheduler.run_engine import RunEngine

_tuple = tuple.__new__
_SUCCEEDED, _SKIP = JobEnd.SUCCEEDED, RunMode.SKIP  # looked up once, not for each task
PLAYED = "played"  # the timer at whose time a played job ends
SIMULATED_MODES = (RunMode.SIMULATION, RunMode.SKIP)


def may_assume(settings: EffectiveSettings, point: Point, tasks: MappedTasks) -> bool:
    """Says whether a list that no job returns may be taken to have some elements: in a run that
    is played as a whole, if all that is made of it is played, or if its size is known. Else
    real jobs would work on elements that nobody has returned."""
    if settings.mode is not RunMode.LIVE or tasks.over.size is not None:
        return True
    modes = (settings.node((point, name)).run_mode for name in tasks.templates)
    return all(mode is not RunMode.LIVE for mode in modes)


class SimulatedJobs:
    """Plays the jobs of one run."""

    def __init__(self, definition: DefinitionInForce) -> None:
        self.reload(definition)

    def reload(self, new: DefinitionInForce) -> None:
        """Replaces the definition by one that was reloaded."""
        graph = new.restored.graph
        self._jobs = AssumedJobs(graph, Assumptions(), graph.cycling.style.text)

    def begin(self, engine: RunEngine, one: Submit, mode: RunMode, now: Instant) -> None:
        """Begins to play a job, which ends when its time is over, or at once."""
        key = one.task
        part = self._jobs.part(key[1])
        seconds = part.seconds
        # A service is played until it is let go, whatever the mode: nobody would use it else.
        if mode is _SKIP and not engine.settings.node(key).until:
            seconds = 0.0
        fails = not part.is_plain and self._jobs.fails(key[0], key[1], one.try_number)
        if seconds > 0.0 or part.is_heard_at_start or fails:
            engine.todo.append(OutputMade(key, one.submit, STARTED, now))
        engine.timers.set(timer_key(key, PLAYED), Instant(now + seconds))

    def end(self, engine: RunEngine, timer: TimerKey, now: Instant) -> None:
        """Ends a played job whose time is over."""
        point, name, _ = timer
        assert point is not None
        key = (point, name)
        task = engine.pool.tasks.get(key)
        if task is None or not task.is_active:
            return
        submit = task.submit
        if name not in engine.graph.nodes:  # a reload removed it: nothing follows
            engine.todo.append(JobEnded(key, submit, JobEnd.SUCCEEDED, now))
            return
        part = self._jobs.part(name)
        if not part.is_plain and self._jobs.fails(point, name, task.try_number):
            engine.todo.append(JobEnded(key, submit, JobEnd.FAILED, now))
            return
        if part.outputs or part.sizes:
            for output in (*part.outputs, *(self._sizes(engine, task) if part.sizes else ())):
                if output != FAILED:
                    engine.todo.append(OutputMade(key, submit, output, now))
        # As a tuple, it costs a third.
        engine.todo.append(_tuple(JobEnded, (key, submit, _SUCCEEDED, now, None, "")))

    @staticmethod
    def _sizes(engine: RunEngine, task: PooledTask) -> tuple[str, ...]:
        """Returns what a played job tells of lists of which nothing was told when it began. Of
        one that real jobs would work on that is nothing: then it has failed."""
        lists = [one for one in task.plan.lists if not has_told(one, task)]
        if not all(may_assume(engine.settings, task.point, one) for one in lists):
            return ()
        return assumed_sizes(one.over for one in lists)

    def kill(self, engine: RunEngine, one: KillJob, now: Instant) -> None:
        """Ends a played job before its time."""
        engine.timers.cancel(timer_key(one.task, PLAYED))
        engine.todo.append(JobEnded(one.task, one.submit, JobEnd.KILLED, now))
