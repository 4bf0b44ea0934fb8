"""What the store promises is kept by the database itself, and `verify` finds what is not."""

import contextlib
import re
from itertools import product

import apsw
import psycopg
import pytest

from tests.conformance.run_steps import Driver
from tests.conformance.worlds import MemoryWorld, PostgresWorld, SqliteWorld
from tidewheel.core.queue.dependency import EdgeState
from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.requests import QueueSettings, TaskFilter
from tidewheel.core.queue.status import INITIAL, Signal, Status, legal_steps
from tidewheel.errors import CorruptStore
from tidewheel.store.operations.queries import filter_parameters
from tidewheel.store.sql import load_queries

SQL = pytest.mark.parametrize("kind", ["sqlite", "postgres"])

# Raw SQL, once for both databases: on PostgreSQL `tidewheel` is on the search path.
ADD_HISTORY = """
INSERT INTO history (task_seq, at, signal, from_status, to_status, attempt, progress)
VALUES (999, 0, {signal}, {from_status}, {to_status}, 1, 0)
"""


def quoted(word):
    return "NULL" if word is None else f"'{word}'"


@SQL
def test_the_database_accepts_exactly_the_steps_of_the_status_table(world):
    """So do the pictures in the glossary: tests/tidy compares them with the same table."""
    accepted = set()
    for step in product((None, *Status), (None, *Signal), Status):
        from_status, signal, to_status = map(quoted, step)
        statement = ADD_HISTORY.format(
            from_status=from_status, signal=signal, to_status=to_status
        )
        try:
            world.execute(statement)
        except (apsw.ConstraintError, psycopg.errors.CheckViolation):
            continue
        accepted.add(step)
    assert accepted == legal_steps() | {(None, None, status) for status in INITIAL}


@SQL
@pytest.mark.parametrize(
    "change",
    [
        "status = 'lost'",
        "status = 'succeeded'",
        "status = 'running'",
        "owner = 'worker-1'",
        "progress = 1.5",
        "progress = -0.5",
        "priority = -1",
        "priority = 4294967296",
        "attempt = -1",
        "timeout_seconds = 0",
        "memory_bytes = -1",
        "id = NULL",
        "queue = NULL",
    ],
)
def test_the_database_refuses_a_task_that_cannot_be(world, change):
    store = world.open()
    store.put("a")
    before = store.get("a")
    with pytest.raises((apsw.ConstraintError, psycopg.IntegrityError)):
        world.execute(f"UPDATE task SET {change}")
    assert store.get("a") == before


# What leads to the tasks of each status, tag, run time and memory, and to the edges of a task.
FINDERS = (
    *("find_ready_tasks", "find_waiting_tasks", "find_leased_tasks", "find_unwell_tasks"),
    *("find_tasks", "find_tasks_by_tag", "find_tasks_by_memory_bytes_min"),
    *("find_tasks_by_name", "find_tasks_by_exact", "find_queue_tasks", "find_task_words"),
    "find_tasks_by_estimated_runtime_seconds_max",
    *("lock_open_edges", "list_open_children", "list_edges"),
)


@SQL
@pytest.mark.req("R003-13")
@pytest.mark.parametrize("query", FINDERS)
def test_lists_by_status_edges_run_time_and_resources_walk_along_an_index(world, query):
    text = load_queries(world.kind)[query]
    given = filter_parameters(TaskFilter(tag="t")) | {"status": "failed", "seq": 1}
    given |= {"estimated_runtime_seconds_max": 9, "memory_bytes_min": 9}
    given |= {"before": 9, "count": 9, "seqs": [1], "parents": [1], "exact": "a"}
    if world.kind == "sqlite":
        plan = world.execute("EXPLAIN QUERY PLAN " + text, given)
        # `ready` and `lease` hold nothing but tasks of one status: walking them is the index.
        large = {"SCAN task", "SCAN history", "SCAN dependency"}
        assert large.isdisjoint(row[-1] for row in plan)
    else:
        # Small tables are read from end to end; asked not to, the plan shows what can be used.
        world.execute("SET enable_seqscan = off")
        plan = str(world.execute("EXPLAIN " + text, given))
        assert not re.search(r"Seq Scan on (task|history|dependency)\b", plan)


@SQL
def test_the_past_of_some_tasks_is_found_along_an_index(world):
    text, given = load_queries(world.kind)["find_memory"], {"run": 1, "tasks": "[]"}
    if world.kind == "sqlite":
        plan = str(world.execute("EXPLAIN QUERY PLAN " + text, given))
        assert "SEARCH memory USING PRIMARY KEY (run=? AND point=? AND name=?)" in plan
    else:
        remembered = "SELECT 1, n, 'a', 1, true, '{}' FROM generate_series(1, 20000) AS n"
        world.execute(f"INSERT INTO memory {remembered}")
        world.execute("ANALYZE")
        plan = str(world.execute("EXPLAIN " + text, given))
        assert "Seq Scan on memory" not in plan, plan
        assert "point = ANY (ARRAY[asked.point])" in plan.partition("Index Cond")[2], plan


@SQL
@pytest.mark.parametrize("query", ["find_ready_of_run", "find_withdrawn"])
def test_stopping_and_going_on_walk_past_nothing_that_a_run_did_long_ago(world, query):
    driver = Driver.of(world.open())
    driver.submit(*(f"t{n}" for n in range(1_000)))
    world.execute("UPDATE task SET status = 'cancelled'")
    world.execute("DELETE FROM ready")
    driver.submit("a", "b")
    text, given = load_queries(world.kind)[query], {"run": driver.run.number}
    if world.kind == "sqlite":
        plan = str(world.execute("EXPLAIN QUERY PLAN " + text, given))
        by_number = r"SEARCH task USING .*\((rowid|run=\? AND seq)=\?"
    else:
        world.execute("ANALYZE")
        world.execute("SET enable_seqscan = off")
        plan = str(world.execute("EXPLAIN " + text, given))
        by_number = r"Index Cond: \(.*seq = (ready|withdrawn)\.task_seq\)"
    assert re.search(by_number, plan), plan


# What is wrong -> how a database says it, and how memory does. `a` is ready, `r` running,
# `s` succeeded, `w` waiting for `a`; their numbers are 1 to 4.
PLANTS = {
    ("T1", "a status that history does not know"): (
        "UPDATE task SET status = 'failed', owner = 'worker-1' WHERE id = 'a'",
        lambda t: t.update(t.task, 1, status="failed", owner="worker-1"),
    ),
    ("T1", "a history with a hole"): (
        "DELETE FROM history WHERE task_seq = 3 AND signal = 'claim'",
        lambda t: _drop_history(t, 3, "claim"),
    ),
    ("T1", "a task without a beginning"): (
        "DELETE FROM history WHERE task_seq = 3 AND signal IS NULL",
        lambda t: _drop_history(t, 3, None),
    ),
    ("T1", "a task without any history"): (
        "DELETE FROM history WHERE task_seq = 1",
        lambda t: _drop_history(t, 1, None),
    ),
    ("T2", "a task that ended twice"): (
        "INSERT INTO history (task_seq, at, signal, from_status, to_status, attempt, progress) "
        "SELECT task_seq, at, signal, from_status, to_status, attempt, progress "
        "FROM step WHERE task_seq = 3 AND to_status = 'succeeded'",
        lambda t: _repeat_end(t, 3),
    ),
    ("T3", "an attempt that nobody claimed"): (
        "UPDATE task SET attempt = 7 WHERE id = 'a'",
        lambda t: t.update(t.task, 1, attempt=7),
    ),
    ("T5", "running without a lease"): (
        "DELETE FROM lease",
        lambda t: t.lease.__delitem__(2),
    ),
    ("T5", "a lease of another owner"): (
        "UPDATE lease SET owner = 'worker-99'",
        lambda t: t.update(t.lease, 2, owner="worker-99"),
    ),
    ("T5", "a lease of another attempt"): (
        "UPDATE lease SET attempt = 9",
        lambda t: t.update(t.lease, 2, attempt=9),
    ),
    ("T5", "a lease of a task that is ready"): (
        "UPDATE lease SET task_seq = 1",
        lambda t: t.lease.__setitem__(1, t.lease[2]),
    ),
    ("T5", "ready with an owner"): (
        "UPDATE task SET owner = 'worker-1' WHERE id = 'a'",
        lambda t: t.update(t.task, 1, owner="worker-1"),
    ),
    ("T6", "ready, but not to be claimed"): (
        "DELETE FROM ready WHERE task_seq = 1",
        None,
    ),
    ("T6", "ended, but to be claimed"): (
        "UPDATE ready SET task_seq = 3 WHERE task_seq = 1",
        None,
    ),
    ("T6", "ready in another queue"): (
        "UPDATE ready SET queue = 'p' WHERE task_seq = 1",
        None,
    ),
    ("T6", "ready with another priority"): (
        "UPDATE ready SET rank = -99 WHERE task_seq = 1",
        None,
    ),
    ("T6", "ready for more than was asked"): (
        "UPDATE ready SET cpu = 7 WHERE task_seq = 1",
        None,
    ),
    ("T6", "ready in a lane of a queue without lanes"): (
        "UPDATE ready SET laned = true WHERE task_seq = 1",
        None,
    ),
    ("T12", "a unique key that nobody holds any more"): (
        "UPDATE task SET held_key = NULL WHERE id = 'a'",
        None,
    ),
    ("T12", "a unique key held after the end"): (
        "UPDATE task SET held_key = 'x' WHERE id = 's'",
        None,
    ),
    ("T10", "waiting for nothing"): (
        "UPDATE dependency SET state = 'met'",
        lambda t: t.edge.__setitem__((1, 4, "succeeded"), EdgeState.MET),
    ),
    ("T10", "ready with an open dependency"): (
        "UPDATE task SET status = 'ready' WHERE id = 'w'",
        lambda t: t.update(t.task, 4, status="ready"),
    ),
    ("T13", "the history of nobody"): (
        ADD_HISTORY.format(from_status="NULL", signal="NULL", to_status="'ready'"),
        lambda t: t.history.__setitem__(
            999, (999, 999, 0.0, None, None, "ready", 0, None, 0.0)
        ),
    ),
    ("T15", "success with half the progress"): (
        "UPDATE task SET progress = 0.5 WHERE id = 's'",
        lambda t: t.update(t.task, 3, progress=0.5),
    ),
    ("T15", "more than everything done"): (
        "UPDATE task SET progress = 2 WHERE id = 'r'",
        lambda t: t.update(t.task, 2, progress=2.0),
    ),
}


def _drop_history(tables, task, signal):
    for number, row in list(tables.history.items()):
        if (row[0], row[3]) == (task, signal):
            del tables.history[number]


def _repeat_end(tables, task):
    rows = [row for row in tables.history.values() if row[0] == task]
    tables.history[999] = (task, 999, *rows[-1][2:])


# Memory has one table where the others have two, which may disagree.
PLANTED = [
    (kind, *what)
    for what, (_, plant) in PLANTS.items()
    for kind in ("memory", "sqlite", "postgres")
    if kind != "memory" or plant is not None
]


@pytest.fixture
def unguarded(request):
    """A world whose database has lost its constraints."""
    if request.param == "memory":
        world = MemoryWorld()
    elif request.param == "sqlite":
        world = SqliteWorld(guarded=False)
    else:
        world = PostgresWorld(request.getfixturevalue("postgres_url"))
        world.execute(DROP_CONSTRAINTS)
    yield world
    world.close()


DROP_CONSTRAINTS = """
DO $$
DECLARE found record;
BEGIN
    FOR found IN SELECT conrelid::regclass AS name, conname FROM pg_constraint
                  WHERE connamespace = 'tidewheel'::regnamespace AND contype IN ('c', 'f')
    LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', found.name, found.conname);
    END LOOP;
END $$
"""


@pytest.mark.parametrize(("unguarded", "invariant", "what"), PLANTED, indirect=["unguarded"])
def test_verify_finds_what_should_not_be(unguarded, invariant, what):
    statement, plant = PLANTS[invariant, what]
    store = unguarded.open()
    store.put("a", unique_key="k")
    store.put("r", "s")
    store.put("w", needs=["a"])
    store.hold("r")
    store.run_through("s")
    assert [store.get(name).seq for name in "arsw"] == [1, 2, 3, 4]
    assert store.verify() == []
    if unguarded.kind == "memory":
        plant(unguarded.store.tables)
    else:
        unguarded.execute(statement)
    found = store.verify()
    assert invariant in {violation.invariant for violation in found}
    assert all(violation.seen for violation in found)


@SQL
@pytest.mark.parametrize(
    "plant", ["DELETE FROM lane", "UPDATE lane SET rank = 0", "UPDATE lane SET task_seq = 99"]
)
def test_verify_finds_a_task_that_its_lane_does_not_lead_to(world, plant):
    store = world.open()
    store.configure_queue("q", QueueSettings(limits=(Limit(key="*", concurrency_max=1),)))
    store.put("a", "b", "c", limit_key="k", priority=7)
    store.take()
    store.take()
    assert store.verify() == []
    world.execute(plant)
    assert {violation.invariant for violation in store.verify()} == {"T6"}


@pytest.mark.parametrize("kind", ["postgres"])
@pytest.mark.parametrize(
    ("plant", "invariants"),
    [
        ("DELETE FROM joint_step WHERE signal = 'claim'", {"T1", "T3", "T13"}),
        ("DELETE FROM joint_step WHERE signal = 'succeed'", {"T1", "T13"}),
        ("UPDATE attempt SET claim_seq = NULL", {"T1", "T3", "T13"}),
        ("UPDATE attempt SET end_seq = NULL", {"T1", "T13"}),
        ("UPDATE attempt SET end_seq = claim_seq", {"T1", "T3", "T13"}),
        ("UPDATE lease SET claim_seq = NULL", {"T1", "T3", "T13"}),
        ("UPDATE joint_step SET attempts = ARRAY[7, 7, 7] WHERE signal = 'claim'", {"T13"}),
        ("UPDATE joint_step SET task_seqs = '{999}', attempts = '{1}'", {"T13"}),
    ],
)
def test_verify_finds_a_joint_step_that_is_not_what_its_tasks_say(world, plant, invariants):
    store = world.open()
    store.put("a", "b", "c")
    store.finish(store.take(3)[0])
    assert store.verify() == []
    world.execute(plant)
    assert {violation.invariant for violation in store.verify()} == invariants


@pytest.mark.parametrize("kind", ["sqlite"])
def test_verify_finds_a_damaged_file(world):
    store = world.open()
    store.put(*(f"t{n}" for n in range(500)), spec='"' + "x" * 500 + '"')
    world.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    pages = world.path.stat().st_size // 4096
    with world.path.open("r+b") as file:
        for page in range(pages - 30, pages - 10):  # those of the schema are before all tasks
            file.seek(page * 4096)
            file.write(b"\xff" * 4096)
    other = world.open()
    with contextlib.suppress(CorruptStore):  # as good an answer
        assert "file" in {violation.invariant for violation in other.verify()}
