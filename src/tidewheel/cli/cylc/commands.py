"""Calls of Cylc that ask something of a run, each as the one command that it means here."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tidewheel.cli.cylc.arguments import BadUsage, Ids, Option, Said, flag, read_ids, takes
from tidewheel.core.operator.commands import (
    Broadcast,
    Command,
    ExtTrigger,
    Hold,
    Kill,
    Pause,
    Poll,
    Release,
    Reload,
    Remove,
    Resume,
    Set,
    Stop,
    Trigger,
)

_FLOW = takes("--flow")
_WAIT = flag("--wait")


class Verb(NamedTuple):
    """Which options it has, and the command that is meant; None: there is nothing to do."""

    options: tuple[Option, ...]
    command: Callable[[Said], tuple[str, Command]]


def _ids(verb: str, said: Said) -> Ids:
    ids = read_ids(verb, said.words)
    if not ids.within:
        raise BadUsage(f"cylc {verb}: which tasks? Write cylc {verb} WORKFLOW//POINT/NAME")
    return ids


def _flow(said: Said) -> str:
    return ",".join(said.parts("flow"))


def _trigger(said: Said) -> tuple[str, Command]:
    ids = _ids("trigger", said)
    return ids.workflow, Trigger(
        ids=ids.within, flow=_flow(said), wait="wait" in said, on_resume="on-resume" in said
    )


def _set(said: Said) -> tuple[str, Command]:
    ids = _ids("set", said)
    return ids.workflow, Set(
        ids=ids.within,
        # What is required is what is set if nothing is named.
        outputs=tuple(one for one in said.parts("out") if one != "required"),
        prerequisites=said.parts("pre"),
        flow=_flow(said),
        wait="wait" in said,
    )


def _remove(said: Said) -> tuple[str, Command]:
    ids = _ids("remove", said)
    # In Cylc a removed task that is active is killed.
    return ids.workflow, Remove(ids=ids.within, flow=_flow(said), kill=True)


def _hold(said: Said) -> tuple[str, Command]:
    if "after" in said:
        return read_ids("hold", said.words).workflow, Hold(after=said.last("after"))
    ids = _ids("hold", said)
    return ids.workflow, Hold(ids=ids.within)


def _release(said: Said) -> tuple[str, Command]:
    if "all" in said:
        return read_ids("release", said.words).workflow, Release(everything=True)
    ids = _ids("release", said)
    return ids.workflow, Release(ids=ids.within)


def _kill(said: Said) -> tuple[str, Command]:
    ids = _ids("kill", said)
    return ids.workflow, Kill(ids=ids.within)


def _poll(said: Said) -> tuple[str, Command]:
    ids = _ids("poll", said)
    return ids.workflow, Poll(ids=ids.within)


def _pause(said: Said) -> tuple[str, Command]:
    return read_ids("pause", said.words).workflow, Pause()


def _play(said: Said) -> tuple[str, Command]:
    return read_ids("play", said.words).workflow, Resume()


def _reload(said: Said) -> tuple[str, Command]:
    return read_ids("reload", said.words).workflow, Reload()


def _stop(said: Said) -> tuple[str, Command]:
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


def _broadcast(said: Said) -> tuple[str, Command]:
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


def _from_files(said: Said, option: str) -> Sequence[str]:
    return [one for path in said.options.get(option, ()) for one in read_settings_file(path)]


def _ext_trigger(said: Said) -> tuple[str, Command]:
    if len(said.words) not in (2, 3):
        raise BadUsage("cylc ext-trigger: write cylc ext-trigger WORKFLOW MESSAGE [ID]")
    workflow, message, *trigger_id = said.words
    return workflow, ExtTrigger(message=message, trigger_id="".join(trigger_id))


VERBS: dict[str, Verb] = {
    "trigger": Verb((_FLOW, _WAIT, takes("--meta"), flag("--on-resume")), _trigger),
    "set": Verb(
        (
            takes("-o", "--out", "--output"),
            takes("-p", "--pre", "--prerequisite"),
            _FLOW,
            _WAIT,
            takes("--meta"),
        ),
        _set,
    ),
    "remove": Verb((_FLOW, flag("--no-spawn")), _remove),
    "hold": Verb((takes("--after"),), _hold),
    "release": Verb((flag("--all"),), _release),
    "kill": Verb((), _kill),
    "poll": Verb((), _poll),
    "pause": Verb((), _pause),
    "play": Verb((flag("--no-detach"),), _play),
    "reload": Verb((flag("-g", "--global"),), _reload),
    "stop": Verb(
        (
            flag("-k", "--kill"),
            flag("-n", "--now"),
            takes("--flow"),
            takes("-w", "--wall-clock"),
            takes("--max-polls"),
            takes("--interval"),
        ),
        _stop,
    ),
    "broadcast": Verb(
        (
            takes("-p", "--point"),
            takes("-n", "--namespace"),
            takes("-s", "--set"),
            takes("-F", "--set-file", "--file"),
            takes("-c", "--cancel"),
            takes("-G", "--cancel-file"),
            flag("-C", "--clear"),
            takes("-e", "--expire"),
            flag("-d", "--display"),
            takes("-k", "--display-task"),
            flag("-b", "--box"),
            flag("-r", "--raw"),
            takes("--format"),
        ),
        _broadcast,
    ),
    "ext-trigger": Verb((takes("--max-tries"), takes("--retry-interval")), _ext_trigger),
}


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
