"""`cylc workflow-state`: waits until a task of any run has a status, an output or a message."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

from tidewheel.cli.cylc.arguments import BadUsage, Said, flag, takes
from tidewheel.cli.cylc.client import look
from tidewheel.cli.cylc.ids import Ids, read_ids
from tidewheel.errors import NotFound, Unavailable

POLLS_MAX = 12
INTERVAL_SECONDS = 5.0
OPTIONS = (
    takes("--max-polls"),
    takes("--interval"),
    takes("-s", "--offset"),
    takes("--flow"),
    flag("--triggers"),
    flag("--messages"),
    flag("--pretty"),
    flag("--old-format"),
    takes("-d", "--alt-cylc-run-dir", "--run-dir"),
    takes("-t", "--task"),
    takes("-p", "--point"),
    flag("-T", "--task-point"),
    takes("-S", "--status"),
    takes("-O", "-m", "--message", "--output"),
)

Task = dict[str, Any]


def workflow_state(said: Said) -> tuple[Iterator[str], int]:
    """The lines to print, and the exit status."""
    ids = _with_old_options(said, read_ids("workflow-state", said.words[:1]))
    polls = _number(said, "max-polls", POLLS_MAX)
    interval = _number(said, "interval", INTERVAL_SECONDS)
    number = 0
    while True:
        number += 1
        found = _found(ids, said)
        if found:
            old = "old-format" in said
            return (_line(task, old=old) for task in found), 0
        if number >= polls:
            return iter(()), 1
        time.sleep(interval)


def _found(ids: Ids, said: Said) -> list[Task]:
    """What is not there yet may come: a run, or a worker that answers."""
    flow = said.last("flow")
    try:
        document = look(
            ids.workflow,
            "workflow-state",
            id=ids.within[0] if ids.within else "",
            offset=said.last("offset"),
            flow=int(flow) if flow.isdecimal() else None,
            triggers="triggers" in said,
            messages="messages" in said or "message" in said,
        )
    except (NotFound, Unavailable):
        return []
    tasks = document.get("tasks")
    return tasks if isinstance(tasks, list) else []


def _line(task: Task, *, old: bool) -> str:
    if old:
        return f"{task['name']}, {task['point']}, {task['state']}"
    return f"{task['id']}:{task['state']}"


def _number(said: Said, option: str, default: float) -> float:
    text = said.last(option)
    try:
        return float(text) if text else default
    except ValueError:
        raise BadUsage(
            f"cylc workflow-state: --{option} takes a number, not {text!r}"
        ) from None


def _with_old_options(said: Said, ids: Ids) -> Ids:
    """`--task --point --status --message`, as before ids could say it all."""
    task, point = said.last("task"), said.last("point")
    if "task-point" in said:
        point = os.environ.get("CYLC_TASK_CYCLE_POINT", "")
    selector = said.last("status") or said.last("message")
    if not (task or point or selector):
        return ids
    within = f"{point or '*'}/{task or '*'}"
    return Ids(ids.workflow, (f"{within}:{selector}" if selector else within,))
