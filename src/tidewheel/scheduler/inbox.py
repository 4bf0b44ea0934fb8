"""Applies what has happened to a run to its engine, in order; alone, the loop of passes aside.

The order is: commands, reports, what somebody outside has posted or found, timers that are due.
Commands come first: the operator who gave one saw the run without what was reported since.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tidewheel.core.operator.requests import (
    CommandGiven,
    Happening,
    Inbox,
    JobOver,
    JobSaid,
    JobStarted,
)
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.events import RunStopped, StopMode, TimerFired, XtriggerSatisfied
from tidewheel.ports.blocks import BlockStore
from tidewheel.ports.store import Store
from tidewheel.scheduler.command_handler import answer_command
from tidewheel.scheduler.deferred_stages import RENDERING
from tidewheel.scheduler.job_events import job_over, job_said, job_started
from tidewheel.scheduler.simulated_jobs import PLAYED

if TYPE_CHECKING:
    from tidewheel.scheduler.run_engine import RunEngine


async def apply_inbox(engine: RunEngine, inbox: Inbox, store: Store) -> bool:
    """Applies all of it, beginning the run if need be; False: some timers wait for a batch."""
    begins = not engine.begun
    if begins:
        engine.begin(inbox.now)
    await _apply_events(engine, inbox.happenings, store)
    if begins:
        engine.drop_passing_notices()
    await _apply_objects(engine, store)
    _apply_xtriggers(engine, inbox.now)
    return _apply_timers(engine, inbox.now)


async def _apply_events(
    engine: RunEngine, happenings: Iterable[Happening], store: Store
) -> None:
    """Applies what the store has kept for this run, which goes with the batch of this pass."""
    for one in sorted(happenings, key=_is_report):
        engine.batch.consumed.append(one.seq)
        match one:
            case JobStarted():
                job_started(engine, one)
            case JobSaid():
                job_said(engine, one)
            case JobOver():
                job_over(engine, one)
            case CommandGiven():
                engine.batch.answers.append(await answer_command(engine, one, store))
        engine.drain()


def _is_report(happening: Happening) -> bool:
    return not isinstance(happening, CommandGiven)


async def _apply_objects(engine: RunEngine, store: BlockStore) -> None:
    """Buffer objects that stages wait for; posting one wakes this run."""
    names = engine.awaited_objects()
    for one in await store.objects_there(names) if names else ():
        engine.xtriggers.hear(one.name, one.name)


def _apply_xtriggers(engine: RunEngine, now: Instant) -> None:
    """Applies the xtriggers that were found to be satisfied."""
    for one in engine.xtriggers.take_satisfied():
        # First: a task that is submitted by this step finds the results.
        engine.broadcast(engine.xtriggers.broadcasts(one))
        engine.step(XtriggerSatisfied(one.label, one.keys, now))
        engine.drain()
    engine.batch.xtriggers += engine.xtriggers.take_rows()


def _apply_timers(engine: RunEngine, now: Instant) -> bool:
    """Fires the timers that are due; False: the batch is full, and more wait for the next."""
    for key in engine.timers.due(now):
        if key.point is None:
            engine.run_timers.fire(engine, key, now)
        elif key.timer == PLAYED:
            engine.simulated.end(engine, key, now)
        elif key.timer == RENDERING:
            engine.deferred.take_up(engine, key, now)
        elif not engine.task_timers.fire(engine, key):
            engine.step(TimerFired((key.point, key.name), key.timer, now))
        engine.drain()
        if not engine.has_room:
            return False
    return True


async def stop_if_nothing_has_begun(engine: RunEngine, now: Instant, store: Store) -> None:
    """Stops at once if no job has begun for which a clean stop would wait.

    What no worker had taken was withdrawn with the batch that told the run to stop (SEMANTICS
    §9). Once it is withdrawn, nobody but this scheduler can offer it again: no lock is needed.
    """
    pool = engine.pool
    if pool.run.stopping != StopMode.CLEAN:
        return
    active = [task for task in pool.tasks.values() if task.is_active]
    withdrawn = await store.withdrawn(engine.run.number)
    if all(engine.task_id(task.key, task.submit) in withdrawn for task in active):
        engine.step(RunStopped(StopMode.NOW, now))
