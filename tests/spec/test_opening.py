"""RELIABILITY 31: a service that is started before its database waits for it."""

import asyncio
import math

import pytest

from tests.kit.small_world import SmallWorld
from tests.kit.virtual_time import in_virtual_time
from tidewheel.errors import OlderSchema, StoreUnreachable
from tidewheel.services.service import Wakeup, open_patiently


class Database:
    """Down until it is up."""

    def __init__(self, world):
        self.world = world
        self.error = StoreUnreachable("connection refused")
        self.tries = 0
        self.stop = Wakeup(world.clock)
        self.stop_asked = False

    async def open(self):
        self.tries += 1
        if self.error is not None:
            raise self.error
        return self.world.store

    def awaited(self, seconds_max=math.inf):
        surroundings = self.world.surroundings()
        asked = lambda: self.stop_asked  # noqa: E731
        return asyncio.ensure_future(
            open_patiently(self.open, surroundings, self.stop, asked, seconds_max)
        )


@in_virtual_time
async def test_a_service_waits_for_its_store_and_says_so_when_something_changes():
    world = SmallWorld()
    database = Database(world)
    opening = database.awaited()
    await world.passes(3600.0)
    assert [one.facts["error"] for one in world.events("store.awaited")] == [
        "connection refused"
    ]
    assert 3600 / 5 < database.tries < 3600
    database.error = StoreUnreachable("the database system is starting up")
    await world.passes(30.0)
    assert len(world.events("store.awaited")) == 2
    database.error = None
    await world.passes(10.0)
    assert opening.result() is world.store
    assert len(world.events("store.back")) == 1


@in_virtual_time
async def test_a_store_that_answers_is_opened_without_a_word():
    world = SmallWorld()
    database = Database(world)
    database.error = None
    assert await database.awaited(0.0) is world.store
    assert world.reports == []


@pytest.mark.parametrize("seconds_max", [0.0, 30.0])
@in_virtual_time
async def test_patience_ends_when_it_was_said_to_end(seconds_max):
    world = SmallWorld()
    opening = Database(world).awaited(seconds_max)
    with pytest.raises(StoreUnreachable):
        await opening
    assert world.clock.monotonic() == seconds_max


@in_virtual_time
async def test_what_waiting_cannot_mend_is_raised_at_once():
    world = SmallWorld()
    database = Database(world)
    database.error = OlderSchema(1, 2)
    with pytest.raises(OlderSchema):
        await database.awaited()


@in_virtual_time
async def test_a_service_that_waits_can_be_stopped():
    world = SmallWorld()
    database = Database(world)
    opening = database.awaited()
    await world.passes(60.0)
    database.stop_asked = True
    database.stop.ring()
    await world.passes(0.0)
    assert opening.result() is None
