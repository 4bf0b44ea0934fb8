"""``tidewheel task``: everything about one task, and why it does not run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tidewheel.cli.session import Session, session_command

if TYPE_CHECKING:
    from tidewheel.api.tasks import Task
    from tidewheel.client import AsyncClient


@session_command("task")
@click.argument("task_id", metavar="ID|NAME")
@click.option("--log", "stream", type=click.Choice(["out", "err"]), help="Print what it wrote.")
@click.option("--follow", is_flag=True, help="With --log: go on until the task has ended.")
@click.option(
    "--attempt", type=click.IntRange(1), help="With --log: of this attempt, not the latest."
)
def command(
    session: Session, task_id: str, stream: str | None, *, follow: bool, attempt: int | None
) -> int:
    """Show a task: what it is, how it got there, and why it does not run."""
    if stream is None and (follow or attempt):
        raise click.UsageError("--follow and --attempt go with --log out or --log err")
    if stream is not None:
        session.ask(lambda client: _log(client, task_id, stream, attempt, follow))
    else:
        session.ask(lambda client: _show(client, session, task_id))
    return 0


async def find_task(client: AsyncClient, wanted: str) -> Task:
    """Returns a task by id, else by name."""
    from tidewheel.errors import NotFound

    try:
        return await client.get(wanted)
    except NotFound:
        named = await client.list(name=wanted, limit=1)
        if not named:
            raise
        return named[0]


async def _log(
    client: AsyncClient, wanted: str, stream: str, attempt: int | None, follow: bool
) -> None:
    from tidewheel.cli.pages.log import say_log

    await say_log(client, await find_task(client, wanted), stream, attempt, follow=follow)


async def _show(client: AsyncClient, session: Session, wanted: str) -> None:
    from tidewheel.cli.pages import task

    page = await task.gather(client, await find_task(client, wanted))
    if session.as_json:
        task.say_page_json(page)
    else:
        task.say_page(page)
