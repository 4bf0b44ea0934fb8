"""``tidewheel monitor``: watch leases and retention until stopped."""

from __future__ import annotations

import click

from tidewheel.cli.parameters import DURATION
from tidewheel.cli.session import Session, session_command


@session_command("monitor")
@click.option(
    "--interval", type=DURATION, help="How often to look at the leases. [default: 1s]"
)
@click.option(
    "--retention",
    type=DURATION,
    help="Delete tasks this long after their end; 0 keeps them all.",
)
@click.option(
    "--export-directory",
    type=click.Path(file_okay=False),
    help="Write tasks there before they are deleted.",
)
@click.option(
    "--wait-for-store",
    type=DURATION,
    help="Give up if the store is down for this long. [default: never]",
)
def command(
    session: Session,
    interval: float | None,
    retention: float | None,
    export_directory: str | None,
    wait_for_store: float | None,
) -> int:
    """Take back leases that ran out, and delete tasks after their retention.

    Any number may run; without options, TIDEWHEEL_MONITOR_INTERVAL_SECONDS,
    TIDEWHEEL_RETENTION_SECONDS and TIDEWHEEL_EXPORT_DIRECTORY count.
    """
    from tidewheel.cli.roles import monitor_settings_from, run_monitor

    settings = monitor_settings_from(interval, retention, export_directory)
    return run_monitor(session, settings, wait_for_store)
