"""``tidewheel sbi``: ask for the blocks of a scheduling block instance; list or show some."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidewheel.cli.session import Session, session_command

if TYPE_CHECKING:
    from tidewheel.client import AsyncClient
    from tidewheel.ports.runs import Document

EPILOG = """\b
Examples:
  tidewheel sbi submit observation.json
  tidewheel sbi
  tidewheel sbi show SBI-20261115-sip-0001
"""
ACTIONS = ("list", "submit", "show")
STDIN = "-"


@session_command("sbi", epilog=EPILOG)
@click.argument("action", type=click.Choice(ACTIONS), default="list")
@click.argument("what", metavar="[FILE|ID]", default="")
@click.option(
    "--limit", type=click.IntRange(1, 1_000), default=100, help="How many to list at most."
)
def command(session: Session, action: str, what: str, limit: int) -> int:
    """List or show scheduling block instances, or submit one from a JSON or YAML file.

    submit takes all of its processing blocks or none, with every mistake at once; the same
    again changes nothing. Each block is a run of a registered workflow, which any scheduler
    takes up: tidewheel up, or tidewheel scheduler. FILE may be - for standard input.
    """
    from tidewheel.cli.pages.workflows import tell_refusal
    from tidewheel.core.graph.findings import InvalidDefinition

    if action != "list" and not what:
        missing = "FILE" if action == "submit" else "ID"
        raise click.UsageError(f"say which: tidewheel sbi {action} {missing}")
    try:
        if action == "submit":
            told = _submit(session, what)
        else:
            told = session.ask(lambda client: _ask(client, action, what, limit))
    except InvalidDefinition as error:
        return tell_refusal(error, as_json=session.as_json)
    _say(session, action, told)
    return 0


def _submit(session: Session, what: str) -> Document:
    """No store is made for what an empty one refuses."""
    from tidewheel.cli.session import ask_client
    from tidewheel.wiring.stores import empty_store, store_exists

    if what == STDIN:
        content = sys.stdin.buffer.read()
        name = "stdin.json" if content.lstrip().startswith(b"{") else "stdin.yaml"
    else:
        name, content = what, _content(what)

    async def submit(client: AsyncClient) -> Document:
        return await client.blocks.submit_text(name, content)

    if not store_exists(session.store):
        with empty_store() as where:
            ask_client(where, submit)
    return session.ask_or_make(submit)


async def _ask(client: AsyncClient, action: str, what: str, limit: int) -> Document:
    if action == "show":
        return await client.blocks.sbi(what)
    return await client.blocks.sbis(limit)


def _content(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        reason = (error.strerror or "no such file").lower()
        raise click.UsageError(f"{name} cannot be read: {reason}") from None


def _say(session: Session, action: str, told: Document) -> None:
    from tidewheel.cli.output import say_json
    from tidewheel.cli.pages import blocks

    if session.as_json:
        say_json(told)
    elif action == "submit":
        blocks.say_submitted(told)
    elif action == "show":
        blocks.say_sbi(told)
    else:
        blocks.say_sbis(told)
