"""Who is let in when there is too much to do: decided before any work is done.

Theory of operation
-------------------
Requests are of six kinds, from those that must never wait to those that can come again. Each
kind is let in only while less than its share of requests is under way, those of all kinds
together. So streams are turned away first, then reads, submissions, claims and cancellations.
What workers report is never turned away: were it, leases would run out, tasks would be done
again, and there would be even more to do. Whoever only waits for news does no work and does
not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum

from tidewheel.config import ServerSettings
from tidewheel.core.tasks.access import Scope
from tidewheel.server.refusals import Overloaded

STREAM_MEDIA_TYPE = "text/event-stream"


class Urgency(IntEnum):
    """How much a request matters under load, the most first."""

    REPORT = 0  # heartbeats, messages and ends of attempts
    CANCEL = 1  # and whatever else operators do
    CLAIM = 2
    SUBMIT = 3  # and whatever else is changed
    READ = 4
    STREAM = 5


def urgency_of(
    method: str, path: str, media_type: str, scopes: Sequence[Scope] = ()
) -> Urgency:
    """Of a route that does not say it itself."""
    if method == "GET":
        return Urgency.STREAM if media_type == STREAM_MEDIA_TYPE else Urgency.READ
    if path.endswith("/cancel") or tuple(scopes) == (Scope.OPERATE,):
        return Urgency.CANCEL
    if path.endswith(("/claim", "/workers")):
        return Urgency.CLAIM
    if Scope.WORKER in scopes and "/logs" not in path:
        return Urgency.REPORT
    return Urgency.SUBMIT


class Place:
    """One request that was let in, until it leaves."""

    __slots__ = ("_admission", "_is_taken")

    def __init__(self, admission: Admission) -> None:
        self._admission, self._is_taken = admission, True
        admission.under_way += 1

    def leave(self) -> None:
        if self._is_taken:
            self._is_taken = False
            self._admission.under_way -= 1

    @contextmanager
    def resting(self) -> Iterator[None]:
        """While it waits for others it takes nobody's place; who was let in once, stays in."""
        was_taken = self._is_taken
        self.leave()
        try:
            yield
        finally:
            if was_taken:
                self._is_taken = True
                self._admission.under_way += 1


class Admission:
    """Counts what is under way, and refuses what is too much."""

    def __init__(
        self, settings: ServerSettings, connections: Callable[[], int] = lambda: 0
    ) -> None:
        self.under_way = 0
        self.turned_away: Counter[Urgency] = Counter()
        self._connections, self._connections_max = connections, settings.connections_max
        self._shares = {
            Urgency.CANCEL: settings.cancels_max,
            Urgency.CLAIM: settings.claims_max,
            Urgency.SUBMIT: settings.submits_max,
            Urgency.READ: settings.reads_max,
            Urgency.STREAM: settings.streams_max,
        }

    @contextmanager
    def admitted(self, urgency: Urgency) -> Iterator[Place]:
        """A place for one request; Overloaded if there is none for its kind."""
        if urgency is not Urgency.REPORT and self._is_full(urgency):
            self.turned_away[urgency] += 1
            raise Overloaded()
        place = Place(self)
        try:
            yield place
        finally:
            place.leave()

    def _is_full(self, urgency: Urgency) -> bool:
        is_crowded = self._connections() > self._connections_max
        return self.under_way >= self._shares[urgency] or (
            is_crowded and urgency > Urgency.CANCEL
        )
