"""Times that concern a run as a whole: how long it may stall, last, or do nothing."""

from __future__ import annotations

from tidewheel.core.operator.end_reasons import aborted_for
from tidewheel.core.operator.requests import TimerKey
from tidewheel.core.operator.run_log import WARNING, RunLogLine
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.effects import Notice
from tidewheel.core.sched.events import RunStopped, StopMode, TimerFired
from tidewheel.core.sched.pool import RunStatus
from tidewheel.core.sched.stall import STALL
from tidewheel.formats.flow_cylc.settings import WorkflowEvents
from tidewheel.quantities import show_iso_duration
from tidewheel.scheduler.run_engine import Drive, timer_key

STOP_AT_TIME = "stop"
WORKFLOW_TIMEOUT = "workflow timeout"
INACTIVITY_TIMEOUT = "inactivity timeout"
STALL_TIMEOUT = "stall timeout"


class RunTimers:
    """Sets and hears them. `stall_seconds` was given for this run; else the definition's."""

    def __init__(self, settings: WorkflowEvents, stall_seconds: float | None) -> None:
        self._settings = settings
        self.stall_seconds = (
            settings.stall_timeout_seconds if stall_seconds is None else stall_seconds
        )
        self._is_told = False  # that it has been stalled for too long

    def begin(self, drive: Drive, now: Instant) -> None:
        """The run is started, or carried on; a time to stop that has passed says nothing."""
        stop_at = drive.agenda.at(timer_key(None, STOP_AT_TIME))
        if stop_at is not None and stop_at <= now:
            drive.agenda.cancel(timer_key(None, STOP_AT_TIME))
        self._set(drive, WORKFLOW_TIMEOUT, self._settings.workflow_timeout_seconds, now)
        self._restart_inactivity(drive, now)

    def heed(self, drive: Drive, now: Instant) -> None:
        """After the steps of a batch: a stall starts its timer once, whatever else ends it."""
        if drive.work.touched.tasks:
            self._restart_inactivity(drive, now)
        stalled = drive.pool.run.status == RunStatus.STALLED
        key = timer_key(None, STALL)
        if stalled and not self._is_told and key not in drive.agenda:
            self._set(drive, STALL, self.stall_seconds, now)
            if self.stall_seconds:  # in the words that existing jobs look for
                waits = show_iso_duration(self.stall_seconds)
                drive.work.log.append(RunLogLine(WARNING, f"{waits} stall timer starts NOW"))
        elif not stalled:
            drive.agenda.cancel(key)
            self._is_told = False

    def fire(self, drive: Drive, key: TimerKey, now: Instant) -> None:
        """The time of one of them has come."""
        drive.work.steps += 1  # also where somebody is only told: that waits for a batch
        if key.timer == STALL:
            self._give_up_stalled(drive, now)
        elif key.timer == STOP_AT_TIME:
            drive.step(RunStopped(StopMode.CLEAN, now))
        elif key.timer == WORKFLOW_TIMEOUT:
            self._abort_after(drive, key.timer, aborts=self._settings.abort_on_workflow_timeout)
        elif key.timer == INACTIVITY_TIMEOUT:
            aborts = self._settings.abort_on_inactivity_timeout
            self._abort_after(drive, key.timer, aborts=aborts)

    def _give_up_stalled(self, drive: Drive, now: Instant) -> None:
        if not self._settings.abort_on_stall_timeout:
            self._is_told = True
            drive.work.notices.append(Notice(STALL_TIMEOUT, None, "stalled for too long"))
            return
        drive.step(TimerFired(None, STALL, now))
        drive.gave_up = RunStatus.STALLED

    def _abort_after(self, drive: Drive, timer: str, *, aborts: bool) -> None:
        drive.work.notices.append(Notice(timer, None, f"the {timer} of the workflow is over"))
        if aborts:
            drive.abort(aborted_for(f"the {timer} is over"))

    def _restart_inactivity(self, drive: Drive, now: Instant) -> None:
        """Something happened."""
        self._set(drive, INACTIVITY_TIMEOUT, self._settings.inactivity_timeout_seconds, now)

    def _set(self, drive: Drive, timer: str, seconds: float | None, now: Instant) -> None:
        if seconds is not None:
            drive.agenda.set(timer_key(None, timer), Instant(now + seconds))
