"""Does ``tidewheel tui``: shows a run in the terminal, live, and lets people act on it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from tidewheel.cli.session import Session, session_command

if TYPE_CHECKING:
    from tidewheel.client import AsyncClient

EPILOG = """\b
Examples:
  tidewheel tui forecast
  tidewheel tui --server https://wheel.example.org
Press ? for the keys. NO_COLOR=1 leaves out colours.
"""


@session_command("tui", epilog=EPILOG)
@click.argument("words", nargs=-1, metavar="[RUN]")
def command(session: Session, words: tuple[str, ...]) -> int:
    """Watch a run in the terminal and act on it; without RUN, choose one.

    The tree of points, families, tasks and submissions, live; why a task waits, its
    prerequisites and outputs; logs as they are written. Every action first shows what it
    would do, and asks.
    """
    if len(words) > 1:
        raise click.UsageError(f"one run at a time: {words[0]} or {words[1]}?")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("this needs a terminal; elsewhere: tidewheel tree, show, log -f")
    from tidewheel.cli.tui.app import App
    from tidewheel.cli.tui.terminal import Terminal

    async def attend(client: AsyncClient) -> None:
        run = (await client.runs.find(words[0])).name if words else ""
        encoding = (sys.stdout.encoding or "").lower()
        has_colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        with Terminal(has_colour=has_colour, has_shapes=encoding.startswith("utf")) as terminal:
            await App(client, terminal, run).run()

    session.ask(attend)
    return 0
