"""Shows rules and messages to people, and sends tests, at the machine where the rules are."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from tidewheel.errors import NotFound
from tidewheel.ports.runs import Document
from tidewheel.ports.store import Store
from tidewheel.services.notebook import read_owner
from tidewheel.services.notifications.delivery import DeliveryMeans, deliver
from tidewheel.services.notifications.messages import (
    NAME,
    NotifierState,
    WaitingMessage,
    read_state,
    text_of,
    trial_message,
)
from tidewheel.services.notifications.rules import (
    Destination,
    MailTo,
    NotificationRule,
    Rules,
    RunCommand,
    Webhook,
    load_rules,
)
from tidewheel.vocabulary import time_text

AT_ONCE_MAX = 8


class NotificationAdmin:
    """Implements ``ports.runs.BringsNotifications`` for a store that is here."""

    def __init__(self, store: Store, rules: Path, means: DeliveryMeans) -> None:
        self._store, self._path, self._means = store, rules, means

    async def notifications(self) -> Document:
        """Returns the rules, their mistakes, what waits, and what became of messages."""
        rules = await asyncio.to_thread(load_rules, self._path)
        notebook = await self._store.notebook(NAME)
        state = NotifierState() if notebook is None else read_state(notebook.body)
        now = await self._store.now()
        is_held = notebook is not None and notebook.is_held(now)
        owner = read_owner(notebook.owner) if notebook is not None and is_held else None
        return {
            "file": str(self._path),
            **rules_document(rules),
            "sender": None
            if owner is None
            else f"{owner.process.host}, process {owner.process.pid}",
            "waiting": [_waiting_document(one) for one in state.waiting],
            "ended": [
                {**msgspec.structs.asdict(one), "at": time_text(one.at)}  # type: ignore[arg-type]
                for one in reversed(state.ended)
            ],
        }

    async def try_notifications(self, rule: str | None = None) -> Document:
        """Sends a test under one rule, or under each; raises NotFound without such a rule."""
        rules = await asyncio.to_thread(load_rules, self._path)
        wanted = [one for one in rules.rules if rule in (None, one.name)]
        if rule is not None and not wanted:
            raise NotFound("rule", rule)
        at = await self._store.now()
        store = (await self._store.events_head()).store
        room = asyncio.Semaphore(AT_ONCE_MAX)

        async def send(one: NotificationRule) -> Document:
            message = trial_message(one, at, store, secrets.token_hex(8))
            async with room:
                error = await deliver(one, message, 0, self._means)
            return {
                "rule": one.name,
                "sent": not error,
                "error": error,
                "id": message.id,
                "text": text_of(one, message),
            }

        found = await asyncio.gather(*map(send, wanted))
        return {"tests": list(found), "findings": list(rules.findings)}


def rules_document(rules: Rules) -> Document:
    """Returns the rules in force, and what is wrong with the others."""
    return {
        "rules": [
            {
                "name": rule.name,
                "on": list(rule.on),
                "workflow": rule.workflow,
                "task": rule.task,
                "every_seconds": rule.every_seconds,
                "after_seconds": rule.after_seconds,
                "kind": rule.to.kind,
                "to": where_to(rule.to),
            }
            for rule in rules.rules
        ],
        "findings": list(rules.findings),
    }


def where_to(to: Destination) -> str:
    """Shows the part of a destination that nobody could misuse.

    Paths of webhooks and arguments of commands are secrets.
    """
    match to:
        case Webhook(url=url):
            parts = urlsplit(url)
            return f"{parts.scheme}://{parts.netloc}/…"
        case MailTo(to=addresses):
            return ", ".join(addresses)
        case RunCommand(words=words, line=line):
            return (words or line.split())[0] + " …"


def _waiting_document(one: WaitingMessage) -> Document:
    named = {name: getattr(one.message, name) for name in ("id", "rule", "event", "run")}
    due_at = time_text(one.due_at)  # type: ignore[arg-type]
    return {**named, "tries": one.tries, "error": one.error, "due_at": due_at}
