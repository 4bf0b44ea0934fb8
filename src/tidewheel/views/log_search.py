"""Searches the log of a run or of a job, and those of all its jobs, step by step.

A step is bounded (``log_scan``) and done in a thread; the cursor in its answer is where the
next one goes on. A cursor holds only numbers: somebody who changes one reads nothing that they
could not read in the log itself, since every file is opened as it is for reading.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from tidewheel.api.log_lines import LEVELS, JobLogHit, JobLogHits, LogHits, LogLinePlace
from tidewheel.core.operator.definition import JobName, read_job_name
from tidewheel.errors import Refused
from tidewheel.ports.runs import LogPlace
from tidewheel.services import paths
from tidewheel.views.log import JOB_FILES, asked_place
from tidewheel.views.log_scan import (
    Budget,
    LogPosition,
    Scanned,
    WantedLines,
    find_line,
    scan,
    wanted_lines,
)
from tidewheel.views.snapshot import AskedView

HITS_DEFAULT, HITS_MAX = 100, 1_000
PAGE = 200  # submissions that are read at once
SUBMISSIONS_MAX = 5_000  # that are looked at in one step
FILES_MAX = 500  # that are opened in one step
NUMBER_MAX = 2**62
STREAMS = ("out", "err")


async def log_search(asked: AskedView) -> LogHits:
    """Shows the lines of a log that one step of a search has found."""
    wanted, place = _wanted(asked), await asked_place(asked)
    start = LogPosition(*(_cursor(asked, 3) or LogPosition()))
    root, path = _root(asked), Path(place.path)
    found = await asyncio.to_thread(scan, root, path, wanted, _known(start), _budget(asked))
    if found is None:
        raise _not_here(asked, place)
    position = found.position
    return {
        "run": asked.run.name,
        "id": place.id,
        "submit": place.submit,
        "attempt": place.attempt,
        "hits": found.hits,
        "lines": position.lines,
        "searched": position.offset,
        "size": found.size,
        "cursor": _cursor_text(position),
        "done": found.done,
    }


async def log_line(asked: AskedView) -> LogLinePlace:
    """Shows where a line of a log begins, or in which line a byte is."""
    number, byte, place = asked.number("line"), asked.number("offset"), await asked_place(asked)
    if (number is None) == (byte is None) or number == 0:
        raise Refused("name either a line, from 1 on, or an offset")
    offset, lines, read = _cursor(asked, 3) or (0, 0, 0)
    found = await asyncio.to_thread(
        find_line,
        _root(asked),
        Path(place.path),
        (number, byte or 0),
        (LogPosition(offset, lines), max(offset, read)),
    )
    if found is None:
        raise _not_here(asked, place)
    return {
        "run": asked.run.name,
        "id": place.id,
        "submit": place.submit,
        "attempt": place.attempt,
        "line": found.line.lines + 1,
        "offset": found.line.offset,
        "size": found.size,
        "cursor": _cursor_text((*found.line[:2], found.read)),
        "done": found.done,
    }


def _not_here(asked: AskedView, place: LogPlace) -> Refused:
    what = f"{place.id or asked.run.name} has no file {Path(place.path).name} here"
    return Refused(f"{what} that can be searched; look on the host where it ran")


# Every log of every job, the newest job first.


class JobCursor(NamedTuple):
    """Says where a search in the logs of all jobs goes on: in which submission, by its seq, in
    which attempt and file, and where in that file."""

    seq: int
    attempt: int
    stream: int
    position: LogPosition


class JobSearch:
    """Is one step of a search in the logs of all jobs; what it has found, and where it is."""

    def __init__(self, asked: AskedView) -> None:
        self._asked, self._wanted, self._budget = asked, _wanted(asked), _budget(asked)
        self._file, self._task = asked.text("file"), asked.text("task")
        if self._file and self._file not in STREAMS:
            raise Refused(f"{self._file!r} is not searched; there are {', '.join(STREAMS)}")
        said = _cursor(asked, 6)
        self._start: JobCursor | None = None
        if said is not None:
            seq, attempt, stream, *position = said
            self._start = JobCursor(seq, attempt, stream, _known(LogPosition(*position)))
        self.hits: list[JobLogHit] = []
        self.files = self.bytes = self.missing = 0
        self.at, self.next = "", self._start

    async def take(self) -> None:
        """Searches until all is searched, or as much as one step may; `next` is None then if
        nothing is left."""
        before = None if self._start is None else self._start.seq + 1
        plain = self._task if self._task and not set("*?[/") & set(self._task) else None
        looked_at = 0
        while looked_at < SUBMISSIONS_MAX:
            page = await self._asked.store.submissions(
                self._asked.run.number, count=PAGE, before=before, name=plain
            )
            for one in page:
                job = read_job_name(one.task_id)
                self.at = f"{job.point}/{job.node}/{job.submit:02d}"
                if self._fits(job) and not await self._searched(one.seq, job, one.attempt):
                    return
                self.next = JobCursor(max(0, one.seq - 1), 0, 0, LogPosition())
                before = one.seq
            if len(page) < PAGE:
                self.next, self.at = None, ""
                return
            looked_at += len(page)

    def _fits(self, job: JobName) -> bool:
        whole = f"{job.point}/{job.node}" if "/" in self._task else job.node
        return not self._task or fnmatchcase(whole, self._task)

    async def _searched(self, seq: int, job: JobName, attempts: int) -> bool:
        """Searches what the attempts at a submission wrote, the latest first; returns False if
        the step is over before all of it is searched."""
        for attempt, streams, start in self._left(seq, attempts):
            self.next = JobCursor(seq, attempt, streams[0], start)
            if self._budget.is_spent or self.files >= FILES_MAX:
                return False
            folder = paths.submission_directory(self._asked.context.home, job, attempt)
            is_here = bool(start.offset)
            for stream in streams:
                begin = start if stream == streams[0] else LogPosition()
                path = folder / JOB_FILES[STREAMS[stream]]
                found = await asyncio.to_thread(
                    scan, _root(self._asked), path, self._wanted, begin, self._budget
                )
                if found is None:
                    continue
                is_here = True
                self._add(found, begin, job, attempt, STREAMS[stream])
                if not found.done:
                    self.next = JobCursor(seq, attempt, stream, found.position)
                    return False
            self.missing += not is_here
        return True

    def _left(self, seq: int, attempts: int) -> Iterator[tuple[int, list[int], LogPosition]]:
        """Yields the attempts that are left of a submission, with the files of each that are,
        and where the first of these goes on."""
        start = self._start
        here = start if start is not None and start.seq == seq and start.attempt else None
        first = attempts if here is None else min(attempts, here.attempt)
        for attempt in range(first, 0, -1):
            streams, begin = self._streams, LogPosition()
            if here is not None and attempt == here.attempt:
                streams = [one for one in streams if one >= here.stream] or streams
                begin = here.position if streams[0] == here.stream else begin
            yield attempt, streams, begin

    @property
    def _streams(self) -> list[int]:
        return [n for n, one in enumerate(STREAMS) if not self._file or one == self._file]

    def _add(
        self, found: Scanned, begin: LogPosition, job: JobName, attempt: int, stream: str
    ) -> None:
        self.files += 1
        self.bytes += max(0, found.position.offset - begin.offset)
        self.hits += [
            {
                **one,
                "id": f"{job.point}/{job.node}",
                "submit": job.submit,
                "attempt": attempt,
                "file": stream,
            }
            for one in found.hits
        ]


async def job_log_search(asked: AskedView) -> JobLogHits:
    """Shows the lines that one step of a search in the logs of all jobs has found."""
    step = JobSearch(asked)
    await step.take()
    return {
        "run": asked.run.name,
        "hits": step.hits,
        "files": step.files,
        "bytes": step.bytes,
        "missing": step.missing,
        "at": step.at or None,
        "cursor": None if step.next is None else _job_cursor_text(step.next),
        "done": step.next is None,
    }


# What they share: what is asked for, and cursors.


def _root(asked: AskedView) -> Path:
    return paths.runs_directory(asked.context.home)


def _wanted(asked: AskedView) -> WantedLines:
    case = bool(asked.arguments.get("case"))
    return wanted_lines(asked.text("text"), asked.text("match"), asked.text("level"), case=case)


def _budget(asked: AskedView) -> Budget:
    return Budget(min(asked.number("count") or HITS_DEFAULT, HITS_MAX))


def _known(position: LogPosition) -> LogPosition:
    return position._replace(rank=min(position.rank, len(LEVELS) - 1))


def _cursor(asked: AskedView, count: int) -> tuple[int, ...] | None:
    """Returns the numbers of a cursor; None if there is none."""
    text = asked.text("cursor")
    if not text:
        return None
    numbers = text.split(".")
    if len(numbers) != count or not all(re.fullmatch("[0-9]{1,19}", one) for one in numbers):
        raise Refused(f"{text!r} is not a cursor of this search; begin without one")
    return tuple(min(int(one), NUMBER_MAX) for one in numbers)


def _cursor_text(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


def _job_cursor_text(at: JobCursor) -> str:
    return _cursor_text((at.seq, at.attempt, at.stream, *at.position))
