"""Has the commands that serve until they are stopped: worker, monitor, scheduler, server, up.

Their options are here; `cli/roles.py` runs them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from tidewheel.cli.capacity_options import offering_options
from tidewheel.cli.parameters import DURATION, JOB_LIMIT
from tidewheel.cli.session import Session, session_command
from tidewheel.client.fields import QUEUE_DEFAULT

Function = TypeVar("Function", bound=Callable[..., object])
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
STOPPING = ("leave", "drain", "yield")

_waiting = click.option(
    "--wait-for-store",
    type=DURATION,
    help="Give up if the store is down for this long. [default: never]",
)


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
    "grace_seconds",
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
@_waiting
@click.option("--no-monitor", is_flag=True, help="Run no monitor beside it (SQLite only).")
def worker_command(session: Session, **options: Any) -> int:  # noqa: ANN401 - click's options
    """Execute tasks: shell commands, and Python functions that you register.

    SIGTERM or Ctrl-C stops it, a second one at once. On a SQLite store it also watches
    leases, as `tidewheel monitor` would.
    """
    from tidewheel.cli.roles import run_worker

    return run_worker(session, options)


@session_command("monitor")
@click.option(
    "--interval",
    "interval_seconds",
    type=DURATION,
    help="How often to look at the leases. [default: 1s]",
)
@click.option(
    "--retention",
    "retention_seconds",
    type=DURATION,
    help="Delete tasks this long after their end; 0 keeps them all.",
)
@click.option(
    "--export-directory",
    type=click.Path(file_okay=False),
    help="Write tasks there before they are deleted.",
)
@_waiting
def monitor_command(session: Session, wait_for_store: float | None, **options: object) -> int:
    """Take back leases that ran out, and delete tasks after their retention.

    Any number may run; without options, TIDEWHEEL_MONITOR_INTERVAL_SECONDS,
    TIDEWHEEL_RETENTION_SECONDS and TIDEWHEEL_EXPORT_DIRECTORY count.
    """
    from tidewheel.cli.roles import run_monitor

    return run_monitor(session, wait_for_store, options)


SCHEDULER_EPILOG = """\b
Examples:
  tidewheel scheduler                              beside any number of others
  tidewheel worker --queue run:my-workflow/run1    runs the jobs of a run that was taken over
"""


@session_command("scheduler", epilog=SCHEDULER_EPILOG)
@click.option(
    "--interval",
    "interval_seconds",
    type=DURATION,
    help="How often to look for such runs. [default: 1s]",
)
@click.option(
    "--lease",
    "lease_seconds",
    type=DURATION,
    help="How long a scheduler may be silent before another takes over. [default: 10s]",
)
@_waiting
def scheduler_command(session: Session, wait_for_store: float | None, **options: object) -> int:
    """Drive runs that wait for a scheduler, or whose scheduler died, until they end.

    Any number may run: each run has one scheduler at a time. Jobs need a worker that serves the
    queue of the run. Without options, TIDEWHEEL_SCHEDULER_INTERVAL_SECONDS and
    TIDEWHEEL_SCHEDULER_LEASE_SECONDS count.
    """
    from tidewheel.cli.roles import run_scheduler

    return run_scheduler(session, wait_for_store, options)


# Where a server listens, and how much it takes: the names are those of `ServerSettings`.
_LISTENING = (
    click.option(
        "--host", default="127.0.0.1", show_default=True, help="The address to listen on."
    ),
    click.option(
        "--port", type=int, default=8450, show_default=True, help="0 takes any free port."
    ),
    click.option("--certificate", type=FILE, help="The certificate, for TLS; with --key."),
    click.option("--key", type=FILE, help="Its private key; with --certificate."),
    click.option(
        "--behind-proxy",
        "proxies",
        metavar="ADDRESS",
        multiple=True,
        help="A proxy that speaks TLS to the world; its X-Forwarded headers are trusted.",
    ),
    click.option(
        "--allow-host",
        "hosts",
        metavar="NAME",
        multiple=True,
        help="A host name under which it is reached; repeatable.",
    ),
    click.option(
        "--submit-rate",
        type=float,
        metavar="N",
        help="Accept N tasks per second for each queue; more get 429. [default: no limit]",
    ),
    click.option(
        "--address-connections",
        "connections_per_address_max",
        type=click.IntRange(min=1),
        metavar="N",
        default=1_000,
        show_default=True,
        help="How many connections one address may have that is no proxy.",
    ),
)
LISTENING_NAMES = (
    "host", "port", "certificate", "key", "proxies", "hosts", "submit_rate",
    "connections_per_address_max",
)  # fmt: skip


def _listening_options(function: Function) -> Function:
    for option in reversed(_LISTENING):
        function = option(function)
    return function


SERVER_EPILOG = """\b
Examples:
  tidewheel server                                 on this machine only, port 8450
  curl -H "Authorization: Bearer $(cat ~/.local/state/tidewheel/token)" \\
       http://127.0.0.1:8450/api/v1/tasks
  tidewheel server --host 0.0.0.0 --certificate cert.pem --key key.pem --allow-host tide.example
"""


@session_command("server", epilog=SERVER_EPILOG)
@_listening_options
@click.option("--no-monitor", is_flag=True, help="Do not watch leases beside it.")
@_waiting
def server_command(session: Session, **options: Any) -> int:  # noqa: ANN401 - click's options
    """Answer requests over HTTP: tasks, queues, workers, runs, events; see docs/server.md.

    It listens on this machine only. To listen elsewhere it needs a token in the store, and
    either a certificate or a proxy. If there is no token at all, it makes one for an admin and
    writes it to the file `token` in the state directory. On SQLite it watches leases, too.
    """
    from tidewheel.cli.roles import run_server

    return run_server(session, {name: options.pop(name) for name in LISTENING_NAMES}, options)


UP_EPILOG = """\b
Examples:
  tidewheel up                                     on this machine only, port 8450
  tidewheel up --port 0 --json                     any free port; says which
  tidewheel submit -- echo hello                   in another terminal
"""


@session_command("up", epilog=UP_EPILOG)
@_listening_options
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
@click.option(
    "--grace",
    "grace_seconds",
    type=DURATION,
    help="Then kill what is left. [default: 30s]",
)
@click.option("--no-worker", is_flag=True, help="Execute nothing here.")
@click.option("--no-scheduler", is_flag=True, help="Drive no runs here.")
@click.option("--no-monitor", is_flag=True, help="Do not watch leases and retention here.")
@_waiting
def up_command(session: Session, **options: Any) -> int:  # noqa: ANN401 - click's options
    """Run a server, a scheduler, a monitor and a worker on this machine, for everything in the
    store: tasks of the queue `default`, and runs that nobody else drives.

    Prints where it answers, and a link that opens the web page in a browser and works once. The
    token for programs is in the file `token` of the state directory. SIGTERM or Ctrl-C stops
    it, a second one at once. Jobs run on meanwhile, and the next start goes on with them, even
    after a kill -9.
    """
    from tidewheel.cli.roles import run_up

    return run_up(session, {name: options.pop(name) for name in LISTENING_NAMES}, options)
