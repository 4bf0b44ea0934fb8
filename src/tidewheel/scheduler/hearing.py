"""What has happened to a run since the last pass, brought before its core in order.

The order is: commands, reports, what somebody outside has posted or found, timers that are due.
Commands first: who gave one saw the run without what was reported since.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidewheel.core.operator.requests import (
    CommandAnswer,
    CommandGiven,
    Happening,
    JobOver,
    JobSaid,
    JobStarted,
)
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.events import TimerFired, XtriggerSatisfied
from tidewheel.errors import Refused
from tidewheel.ports.blocks import BlockStore
from tidewheel.scheduler.driving import RENDERING
from tidewheel.scheduler.playing import PLAYED
from tidewheel.scheduler.stage import Stage


async def hear_happenings(stage: Stage, happenings: Iterable[Happening]) -> None:
    """What the store has kept for this run; it is deleted with the batch of this pass."""
    for one in sorted(happenings, key=_is_report):
        await _hear(stage, one)
        stage.drive.drain()


def _is_report(happening: Happening) -> bool:
    return not isinstance(happening, CommandGiven)


async def _hear(stage: Stage, happening: Happening) -> None:
    drive = stage.drive
    drive.work.consumed.append(happening.seq)
    match happening:
        case JobStarted():
            stage.reports.started(drive, happening)
        case JobSaid():
            stage.reports.said(drive, happening)
        case JobOver():
            stage.reports.over(drive, happening)
        case CommandGiven():
            drive.work.answers.append(await _obey(stage, happening))


async def _obey(stage: Stage, given: CommandGiven) -> CommandAnswer:
    try:
        return await stage.commands.obey(stage, given)
    except Refused as refused:
        return CommandAnswer(given.number, refused=str(refused))


async def hear_objects(stage: Stage, store: BlockStore) -> None:
    """Buffer objects that stages wait for; whoever posts one wakes this run."""
    names = stage.awaited_objects()
    for one in await store.objects_there(names) if names else ():
        stage.xtriggers.hear(one.name, one.name)


def hear_xtriggers(stage: Stage, now: Instant) -> None:
    """Those that were found to be satisfied."""
    drive = stage.drive
    for one in stage.xtriggers.take_satisfied():
        # First: a task that is submitted by this step finds the results.
        stage.broadcast(stage.xtriggers.broadcasts(one))
        drive.step(XtriggerSatisfied(one.label, one.keys, now))
        drive.drain()
    drive.work.xtriggers += stage.xtriggers.take_rows()


def hear_timers(stage: Stage, now: Instant) -> bool:
    """Those that are due; False: the batch is full, and more of them wait for the next."""
    drive = stage.drive
    for key in drive.agenda.due(now):
        if key.point is None:
            stage.timers.fire(drive, key, now)
        elif key.timer == PLAYED:
            stage.players.end(drive, key, now)
        elif key.timer == RENDERING:
            stage.late_stages.take_up(drive, key, now)
        elif not stage.task_timers.fire(drive, key):
            drive.step(TimerFired((key.point, key.name), key.timer, now))
        drive.drain()
        if not drive.has_room:
            return False
    return True
