"""Does ``tidewheel events``: prints events line by line as they happen."""

from __future__ import annotations

from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, cast

import click

from tidewheel.cli.output import json_line, note, safe, say
from tidewheel.cli.session import Session, option, session_command
from tidewheel.core.operator.stream import FollowedEvent

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
@option("--run RUN", "Only about this run and its submissions.")
@option("--queue TEXT", "Only about this queue.")
@option("--kind", "Only about tasks, or about runs.", type=click.Choice(["task", "run"]))
@option("--since ID", "Begin after this event instead of now.")
@option("--count", "Stop after this many.", type=click.IntRange(1))
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


# ---- Events as lines for people: time, what it is about, from what to what. ----

Document = dict[str, object]
SECONDS_LENGTH = len("2026-11-15T18:14:08")
MISSED = "something was missed that nobody can tell any more; going on from here"


class EventLines:
    """Remembers how each run was, to say only what is new about it."""

    def __init__(self) -> None:
        self._runs: dict[object, tuple[object, object]] = {}

    def say(self, event: FollowedEvent) -> None:
        """Prints one event."""
        if event.kind == "task":
            say(_step_line(event.document))
        elif event.kind == "run":
            self._say_run(event.document)
        elif event.kind == "resync":
            note(MISSED)

    def _say_run(self, batch: Document) -> None:
        run, now = batch["run"], (batch["status"], batch["reason"])
        if self._runs.get(run) != now:
            self._runs[run] = now
            why = f" ({batch['reason']})" if batch["reason"] else ""
            say(_line(batch, run, f"{batch['status']}{why}"))
        if batch["tasks"] is None:
            say(_line(batch, run, f"{batch['changed']} tasks changed"))
        for task in cast("list[Document]", batch["tasks"] or []):
            remarks = cast("list[str]", task["remarks"])
            beside = f" ({', '.join(remarks)})" if remarks else ""
            say(_line(batch, f"{run} {task['id']}", f"→ {task['state']}{beside}"))


def _step_line(step: Document) -> str:
    before = f"{step['from']} " if step["from"] else ""
    said = [str(one) for one in (step["signal"], step["worker"]) if one]
    beside = f" ({', '.join(said)})" if said else ""
    return _line(step, step["id"], f"{before}→ {step['to']}{beside}")


def _line(document: Document, what: object, change: str) -> str:
    at = str(document["at"])[:SECONDS_LENGTH]
    return f"{at}Z  {safe(what)}  {safe(change)}"
