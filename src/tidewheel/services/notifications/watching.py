"""What of a run's events is worth telling: runs with a new status, tasks that got stuck.

An event holds the state after it, so what was so before must be remembered: the diary does. A
task that is told to have failed is told again only for another submission of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tidewheel.core.cycling.style import PointStyle
from tidewheel.core.operator.stream import RunEvent
from tidewheel.core.sched.task_state import Key
from tidewheel.services.notifications.messages import (
    REASON_MAX,
    TASKS_NAMED_MAX,
    Notification,
    message_id,
)
from tidewheel.services.notifications.rules import (
    BLOCKED,
    COMPLETED,
    ERROR,
    FAILED,
    STALL,
    STOPPED,
    NotificationRule,
)
from tidewheel.services.notifications.state import NotifierState
from tidewheel.views.events import changed_tasks

_OF_RUNS = {"stalled": STALL, "completed": COMPLETED, "stopped": STOPPED, "error": ERROR}
_FAILED_STATES = ("failed", "submit-failed")


class Noticed(NamedTuple):
    """Something that rules may be about."""

    event: str
    about: RunEvent
    tasks: tuple[Key, ...] = ()


def noticed(event: RunEvent, diary: NotifierState) -> Iterator[Noticed]:
    """What happened with this event, as far as it is news."""
    stuck: dict[str, list[Key]] = {FAILED: [], BLOCKED: []}
    for (point, name), (words, submit) in changed_tasks(event.changes).items():
        mark = f"{event.number}|{BLOCKED}|{point}|{name}"
        if "blocked" not in words.remarks:
            diary.unmark(mark)
        elif diary.is_news(mark):
            stuck[BLOCKED].append((point, name))
        mark = f"{event.number}|{FAILED}|{point}|{name}|{submit}"
        if words.state in _FAILED_STATES and diary.is_news(mark):
            stuck[FAILED].append((point, name))
    for kind, keys in stuck.items():
        if keys:
            yield Noticed(kind, event, tuple(keys))
    before = diary.saw_status(event.number, event.status)
    if event.status != before and event.status in _OF_RUNS:
        yield Noticed(_OF_RUNS[event.status], event)


def message_for(
    rule: NotificationRule, one: Noticed, style: PointStyle | None
) -> Notification | None:
    """What this rule says of it; None if it is about other tasks."""
    event = one.about
    tasks = [key for key in one.tasks if rule.wants_task(key[1])]
    if one.tasks and not tasks:
        return None
    place = f"{event.place.major}-{event.place.minor}"
    return Notification(
        id=message_id(event.run, rule.name, event.number, one.event, place),
        rule=rule.name,
        event=one.event,
        run=event.run,
        workflow=event.workflow,
        at=event.at,
        status=event.status,
        reason="" if one.tasks else event.reason[:REASON_MAX],
        tasks=named(style, tasks),
        count=len(tasks),
    )


def named(style: PointStyle | None, tasks: list[Key]) -> tuple[str, ...]:
    """As people write them; without the definition at least by their names."""
    return tuple(
        name if style is None else f"{style.text(point)}/{name}"
        for point, name in sorted(tasks)[:TASKS_NAMED_MAX]
    )
