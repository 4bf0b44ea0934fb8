"""Says what notifications look like in the API: rules, messages, and tests of rules."""

from __future__ import annotations

from tidewheel.api.wire import Out


class RuleOut(Out):
    """A rule of notifications, without its passwords and secret addresses."""

    name: str
    on: list[str]
    workflow: str
    task: str
    every_seconds: float
    after_seconds: float | None
    kind: str
    to: str


class _MessageOut(Out):
    id: str
    rule: str
    event: str
    run: str
    tries: int
    error: str


class WaitingOut(_MessageOut):
    """A notification that waits to be sent."""

    due_at: str


class MessageEndOut(_MessageOut):
    """The outcome of a notification: sent, given up or dropped."""

    outcome: str
    at: str


class NotificationsOut(Out):
    """The rules in this server's file, the mistakes in this file (``findings``), and the
    notifications that wait or were sent."""

    file: str
    rules: list[RuleOut]
    findings: list[str]
    sender: str | None  # the process that sends; null: none does
    waiting: list[WaitingOut]
    ended: list[MessageEndOut]


class TestOut(Out):
    """Says whether the test message of one rule was sent."""

    __test__ = False  # not one of pytest's

    rule: str
    sent: bool
    error: str
    id: str
    text: str


class TestsOut(Out):
    """The result of each test, and the mistakes in the file of rules (``findings``)."""

    __test__ = False

    tests: list[TestOut]
    findings: list[str]
