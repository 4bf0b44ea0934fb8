"""``tidewheel events``: what happens, line by line, as it happens."""

from __future__ import annotations

from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

import click

from tidewheel.cli.session import Session, session_command

if TYPE_CHECKING:
    from tidewheel.client import AsyncClient

EPILOG = """\b
Examples:
  tidewheel events
  tidewheel events --run forecast
  tidewheel events --queue default --json
  tidewheel events --since ID      # an id that --json has shown
"""


@session_command("events", epilog=EPILOG)
@click.option("--run", metavar="RUN", help="Only about this run and its submissions.")
@click.option("--queue", help="Only about this queue.")
@click.option(
    "--kind", type=click.Choice(["task", "run"]), help="Only about tasks, or about runs."
)
@click.option("--since", metavar="ID", help="Begin after this event instead of now.")
@click.option("--count", type=click.IntRange(1), help="Stop after this many.")
def command(session: Session, count: int | None, **which: str | None) -> int:
    """Print what happens to tasks and runs, one line each, until Ctrl-C.

    With --json, each line is an object with event, id and data, as the server's stream has it.
    Nothing is left out and nothing comes twice, even if the server or the database is away for
    a while. If events were deleted meanwhile, you are told so.
    """
    with suppress(KeyboardInterrupt):  # which is how one stops watching
        session.ask_existing(lambda client: _print(client, session, count, which))
    return 0


async def _print(
    client: AsyncClient, session: Session, count: int | None, which: dict[str, str | None]
) -> None:
    from tidewheel.cli.event_lines import EventLines
    from tidewheel.cli.output import json_line, say

    lines, told = EventLines(), 0
    async with aclosing(client.events(**which)) as events:
        async for event in events:
            if session.as_json:
                data = event.document
                say(json_line({"event": event.kind, "id": event.id, "data": data}))
            else:
                lines.say(event)
            told += event.kind in ("task", "run")
            if told == count:
                return
