"""Says what a line of a log tells of itself: its level, as programs commonly write it.

The page knows levels by the same pattern: ``web/write_types.py`` writes it down for it. A line
without a level belongs to the line before it that has one, as those of a traceback do; where
there is none, it is information.
"""

from __future__ import annotations

import re

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
