"""Says which event handlers and mails reached nobody.

The run's log, the page of `tidewheel run` and the logs of services say it with the same words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidewheel.core.operator.run_log import RunLogLine
from tidewheel.core.queue.task import Instant
from tidewheel.services.service import OnReport, ServiceReport

if TYPE_CHECKING:
    from tidewheel.core.operator.views import RunView
    from tidewheel.ports.clock import Clock
    from tidewheel.scheduler.run_files import RunFiles


def delivery_trouble(report: ServiceReport) -> str:
    """Returns what a report says of an alert that reached nobody; "" for other reports."""
    facts = report.facts
    match report.event:
        case "handler.failed":
            return _handler_failed(facts)
        case "handler.dropped":
            return "event handlers were ended before their end; the next scheduler calls them"
        case "mail.failed":
            server = facts.get("server")
            advice = f" (mail server {server}; TIDEWHEEL_SMTP names another)" if server else ""
            return f"no mail to {facts['to']} was sent: {facts['error']}{advice}"
        case "mail.dropped":
            of = f"{facts['handled']} of {facts['id']}"
            return f"no mail was sent about {of}: too many wait; the next scheduler sends it"
        case _:
            return ""


def _handler_failed(facts: Mapping[str, object]) -> str:
    handled = facts.get("handled")
    what = f"event handler for {handled} of {facts['id']}" if handled else f"{facts['id']}"
    written = str(facts.get("output", "")).strip().splitlines()
    last = f"; its last line: {written[-1]}" if written else ""
    return f"{what} failed: {facts['error']}{last}"


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
