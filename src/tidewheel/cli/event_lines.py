"""Events as lines for people: time, what it is about, from what to what."""

from __future__ import annotations

from typing import cast

from tidewheel.cli.output import note, safe, say
from tidewheel.core.operator.stream import FollowedEvent

Document = dict[str, object]
SECONDS_LENGTH = len("2026-11-15T18:14:08")
MISSED = "something was missed that nobody can tell any more; going on from here"


class EventLines:
    """Remembers how each run was, to say only what is new about it."""

    def __init__(self) -> None:
        self._runs: dict[object, tuple[object, object]] = {}

    def say(self, event: FollowedEvent) -> None:
        """What there is to say of one event."""
        if event.kind == "task":
            say(_step_line(event.document))
        elif event.kind == "run":
            self._say_run(event.document)
        elif event.kind == "resync":
            note(MISSED)

    def _say_run(self, batch: Document) -> None:
        run, now = batch["run"], (batch["status"], batch["reason"])
        if self._runs.get(run) != now:
            self._runs[run] = now
            why = f" ({batch['reason']})" if batch["reason"] else ""
            say(_line(batch, run, f"{batch['status']}{why}"))
        if batch["tasks"] is None:
            say(_line(batch, run, f"{batch['changed']} tasks changed"))
        for task in cast("list[Document]", batch["tasks"] or []):
            remarks = cast("list[str]", task["remarks"])
            beside = f" ({', '.join(remarks)})" if remarks else ""
            say(_line(batch, f"{run} {task['id']}", f"→ {task['state']}{beside}"))


def _step_line(step: Document) -> str:
    before = f"{step['from']} " if step["from"] else ""
    said = [str(one) for one in (step["signal"], step["worker"]) if one]
    beside = f" ({', '.join(said)})" if said else ""
    return _line(step, step["id"], f"{before}→ {step['to']}{beside}")


def _line(document: Document, what: object, change: str) -> str:
    at = str(document["at"])[:SECONDS_LENGTH]
    return f"{at}Z  {safe(what)}  {safe(change)}"
