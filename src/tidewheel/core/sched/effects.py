"""Effects are what a step wants done outside: jobs, timers, checks and news."""

from __future__ import annotations

from typing import NamedTuple

from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.task_state import Flows, Key


class Submit(NamedTuple):
    """Run a task once: one new task of the store, id `run/point/name/submit`."""

    task: Key
    submit: int
    try_number: int
    flows: Flows


class SetTimer(NamedTuple):
    task: Key | None
    name: str
    at: Instant


class CancelTimer(NamedTuple):
    task: Key | None
    name: str


class CheckXtrigger(NamedTuple):
    task: Key
    label: str


class DropXtrigger(NamedTuple):
    """The task no longer waits for it."""

    task: Key
    label: str


class KillJob(NamedTuple):
    task: Key
    submit: int


class PollJob(NamedTuple):
    task: Key
    submit: int


class Notice(NamedTuple):
    """An event for people and handlers: name, task (or None: the run), one sentence."""

    event: str
    task: Key | None
    text: str


Effect = (
    Submit | SetTimer | CancelTimer | CheckXtrigger | DropXtrigger | KillJob | PollJob | Notice
)
