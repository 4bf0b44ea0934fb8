"""Submitted tasks of a run that wait until somebody does something: which, and for what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidewheel.cli.runs.words import documents, texts

if TYPE_CHECKING:
    from tidewheel.ports.runs import RunDoor

ASKED_MAX = 20  # of those that wait; one look at a worker's queue each
TOLD_MAX = 5


async def waits_in_vain(door: RunDoor, run: str) -> list[str]:
    """A line for each that no worker takes as things are, with what would help."""
    shown = await door.look("show", {"run": run})
    queued = [str(one["id"]) for one in documents(shown, "active") if not one["started_at"]]
    if not queued:
        return []
    told = await door.look("why", {"run": run, "ids": queued[:ASKED_MAX]})
    lines = [line for task in documents(told, "tasks") for line in _lines(task)]
    more = len(lines) - TOLD_MAX
    return lines[:TOLD_MAX] + ([f"and {more} more tasks wait like that"] if more > 0 else [])


def _lines(task: Any) -> list[str]:  # noqa: ANN401 - a document
    stuck = [one for one in documents(task, "reasons") if not one["passes"]]
    if not stuck:
        return []
    said = [": ".join([str(one["text"]), *texts(one, "commands")]) for one in stuck]
    return [f"{task['id']} waits: {'; '.join(said)}"]
