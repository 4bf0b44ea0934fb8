"""``tidewheel objects``: buffer objects that stages wait for; post or remove some."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tidewheel.cli.session import Session, session_command

if TYPE_CHECKING:
    from tidewheel.client import AsyncClient
    from tidewheel.ports.runs import Document

EPILOG = """\b
Examples:
  tidewheel objects
  tidewheel objects post visibilities-0815 calibration-7
  tidewheel objects post visibilities-0815 --fact size=2TB
  tidewheel objects remove visibilities-0815
"""
ACTIONS = ("list", "post", "remove")


@session_command("objects", epilog=EPILOG)
@click.argument("action", type=click.Choice(ACTIONS), default="list")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--fact",
    "facts",
    multiple=True,
    metavar="KEY=VALUE",
    help="A fact about the objects, such as size=2TB; repeatable.",
)
@click.option("--after", default="", metavar="NAME", help="List the objects after this name.")
@click.option(
    "--limit", type=click.IntRange(1, 1_000), default=1_000, help="How many to list at most."
)
def command(
    session: Session,
    action: str,
    names: tuple[str, ...],
    *,
    facts: tuple[str, ...],
    after: str,
    limit: int,
) -> int:
    """List buffer objects, or say that some are present, or are no longer.

    Stages that depend on an object wait until it is posted, once for all: runs that begin
    later find it there.
    """
    if (action == "list") == bool(names):
        raise click.UsageError("write: objects post NAME…, objects remove NAME…, or objects")
    known = dict(map(_fact, facts))

    async def ask(client: AsyncClient) -> Document:
        match action:
            case "post":
                return await client.blocks.post_objects(*names, facts=known)
            case "remove":
                gone = [await client.blocks.remove_object(name) for name in names]
                return {"objects": gone}
            case _:
                return await client.blocks.objects(after=after, count=limit)

    told = session.ask_to_write(ask) if action == "post" else session.ask(ask)
    _say(session, action, told)
    return 0


def _fact(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not key or not sign:
        raise click.UsageError(f"a fact is KEY=VALUE, not {text!r}")
    return key, value


def _say(session: Session, action: str, told: Document) -> None:
    from tidewheel.cli.output import safe, say, say_json
    from tidewheel.cli.pages import blocks
    from tidewheel.cli.pages.workflows import parts

    if session.as_json:
        say_json(told)
    elif action == "list":
        blocks.say_objects(told)
    else:
        found = [safe(one["name"]) for one in parts(told, "objects")]
        say(f"{', '.join(found)}: {'there' if action == 'post' else 'gone'}")
