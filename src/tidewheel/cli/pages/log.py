"""Prints logs: of attempts of the queue's tasks, of runs, and of their jobs."""

from __future__ import annotations

import asyncio
import codecs
import os
import stat
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from tidewheel.api.tasks import Task
from tidewheel.cli.output import safe_lines
from tidewheel.cli.runs.access import Arguments, find_target, with_runs
from tidewheel.cli.session import Session
from tidewheel.client import AsyncClient
from tidewheel.client.log_places import attempt_log
from tidewheel.config import home_directory
from tidewheel.core.queue.task import TaskId
from tidewheel.errors import Refused
from tidewheel.ports.runs import BringsLogs
from tidewheel.ports.store import Store

if TYPE_CHECKING:
    from tidewheel.client.runs import Runs

CHUNK_BYTES = 64 * 1024
FOLLOW_SECONDS = 0.2
FOLLOW_AFAR_SECONDS = 1.0  # as often as workers send what was added
WAIT_SECONDS = 20.0  # for more of a run's log to come, before it is asked again


async def log_path(client: AsyncClient, task: Task, stream: str, attempt: int) -> Path:
    """Returns where the log of an attempt would be, were it run on this host."""
    store, place = cast("Store", client.store), (task.id, task.seq)
    return await attempt_log(store, home_directory(), place, stream, attempt)


async def say_log(
    client: AsyncClient, task: Task, stream: str, attempt: int | None, *, follow: bool
) -> None:
    """Prints the log of one attempt; with ``follow`` until that attempt is over."""
    number = attempt or max(1, task.attempt)
    log: Log | ServerLog
    if isinstance(client.store, BringsLogs):
        log, pause = ServerLog(client.store, task.id, stream, number), FOLLOW_AFAR_SECONDS
    else:
        log, pause = Log(await log_path(client, task, stream, number)), FOLLOW_SECONDS
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
    raise Refused(f"{log.where}; look on the host where {task.owner} ran it")


def printer() -> Callable[[bytes], None]:
    """Returns a function that prints bytes of a log as text that moves no cursor.

    A letter may be cut in two between one part and the next.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return lambda content: click.echo(safe_lines(decoder.decode(content)), nl=False)


class Log:
    """Prints a log file of this machine as it grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.found = False
        self.where = f"there is no file {path}"  # if it was not found
        self._position, self._print = 0, printer()

    async def say_new(self) -> None:
        """Prints what was added since the last time."""
        try:
            # A job may have put anything there: no link is followed, no pipe is waited for.
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return
            self.found = True
            file.seek(self._position)
            while chunk := file.read(CHUNK_BYTES):
                self._position += len(chunk)
                self._print(chunk)


class ServerLog:
    """Prints a log as it grows that a worker sends to a server."""

    def __init__(self, store: BringsLogs, task_id: TaskId, stream: str, attempt: int) -> None:
        self._read = partial(store.task_log, task_id, stream, attempt)
        self.found = False
        self.where = f"the server has no log of attempt {attempt}"  # if it was not found
        self._position, self._print = 0, printer()

    async def say_new(self) -> None:
        """Prints what was added since the last time."""
        while (part := await self._read(self._position)) is not None:
            self.found = True
            self._position += len(part)
            self._print(part)
            if not part:
                return


# ---- of a run, or of a job of it ----


def follow_log(session: Session, words: Sequence[str], arguments: Arguments) -> None:
    """Prints the log of a run or a job until nothing more will come."""

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
