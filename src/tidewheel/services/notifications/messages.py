"""Makes messages: their facts are the same for every way in which they are delivered."""

from __future__ import annotations

import hashlib

import msgspec

from tidewheel.services.notifications.rules import (
    BLOCKED,
    COMPLETED,
    ERROR,
    FAILED,
    LATE,
    STALL,
    STOPPED,
    NotificationRule,
    filled,
)
from tidewheel.vocabulary import time_text

TASKS_NAMED_MAX = 20
REASON_MAX = 2_000  # characters
ID_LETTERS = 32

_HAPPENED = {
    STALL: "{run} is stalled",
    BLOCKED: "{run}: {count} blocked: {tasks}",
    FAILED: "{run}: {count} failed: {tasks}",
    LATE: "{run}: {count} late: {tasks}",
    ERROR: "{run} was given up",
    STOPPED: "{run} was stopped",
    COMPLETED: "{run} is completed",
}


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """One message under one rule; the id stays the same however often it is sent."""

    id: str
    rule: str
    event: str
    run: str
    workflow: str
    at: float
    status: str = ""
    reason: str = ""
    tasks: tuple[str, ...] = ()  # at most so many as are named
    count: int = 0  # of tasks, whether named or not
    store: str = ""
    is_test: bool = False

    def joined(self, later: Notification) -> Notification:
        """Returns this one, which nobody has seen yet, with what happened since."""
        tasks = tuple(dict.fromkeys((*self.tasks, *later.tasks)))[:TASKS_NAMED_MAX]
        return msgspec.structs.replace(
            self,
            at=later.at,
            status=later.status,
            reason=later.reason or self.reason,
            tasks=tasks,
            count=self.count + later.count,
        )


def message_id(*parts: object) -> str:
    """Returns an id that is the same for the same parts; nothing can be read from it."""
    text = "\0".join(map(str, parts)).encode()
    return hashlib.sha256(text).hexdigest()[:ID_LETTERS]


def sentence(message: Notification) -> str:
    """Says for people what happened."""
    if message.is_test:
        return f"This is a test of rule {message.rule}. Nothing happened."
    more = message.count - len(message.tasks)
    named = ", ".join(message.tasks) + (f" and {more} more" if more > 0 else "")
    count = "1 task" if message.count == 1 else f"{message.count} tasks"
    known = {"run": message.run, "count": count, "tasks": named}
    said = filled(_HAPPENED[message.event], known)
    return f"{said}: {message.reason}" if message.reason not in ("", message.status) else said


def document(message: Notification, text: str, missed: int) -> dict[str, object]:
    """Returns a message as a webhook gets it."""
    return {
        "id": message.id,
        "event": message.event,
        "test": message.is_test,
        "run": message.run,
        "workflow": message.workflow,
        "status": message.status,
        "reason": message.reason,
        "at": time_text(message.at),  # type: ignore[arg-type]
        "tasks": list(message.tasks),
        "count": message.count,
        "text": text,
        "rule": message.rule,
        "store": message.store,
        "missed": missed,  # messages of this rule that were dropped before this one
    }


def facts(message: Notification, text: str) -> dict[str, str]:
    """Returns the fields of templates."""
    return {
        "id": message.id,
        "event": message.event,
        "run": message.run,
        "workflow": message.workflow,
        "status": message.status,
        "reason": message.reason,
        "at": str(time_text(message.at)),  # type: ignore[arg-type]
        "tasks": ", ".join(message.tasks),
        "count": str(message.count),
        "text": text,
        "rule": message.rule,
        "store": message.store,
    }


def text_of(rule: NotificationRule, message: Notification) -> str:
    """Returns the text of a message in the words of the rule, if it has any of its own."""
    said = sentence(message)
    return filled(rule.text, facts(message, said)) if rule.text else said


def trial_message(rule: NotificationRule, at: float, store: str, chance: str) -> Notification:
    """Makes the message of a test, which says that it is one."""
    return Notification(
        id=message_id("test", rule.name, at, chance),
        rule=rule.name,
        event=rule.on[0],
        run="test/run1",
        workflow="test",
        at=at,
        status="running",
        store=store,
        is_test=True,
    )
