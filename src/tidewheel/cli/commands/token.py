"""``tidewheel token``: the tokens that a server accepts, and links that log a browser in."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Unpack, cast

import click

from tidewheel.api.wire import document
from tidewheel.cli.output import Row, note, safe, say, say_json, say_table
from tidewheel.cli.parameters import DURATION
from tidewheel.cli.session import Session, session_command
from tidewheel.core.queue.access import Scope, TokenView, grant_of
from tidewheel.core.queue.task import Instant
from tidewheel.vocabulary import time_text

if TYPE_CHECKING:
    from tidewheel.client import AsyncClient
    from tidewheel.ports.store import Store

HEADERS = ("TOKEN", "KIND", "NAME", "SCOPES", "QUEUES", "WORKFLOWS", "USED", "ENDS", "STATE")
EPILOG = """\b
Examples:
  tidewheel token create ci --scope submit --queue 'ci-*' --lasts 90d
  tidewheel token create nightly --scope submit --workflow 'nightly*'
  tidewheel token list
  tidewheel token revoke 3
  tidewheel token link
"""


class TokenOptions(TypedDict):
    """The options of a new token: what it allows."""

    scope: tuple[str, ...]
    queue: tuple[str, ...]
    workflow: tuple[str, ...]
    lasts: float | None


@session_command("token", epilog=EPILOG)
@click.argument("action", type=click.Choice(["create", "list", "revoke", "link"]))
@click.argument("name", required=False)
@click.option(
    "--scope",
    type=click.Choice([scope.value for scope in Scope]),
    multiple=True,
    help="What it allows; again for more. All but read include read; admin is everything.",
)
@click.option(
    "--queue",
    metavar="GLOB",
    multiple=True,
    help="Only for these queues; for no workflow, but those of `run:NAME…` among them.",
)
@click.option(
    "--workflow",
    metavar="GLOB",
    multiple=True,
    help="Only for these workflows, and the queues of their runs.",
)
@click.option("--lasts", type=DURATION, help="How long it is good. [default: until revoked]")
def command(
    session: Session, action: str, name: str | None, **options: Unpack[TokenOptions]
) -> int:
    """Create a token called NAME, list tokens, or revoke one by its number.

    The token is printed once; the store keeps a hash of it. `link` prints an address that logs
    a browser in, once and within five minutes, with what your own token allows.
    """
    if action == "list":
        return _list(session)
    if action == "link":
        return _link(session)
    if name is None:
        raise click.UsageError(f"say which: tidewheel token {action} " + _WANTED[action])
    return _create(session, name, options) if action == "create" else _revoke(session, name)


_WANTED = {"create": "NAME --scope SCOPE", "revoke": "NUMBER"}


def _create(session: Session, name: str, options: TokenOptions) -> int:
    from tidewheel.client.tokens import make_token

    if not options["scope"]:
        raise click.UsageError("say what it allows: --scope " + "|".join(Scope))
    scopes, queues, workflows = options["scope"], options["queue"], options["workflow"]
    grant = grant_of(map(Scope, scopes), queues or None, workflows or None)
    text, view = session.ask_or_make(
        lambda client: make_token(_store(client), name, grant, options["lasts"])
    )
    if session.as_json:
        say_json({"token": text, "stored": document(view)})
    else:
        say(text)
        revoke = f"tidewheel token revoke {view.number}"
        note(f"token {view.number}, shown this once; revoke it: {revoke}")
        if not view.grant.workflows:
            note("it is for tasks of these queues, and for no workflow: --workflow names some")
    return 0


def _list(session: Session) -> int:
    async def look(client: AsyncClient) -> tuple[list[TokenView], Instant]:
        return await _store(client).tokens(), await client.store.now()

    tokens, now = session.ask(look)
    if session.as_json:
        say_json({"tokens": [document(view) for view in tokens]})
    elif not tokens:
        note("no tokens; make one: tidewheel token create NAME --scope admin")
    else:
        say_table(HEADERS, [_row(view, now) for view in tokens], drop=("WORKFLOWS", "ENDS"))
    return 0


def _revoke(session: Session, number: str) -> int:
    if not (number.isascii() and number.isdigit()):
        raise click.UsageError(
            f"{safe(number)!r} is no number of a token: tidewheel token list"
        )
    view = session.ask(lambda client: _store(client).revoke_token(int(number)))
    if session.as_json:
        say_json(document(view))
    else:
        note(f"token {view.number} ({safe(view.name)}) opens nothing any more")
    return 0


def _link(session: Session) -> int:
    from tidewheel.client.server_file import server_url
    from tidewheel.store.remote import RemoteStore

    async def ask(client: AsyncClient) -> str:
        return await cast("RemoteStore", client.store).login_link()

    link = session._replace(store=server_url(session.store)).ask(ask)
    if session.as_json:
        say_json({"login": link})
    else:
        say(link)
        note("good once, for five minutes")
    return 0


def _store(client: AsyncClient) -> Store:
    return cast("Store", client.store)


def _row(view: TokenView, now: Instant) -> Row:
    state = "good" if view.is_valid(now) else "ran out"
    return (
        str(view.number),
        view.kind.value,
        view.name,
        ",".join(sorted(view.grant.scopes)),
        ",".join(view.grant.queues),
        ",".join(view.grant.workflows) or "(none)",
        time_text(view.used_at) or "never",
        time_text(view.expires_at) or "",
        state if view.revoked_at is None else "revoked",
    )
