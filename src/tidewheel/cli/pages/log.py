"""Prints logs: of attempts of the queue's tasks, of runs, and of their jobs."""

from __future__ import annotations

import asyncio
import codecs
import os
import stat
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from tidewheel.api.tasks import Task
from tidewheel.cli.output import plural, safe, safe_lines, say, say_json
from tidewheel.cli.pages.exception_text import traceback_of
from tidewheel.cli.runs.access import Arguments, find_target, with_runs
from tidewheel.cli.session import Session
from tidewheel.client import AsyncClient
from tidewheel.client.log_places import STREAMS, attempt_log
from tidewheel.config import home_directory
from tidewheel.errors import NotFound, Refused
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.ports.runs import BringsLogs

if TYPE_CHECKING:
    from tidewheel.client.runs import Runs

CHUNK_BYTES = 64 * 1024
FOLLOW_SECONDS = 0.2
FOLLOW_AFAR_SECONDS = 1.0  # as often as workers send what was added
TEXT_BYTES_MAX = 1024 * 1024  # of a log as JSON
WAIT_SECONDS = 20.0  # for more of a run's log to come, before it is asked again


Printers = Callable[[], Callable[[bytes], None]]  # a new one for each stream


async def log_path(client: AsyncClient, task: Task, stream: str, attempt: int) -> Path:
    """Returns the path that the log of an attempt has if this host ran it."""
    place = task.id, task.seq
    return await attempt_log(client.store, home_directory(), place, stream, attempt)


async def named_task(client: AsyncClient, word: str) -> Task:
    """Returns the task with this id, else the newest of this name; raises NotFound."""
    try:
        return await client.get(word)
    except NotFound:
        if not (named := await client.list(name=word, limit=1)):
            raise
        return named[0]


@dataclass(frozen=True, slots=True)
class LogWish:
    """Says what of a task's log is asked for."""

    stream: str | None = None  # None: both, out before err
    attempt: int | None = None  # None: the latest
    follow: bool = False  # until the next attempt begins, or the task ends


async def say_log(client: AsyncClient, task: Task, wish: LogWish, printers: Printers) -> None:
    """Prints what an attempt wrote, then the traceback of the exception that ended its handler.

    ``printers`` makes the function that prints one stream. Raises Refused if there is nothing.
    """
    number = wish.attempt or max(1, task.attempt)
    streams = tuple(STREAMS) if wish.stream is None else (wish.stream,)
    if isinstance(client.store, BringsLogs):
        reads = [partial(client.store.task_log, task.id, one, number) for one in streams]
        pause, missing = FOLLOW_AFAR_SECONDS, f"the server has no log of attempt {number}"
    else:
        paths = [await log_path(client, task, one, number) for one in streams]
        reads = [partial(_read_file, path) for path in paths]
        pause, missing = FOLLOW_SECONDS, f"there is no file {paths[0]}"
    logs = [GrowingLog(read, printers()) for read in reads]
    while wish.follow and not task.ended and task.attempt <= number:
        await _say_all(logs)
        await asyncio.sleep(pause)
        task = await client.get(task.id)
    await _say_all(logs)
    trace = await _traceback(client, task, number) if "err" in streams else ""
    printers()(trace.encode())
    if trace or any(log.found for log in logs):
        return
    if task.attempt < number:
        raise Refused(
            f"task {task.id!r} has had {plural(task.attempt, 'attempt')}; wait for the next"
        )
    if task.command is None:
        missing = f"the handler of task {task.id!r} printed nothing here"
    raise Refused(f"{missing}; look on the host where {task.owner} ran it")


async def _say_all(logs: Sequence[GrowingLog]) -> None:
    for log in logs:
        await log.say_new()


async def _traceback(client: AsyncClient, task: Task, number: int) -> str:
    if task.command is not None:
        return ""
    errors = [one.error for one in await client.attempts(task.id) if one.attempt == number]
    return "".join(traceback_of(error) for error in errors if error is not None)


async def task_log_document(
    client: AsyncClient, task: Task, wish: LogWish
) -> dict[str, object]:
    """Returns the log of a task for programs, in the form of the view ``log`` of runs."""
    content = bytearray()
    number = wish.attempt or max(1, task.attempt)
    streams = tuple(STREAMS) if wish.stream is None else (wish.stream,)
    await say_log(client, task, wish, lambda: content.extend)
    files: list[Path] = []
    if not isinstance(client.store, BringsLogs):
        files = [await log_path(client, task, one, number) for one in streams]
    return {
        "run": None,
        "id": task.id,
        "submit": None,
        "attempt": number,
        "path": str(files[0]) if files else None,
        "files": [str(path) for path in files if path.exists()],
        "text": content[-TEXT_BYTES_MAX:].decode(errors="replace"),
        "cut": len(content) > TEXT_BYTES_MAX,
    }


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

    def __init__(
        self,
        read: Callable[[int], Awaitable[bytes | None]],
        print_part: Callable[[bytes], None],
    ) -> None:
        self.found = False
        self._read, self._position, self._print = read, 0, print_part

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


def say_queue_log(
    session: Session, word: str, wish: Mapping[str, object], *, follow: bool, path_only: bool
) -> bool:
    """Prints the log of the task of the queue that a word names; returns False if it names
    none."""
    asked = LogWish(_stream(wish["file"]), cast("int | None", wish["attempt"]), follow)

    async def show(client: AsyncClient) -> bool:
        try:
            task = await named_task(client, word)
        except NotFound:
            return False
        if not session.as_json and not path_only:
            await say_log(client, task, asked, printer)
            return True
        document = await task_log_document(client, task, asked)
        if session.as_json:
            say_json(document)
        elif document["path"] is None:
            raise Refused("the server has this log, and says not where; leave out --path")
        else:
            say(safe(document["path"]))
        return True

    return session.ask(show)


def _stream(word: object) -> str | None:
    """Returns the stream that --file names; `err`, `e` and `job.err` all mean `err`."""
    if word is None:
        return None
    for stream, file in STREAMS.items():
        if word in (stream, stream[0], file):
            return stream
    raise Refused(f"a task of the queue has no file {word!r}; it has {', '.join(STREAMS)}")


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
