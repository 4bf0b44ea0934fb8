"""Following the log of a run or a job until it has ended."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from tidewheel.cli.output import safe_lines
from tidewheel.cli.runs.access import Document, with_runs
from tidewheel.cli.runs.target import Target, find_target
from tidewheel.cli.session import Session
from tidewheel.errors import Refused

if TYPE_CHECKING:
    from tidewheel.client.runs import Runs

WAIT_SECONDS = 20.0  # for more to come, before it is asked again


def follow_log(
    session: Session, words: Sequence[str], arguments: Callable[[Target], Document]
) -> None:
    """Print what is there and what comes."""

    async def follow(runs: Runs) -> None:
        target = await find_target(runs, words)
        await print_log(runs, target.run, arguments(target))

    with_runs(session, follow)


async def print_log(runs: Runs, run: str, wish: Document) -> None:
    """Until nothing more will come."""
    # A letter may be cut in two between one part and the next.
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    offset = 0
    while True:
        part = await runs.log_part(run, wish, offset=offset, wait_seconds=WAIT_SECONDS)
        click.echo(safe_lines(decoder.decode(part.content)), nl=False)
        offset = part.next_offset
        place = part.place  # from now on exactly this one
        wish = wish | {"id": place.id or "", "submit": place.submit, "attempt": place.attempt}
        if part.over:
            break
    if not part.found:
        raise Refused(f"{part.place.path} cannot be read; look on the host where it ran")
