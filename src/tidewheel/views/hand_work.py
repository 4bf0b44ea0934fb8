"""What operators did by hand to a task: outputs they set, waits they ended (R001-52).

The pool knows outputs set by hand as long as the task is in it. Afterwards the commands say it:
their answers name the tasks, and the commands themselves the outputs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tidewheel.core.graph.outputs import IMPLIED, standard_name
from tidewheel.core.operator.command_events import XTRIGGER
from tidewheel.core.operator.selection import find_point, read_id
from tidewheel.core.operator.verbs import Command, Remove, Set, Trigger, read_command
from tidewheel.core.operator.views import CommandView
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.set_outputs import completing
from tidewheel.core.sched.task_state import Key
from tidewheel.errors import Refused
from tidewheel.views.snapshot import RunSnapshot


class SetByHand(NamedTuple):
    """An output that somebody completed."""

    output: str
    who: str
    at: Instant


def command_of(view: CommandView) -> Command | None:
    """None for one that this version cannot read."""
    try:
        return read_command(view.body)
    except Refused:
        return None


def outputs_set(
    looked: RunSnapshot, key: Key, commands: Iterable[CommandView]
) -> list[SetByHand]:
    """The outputs of a task that were set by commands that were obeyed, the newest first.

    Whoever removes a task removes with it what was set before.
    """
    found = []
    for view, command in _obeyed(looked, key, commands):
        if isinstance(command, Set) and (command.outputs or not command.prerequisites):
            found += [
                SetByHand(one, view.who, view.at) for one in _outputs(looked, key, command)
            ]
    return found


def let_go_at(
    looked: RunSnapshot, key: Key, label: str, commands: Iterable[CommandView]
) -> Instant | None:
    """When somebody first let a task go on without an xtrigger; None: nobody did."""
    found = None
    for view, command in _obeyed(looked, key, commands):
        satisfied = command.prerequisites if isinstance(command, Set) else ()
        if isinstance(command, Trigger) or {"all", XTRIGGER + label} & set(satisfied):
            found = view.at
    return found


def _obeyed(
    looked: RunSnapshot, key: Key, commands: Iterable[CommandView]
) -> Iterator[tuple[CommandView, Set | Trigger]]:
    """Commands about a task that were obeyed, the newest first, back to its removal."""
    for view in commands:
        command = command_of(view)
        if view.answered_at is None or view.refused is not None:
            continue
        if not isinstance(command, Set | Trigger | Remove):
            continue
        if not _concerns(looked, key, view, command.ids):
            continue
        if isinstance(command, Remove):
            break
        yield view, command


def _concerns(looked: RunSnapshot, key: Key, view: CommandView, ids: Iterable[str]) -> bool:
    answer = json.loads(view.answer or "{}")
    named = answer.get("tasks") if isinstance(answer, dict) else None
    if isinstance(named, dict | list):
        return looked.id_of(key) in named
    return any(_names(looked, key, text) for text in ids)


def _names(looked: RunSnapshot, key: Key, text: str) -> bool:
    try:
        written = read_id(text)
    except Refused:
        return False
    style = looked.graph.cycling.style
    return written.name == key[1] and find_point(style, written.point) == key[0]


def _outputs(looked: RunSnapshot, key: Key, command: Set) -> Iterator[str]:
    named = [standard_name(one) for one in command.outputs]
    if not named:
        named = list(completing(looked.pool.plan.nodes[key[1]]))
    for output in named:
        yield from (*IMPLIED.get(output, ()), output)
