"""Prints the lines of logs that have a text or a level, as each step of a search finds them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tidewheel.cli.output import note, plural, safe, say, say_json
from tidewheel.cli.runs.access import (
    Document,
    Target,
    find_target,
    look,
    target_in_job,
    this_job,
    with_runs,
)
from tidewheel.quantities import show_size

if TYPE_CHECKING:
    from tidewheel.cli.session import Session, Words
    from tidewheel.client.runs import Runs

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

    def __init__(self, run: str, asked: LogSearch, say_hit: Callable[[Document], None]) -> None:
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
            raise click.UsageError(f"either the log of {task}, or --task {asked.task}")
        found = FoundLines(target.run, asked, say_hit)
        if asked.task is None:
            await found.search_log(ask, task)
        if not task and asked.text:
            await found.search_jobs(ask)
        return found

    found = _asked(session, words, search)
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
    if hit["id"]:
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
        told += f"; there may be more than {found.asked.limit}: say --limit N"
    return told
