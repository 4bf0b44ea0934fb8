"""The channel of a worker whose server is elsewhere."""

import asyncio
from itertools import pairwise
from random import Random

from tests.kit.virtual_time import VirtualClock, in_virtual_time
from tidewheel.errors import NotFound, StoreUnreachable
from tidewheel.services.service import Surroundings
from tidewheel.worker.attempts import StopReason
from tidewheel.worker.worker import REFUSED_SECONDS, Channel


class Server:
    """Says what it is told to; a channel may be broken or closed at any time."""

    def __init__(self):
        self.opened, self.refuses, self.away = [], False, False
        self.news = asyncio.Queue()
        self.work, self.cancelled, self.reports = 0, [], []
        self.clock = VirtualClock()
        around = Surroundings(clock=self.clock, chance=Random(1), on_report=self.reports.append)
        self.channel = Channel(self.open, "worker-7", self, self, around)
        self.running = asyncio.create_task(self.channel.run())

    def hear(self, wake):
        assert wake.everything
        self.work += 1

    def stop_by_key(self, key, reason):
        assert reason is StopReason.CANCEL
        self.cancelled.append(key)

    async def open(self, worker):
        self.opened.append((worker, self.clock.monotonic()))
        if self.refuses:
            raise NotFound("live worker", worker)
        if self.away:
            raise StoreUnreachable("away")
        while True:
            said = await self.news.get()
            if said == "close":
                return
            if isinstance(said, Exception):
                raise said
            yield said

    async def says(self, *news):
        for one in news:
            self.news.put_nowait(one)
        await self.passes(0.0)

    async def passes(self, seconds):
        await self.clock.sleep(seconds)
        for _ in range(20):
            await asyncio.sleep(0)


@in_virtual_time
async def test_what_to_cancel_and_where_there_is_work_is_heard_at_once():
    server = Server()
    await server.says(None, ("a", 1), ("b", 3))
    assert (server.work, server.cancelled) == (1, [("a", 1), ("b", 3)])
    assert server.opened == [("worker-7", 0.0)]


@in_virtual_time
async def test_a_channel_that_was_closed_or_broke_is_opened_again_soon():
    server = Server()
    await server.says("close")
    await server.passes(1.0)
    assert len(server.opened) == 2
    await server.says(StoreUnreachable("broken"))
    await server.passes(1.0)
    assert len(server.opened) == 3
    await server.says(("a", 1))
    assert server.cancelled == [("a", 1)]


@in_virtual_time
async def test_workers_come_back_at_times_of_their_own():
    server = Server()
    server.away = True
    await server.passes(60.0)
    times = [at for _, at in server.opened]
    gaps = {round(later - sooner, 3) for sooner, later in pairwise(times)}
    assert 10 < len(times) < 200 and len(gaps) > len(times) // 2


@in_virtual_time
async def test_a_channel_that_is_refused_ends_no_worker():
    server = Server()
    server.refuses = True
    await server.says("close")
    await server.passes(2 * REFUSED_SECONDS + 1)
    assert 2 <= len(server.opened) <= 4
    assert {one.event for one in server.reports} == {"channel.refused"}
    assert not server.running.done()
