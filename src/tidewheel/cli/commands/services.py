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
    "At the start, wait this long for the database or the server, then exit with status 3. "
    "A service that has started keeps trying. [default: wait forever]",
    type=DURATION,
)

_trusting = option(
    "--trust-definitions",
    "Run event handlers and xtrigger functions in the scheduler's process if a command read "
    "the definition from a folder and wrote it directly to the store; those of other "
    "definitions become tasks for workers of the queues 'run:*'.",
)


@session_command("worker")
@option(
    "--queue queues TEXT...",
    "A queue to take tasks from; repeatable: queues that are named earlier are served first. "
    "* stands for any text: 'run:*' means the queues of all runs.",
    shown=(QUEUE_DEFAULT,),
)
@option("--slots", "How many tasks to run at once. [default: one per core]", type=int)
@offering_options
@option("--name TEXT", "A name for this worker. [default: host:pid]")
@option(
    "--run-as FILE",
    "Start each job as the user that this map names for its run or queue (see the manual, The "
    "server). Root must start such a worker; the worker then becomes the user that the map "
    "names for the worker itself.",
    type=FILE,
)
@option(
    "--user TEXT",
    "The user as which the worker runs. Root must start the worker: it reads the token first, "
    "then becomes this user permanently, so that no job of the user can read the token.",
)
@option(
    "--token-file FILE",
    "Read the token for the server from this file; - means standard input. "
    "[default: TIDEWHEEL_TOKEN, TIDEWHEEL_TOKEN_FILE, or the systemd credential "
    "tidewheel.token]",
)
@option(
    "--handlers MODULE:OBJECT",
    "The tidewheel.Handlers object with the Python functions that tasks may call.",
)
@option(
    "--job-limit job_limits ...",
    "A limit for each process of a command: cpu=1h, memory=4GiB, files=1024, "
    "processes=100 or file-size=10GiB; repeatable.",
    type=JOB_LIMIT,
)
@option("--tie-jobs", "Jobs are ended when this worker ends, even if it is killed.")
@option(
    "--yield/--drain yields",
    "When the worker is stopped: give its tasks back at once, or finish them.",
    shown=True,
)
@option(
    "--leave leaves",
    "When the worker is stopped: leave jobs running; the next worker on this host adopts them.",
)
@option(
    "--grace grace_seconds",
    "When the worker is stopped: kill jobs that still run after this time. [default: 30s]",
    type=DURATION,
)
@option(
    "--exit-when-idle --once exit_when_idle",
    "Stop when there is nothing left to do. Exit 1 if tasks are left that this worker "
    "cannot take: it lacks the handler, a label or the resources, or their queue is paused. "
    "Exit 3 if the store does not answer whether tasks are left.",
)
@_waiting
@option("--no-monitor", "Do not watch leases in this process (SQLite only).")
def worker_command(session: Session, **options: Any) -> int:  # noqa: ANN401 - click's options
    """Execute tasks: shell commands, and Python functions that you register.

    SIGTERM or Ctrl-C stops the worker; a second signal stops it at once. On a SQLite store
    the worker also watches leases, as `tidewheel monitor` does.
    """
    from tidewheel.cli.roles import run_worker

    return run_worker(session, options)


@session_command("monitor")
@option(
    "--interval interval_seconds",
    "How often to check the leases. [default: 1s]",
    type=DURATION,
)
@option(
    "--retention retention_seconds",
    "Delete tasks and runs this long after their end; 0 keeps them all. [default: 30d]",
    type=DURATION,
)
@option(
    "--export-directory",
    "Write tasks into this folder before they are deleted; runs are not written.",
    type=click.Path(file_okay=False),
)
@_waiting
def monitor_command(session: Session, **options: Any) -> int:  # noqa: ANN401 - click's options
    """Take back lapsed leases, and delete ended tasks and runs after their retention.

    Several monitors may run at the same time. Without options, the variables
    TIDEWHEEL_MONITOR_INTERVAL_SECONDS, TIDEWHEEL_RETENTION_SECONDS and
    TIDEWHEEL_EXPORT_DIRECTORY apply.
    """
    from tidewheel.cli.roles import run_monitor

    return run_monitor(session, options)


@session_command(
    "scheduler",
    "scheduler                              any number may run at the same time",
    "worker --queue 'run:my-workflow/*'     runs the jobs and handlers of this workflow",
)
@option(
    "--interval interval_seconds",
    "How often to look for runs without a scheduler. [default: 1s]",
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

    Several schedulers may run at the same time; each run has only one of them. Jobs need a
    worker that serves the queue of the run. Without options, the variables
    TIDEWHEEL_SCHEDULER_INTERVAL_SECONDS and TIDEWHEEL_SCHEDULER_LEASE_SECONDS apply.
    """
    from tidewheel.cli.roles import run_scheduler

    return run_scheduler(session, options)


# Where a server listens, and how much it takes: the names are those of `ServerSettings`.
_listening_options = options(
    option("--host TEXT", "The address to listen on.", shown="127.0.0.1"),
    option("--port", "The port to listen on; 0 means any free port.", type=int, shown=8450),
    option("--certificate", "The certificate, for TLS; with --key.", type=FILE),
    option("--key", "The private key of the certificate; with --certificate.", type=FILE),
    option(
        "--attempt-key-file",
        "The key that signs jobs' tokens, the same for all servers of a store. "
        "[default: attempt-key in the state directory]",
        type=FILE,
    ),
    option(
        "--behind-proxy proxies ADDRESS...",
        "The address of a proxy that terminates TLS for this server; its X-Forwarded headers "
        "are trusted; repeatable.",
    ),
    option(
        "--access-file",
        "A file that says who may sign in and what they may do: see the manual, Sign in.",
        type=FILE,
    ),
    option(
        "--allow-host hosts NAME...",
        "A host name by which clients reach the server; repeatable.",
    ),
    option(
        "--submit-rate N",
        "Accept N tasks per second for each queue; further ones are answered with 429. "
        "[default: no limit]",
        type=float,
    ),
    option(
        "--quota quotas NAME=N...",
        "A limit for each token: requests, tasks, runs, bytes or links per second, or streams "
        "at the same time; tasks and new runs are limited for each team, too. NAME=off means "
        "no limit; repeatable.",
    ),
    option(
        "--address-connections connections_per_address_max N",
        "How many connections one address may have; proxies may have more.",
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
    """Answer requests over HTTP: tasks, queues, workers, runs, events; see the manual, The
    server.

    By default it listens on this machine only. If there is no token yet, it then makes one for
    an admin and writes it to the file `token` in the state directory. To listen on other
    addresses it needs a valid token in the store, and either a certificate or a proxy. On
    SQLite it watches leases, too.
    """
    from tidewheel.cli.roles import run_server

    return run_server(session, _listening(options), options)


@session_command(
    "up",
    "up                                     on this machine only, port 8450",
    "up --port 0 --json                     use any free port, and print it",
    "submit -- echo hello                   in another terminal",
)
@_listening_options
@option(
    "--queue queues TEXT...",
    "A queue whose tasks are executed here, besides the jobs of runs; repeatable.",
    shown=(QUEUE_DEFAULT,),
)
@option(
    "--slots",
    "How many tasks to run at once. [default: one per core for queues, 100 for runs]",
    type=int,
)
@offering_options
@option(
    "--on-stop",
    "When stopped: leave jobs running for the next start to adopt, drain (finish) them, or "
    "yield their tasks to other workers.",
    type=click.Choice(STOPPING),
    shown="leave",
)
@option(
    "--grace grace_seconds",
    "When stopped with drain or yield: kill jobs still running after this. [default: 30s]",
    type=DURATION,
)
@option("--no-worker", "Start no worker: execute no tasks here.")
@option("--no-scheduler", "Start no scheduler: drive no runs here.")
@option("--no-monitor", "Start no monitor: take back no leases and delete no old records here.")
@_trusting
@_waiting
def up_command(session: Session, **options: Any) -> int:  # noqa: ANN401 - click's options
    """Run a server, a scheduler, a monitor and a worker on this machine, for everything in the
    store: tasks of the queue `default`, and runs that have no other scheduler.

    Prints its address and, on a terminal, a link that opens the web page in a browser and works
    once. Without a terminal it prints no link, so that no log contains one; use `tidewheel
    token link`. It also prints which file has the token for programs, usually `token` in the
    state directory. SIGTERM or Ctrl-C stops it; a second signal stops it at once. Jobs keep
    running, and the next start adopts them, even after a kill -9.

    On a loopback address and without a proxy it trusts definitions from your own folders
    (--trust-definitions), but never definitions that came over REST.
    """
    from tidewheel.cli.roles import run_up

    return run_up(session, _listening(options), options)
