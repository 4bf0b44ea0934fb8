"""``tidewheel scheduler``: stand by, and take runs that wait for a scheduler."""

from __future__ import annotations

from dataclasses import replace

import click

from tidewheel.cli.parameters import DURATION
from tidewheel.cli.session import Session, session_command

EPILOG = """\b
Examples:
  tidewheel scheduler                              beside any number of others
  tidewheel worker --queue run:my-workflow/run1    runs the jobs of a run that was taken over
"""


@session_command("scheduler", epilog=EPILOG)
@click.option(
    "--interval", type=DURATION, help="How often to look for such runs. [default: 1s]"
)
@click.option(
    "--lease",
    type=DURATION,
    help="How long a scheduler may be silent before another takes over. [default: 10s]",
)
@click.option(
    "--wait-for-store",
    type=DURATION,
    help="Give up if the store is down for this long. [default: never]",
)
def command(
    session: Session,
    interval: float | None,
    lease: float | None,
    wait_for_store: float | None,
) -> int:
    """Drive runs that wait for a scheduler, or whose scheduler died, until they end.

    Any number may run: each run has one scheduler at a time. Jobs need a worker that serves the
    queue of the run. Without options, TIDEWHEEL_SCHEDULER_INTERVAL_SECONDS and
    TIDEWHEEL_SCHEDULER_LEASE_SECONDS count.
    """
    from tidewheel.cli.roles import run_scheduler
    from tidewheel.config import scheduler_settings

    settings = scheduler_settings()
    if interval is not None:
        settings = replace(settings, interval_seconds=interval)
    if lease is not None:
        settings = replace(settings, lease_seconds=lease)
    return run_scheduler(session, settings, wait_for_store)
