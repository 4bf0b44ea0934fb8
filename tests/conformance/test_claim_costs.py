"""What a claim under rules costs: the same steps of the database however many tasks wait."""

from contextlib import contextmanager

import apsw
import psycopg
import pytest

from tests.conformance.door import new_task
from tests.conformance.worlds import PostgresWorld, SqliteWorld
from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.requests import ClaimRequest, QueueSettings
from tidewheel.store.operations.leases import claim
from tidewheel.store.postgres import BY_KEY_ONLY, KEEP_PLANS, PostgresTransaction
from tidewheel.store.postgres_wire import Wire, settings_query
from tidewheel.store.sqlite import SqliteTransaction
from tidewheel.store.sqlite_file import connect

FEW, MANY = 300, 6_000
TASKS_READ = """
SELECT sum(seq_tup_read + idx_tup_fetch)::bigint FROM pg_stat_xact_user_tables
 WHERE schemaname = 'tidewheel'
"""


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request):
    """What memory does costs nothing that anybody waits for."""
    return request.param


@pytest.fixture
def shared_postgres_url(postgres_url):
    """A database of its own: rows that others deleted would be counted, too."""
    return postgres_url


@contextmanager
def counted(world, told=TASKS_READ):
    """A transaction that is undone, and a function that says how many steps it took; of
    PostgreSQL what it tells by this query."""
    if isinstance(world, SqliteWorld):
        steps = []
        connection = connect(world.path, world.settings, clock=world.clock, vfs=None)
        connection.trace_v2(
            apsw.SQLITE_TRACE_PROFILE,
            lambda told: steps.append(told["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]),
        )
        connection.execute("BEGIN IMMEDIATE")
        yield SqliteTransaction(connection), lambda: sum(steps)
        connection.execute("ROLLBACK")
        connection.close()
        return
    assert isinstance(world, PostgresWorld)
    with psycopg.connect(world.settings.url, autocommit=True) as connection:
        wire = Wire(connection, settings_query(BY_KEY_ONLY | KEEP_PLANS))
        transaction = PostgresTransaction(lambda: wire, b"BEGIN", writes=True)
        yield transaction, lambda: connection.execute(told).fetchone()[0]
        connection.execute("ROLLBACK")


def each(**limit):
    return QueueSettings(limits=(Limit(key="*", **limit),))


# What the queue says, how many keys its tasks have (per how many tasks), how many run, and what
# one claim finds.
CASES = {
    "a limit of the queue": (QueueSettings(limits=(Limit(concurrency_max=9),)), 0, 0, 1),
    "a queue that is full": (QueueSettings(limits=(Limit(concurrency_max=2),)), 0, 2, 0),
    "a rate": (QueueSettings(limits=(Limit(rate_max=9),)), 0, 0, 1),
    "aging": (QueueSettings(aging=True), 0, 0, 1),
    "few keys": (each(concurrency_max=3), 6, 0, 1),
    "few keys, all but one full": (each(concurrency_max=1), 5, 4, 1),
    "many keys": (each(concurrency_max=1), 0.1, 0, 1),
    "many keys, most of them full": (each(concurrency_max=1), 0.1, -3, 1),
    "keys that are all full": (each(concurrency_max=0), 0.1, 0, 0),
    "a rate of each key": (each(rate_max=3), 0.1, 0, 1),
    "turns": (QueueSettings(fair=True), 0.1, 0, 1),
}


def steps_of_a_claim(world, case, size):
    settings, keys, running, found = CASES[case]
    store = world.open()
    queue, worker = f"q{size}", store.hire()
    count = int(keys * size) if keys < 1 else int(keys)
    tasks = [
        new_task(
            f"{queue} {n}",
            queue=queue,
            priority=10 + n % 3,
            limit_key=f"k{n % count}" if count else None,
        )
        for n in range(size)
    ]
    for start in range(0, size, 1_000):
        store.submit(tasks[start : start + 1_000])
    store.configure_queue(queue, settings)
    held = running if running >= 0 else count + running
    while held:
        held -= len(store.take(held, worker=worker, queue=queue))
    for one in store.take(queue=queue, worker=worker):  # what is new of lanes is put right
        store.finish(one)
    request = ClaimRequest(queue=queue, worker=worker)
    if world.kind == "postgres":
        world.execute("VACUUM")
    with counted(world) as (tx, steps):
        assert len(claim(tx, request)) == found
        return steps()


@pytest.mark.parametrize("case", CASES)
def test_a_claim_costs_what_it_takes_and_not_what_waits(world, case):
    few, many = (steps_of_a_claim(world, case, size) for size in (FEW, MANY))
    assert many < few * 1.5 + 40, (few, many)


ENTRIES_READ = "SELECT pg_stat_get_xact_tuples_returned('tidewheel.ready_pkey'::regclass)"


@pytest.mark.parametrize("kind", ["postgres"], indirect=True)
def test_a_claim_does_not_pass_by_the_places_where_tasks_stood_before_they_had_lanes(world):
    store = world.open()
    tasks = [new_task(f"t{n}", limit_key=f"k{n % 10}") for n in range(MANY)]
    for start in range(0, MANY, 1_000):
        store.submit(tasks[start : start + 1_000])
    store.configure_queue("q", each(concurrency_max=3))
    request = ClaimRequest(queue="q", worker=store.hire())
    with counted(world, ENTRIES_READ) as (tx, entries):
        assert len(claim(tx, request)) == 1
        assert entries() < MANY / 100
