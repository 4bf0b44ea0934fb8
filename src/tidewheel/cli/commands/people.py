"""Defines commands of people at a server: session."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from tidewheel.api.wire import document
from tidewheel.cli.output import note, plural, say_found
from tidewheel.cli.session import Session, option
from tidewheel.cli.session import session_command as command_of_session
from tidewheel.core.queue.access import TokenKind, TokenView
from tidewheel.vocabulary import time_text

if TYPE_CHECKING:
    from tidewheel.client import AsyncClient


@command_of_session(
    "session",
    "session list",
    "session end 7",
    "session end --all                 all that `session list` shows",
    "session end --person ada@example.org",
)
@click.argument("action", type=click.Choice(["list", "end"]))
@click.argument("number", type=int, required=False)
@option("--all everything", "With end: every session that `session list` shows.")
@option("--person NAME", "Only sessions of this person, or of the token of this name.")
def session_command(
    session: Session, action: str, number: int | None, *, everything: bool, person: str | None
) -> int:
    """List the sessions that are open, in browsers and of `tidewheel login`, or end some.

    At a server you see your own, an admin sees everybody's. A session that was ended opens
    nothing any more, within a second.
    """
    if action == "list":
        if number is not None or everything:
            raise click.UsageError("list takes no number and no --all; --person narrows it")
        return _list_sessions(session, person)
    if [number is not None, everything, person is not None].count(True) != 1:
        raise click.UsageError("say which: tidewheel session end NUMBER, --all or --person")

    async def end(client: AsyncClient) -> list[TokenView]:
        if number is not None:
            return [await client.store.end_session(number)]
        found = await client.store.sessions()
        chosen = [one for one in found if person is None or one.name == person]
        # The newest last: it may be the one that asks.
        return [await client.store.end_session(one.number) for one in chosen[::-1]]

    ended = session.ask_existing(end)
    return session.answer(
        {"ended": [document(view) for view in ended]},
        lambda _: note(f"{plural(len(ended), 'session')} ended"),
    )


def _list_sessions(session: Session, person: str | None) -> int:
    found = session.ask(lambda client: client.store.sessions())
    found = [one for one in found if person is None or one.name == person]
    columns: dict[str, Callable[[TokenView], str]] = {
        "SESSION": lambda view: str(view.number),
        "WHO": lambda view: view.name,
        "BY": lambda view: "token" if view.identity is None else view.identity.source,
        "IN": lambda view: "browser" if view.kind is TokenKind.SESSION else "command line",
        "BEGAN": lambda view: time_text(view.created_at) or "",
        "USED": lambda view: time_text(view.used_at) or "never",
        "ENDS": lambda view: time_text(view.expires_at) or "",
    }
    return session.answer(
        {"sessions": [document(view) for view in found]},
        lambda _: say_found(found, columns, "no session is open", drop=("BEGAN", "USED")),
    )
