"""What operators asked of a run: who, when, and what became of it."""

from __future__ import annotations

import json

from tidewheel.core.operator.views import CommandView, RunView
from tidewheel.ports.store import Store
from tidewheel.views.run_facts import Document
from tidewheel.vocabulary import time_text

COMMANDS_MAX = 10_000


async def history_document(store: Store, view: RunView, count: int = 100) -> Document:
    """The commands, newest first."""
    found = await store.commands(view.number, min(count, COMMANDS_MAX))
    return {"run": view.name, "commands": [command_document(one) for one in found]}


def command_document(one: CommandView) -> Document:
    said = json.loads(one.body)
    verb = said.pop("verb", "")
    return {
        "number": one.number,
        "at": time_text(one.at),
        "who": one.who,
        "verb": verb,
        "arguments": said,
        "answered_at": time_text(one.answered_at),
        "refused": one.refused,
        "answer": json.loads(one.answer) if one.answer else None,
    }
