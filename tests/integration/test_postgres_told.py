"""What a script tells PostgreSQL is sent with the end of its transaction, and is part of it."""

import asyncio
import signal
import threading

import psycopg
import pytest

from tests.support.patience import eventually
from tidewheel import Client
from tidewheel.config import StoreSettings
from tidewheel.core.queue.task import NewTask
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


def refuse(url, table, limit):
    """Has rows of a table refused, as by a limit of the database."""
    with psycopg.connect(url) as connection:
        connection.execute(f"""
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$BEGIN RAISE 'too much' USING ERRCODE = '{limit}'; END$$;
        CREATE TRIGGER refuse BEFORE INSERT ON tidewheel.{table} EXECUTE FUNCTION refuse();
        """)


@pytest.mark.parametrize("limit", ["54000", "54001"])
def test_a_limit_of_the_database_that_it_meets_is_no_success(store, postgres_url, limit):
    refuse(postgres_url, "audit", limit)

    def script(tx):
        tx.rows("pause_queue", queue="q", paused=True)
        tx.tell("add_audit", entries=[{**ENTRY, "number": 1}], at=1.0)

    with pytest.raises(Exception, match="too much"):
        asyncio.run(store.transact(script))
    assert asyncio.run(store.queues()) == []


# One task that is ready at once is stored by one message, COMMIT and notice included.


def submitted(store, task_id, **fields):
    [answer] = asyncio.run(
        store.submit([NewTask(id=task_id, queue="q", handler="h", **fields)], atomic=False)
    )
    return answer


def test_a_task_that_is_there_already_is_not_stored_again(store):
    assert submitted(store, "a").created
    same, another = submitted(store, "a"), submitted(store, "a", priority=7)
    assert (same.created, same.refused) == (False, None)
    assert another.refused is not None
    assert asyncio.run(store.get("a")).priority != 7


@pytest.mark.parametrize("limit", ["54000", "54001"])
def test_a_limit_that_a_task_meets_is_no_success(store, postgres_url, limit):
    refuse(postgres_url, "history", limit)
    with pytest.raises(Exception, match="too much"):
        submitted(store, "a")
    assert asyncio.run(store.find_each(["a"])) == []


def test_a_limit_that_the_notice_meets_is_no_failure(store, postgres_url):
    """Others find out when they look; the task is stored by then."""
    with psycopg.connect(postgres_url) as connection:
        connection.execute("""
        CREATE SCHEMA full_queue;
        CREATE FUNCTION full_queue.pg_notify(text, text) RETURNS void LANGUAGE plpgsql AS
        $$BEGIN RAISE 'too many notices' USING ERRCODE = '54000'; END$$;
        """)
        name = connection.info.dbname
        connection.execute(f'ALTER DATABASE "{name}" SET search_path = full_queue, pg_catalog')
    for task_id in ("a", "b"):  # the first prepares what the second uses
        assert submitted(store, task_id).created
        assert asyncio.run(store.get(task_id)).id == task_id


def test_a_connection_that_has_ended_costs_no_task(store, postgres_url):
    assert submitted(store, "a").created
    ended = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = %s"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        here = f"{ended} AND pid <> pg_backend_pid()"
        connection.execute(here, (connection.info.dbname,))
    assert submitted(store, "b").created


def test_a_client_that_is_interrupted_tells_nothing_wrong_of_its_next_task(postgres_url):
    waiting = """
    SELECT 1 FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock'
    """
    migrate_store(postgres_url)
    with Client(postgres_url) as client, psycopg.connect(postgres_url) as other:
        client.submit(id="a", handler="h")
        other.execute("LOCK TABLE tidewheel.task IN ACCESS EXCLUSIVE MODE")

        def interrupt():
            with psycopg.connect(postgres_url, autocommit=True) as looking:
                eventually(lambda: looking.execute(waiting).fetchall(), "the client waits")
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

        interrupting = threading.Thread(target=interrupt)
        interrupting.start()
        with pytest.raises(KeyboardInterrupt):
            client.submit(id="b", handler="h")
        interrupting.join()
        other.rollback()
        assert not client.submit(id="a", handler="h").created
        assert client.submit(id="c", handler="h").created
        assert {one.id for one in client.list()} >= {"a", "c"}
