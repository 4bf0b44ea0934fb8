"""``tidewheel server``: answer requests over HTTP until stopped."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict, Unpack

import click

from tidewheel.cli.parameters import DURATION
from tidewheel.cli.session import Session, session_command

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
EPILOG = """\b
Examples:
  tidewheel server                                 on this machine only, port 8450
  curl -H "Authorization: Bearer $(cat ~/.local/state/tidewheel/token)" \\
       http://127.0.0.1:8450/api/v1/tasks
  tidewheel server --host 0.0.0.0 --certificate cert.pem --key key.pem --allow-host tide.example
"""


class Options(TypedDict):
    """Where it listens, and who may say who called."""

    host: str
    port: int
    certificate: Path | None
    key: Path | None
    behind_proxy: tuple[str, ...]
    allow_host: tuple[str, ...]
    no_monitor: bool
    wait_for_store: float | None


@session_command("server", epilog=EPILOG)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", type=int, default=8450, show_default=True, help="0 takes any.")
@click.option("--certificate", type=FILE, help="TLS: the certificate; with --key.")
@click.option("--key", type=FILE, help="TLS: the key; with --certificate.")
@click.option(
    "--behind-proxy",
    metavar="ADDRESS",
    multiple=True,
    help="A proxy that speaks TLS to the world; its X-Forwarded headers are believed.",
)
@click.option(
    "--allow-host", metavar="NAME", multiple=True, help="A name under which it is called."
)
@click.option("--no-monitor", is_flag=True, help="Do not watch leases beside it.")
@click.option(
    "--wait-for-store",
    type=DURATION,
    help="Give up when the database is down for so long. [default: never]",
)
def command(session: Session, **options: Unpack[Options]) -> int:
    """Answer requests over HTTP: tasks, queues, workers, tokens; see docs/server.md.

    It listens on this machine only. Elsewhere it needs a token in the store and either a
    certificate or a proxy. Where there is no token at all, an admin's is made and written to
    the file `token` in the state directory. On an embedded store it watches leases, too.
    """
    from tidewheel.cli.roles import run_server
    from tidewheel.config import ServerSettings, home_directory

    settings = ServerSettings(
        host=options["host"],
        port=options["port"],
        hosts=options["allow_host"],
        certificate=options["certificate"],
        key=options["key"],
        proxies=options["behind_proxy"],
        home=home_directory(),
    )
    monitored = not options["no_monitor"]
    return run_server(session, settings, options["wait_for_store"], monitored=monitored)
