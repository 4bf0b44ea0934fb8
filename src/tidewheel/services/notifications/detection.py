"""Finds what is worth telling: runs with a new status, tasks that got stuck or are late.

An event holds the state after it, so what was so before must be remembered: `state` does. A
task that is told to have failed is told again only for another submission of it.

A task is late a while after the time of its point: as long as the rule's `after` says, else as
the definition's `late offset` does. Where the run began after that time (it catches up), or
points are no times, the while is counted from the beginning of the run; there only `after`
counts.

Of a run that is stalled, `stall_summary` names the tasks that keep it, and what they need.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from tidewheel.core.cycling.calendar import Calendar
from tidewheel.core.cycling.style import PointStyle
from tidewheel.core.graph.graph import Graph
from tidewheel.core.operator.requests import StoredRun
from tidewheel.core.operator.stream import RunEvent
from tidewheel.core.operator.views import OPEN_STATUSES, RunView
from tidewheel.core.sched.explain import why
from tidewheel.core.sched.lifecycle import root_causes
from tidewheel.core.sched.persistence import PooledTaskRow, PutTask
from tidewheel.core.sched.task_state import JobPhase, Key
from tidewheel.errors import Refused, Unavailable
from tidewheel.ports.store import Store
from tidewheel.services.notifications.messages import (
    REASON_MAX,
    TASKS_NAMED_MAX,
    Notification,
    NotifierState,
    message_id,
)
from tidewheel.services.notifications.rules import (
    BLOCKED,
    COMPLETED,
    ERROR,
    FAILED,
    LATE,
    STALL,
    STOPPED,
    NotificationRule,
)
from tidewheel.services.workflow_state import DefinitionOf
from tidewheel.views.events import changed_tasks
from tidewheel.views.snapshot import gather

_OF_RUNS = {"stalled": STALL, "completed": COMPLETED, "stopped": STOPPED, "error": ERROR}
_FAILED_STATES = ("failed", "submit-failed")


class Noticed(NamedTuple):
    """Is something that happened, and that rules may be about."""

    event: str
    about: RunEvent
    tasks: tuple[Key, ...] = ()


def noticed(event: RunEvent, state: NotifierState) -> Iterator[Noticed]:
    """Finds what happened with this event, as far as it is news."""
    stuck: dict[str, list[Key]] = {FAILED: [], BLOCKED: []}
    for (point, name), (words, submit) in changed_tasks(event.changes).items():
        mark = f"{event.number}|{BLOCKED}|{point}|{name}"
        if "blocked" not in words.remarks:
            state.unmark(mark)
        elif state.is_news(mark):
            stuck[BLOCKED].append((point, name))
        mark = f"{event.number}|{FAILED}|{point}|{name}|{submit}"
        if words.state in _FAILED_STATES and state.is_news(mark):
            stuck[FAILED].append((point, name))
    for kind, keys in stuck.items():
        if keys:
            yield Noticed(kind, event, tuple(keys))
    before = state.saw_status(event.number, event.status)
    if event.status != before and event.status in _OF_RUNS:
        yield Noticed(_OF_RUNS[event.status], event)


def message_for(
    rule: NotificationRule, one: Noticed, style: PointStyle | None
) -> Notification | None:
    """Returns the message that a rule makes of it; None if the rule is about other tasks."""
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
    """Names tasks as people write them; without the definition at least by their names."""
    return tuple(
        name if style is None else f"{style.text(point)}/{name}"
        for point, name in sorted(tasks)[:TASKS_NAMED_MAX]
    )


class LateWatch:
    """Looks through the open runs of a store."""

    def __init__(self, store: Store, definition_of: DefinitionOf, runs_max: int) -> None:
        self._store, self._definition_of, self._runs_max = store, definition_of, runs_max

    async def messages(
        self, rules: Sequence[NotificationRule], state: NotifierState, now: float
    ) -> AsyncIterator[tuple[NotificationRule, Notification]]:
        """Makes a message for each rule and run with late tasks that nobody was told of yet."""
        interested = [rule for rule in rules if LATE in rule.on]
        views = await self._store.runs(count=self._runs_max) if interested else []
        for view in views:
            wanted = [rule for rule in interested if rule.wants(LATE, view.workflow)]
            if not wanted or view.status not in OPEN_STATUSES:
                continue
            try:
                stored = await self._store.read_run(view.number)
                graph = (await self._definition_of(view)).graph
            except Unavailable:
                raise
            except Exception:  # deleted meanwhile, or not to be read any more: others can be
                continue
            for rule in wanted:
                late = [
                    key
                    for key in late_tasks(rule, view, stored, graph, now)
                    if state.is_news(f"{view.number}|{LATE}|{rule.name}|{key[0]}|{key[1]}")
                ]
                if late:
                    yield rule, _message(rule, view, graph, late, now)


def _message(
    rule: NotificationRule, view: RunView, graph: Graph, late: list[Key], now: float
) -> Notification:
    ids = named(graph.cycling.style, late)
    return Notification(
        id=message_id(view.number, view.created_at, rule.name, LATE, *ids, now),
        rule=rule.name,
        event=LATE,
        run=view.name,
        workflow=view.workflow,
        at=now,
        status=view.status,
        tasks=ids,
        count=len(late),
    )


def late_tasks(
    rule: NotificationRule, view: RunView, stored: StoredRun, graph: Graph, now: float
) -> Iterator[Key]:
    """Finds the late tasks that this rule is about."""
    for change in stored.changes:
        if isinstance(change, PutTask) and rule.wants_task(change.row.name):
            late_at = _late_at(rule, view, change.row, graph)
            if late_at is not None and late_at <= now:
                yield change.row.point, change.row.name


def _late_at(
    rule: NotificationRule, view: RunView, row: PooledTaskRow, graph: Graph
) -> float | None:
    if row.stage is JobPhase.INCOMPLETE:  # it ended: rules about failures tell of it
        return None
    node = graph.nodes.get(row.name)
    is_time = graph.cycling.style.calendar is Calendar.GREGORIAN
    if rule.after_seconds is not None:
        begun = max(view.created_at, float(row.point)) if is_time else view.created_at
        return begun + rule.after_seconds
    offset = None if node is None else node.definition.events.late_offset_seconds
    return float(row.point) + offset if is_time and offset is not None else None


REASONS_MAX = 5


async def stall_summary(
    store: Store, home: Path, definition_of: DefinitionOf, message: Notification
) -> Notification:
    """Adds to a message what keeps the run; leaves the message if the run cannot be read."""
    try:
        view = await store.find_run(message.run)
        looked = await gather(store, view, home, recall=False, definition_of=definition_of)
    except (Refused, OSError):
        return message
    causes = root_causes(looked.pool) if looked.started else []
    said = [
        reason.text for task in causes[:REASONS_MAX] for reason in why(looked.pool, task.key)
    ]
    reason = "; ".join(dict.fromkeys(said)) or message.reason
    return msgspec.structs.replace(
        message,
        reason=reason[:REASON_MAX],
        tasks=tuple(looked.id_of(task.key) for task in causes[:TASKS_NAMED_MAX]),
        count=len(causes),
    )
