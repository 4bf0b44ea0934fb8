"""Calls of Cylc that ask something of a run, each as the one command that it means here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tidewheel.cli.cylc.arguments import Arguments, BadUsage, Ids, Option, flag, read_ids, takes
from tidewheel.cli.cylc.commands import read_settings_file
from tidewheel.core.operator.verbs import (
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


class CylcVerb(NamedTuple):
    """Which options it has, and the command that is meant; None: there is nothing to do."""

    options: tuple[Option, ...]
    command: Callable[[Arguments], tuple[str, Command]]


def _ids(verb: str, said: Arguments) -> Ids:
    ids = read_ids(verb, said.words)
    if not ids.within:
        raise BadUsage(f"cylc {verb}: which tasks? Write cylc {verb} WORKFLOW//POINT/NAME")
    return ids


def _flow(said: Arguments) -> str:
    return ",".join(said.parts("flow"))


def _trigger(said: Arguments) -> tuple[str, Command]:
    ids = _ids("trigger", said)
    return ids.workflow, Trigger(
        ids=ids.within, flow=_flow(said), wait="wait" in said, on_resume="on-resume" in said
    )


def _set(said: Arguments) -> tuple[str, Command]:
    ids = _ids("set", said)
    return ids.workflow, Set(
        ids=ids.within,
        # What is required is what is set if nothing is named.
        outputs=tuple(one for one in said.parts("out") if one != "required"),
        prerequisites=said.parts("pre"),
        flow=_flow(said),
        wait="wait" in said,
    )


def _remove(said: Arguments) -> tuple[str, Command]:
    ids = _ids("remove", said)
    # In Cylc a removed task that is active is killed.
    return ids.workflow, Remove(ids=ids.within, flow=_flow(said), kill=True)


def _hold(said: Arguments) -> tuple[str, Command]:
    if "after" in said:
        return read_ids("hold", said.words).workflow, Hold(after=said.last("after"))
    ids = _ids("hold", said)
    return ids.workflow, Hold(ids=ids.within)


def _release(said: Arguments) -> tuple[str, Command]:
    if "all" in said:
        return read_ids("release", said.words).workflow, Release(everything=True)
    ids = _ids("release", said)
    return ids.workflow, Release(ids=ids.within)


def _kill(said: Arguments) -> tuple[str, Command]:
    ids = _ids("kill", said)
    return ids.workflow, Kill(ids=ids.within)


def _poll(said: Arguments) -> tuple[str, Command]:
    ids = _ids("poll", said)
    return ids.workflow, Poll(ids=ids.within)


def _pause(said: Arguments) -> tuple[str, Command]:
    return read_ids("pause", said.words).workflow, Pause()


def _play(said: Arguments) -> tuple[str, Command]:
    return read_ids("play", said.words).workflow, Resume()


def _reload(said: Arguments) -> tuple[str, Command]:
    return read_ids("reload", said.words).workflow, Reload()


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


VERBS: dict[str, CylcVerb] = {
    "trigger": CylcVerb((_FLOW, _WAIT, takes("--meta"), flag("--on-resume")), _trigger),
    "set": CylcVerb(
        (
            takes("-o", "--out", "--output"),
            takes("-p", "--pre", "--prerequisite"),
            _FLOW,
            _WAIT,
            takes("--meta"),
        ),
        _set,
    ),
    "remove": CylcVerb((_FLOW, flag("--no-spawn")), _remove),
    "hold": CylcVerb((takes("--after"),), _hold),
    "release": CylcVerb((flag("--all"),), _release),
    "kill": CylcVerb((), _kill),
    "poll": CylcVerb((), _poll),
    "pause": CylcVerb((), _pause),
    "play": CylcVerb((flag("--no-detach"),), _play),
    "reload": CylcVerb((flag("-g", "--global"),), _reload),
    "stop": CylcVerb(
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
    "broadcast": CylcVerb(
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
    "ext-trigger": CylcVerb((takes("--max-tries"), takes("--retry-interval")), _ext_trigger),
}
