"""What people want to be told, and how: the values that rules consist of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

STALL, BLOCKED, FAILED, LATE = "stall", "blocked", "failed", "late"
ERROR, STOPPED, COMPLETED = "error", "stopped", "completed"
EVENTS = (STALL, BLOCKED, FAILED, LATE, ERROR, STOPPED, COMPLETED)

EVERY_SECONDS = {"webhook": 0.0, "mail": 60.0, "command": 0.0}
SUBJECT_DEFAULT = "[tidewheel] {event}: {run}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A JSON document is posted there."""

    url: str
    secret: str = field(default="", repr=False)  # signs the document
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    ca: str = ""  # a file with certificates to believe instead of the system's
    anywhere: bool = False  # also link-local addresses, behind which clouds keep secrets

    kind = "webhook"


@dataclass(frozen=True, slots=True, kw_only=True)
class MailTo:
    """A mail is handed to the server that TIDEWHEEL_SMTP names."""

    to: tuple[str, ...]
    sender: str = ""

    kind = "mail"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCommand:
    """Words are a program with its arguments, into which fields are put; a line is bash's."""

    words: tuple[str, ...] = ()
    line: str = ""

    kind = "command"


Destination = Webhook | MailTo | RunCommand


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Of which events, of which runs, where to, and in which words."""

    name: str
    on: tuple[str, ...]
    to: Destination
    workflow: str = "*"  # a glob
    task: str = "*"  # a glob over names of nodes, for events that tasks have
    every_seconds: float = 0.0  # not more than one message for the same run and event
    after_seconds: float | None = None  # since the time of its point a task is late
    subject: str = SUBJECT_DEFAULT
    text: str = ""

    def wants(self, event: str, workflow: str) -> bool:
        return event in self.on and fnmatchcase(workflow, self.workflow)

    def wants_task(self, name: str) -> bool:
        return fnmatchcase(name, self.task)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """A file of rules: those that are right, and what is wrong with the others."""

    rules: Sequence[Rule] = ()
    findings: Sequence[str] = ()

    def wants(self, event: str, workflow: str) -> bool:
        return any(rule.wants(event, workflow) for rule in self.rules)

    def named(self, name: str) -> Rule | None:
        return next((rule for rule in self.rules if rule.name == name), None)


NO_RULES = Rules()
