"""Turns the commands of reasons, as the core writes them, into lines to copy and actions."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from tidewheel.api.runs import RunAction

PROGRAM = "tidewheel"


def actions(command: str) -> list[RunAction]:
    """Returns commands as REST takes them: a verb and its fields; `run` carries a run on."""
    return [_action(one.split()) for one in command.split(", or ") if one]


def _action(words: Sequence[str]) -> RunAction:
    found: RunAction = {"verb": words[0]}
    rest = iter(words[1:])
    for word in rest:
        match word:  # an option in the core's words, or an id
            case "--pre":
                found["prerequisites"] = [next(rest)]
            case "--out":
                found["outputs"] = next(rest).split(",")
            case "--flow":
                found["flow"] = next(rest)
            case "--reflow":
                found["flow"] = "new"
            case _:
                found["ids"] = [word]
    return found


def command_lines(run: str, command: str) -> list[str]:
    """Returns the commands of a reason as whole lines for people; the core writes several as
    `trigger 1/a, or set 1/a`."""
    lines = []
    for one in command.split(", or "):
        verb, _, rest = one.partition(" ")
        if verb:
            lines.append(f"{PROGRAM} {verb} {shlex.quote(run)} {rest}".rstrip())
    return lines
