"""Describes lines of logs: their level, as programs commonly write it, and what is found.

The page knows levels by the same pattern: ``web/write_types.py`` writes it down for it. A line
without a level belongs to the line before it that has one, as those of a traceback do; where
there is none, it is information.
"""

from __future__ import annotations

import re
from typing import TypedDict

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")  # the least first
LEVEL_WORDS = tuple(level.lower() for level in LEVELS)  # as people ask for them
SAME_LEVELS = {"WARN": "WARNING", "FATAL": "CRITICAL"}
PLAIN_RANK = LEVELS.index("INFO")
HEAD_LENGTH = 100  # of a line, in which its level stands

# The level comes first, or behind something that begins with a digit, which is a time: the
# words "no ERROR was found" have no level. What may be in between is short and has no choice
# but its length, so that no line can make it take long. Python and JavaScript read it alike.
LEVEL_PATTERN = (
    r"^(?:[\[(<]?[0-9].{0,60}?[\s\[(<|:-])?[\[(<]?"
    r"(DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL)(?![A-Za-z0-9_])"
)
_LEVEL = re.compile(LEVEL_PATTERN)


def level_of(line: str) -> str | None:
    """Returns the level that a line names; None if it names none."""
    found = _LEVEL.match(line[:HEAD_LENGTH])
    return None if found is None else SAME_LEVELS.get(found[1], found[1])


def rank_of(line: str, before: int) -> int:
    """Returns the place of a line's level among all, where ``before`` is that of the line
    before it."""
    level = level_of(line)
    return before if level is None else LEVELS.index(level)


# ---- what is found ----


class LogHit(TypedDict):
    """Describes a line that was found: its number, where it begins in the file, its level, and
    its text as a terminal would show it.

    A line without a level has the `level` of the last line before it that has one; null if
    there is none. `cut`: `text` is only the part of the line around what was found.
    """

    line: int
    offset: int
    level: str | None
    text: str
    cut: bool


class FileHits(TypedDict):
    """Holds what one step of a search in a file has found, in the order of the file.

    `searched`: how many of the `size` bytes were searched. Send `cursor` to continue there;
    `done`: the end is reached, and the cursor is for lines that are written later.
    """

    hits: list[LogHit]
    lines: int
    searched: int
    size: int
    cursor: str
    done: bool


class LogHits(FileHits):
    """Holds what one step of a search in the log of a run, or of one of its jobs, has found."""

    run: str
    id: str | None
    submit: int | None
    attempt: int | None


class LogLinePlace(TypedDict):
    """Says at which byte (`offset`) a line of a log begins.

    If `done` is false, the line was not reached yet: `line` and `offset` say how far the lines
    were counted; send `cursor` to continue from there. If the log ends before the line or the
    byte that was asked for, the answer is about its last line.
    """

    run: str
    id: str | None
    submit: int | None
    attempt: int | None
    line: int
    offset: int
    size: int
    cursor: str
    done: bool


class JobLogHit(LogHit):
    """Describes a line that was found in the log of a job of a run."""

    id: str
    submit: int
    attempt: int
    file: str


class JobLogHits(TypedDict):
    """Holds what one step of a search in the logs of all jobs of a run has found, newest job
    first.

    `files` and `bytes` say how much this step has read, `missing` how many attempts have no log
    here that could be read, `at` which job comes next. `done`: all logs were searched.
    """

    run: str
    hits: list[JobLogHit]
    files: int
    bytes: int
    missing: int
    at: str | None
    cursor: str | None
    done: bool
