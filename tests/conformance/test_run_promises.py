"""What `verify` promises about runs, each with a row that breaks it (RELIABILITY)."""

import pytest

from tests.conformance.run_steps import Driver, active, make_run
from tests.conformance.test_promises import unguarded
from tidewheel.core.operator.definition import RunOptions

__all__ = ["unguarded"]

# What is wrong -> how a database says it, and how memory does. Run 1 has a and b active in its
# pool, each submitted once (tasks 1 and 2); a's submission is running.
PLANTS = {
    ("P1", "a pool of nobody"): (
        "UPDATE pool SET run = 9 WHERE name = 'a'",
        lambda t: t.pool.__setitem__((9, 1, "a"), t.pool[1, 1, "a"]),
    ),
    ("P1", "a stage that there is not"): (
        "UPDATE pool SET stage = 7 WHERE name = 'a'",
        None,
    ),
    ("P1", "a submit number that is given a second time"): (
        "UPDATE pool SET submit = 0 WHERE name = 'a'",
        lambda t: t.update(t.pool, (1, 1, "a"), submit=0),
    ),
    ("P17", "a submit number that is lower than the one before"): (
        "UPDATE task SET id = 'wf/run1/1/a/0' WHERE name = 'second'",
        lambda t: t.update(t.task, 3, id="wf/run1/1/a/0"),
    ),
    ("P17", "an id that is not of its run"): (
        "UPDATE task SET id = 'wf/run2/1/a/2' WHERE name = 'second'",
        lambda t: t.update(t.task, 3, id="wf/run2/1/a/2"),
    ),
    ("P17", "an id without a submit number"): (
        "UPDATE task SET id = 'wf/run1/1/a/x' WHERE name = 'second'",
        lambda t: t.update(t.task, 3, id="wf/run1/1/a/x"),
    ),
    ("P17", "a submission of nobody"): (
        "UPDATE task SET run = 9 WHERE name = 'second'",
        lambda t: t.update(t.task, 3, run=9),
    ),
    ("P19", "active, but its submission is another"): (
        "UPDATE pool SET submit = 0 WHERE name = 'b'",
        lambda t: t.update(t.pool, (1, 1, "b"), submit=0),
    ),
    ("P19", "active, but its submission is of another run"): (
        "UPDATE task SET run = 2 WHERE seq = 2",
        lambda t: t.update(t.task, 2, run=2),
    ),
    ("P19", "an end of which the scheduler was not told"): (
        "DELETE FROM event WHERE kind = 'over'",
        lambda t: t.event.clear(),
    ),
    ("P22", "something to be claimed of a run that was let go"): (
        "UPDATE run SET status = 'stopped', deadline_at = NULL, host = NULL, boot_id = NULL,"
        " pid = NULL, process_started = NULL WHERE number = 1",
        None,
    ),
}
PLANTED = [
    (kind, *what)
    for what, (_, plant) in PLANTS.items()
    for kind in ("memory", "sqlite", "postgres")
    if kind != "memory" or plant is not None
]


@pytest.mark.parametrize(("unguarded", "invariant", "what"), PLANTED, indirect=["unguarded"])
def test_verify_finds_what_should_not_be_in_a_run(unguarded, invariant, what):
    statement, plant = PLANTS[invariant, what]
    store = unguarded.open()
    driver = Driver.of(store)
    driver.submit("a", "b")
    store.finish(driver.take()[0])
    driver.write(submissions=[driver.task("a", 2, name="second")])
    make_run(store)
    assert store.verify() == []
    if unguarded.kind == "memory":
        plant(unguarded.store.tables)
    else:
        unguarded.execute(statement)
    found = store.verify()
    assert invariant in {violation.invariant for violation in found}, found
    assert all(violation.seen for violation in found)


def test_the_submit_number_of_a_pooled_task_may_be_ahead_of_what_is_remembered(store):
    """It is put down when the task leaves the pool; only a number given twice is wrong."""
    driver = Driver.of(store)
    driver.write(changes=active("a")[:1], submissions=[driver.task("a", 1)])
    assert store.verify() == []


def test_an_end_that_the_scheduler_has_not_heard_of_breaks_nothing(store):
    driver = Driver.of(store)
    driver.submit("a")
    store.finish(driver.take()[0])
    assert store.verify() == []
    driver.said()
    assert [one.invariant for one in store.verify()] == ["P19"]
    driver.over("a")


def test_a_run_that_is_only_played_has_no_submissions(store):
    driver = Driver.of(store, options=RunOptions(mode="simulation"))
    driver.write(changes=active("a"))
    assert store.verify() == []
