"""``tidewheel worker``: execute tasks until stopped."""

from __future__ import annotations

from typing import Any

import click

from tidewheel.cli.capacity_options import offering_options
from tidewheel.cli.parameters import DURATION, JOB_LIMIT
from tidewheel.cli.session import Session, session_command
from tidewheel.client.fields import QUEUE_DEFAULT


@session_command("worker")
@click.option(
    "--queue",
    "queues",
    multiple=True,
    default=(QUEUE_DEFAULT,),
    show_default=True,
    help="A queue to take tasks from, the first one first; repeatable. * stands for any text: "
    "'run:*' means the queues of all runs.",
)
@click.option(
    "--slots", type=int, help="How many tasks to run at once. [default: one per core]"
)
@offering_options
@click.option("--name", help="A name for this worker. [default: host:pid]")
@click.option(
    "--handlers", metavar="MODULE:OBJECT", help="The Python functions that tasks may name."
)
@click.option(
    "--job-limit",
    "job_limits",
    multiple=True,
    type=JOB_LIMIT,
    help="A limit for each process of a command: cpu=1h, memory=4GiB, files=1024, "
    "processes=100 or file-size=10GiB; repeatable.",
)
@click.option("--tie-jobs", is_flag=True, help="Jobs die with this worker, whatever happens.")
@click.option(
    "--yield/--drain",
    "yields",
    default=True,
    show_default=True,
    help="When stopped: give the tasks back at once, or finish them.",
)
@click.option(
    "--leave",
    "leaves",
    is_flag=True,
    help="When stopped: let jobs run on; the next worker on this host goes on with them.",
)
@click.option(
    "--grace",
    type=DURATION,
    help="When stopped: kill what is left after this time. [default: 30s]",
)
@click.option(
    "--exit-when-idle",
    "--once",
    "exit_when_idle",
    is_flag=True,
    help="Stop when there is nothing left to do. Exit 1 if tasks are left that this worker "
    "cannot take: it lacks the handler, a label or the resources.",
)
@click.option(
    "--wait-for-store",
    type=DURATION,
    help="Give up if the store is down for this long. [default: never]",
)
@click.option("--no-monitor", is_flag=True, help="Run no monitor beside it (SQLite only).")
def command(session: Session, **options: Any) -> int:  # noqa: ANN401 - click's options
    """Execute tasks: shell commands, and Python functions that you register.

    SIGTERM or Ctrl-C stops it, a second one at once. On a SQLite store it also watches
    leases, as `tidewheel monitor` would.
    """
    from tidewheel.cli.roles import run_worker

    return run_worker(session, options)
