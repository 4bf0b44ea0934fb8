"""Keeps what the next notifier must know: how far was read, and what is yet to be sent.

It is one text in the store, written as a whole before anything of it is sent. Everything in it
has a bound: what waits (100 messages of each rule; further ones are dropped and counted, which
the next one says), what was told of tasks (the last 5,000), how runs were (the last 2,000), and
what became of messages (the last 200).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidewheel.core.operator.stream import read_cursor
from tidewheel.core.queue.requests import HostProcess
from tidewheel.errors import BadSetting
from tidewheel.services.notifications.messages import REASON_MAX, Notification
from tidewheel.services.notifications.rules import NotificationRule

NAME = "notifier"
WAITING_PER_RULE_MAX = 100
TOLD_MAX = 5_000
RUNS_MAX = 2_000
ENDED_MAX = 200

SENT, GIVEN_UP, DROPPED = "sent", "given up", "dropped"


class WaitingMessage(msgspec.Struct, kw_only=True):
    """A message that is yet to be sent, perhaps again."""

    message: Notification
    due_at: float
    tries: int = 0
    error: str = ""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is no longer to be sent, and what became of it."""

    id: str
    rule: str
    event: str
    run: str
    at: float
    tries: int
    outcome: str
    error: str = ""


class NotifierState(msgspec.Struct, kw_only=True):
    """All that a notifier remembers; the holder of the notebook changes it in place."""

    cursor: str = ""
    waiting: list[WaitingMessage] = []
    ended: list[Ended] = []
    statuses: dict[str, str] = {}  # of runs by number, as last seen
    told: dict[str, int] = {}  # of which tasks somebody was told; oldest first
    sent_at: dict[str, float] = {}  # by rule, run and event
    missed: dict[str, int] = {}  # by rule

    def put(self, rule: NotificationRule, message: Notification, now: float) -> bool:
        """Takes a message to send, or joins it to one like it; False: the rule has too many."""
        place = f"{rule.name}|{message.run}|{message.event}"
        of_rule = [one for one in self.waiting if one.message.rule == rule.name]
        for one in of_rule:
            alike = (one.message.run, one.message.event) == (message.run, message.event)
            if alike and not one.tries and not message.is_test:
                one.message = one.message.joined(message)
                return True
        if len(of_rule) >= WAITING_PER_RULE_MAX:
            self.missed[rule.name] = self.missed.get(rule.name, 0) + 1
            self._end(WaitingMessage(message=message, due_at=now), now, DROPPED)
            return False
        due_at = max(
            now, self.sent_at.get(place, now - rule.every_seconds) + rule.every_seconds
        )
        self.waiting.append(WaitingMessage(message=message, due_at=due_at))
        return True

    def due(self, now: float) -> Iterator[WaitingMessage]:
        """Returns the messages whose time has come, the longest waiting first."""
        yield from sorted(
            (one for one in self.waiting if one.due_at <= now), key=lambda one: one.due_at
        )

    def sent(self, one: WaitingMessage, now: float) -> None:
        message = one.message
        one.tries += 1
        self.missed.pop(message.rule, None)
        self.sent_at[f"{message.rule}|{message.run}|{message.event}"] = now
        _shorten(self.sent_at, RUNS_MAX)
        self._end(one, now, SENT)

    def failed(self, one: WaitingMessage, error: str, next_at: float) -> None:
        one.tries += 1
        one.error, one.due_at = error[:REASON_MAX], next_at

    def give_up(self, one: WaitingMessage, error: str, now: float) -> None:
        one.tries += 1
        one.error = error[:REASON_MAX]
        self._end(one, now, GIVEN_UP)

    def drop(self, one: WaitingMessage, now: float) -> None:
        """Drops a message whose rule is gone."""
        self._end(one, now, DROPPED)

    def _end(self, one: WaitingMessage, now: float, outcome: str) -> None:
        self.waiting = [other for other in self.waiting if other is not one]
        message = one.message
        ended = Ended(
            id=message.id,
            rule=message.rule,
            event=message.event,
            run=message.run,
            at=now,
            tries=one.tries,
            outcome=outcome,
            error="" if outcome == SENT else one.error,
        )
        self.ended = [*self.ended[-ENDED_MAX + 1 :], ended]

    def saw_status(self, number: int, status: str) -> str | None:
        """Notes the status of a run and returns what it was before."""
        before = self.statuses.pop(str(number), None)
        self.statuses[str(number)] = status
        _shorten(self.statuses, RUNS_MAX)
        return before

    def is_news(self, mark: str) -> bool:
        """Tells whether nobody was told of this, and notes that somebody is now."""
        if mark in self.told:
            return False
        self.told[mark] = 1
        _shorten(self.told, TOLD_MAX)
        return True

    def unmark(self, mark: str) -> None:
        self.told.pop(mark, None)


def _shorten(
    many: dict[str, object] | dict[str, int] | dict[str, str] | dict[str, float], most: int
) -> None:
    while len(many) > most:
        del many[next(iter(many))]


def write_state(state: NotifierState) -> str:
    return msgspec.json.encode(state).decode()


def read_state(text: str) -> NotifierState:
    """Reads the state as it was written; begins anew if a later version wrote it otherwise."""
    if not text:
        return NotifierState()
    try:
        state = msgspec.json.decode(text, type=NotifierState)
        if state.cursor:
            read_cursor(state.cursor)
    except (msgspec.DecodeError, BadSetting):
        return NotifierState()
    return state


class Owner(msgspec.Struct, frozen=True):
    """The holder of the notebook, whose death can be proven; one of several in a process."""

    process: HostProcess
    nonce: str


def owner_text(owner: Owner) -> str:
    return msgspec.json.encode(owner).decode()


def read_owner(text: str | None) -> Owner | None:
    try:
        return msgspec.json.decode(text or "null", type=Owner | None)
    except msgspec.DecodeError:
        return None
