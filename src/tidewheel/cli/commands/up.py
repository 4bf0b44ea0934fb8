"""``tidewheel up``: everything on this machine, in one process, until stopped."""

from __future__ import annotations

from typing import Unpack

import click

from tidewheel.cli.capacity_options import offering_options
from tidewheel.cli.parameters import DURATION
from tidewheel.cli.server_options import ListeningOptions, listening_options, server_settings
from tidewheel.cli.session import Session, session_command
from tidewheel.client.fields import QUEUE_DEFAULT

EPILOG = """\b
Examples:
  tidewheel up                                     on this machine only, port 8450
  tidewheel up --port 0 --json                     any free port; says which
  tidewheel submit -- echo hello                   in another terminal
"""
STOPPING = ("leave", "drain", "yield")


class UpOptions(ListeningOptions):
    """The options of what works beside the server."""

    queues: tuple[str, ...]
    slots: int | None
    cpu: float | None
    memory: int | None
    gpu: int
    nodes: int
    buffer: int
    labels: tuple[str, ...]
    runners: tuple[str, ...]
    allow_compose: tuple[str, ...]
    on_stop: str
    grace: float | None
    no_worker: bool
    no_scheduler: bool
    no_monitor: bool
    wait_for_store: float | None


@session_command("up", epilog=EPILOG)
@listening_options
@click.option(
    "--queue",
    "queues",
    multiple=True,
    default=(QUEUE_DEFAULT,),
    show_default=True,
    help="Whose tasks are executed here, besides those of runs; repeatable.",
)
@click.option(
    "--slots",
    type=int,
    help="How many tasks at once. [default: the cores for queues, 100 for runs]",
)
@offering_options
@click.option(
    "--on-stop",
    type=click.Choice(STOPPING),
    default="leave",
    show_default=True,
    help="Jobs go on and the next start adopts them; or are finished; or given back.",
)
@click.option("--grace", type=DURATION, help="Then kill what is left. [default: 30s]")
@click.option("--no-worker", is_flag=True, help="Execute nothing here.")
@click.option("--no-scheduler", is_flag=True, help="Drive no runs here.")
@click.option("--no-monitor", is_flag=True, help="Do not watch leases and retention here.")
@click.option(
    "--wait-for-store",
    type=DURATION,
    help="Give up if the store is down for this long. [default: never]",
)
def command(session: Session, **options: Unpack[UpOptions]) -> int:
    """Run a server, a scheduler, a monitor and a worker on this machine, for everything in the
    store: tasks of the queue `default`, and runs that nobody else drives.

    Prints where it answers, and a link that opens the web page in a browser and works once. The
    token for programs is in the file `token` of the state directory. SIGTERM or Ctrl-C stops
    it, a second one at once. Jobs run on meanwhile, and the next start goes on with them, even
    after a kill -9.
    """
    from tidewheel.cli.roles import run_up

    return run_up(session, server_settings(options), options)
