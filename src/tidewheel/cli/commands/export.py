"""Does ``tidewheel export``: writes tasks to a file, one line of JSON each."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from tidewheel.cli.output import plural, safe, say
from tidewheel.cli.parameters import filter_options
from tidewheel.cli.session import Session, option, session_command
from tidewheel.errors import Refused

if TYPE_CHECKING:
    from tidewheel.client import AsyncClient
    from tidewheel.client.fields import Filters

PAGE = 500
STANDARD_OUTPUT = "-"


@session_command("export")
@click.argument("file", metavar="FILE|-")
@filter_options("Only those")
@option("--append", "Add to an existing file.")
def command(session: Session, file: str, *, append: bool, **which: Unpack[Filters]) -> int:
    """Write tasks with their history, attempts, outputs and usage, newest first."""
    if file == STANDARD_OUTPUT:
        session.ask_existing(lambda client: _export(client, None, which))
        return 0
    path = Path(file)
    if path.exists() and path.stat().st_size and not append:
        raise Refused(f"{file} is there already; choose a new file, or add to it: --append")
    if not path.absolute().parent.is_dir():
        raise Refused(
            f"there is no folder {path.absolute().parent}; make it, or choose another"
        )
    count = session.ask_existing(lambda client: _export(client, path, which))
    told = f"{plural(count, 'task')} written to {safe(path)}"
    return session.answer({"exported": count, "file": str(path)}, lambda _: say(told))


async def _export(client: AsyncClient, path: Path | None, which: Filters) -> int:
    from tidewheel.client.fields import task_filter
    from tidewheel.core.queue.requests import KeysetPage
    from tidewheel.services.monitor import append_lines, task_line

    count, before = 0, None
    while True:
        page = KeysetPage(count=PAGE, before=before)
        views = await client.store.list_tasks(task_filter(**which), page)
        lines = [await task_line(client.store, view) for view in views]
        if path is not None:
            append_lines(path, lines)
        else:
            sys.stdout.buffer.write(b"".join(lines))
        count += len(lines)
        if len(views) < PAGE:
            return count
        before = views[-1].seq
