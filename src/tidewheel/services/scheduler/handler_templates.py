"""From an event to the commands that handle it: which ones, and with which words put in.

As in Cylc, a command for one event goes before those for the events in a list, and a command
without any field gets the facts as arguments.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from tidewheel.core.graph.node import Events, NodeDef, Pairs
from tidewheel.core.tasks.task import Instant
from tidewheel.sources.flow_cylc.settings import WorkflowEvents

# They may happen to one job any number of times.
REPEATABLE = frozenset({"warning", "critical", "custom"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFacts:
    """The task that an event happened to. Times are None as long as they have not come."""

    node: NodeDef  # with what was broadcast to it
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
    """Something happened, to a task or, without one, to the run; `message` is for people."""

    event: str
    message: str = ""
    task: TaskFacts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HandledRun:
    """What commands and mails may say about the run."""

    name: str
    uuid: str = ""
    host: str = "localhost"
    port: int = 0
    owner: str = ""
    meta: Pairs = ()


Done = Callable[[], None]  # everybody was told of an event


def nobody_waits() -> None:
    """The `done` of an event that is stored nowhere."""


def after_all(count: int, done: Done) -> Done:
    """To be called by each of so many; `done` is called by the last."""
    left = iter(range(count - 1))

    def one_done() -> None:
        if next(left, None) is None:
            done()

    return one_done


def commands_for(event: str, events: Events | WorkflowEvents) -> tuple[str, ...]:
    """The commands as they are written; none if nobody handles this event."""
    handlers = dict(events.handlers)
    own = handlers.get(event) if event else None
    if own is None and event in events.handled_events:
        own = handlers.get("")
    return own or ()


def filled(command: str, notice: HandledNotice, run: HandledRun) -> str:
    """A command with the facts put in, quoted for a shell. ValueError: it cannot be."""
    words = words_of(notice, run)
    try:
        made = command % words
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{command!r} has a field that cannot be filled: {error}") from None
    if made != command:
        return made
    facts = [notice.event, run.name, notice.message]
    if notice.task is not None:
        facts.insert(2, notice.task.id)
    return " ".join([command, *map(_always_quoted, facts)])


def words_of(notice: HandledNotice, run: HandledRun) -> dict[str, object]:
    """Every field that a command may have, quoted, Cylc's old names included."""
    words: dict[str, object] = {
        "event": shlex.quote(notice.event),
        "message": shlex.quote(notice.message),
        **dict.fromkeys(("workflow", "suite"), shlex.quote(run.name)),
        **dict.fromkeys(("uuid", "suite_uuid"), shlex.quote(run.uuid)),
        "host": shlex.quote(run.host),
        "port": run.port,
        "owner": shlex.quote(run.owner),
    }
    meta = {"title": "", "description": "", "URL": ""} | dict(run.meta)
    url = shlex.quote(meta["URL"])
    words |= dict.fromkeys(("workflow_url", "suite_url"), url)
    words |= _quoted({f"workflow_{name}": value for name, value in meta.items()})
    if notice.task is None:
        return _quoted(meta) | words
    return words | _task_words(notice.task)


def _task_words(task: TaskFacts) -> dict[str, object]:
    meta = {"title": "", "description": "", "URL": ""} | dict(task.node.meta)
    job_id, runner = shlex.quote(task.job_id), shlex.quote(task.job_runner)
    platform = shlex.quote(task.platform)
    return {
        **_quoted(meta),
        "task_url": shlex.quote(meta["URL"]),
        "id": shlex.quote(task.id),
        "point": shlex.quote(task.point),
        "name": shlex.quote(task.node.name),
        "submit_num": task.submit,
        "try_num": task.try_number,
        **dict.fromkeys(("job_id", "batch_sys_job_id"), job_id),
        **dict.fromkeys(("job_runner_name", "batch_sys_name"), runner),
        **dict.fromkeys(("platform_name", "user@host"), platform),
        "submit_time": _time_text(task.submitted_at),
        "start_time": _time_text(task.started_at),
        "finish_time": _time_text(task.ended_at),
    }


def _quoted(texts: Mapping[str, str]) -> dict[str, object]:
    return {name: shlex.quote(value) for name, value in texts.items()}


def _always_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\"'\"'") + "'"


def _time_text(at: Instant | None) -> str:
    if at is None:
        return "None"  # what handlers of Cylc compare with
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
