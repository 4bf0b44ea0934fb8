"""Every operation on a task in every status: where it leads, or that nothing changes."""

from itertools import product

import pytest

from tests.conformance.test_edges import bring_to
from tidewheel.core.queue.requests import Amendment
from tidewheel.core.queue.status import Status
from tidewheel.errors import LeaseLost, WrongStatus

# Where an operation (row) leads from a status (column); "-" is a refusal that names the status,
# "." an answer that nothing changed.
MATRIX = """
             waiting    ready      running    cancelling succeeded  failed     cancelled
    arm      ready      -          -          -          -          -          -
    amend    waiting    -          -          -          -          -          -
    claim    -          running    -          -          -          -          -
    take     .          running    .          .          .          .          .
    succeed  -          -          succeeded  cancelled  -          -          -
    fail     -          -          failed     cancelled  -          -          -
    abort    -          -          failed     cancelled  -          -          -
    yield    -          -          ready      cancelled  -          -          -
    started  -          -          running    cancelling -          -          -
    beat     .          .          running    cancelling .          .          .
    adopt    -          -          running    cancelling -          -          -
    lapse    .          .          ready      cancelled  .          .          .
    cancel   cancelled  cancelled  cancelling .          .          .          .
    edge in  waiting    -          -          -          -          -          -
    edge out waiting    -          -          -          -          -          -
    delete   .          .          .          .          gone       gone       gone
"""
STATUSES, *ROWS = (line for line in MATRIX.strip("\n").splitlines())
EXPECTED = {
    (row[4:13].strip(), status): to
    for row in ROWS
    for status, to in zip(STATUSES.split(), row[13:].split(), strict=True)
}


def lapse(store, clock):
    clock.advance(11)
    store.lapse()


# Each is done by whoever held the task last.
OPERATIONS = {
    "arm": lambda store, _held, _clock: store.arm("a"),
    "amend": lambda store, _held, _clock: store.amend("a", Amendment(max_retries=0)),
    "claim": lambda store, held, _clock: store.hold("a", held.worker),
    "take": lambda store, held, _clock: store.take(worker=held.worker),
    "succeed": lambda store, held, _clock: store.finish(held),
    "fail": lambda store, held, _clock: store.finish(held, "failed"),
    "abort": lambda store, held, _clock: store.finish(held, "aborted"),
    "yield": lambda store, held, _clock: store.finish(held, "yielded"),
    "started": lambda store, held, _clock: store.tell(held, started=True),
    "beat": lambda store, held, _clock: store.beat(held, 0.5),
    "adopt": lambda store, held, _clock: store.adopt(held.holder, store.hire()),
    "lapse": lambda store, _held, clock: lapse(store, clock),
    "cancel": lambda store, _held, _clock: store.cancel(["a"]),
    "edge in": lambda store, _held, _clock: store.add_edges([("free", "a")]),
    "edge out": lambda store, _held, _clock: store.remove_edges([("a", "free")]),
    "delete": lambda store, _held, _clock: store.delete(["a"]),
}


def prepare(store, status):
    """The task in this status, and its lease in the hand of its owner (if it had none, of one
    who claims to be that)."""
    store.put("free", armed=False)
    store.put("another")
    other = store.hold("another")
    store.finish(other)
    if status == "waiting":
        store.put("a", armed=False)
    else:
        bring_to(store, "a", status)
    view = store.get("a")
    return other.rename("a", view.owner or other.worker, max(view.attempt, 1))


@pytest.mark.req("R002-66", "R002-79", "R003-63", "R003-64", "R003-65", "R003-66", "R003-67")
@pytest.mark.parametrize("status", STATUSES.split())
def test_each_operation_leads_where_the_table_says_or_is_refused_and_changes_nothing(
    store, clock, status
):
    held = prepare(store, status)
    for operation, operate in OPERATIONS.items():
        if EXPECTED[operation, status] not in "-.":
            continue
        before = task_alone(store)
        if EXPECTED[operation, status] == "-":
            with pytest.raises((WrongStatus, LeaseLost)) as refused:
                operate(store, held, clock)
            if isinstance(refused.value, WrongStatus):
                assert refused.value.status == status, operation
                assert status not in refused.value.allowed, operation
                assert f"the status is {status}" in str(refused.value)
        else:
            operate(store, held, clock)
        assert task_alone(store) == before, operation


@pytest.mark.req("R002-79", "R003-61", "R003-62", "R003-63", "R003-64", "R003-65")
@pytest.mark.parametrize(
    ("operation", "status"),
    [pair for pair, to in EXPECTED.items() if to not in "-."],
)
def test_each_step_that_the_table_allows_is_taken(store, clock, operation, status):
    held = prepare(store, status)
    OPERATIONS[operation](store, held, clock)
    to = EXPECTED[operation, status]
    assert (store.status("a") if to != "gone" else "a" not in store.listed()) in (to, True)


def test_the_table_is_whole():
    assert EXPECTED.keys() == set(product(OPERATIONS, [status.value for status in Status]))


def task_alone(store):
    """All there is to see of the task, but not the workers that were asked."""
    looks = (store.get, store.history, store.attempts, store.outputs, store.usage, store.edges)
    return [look("a") for look in looks]
