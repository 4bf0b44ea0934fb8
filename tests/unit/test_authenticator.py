"""Who calls, and whose worker it is, is looked up no more often than it can change."""

import asyncio

import pytest

from tests.kit.memory.store import MemoryStore
from tidewheel.config import ServerSettings
from tidewheel.core.queue.access import Grant, NewToken, Scope, TokenKind
from tidewheel.core.queue.requests import HostProcess, NewWorker
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.tokens import secret_digest
from tidewheel.server.auth import BELIEVED_SECONDS, Authenticator, ShownCredentials
from tidewheel.server.errors import NotAuthenticated
from tidewheel.server.load_shedding import ReservedConnections


def secret_of(number):
    return f"{number}" * 43


class Watched(MemoryStore):
    """Notes what is looked up, which takes a turn of the loop."""

    def __init__(self):
        super().__init__(clock=lambda: 1.0)
        self.looks = []

    async def token(self, number):
        self.looks.append(number)
        await asyncio.sleep(0)
        return await super().token(number)

    async def worker_token(self, worker):
        self.looks.append(worker)
        return await super().worker_token(worker)


class Caller:
    """A server's way to know callers, at a time that a test moves."""

    def __init__(self):
        self.store, self.now = Watched(), 100.0
        reserve = ReservedConnections(asking=self.store, reporting=self.store)
        self.known = Authenticator(reserve, ServerSettings(), lambda: self.now)

    async def token(self, name):
        grant = Grant(scopes=frozenset({Scope.WORKER}), names=("*",))
        digest = secret_digest(secret_of(len(await self.store.tokens()) + 1))
        return await self.store.create_token(NewToken(name=name, digest=digest, grant=grant))

    async def worker(self):
        process = HostProcess(host="h", boot_id="b", pid=1, started=0.0)
        facts = {"queues": ("q",), "slots": 1, "capacity": Resources()}
        return await self.store.register_worker(NewWorker(name="w", process=process, **facts))

    async def show(self, number, secret=None):
        text = f"tw_{number}_{secret or secret_of(number)}"
        shown = ShownCredentials(TokenKind.BEARER, text)
        return (await self.known.token_of(shown, "here")).number


def test_requests_of_one_token_that_come_at_once_look_it_up_once():
    async def play():
        caller = Caller()
        one, other = await caller.token("one"), await caller.token("other")
        asked = [one.number] * 5 + [other.number] * 3
        assert await asyncio.gather(*map(caller.show, asked)) == asked
        assert caller.store.looks == [one.number, other.number]
        await caller.store.revoke_token(one.number)
        caller.now += BELIEVED_SECONDS
        answers = await asyncio.gather(*map(caller.show, asked), return_exceptions=True)
        assert [isinstance(one, NotAuthenticated) for one in answers] == [True] * 5 + [
            False
        ] * 3
        assert len(caller.store.looks) == 4

    asyncio.run(play())


def test_a_wrong_secret_shares_no_look_with_the_right_one():
    async def play():
        caller = Caller()
        one = await caller.token("one")
        right, wrong = await asyncio.gather(
            caller.show(one.number), caller.show(one.number, "t" * 43), return_exceptions=True
        )
        assert right == one.number
        assert isinstance(wrong, NotAuthenticated)

    asyncio.run(play())


def test_whoever_goes_away_during_a_look_takes_nobody_along():
    async def play():
        caller = Caller()
        one = await caller.token("one")
        gone, stays = (asyncio.create_task(caller.show(one.number)) for _ in range(2))
        await asyncio.sleep(0)
        gone.cancel()
        assert await stays == one.number
        with pytest.raises(asyncio.CancelledError):
            await gone

    asyncio.run(play())


def test_whose_worker_it_is_is_looked_up_again_only_after_a_while():
    async def play():
        caller = Caller()
        one, worker, nobodys = await caller.token("one"), *[await caller.worker() for _ in "ab"]
        await caller.store.assign_worker(worker, one.number)
        for _ in range(3):
            assert await caller.known.registrant(worker) == one.number
            assert await caller.known.registrant(nobodys) is None
        assert caller.store.looks == [worker, nobodys, nobodys, nobodys]
        # What is not known is asked for each time: it may become known.
        await caller.store.assign_worker(nobodys, one.number)
        assert await caller.known.registrant(nobodys) == one.number
        caller.now += 3600
        assert await caller.known.registrant(worker) == one.number
        assert caller.store.looks[-1] == worker

    asyncio.run(play())
