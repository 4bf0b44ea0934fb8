"""Checks the names of tasks, families, outputs, messages, variables and xtriggers."""

from __future__ import annotations

import re

from tidewheel.core.graph.outputs import FINISHED, SHORT_FORMS, STANDARD

RESERVED_PREFIX = "_cylc"

_TASK = re.compile(r"\w[\w\-+%@]*")
_OUTPUT = re.compile(r"[\w\-]+")
_VARIABLE = re.compile(r"[a-zA-Z_]\w*")
_XTRIGGER = re.compile(r"[a-zA-Z0-9_]+")
_BASES = ("succeed", "fail", "finish", "start", "submit", "submit-fail", "expire")
QUALIFIERS = frozenset(
    {*STANDARD, FINISHED, *SHORT_FORMS}
    | {f"{base}-{kind}" for base in _BASES for kind in ("all", "any")}
)
# Words with a meaning of their own where outputs are named.
RESERVED_OUTPUTS = frozenset(
    {*QUALIFIERS, "required", "optional", "all", "and", "or", "skip"}
    | {"waiting", "preparing", "running"}
)


def task_name_problem(name: str) -> str:
    """Says why this cannot be the name of a task or family; empty if it can."""
    if not _TASK.fullmatch(name):
        return "names have letters, digits and _ - + % @, and begin with a letter, digit or _"
    if name.startswith(RESERVED_PREFIX):
        return f"names that begin with {RESERVED_PREFIX} are reserved"
    return ""


def output_name_problem(name: str) -> str:
    if not _OUTPUT.fullmatch(name):
        return "outputs have letters, digits, _ and -"
    if name in RESERVED_OUTPUTS:
        return "that word has a meaning of its own; choose another"
    if name.startswith(RESERVED_PREFIX):
        return f"outputs that begin with {RESERVED_PREFIX} are reserved"
    return ""


def message_problem(message: str) -> str:
    """A colon is for a severity in front: `WARNING: text`."""
    if not message:
        return "write the text that the job sends when it has made the output"
    first, colon, _ = message.partition(":")
    if colon and not re.fullmatch(r"\w+", first):
        return "a colon may only follow the first word, which is then a severity"
    if message in QUALIFIERS:
        return "that is the message of a standard output; choose another"
    if message.startswith(RESERVED_PREFIX):
        return f"messages that begin with {RESERVED_PREFIX} are reserved"
    return ""


def variable_name_problem(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        return "variables have letters, digits and _, and do not begin with a digit"
    return ""


def xtrigger_name_problem(name: str) -> str:
    if not _XTRIGGER.fullmatch(name):
        return "xtriggers have letters, digits and _"
    if name.startswith(RESERVED_PREFIX):
        return f"xtriggers that begin with {RESERVED_PREFIX} are reserved"
    return ""
