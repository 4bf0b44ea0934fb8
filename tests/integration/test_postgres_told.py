"""What a script tells PostgreSQL is sent with the end of its transaction, and is part of it."""

import asyncio

import psycopg
import pytest

from tidewheel.config import StoreSettings
from tidewheel.errors import StoreBusy
from tidewheel.store.postgres import open_postgres_store
from tidewheel.wiring.stores import migrate_store

TOLD = {"token": None, "who": "me", "client": "here", "verb": "POST /x", "target": "t"}
ENTRY = {**TOLD, "status": 200, "correlation": "c", "sha256": "0" * 64}


@pytest.fixture
def store(postgres_url):
    migrate_store(postgres_url)
    opened = open_postgres_store(StoreSettings(url=postgres_url))
    yield opened
    asyncio.run(opened.close())


def audit_of(store):
    return asyncio.run(store.look(lambda tx: tx.rows("list_audit", before=100, count=100)))


def test_it_is_stored_with_the_rest(store):
    def script(tx):
        tx.rows("pause_queue", queue="q", paused=True)
        tx.tell("add_audit", entries=[{**ENTRY, "number": 1}], at=1.0)

    asyncio.run(store.transact(script))
    assert len(audit_of(store)) == 1
    assert [one.queue for one in asyncio.run(store.queues())] == ["q"]


def test_what_is_asked_later_sees_it(store):
    def script(tx):
        tx.tell("add_audit", entries=[{**ENTRY, "number": 1}], at=1.0)
        return tx.rows("list_audit", before=100, count=100)

    assert len(asyncio.run(store.transact(script))) == 1


def test_if_it_is_refused_nothing_of_the_transaction_is_stored(store):
    twice = [{**ENTRY, "number": 1}, {**ENTRY, "number": 1}]

    def script(tx):
        tx.rows("pause_queue", queue="q", paused=True)
        tx.tell("add_audit", entries=twice, at=1.0)

    with pytest.raises(StoreBusy):  # as if another had been faster, each time
        asyncio.run(store.transact(script))
    assert audit_of(store) == []
    assert asyncio.run(store.queues()) == []
    asyncio.run(store.transact(lambda tx: tx.rows("get_now")))  # the connection is as good


@pytest.mark.parametrize("limit", ["54000", "54001"])
def test_a_limit_of_the_database_that_it_meets_is_no_success(store, postgres_url, limit):
    refuse = f"""
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN RAISE 'too much' USING ERRCODE = '{limit}'; END$$;
    CREATE TRIGGER refuse BEFORE INSERT ON tidewheel.audit EXECUTE FUNCTION refuse();
    """
    with psycopg.connect(postgres_url) as connection:
        connection.execute(refuse)

    def script(tx):
        tx.rows("pause_queue", queue="q", paused=True)
        tx.tell("add_audit", entries=[{**ENTRY, "number": 1}], at=1.0)

    with pytest.raises(Exception, match="too much"):
        asyncio.run(store.transact(script))
    assert asyncio.run(store.queues()) == []
