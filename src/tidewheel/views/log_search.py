"""Finds lines in logs of runs, of jobs and of tasks, one bounded step at a time.

A step reads some megabytes from a position on, for half a second at most, in a thread, and
returns the position from which the next one goes on: nothing is remembered in between, so any
process may take the next step, and a caller that goes away leaves nothing behind. A cursor
holds only numbers: somebody who changes one reads nothing that they could not read in the log
itself, since every file is opened as it is for reading.

What is searched for is compared as text. Of patterns there is only the *, which stands for any
letters: the texts between them are looked for one behind the other, so that no pattern and
no log can make a step take longer than its length (a regular expression could). A line is
compared as a terminal would show it: without colours and other control sequences, and with only
the last writing of a line that was written over. So is it in the page (``views/logs/ansi.ts``).

A line that is longer than a chunk is searched chunk by chunk, each with some bytes of the one
before it.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import cast

from tidewheel.api.log_lines import (
    LEVEL_WORDS,
    LEVELS,
    PLAIN_RANK,
    FileHits,
    JobLogHit,
    JobLogHits,
    LogHit,
    LogHits,
    LogLinePlace,
    level_of,
    rank_of,
)
from tidewheel.api.views import TEXT_LENGTH_MAX
from tidewheel.core.operator.definition import JobName, read_job_name
from tidewheel.errors import Refused
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.ports.runs import Arguments, LogPlace
from tidewheel.services import paths
from tidewheel.views.log import JOB_FILES, LogPiece, asked_place, opened_pieces, read_pieces
from tidewheel.views.run_facts import read_number, read_text
from tidewheel.views.snapshot import AskedView

HITS_DEFAULT, HITS_MAX = 100, 1_000
PAGE = 200  # submissions that are read at once
SUBMISSIONS_MAX = 5_000  # that are looked at in one step
FILES_MAX = 500  # that are opened in one step
NUMBER_MAX = 2**62
STREAMS = ("out", "err")


async def log_search(asked: AskedView) -> LogHits:
    """Shows the lines of a log that one step of a search has found."""
    place = await asked_place(asked)
    found = await search_file(_root(asked), Path(place.path), asked.arguments)
    if found is None:
        raise _not_here(asked, place)
    facts = {"id": place.id, "submit": place.submit, "attempt": place.attempt}
    return cast("LogHits", {"run": asked.run.name, **facts, **found})


async def search_file(root: Path, path: Path, given: Arguments) -> FileHits | None:
    """Returns what one step of a search in a file below a folder finds; None if there is no
    such file."""
    wanted, start = _wanted(given), LogPosition(*(_cursor(given, 3) or LogPosition()))
    found = await asyncio.to_thread(scan, root, path, wanted, _known(start), _budget(given))
    if found is None:
        return None
    position = found.position
    return {
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
        raise Refused("give either a line (1 or more) or an offset")
    offset, lines, read = _cursor(asked.arguments, 3) or (0, 0, 0)
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
        self._asked, self._wanted, self._budget = (
            asked,
            _wanted(asked.arguments),
            _budget(asked.arguments),
        )
        self._file, self._task = asked.text("file"), asked.text("task")
        if self._file and self._file not in STREAMS:
            raise Refused(f"file is {self._file!r}; expected {' or '.join(STREAMS)}")
        said = _cursor(asked.arguments, 6)
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


def _wanted(given: Arguments) -> WantedLines:
    text, match, level = (read_text(given, name) for name in ("text", "match", "level"))
    return wanted_lines(text, match, level, case=bool(given.get("case")))


def _budget(given: Arguments) -> Budget:
    return Budget(min(read_number(given, "count") or HITS_DEFAULT, HITS_MAX))


def _known(position: LogPosition) -> LogPosition:
    return position._replace(rank=min(position.rank, len(LEVELS) - 1))


def _cursor(given: Arguments, count: int) -> tuple[int, ...] | None:
    """Returns the numbers of a cursor; None if there is none."""
    text = read_text(given, "cursor")
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


# ---- one step through one file ----

STEP_BYTES_MAX = 32_000_000
STEP_SECONDS_MAX = 0.5
CHUNK_BYTES = 256 * 1024
OVERLAP_BYTES = 4 * TEXT_LENGTH_MAX  # a letter has four bytes at most
ANY_RANK = -1
SHOWN_LENGTH_MAX = 500  # letters of a line that was found
SHOWN_BEFORE = 100  # of these, before what was found

# As the page has it: strings for the terminal, commands with a final letter, short ones.
_SEQUENCE = re.compile(
    r"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|\x1b[ -/]*[0-~]?"
)
_CONTROLS = re.compile(r"[\x1b\x90-\x9f\r]")


class WantedLines(NamedTuple):
    """Holds what lines are searched for: texts that follow each other in a line, and the place
    of the least level among all; ANY_RANK: levels are not looked at."""

    pieces: tuple[str, ...]
    case: bool
    rank: int

    def found_at(self, text: str) -> int:
        """Returns where in a line the texts begin; -1 if it has not all of them."""
        here = text if self.case else text.lower()
        begin = at = here.find(self.pieces[0]) if self.pieces else 0
        for before, piece in zip(self.pieces, self.pieces[1:], strict=False):
            if at >= 0:
                at = here.find(piece, at + len(before))
        return begin if at >= 0 else -1

    @property
    def key(self) -> bytes | None:
        """Returns bytes that every line with these texts has, letters in lower case unless case
        counts; None if there are none that can be told without reading the letters."""
        if self.rank > ANY_RANK or not self.pieces:
            return None
        longest = max(self.pieces, key=len)
        return longest.encode() if self.case or longest.isascii() else None


def wanted_lines(text: str, match: str, level: str, *, case: bool) -> WantedLines:
    """Returns what is searched for; raises Refused for a text that no line can have."""
    if len(text) > TEXT_LENGTH_MAX:
        raise Refused(
            f"the text has {len(text)} characters; search for at most {TEXT_LENGTH_MAX}"
        )
    if "\n" in text:
        raise Refused("the text has more than one line; search for a part of one line")
    if level and level.lower() not in LEVEL_WORDS:
        raise Refused(f"level is {level!r}; expected {', '.join(LEVEL_WORDS)}")
    said = text if case else text.lower()
    pieces = tuple(filter(None, said.split("*") if match == "glob" else [said]))
    if text and not pieces:
        raise Refused(f"{text!r} matches every line; write some text next to the *")
    if not pieces and not level:
        raise Refused("nothing to search for; give a text or a level")
    return WantedLines(pieces, case, LEVEL_WORDS.index(level.lower()) if level else ANY_RANK)


class LogPosition(NamedTuple):
    """Says up to where a log was read: the byte, how many lines ended before it, and the place
    of the level of the last line among all."""

    offset: int = 0
    lines: int = 0
    rank: int = PLAIN_RANK


class Budget:
    """Counts what a step may still read and find."""

    def __init__(self, hits: int) -> None:
        self.hits, self.bytes = hits, STEP_BYTES_MAX
        self._until = time.monotonic() + STEP_SECONDS_MAX

    @property
    def is_spent(self) -> bool:
        return self.hits <= 0 or self.bytes <= 0 or time.monotonic() >= self._until


class Scanned(NamedTuple):
    """Holds what a step has found in one log; `done`: there is nothing behind its position."""

    hits: list[LogHit]
    position: LogPosition
    size: int
    done: bool


def scan(
    root: Path, path: Path, wanted: WantedLines, start: LogPosition, budget: Budget
) -> Scanned | None:
    """Searches a log from a position on, until its end or until the budget is spent; the budget
    is charged. Returns None if there is no plain file below the root."""
    try:
        with opened_pieces(root, path) as pieces:
            return _scan(pieces, wanted, start, budget)
    except (OSError, Refused):
        return None


def _scan(
    pieces: Sequence[LogPiece], wanted: WantedLines, start: LogPosition, budget: Budget
) -> Scanned:
    hits: list[LogHit] = []
    here = start
    while True:
        content, offset, size = read_pieces(pieces, here.offset, CHUNK_BYTES)
        budget.bytes -= len(content)
        here = here._replace(offset=offset)  # what was before it may be gone by now
        is_last = offset + len(content) >= size
        whole = content.rfind(b"\n") + 1
        if not content or (is_last and not whole):
            whole = 0
        # The last line may go on, so the next step reads it again.
        portion = content if is_last or not whole else content[:whole]
        found, stopped = _found(portion, here, wanted, budget.hits)
        hits += [one for one in found if not hits or one["line"] != hits[-1]["line"]]
        budget.hits -= len(found)
        if budget.hits <= 0 and stopped.offset < offset + len(portion):
            return Scanned(hits, stopped, size, done=False)
        if is_last:
            end = _after(content[:whole], here, wanted)
            return Scanned(hits, end, size, done=True)
        if whole:
            here = stopped
        else:  # within one long line
            here = here._replace(offset=offset + max(1, len(content) - OVERLAP_BYTES))
        if budget.is_spent:
            return Scanned(hits, here, size, done=False)


def _found(
    content: bytes, start: LogPosition, wanted: WantedLines, hits_max: int
) -> tuple[list[LogHit], LogPosition]:
    """Returns the lines of some bytes, which begin with a line, that are wanted, and the
    position behind the last line that was looked at."""
    key = wanted.key
    if key is not None and not _has_controls(content):
        return _found_by_key(content, key, start, wanted, hits_max)
    hits: list[LogHit] = []
    has_levels = wanted.rank > ANY_RANK
    offset, lines, rank = start
    for line in content.split(b"\n"):
        text = shown_line(line)
        rank = rank_of(text, rank) if has_levels else rank
        # Behind the last line end there is no line.
        is_one = offset < start.offset + len(content)
        if is_one and rank >= wanted.rank and (at := wanted.found_at(text)) >= 0:
            hits.append(_hit(text, at, LogPosition(offset, lines, rank), is_own=not has_levels))
        offset, lines = offset + len(line) + 1, lines + 1
        if len(hits) >= hits_max:
            break
    end = start.offset + len(content)
    if offset > end:  # the last line has no end, or there was none
        return hits, LogPosition(end, lines - 1, rank)
    return hits, LogPosition(offset, lines, rank)


def _found_by_key(
    content: bytes, key: bytes, start: LogPosition, wanted: WantedLines, hits_max: int
) -> tuple[list[LogHit], LogPosition]:
    """Does the same where the bytes of a text can be looked for, which is far quicker."""
    here = content if wanted.case else content.lower()
    hits: list[LogHit] = []
    counted = at = lines = 0
    while len(hits) < hits_max and (place := here.find(key, at)) >= 0:
        begin = here.rfind(b"\n", 0, place) + 1
        end = here.find(b"\n", place)
        end = len(content) if end < 0 else end
        lines += here.count(b"\n", counted, begin)
        counted, at = begin, end + 1
        text = shown_line(content[begin:end])
        if (where := wanted.found_at(text)) >= 0:
            known = LogPosition(start.offset + begin, start.lines + lines, start.rank)
            hits.append(_hit(text, where, known, is_own=True))
    behind = min(at, len(content)) if len(hits) >= hits_max else len(content)
    lines += here.count(b"\n", counted, behind)
    return hits, LogPosition(start.offset + behind, start.lines + lines, start.rank)


def _has_controls(content: bytes) -> bool:
    # 0xc2 is the first byte of those control characters that a terminal would obey beside ESC.
    return b"\x1b" in content or b"\r" in content or b"\xc2" in content


def _after(content: bytes, start: LogPosition, wanted: WantedLines) -> LogPosition:
    """Returns the position behind whole lines, with the level of the last of them."""
    lines, rank = content.count(b"\n"), start.rank
    if wanted.rank > ANY_RANK:
        for line in content.split(b"\n")[:-1]:
            rank = rank_of(shown_line(line), rank)
    return LogPosition(start.offset + len(content), start.lines + lines, rank)


def _hit(text: str, at: int, where: LogPosition, *, is_own: bool) -> LogHit:
    level = level_of(text)  # where levels are not looked at, only its own is known
    if level is None and not is_own and where.rank != PLAIN_RANK:
        level = LEVELS[where.rank]
    begin = max(0, at - SHOWN_BEFORE) if len(text) > SHOWN_LENGTH_MAX else 0
    part = text[begin : begin + SHOWN_LENGTH_MAX]
    return {
        "line": where.lines + 1,
        "offset": where.offset,
        "level": level,
        "text": part,
        "cut": len(part) < len(text),
    }


def shown_line(line: bytes) -> str:
    """Returns a line as a terminal would show it, without what a terminal would obey."""
    text = line.decode(errors="replace")
    if not _CONTROLS.search(text):
        return text
    writings = [part for part in text.split("\r") if part]
    return _SEQUENCE.sub("", writings[-1]) if writings else ""


class LineBegin(NamedTuple):
    """Says where a line begins; if it is not `done`, where the last line begins up to which it
    was counted, and up to which byte (`read`)."""

    line: LogPosition
    read: int
    size: int
    done: bool


def find_line(
    root: Path, path: Path, sought: tuple[int | None, int], start: tuple[LogPosition, int]
) -> LineBegin | None:
    """Finds where a line begins, or the line in which a byte is: `sought` is a number from 1 on
    and a byte, which counts if there is no number. Behind the end, that is the last line.
    `start` is what an earlier step came to. Returns None if there is no plain file."""
    try:
        with opened_pieces(root, path) as pieces:
            return _find_line(pieces, *sought, *start)
    except (OSError, Refused):
        return None


def _find_line(
    pieces: Sequence[LogPiece], number: int | None, byte: int, line: LogPosition, read: int
) -> LineBegin:
    budget, before = Budget(1), line
    while True:
        content, offset, size = read_pieces(pieces, read, CHUNK_BYTES)
        budget.bytes -= len(content)
        if not content:  # behind the last line end there is no line
            is_empty = number is not None and line.offset >= size
            return LineBegin(before if is_empty else line, read, size, done=True)
        if not line.lines:
            line = line._replace(offset=max(line.offset, read_pieces(pieces, 0, 1)[1]))
        until = len(content) if number is not None else min(len(content), byte - offset)
        ends = content.count(b"\n", 0, max(0, until))
        if number is not None and line.lines + ends >= number - 1:
            return LineBegin(_nth(content, offset, line, number - 1), read, size, done=True)
        if ends:
            last = content.rfind(b"\n", 0, until) + 1
            inner = content.rfind(b"\n", 0, last - 1) + 1
            lines = line.lines + ends
            before = LogPosition(offset + inner, lines - 1) if inner else line
            line = LogPosition(offset + last, lines)
        read = offset + len(content)
        if number is None and read >= byte:
            return LineBegin(line, read, size, done=True)
        if budget.is_spent:
            return LineBegin(line, read, size, done=False)


def _nth(content: bytes, offset: int, line: LogPosition, lines: int) -> LogPosition:
    """Returns the position behind so many lines, of which those in the content are counted."""
    place = -1
    for _ in range(lines - line.lines):
        place = content.find(b"\n", place + 1)
    return line if place < 0 else LogPosition(offset + place + 1, lines)
