"""Does ``tidewheel cancel``: cancels tasks by id, or all that a filter finds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from tidewheel.cli.output import coloured, note, plural, safe, say
from tidewheel.cli.parameters import filter_options
from tidewheel.cli.session import Session, session_command

if TYPE_CHECKING:
    from tidewheel.client import AsyncClient
    from tidewheel.client.fields import Filters
    from tidewheel.core.queue.requests import Cancelled

COUNT_MAX = 1000


@session_command("cancel")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@filter_options("All")
def command(session: Session, ids: tuple[str, ...], **which: Unpack[Filters]) -> int:
    """Cancel tasks, and whatever can no longer run without them.

    Running tasks are told to end; tasks that have ended are left as they are.
    """
    filtered = any(which.values())
    if bool(ids) == filtered:
        raise click.UsageError("give task ids, or a filter such as --queue NAME")

    async def cancel(client: AsyncClient) -> list[Cancelled]:
        if ids:
            return await client.cancel(*ids)
        return await client.cancel_matching(count_max=COUNT_MAX, **which)

    def show(_: object) -> None:
        for answer in answers:
            so = "" if answer.changed else " already"
            say(f"{safe(answer.id)}{so} {coloured(answer.status)}")
        if filtered:
            more = "; there may be more: call it again" if len(answers) == COUNT_MAX else ""
            note(f"{plural(len(answers), 'task')} cancelled{more}")

    answers = session.ask(cancel)
    told = [{"id": a.id, "status": a.status.value, "changed": a.changed} for a in answers]
    return session.answer({"cancelled": told}, show)
