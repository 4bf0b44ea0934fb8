"""Prints logs of runs, of their jobs and of tasks of the queue, and the lines found in them."""

from __future__ import annotations

import asyncio
import codecs
import os
import shlex
import stat
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, cast

import click

from tidewheel.api.log_lines import PLAIN_RANK, rank_of
from tidewheel.api.tasks import Task
from tidewheel.cli.output import note, plural, safe, safe_lines, say, say_json
from tidewheel.cli.pages.format import traceback_of
from tidewheel.cli.runs.access import (
    Arguments,
    Document,
    Target,
    find_target,
    look,
    target_in_job,
    this_job,
    with_runs,
)
from tidewheel.cli.session import Session, refuse_said
from tidewheel.client import AsyncClient
from tidewheel.client.log_places import STREAMS, attempt_log
from tidewheel.config import home_directory
from tidewheel.errors import NotFound, Refused
from tidewheel.lazy_dataclasses import NamedTuple, dataclass
from tidewheel.ports.runs import BringsLogs
from tidewheel.quantities import show_size

if TYPE_CHECKING:
    from tidewheel.api.log_lines import FileHits
    from tidewheel.cli.session import Words
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
        raise Refused(_no_attempt(task))
    if task.command is None:
        missing = f"no output of the handler of task {task.id!r} was found here"
    raise Refused(f"{missing}; look on the host where {task.owner} ran it")


def _no_attempt(task: Task) -> str:
    had = plural(task.attempt, "attempt") if task.attempt else "no attempt"
    if task.ended:
        return f"task {task.id!r} has had {had}; it has ended, so there will be no other"
    if task.attempt:
        return f"task {task.id!r} has had {had}; wait for the next"
    return f"task {task.id!r} has had {had} yet; see why: tidewheel task {shlex.quote(task.id)}"


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
        _refuse_submission(task)
        if not session.as_json and not path_only:
            await say_log(client, task, asked, printer)
            return True
        document = await task_log_document(client, task, asked)
        if session.as_json:
            say_json(document)
        elif document["path"] is None:
            raise Refused(
                "the server has this log, but does not say where the file is; leave out --path"
            )
        else:
            say(safe(document["path"]))
        return True

    return session.ask(show)


def _refuse_submission(task: Task) -> None:
    """Raises a usage error for -s, as a task of the queue has attempts only."""
    refuse_said(
        ("submit",),
        f"is for tasks of runs; {task.id} is a task of the queue: tidewheel log {task.id} "
        "--attempt N",
    )


def refuse_without_task(run: str, *names: str) -> None:
    """Raises a usage error for an option that chooses a log of a job that is not named."""
    told = f"is about the log of one job; name its task: tidewheel log {quote(run)} POINT/NAME"
    refuse_said(names, told)


def _stream(word: object) -> str | None:
    """Returns the stream that --file names; `err`, `e` and `job.err` all mean `err`."""
    if word is None:
        return None
    for stream, file in STREAMS.items():
        if word in (stream, stream[0], file):
            return stream
    raise Refused(f"a job has no file {word!r}; it has {', '.join(STREAMS)}")


# ---- of a run, or of a job of it ----


class WithoutDebug:
    """Prints the log of a run as it comes, without the lines of level DEBUG and those that
    belong to them; at the end it says how many these were."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest, self._rank, self._left_out = "", PLAIN_RANK, 0

    def say(self, content: bytes) -> None:
        *lines, self._rest = (self._rest + self._decoder.decode(content)).split("\n")
        self._say([f"{line}\n" for line in lines])

    def end(self) -> None:
        self._say([self._rest] if self._rest else [])
        if self._left_out:
            are = "is" if self._left_out == 1 else "are"
            lines = plural(self._left_out, "DEBUG line")
            note(f"{lines} {are} left out; to see them, add --level debug")

    def _say(self, lines: Sequence[str]) -> None:
        kept = []
        for line in lines:
            self._rank = rank_of(line, self._rank)
            if self._rank >= PLAIN_RANK:
                kept.append(line)
        self._left_out += len(lines) - len(kept)
        click.echo(safe_lines("".join(kept)), nl=False)


def follow_log(
    session: Session, words: Sequence[str], arguments: Arguments, *, with_debug: bool
) -> None:
    """Prints the log of a run or a job until nothing more will come.

    Raises Refused if there is none that can be read.
    """

    async def follow(runs: Runs) -> None:
        target = await find_target(runs, words)
        wish, offset, shown = arguments(target), 0, WithoutDebug()
        say = printer() if with_debug or wish["id"] else shown.say
        while True:
            part = await runs.log_part(
                target.run, wish, offset=offset, wait_seconds=WAIT_SECONDS
            )
            say(part.content)
            offset, place = part.next_offset, part.place  # from now on exactly this one
            wish |= {"id": place.id or "", "submit": place.submit, "attempt": place.attempt}
            if part.over:
                break
        shown.end()
        if not part.found:
            raise Refused(
                f"{part.place.path} cannot be read; look on the host where it was written"
            )

    with_runs(session, follow)


# ---- lines of logs that have a text or a level ----

STEP_HITS = 500
Ask = Callable[[str, Document], Awaitable[Any]]
RUN_LOG = "log"  # the file of a line of the run's own log


class LogSearch(NamedTuple):
    """Says what is searched for in logs, and where."""

    text: str
    level: str
    match: str
    case: bool
    task: str | None  # a glob; None: of all jobs
    limit: int
    log: Document  # file, submit and attempt of one log

    @property
    def wanted(self) -> Document:
        return {"text": self.text, "level": self.level, "match": self.match, "case": self.case}


class FoundLines:
    """Gathers what the steps of a search find, and prints each line unless JSON is wanted."""

    def __init__(
        self, run: str | None, asked: LogSearch, say_hit: Callable[[Document], None]
    ) -> None:
        self.run, self.asked, self._say = run, asked, say_hit
        self.hits: list[Document] = []
        self.files = self.bytes = self.missing = 0
        self.done = True

    def room(self) -> int:
        return self.asked.limit - len(self.hits)

    def add(self, hits: list[Document], **place: object) -> None:
        for one in hits[: max(0, self.room())]:
            self.hits.append({**place, **one})
            self._say(self.hits[-1])

    async def search_log(self, ask: Ask, task: str) -> None:
        """Searches the log of the run, or what the job of a task wrote."""
        cursor, position = "", 0
        while self.room() > 0:
            wish = {**self.asked.wanted, **self.asked.log, "id": task, "cursor": cursor}
            step = await ask("log-search", {**wish, "count": min(STEP_HITS, self.room())})
            place = {name: step[name] for name in ("id", "submit", "attempt")}
            file = self.asked.log["file"] or "out" if step["id"] else RUN_LOG
            self.add(step["hits"], **place, file=file)
            self.bytes += step["searched"] - position
            cursor, position = step["cursor"], step["searched"]
            if step["done"]:
                self.files += 1
                return
        self.done = False

    async def search_task(
        self, client: AsyncClient, task: Task, stream: str, attempt: int
    ) -> None:
        """Searches what an attempt at a task of the queue wrote to one stream, if it did."""
        place = {"id": task.id, "submit": None, "attempt": attempt, "file": stream}
        cursor, position = "", 0
        while self.room() > 0:
            wish = {**self.asked.wanted, "cursor": cursor, "attempt": attempt}
            wish["count"] = min(STEP_HITS, self.room())
            step = await _step(client, task, stream, wish)
            if step is None:
                return
            self.add(cast("list[Document]", step["hits"]), **place)
            self.bytes += step["searched"] - position
            cursor, position = step["cursor"], step["searched"]
            if step["done"]:
                self.files += 1
                return
        self.done = False

    async def search_jobs(self, ask: Ask) -> None:
        """Searches what all jobs wrote, or those of some tasks, the newest job first."""
        cursor = ""
        only = {"file": self.asked.log["file"] or "", "task": self.asked.task or ""}
        while self.room() > 0:
            wish = {**self.asked.wanted, **only, "cursor": cursor}
            step = await ask("job-log-search", {**wish, "count": min(STEP_HITS, self.room())})
            self.add(step["hits"])
            self.files, self.bytes = self.files + step["files"], self.bytes + step["bytes"]
            self.missing += step["missing"]
            if step["done"]:
                return
            cursor = step["cursor"]
        self.done = False

    def document(self) -> Document:
        names = ("run", "hits", "files", "bytes", "missing", "done")
        return {name: getattr(self, name) for name in names}


async def _step(
    client: AsyncClient, task: Task, stream: str, wish: Document
) -> FileHits | None:
    """Returns what one step through a log finds, here or at the server that has it."""
    if isinstance(client.store, BringsLogs):
        return await client.store.search_task_log(task.id, stream, wish)
    from tidewheel.views.log_search import search_file

    home = home_directory()
    path = await log_path(client, task, stream, cast("int", wish["attempt"]))
    return await search_file(home / path.relative_to(home).parts[0], path, wish)


def search_logs(session: Session, words: Words, asked: LogSearch) -> None:
    """Prints every line that is searched for, and how much was searched."""

    def say_hit(hit: Document) -> None:
        if not session.as_json:
            say(_line(hit, asked))

    async def search(ask: Ask, target: Target) -> FoundLines:
        if len(target.rest) > 1:
            raise click.UsageError(f"one task at a time: {target.rest[0]} or {target.rest[1]}?")
        task = target.rest[0] if target.rest else ""
        if task and asked.task is not None:
            raise click.UsageError(f"give the task {task} or --task {asked.task}, not both")
        if not task:
            dropped = ("submit", "attempt") if asked.text else ("file", "submit", "attempt")
            refuse_without_task(target.run, *dropped)
        found = FoundLines(target.run, asked, say_hit)
        if asked.task is None:
            await found.search_log(ask, task)
        if not task and asked.text:
            await found.search_jobs(ask)
        return found

    _tell_found(session, _asked(session, words, search))


def search_queue_log(session: Session, word: str, asked: LogSearch) -> bool:
    """Prints the lines of the log of the task of the queue that a word names; returns False if
    it names none."""
    stream = _stream(asked.log["file"])

    def say_hit(hit: Document) -> None:
        if not session.as_json:
            say(_line(hit, asked))

    async def search(client: AsyncClient) -> FoundLines | None:
        try:
            task = await named_task(client, word)
        except NotFound:
            return None
        _refuse_submission(task)
        found = FoundLines(None, asked, say_hit)
        attempt = cast("int | None", asked.log["attempt"]) or max(1, task.attempt)
        for one in STREAMS if stream is None else (stream,):
            await found.search_task(client, task, one, attempt)
        found.missing = int(not found.files)
        return found

    found = session.ask(search)
    if found is None:
        return False
    _tell_found(session, found)
    return True


def _tell_found(session: Session, found: FoundLines) -> None:
    if session.as_json:
        say_json(found.document())
    else:
        note(_summary(found))


def _asked(
    session: Session, words: Words, search: Callable[[Ask, Target], Awaitable[FoundLines]]
) -> FoundLines:
    job = this_job(session)
    if job is None:

        async def near_or_far(runs: Runs) -> FoundLines:
            target = await find_target(runs, words)

            async def ask(name: str, arguments: Document) -> Document:
                return await runs.look(name, run=target.run, **arguments)

            return await search(ask, target)

        return with_runs(session, near_or_far)
    target = target_in_job(job.run, words)

    async def through_worker(name: str, arguments: Document) -> Document:
        return look(session, name, words, lambda _: arguments)

    async def in_job() -> FoundLines:
        return await search(through_worker, target)

    return asyncio.run(in_job())


def _line(hit: Document, asked: LogSearch) -> str:
    """Returns a line as it stands in the log; of a search with where it stands."""
    text = safe(hit["text"]) + (" …" if hit["cut"] else "")
    if not asked.text:
        return text
    where = RUN_LOG
    if hit["id"] and hit["submit"] is None:
        where = safe(f"{hit['id']} {hit['file']}")
    elif hit["id"]:
        where = safe(f"{hit['id']}/{hit['submit']:02d} {hit['file']}")
    return f"{where}:{hit['line']}: {text}"


def _summary(found: FoundLines) -> str:
    lines = plural(len(found.hits), "line") if found.hits else "no line"
    told = f"{lines} in {plural(found.files, 'log')}, {show_size(found.bytes)}"
    if found.missing:
        told += (
            f"; {plural(found.missing, 'attempt')} had no log here, and could not be searched"
        )
    if not found.done:
        told += f"; there may be more than {found.asked.limit}: use --limit N"
    return told
