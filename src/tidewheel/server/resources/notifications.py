"""Notifications: the rules of this machine, what became of messages, and tests of them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from tidewheel.config import scheduler_settings
from tidewheel.core.queue.access import Scope
from tidewheel.ports.runs import BringsNotifications
from tidewheel.server.call import Call
from tidewheel.server.routes import API, Needs, Route, no_queue
from tidewheel.server.wire.validation import In, Out
from tidewheel.wiring.services import notification_desk

TEST_SECONDS_MAX = 120.0


class TestIn(In):
    """The name of the rule to try; without one, each rule is tried."""

    __test__ = False  # not one of pytest's

    rule: Annotated[str, msgspec.Meta(max_length=100)] | None = None


class RuleOut(Out):
    """A rule, without anything that opens something."""

    name: str
    on: list[str]
    workflow: str
    task: str
    every_seconds: float
    after_seconds: float | None
    kind: str
    to: str


class WaitingOut(Out):
    """A message that is yet to be sent."""

    id: str
    rule: str
    event: str
    run: str
    tries: int
    error: str
    due_at: str


class MessageEndOut(Out):
    """The outcome of a message: sent, given up or dropped."""

    id: str
    rule: str
    event: str
    run: str
    tries: int
    error: str
    outcome: str
    at: str


class NotificationsOut(Out):
    """The rules, messages and findings of notifications in this server's state directory."""

    file: str
    rules: list[RuleOut]
    findings: list[str]
    sender: str | None  # the process that sends; null: none does
    waiting: list[WaitingOut]
    ended: list[MessageEndOut]


class TestOut(Out):
    """The result of one test."""

    __test__ = False

    rule: str
    sent: bool
    error: str
    id: str
    text: str


class TestsOut(Out):
    """The result of each test, and the findings in the file."""

    __test__ = False

    tests: list[TestOut]
    findings: list[str]


async def show(call: Call) -> object:
    found: Any = await _desk(call).notifications()
    return msgspec.convert(found, NotificationsOut)


async def send_test(call: Call) -> object:
    rule = call.body_as(TestIn).rule
    call.targets.append(f"rule {rule or '*'}")
    found: Any = await _desk(call).try_notifications(rule)
    return msgspec.convert(found, TestsOut)


def _desk(call: Call) -> BringsNotifications:
    home = call.settings.state_directory
    return notification_desk(call.store, home, scheduler_settings().smtp)


_ADMINS = Needs(scopes=(Scope.ADMIN,), queues=no_queue)
ROUTES = (
    Route(
        method="GET",
        path=f"{API}/notifications",
        guard=_ADMINS,
        handler=show,
        says="The rules by which people are told, what waits to be sent, and what was.",
        answers=NotificationsOut,
    ),
    Route(
        method="POST",
        path=f"{API}/notifications/test",
        guard=_ADMINS,
        handler=send_test,
        says="Send a test under one rule or all of them, and say how that went.",
        body=TestIn,
        answers=TestsOut,
        seconds_max=TEST_SECONDS_MAX,
    ),
)
