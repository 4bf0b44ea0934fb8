"""Follows the events of a store and tells what rules want told, at least once.

Theory of operation
-------------------
Any number of processes run a notifier; the one that holds the notebook in the store works, the
others look every few seconds whether they can have it. A pass has three steps: read what
happened behind the cursor and put messages into the state; write the state, cursor and
messages together; send what is due, and write what became of it. So a message exists in the
store before it is sent, under the id with which it is sent however often: a notifier that dies
between sending and writing is followed by one that sends it again, and a receiver can drop the
second. Nothing is sent exactly once: no receiver and no store can agree on that.

A message that nobody takes is tried again after growing times, for about a day, then given up,
which the state keeps for people to see. The first notifier of a store begins at its end: nobody
is told the past. One whose events were deleted meanwhile says so and goes on from the end.

Rules are read again when their file changes; without any, nothing is followed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from tidewheel.core.operator.stream import EventFilter, EventKind, RunEvent, read_cursor
from tidewheel.core.queue.requests import HostProcess
from tidewheel.errors import Unavailable
from tidewheel.ports.store import Store
from tidewheel.services.notebook import IsAlive, Owner, claim_notebook
from tidewheel.services.notifications.delivery import DeliveryMeans, deliver
from tidewheel.services.notifications.detection import (
    LateWatch,
    Noticed,
    message_for,
    noticed,
    stall_summary,
)
from tidewheel.services.notifications.messages import (
    NAME,
    Notification,
    NotifierState,
    WaitingMessage,
    message_id,
    read_state,
    write_state,
)
from tidewheel.services.notifications.rules import STALL, NotificationRule, RulesInForce
from tidewheel.services.service import Backoff, Service, ServiceReport, Surroundings
from tidewheel.services.workflow_state import definitions_of, remembering
from tidewheel.views.events import EventDocuments

RUN_EVENTS = EventFilter(kind=EventKind.RUN)
PAGES_PER_PASS_MAX = 20
PASSES_AT_END_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifierSettings:
    """Says where the rules are, what messages are sent with, and how patient a notifier is."""

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
        self._late = LateWatch(store, self._definition_of, settings.runs_looked_at_max)
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
        """Makes a pass before a run begins: from here on nothing is missed."""
        await self._pass()

    async def finish(self) -> None:
        """Tells after the end of a run what happened up to now, as far as it is due."""
        for _ in range(PASSES_AT_END_MAX):
            await self._pass()
            if self._epoch is None or not any(self._state.due(await self._store.now())):
                break
        await self._leave()

    async def _pass(self) -> None:
        for report in await self.run_once():
            self._surroundings.on_report(report)

    async def _leave(self) -> None:
        """Gives up the notebook, so that the next notifier need not wait for the lease."""
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
            for view in await self._store.runs(count=settings.runs_looked_at_max):
                state.saw_status(view.number, view.status)
        # Only now, when nothing can fail any more: else it is claimed again.
        self._epoch, self._written, self._state = held.epoch, held.body, state
        self._written_at = self._clock.monotonic()
        self._store_letters = head.store
        self._tell("notebook.taken", waiting=len(self._state.waiting))
        return True

    async def _write(self) -> bool:
        """Writes the notebook and says whether it is still held.

        A notebook that has not changed is written only now and then.
        """
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
        """Notices all or nothing: what was half done when the store went away is done again."""
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
        """Puts all that was noticed; what cannot be told is reported and left out.

        So the process goes on with the runs that it drives.
        """
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
                message = await stall_summary(
                    self._store, self._settings.home, self._definition_of, message
                )
            if message is not None:
                self._put_message(rule, message, now)

    def _put_message(self, rule: NotificationRule, message: Notification, now: float) -> None:
        letters = self._store_letters
        message = msgspec.structs.replace(
            message, id=message_id(letters, message.id), store=letters
        )
        if not self._state.put(rule, message, now):
            self._tell("notification.dropped", rule=rule.name, run=message.run)

    async def _look_for_late_ones(self) -> None:
        monotonic = self._clock.monotonic()
        if monotonic >= self._late_at:
            self._late_at = monotonic + self._settings.late_interval_seconds
            now = await self._store.now()
            rules = self._rules.now.rules
            async for rule, message in self._late.messages(rules, self._state, now):
                self._put_message(rule, message, now)

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
            state.drop(one, now)
            return
        error = await deliver(rule, message, state.missed.get(rule.name, 0), settings.means)
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
        self._reports.append(ServiceReport(service=self.name, event=what, facts=facts))
