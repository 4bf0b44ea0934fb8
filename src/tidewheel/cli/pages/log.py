"""Prints logs: of attempts of the queue's tasks, of runs, and of their jobs."""

from __future__ import annotations

import asyncio
import codecs
import os
import stat
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidewheel.api.tasks import Task
from tidewheel.cli.output import safe_lines
from tidewheel.cli.runs.access import Arguments, find_target, with_runs
from tidewheel.cli.session import Session
from tidewheel.client import AsyncClient
from tidewheel.client.log_places import attempt_log
from tidewheel.config import home_directory
from tidewheel.errors import Refused
from tidewheel.ports.runs import BringsLogs

if TYPE_CHECKING:
    from tidewheel.client.runs import Runs

CHUNK_BYTES = 64 * 1024
FOLLOW_SECONDS = 0.2
FOLLOW_AFAR_SECONDS = 1.0  # as often as workers send what was added
WAIT_SECONDS = 20.0  # for more of a run's log to come, before it is asked again


async def log_path(client: AsyncClient, task: Task, stream: str, attempt: int) -> Path:
    """Returns the path that the log of an attempt has if this host ran it."""
    place = task.id, task.seq
    return await attempt_log(client.store, home_directory(), place, stream, attempt)


async def say_log(
    client: AsyncClient, task: Task, stream: str, attempt: int | None, *, follow: bool
) -> None:
    """Prints the log of one attempt; with ``follow`` until another begins or the task ends.

    Without a number the latest attempt is meant. Raises Refused if there is no log.
    """
    number = attempt or max(1, task.attempt)
    if isinstance(client.store, BringsLogs):
        log = GrowingLog(partial(client.store.task_log, task.id, stream, number))
        pause, missing = FOLLOW_AFAR_SECONDS, f"the server has no log of attempt {number}"
    else:
        path = await log_path(client, task, stream, number)
        log = GrowingLog(partial(_read_file, path))
        pause, missing = FOLLOW_SECONDS, f"there is no file {path}"
    while follow and not task.ended and task.attempt <= number:
        await log.say_new()
        await asyncio.sleep(pause)
        task = await client.get(task.id)
    await log.say_new()
    if log.found:
        return
    if task.attempt < number:
        raise Refused(f"task {task.id!r} has had {task.attempt} attempts; wait for the next")
    if task.command is None:
        raise Refused(f"task {task.id!r} has no log; only commands write one, not handlers")
    raise Refused(f"{missing}; look on the host where {task.owner} ran it")


def printer() -> Callable[[bytes], None]:
    """Returns a function that prints bytes of a log as text that moves no cursor.

    A letter whose bytes are divided between two calls is printed whole.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return lambda content: click.echo(safe_lines(decoder.decode(content)), nl=False)


class GrowingLog:
    """Prints a log as it grows.

    ``read`` returns what follows a position: empty if nothing does, None if there is no log.
    """

    def __init__(self, read: Callable[[int], Awaitable[bytes | None]]) -> None:
        self.found = False
        self._read, self._position, self._print = read, 0, printer()

    async def say_new(self) -> None:
        """Prints what was added to the log since the last call."""
        while (part := await self._read(self._position)) is not None:
            self.found = True
            self._position += len(part)
            self._print(part)
            if not part:
                return


async def _read_file(path: Path, position: int) -> bytes | None:
    try:
        # A job may have put anything there: no link is followed, no pipe is waited for.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return None
        file.seek(position)
        return file.read(CHUNK_BYTES)


# ---- of a run, or of a job of it ----


def follow_log(session: Session, words: Sequence[str], arguments: Arguments) -> None:
    """Prints the log of a run or a job until nothing more will come.

    Raises Refused if there is none that can be read.
    """

    async def follow(runs: Runs) -> None:
        target = await find_target(runs, words)
        wish, say, offset = arguments(target), printer(), 0
        while True:
            part = await runs.log_part(
                target.run, wish, offset=offset, wait_seconds=WAIT_SECONDS
            )
            say(part.content)
            offset, place = part.next_offset, part.place  # from now on exactly this one
            wish |= {"id": place.id or "", "submit": place.submit, "attempt": place.attempt}
            if part.over:
                break
        if not part.found:
            raise Refused(f"{part.place.path} cannot be read; look on the host where it ran")

    with_runs(session, follow)
