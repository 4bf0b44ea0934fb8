"""Rows by their keys are read from PostgreSQL in the event loop, and as safely as ever."""

import asyncio
from functools import wraps

import psycopg
import pytest

from tests.conformance.door import new_task
from tidewheel.config import StoreSettings
from tidewheel.errors import NotFound, StoreBusy
from tidewheel.store.postgres import PostgresTransaction, open_postgres_store
from tidewheel.wiring.stores import migrate_store, opened_store

TRIES = 10_000
OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def in_a_loop(test):
    """Runs a test in an event loop of its own."""

    @wraps(test)
    def run(**given):
        asyncio.run(test(**given))

    return run


@pytest.fixture
def url(postgres_url):
    migrate_store(postgres_url)
    return postgres_url


@pytest.fixture
def in_threads(monkeypatch):
    """What was asked of PostgreSQL in a thread, as it comes."""
    asked, ask = [], PostgresTransaction.ask

    def noted(self, query, parameters):
        asked.append(query)
        return ask(self, query, parameters)

    monkeypatch.setattr(PostgresTransaction, "ask", noted)
    return asked


async def until_in_the_loop(store, in_threads):
    """Looks at a task until no thread takes part in it."""
    for _ in range(TRIES):
        del in_threads[:]
        await store.get("a")
        if not in_threads:
            return
    raise AssertionError("a thread is asked for each look")


async def stored(store, *ids):
    await store.submit([new_task(one) for one in ids])


@in_a_loop
async def test_who_looks_often_is_answered_in_the_event_loop(url, in_threads):
    async with opened_store(url) as store:
        await stored(store, "a", "b")
        await until_in_the_loop(store, in_threads)
        assert (await store.get("b")).id == "b"
        assert {one.id for one in await store.find_each(["a", "b", "c"])} == {"a", "b"}
        with pytest.raises(NotFound):
            await store.get("c")
        with pytest.raises(NotFound):
            await store.token(1)
        assert in_threads == []


@in_a_loop
async def test_who_looks_once_needs_no_further_connection(url, in_threads):
    async with opened_store(url) as store:
        await stored(store, "a")
        for _ in range(3):
            await store.get("a")
        assert in_threads.count("get_tasks_by_id") == 3


@in_a_loop
async def test_each_of_many_looks_at_once_gets_its_own_answer(url, in_threads):
    ids = [f"t{number}" for number in range(300)]
    async with opened_store(url) as store:
        await stored(store, "a", *ids)
        await until_in_the_loop(store, in_threads)
        found = await asyncio.gather(*map(store.get, ids))
        assert [one.id for one in found] == ids


@in_a_loop
async def test_a_look_sees_what_was_stored_before_it_was_asked(url, in_threads):
    async with opened_store(url) as store:
        await stored(store, "a")
        await until_in_the_loop(store, in_threads)
        for number in range(50):
            await stored(store, f"new-{number}")
            assert (await store.get(f"new-{number}")).id == f"new-{number}"


@pytest.mark.parametrize("name", ["nul\0", "half \ud800", 'quo"te', "back\\slash", "{a,b}", ""])
@in_a_loop
async def test_a_name_that_nothing_has_is_not_found(url, in_threads, name):
    async with opened_store(url) as store:
        await stored(store, "a")
        await until_in_the_loop(store, in_threads)
        with pytest.raises(NotFound):
            await store.get(name)
        assert in_threads == []


@in_a_loop
async def test_a_look_is_answered_although_its_connection_was_ended(url, in_threads):
    async with opened_store(url) as store:
        await stored(store, "a")
        await until_in_the_loop(store, in_threads)
        with psycopg.connect(url, autocommit=True) as other:
            other.execute(OTHERS)
        assert (await store.get("a")).id == "a"
        found = await asyncio.gather(*[store.get("a") for _ in range(20)])
        assert {one.id for one in found} == {"a"}
        await until_in_the_loop(store, in_threads)


@in_a_loop
async def test_a_look_that_waits_for_a_lock_is_refused_when_its_time_is_up(url, in_threads):
    settings = StoreSettings(url=url, statement_seconds_max=0.2)
    async with opened_store(settings) as store:
        await stored(store, "a")
        await until_in_the_loop(store, in_threads)
        with psycopg.connect(url) as other:
            other.execute("LOCK TABLE tidewheel.task IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(StoreBusy):
                await store.get("a")
        assert (await store.get("a")).id == "a"


@in_a_loop
async def test_who_does_not_wait_any_more_takes_nobody_elses_answer(url, in_threads):
    async with opened_store(url) as store:
        await stored(store, "a", "b", "c")
        await until_in_the_loop(store, in_threads)
        gone = [asyncio.ensure_future(store.get("b")) for _ in range(5)]
        waiting = asyncio.ensure_future(store.get("c"))
        await asyncio.sleep(0)
        for one in gone:
            one.cancel()
        assert (await waiting).id == "c"
        assert (await store.get("a")).id == "a"


def test_a_store_may_be_asked_in_one_loop_after_the_other(url, in_threads):
    store = open_postgres_store(StoreSettings(url=url))

    async def first():
        await stored(store, "a")
        await until_in_the_loop(store, in_threads)

    async def second():
        await until_in_the_loop(store, in_threads)
        await store.close()

    asyncio.run(first())
    asyncio.run(second())
