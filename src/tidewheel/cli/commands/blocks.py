"""``tidewheel blocks``: processing blocks; show or abort one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tidewheel.cli.session import Session, session_command

if TYPE_CHECKING:
    from tidewheel.client import AsyncClient
    from tidewheel.ports.runs import Document

EPILOG = """\b
Examples:
  tidewheel blocks
  tidewheel blocks show PB-20261115-sip-0001
  tidewheel blocks abort PB-20261115-sip-0001 --reason "wrong field"
"""
ACTIONS = ("list", "show", "abort")


@session_command("blocks", epilog=EPILOG)
@click.argument("action", type=click.Choice(ACTIONS), default="list")
@click.argument("block", metavar="[ID]", default="")
@click.option("--sbi", metavar="ID", help="List only the blocks of this instance.")
@click.option("--reason", default="", help="Why you abort it; kept for others to read.")
@click.option(
    "--limit", type=click.IntRange(1, 1_000), default=100, help="How many to list at most."
)
def command(
    session: Session, action: str, block: str, *, sbi: str | None, reason: str, limit: int
) -> int:
    """List processing blocks, newest first, or do something with one of them.

    show says what a block waits for, and for each stage its state, times, end, values and
    events. abort ends the stages that run and starts no more; the block is stopped then. A
    block is a run called by its id: show, why, log, trigger and the others take it, too.
    """
    if action != "list" and not block:
        raise click.UsageError(f"say which: tidewheel blocks {action} ID")
    if action == "list" and block:
        raise click.UsageError(f"list takes no id; write: tidewheel blocks show {block}")

    async def ask(client: AsyncClient) -> Document:
        match action:
            case "show":
                return await client.blocks.show(block)
            case "abort":
                return await client.blocks.abort(block, reason)
            case _:
                return await client.blocks.list(sbi=sbi, count=limit)

    _say(session, action, session.ask(ask))
    return 0


def _say(session: Session, action: str, told: Document) -> None:
    from tidewheel.cli.output import say_json
    from tidewheel.cli.pages import blocks

    if session.as_json:
        say_json(told)
    elif action == "show":
        blocks.say_block(told)
    elif action == "abort":
        blocks.say_aborted(told)
    else:
        blocks.say_blocks(told)
