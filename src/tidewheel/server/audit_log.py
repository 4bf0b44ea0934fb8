"""Writes the audit of a server: what was changed, and who was refused.

Each entry is sealed with the one before it, so that all servers of a store write in turn. What
comes while one transaction is under way is written together in the next: a change waits for two
commits at most, however many come at once.

A stranger must not fill the disk. Of the refusals of one token, or of one address without a
valid token, the first is written at once, and how many followed when some minutes are over.
When there are many addresses, those that come late are counted together.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import replace

from tidewheel.core.queue.access import AuditEntry
from tidewheel.errors import TidewheelError, Unavailable
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.ports.store import Store
from tidewheel.server.call import NOBODY
from tidewheel.server.request_batches import Gathering
from tidewheel.services.service import OnReport, ServiceReport, tell_nobody

ENTRIES_AT_ONCE_MAX = 500
REFUSALS_SECONDS = 300.0
SUMMED_UP_SECONDS = 60.0  # between two looks for those that are over
REFUSED_MAX = 30  # tokens and addresses whose refusals are told apart
TOLD_SECONDS = 3_600.0
REFUSED_MORE = "refused"  # stands for a route in entries that count
_OTHERS = "(others)"
_log = logging.getLogger("tidewheel.server")


class AuditLog:
    """Adds entries to the audit of a store for one server."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self.on_report: OnReport = tell_nobody
        self._store, self._clock = store, clock
        # One call at a time: each continues the chain where the one before it ended.
        self._entries = Gathering(
            self._write, ENTRIES_AT_ONCE_MAX, calls_max=1, drops_gone=False
        )
        self._refusals = RefusalTally(clock)
        self._summing_up: asyncio.Task[None] | None = None
        self._last: AuditEntry | None = None  # that was written here
        self._told_at = clock()

    async def begin(self) -> None:
        """Tells the log which entry is the last: who cuts the audit off while no server runs
        cannot change what was told before."""
        with suppress(Unavailable):
            found = await self._store.audit(count=1)
            self._last = found[0] if found else None
            self._tell()

    async def add(self, entry: AuditEntry) -> None:
        """Adds an entry; returns when it is committed."""
        await self._entries.ask(entry)

    async def refused(self, entry: AuditEntry, key: Hashable) -> None:
        """Adds a refusal, or counts it; a store that does not answer stops no refusal."""
        written = self._refusals.note(entry, key)
        if self._summing_up is None:
            self._summing_up = asyncio.create_task(self._sum_up())
        if written is not None:
            try:
                await self.add(written)
            except TidewheelError as error:
                _log.error("a refused request could not be recorded in the audit: %s", error)

    async def close(self) -> None:
        """Writes how many refusals were counted, and tells the log the last entry."""
        if self._summing_up is not None:
            self._summing_up.cancel()
        with suppress(Unavailable):
            for entry in self._refusals.counted():
                await self.add(entry)
        self._tell()

    async def _write(self, entries: list[AuditEntry]) -> list[None]:
        self.wrote(await self._store.add_audit(entries))
        return [None] * len(entries)

    def wrote(self, last: AuditEntry) -> None:
        """Notes the last of some entries that were written here."""
        if self._last is None or last.number > self._last.number:
            self._last = last
        if self._clock() - self._told_at >= TOLD_SECONDS:
            self._tell()

    async def _sum_up(self) -> None:
        while not self._refusals.is_empty:
            await asyncio.sleep(SUMMED_UP_SECONDS)
            for entry in self._refusals.counted(before=self._clock() - REFUSALS_SECONDS):
                try:
                    await self.add(entry)
                except TidewheelError as error:
                    _log.error("refused requests could not be recorded in the audit: %s", error)
        self._summing_up = None

    def _tell(self) -> None:
        self._told_at = self._clock()
        if self._last is not None and self._last.sha256 is not None:
            facts = {"number": self._last.number, "sha256": self._last.sha256}
            self.on_report(ServiceReport(service="server", event="audit.head", facts=facts))


@dataclass(slots=True)
class _Counted:
    first: AuditEntry
    since: float
    more: int = 0


class RefusalTally:
    """Decides which refusals are written, and counts the others."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seen: dict[Hashable, _Counted] = {}

    @property
    def is_empty(self) -> bool:
        return not self._seen

    def note(self, entry: AuditEntry, key: Hashable) -> AuditEntry | None:
        """Returns the entry if it is the first of its key; else counts it and returns None."""
        if key in self._seen:
            self._seen[key].more += 1
            return None
        now = self._clock()
        if len(self._seen) < REFUSED_MAX:
            self._seen[key] = _Counted(entry, now)
            return entry
        together = replace(entry, token=None, who=NOBODY, client=_OTHERS)
        self._seen.setdefault(_OTHERS, _Counted(together, now)).more += 1
        return None

    def counted(self, before: float = float("inf")) -> list[AuditEntry]:
        """Returns an entry for each key whose counting began before a time and whose first
        refusal was followed by others; those keys are forgotten."""
        over = [key for key, one in self._seen.items() if one.since <= before]
        found = [self._seen.pop(key) for key in over]
        return [
            replace(one.first, verb=REFUSED_MORE, target=f"{one.more} more: {one.first.verb}")
            for one in found
            if one.more
        ]
