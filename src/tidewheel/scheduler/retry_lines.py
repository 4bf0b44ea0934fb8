"""The lines of the run log about retries, in the shape that existing jobs look for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from tidewheel.core.operator.run_log import INFO, WARNING, RunLogLine, glance, shown
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.effects import SetTimer
from tidewheel.core.sched.events import Event, JobEnded, TimerFired
from tidewheel.core.sched.spawn import RETRY
from tidewheel.core.sched.step import Outcome
from tidewheel.quantities import show_iso_duration
from tidewheel.scheduler.run_engine import Drive


def retry_lines(drive: Drive, event: Event, outcome: Outcome) -> Iterator[RunLogLine]:
    """When a job failed and will be tried again, and when that time has come."""
    if isinstance(event, JobEnded):
        if event.task not in drive.pool.tasks:
            return  # a suicide removed it as soon as it waited
        for effect in outcome.effects:
            if isinstance(effect, SetTimer) and effect.name == RETRY:
                delay = show_iso_duration(round(effect.at - event.at, 3))
                pool, key = drive.pool, event.task
                name = shown(pool, key, glance(pool.tasks[key]))
                text = f"[{name}] - retrying in {delay} (after {_moment(effect.at)})"
                yield RunLogLine(WARNING, text)
    elif isinstance(event, TimerFired) and event.name == RETRY and event.task is not None:
        call = f"wall_clock(trigger_time={int(event.at)})"
        name = drive.text(event.task)
        yield RunLogLine(INFO, f"xtrigger succeeded: _tidewheel_retry_{name} = {call}")


def _moment(at: Instant) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
