"""Runs `cylc VERB …`: does what the verb says and tells the outcome as Cylc's scripts expect.

Calls that ask something of a run are rows of `cli/verbs.py`, each read as the one command that
it means here. Exit status 0: done, or left undone by the run for a reason of its own, which
Cylc would only have logged; 1: refused, unavailable, or not true; 2: the words make no sense.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from tidewheel.cli.cylc import inspect
from tidewheel.cli.cylc.arguments import (
    Arguments,
    BadUsage,
    Option,
    options,
    read_arguments,
    read_ids,
)
from tidewheel.cli.cylc.inspect import give
from tidewheel.cli.cylc.message import FAILED, USAGE, message
from tidewheel.cli.verbs import ROWS, CylcCall, Verb
from tidewheel.core.operator.verbs import VERBS as COMMANDS
from tidewheel.core.operator.verbs import Broadcast, Command, ExtTrigger, Stop
from tidewheel.errors import TidewheelError
from tidewheel.lazy_dataclasses import NamedTuple

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
    """Makes one call; returns its exit status."""
    if not arguments:
        return _complain(f"cylc: no command is given; use one of: {', '.join(_verbs())}", USAGE)
    if arguments[0] in ("--version", "-V"):
        return _print(VERSION)
    verb = arguments[0]
    try:
        verb = _verb(arguments[0])
        return _do(verb, arguments[1:])
    except BadUsage as bad:
        return _complain(str(bad), USAGE)
    except TidewheelError as error:
        declined = error.code == "declined" and verb in VERBS and VERBS[verb].is_queued
        return _complain(f"cylc {verb}: {error}", 0 if declined else FAILED)


def _verbs() -> list[str]:
    return sorted({*VERBS, *inspect.LOOKS, *OTHERS})


def _verb(word: str) -> str:
    """Returns the verb that a word means: itself, an alias, or the beginning of only one verb.
    Raises BadUsage for any other word."""
    verbs = _verbs()
    word = (ALIASES | CALL_ALIASES).get(word, word)
    if word in verbs:
        return word
    meant = [one for one in verbs if one.startswith(word)]
    if len(meant) == 1:
        return meant[0]
    could = ", ".join(meant or verbs)
    raise BadUsage(f"cylc {word}: there is no such command inside a job; use one of: {could}")


def _do(verb: str, arguments: Sequence[str]) -> int:
    if verb in VERBS:
        return _command(verb, arguments)
    if verb in inspect.LOOKS:
        known, text_of = inspect.LOOKS[verb]
        return _print(text_of(read_arguments(verb, known, arguments)))
    if verb == "workflow-state":
        said = read_arguments(verb, inspect.OPTIONS, _signed(arguments))
        lines, status = inspect.workflow_state(said)
        _print("\n".join(lines))
        return status
    if verb == "cycle-point":
        from tidewheel.cli.cylc import cycle_point

        said = read_arguments(verb, cycle_point.OPTIONS, _signed(arguments))
        text, status = cycle_point.cycle_point(said)
        _print(text)
        return status
    if verb == "message":
        return message(arguments)
    read_arguments(verb, options("--long"), arguments)
    return _print(VERSION)


def _command(verb: str, arguments: Sequence[str]) -> int:
    said = read_arguments(verb, VERBS[verb].options, arguments)
    if verb == "broadcast" and ("display" in said or "display-task" in said):
        return _print(inspect.display_broadcasts(said))
    workflow, command = VERBS[verb].command(said)
    answer = give(workflow, command, wait=not VERBS[verb].is_queued)
    return _tell_broadcast(answer) if verb == "broadcast" else 0


def _tell_broadcast(answer: dict[str, Any]) -> int:
    """Prints what was set and what was cancelled; returns the exit status. That is 1 if there
    was nothing to cancel."""
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
    return _complain("cylc broadcast: no such setting was broadcast; nothing was cancelled", 1)


def _signed(arguments: Sequence[str]) -> list[str]:
    """Joins `--offset -P1D` to one word, so that its value is not read as another option."""
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


# ---- calls that ask something of a run ----


class CylcVerb(NamedTuple):
    """Describes a verb of Cylc: its options, and how its words become a run and a command."""

    options: tuple[Option, ...]
    command: Callable[[Arguments], tuple[str, Command]]
    is_queued: bool = False


def _command_of(verb: Verb, call: CylcCall, said: Arguments) -> tuple[str, Command]:
    """Returns the workflow and the command that a call means. The fields of the command are
    filled from the options that the verb has here as well."""
    name, kind = call.name or verb.name, COMMANDS[verb.name]
    types = {one.name: str(one.type) for one in fields(kind)}
    given = dict(call.always)
    for option in options(call.options):
        meant = [one for one in verb.options if {*one.names.split()} & {*option.names}]
        if meant and option.key in said:
            given[meant[0].field] = _value(said, option, meant[0].field, types, call)
    ids = read_ids(name, said.words)
    if "ids" not in types or verb.replaces_ids in given:
        return ids.workflow, kind(**given)  # type: ignore[arg-type]
    if not ids.within:
        raise BadUsage(f"cylc {name}: which tasks? Write cylc {name} WORKFLOW//POINT/NAME")
    return ids.workflow, kind(ids=ids.within, **given)  # type: ignore[call-arg, arg-type]


def _value(
    said: Arguments, option: Option, field: str, types: Mapping[str, str], call: CylcCall
) -> object:
    if not option.takes:
        return True
    if types[field].startswith("tuple"):
        return tuple(one for one in said.parts(option.key) if one not in call.idle_values)
    # Flows may be given one by one.
    return ",".join(said.parts(option.key)) if field == "flow" else said.last(option.key)


def _stop(said: Arguments) -> tuple[str, Command]:
    ids = read_ids("stop", said.words)
    if len(ids.within) > 1:
        raise BadUsage("cylc stop: name one point or one task to stop after")
    flow = said.last("flow")
    if flow and not flow.isdecimal():
        raise BadUsage(f"cylc stop: --flow takes a number, not {flow!r}")
    if ids.within:
        where = ids.within[0]
        if "/" in where or "." in where:
            return ids.workflow, Stop(after_task=where)
        return ids.workflow, Stop(at_point=where)
    if flow:
        return ids.workflow, Stop(flow=int(flow))
    if "wall-clock" in said:
        return ids.workflow, Stop(at_time=said.last("wall-clock"))
    mode = "kill" if "kill" in said else "now" if "now" in said else "clean"
    return ids.workflow, Stop(mode=mode)


def _broadcast(said: Arguments) -> tuple[str, Command]:
    workflow = read_ids("broadcast", said.words).workflow
    points, namespaces = said.options.get("point", []), said.options.get("namespace", [])
    if "expire" in said:
        return workflow, Broadcast(expire=said.last("expire"))
    settings, cancel = _items(said, "set"), _items(said, "cancel")
    if not settings and not cancel and "clear" not in said:
        raise BadUsage("cylc broadcast: nothing to do; write -s '[environment]NAME=VALUE'")
    return workflow, Broadcast(
        points=tuple(points) or ("*",),
        namespaces=tuple(namespaces) or ("root",),
        settings=tuple(settings),
        cancel=tuple(one.partition("=")[0] for one in cancel),
        clear="clear" in said,
    )


def _items(said: Arguments, name: str) -> list[str]:
    files = said.options.get(f"{name}-file", ())
    return [*said.options.get(name, ()), *(one for path in files for one in _file_items(path))]


def _ext_trigger(said: Arguments) -> tuple[str, Command]:
    if len(said.words) not in (2, 3):
        raise BadUsage("cylc ext-trigger: write cylc ext-trigger WORKFLOW MESSAGE [ID]")
    workflow, message, *trigger_id = said.words
    return workflow, ExtTrigger(message=message, trigger_id="".join(trigger_id))


# Verbs whose words mean more than their options say.
_READERS: dict[str, Callable[[Arguments], tuple[str, Command]]] = {
    "stop": _stop,
    "broadcast": _broadcast,
    "ext-trigger": _ext_trigger,
}


_CALLS = [(verb, verb.cylc) for verb in ROWS if verb.cylc is not None]
VERBS = {
    call.name or verb.name: CylcVerb(
        options(call.options),
        _READERS.get(verb.name) or partial(_command_of, verb, call),
        call.is_queued,
    )
    for verb, call in _CALLS
}
CALL_ALIASES = {
    alias: call.name or verb.name for verb, call in _CALLS for alias in call.aliases
}


# ---- `cylc broadcast --set-file FILE`: sections and items as in flow.cylc ----

_SECTION = re.compile(r"(\[+)\s*([^\[\]]+?)\s*\]+")
_LONG = ('"""', "'''")


def _file_items(path: str) -> Iterator[str]:
    """Yields each item of a file (`-`: standard input) as `[SECTION]ITEM=VALUE`."""
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text("utf-8")
    except OSError as error:
        raise BadUsage(f"cylc broadcast: {path}: {error.strerror}") from None
    sections: list[str] = []
    rest = iter(text.splitlines())
    for line in rest:
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        section = _SECTION.fullmatch(stripped)
        if section is not None:
            sections = [*sections[: len(section[1]) - 1], section[2]]
            continue
        item, equals, value = (part.strip() for part in stripped.partition("="))
        quotes = value[:3]
        if quotes in _LONG and value.count(quotes) == 1:
            for following in rest:
                value += f"\n{following}"
                if quotes in following:
                    break
        yield "".join(f"[{one}]" for one in sections) + item + equals + value
