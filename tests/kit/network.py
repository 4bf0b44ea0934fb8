"""The way between processes and the store: slow, lossy, and sure of nothing.

A request travels, is executed, and its answer travels back. On the way it may be lost, come
twice, or come late, when its sender is dead or thinks that it failed. The store itself never
waits, so each execution is one step of the world, watched by the judge.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from random import Random
from typing import Any, cast

from tests.kit.faults import LOST_WAKE, QUIET_AT, CallFault, FaultPlan
from tests.kit.ground import Ground
from tests.kit.invariants import BrokenInvariant, Call, Invariants
from tests.kit.memory import MemoryStore
from tests.kit.processes import Process
from tests.kit.rules.facts import NEVER
from tidewheel.core.queue.requests import Report, Wake
from tidewheel.errors import Refused, StoreUnreachable
from tidewheel.ports.store import StandingClaim, Store, TakeEnds

NOTICED_SECONDS = 4.0  # the longest rest of a monitor, and some travel
TRAVEL_SECONDS_MAX = 0.02
SHARE_OF_SLOW_ANSWERS = 0.2  # the others come back at once: the way there was slow enough
LATE_SECONDS_MAX = 12.0
GIVE_UP_SECONDS = (0.1, 0.5, 1.0, 15.0)  # after which a client library reports a failure

Reply = asyncio.Future[Any]


class Network:
    """Carries the calls of all processes to one store."""

    def __init__(
        self,
        store: MemoryStore,
        judge: Invariants,
        plan: FaultPlan,
        chance: Random,
        ground: Ground,
    ) -> None:
        self.faults: Counter[str] = Counter()
        self._down_from = self._down_until = NEVER
        self._store = store
        self._judge = judge
        self._chance = chance
        self._ground = ground
        self._loop = ground.loop
        self._links: list[Link] = []
        self._lost_wakes = plan.lost_wakes
        self._kinds = tuple(plan.shares)
        self._shares = tuple(plan.shares.values())
        self._share = sum(self._shares)

    def link(self, process: Process, *, mortal: bool = True) -> Link:
        """A way to the store for one process; one that is not mortal never dies by a call."""
        link = Link(self, process, self._judge.executions.answered, mortal=mortal)
        self._links.append(link)
        return link

    @property
    def quiet(self) -> bool:
        return self._loop.time() >= QUIET_AT

    def send(self, link: Link, call: Call) -> Reply:
        """Start one request on its way."""
        reply: Reply = self._loop.create_future()
        fault = self._draw(link)
        travel = self._chance.random() * TRAVEL_SECONDS_MAX
        if fault is not None:
            self.faults[fault.value] += 1
            self.disturb(link, 0.0)
            self._ground.note(call.process, call.operation, fault.value)
        match fault:
            case CallFault.LOSE_REQUEST:
                self._fail_later(link, reply)
                return reply
            case CallFault.DIE_BEFORE:
                link.dies()
                return reply
            case CallFault.DELAY:
                travel = self._chance.random() * LATE_SECONDS_MAX
                self.disturb(link, travel)
            case CallFault.REPEAT:
                late = (
                    travel
                    + self._chance.choice((0.0, LATE_SECONDS_MAX)) * self._chance.random()
                )
                self._loop.call_later(late, self._arrive, link, call, None, None)
            case _:
                pass
        self._loop.call_later(travel, self._arrive, link, call, reply, fault)
        return reply

    def goes_down(self, seconds: float) -> None:
        """The store answers nobody; what is on the way to it is lost."""
        now = self._loop.time()
        if self._down_until < now:
            self._down_from = now
        self._down_until = max(self._down_until, now + seconds)
        rest = self._down_until - now
        for link in self._links:
            self.disturb(link, rest)
        if self._down_until - self._down_from > NOTICED_SECONDS:
            self._judge.disturbances.outage_until = self._ground.database_now() + rest

    def disturb(self, link: Link, seconds: float) -> None:
        """From now on for so long the process cannot do as it should."""
        until = self._ground.database_now() + seconds
        self._judge.disturbances.disturb(link.process.name, until)

    def hear(self, link: Link, listener: Callable[[Wake], None]) -> Callable[[], None]:
        """Wake-ups travel, too."""

        def on_wake(wake: Wake) -> None:
            if not self.quiet and self._chance.random() < self._lost_wakes:
                self.faults[LOST_WAKE] += 1
                return
            if not link.process.dead and not self._is_cut(link):
                travel = self._chance.random() * TRAVEL_SECONDS_MAX
                self._loop.call_later(travel, link.process.when_it_goes_on, listener, wake)

        return self._store.listen(on_wake)

    def _is_cut(self, link: Link) -> bool:
        """Whether a process is cut off, both ways; no cut lasts when nothing fails any more."""
        return not self.quiet and link.cut_until > self._loop.time()

    def _draw(self, link: Link) -> CallFault | None:
        if self.quiet:
            return None
        if self._is_cut(link):
            return CallFault.LOSE_REQUEST
        if not self._share or self._chance.random() >= self._share:
            return None
        fault = self._chance.choices(self._kinds, self._shares)[0]
        if fault in (CallFault.DIE_BEFORE, CallFault.DIE_AFTER) and not link.mortal:
            return None
        return fault

    def _fail_later(self, link: Link, reply: Reply) -> None:
        seconds = self._chance.random() * self._chance.choice(GIVE_UP_SECONDS)
        self.disturb(link, seconds)
        error = StoreUnreachable("the store does not answer")
        self._loop.call_later(seconds, link.receives, reply, error, None)

    def _arrive(
        self, link: Link, call: Call, reply: Reply | None, fault: CallFault | None
    ) -> None:
        now = self._loop.time()
        # Lost if it was sent or under way at any moment of the outage.
        if self._down_from < now and call.sent_at < self._down_until:
            if reply is not None:
                self._fail_later(link, reply)
            return
        try:
            answer = self.execute(call)
        except BrokenInvariant as broken:
            self._ground.on_broken(broken)
            return
        if fault is not None or reply is None:
            self.disturb(link, 0.0)
        if reply is None:
            return
        if fault is CallFault.DIE_AFTER:
            link.dies()
        elif fault is CallFault.LOSE_REPLY or self._is_cut(link):
            self._fail_later(link, reply)
        elif self._chance.random() < SHARE_OF_SLOW_ANSWERS:
            travel = self._chance.random() * TRAVEL_SECONDS_MAX
            self._loop.call_later(travel, link.receives, reply, answer, call)
        else:
            link.receives(reply, answer, call)

    def execute(self, call: Call) -> object:
        """One step of the world; a refusal is an answer."""
        self._ground.note(call.process, call.operation)
        self._judge.begin(call)
        operation = getattr(self._store, call.operation)
        try:
            answer = run_at_once(operation(*call.args, **call.kwargs))
        except Refused as refused:
            self._ground.note(call.process, call.operation, refused.code)
            self._judge.refused(refused)
            return refused
        except BrokenInvariant:
            raise
        except Exception as error:
            raise BrokenInvariant(
                "D2 the store survives every call", f"{call.operation} raised {error!r}"
            ) from error
        self._judge.finish(answer)
        return answer


class Link:
    """One process's way to the store; what ``store`` gives is a Store."""

    def __init__(
        self,
        network: Network,
        process: Process,
        on_answer: Callable[[Call, object], None],
        *,
        mortal: bool,
    ) -> None:
        self.process = process
        self._on_answer = on_answer
        self.mortal = mortal
        self.cut_until = 0.0
        self.on_death: Callable[[], None] = process.dies
        self._network = network

    @property
    def store(self) -> Store:
        return cast("Store", self)

    def dies(self) -> None:
        """The process dies while its call is on the way."""
        if not self.process.dead:
            self.on_death()

    def receives(self, reply: Reply, answer: object, call: Call | None) -> None:
        """An answer has come; it is heard when the process goes on."""
        self.process.when_it_goes_on(self._hears, reply, answer, call)

    def _hears(self, reply: Reply, answer: object, call: Call | None) -> None:
        if reply.done():  # whoever asked does not wait any more
            return
        if isinstance(answer, Exception):
            reply.set_exception(answer)
        else:
            reply.set_result(answer)
        if call is not None:
            self._on_answer(call, answer)

    def listen(self, listener: Callable[[Wake], None]) -> Callable[[], None]:
        return self._network.hear(self, listener)

    def post_claim(self, _claim: StandingClaim) -> bool:
        """False: the store is not in this process."""
        return False

    def attend(self, _run: str, _take: TakeEnds) -> Callable[[], None]:
        """Nobody asks a scheduler of another process."""
        return lambda: None

    def offer_ends(self, _reports: Sequence[Report]) -> None:
        """None: the scheduler is not in this process."""

    async def close(self) -> None:
        """Nothing to let go of."""

    def __getattr__(self, operation: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        return partial(self._call, operation)

    async def _call(self, operation: str, *args: object, **kwargs: object) -> object:
        await self.process.stays_alive()
        sent_at = asyncio.get_running_loop().time()
        call = Call(self.process.name, operation, args, kwargs, sent_at)
        return await self._network.send(self, call)


def run_at_once(coroutine: Coroutine[object, object, object]) -> object:
    """The result of a coroutine that waits for nothing, as those of the memory store."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    coroutine.close()
    raise AssertionError("a store in memory never waits")
