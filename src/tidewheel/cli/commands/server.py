"""``tidewheel server``: answer requests over HTTP until stopped."""

from __future__ import annotations

from typing import Unpack

import click

from tidewheel.cli.parameters import DURATION
from tidewheel.cli.server_options import ListeningOptions, listening_options, server_settings
from tidewheel.cli.session import Session, session_command

EPILOG = """\b
Examples:
  tidewheel server                                 on this machine only, port 8450
  curl -H "Authorization: Bearer $(cat ~/.local/state/tidewheel/token)" \\
       http://127.0.0.1:8450/api/v1/tasks
  tidewheel server --host 0.0.0.0 --certificate cert.pem --key key.pem --allow-host tide.example
"""


class ServerOptions(ListeningOptions):
    """The options of a server besides those of listening."""

    no_monitor: bool
    wait_for_store: float | None


@session_command("server", epilog=EPILOG)
@listening_options
@click.option("--no-monitor", is_flag=True, help="Do not watch leases beside it.")
@click.option(
    "--wait-for-store",
    type=DURATION,
    help="Give up if the store is down for this long. [default: never]",
)
def command(session: Session, **options: Unpack[ServerOptions]) -> int:
    """Answer requests over HTTP: tasks, queues, workers, runs, events; see docs/server.md.

    It listens on this machine only. To listen elsewhere it needs a token in the store, and
    either a certificate or a proxy. If there is no token at all, it makes one for an admin and
    writes it to the file `token` in the state directory. On SQLite it watches leases, too.
    """
    from tidewheel.cli.roles import run_server

    settings, monitored = server_settings(options), not options["no_monitor"]
    return run_server(session, settings, options["wait_for_store"], monitored=monitored)
