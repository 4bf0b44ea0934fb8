"""`cylc VERB …`: finds the verb, does it, and tells the outcome as Cylc's scripts expect it.

Exit status 0: done, or left undone by the run for a reason of its own, which Cylc would only
have logged; 1: refused, unavailable, or not true; 2: the words make no sense.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from tidewheel.cli.cylc.arguments import BadUsage, flag, read_arguments
from tidewheel.errors import Refused, TidewheelError

FAILED, USAGE = 1, 2
VERSION = "8.5.4"  # of Cylc: what these calls mean is what they mean there

ALIASES = {
    "cyclepoint": "cycle-point",
    "cycletime": "cycle-point",
    "datetime": "cycle-point",
    "get-cylc-version": "get-workflow-version",
    "log": "cat-log",
    "suite-state": "workflow-state",
    "task-message": "message",
}
OTHERS = ("cycle-point", "get-workflow-version", "message", "version", "workflow-state")


def main(arguments: Sequence[str]) -> int:
    """One call, and its exit status."""
    if not arguments:
        return _complain(f"cylc: which command? There are {', '.join(_verbs())}", USAGE)
    if arguments[0] in ("--version", "-V"):
        return _print(VERSION)
    verb = arguments[0]
    try:
        verb = _verb(arguments[0])
        return _do(verb, arguments[1:])
    except BadUsage as bad:
        return _complain(str(bad), USAGE)
    except Refused as refused:
        declined = refused.code == "declined" and _is_queued(verb)
        return _complain(f"cylc {verb}: {refused}", 0 if declined else FAILED)
    except TidewheelError as error:
        return _complain(f"cylc {verb}: {error}", FAILED)


def _verbs() -> list[str]:
    from tidewheel.cli.cylc.commands import VERBS
    from tidewheel.cli.cylc.inspect import LOOKS

    return sorted({*VERBS, *LOOKS, *OTHERS})


def _verb(word: str) -> str:
    """Aliases, and beginnings of verbs that could be no other."""
    from tidewheel.cli.cylc import commands

    verbs = _verbs()
    word = (ALIASES | commands.ALIASES).get(word, word)
    if word in verbs:
        return word
    meant = [one for one in verbs if one.startswith(word)]
    if len(meant) == 1:
        return meant[0]
    could = ", ".join(meant or verbs)
    raise BadUsage(f"cylc {word}: there is no such command inside a job; there is {could}")


def _is_queued(verb: str) -> bool:
    from tidewheel.cli.cylc.commands import VERBS

    return verb in VERBS and VERBS[verb].is_queued


def _do(verb: str, arguments: Sequence[str]) -> int:
    from tidewheel.cli.cylc.commands import VERBS
    from tidewheel.cli.cylc.inspect import LOOKS

    if verb in VERBS:
        return _command(verb, arguments)
    if verb in LOOKS:
        return _print(LOOKS[verb].text(read_arguments(verb, LOOKS[verb].options, arguments)))
    if verb == "workflow-state":
        from tidewheel.cli.cylc import inspect

        lines, status = inspect.workflow_state(
            read_arguments(verb, inspect.OPTIONS, _signed(arguments))
        )
        _print("\n".join(lines))
        return status
    if verb == "cycle-point":
        from tidewheel.cli.cylc import cycle_point

        text, status = cycle_point.cycle_point(
            read_arguments(verb, cycle_point.OPTIONS, _signed(arguments))
        )
        _print(text)
        return status
    if verb == "message":
        from tidewheel.cli.cylc.message import message

        return message(arguments)
    read_arguments(verb, (flag("--long"),), arguments)
    return _print(VERSION)


def _command(verb: str, arguments: Sequence[str]) -> int:
    from tidewheel.cli.cylc.client import give
    from tidewheel.cli.cylc.commands import VERBS
    from tidewheel.cli.cylc.inspect import display_broadcasts

    said = read_arguments(verb, VERBS[verb].options, arguments)
    if verb == "broadcast" and ("display" in said or "display-task" in said):
        return _print(display_broadcasts(said))
    workflow, command = VERBS[verb].command(said)
    answer = give(workflow, command, wait=not VERBS[verb].is_queued)
    return _tell_broadcast(answer) if verb == "broadcast" else 0


def _tell_broadcast(answer: dict[str, Any]) -> int:
    """Prints what was set and taken back; to take back what is not there is a failure."""
    rows = sorted(answer["broadcasts"], key=lambda row: (row["point"], row["namespace"]))
    for sign, title, field in (("+", "set", "value"), ("-", "cancelled", "was")):
        found = [row for row in rows if (row["value"] is None) == (sign == "-")]
        if found:
            _print(f"Broadcast {title}:")
        for row in found:
            where = f"{row['point']}/{row['namespace']}"
            _print(f"{sign} [{where}] {row['setting']}={row[field]}")
    if rows:
        return 0
    return _complain("cylc broadcast: nothing like that was broadcast, so nothing is gone", 1)


def _signed(arguments: Sequence[str]) -> list[str]:
    """`--offset -P1D`: the value is no option of its own."""
    joined: list[str] = []
    for word in arguments:
        if joined and joined[-1].startswith("--offset") and "=" not in joined[-1]:
            joined[-1] = f"{joined[-1]}={word}"
        else:
            joined.append(word)
    return joined


def _print(text: str) -> int:
    if text:
        print(text)  # noqa: T201 - click would be most of the cost
    return 0


def _complain(text: str, status: int) -> int:
    print(text, file=sys.stderr)  # noqa: T201 - as above
    return status
