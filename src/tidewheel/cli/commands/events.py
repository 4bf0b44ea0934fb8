"""Does ``tidewheel events``: prints events line by line as they happen."""

from __future__ import annotations

from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, cast

import click

from tidewheel.cli.output import json_line, note, safe, say
from tidewheel.cli.session import Session, option, session_command

if TYPE_CHECKING:
    from tidewheel.client import AsyncClient
    from tidewheel.core.operator.stream import FollowedEvent


@session_command(
    "events",
    "events",
    "events --run forecast",
    "events --queue default --json",
    "events --since ID      # an id that --json has shown",
)
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

    async def follow(client: AsyncClient) -> None:
        runs: dict[object, object] = {}  # as they were, to say only what is new
        told = 0
        async with aclosing(client.events(**which)) as events:
            async for event in events:
                if session.as_json:
                    say(
                        json_line({"event": event.kind, "id": event.id, "data": event.document})
                    )
                else:
                    _say(event, runs)
                told += event.kind in ("task", "run")
                if told == count:
                    return

    with suppress(KeyboardInterrupt):  # which is how one stops watching
        session.ask_existing(follow)
    return 0


# ---- Events as lines for people: time, what it is about, from what to what. ----

Document = dict[str, object]
SECONDS_LENGTH = len("2026-11-15T18:14:08")
MISSED = "something was missed that nobody can tell any more; going on from here"


def _say(event: FollowedEvent, runs: dict[object, object]) -> None:
    told = event.document
    if event.kind == "task":
        before = f"{told['from']} " if told["from"] else ""
        beside = _beside([str(one) for one in (told["signal"], told["worker"]) if one])
        _say_line(told, told["id"], f"{before}→ {told['to']}{beside}")
    elif event.kind == "run":
        _say_run(told, runs)
    elif event.kind == "resync":
        note(MISSED)


def _say_run(batch: Document, runs: dict[object, object]) -> None:
    run, now = batch["run"], (batch["status"], batch["reason"])
    if runs.get(run) != now:
        runs[run] = now
        why = f" ({batch['reason']})" if batch["reason"] else ""
        _say_line(batch, run, f"{batch['status']}{why}")
    if batch["tasks"] is None:
        _say_line(batch, run, f"{batch['changed']} tasks changed")
    for task in cast("list[Document]", batch["tasks"] or []):
        beside = _beside(cast("list[str]", task["remarks"]))
        _say_line(batch, f"{run} {task['id']}", f"→ {task['state']}{beside}")


def _beside(remarks: list[str]) -> str:
    return f" ({', '.join(remarks)})" if remarks else ""


def _say_line(document: Document, what: object, change: str) -> None:
    say(f"{str(document['at'])[:SECONDS_LENGTH]}Z  {safe(what)}  {safe(change)}")
