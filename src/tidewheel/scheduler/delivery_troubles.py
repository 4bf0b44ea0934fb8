"""Writes into a run's log which alerts reached nobody; event_handlers has no room for it."""

from __future__ import annotations

from tidewheel.core.operator.run_log import RunLogLine
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.task import Instant
from tidewheel.ports.clock import Clock
from tidewheel.scheduler.run_files import RunFiles
from tidewheel.services.delivery_troubles import delivery_trouble
from tidewheel.services.service import OnReport, ServiceReport


class DeliveryTroubles:
    """Passes on what handlers and mail of a run report, and writes troubles into its log."""

    def __init__(
        self, run: RunView, files: RunFiles, clock: Clock, on_report: OnReport
    ) -> None:
        self._run, self._files = run, files
        self._clock, self._on_report = clock, on_report
        self.heed(run.updated_at)

    def heed(self, now: Instant) -> None:
        """Takes the time of the store, from which those of the lines are counted."""
        self._now, self._heard_at = now, self._clock.monotonic()

    def tell(self, report: ServiceReport) -> None:
        """Passes a report on, with the name of the run."""
        if trouble := delivery_trouble(report):
            at = Instant(self._now + self._clock.monotonic() - self._heard_at)
            self._files.write_log([RunLogLine("ERROR", trouble)], at)
        facts = {"run": self._run.name, **report.facts}
        self._on_report(ServiceReport(service=report.service, event=report.event, facts=facts))
