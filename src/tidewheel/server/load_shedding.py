"""Decides, before any work is done, which requests are let in when there is too much to do.

Theory of operation
-------------------
Requests are of six kinds, from those that must never wait to those that can come again. Each
kind is let in only while less than its share of requests is under way, those of all kinds
together. So streams are turned away first, then reads, submissions, claims and cancellations.
What workers report is never turned away: were it, leases would run out, tasks would be done
again, and there would be even more to do. A caller that only waits for news does no work and
does not count; neither does a request that is still on its way, or whose sender is not known.
So nobody can take a place by sending slowly, and strangers take none of those that known
clients need: what anybody may ask for has places of its own.

Places are shared: no token, and no team, holds more than ``SHARE_OF_FREE`` times as many as are
free. Alone, one may hold three quarters; the more others come, the less; and some are always
left for whoever comes next. What takes long (reading a definition, views of runs) leaves its
place to others and has one of those for slow work meanwhile, shared in the same way; who is
next there is a matter of turns (``Turns`` of ``wiring/limited_process.py``).

Whoever hangs up needs no answer: a request that only looks is ended at once. One that changes
something is ended only while it does slow work, which comes before anything is written; else
something could be done that the audit does not know of.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from enum import IntEnum
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import NoReturn, Protocol

from starlette.requests import ClientDisconnect

from tidewheel.config import QUOTAS, ServerSettings, StoreSettings
from tidewheel.core.queue.access import (
    ANY_TEXT,
    ONLY_QUEUES,
    ONLY_WORKFLOWS,
    RUN_QUEUE,
    Identity,
    Scope,
    TokenView,
)
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.ports.store import Store
from tidewheel.server.errors import Overloaded, QuotaSpent, StreamsHeld
from tidewheel.server.time_limits import TimeLimit
from tidewheel.wiring.stores import is_embedded, opened_store, store_settings, with_readers_of

STREAM_MEDIA_TYPE = "text/event-stream"


class Urgency(IntEnum):
    """Says how urgent a request is under load, the most urgent first."""

    REPORT = 0  # heartbeats, messages and ends of attempts
    CANCEL = 1  # and whatever else operators do
    CLAIM = 2
    SUBMIT = 3  # and whatever else is changed
    READ = 4
    STREAM = 5


def urgency_of(
    method: str, path: str, media_type: str, scopes: Sequence[Scope] = ()
) -> Urgency:
    """Returns the urgency of a route that does not say it itself."""
    if method == "GET":
        return Urgency.STREAM if media_type == STREAM_MEDIA_TYPE else Urgency.READ
    if path.endswith("/cancel") or tuple(scopes) == (Scope.OPERATE,):
        return Urgency.CANCEL
    if path.endswith(("/claim", "/workers")):
        return Urgency.CLAIM
    if Scope.WORKER in scopes and "/logs" not in path:
        return Urgency.REPORT
    return Urgency.SUBMIT


SHARE_OF_FREE = 3


class Places:
    """Counts the places that are held: all of them, and those of each holder."""

    def __init__(self) -> None:
        self.held = 0
        self._by: dict[str, int] = {}

    def has_room(self, most: int, holders: Iterable[str]) -> bool:
        """Says whether one of at most so many places may be taken by somebody who is known by
        these names, each of which has its share."""
        free = most - self.held
        if free <= 0:
            return False
        for one in holders:  # noqa: SIM110 - every request asks, twice
            if self._by.get(one, 0) >= SHARE_OF_FREE * free:
                return False
        return True

    def count(self, holders: Iterable[str], change: int) -> None:
        """Counts places that are taken, or, with a negative number, given back."""
        self.held += change
        for one in holders:
            if count := self._by.get(one, 0) + change:
                self._by[one] = count
            else:
                self._by.pop(one, None)


class RequestSlot:
    """Counts one request among those under way, but only while there is work to do for it."""

    def __init__(self, admission: Admission, urgency: Urgency, client: str) -> None:
        self._admission, self._urgency = admission, urgency
        self._client: str | None = client  # None: known
        self._holders: tuple[str, ...] = ()
        self._is_taken = False
        self._limit: TimeLimit | None = None
        self._may_end = False
        self.is_gone = False  # whether the caller hung up

    def is_known(self, holders: tuple[str, ...] = ()) -> None:
        """Notes that the sender has shown a valid token, and is no stranger any more; the
        holders are those whose share its places are of (``holders_of``)."""
        self._holders = holders
        if self._client is not None:
            self._admission.leave_door(self._client)
            self._client = None

    def is_no_report(self) -> None:
        """Notes that the sender is no worker, so that the request needs a place as others do,
        although workers report by its route."""
        self._urgency = Urgency.SUBMIT

    def keys(self, name: str) -> tuple[str, ...]:
        """Returns for whose turns the request waits that concerns this name."""
        return (*self._holders, _of_team(name))

    def take(self) -> None:
        """Takes a place; raises Overloaded if there is none for its kind any more."""
        is_known = self._client is None
        self._admission.check(self._urgency, self._holders, is_known=is_known)
        self._count(+1)

    def leave(self) -> None:
        """Gives back the place while the request waits for others, or because it is over."""
        if self._is_taken:
            self._count(-1)

    def close(self) -> None:
        """Gives back the place, because the request is over."""
        self._limit = None
        if self._is_taken:
            self._count(-1)
        if self._client is not None:
            self._admission.leave_door(self._client)

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Frees the place of a request while it waits for others.

        Afterwards the request takes a place even if there is none: one that was let in stays
        in.
        """
        was_taken = self._is_taken
        self.leave()
        try:
            yield
        finally:
            if was_taken:
                self._count(+1)

    @contextmanager
    def slow(self, *, may_end: bool = True) -> Iterator[None]:
        """Frees the place, too, and takes one of those for slow work; raises Overloaded if
        there is none.

        Unless the work changes something (``may_end``), it ends if the caller hangs up.
        """
        slow, could_end = self._admission.slow, self._may_end
        self._admission.check_slow(self._urgency, self._holders)
        slow.count(self._holders, +1)
        self._may_end = could_end or may_end
        try:
            with self.resting():
                self._require_caller()
                yield
        finally:
            self._may_end = could_end
            slow.count(self._holders, -1)

    def end_by(self, limit: TimeLimit, *, is_read: bool) -> None:
        """Has the time limit of a request end it when its caller hangs up: at any time if it
        only reads."""
        self._limit, self._may_end = limit, is_read

    def hang_up(self) -> None:
        """Notes that the caller is there no more."""
        self.is_gone = True
        if self._may_end and self._limit is not None:
            self._limit.end()

    def _require_caller(self) -> None:
        if self.is_gone and self._may_end:
            raise ClientDisconnect()

    def _count(self, change: int) -> None:
        self._is_taken, admission = change > 0, self._admission
        if self._client is None:
            # What may not be turned away takes nobody's share.
            holders = () if self._urgency is Urgency.REPORT else self._holders
            admission.places.count(holders, change)
        else:
            admission.strangers_under_way += change


class Admission:
    """Counts the requests that are under way, and refuses those that would be too many."""

    def __init__(
        self, settings: ServerSettings, connections: Callable[[], int] = lambda: 0
    ) -> None:
        self.places, self.slow = Places(), Places()
        self.strangers_under_way = 0
        self.turned_away: Counter[Urgency] = Counter()
        self._at_door: dict[str, int] = {}
        self._connections, self._connections_max = connections, settings.connections_max
        self._strangers_max, self._slow_max = settings.strangers_max, settings.slow_max
        self._per_address_max = settings.connections_per_address_max
        self._shares = {
            Urgency.CANCEL: settings.cancels_max,
            Urgency.CLAIM: settings.claims_max,
            Urgency.SUBMIT: settings.submits_max,
            Urgency.READ: settings.reads_max,
            Urgency.STREAM: settings.streams_max,
        }

    def admit(self, urgency: Urgency, client: str, *, is_open: bool) -> RequestSlot:
        """Lets in one request and returns its slot, to be closed when the request is over;
        raises Overloaded, before any work, if its kind has no place.

        ``is_open``: anybody may send it, so nobody is asked for a token.
        """
        self.check(urgency, (), is_known=not is_open)
        at_door = self._at_door.get(client, 0)
        if urgency is not Urgency.REPORT and at_door >= self._per_address_max:
            self._turn_away(urgency)
        self._at_door[client] = at_door + 1
        return RequestSlot(self, urgency, client)

    def check(self, urgency: Urgency, holders: Iterable[str], *, is_known: bool) -> None:
        """Raises Overloaded if there is no place for a request of this kind, or none of the
        holders' shares."""
        if urgency is Urgency.REPORT:
            return
        has_room = (
            self.places.has_room(self._shares[urgency], holders)
            if is_known
            else self.strangers_under_way < self._strangers_max
        )
        if not has_room or (
            urgency > Urgency.CANCEL and self._connections() > self._connections_max
        ):
            self._turn_away(urgency)

    def check_slow(self, urgency: Urgency, holders: Iterable[str]) -> None:
        """Raises Overloaded if there is no place for slow work, or none of the holders'
        shares."""
        if not self.slow.has_room(self._slow_max, holders):
            self._turn_away(urgency)

    def leave_door(self, client: str) -> None:
        """Counts one request less from a client that has shown no valid token yet."""
        if self._at_door[client] > 1:
            self._at_door[client] -= 1
        else:
            del self._at_door[client]

    def _turn_away(self, urgency: Urgency) -> NoReturn:
        self.turned_away[urgency] += 1
        raise Overloaded()


class OpenConnection(Protocol):
    """Stands for a connection that a client opened, and that the server can cut."""

    def cut(self) -> None: ...


class ConnectionLimit:
    """Counts the open connections: how many, from where, and which of them are strangers'.

    A stranger's is one on which no valid token was shown yet. Where there are too many, in all
    or from one address, the stranger who has been there longest has to go: so strangers never
    keep out anybody whom the server knows, even from their own address. Proxies that were named
    hold connections for many others, and are no strangers.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._addresses: dict[OpenConnection, str] = {}
        self.count: Callable[[], int] = self._addresses.__len__  # how many there are
        self._counts: Counter[str] = Counter()
        self._strangers: dict[OpenConnection, None] = {}  # the first has been there longest
        self._strangers_from: dict[str, dict[OpenConnection, None]] = {}

    def came(self, one: OpenConnection, address: str) -> bool:
        """Counts a connection; returns False, without counting it, if its address has too many.

        If all addresses together have too many, the stranger that has been there longest is
        cut.
        """
        is_proxy = _is_among(address, self._settings.proxies)
        mates = self._strangers_from.get(address, {})
        is_full = self._counts[address] >= self._settings.connections_per_address_max
        if is_full and not is_proxy and not self._drop_first(mates):
            return False
        if self.count() >= self._settings.connections_max:
            self._drop_first(self._strangers)
        self._addresses[one] = address
        self._counts[address] += 1
        if not is_proxy:
            self._strangers[one] = None
            self._strangers_from.setdefault(address, {})[one] = None
        return True

    def is_known(self, one: OpenConnection) -> None:
        """Notes that a valid token was shown on a connection."""
        if one in self._strangers:
            del self._strangers[one]
            mates = self._strangers_from[self._addresses[one]]
            del mates[one]
            if not mates:
                del self._strangers_from[self._addresses[one]]

    def left(self, one: OpenConnection) -> None:
        """Forgets a connection that is closed, or about to be."""
        if one in self._addresses:
            self.is_known(one)
            address = self._addresses.pop(one)
            self._counts[address] -= 1
            if not self._counts[address]:
                del self._counts[address]

    def _drop_first(self, strangers: dict[OpenConnection, None]) -> bool:
        """Cuts the first of these connections; returns False if there is none."""
        for one in strangers:
            self.left(one)
            one.cut()
            return True
        return False


def _is_among(address: str, proxies: Sequence[str]) -> bool:
    """Says whether an address is one of the proxies: addresses, networks, or * for all. That is
    how uvicorn judges whose X-Forwarded-For counts."""
    if "*" in proxies or address in proxies:
        return True
    try:
        found = ip_address(address)
    except ValueError:
        return False
    return any(found in ip_network(one) for one in proxies if "/" in one)


# How fast each caller and each team may ask: buckets that fill at a steady rate.
#
# A token that its owner gave away, or a program that has gone wild, costs its own team only.
# The buckets of a token and of the team whose names are touched (the first part of the name)
# are taken from together. Those who administer the server have no quota, nor has what workers
# report: were it refused, there would be even more to do.

BURST_SECONDS = 10.0  # what was not used for so long can be used at once
BUCKETS_MAX = 10_000


class RateLimit:
    """Limits how much of something each name may take per second; None is no limit.

    Each name has a token bucket. A request is taken whole if no bucket of its names is empty;
    it may take more than a bucket holds, and the next request has to wait until that has filled
    up again. So even the longest list of tasks is taken at some time.
    """

    def __init__(
        self,
        per_second: float | None,
        clock: Callable[[], float] = time.monotonic,
        *,
        unit: str = "tasks",
    ) -> None:
        self._rate, self._clock, self._unit = per_second, clock, unit
        self._levels: dict[str, tuple[float, float]] = {}  # when, and how much there was
        self.refused = 0

    def take(self, counts: Mapping[str, int]) -> None:
        """Takes these numbers from the buckets of these names, or raises QuotaSpent and takes
        none."""
        if self._rate is None:
            return
        now, rate = self._clock(), self._rate
        full = max(1.0, rate * BURST_SECONDS)
        levels: dict[str, float] = {}
        for name in counts:
            at, level = self._levels.get(name, (now, full))
            levels[name] = min(full, level + (now - at) * rate)
        for name, level in levels.items():
            if level < 1.0:
                self.refused += 1
                raise QuotaSpent(name, rate, (1.0 - level) / rate, self._unit)
        for name, level in levels.items():
            self._levels.pop(name, None)
            self._levels[name] = (now, level - counts[name])
        while len(self._levels) > BUCKETS_MAX:  # the one that was used longest ago
            del self._levels[next(iter(self._levels))]


class Quotas:
    """Holds the quotas of a server by name, as its settings say (config.QUOTAS)."""

    def __init__(self, settings: ServerSettings) -> None:
        self._queues = RateLimit(settings.submit_rate)
        self._streams_max = settings.quota("streams")
        self._streams: Counter[str] = Counter()
        self._streams_refused = 0
        self._rates = {
            row.name: RateLimit(settings.quota(row.name), unit=row.unit)
            for row in QUOTAS
            if row.is_rate
        }

    @property
    def refused(self) -> dict[str, int]:
        """Returns how many requests each quota has refused."""
        found = {name: one.refused for name, one in self._rates.items()}
        return found | {"queue": self._queues.refused, "streams": self._streams_refused}

    def take(
        self, quota: str, token: TokenView | None, count: int = 1, names: Iterable[str] = ()
    ) -> None:
        """Takes from the buckets of a token and of the teams that these names belong to; raises
        QuotaSpent if one of them is empty."""
        if token is not None and Scope.ADMIN not in token.grant.scopes:
            teams = {_of_team(name): count for name in names}
            self._rates[quota].take({_owner(token): count} | teams)

    def take_tasks(self, token: TokenView | None, queues: Mapping[str, int]) -> None:
        """Takes tasks from the buckets of their queues, then from those of token and teams."""
        self._queues.take(queues)
        self.take("tasks", token, sum(queues.values()), queues)

    def check_stream(self, token: TokenView) -> None:
        """Raises StreamsHeld if a token holds as many streams of events open as it may."""
        most = self._streams_max
        if most is None or Scope.ADMIN in token.grant.scopes:
            return
        if self._streams[_owner(token)] >= most:
            self._streams_refused += 1
            raise StreamsHeld(token.name, int(most))

    @contextmanager
    def held_stream(self, token: TokenView) -> Iterator[None]:
        """Counts a stream of events that a token holds open."""
        owner = _owner(token)
        self._streams[owner] += 1
        try:
            yield
        finally:
            self._streams[owner] -= 1
            if not self._streams[owner]:
                del self._streams[owner]


def _team(name: str) -> str:
    """Returns the first part of a name: of a workflow, a run, or a queue."""
    return name.removeprefix(RUN_QUEUE).partition("/")[0]


def _of_team(name: str) -> str:
    return f"names {_team(name)!r}"


def _owner(token: TokenView) -> str:
    """Returns who pays for the requests of a token: the token that it was made from, or the
    person who signed in, however often."""
    number = token.number if token.parent is None else token.parent
    return _owned_by(token.name, number, token.identity)


def _owned_by(name: str, number: int, identity: Identity | None) -> str:
    if identity is not None:
        return f"person {identity.person!r} of {identity.source!r}"
    return f"token {name!r} ({number})"


def holders_of(token: TokenView, job_queue: str | None = None) -> tuple[str, ...]:
    """Returns whose share of the places the requests of a token are of, the widest first: its
    team, if it is for one alone, and the token, or the person who signed in. What was made from
    a token is of that token. Jobs are of their team and not of their worker, who has to be
    heard.
    """
    if job_queue is not None:
        return (_of_team(job_queue), f"jobs of {_team(job_queue)!r}")
    who = token.name, token.number if token.parent is None else token.parent, token.identity
    return _holders(who, token.grant.names)


@lru_cache(maxsize=1024)  # the same token asks again and again
def _holders(who: tuple[str, int, Identity | None], names: tuple[str, ...]) -> tuple[str, ...]:
    owner = _owned_by(*who)
    plain = (one.removeprefix(ONLY_QUEUES).removeprefix(ONLY_WORKFLOWS) for one in names)
    teams = set(map(_team, plain))
    if len(teams) != 1 or ANY_TEXT in "".join(teams):
        return (owner,)
    return (_of_team(teams.pop()), owner)


# Connections that are kept free, so that workers are heard however many others are served.

CONNECTIONS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedConnections:
    """Holds the stores through which callers are looked up, and through which workers report.

    A database server takes reports on connections that nobody else uses. A file has one writer,
    which takes all changes in the order in which they come; only its readers can be others.
    """

    asking: Store
    reporting: Store
    where: StoreSettings | None = None  # the address, for processes of this server


@asynccontextmanager
async def kept_reserve(
    where: str | StoreSettings | None, store: Store
) -> AsyncIterator[ReservedConnections]:
    """Yields stores with connections of their own, to look up callers and to take reports."""
    few = replace(store_settings(where), connections_max=CONNECTIONS)
    async with opened_store(few) as second:
        own = with_readers_of(store, second) if is_embedded(where) else second
        settings = store_settings(where)
        yield ReservedConnections(asking=second, reporting=own, where=settings)
