"""Reads calls of Cylc that ask something of a run, each as the one command that it means here.

The calls and their options are rows of `cli/verbs.py`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tidewheel.cli.cylc.arguments import Arguments, BadUsage, Ids, Option, read_ids
from tidewheel.cli.verbs import ROWS, CylcCall, Verb
from tidewheel.core.operator.verbs import VERBS as COMMANDS
from tidewheel.core.operator.verbs import Broadcast, Command, ExtTrigger, Stop


class CylcVerb(NamedTuple):
    """A verb of Cylc: its options, and how its words are read as a run and a command."""

    options: tuple[Option, ...]
    command: Callable[[Arguments], tuple[str, Command]]
    is_queued: bool = False


def _ids(verb: str, said: Arguments) -> Ids:
    ids = read_ids(verb, said.words)
    if not ids.within:
        raise BadUsage(f"cylc {verb}: which tasks? Write cylc {verb} WORKFLOW//POINT/NAME")
    return ids


def _command_of(verb: Verb, call: CylcCall, said: Arguments) -> tuple[str, Command]:
    """Fills the fields of the command from the options that the verb has here as well."""
    name, kind = call.name or verb.name, COMMANDS[verb.name]
    types = {one.name: str(one.type) for one in fields(kind)}
    given = dict(call.always)
    replaces_ids = False
    for option in map(_option, call.options):
        meant = [one for one in verb.options if {*one.names} & {*option.names}]
        if meant and option.key in said:
            given[meant[0].field] = _value(said, option, meant[0].field, types, call)
            replaces_ids = replaces_ids or meant[0].replaces_ids
    if "ids" not in types or replaces_ids:
        return read_ids(name, said.words).workflow, kind(**given)  # type: ignore[arg-type]
    ids = _ids(name, said)
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


def _option(text: str) -> Option:
    return Option(tuple(text.removesuffix("=").split()), takes=text.endswith("="))


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
    settings = [*said.options.get("set", []), *_from_files(said, "set-file")]
    cancel = [*said.options.get("cancel", []), *_from_files(said, "cancel-file")]
    if not settings and not cancel and "clear" not in said:
        raise BadUsage("cylc broadcast: nothing to do; write -s '[environment]NAME=VALUE'")
    return workflow, Broadcast(
        points=tuple(points) or ("*",),
        namespaces=tuple(namespaces) or ("root",),
        settings=tuple(settings),
        cancel=tuple(one.partition("=")[0] for one in cancel),
        clear="clear" in said,
    )


def _from_files(said: Arguments, option: str) -> Sequence[str]:
    return [one for path in said.options.get(option, ()) for one in read_settings_file(path)]


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


def _verb(verb: Verb, call: CylcCall) -> CylcVerb:
    read = _READERS.get(verb.name) or partial(_command_of, verb, call)
    return CylcVerb(tuple(map(_option, call.options)), read, call.is_queued)


_CALLS = [(verb, verb.cylc) for verb in ROWS if verb.cylc is not None]
VERBS = {call.name or verb.name: _verb(verb, call) for verb, call in _CALLS}
ALIASES = {alias: call.name or verb.name for verb, call in _CALLS for alias in call.aliases}


# ---- `cylc broadcast --set-file FILE`: sections and items as in flow.cylc ----

_SECTION = re.compile(r"(\[+)\s*([^\[\]]+?)\s*\]+")
_LONG = ('"""', "'''")


def read_settings_file(path: str) -> list[str]:
    """Each item as `[SECTION]ITEM=VALUE`; `-` is standard input."""
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text("utf-8")
    except OSError as error:
        raise BadUsage(f"cylc broadcast: {path}: {error.strerror}") from None
    return list(_settings(text.splitlines()))


def _settings(lines: list[str]) -> Iterator[str]:
    sections: list[str] = []
    rest = iter(lines)
    for line in rest:
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        section = _SECTION.fullmatch(stripped)
        if section is not None:
            sections = [*sections[: len(section[1]) - 1], section[2]]
            continue
        item, equals, value = stripped.partition("=")
        if not equals:
            yield "".join(f"[{one}]" for one in sections) + item.strip()
            continue
        value = value.strip()
        quotes = value[:3]
        if quotes in _LONG and value.count(quotes) == 1:
            value = "\n".join([value, *_until(rest, quotes)])
        yield "".join(f"[{one}]" for one in sections) + f"{item.strip()}={value}"


def _until(lines: Iterator[str], quotes: str) -> Iterator[str]:
    for line in lines:
        yield line
        if quotes in line:
            return
