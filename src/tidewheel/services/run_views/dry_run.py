"""What a trigger would do, without doing it: works with the scheduler up or down (§8)."""

from __future__ import annotations

from tidewheel.core.runs.applying import events_of
from tidewheel.core.runs.commands import Trigger
from tidewheel.core.sched.effects import Submit
from tidewheel.core.sched.preview import preview
from tidewheel.services.run_views.loading import Looked
from tidewheel.services.run_views.reasons import reason_document
from tidewheel.services.run_views.run_facts import Document
from tidewheel.services.run_views.task_words import words_of
from tidewheel.services.run_views.windows import neighbours


def dry_run_document(looked: Looked, command: Trigger) -> Document:
    """What would run, in order, if every job succeeded; what would wait, and for what."""
    applied = events_of(looked.pool, command, looked.now)
    [event] = applied.events
    seen = preview(looked.pool, event)
    named = {key for key in applied.tasks}
    return {
        "run": looked.view.name,
        "tasks": [
            {"id": looked.id_of(key), "state": words_of(looked.pool, key).text}
            for key in applied.tasks
        ],
        "comes_back": [looked.id_of(key) for key in applied.back],
        "runs": [
            _run_document(looked, one, seen.runs[:number], triggered=one.task in named)
            for number, one in enumerate(seen.runs)
        ],
        "waits": [
            {
                "id": looked.id_of(key),
                "reasons": [reason_document(looked.view.name, one) for one in reasons],
            }
            for key, reasons in seen.waits.items()
        ],
        "notices": [one.text for one in seen.notices],
        "cut": seen.cut,
    }


def _run_document(
    looked: Looked, one: Submit, earlier: tuple[Submit, ...], *, triggered: bool
) -> Document:
    near = set(neighbours(looked.pool, one.task))
    after = {looked.id_of(before.task) for before in earlier if before.task in near}
    return {
        "id": looked.id_of(one.task),
        "submit": one.submit,
        "flows": sorted(one.flows),
        "triggered": triggered,
        "after": [] if triggered else sorted(after - {looked.id_of(one.task)}),
    }
