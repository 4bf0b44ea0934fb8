"""Messages from outside that let tasks go: one message, one task (Cylc's external triggers)."""

from __future__ import annotations

import json

from tidewheel.core.operator.requests import XtriggerResult
from tidewheel.core.sched.spawn import MESSAGE
from tidewheel.core.sched.task_state import Key
from tidewheel.errors import Refused


class PushTriggers:
    """Who waits for which message, and what was heard and is nobody's yet."""

    def __init__(self, heard_max: int) -> None:
        self._heard_max = heard_max
        self._heard: dict[str, dict[str, int]] = {}  # message -> id -> how often
        self._waiting: dict[str, set[Key]] = {}  # message -> tasks

    def watch(self, message: str, key: Key) -> str | None:
        """The id of a message that was kept for this task; None: it waits."""
        ids = self._heard.get(message)
        if not ids:
            self._waiting.setdefault(message, set()).add(key)
            return None
        trigger_id = next(iter(ids))
        ids[trigger_id] -= 1
        if not ids[trigger_id]:
            del ids[trigger_id]
        if not ids:
            del self._heard[message]
        return trigger_id

    def drop(self, message: str, key: Key) -> None:
        waiting = self._waiting.get(message, set())
        waiting.discard(key)
        if not waiting:
            self._waiting.pop(message, None)

    def awaited(self) -> list[str]:
        """The messages that tasks wait for."""
        return list(self._waiting)

    def hear(self, message: str, trigger_id: str) -> Key | None:
        """The task that it lets go: of those that wait, the earliest; None: it is kept."""
        waiting = self._waiting.get(message)
        if waiting:
            key = min(waiting)
            self.drop(message, key)
            return key
        ids = self._heard.get(message, {})
        if sum(ids.values()) >= self._heard_max or len(self._heard) >= self._heard_max:
            raise Refused(
                f"{self._heard_max} messages such as {message[:60]!r} are kept already and no "
                "task waits for them; is it spelt as in the definition?"
            )
        self._heard.setdefault(message, ids)[trigger_id] = ids.get(trigger_id, 0) + 1
        return None

    def row(self, message: str) -> XtriggerResult:
        """What must outlive this process."""
        ids = self._heard.get(message)
        return XtriggerResult(MESSAGE + message, json.dumps(ids) if ids else "")

    def restore(self, row: XtriggerResult) -> None:
        self._heard[row.signature.removeprefix(MESSAGE)] = json.loads(row.result)
