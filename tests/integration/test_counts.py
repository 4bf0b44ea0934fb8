"""What a unit of work costs, in numbers that no clock and no load changes. They only fall.

A rise needs its reason in the commit that brings it. `python -m bench.counts` tells them all.
"""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import psycopg
import pytest

from bench.core_counts import (
    of_each_completion,
    of_each_task_of_a_wide_cycle,
    of_each_task_that_is_read,
)
from bench.counts import of_commands, of_each, of_start
from bench.drain_counts import asked_of_postgres, of_each_drained
from bench.request_counts import of_requests
from tidewheel import Client
from tidewheel.config import StoreSettings
from tidewheel.core.queue.access import AuditEntry
from tidewheel.core.queue.requests import Beat, ClaimRequest, HostProcess, NewWorker
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.task import NewTask
from tidewheel.store.postgres import PostgresTransaction
from tidewheel.store.postgres_wire import Wire
from tidewheel.store.sqlite import open_sqlite_store
from tidewheel.wiring.stores import migrate_store, opened_store

# Modules of tidewheel, and all.
# Goals: a start-up of 0.25 s for one task, 0.05 s for --version.
MODULES_MAX = {
    "--version": (1, 56),
    # One of submit adds up the values that messages tell, one writes to SQLite.
    "submit": (80, 286),
    # Values are four of them, nested runs two; elements of lists, services, names for people,
    # triggers of groups, what a reload brings too late and outages of the store one each.
    "run": (236, 451),
    # One of runs reads durations, for --delete-older.
    "runs": (98, 299),
}
# What each further task of a chain costs; a fraction of a turn may be a renewed lease, one of a
# statement the look for what other processes wrote, each 50 ms.
HOP_MAX = {"syncs": 1.2, "statements": 23.5, "calls": 454}
# A job of many, four of which run at once: how many end together is up to the machine.
FAN_MAX = {"syncs": 0.7, "statements": 13}
JOB_MAX = {"processes": 1, "folders": 8, "files": 3, "links": 1, "syncs": 3.5}
# The first run of a home, with one task: the store is made by a schema that is written down
# (about 100 statements), and synced as a whole.
START_MAX = {"syncs": 17, "statements": 310}
# What a submit_many of 1,000 tasks costs; calls are those for one of them.
SUBMISSION_MAX = {"syncs": 1.4, "statements": 6, "calls": 1.2}
SUBMISSION_TO_POSTGRES_MAX = {"waits": 6, "statements": 4, "calls": 1.2}
# What a simulated task costs in cycles of 10 and of 1,000. The latter wait for room in their
# queue, are shown as queued, and are written into the pool and out of it.
NARROW_MAX = {"calls": 83}
WIDE_MAX = {"calls": 96}
TRIES = 3  # what renews a lease or looks around meanwhile counts, too: the least counts


def test_commands_load_no_more_modules_than_they_did():
    loaded = of_commands()
    assert loaded.keys() == MODULES_MAX.keys()
    for command, counts in loaded.items():
        assert counts <= MODULES_MAX[command], command
        assert counts[1] <= MODULES_MAX[command][1], command


@pytest.mark.parametrize(
    ("unit", "most"),
    [
        ("hops", HOP_MAX),
        ("fans", FAN_MAX),
        ("jobs", JOB_MAX),
        ("submissions", SUBMISSION_MAX),
        ("narrow", NARROW_MAX),
        ("wide", WIDE_MAX),
    ],
)
def test_a_task_costs_no_more_commits_statements_calls_files_and_processes(unit, most):
    stays_below(unit, most)


def test_a_submission_to_postgresql_costs_no_more_round_trips(postgres_url):
    migrate_store(postgres_url)
    stays_below("submissions", SUBMISSION_TO_POSTGRES_MAX, postgres_url)


def stays_below(unit, most, *store):
    seen = []
    for _ in range(TRIES):
        seen.append(of_each(unit, *store))
        assert seen[-1].keys() == most.keys()
        if all(seen[-1][name] <= most[name] for name in most):
            return
    raise AssertionError(f"{unit}: {seen}, and {most} at most")


# What each further task of a queue costs that is drained by a worker with 200 slots. Four of
# its calls stand for nine of asyncio and collections, which are not counted.
DRAINED_MAX = {"syncs": 0.011, "statements": 0.14, "calls": 30}
ASKED_MAX = {"plain": 2, "keys": 3}  # beside BEGIN and COMMIT


def test_a_drained_task_costs_no_more_commits_statements_and_calls():
    seen = []
    for _ in range(TRIES):
        seen.append(of_each_drained())
        assert seen[-1].keys() == DRAINED_MAX.keys()
        if all(seen[-1][name] <= most for name, most in DRAINED_MAX.items()):
            return
    raise AssertionError(f"{seen}, and {DRAINED_MAX} at most")


@pytest.fixture
def names(monkeypatch):
    """The statements whose answer is waited for, as PostgreSQL is asked them."""
    names, ask = [], PostgresTransaction.ask

    def noted(self, query, parameters):
        names.append(query)
        return ask(self, query, parameters)

    monkeypatch.setattr(PostgresTransaction, "ask", noted)
    return names


def test_a_task_is_stored_by_one_statement_and_waits_for_one_more_of_its_audit(
    postgres_url, names
):
    migrate_store(postgres_url)
    facts = {"token": None, "who": "me", "client": "here", "verb": "POST /tasks"}
    entry = AuditEntry(**facts, target="b", status=201, correlation="c")

    async def submit():
        async with opened_store(postgres_url) as store:
            await store.submit([NewTask(id="a", queue="q", handler="h")])
            task = NewTask(id="b", queue="q", handler="h")
            await store.submit_audited([task], lambda _: [entry])

    asyncio.run(submit())
    # What is written of the audit is sent together with the end of the transaction.
    assert names == ["insert_tasks", "insert_tasks", "lock_audit_head"]


def test_a_task_is_stored_by_one_round_trip_to_postgresql(postgres_url, monkeypatch):
    migrate_store(postgres_url)
    trips = []

    def noted(way):
        def call(wire, *given, **how):
            trips.append(way.__name__)
            return way(wire, *given, **how)

        return call

    for way in (Wire.ask, Wire.commit, Wire.roll_back):
        monkeypatch.setattr(Wire, way.__name__, noted(way))

    async def submit():
        async with opened_store(postgres_url) as store:
            await store.submit([NewTask(id="a", queue="q", handler="h")])

    asyncio.run(submit())
    assert trips == ["ask"]  # BEGIN, COMMIT and the notice go with it


def test_a_task_of_a_blocking_client_is_stored_in_the_thread_that_calls(
    postgres_url, monkeypatch
):
    migrate_store(postgres_url)
    threads, ask = [], Wire.ask

    def noted(wire, *given, **how):
        threads.append(threading.get_ident())
        return ask(wire, *given, **how)

    monkeypatch.setattr(Wire, "ask", noted)
    with Client(postgres_url) as client:
        client.queues()  # it is connected
        del threads[:]
        assert client.submit(id="a", queue="q", handler="h").created
        assert not client.submit(id="a", queue="q", handler="h").created
    assert set(threads) == {threading.get_ident()}


def test_an_application_of_many_threads_needs_no_connection_for_each(postgres_url):
    migrate_store(postgres_url)
    count, name = 40, "many-threads"
    ready = threading.Barrier(count)

    def submit(client, number):
        ready.wait()
        return client.submit(id=f"t{number}", queue="q", handler="h").created

    with Client(f"{postgres_url}&application_name={name}") as client:
        client.queues()
        with ThreadPoolExecutor(count) as pool:
            answers = list(pool.map(partial(submit, client), range(count)))
        assert answers == [True] * count
        with psycopg.connect(postgres_url) as connection:
            query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
            (used,) = connection.execute(query, (name,)).fetchone()
        assert used <= StoreSettings(url=postgres_url).connections_max + 1


def test_a_claim_asks_postgresql_no_more_often(postgres_url, names):
    asked = asyncio.run(asked_of_postgres(postgres_url, names))
    assert asked.keys() == ASKED_MAX.keys()
    for queue, statements in asked.items():
        assert len(statements) <= ASKED_MAX[queue], statements


CLOCK_MAX = {"submitted": 3, "claimed": 8, "renewed": 3}  # looks, for 100 tasks


def test_the_clock_is_asked_once_for_a_statement_and_not_for_each_row(tmp_path):
    looks, seen, count = [], {}, 100

    def clock():
        looks.append(1)
        return 1_800_000_000.0

    settings = StoreSettings(url=f"sqlite:///{tmp_path}/store.db")
    process = HostProcess(host="host", boot_id="boot", pid=1, started=0.0)

    async def work():
        store = open_sqlite_store(settings, clock=clock)
        new = NewWorker(name="w", process=process, queues=("q",), slots=1, capacity=Resources())
        worker = await store.register_worker(new)
        del looks[:]
        tasks = [NewTask(id=f"t{number}", queue="q", handler="h") for number in range(count)]
        await store.submit(tasks)
        seen["submitted"] = len(looks)
        claim = ClaimRequest(queue="q", worker=worker, count=count, lease_seconds=60)
        claimed = await store.claim(claim)
        assert len(claimed) == count
        seen["claimed"] = len(looks) - sum(seen.values())
        await store.heartbeat(
            worker, [Beat(task_id=one.id, attempt=one.attempt) for one in claimed]
        )
        seen["renewed"] = len(looks) - sum(seen.values())
        await store.close()

    asyncio.run(work())
    assert seen.keys() == CLOCK_MAX.keys()
    for what, most in CLOCK_MAX.items():
        assert seen[what] <= most, seen


def test_the_first_run_of_a_home_syncs_no_more_often_than_it_did():
    seen = []
    for _ in range(TRIES):
        seen.append(of_start())
        if all(seen[-1][name] <= START_MAX[name] for name in START_MAX):
            return
    raise AssertionError(f"{seen}, and {START_MAX} at most")


# Calls of our functions for a completion in the core, whatever is stored of it.
COMPLETION_MAX = {"chain": 23, "cycles": 26, "lone tasks": 35}
# Calls for a task of a definition: its section, its family, its lines of the graph.
READ_MAX = 61
# What is stored of a task that is spawned by one batch and ends in a later one. That it was
# spawned follows from its row in the pool, which a batch in between may write again; what is
# forgotten is not written again.
ROWS_MAX = {"PutTask": 1.75, "DropTask": 1.0, "PutMemory": 1.0, "PutChain": 0.34}
ROWS_OF_A_BATCH_MAX = 0.05  # such as that of the run itself


def test_a_completion_in_the_core_costs_no_more_calls():
    calls = of_each_completion()
    assert calls.keys() == COMPLETION_MAX.keys()
    for shape, count in calls.items():
        assert count <= COMPLETION_MAX[shape], shape


def test_a_task_of_a_definition_costs_no_more_calls_to_be_read():
    assert of_each_task_that_is_read() <= READ_MAX


def test_a_task_of_a_wide_cycle_is_stored_in_no_more_rows():
    for kind, count in of_each_task_of_a_wide_cycle().items():
        assert count <= ROWS_MAX.get(kind, ROWS_OF_A_BATCH_MAX), kind


# What a request costs the server: commits, statements (of which a look by several queries has
# two that begin and end it), calls of our functions, changes of thread, objects that are left
# to the garbage collector; alone, and in a crowd of 16. A fraction is the look at the caller's
# token, which is good for half a second, or what a round left to the next.
REQUEST_MAX = {
    "GET /healthz": (0, 0.2, 50, 0.1, 0.5),
    "GET /tasks/{id}": (0, 1.4, 113, 0.4, 0.5),
    "GET /runs": (0, 6.5, 135, 4.5, 0.5),
    "POST /tasks": (1.2, 9.6, 238, 2.8, 0.5),
    "POST /heartbeats": (1.1, 6.8, 203, 2.8, 0.5),
    "GET /healthz, 16 at once": (0, 0.2, 51, 0.1, 0.5),
    "GET /tasks/{id}, 16 at once": (0, 0.5, 103, 0.3, 0.5),
    "GET /runs, 16 at once": (0, 8.0, 160, 4.0, 0.5),
    "POST /tasks, 16 at once": (0.3, 2.5, 137, 0.8, 0.5),
    "POST /heartbeats, 16 at once": (0.2, 1.5, 164, 0.6, 0.5),
}


def test_a_request_costs_no_more_commits_statements_calls_changes_of_thread_and_garbage():
    seen = []
    for _ in range(TRIES):
        seen.append({name: tuple(costs.values()) for name, costs in of_requests().items()})
        assert seen[-1].keys() == REQUEST_MAX.keys()
        if all(
            cost <= most
            for name, costs in seen[-1].items()
            for cost, most in zip(costs, REQUEST_MAX[name], strict=True)
        ):
            return
    raise AssertionError(f"{seen}, and {REQUEST_MAX} at most")
