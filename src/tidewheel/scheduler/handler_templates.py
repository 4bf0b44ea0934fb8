"""Finds the commands that handle an event, and fills in the words of that event.

As in Cylc, a command for one event goes before those for the events in a list, and a command
without any field gets the facts as arguments.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from tidewheel.core.graph.definition import Events, NodeDef, Pairs
from tidewheel.core.queue.task import Instant
from tidewheel.formats.flow_cylc.handler_fields import (
    BadField,
    Reference,
    variable_of,
    with_references,
)
from tidewheel.formats.flow_cylc.settings import WorkflowEvents
from tidewheel.lazy_dataclasses import dataclass

# Events that may happen to one job any number of times.
REPEATABLE = frozenset({"warning", "critical", "custom"})
TIMES = frozenset(
    {"submit_time", "start_time", "finish_time"}
)  # of letters that need no quotes
# Linux takes no variable and no argument of more than 128 KiB; an argument may have two values.
VALUE_BYTES_MAX = 60_000
CUT_MARK = " … (cut)"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFacts:
    """Describes the task that an event happened to; times are None until they come."""

    node: NodeDef  # with what was broadcast to it
    is_broadcast: bool = False  # its handlers are not those of the definition
    point: str
    submit: int = 0
    try_number: int = 1
    job_id: str = ""
    job_runner: str = "background"
    platform: str = "localhost"
    submitted_at: Instant | None = None
    started_at: Instant | None = None
    ended_at: Instant | None = None

    @property
    def id(self) -> str:
        return f"{self.point}/{self.node.name}"

    @property
    def job(self) -> str:
        return f"{self.id}/{self.submit:02}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HandledNotice:
    """Says what happened to a task or, without one, to the run; `message` is for people."""

    event: str
    message: str = ""
    task: TaskFacts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HandledRun:
    """Holds the facts that commands and mails may say about the run."""

    name: str
    uuid: str = ""
    host: str = "localhost"
    port: int = 0
    owner: str = ""
    meta: Pairs = ()


# Called when no more is done for an event: all were told of it, or (False) its row is kept.
Done = Callable[[bool], None]


def nobody_waits(_is_told: bool) -> None:
    """Does nothing: it is the `done` of an event that is stored nowhere."""


def after_all(count: int, done: Done) -> Done:
    """Returns a function to be called `count` times; the last call then calls `done`.

    `done` is given True if every call was.
    """
    left = iter(range(count - 1))
    told = []

    def one_done(is_told: bool) -> None:
        told.append(is_told)
        if next(left, None) is None:
            done(all(told))

    return one_done


def commands_for(event: str, events: Events | WorkflowEvents) -> tuple[str, ...]:
    """Returns the commands for an event as they are written; none if it is not handled."""
    handlers = dict(events.handlers)
    own = handlers.get(event) if event else None
    if own is None and event in events.handled_events:
        own = handlers.get("")
    return own or ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledCommand:
    """Holds a command for a shell that refers to variables, and the values of these."""

    command: str
    environment: Mapping[str, str]
    shown: str  # with the values instead, for people


def filled(command: str, notice: HandledNotice, run: HandledRun) -> FilledCommand:
    """Fills a command with the facts of an event; raises ValueError if that cannot be.

    No fact is ever part of the command: see `handler_fields`. A command without fields to which
    none can be added safely is called without arguments, and has the variables alone.
    """
    facts = facts_of(notice, run)
    environment = {variable_of(name): _printable(value) for name, value in facts.items()}
    try:
        shown = command % words_of(notice, run)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{command!r} has a field that cannot be filled: {error}") from None

    def variable(match: re.Match[str]) -> str:
        name, conversion = variable_of(match["name"]), match["conversion"]
        text = _printable(f"%{conversion}" % facts[match["name"]])
        if environment.get(name, text) != text:  # written in another way than elsewhere
            name = f"{name}_{len(environment)}"
        environment[name] = text
        return name

    if shown == command:
        made, named = _with_arguments(command, variable, of_task=notice.task is not None)
        quoted = (str(facts[name]).replace("'", "'\"'\"'") for name in named)
        shown = " ".join([command, *(f"'{text}'" for text in quoted)])
        return FilledCommand(command=made, environment=environment, shown=shown)
    try:
        made = with_references(command, variable)
    except BadField as error:
        raise ValueError(f"{command!r}: {error}") from None
    return FilledCommand(command=made, environment=environment, shown=shown)


def _with_arguments(
    command: str, variable: Reference, *, of_task: bool
) -> tuple[str, list[str]]:
    """Adds arguments to a command without fields; returns it and the names of those facts."""
    named = ["event", "workflow", *(["id"] if of_task else []), "message"]
    try:
        template = " ".join([command, *(f"%({name})s" for name in named)])
        return with_references(template, variable), named
    except BadField:
        return with_references(command, variable), []


def words_of(notice: HandledNotice, run: HandledRun) -> dict[str, object]:
    """Returns every field that a text for people may have, quoted as for a shell."""
    return {
        name: shlex.quote(value) if isinstance(value, str) and name not in TIMES else value
        for name, value in facts_of(notice, run).items()
    }


def facts_of(notice: HandledNotice, run: HandledRun) -> dict[str, str | int]:
    """Returns every field that a command may have, Cylc's old names included."""
    words: dict[str, str | int] = {
        "event": notice.event,
        "message": notice.message,
        **dict.fromkeys(("workflow", "suite"), run.name),
        **dict.fromkeys(("uuid", "suite_uuid"), run.uuid),
        "host": run.host,
        "port": run.port,
        "owner": run.owner,
    }
    meta = {"title": "", "description": "", "URL": ""} | dict(run.meta)
    words |= dict.fromkeys(("workflow_url", "suite_url"), meta["URL"])
    words |= {f"workflow_{name}": value for name, value in meta.items()}
    task = notice.task
    if task is None:
        return {**meta, **words}
    meta = {"title": "", "description": "", "URL": ""} | dict(task.node.meta)
    return words | {
        **meta,
        "task_url": meta["URL"],
        "id": task.id,
        "point": task.point,
        "name": task.node.name,
        "submit_num": task.submit,
        "try_num": task.try_number,
        **dict.fromkeys(("job_id", "batch_sys_job_id"), task.job_id),
        **dict.fromkeys(("job_runner_name", "batch_sys_name"), task.job_runner),
        **dict.fromkeys(("platform_name", "user@host"), task.platform),
        "submit_time": _time_text(task.submitted_at),
        "start_time": _time_text(task.started_at),
        "finish_time": _time_text(task.ended_at),
    }


def _printable(value: object) -> str:
    """Returns a value as an environment can hold it; what is too long is cut."""
    text = str(value).encode(errors="replace").replace(b"\0", b"")
    if len(text) <= VALUE_BYTES_MAX:
        return text.decode()
    return text[: VALUE_BYTES_MAX - len(CUT_MARK.encode())].decode(errors="ignore") + CUT_MARK


def _time_text(at: Instant | None) -> str:
    if at is None:
        return "None"  # what handlers of Cylc compare with
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
