"""RELIABILITY 31-33, 36: PostgreSQL that crashes, hangs up, locks or has no room for us."""

import asyncio
import itertools
import random
import threading

import psycopg
import pytest

from tests.conformance.door import Door, new_task
from tests.support.audit import audit, until_all_ended
from tests.support.fleet import fleet
from tests.support.patience import eventually, pace, scaled
from tests.support.postgres import PostgresServer
from tidewheel.config import StoreSettings
from tidewheel.errors import StoreBusy, Unavailable, UnsafeStore
from tidewheel.store.postgres import open_postgres_store

CRASHES = scaled(8)
HANG_UPS = scaled(100)
TASKS_MIN = 1000


@pytest.fixture(scope="module")
def server():
    """One that these tests may crash."""
    with PostgresServer.running() as server:
        yield server


@pytest.fixture
def url(server, request):
    """A database of its own."""
    name = f"faults_{abs(hash(request.node.name))}"
    yield server.create_database(name)
    server.drop_database(name)


@pytest.fixture
def crew(url, tmp_path):
    with fleet(tmp_path, url) as crew:
        yield crew


class Submitter(threading.Thread):
    """A client that submits until it may stop, through whatever happens."""

    def __init__(self, crew):
        super().__init__(name="submitter")
        self.crew = crew
        self.acknowledged, self.failures = [], 0
        self.may_stop = threading.Event()
        self.unexpected = None

    def run(self):
        try:
            with self.crew.client() as client:
                while not self.may_stop.wait(0.02) or len(self.acknowledged) < TASKS_MIN:
                    count = len(self.acknowledged)
                    self.submit(client, [f"t{n}" for n in range(count, count + 10)])
        except BaseException as error:
            self.unexpected = error
            raise

    def submit(self, client, ids):
        """The same request until it is answered: ids make it safe to repeat."""
        tasks = [
            {"id": one, "handler": "last", "spec": 0.01, "max_lapses": 1000} for one in ids
        ]
        while True:
            try:
                client.submit_many(tasks, atomic=True)
            except Unavailable:
                self.failures += 1
                pace(0.02)
            else:
                self.acknowledged += ids
                return


def persistently(ask):
    """An answer, however often the database is away meanwhile."""

    def try_once():
        try:
            return ask() or "nothing"
        except (Unavailable, psycopg.Error):
            return None

    return eventually(try_once, "the database answers")


def drain(crew, faults):
    """Two workers and a monitor drain what a client submits while faults happen."""
    with crew.client() as client:
        client.configure_queue("default", lease_seconds=2.0)
    programs = [crew.monitor(), *(crew.worker("--slots", "8") for _ in range(2))]
    for worker in programs[1:]:
        worker.says("worker.registered")
    submitter = Submitter(crew)
    submitter.start()
    try:
        for fault in faults:
            fault()
    finally:
        submitter.may_stop.set()
        submitter.join()
    assert submitter.unexpected is None
    with crew.client() as client:
        ended = until_all_ended(client, len(submitter.acknowledged), scaled(50))
        assert set(ended.values()) == {"succeeded"}
        happened = audit(client, crew, submitter.acknowledged)
    assert all(program.runs for program in programs), "somebody gave up"
    assert {program.end() for program in programs} == {0}
    return submitter, happened


@pytest.mark.timeout(3600)
@pytest.mark.req("R002-86", "R002-59")
def test_crashes_of_the_database_lose_nothing_and_nobody_has_to_be_restarted(
    server, crew, request
):
    """D1, D2, D3: what was acknowledged is there, what ended stays so, and ended once."""
    chance = random.Random(request.config.getoption("randomly_seed", 1))

    def crash():
        pace(chance.uniform(0.2, 1.0))
        server.restart_immediately()

    submitter, _ = drain(crew, itertools.repeat(crash, CRASHES))
    assert submitter.failures > 0, "the client never noticed"
    unavailable = [program.log.count("store.unavailable") for program in crew.programs]
    assert all(unavailable), "everybody must have met a crash"


@pytest.mark.timeout(3600)
@pytest.mark.req("R002-86")
def test_backends_that_are_ended_lose_nothing(url, crew):
    """One backend of ours at a time, whatever it is doing."""
    one = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
              WHERE application_name = 'tidewheel' AND datname = current_database()
              ORDER BY random() LIMIT 1"""

    def hang_up():
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(one)
        pace(0.02)

    drain(crew, itertools.repeat(hang_up, HANG_UPS))


@pytest.mark.req("R002-86", "R002-85", "R002-53")
def test_a_monitor_alone_lives_through_a_restart_and_goes_on(server, crew):
    monitor = crew.monitor(TIDEWHEEL_MONITOR_INTERVAL_SECONDS="0.1")
    with crew.client() as client:

        def lapses():
            return [entry.signal for entry in client.history("a")].count("lapse")

        client.submit(id="a", command="true")
        client.lease(lease_seconds=0.3)
        eventually(lapses, "it watches")
        server.crash()
        monitor.says("store.unavailable")
        server.start()
        monitor.says("store.back")
        persistently(lambda: client.lease(lease_seconds=0.3))
        eventually(lambda: lapses() == 2, "it watches again")
    assert monitor.end() == 0


def open_door(url, **settings):
    store = open_postgres_store(StoreSettings(url=url, **settings))

    async def opening():
        return store

    return Door(opening)


@pytest.mark.parametrize(
    "patience", [{"busy_seconds_max": 0.3}, {"statement_seconds_max": 0.3}]
)
def test_a_lock_or_a_statement_that_takes_too_long_is_told_and_changes_nothing(url, patience):
    door = open_door(url, **patience)
    door.put("a", "b")
    before = door.everything()["tasks"]
    with psycopg.connect(url) as other:
        other.execute("SELECT * FROM tidewheel.task WHERE id = 'a' FOR UPDATE")
        with pytest.raises(StoreBusy, match="try again"):
            door.cancel(["b", "a"])
        assert door.everything()["tasks"] == before
    assert [answer.status for answer in door.cancel(["b", "a"])] == ["cancelled"] * 2
    assert door.verify() == []
    door.leave()


def test_without_a_free_connection_calls_fail_at_once_and_recover(url):
    """Whoever got a connection is served, the others are told; nobody waits for the other."""
    guest_url = url.replace("postgres@", f"{limit_guest(url, 3)}@")
    door = open_door(guest_url, connections_max=8)

    async def many():
        calls = (door.store.submit([new_task(f"t{n}")]) for n in range(40))
        return await asyncio.gather(*calls, return_exceptions=True)

    answers = asyncio.run(many())
    refused = [answer for answer in answers if isinstance(answer, BaseException)]
    assert refused and all(isinstance(one, Unavailable) for one in refused)
    stored = {n for n, answer in enumerate(answers) if not isinstance(answer, BaseException)}
    assert stored
    limit_guest(url, 100)
    assert set(door.listed()) == {f"t{n}" for n in stored}
    assert {answer[0].id for answer in asyncio.run(many())} == {f"t{n}" for n in range(40)}
    door.leave()


def limit_guest(url, connections):
    """Somebody who may have only so many connections; the limit can be changed."""
    with psycopg.connect(url, autocommit=True) as admin:
        guest = f"guest_of_{admin.info.dbname}"
        if not admin.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (guest,)).fetchone():
            admin.execute(f"CREATE ROLE {guest} LOGIN")
            admin.execute(f"GRANT ALL ON DATABASE {admin.info.dbname} TO {guest}")
        admin.execute(f"ALTER ROLE {guest} CONNECTION LIMIT {connections}")
    return guest


@pytest.mark.req("R002-27", "R002-89")
def test_clients_whose_requests_cross_are_all_served(url):
    """Edges and cancels in opposite orders: deadlocks are run again, nobody hears of them."""
    doors = [open_door(url, connections_max=4) for _ in range(2)]
    chance = random.Random(3)
    doors[0].submit([new_task(f"t{n}", armed=False) for n in range(40)])

    async def cross(door, forwards):
        for _ in range(12):
            pairs = sorted(chance.sample(range(40), 8), reverse=not forwards)
            low, high = sorted(chance.sample(range(40), 2))
            calls = (
                door.store.add_edges([(f"t{low}", f"t{high}")]),
                door.store.remove_edges([(f"t{low}", f"t{high}")]),
                door.store.cancel([f"c{n}" for n in pairs]),
                door.store.submit([new_task(f"n{chance.random()}", needs=[f"t{low}"])]),
            )
            await asyncio.gather(*calls)

    def run(door, forwards, failures):
        try:
            asyncio.run(cross(door, forwards))
        except BaseException as error:
            failures.append(error)

    doors[0].submit([new_task(f"c{n}") for n in range(40)])
    for n in range(39):
        doors[0].put(f"d{n}", needs=[f"c{n}", f"c{n + 1}"])
    failures = []
    threads = [
        threading.Thread(target=run, args=(door, forwards, failures))
        for door, forwards in zip(doors, (True, False), strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert doors[0].verify() == []
    for door in doors:
        door.leave()


def test_a_server_that_does_not_sync_is_refused(tmp_path):
    with PostgresServer.running(durable=False) as unsafe:
        with pytest.raises(UnsafeStore, match="fsync = off"):
            open_postgres_store(StoreSettings(url=unsafe.dsn()))
        with fleet(tmp_path, unsafe.dsn()) as crew:
            worker = crew.worker()
            assert worker.process.wait(30) == 3
            assert "Set fsync = on" in worker.log


def test_a_database_that_commits_without_waiting_is_refused(url):
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {admin.info.dbname} SET synchronous_commit = off")
    with pytest.raises(UnsafeStore, match="synchronous_commit = off"):
        open_postgres_store(StoreSettings(url=url))
