"""Makes messages, whose facts are the same however they are sent, and keeps those to send."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from tidewheel.core.operator.stream import read_cursor
from tidewheel.core.queue.task import Instant
from tidewheel.errors import BadSetting
from tidewheel.services.notifications.rules import EVENTS, FIELDS, NotificationRule, filled
from tidewheel.vocabulary import time_text

TASKS_NAMED_MAX = 20
REASON_MAX = 2_000  # characters
ID_LETTERS = 32


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """Holds one message of one rule; its id stays the same however often it is sent."""

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
        """Returns this message, which nobody has seen yet, with what happened since."""
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
    """Returns the sentence that tells people what happened."""
    if message.is_test:
        return f"This is a test of rule {message.rule}. Nothing happened."
    more = message.count - len(message.tasks)
    named = ", ".join(message.tasks) + (f" and {more} more" if more > 0 else "")
    count = "1 task" if message.count == 1 else f"{message.count} tasks"
    known = {"run": message.run, "count": count, "tasks": named}
    said = filled(EVENTS[message.event], known)
    return f"{said}: {message.reason}" if message.reason not in ("", message.status) else said


def document(message: Notification, text: str, missed: int) -> dict[str, object]:
    """Returns a message as a webhook gets it.

    `missed` counts messages of the same rule that were dropped before this one.
    """
    said = msgspec.structs.asdict(message)
    shown = {
        "test": said.pop("is_test"),
        "at": time_text(Instant(message.at)),
        "tasks": list(message.tasks),
    }
    return {**said, **shown, "text": text, "missed": missed}


def facts(message: Notification, text: str) -> dict[str, str]:
    """Returns the facts of a message as texts, by the names that templates have for them."""
    known = document(message, text, 0) | {"tasks": ", ".join(message.tasks)}
    return {name: str(known[name]) for name in FIELDS}


def text_of(rule: NotificationRule, message: Notification) -> str:
    """Returns the text of a message in the words of the rule, if it has any of its own."""
    said = sentence(message)
    return filled(rule.text, facts(message, said)) if rule.text else said


def trial_message(rule: NotificationRule, at: float, store: str, chance: str) -> Notification:
    """Returns the message that tests a rule, and says that it is a test."""
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


# Keeps what the next notifier must know: how far was read, and what is yet to be sent.
#
# It is one text in the store, written as a whole before anything of it is sent. Everything in
# it has a bound: what waits (100 messages of each rule; further ones are dropped and counted,
# which the next one says), what was told of tasks (the last 5,000), how runs were (the last
# 2,000), and what became of messages (the last 200).


NAME = "notifier"
WAITING_PER_RULE_MAX = 100
TOLD_MAX = 5_000
RUNS_MAX = 2_000
ENDED_MAX = 200

NAMED_BY = ("id", "rule", "event", "run")  # what a message is called by, sent or not
SENT, GIVEN_UP, DROPPED = "sent", "given up", "dropped"


class WaitingMessage(msgspec.Struct, kw_only=True):
    """Holds a message that is yet to be sent, or sent again after `tries` failures."""

    message: Notification
    due_at: float
    tries: int = 0
    error: str = ""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """Says what became of a message that is no longer to be sent."""

    id: str
    rule: str
    event: str
    run: str
    at: float
    tries: int
    outcome: str
    error: str = ""


class NotifierState(msgspec.Struct, kw_only=True):
    """Holds all that a notifier remembers; the holder of the notebook changes it in place."""

    cursor: str = ""
    waiting: list[WaitingMessage] = []
    ended: list[Ended] = []
    statuses: dict[str, str] = {}  # of runs by number, as last seen
    told: dict[str, int] = {}  # of which tasks somebody was told; oldest first
    sent_at: dict[str, float] = {}  # by rule, run and event
    missed: dict[str, int] = {}  # by rule

    def put(self, rule: NotificationRule, message: Notification, now: float) -> bool:
        """Adds a message to those that wait, or joins it to one of the same run and event.

        Returns False if it was dropped, because too many messages of its rule wait.
        """
        place = f"{rule.name}|{message.run}|{message.event}"
        of_rule = [one for one in self.waiting if one.message.rule == rule.name]
        for one in of_rule:
            alike = (one.message.run, one.message.event) == (message.run, message.event)
            if alike and not one.tries and not message.is_test:
                one.message = one.message.joined(message)
                return True
        if len(of_rule) >= WAITING_PER_RULE_MAX:
            self.missed[rule.name] = self.missed.get(rule.name, 0) + 1
            self.end(WaitingMessage(message=message, due_at=now), now, DROPPED)
            return False
        due_at = max(
            now, self.sent_at.get(place, now - rule.every_seconds) + rule.every_seconds
        )
        self.waiting.append(WaitingMessage(message=message, due_at=due_at))
        return True

    def due(self, now: float) -> Iterator[WaitingMessage]:
        """Yields the messages whose time has come, the longest waiting first."""
        there = (one for one in self.waiting if one.due_at <= now)
        yield from sorted(there, key=lambda one: one.due_at)

    def sent(self, one: WaitingMessage, now: float) -> None:
        message = one.message
        one.tries += 1
        self.missed.pop(message.rule, None)
        self.sent_at[f"{message.rule}|{message.run}|{message.event}"] = now
        _shorten(self.sent_at, RUNS_MAX)
        self.end(one, now, SENT)

    def failed(self, one: WaitingMessage, error: str, next_at: float) -> None:
        one.tries += 1
        one.error, one.due_at = error[:REASON_MAX], next_at

    def give_up(self, one: WaitingMessage, error: str, now: float) -> None:
        self.failed(one, error, now)
        self.end(one, now, GIVEN_UP)

    def end(self, one: WaitingMessage, now: float, outcome: str) -> None:
        self.waiting = [other for other in self.waiting if other is not one]
        ended = Ended(
            **{name: getattr(one.message, name) for name in NAMED_BY},
            at=now,
            tries=one.tries,
            outcome=outcome,
            error="" if outcome == SENT else one.error,
        )
        self.ended = [*self.ended[-ENDED_MAX + 1 :], ended]

    def saw_status(self, number: int, status: str) -> str | None:
        """Notes the status of a run and returns the one noted before, None if there is none."""
        before = self.statuses.pop(str(number), None)
        self.statuses[str(number)] = status
        _shorten(self.statuses, RUNS_MAX)
        return before

    def is_news(self, mark: str) -> bool:
        """Says whether something was not told yet, and notes that it is now.

        `mark` stands for what is told: a task of a run with its event.
        """
        if mark in self.told:
            return False
        self.told[mark] = 1
        _shorten(self.told, TOLD_MAX)
        return True

    def unmark(self, mark: str) -> None:
        self.told.pop(mark, None)


def _shorten(many: dict[str, Any], most: int) -> None:
    while len(many) > most:
        del many[next(iter(many))]


def write_state(state: NotifierState) -> str:
    return msgspec.json.encode(state).decode()


def read_state(text: str) -> NotifierState:
    """Returns the state that a notebook holds; a new one if this version cannot read it."""
    if not text:
        return NotifierState()
    try:
        state = msgspec.json.decode(text, type=NotifierState)
        if state.cursor:
            read_cursor(state.cursor)
    except (msgspec.DecodeError, BadSetting):
        return NotifierState()
    return state
