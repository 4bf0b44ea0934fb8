"""Shows the exception that ended a handler: what it was, where, and the last calls to there.

A runner keeps the traceback of a handler with the error of its attempt, as Python writes it.
Calls inside of libraries are left out, unless there are no others.
"""

from __future__ import annotations

import json
import re
from pathlib import PurePath
from typing import NamedTuple

from tidewheel.core.queue.task import TaskError

FRAMES_SHOWN_MAX = 3
_BEGIN = "Traceback (most recent call last):\n"
_FRAME = re.compile(r'^  File "(.+)", line (\d+), in (.+)\n((?:    .*\n)*)', re.MULTILINE)
_LIBRARY = re.compile(r"[/\\](?:(?:site|dist)-packages|lib[/\\]python3[^/\\]*)[/\\]|^<")
_MARKS = re.compile(r"^[ ~^]+$")  # below a line of code: which part of it


class TraceFrame(NamedTuple):
    """Holds one call of a traceback: the place, its function, and the line of code there."""

    path: str
    line: int
    function: str
    code: str

    @property
    def place(self) -> str:
        return f"{PurePath(self.path).name}:{self.line}"


def traceback_of(error: TaskError) -> str:
    """Returns the traceback that is kept with an error; "" if there is none."""
    facts = json.loads(error.args)
    found = facts.get("traceback") if isinstance(facts, dict) else None
    return found if isinstance(found, str) else ""


def last_frames(error: TaskError) -> list[TraceFrame]:
    """Returns the last calls before an exception, innermost last; [] if nothing is known."""
    last = traceback_of(error).rpartition(_BEGIN)[2]  # others are those that it came from
    frames = [
        TraceFrame(path, int(line), function, _first_line(code))
        for path, line, function, code in _FRAME.findall(last)
    ]
    own = [frame for frame in frames if not _LIBRARY.search(frame.path)]
    return (own or frames)[-FRAMES_SHOWN_MAX:]


def _first_line(code: str) -> str:
    lines = [line.strip() for line in code.splitlines() if not _MARKS.match(line)]
    return lines[0] if lines else ""


def error_text(error: TaskError) -> str:
    """Returns an error in one line; of an exception also its class and its place."""
    if not traceback_of(error):
        return error.description
    place = "".join(f" ({frame.place})" for frame in last_frames(error)[-1:])
    return f"{error.code}: {error.description}{place}"
