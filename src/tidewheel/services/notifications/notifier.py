"""Follows the events of a store and sends the messages that rules ask for, at least once.

Theory of operation
-------------------
Any number of processes run a notifier; the one that holds the notebook in the store works, the
others look every few seconds whether they can have it. A pass has three steps: read what
happened behind the cursor and put messages into the state; write the state, cursor and
messages together; send what is due, and write what became of it. So a message exists in the
store before it is sent, under the id with which it is sent however often: a notifier that dies
between sending and writing is followed by one that sends it again, and a receiver can drop the
second. Nothing is sent exactly once: no receiver and no store can agree on that.

A message that nobody takes is tried again after growing times, for about 18 hours, then given
up, which the state keeps for people to see. The first notifier of a store begins at its end:
nobody is told the past. One whose events were deleted meanwhile says so and goes on from the
end.

Rules are read again when their file changes; without any, nothing is followed.

What is worth telling are runs with a new status, tasks that got stuck or are late. An event
holds the state after it, so what was so before must be remembered: the state does. A task that
is told to have failed is told again only for another submission of it. A task is late a while
after the time of its point: as long as the rule's `after` says, else as the definition's `late
offset` does. Where the run began after that time (it catches up), or points are no times, the
while is counted from the beginning of the run; there only `after` counts.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path

import msgspec

from tidewheel.core.cycling.calendar import Calendar
from tidewheel.core.cycling.style import PointStyle
from tidewheel.core.graph.graph import Graph
from tidewheel.core.operator.stream import EventFilter, EventKind, RunEvent, read_cursor
from tidewheel.core.operator.views import OPEN_STATUSES, RunView
from tidewheel.core.queue.requests import HostProcess
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.explain import why
from tidewheel.core.sched.lifecycle import root_causes
from tidewheel.core.sched.persistence import PooledTaskRow, PutTask
from tidewheel.core.sched.task_state import JobPhase, Key
from tidewheel.errors import NotFound, Refused, Unavailable
from tidewheel.lazy_dataclasses import NamedTuple, dataclass
from tidewheel.ports.runs import Document
from tidewheel.ports.store import Store
from tidewheel.services.notebook import IsAlive, Owner, claim_notebook, read_owner
from tidewheel.services.notifications.delivery import DeliveryMeans, deliver
from tidewheel.services.notifications.messages import (
    DROPPED,
    NAME,
    NAMED_BY,
    REASON_MAX,
    TASKS_NAMED_MAX,
    Notification,
    NotifierState,
    WaitingMessage,
    message_id,
    read_state,
    text_of,
    trial_message,
    write_state,
)
from tidewheel.services.notifications.rules import (
    BLOCKED,
    FAILED,
    LATE,
    STALL,
    NotificationRule,
    RulesInForce,
    load_rules,
    rules_document,
)
from tidewheel.services.service import Backoff, Service, ServiceReport, Surroundings
from tidewheel.services.workflow_state import definitions_of, remembering
from tidewheel.views.events import EventDocuments, changed_tasks
from tidewheel.views.snapshot import gather
from tidewheel.vocabulary import time_text

RUN_EVENTS = EventFilter(kind=EventKind.RUN)
PAGES_PER_PASS_MAX = 20
PASSES_AT_END_MAX = 5
REASONS_MAX = 5  # tasks whose reasons for a stall are told


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifierSettings:
    """Says where the rules are, what messages are sent with, and how long a notifier waits."""

    rules: Path
    home: Path
    process: HostProcess  # who holds the notebook
    is_alive: IsAlive
    means: DeliveryMeans
    interval_seconds: float = 1.0
    standby_seconds: float = 5.0
    late_interval_seconds: float = 30.0
    lease_seconds: float = 60.0
    at_once_max: int = 8
    tries_max: int = 30
    retry: Backoff = field(default=Backoff(first_seconds=5.0, seconds_max=3_600.0))
    runs_looked_at_max: int = 200


class NotifierService(Service):
    """Sends the messages of a store, unless another notifier does."""

    def __init__(
        self, store: Store, settings: NotifierSettings, surroundings: Surroundings
    ) -> None:
        super().__init__("notifier", surroundings)
        self._store, self._settings = store, settings
        self._documents = EventDocuments(store, settings.home)
        self._definition_of = remembering(definitions_of(store, settings.home))
        self._rules = RulesInForce(settings.rules)
        self._owner = Owner(settings.process, f"{surroundings.chance.getrandbits(64):x}")
        self._epoch: int | None = None
        self._state = NotifierState()
        self._written = ""
        self._written_at = 0.0
        self._late_at = 0.0
        self._store_letters = ""
        self._reports: list[ServiceReport] = []

    def rest_seconds(self) -> float | None:
        settings = self._settings
        return settings.standby_seconds if self._epoch is None else settings.interval_seconds

    async def run(self) -> None:
        await super().run()
        await self._leave()

    async def begin(self) -> None:
        """Makes a pass; called before a run begins, so that nothing of the run is missed."""
        for report in await self.run_once():
            self._surroundings.on_report(report)

    async def finish(self) -> None:
        """Sends what is due after the end of a run, in a few passes; gives up the notebook."""
        for _ in range(PASSES_AT_END_MAX):
            await self.begin()
            if self._epoch is None or not any(self._state.due(await self._store.now())):
                break
        await self._leave()

    async def _leave(self) -> None:
        """Gives up the notebook, if it is held, so that others need not wait for the lease."""
        if self._epoch is not None:
            await self._store.leave_notebook(NAME, self._epoch)
            self._epoch = None

    async def run_once(self) -> Sequence[ServiceReport]:
        self._reports = []
        found = await asyncio.to_thread(self._rules.refresh)
        if found is not None and (found.rules or found.findings):
            self._tell("rules.read", count=len(found.rules), findings=list(found.findings))
        if self._rules.now.rules and await self._holds_the_notebook():
            await self._notice()
            if await self._write():
                await self._send()
                await self._write()
        else:
            await self._leave()
        return self._reports

    # ---- the notebook ----

    async def _holds_the_notebook(self) -> bool:
        if self._epoch is not None:
            return True
        settings = self._settings
        held = await claim_notebook(
            self._store, NAME, self._owner, settings.lease_seconds, settings.is_alive
        )
        if held is None:
            return False
        state = read_state(held.body)
        head = await self._store.events_head()
        if not state.cursor:
            state.cursor = str(head)
            for view in await self._store.runs(count=settings.runs_looked_at_max, nested=True):
                state.saw_status(view.number, view.status)
        # Only now, when nothing can fail any more: else it is claimed again.
        self._epoch, self._written, self._state = held.epoch, held.body, state
        self._written_at = self._clock.monotonic()
        self._store_letters = head.store
        self._tell("notebook.taken", waiting=len(self._state.waiting))
        return True

    async def _write(self) -> bool:
        """Writes the notebook and says whether it is still held. A notebook that has not
        changed is written only now and then."""
        assert self._epoch is not None
        body, now = write_state(self._state), self._clock.monotonic()
        is_due = now - self._written_at > self._settings.lease_seconds / 3
        if body == self._written and not is_due:
            return True
        lease = self._settings.lease_seconds
        if not await self._store.write_notebook(NAME, self._epoch, body, lease):
            self._epoch = None
            self._tell("notebook.lost")
            return False
        self._written, self._written_at = body, now
        self._surroundings.failpoint("diary_written")
        return True

    # ---- what happened ----

    async def _notice(self) -> None:
        """Puts messages about all that happened into the state, or none. If the store goes away
        meanwhile, the state is as before, and the next pass begins anew."""
        before = write_state(self._state)
        try:
            await self._take_in()
            await self._look_for_late_ones()
        except Unavailable:
            self._state = read_state(before)
            raise

    async def _take_in(self) -> None:
        now = await self._store.now()
        for _ in range(PAGES_PER_PASS_MAX):
            page = await self._store.events_after(read_cursor(self._state.cursor), RUN_EVENTS)
            if page.is_lost:
                self._tell("events.lost", cursor=self._state.cursor)
            for event in page.events:
                assert isinstance(event, RunEvent)
                await self._put_all(list(noticed(event, self._state)), now)
            self._state.cursor = str(page.next)
            if page.is_last:
                return

    async def _put_all(self, found: Sequence[Noticed], now: float) -> None:
        """Makes messages of all that was noticed; what raises is reported and left out. So the
        process goes on with the runs that it drives."""
        for one in found:
            try:
                await self._put(one, now)
            except Unavailable:
                raise
            except Exception as error:
                self._tell("event.untold", run=one.about.run, kind=one.event, error=repr(error))

    async def _put(self, one: Noticed, now: float) -> None:
        event = one.about
        for rule in self._rules.now.rules:
            if not rule.wants(one.event, event.workflow):
                continue
            style = await self._documents.style(event) if one.tasks else None
            message = message_for(rule, one, style)
            if message is not None and one.event == STALL:
                message = await self._with_causes(message)
            if message is not None:
                self._put_message(rule, message, now)

    async def _with_causes(self, message: Notification) -> Notification:
        """Returns a message of a stall with the tasks that cause it, and their reasons. It is
        the message as it was if the run cannot be read."""
        read, home = self._definition_of, self._settings.home
        try:
            view = await self._store.find_run(message.run)
            looked = await gather(self._store, view, home, recall=False, definition_of=read)
        except (Refused, OSError):
            return message
        causes, pool = root_causes(looked.pool) if looked.started else [], looked.pool
        said = [one.text for task in causes[:REASONS_MAX] for one in why(pool, task.key)]
        reason = "; ".join(dict.fromkeys(said)) or message.reason
        tasks = tuple(pool.plan.name_of(task.key) for task in causes[:TASKS_NAMED_MAX])
        return msgspec.structs.replace(
            message, reason=reason[:REASON_MAX], tasks=tasks, count=len(causes)
        )

    def _put_message(self, rule: NotificationRule, message: Notification, now: float) -> None:
        letters = self._store_letters
        message = msgspec.structs.replace(
            message, id=message_id(letters, message.id), store=letters
        )
        if not self._state.put(rule, message, now):
            self._tell("notification.dropped", rule=rule.name, run=message.run)

    async def _look_for_late_ones(self) -> None:
        """Puts a message for each rule and run with late tasks that nobody was told of yet."""
        monotonic = self._clock.monotonic()
        if monotonic < self._late_at:
            return
        self._late_at = monotonic + self._settings.late_interval_seconds
        now = await self._store.now()
        interested = [rule for rule in self._rules.now.rules if LATE in rule.on]
        count = self._settings.runs_looked_at_max
        for view in await self._store.runs(count=count, nested=True) if interested else ():
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
            rows = [one.row for one in stored.changes if isinstance(one, PutTask)]
            for rule in wanted:
                late = late_tasks(rule, view, rows, graph, now)
                place = f"{view.number}|{LATE}|{rule.name}"
                news = [
                    one for one in late if self._state.is_news(f"{place}|{one[0]}|{one[1]}")
                ]
                if news:
                    self._put_message(rule, _late_message(rule, view, graph, news, now), now)

    # ---- sending ----

    async def _send(self) -> None:
        now = await self._store.now()
        due = list(self._state.due(now))[: self._settings.at_once_max]
        if due:
            await asyncio.gather(*(self._send_one(one, now) for one in due))

    async def _send_one(self, one: WaitingMessage, now: float) -> None:
        message, settings, state = one.message, self._settings, self._state
        rule = self._rules.now.named(message.rule)
        if rule is None:
            state.end(one, now, DROPPED)
            return
        missed = state.missed.get(rule.name, 0)
        error = await deliver(rule, message, missed, settings.means, now)
        told = {"id": message.id, "rule": rule.name, "kind": message.event, "run": message.run}
        self._surroundings.failpoint("notification_sent")
        if not error:
            state.sent(one, now)
            self._tell("notification.sent", **told)
        elif one.tries + 1 >= settings.tries_max:
            state.give_up(one, error, now)
            self._tell("notification.given_up", **told, error=error)
        else:
            wait = settings.retry.first_seconds * 2.0**one.tries
            wait = min(wait, settings.retry.seconds_max)
            chance = self._surroundings.chance.uniform(0.75, 1.0)  # not all at once
            state.failed(one, error, now + wait * chance)
            self._tell("notification.failed", **told, error=error, tries=one.tries)

    def _tell(self, what: str, /, **facts: object) -> None:
        self._reports.append(self.report(what, **facts))


# What is worth telling.


_OF_RUNS = {"stalled": STALL} | {name: name for name in ("completed", "stopped", "error")}
_FAILED_STATES = ("failed", "submit-failed")


class Noticed(NamedTuple):
    """Holds something that happened in a run, and that rules may be about."""

    event: str
    about: RunEvent
    tasks: tuple[Key, ...] = ()


def noticed(event: RunEvent, state: NotifierState) -> Iterator[Noticed]:
    """Yields what an event tells for the first time: tasks that got stuck, the run's status.

    It notes in the state that this was told.
    """
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
    """Returns a rule's message about something noticed; None if it is about other tasks."""
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
    """Returns the ids of the first tasks, POINT/NAME; of stages, and without a style, the names
    alone.

    There is no style where the definition could not be read.
    """
    return tuple(
        name if style is None or style.is_unwritten else f"{style.text(point)}/{name}"
        for point, name in sorted(tasks)[:TASKS_NAMED_MAX]
    )


def _late_message(
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
    rule: NotificationRule, view: RunView, rows: list[PooledTaskRow], graph: Graph, now: float
) -> list[Key]:
    """Returns those tasks of a run that the rule is about and that are late now."""
    there = [
        (one, _late_at(rule, view, one, graph)) for one in rows if rule.wants_task(one.name)
    ]
    return [(one.point, one.name) for one, at in there if at is not None and at <= now]


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


# What people are shown of notifications, and their tests, on the machine where the rules are.


AT_ONCE_MAX = 8


class NotificationAdmin:
    """Implements ``ports.runs.BringsNotifications`` where the file of rules is."""

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
            "waiting": [
                {
                    **{name: getattr(one.message, name) for name in NAMED_BY},
                    "tries": one.tries,
                    "error": one.error,
                    "due_at": time_text(Instant(one.due_at)),
                }
                for one in state.waiting
            ],
            "ended": [
                {**msgspec.structs.asdict(one), "at": time_text(Instant(one.at))}
                for one in reversed(state.ended)
            ],
        }

    async def try_notifications(self, rule: str | None = None) -> Document:
        """Sends a test message of one rule, or of each (None), and returns how each went.

        Raises NotFound if there is no such rule.
        """
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
                error = await deliver(one, message, 0, self._means, at)
            return {
                "rule": one.name,
                "sent": not error,
                "error": error,
                "id": message.id,
                "text": text_of(one, message),
            }

        found = await asyncio.gather(*map(send, wanted))
        return {"tests": list(found), "findings": list(rules.findings)}
