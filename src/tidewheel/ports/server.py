"""Holds the Protocols of what a server needs of its store beside tasks and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tidewheel.api.tasks import Figure
from tidewheel.core.queue.task import Instant, WorkerId

if TYPE_CHECKING:
    # Loading them takes as long as all of the queue.
    from tidewheel.core.operator.stream import EventCursor, EventFilter, EventPage
    from tidewheel.core.queue.access import (
        AuditEntry,
        JobWords,
        KeptAnswer,
        NewToken,
        TokenView,
    )


class AccessStore(Protocol):
    """The store of tokens, of the audit, and of answers that are kept."""

    async def create_token(self, new: NewToken) -> TokenView: ...
    async def token(self, number: int) -> tuple[TokenView, Instant]:
        """Returns a token, and the time at the database; NotFound if there is none."""
        ...

    async def tokens(self) -> list[TokenView]:
        """Returns all of them, newest first."""
        ...

    async def revoke_token(self, number: int) -> TokenView: ...
    async def spend_token(self, number: int) -> bool:
        """Uses up a login; of several that try, one hears that it did."""
        ...

    async def touch_token(self, number: int) -> None:
        """Notes that it was used now."""
        ...

    async def assign_worker(self, worker: WorkerId, token: int) -> None:
        """Notes whose worker it is; the first token counts."""
        ...

    async def worker_token(self, worker: WorkerId) -> int | None:
        """Returns whose worker it is; None if it registered past every server."""
        ...

    async def hear_job(self, words: JobWords) -> None:
        """Stores what a job said by itself, not through its worker; LeaseLost if it has no
        lease. With an answer to keep: only the first of several with that key counts."""
        ...

    async def add_audit(self, entry: AuditEntry) -> None: ...
    async def audit(self, before: int | None = None, count: int = 100) -> list[AuditEntry]:
        """Returns entries, newest first, those with smaller numbers than ``before``."""
        ...

    async def figures(self) -> list[Figure]:
        """Returns `pool` of each run by its number, and what the database says about itself."""
        ...

    async def kept_answer(self, token: int, key: str) -> KeptAnswer | None: ...
    async def keep_answer(self, answer: KeptAnswer) -> None:
        """Keeps an answer for a day; the first one to a key counts."""
        ...


class EventStore(Protocol):
    """The store of events, in the order in which they became final.

    A reader misses none and is told none twice.
    """

    async def events_head(self) -> EventCursor: ...
    async def events_after(
        self, cursor: EventCursor, which: EventFilter, count: int = 1_000
    ) -> EventPage: ...
