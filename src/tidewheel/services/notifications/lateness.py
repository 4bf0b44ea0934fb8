"""Which tasks of a run are late: unfinished, when somebody wanted to hear of it if they were.

A task is late a while after the time of its point: as long as the rule's `after` says, else as
the definition's `late offset` does. Where the run began after that time (it catches up), or
points are no times, the while is counted from the beginning of the run; there only `after`
counts.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence

from tidewheel.core.cycling.calendar import Calendar
from tidewheel.core.graph.graph import Graph
from tidewheel.core.operator.requests import StoredRun
from tidewheel.core.operator.views import OPEN_STATUSES, RunView
from tidewheel.core.sched.persistence import PooledTaskRow, PutTask
from tidewheel.core.sched.task_state import JobPhase, Key
from tidewheel.errors import Unavailable
from tidewheel.ports.store import Store
from tidewheel.services.notifications.detection import named
from tidewheel.services.notifications.messages import Message, message_id
from tidewheel.services.notifications.rules import LATE, Rule
from tidewheel.services.notifications.state import Diary
from tidewheel.services.workflow_state import DefinitionOf


class LateWatch:
    """Looks through the open runs of a store."""

    def __init__(self, store: Store, definition_of: DefinitionOf, runs_max: int) -> None:
        self._store, self._definition_of, self._runs_max = store, definition_of, runs_max

    async def messages(
        self, rules: Sequence[Rule], diary: Diary, now: float
    ) -> AsyncIterator[tuple[Rule, Message]]:
        """One for each rule and run with tasks that nobody was told of yet."""
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
                    if diary.is_news(f"{view.number}|{LATE}|{rule.name}|{key[0]}|{key[1]}")
                ]
                if late:
                    yield rule, _message(rule, view, graph, late, now)


def _message(rule: Rule, view: RunView, graph: Graph, late: list[Key], now: float) -> Message:
    ids = named(graph.cycling.style, late)
    return Message(
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
    rule: Rule, view: RunView, stored: StoredRun, graph: Graph, now: float
) -> Iterator[Key]:
    """Those that this rule wants to hear of."""
    for change in stored.changes:
        if isinstance(change, PutTask) and rule.wants_task(change.row.name):
            late_at = _late_at(rule, view, change.row, graph)
            if late_at is not None and late_at <= now:
                yield change.row.point, change.row.name


def _late_at(rule: Rule, view: RunView, row: PooledTaskRow, graph: Graph) -> float | None:
    if row.stage is JobPhase.INCOMPLETE:  # it ended, and whoever wants that hears of a failure
        return None
    node = graph.nodes.get(row.name)
    is_time = graph.cycling.style.calendar is Calendar.GREGORIAN
    if rule.after_seconds is not None:
        begun = max(view.created_at, float(row.point)) if is_time else view.created_at
        return begun + rule.after_seconds
    offset = None if node is None else node.definition.events.late_offset_seconds
    return float(row.point) + offset if is_time and offset is not None else None
