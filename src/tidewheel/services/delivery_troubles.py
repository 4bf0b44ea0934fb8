"""Words what went wrong with event handlers and mail: an alert that reached nobody.

The run's log, the page of `tidewheel run` and the logs of services say it with these words.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidewheel.services.service import ServiceReport


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
