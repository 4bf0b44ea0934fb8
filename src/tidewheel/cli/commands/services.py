"""Defines the commands that run until stopped: worker, monitor, scheduler, server, up.

Their options are here; `cli/roles.py` runs them.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from tidewheel.cli.capacity_options import offering_options
from tidewheel.cli.parameters import DURATION, JOB_LIMIT
from tidewheel.cli.session import Session, option, options, session_command
from tidewheel.client.fields import QUEUE_DEFAULT

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
STOPPING = ("leave", "drain", "yield")

_waiting = option(
    "--wait-for-store",
    "Give up if the store is down for this long. [default: never]",
    type=DURATION,
)

_trusting = option(
    "--trust-definitions",
    "Run event handlers and xtrigger functions in the scheduler's process, if their definition "
    "came from a folder of its owner; all others are tasks, for workers of 'run:*'.",
)


@session_command("worker")
@option(
    "--queue queues TEXT...",
    "A queue to take tasks from, the first one first; repeatable. * stands for any text: "
    "'run:*' means the queues of all runs.",
    shown=(QUEUE_DEFAULT,),
)
@option("--slots", "How many tasks to run at once. [default: one per core]", type=int)
@offering_options
@option("--name TEXT", "A name for this worker. [default: host:pid]")
@option(
    "--run-as FILE",
    "Start each job as the user that this map names for its run or queue (docs/server.md). "
    "Root starts such a worker, which becomes a user itself.",
    type=FILE,
)
@option(
    "--user TEXT",
    "Root starts it and reads the token; then it is this user, for good. So no job of the "
    "user can wait for its beginning and see the token.",
)
@option(
    "--token-file FILE",
    "Read the token for the server there, - for standard input. "
    "[default: TIDEWHEEL_TOKEN, TIDEWHEEL_TOKEN_FILE, or the systemd credential "
    "tidewheel.token]",
)
@option("--handlers MODULE:OBJECT", "The Python functions that tasks may name.")
@option(
    "--job-limit job_limits ...",
    "A limit for each process of a command: cpu=1h, memory=4GiB, files=1024, "
    "processes=100 or file-size=10GiB; repeatable.",
    type=JOB_LIMIT,
)
@option("--tie-jobs", "Jobs end when this worker ends, however it ends.")
@option(
    "--yield/--drain yields",
    "When stopped: give the tasks back at once, or finish them.",
    shown=True,
)
@option(
    "--leave leaves",
    "When stopped: leave jobs running; the next worker on this host adopts them.",
)
@option(
    "--grace grace_seconds",
    "When stopped: kill what is left after this time. [default: 30s]",
    type=DURATION,
)
@option(
    "--exit-when-idle --once exit_when_idle",
    "Stop when there is nothing left to do. Exit 1 if tasks are left that this worker "
    "cannot take: it lacks the handler, a label or the resources.",
)
@_waiting
@option("--no-monitor", "Run no monitor beside it (SQLite only).")
def worker_command(session: Session, **options: Any) -> int:  # noqa: ANN401 - click's options
    """Execute tasks: shell commands, and Python functions that you register.

    SIGTERM or Ctrl-C stops it, a second one at once. On a SQLite store it also watches
    leases, as `tidewheel monitor` would.
    """
    from tidewheel.cli.roles import run_worker

    return run_worker(session, options)


@session_command("monitor")
@option(
    "--interval interval_seconds",
    "How often to look at the leases. [default: 1s]",
    type=DURATION,
)
@option(
    "--retention retention_seconds",
    "Delete tasks this long after their end; 0 keeps them all.",
    type=DURATION,
)
@option(
    "--export-directory",
    "Write tasks there before they are deleted.",
    type=click.Path(file_okay=False),
)
@_waiting
def monitor_command(session: Session, **options: Any) -> int:  # noqa: ANN401 - click's options
    """Take back leases that ran out, and delete tasks after their retention.

    Any number may run; without options, TIDEWHEEL_MONITOR_INTERVAL_SECONDS,
    TIDEWHEEL_RETENTION_SECONDS and TIDEWHEEL_EXPORT_DIRECTORY count.
    """
    from tidewheel.cli.roles import run_monitor

    return run_monitor(session, options)


@session_command(
    "scheduler",
    "scheduler                              beside any number of others",
    "worker --queue 'run:my-workflow/*'     runs the jobs and handlers of its runs",
)
@option(
    "--interval interval_seconds",
    "How often to look for such runs. [default: 1s]",
    type=DURATION,
)
@option(
    "--lease lease_seconds",
    "How long a scheduler may be silent before another takes over. [default: 10s]",
    type=DURATION,
)
@_trusting
@_waiting
def scheduler_command(session: Session, **options: Any) -> int:  # noqa: ANN401 - click's options
    """Drive runs that wait for a scheduler, or whose scheduler died, until they end.

    Any number may run: each run has one scheduler at a time. Jobs need a worker that serves the
    queue of the run. Without options, TIDEWHEEL_SCHEDULER_INTERVAL_SECONDS and
    TIDEWHEEL_SCHEDULER_LEASE_SECONDS count.
    """
    from tidewheel.cli.roles import run_scheduler

    return run_scheduler(session, options)


# Where a server listens, and how much it takes: the names are those of `ServerSettings`.
_listening_options = options(
    option("--host TEXT", "The address to listen on.", shown="127.0.0.1"),
    option("--port", "0 takes any free port.", type=int, shown=8450),
    option("--certificate", "The certificate, for TLS; with --key.", type=FILE),
    option("--key", "Its private key; with --certificate.", type=FILE),
    option(
        "--attempt-key-file",
        "The key that signs jobs' tokens, the same for all servers of a store. "
        "[default: attempt-key in the state directory]",
        type=FILE,
    ),
    option(
        "--behind-proxy proxies ADDRESS...",
        "A proxy that speaks TLS to the world; its X-Forwarded headers are trusted.",
    ),
    option(
        "--access-file",
        "A file that says who may sign in and what they may do: see the manual, Sign in.",
        type=FILE,
    ),
    option(
        "--allow-host hosts NAME...",
        "A host name under which the server is reached; repeatable.",
    ),
    option(
        "--submit-rate N",
        "Accept N tasks per second for each queue; more get 429. [default: no limit]",
        type=float,
    ),
    option(
        "--quota quotas NAME=N...",
        "What one token and one team may take per second: requests, tasks, runs, bytes, links; "
        "streams: at once; off: no limit; repeatable.",
    ),
    option(
        "--address-connections connections_per_address_max N",
        "How many connections one address may have, proxies excepted.",
        type=click.IntRange(min=1),
        shown=1_000,
    ),
)


def _listening(options: dict[str, Any]) -> dict[str, Any]:
    """Removes the options of a server's settings from those that were given, and returns
    them."""
    from tidewheel.config import ServerSettings

    return {
        one.name: options.pop(one.name) for one in fields(ServerSettings) if one.name in options
    }


SERVER_EPILOG = """\b
Examples:
  tidewheel server                                 on this machine only, port 8450
  curl -H "Authorization: Bearer $(cat ~/.local/state/tidewheel/token)" \\
       http://127.0.0.1:8450/api/v1/tasks
  tidewheel server --host 0.0.0.0 --certificate cert.pem --key key.pem --allow-host tide.example
"""


@session_command("server", epilog=SERVER_EPILOG)
@_listening_options
@option("--no-monitor", "Do not watch leases in this process.")
@_waiting
def server_command(session: Session, **options: Any) -> int:  # noqa: ANN401 - click's options
    """Answer requests over HTTP: tasks, queues, workers, runs, events; see docs/server.md.

    It listens on this machine only. To listen elsewhere it needs a token in the store, and
    either a certificate or a proxy. If there is no token at all, it makes one for an admin and
    writes it to the file `token` in the state directory. On SQLite it watches leases, too.
    """
    from tidewheel.cli.roles import run_server

    return run_server(session, _listening(options), options)


@session_command(
    "up",
    "up                                     on this machine only, port 8450",
    "up --port 0 --json                     any free port; says which",
    "submit -- echo hello                   in another terminal",
)
@_listening_options
@option(
    "--queue queues TEXT...",
    "A queue whose tasks are executed here, besides the jobs of runs; repeatable.",
    shown=(QUEUE_DEFAULT,),
)
@option(
    "--slots", "How many tasks at once. [default: the cores for queues, 100 for runs]", type=int
)
@offering_options
@option(
    "--on-stop",
    "Leave jobs running for the next start to adopt; or finish them; or give them back.",
    type=click.Choice(STOPPING),
    shown="leave",
)
@option("--grace grace_seconds", "Then kill what is left. [default: 30s]", type=DURATION)
@option("--no-worker", "Execute nothing here.")
@option("--no-scheduler", "Drive no runs here.")
@option("--no-monitor", "Do not watch leases and retention here.")
@_trusting
@_waiting
def up_command(session: Session, **options: Any) -> int:  # noqa: ANN401 - click's options
    """Run a server, a scheduler, a monitor and a worker on this machine, for everything in the
    store: tasks of the queue `default`, and runs that have no other scheduler.

    Prints where it answers and, on a terminal, a link that opens the web page in a browser and
    works once; elsewhere `tidewheel token link` prints one, so that no log keeps a link. The
    token for programs is in the file `token` of the state directory. SIGTERM or Ctrl-C stops
    it, a second one at once. Jobs keep running meanwhile, and the next start adopts them, even
    after a kill -9.

    On a loopback address and without a proxy it trusts definitions (--trust-definitions): defin
    itions that you give from your folders; never definitions that came over REST.
    """
    from tidewheel.cli.roles import run_up

    return run_up(session, _listening(options), options)
