"""Many tasks at once: nothing here may need time that grows faster than their number."""

import os

import pytest

from tests.conformance.door import Held, new_task
from tidewheel.core.queue.requests import ClaimRequest, End, Ending, Report

MANY = 10_000
# The most that one call may hold is for the night: it takes ten seconds on each database.
BULK = 100_000 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 20_000
DONE = End(ending=Ending.SUCCEEDED)


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request):
    """Memory is for small worlds."""
    return request.param


@pytest.fixture
def shared_postgres_url(postgres_url):
    """A database of its own: the shared one may have been analysed while it was empty."""
    return postgres_url


@pytest.mark.req("R002-30")
def test_a_great_many_tasks_are_submitted_in_one_call(store):
    tasks = [new_task(f"t{n}", spec=f"[{n}]", priority=n % 3) for n in range(BULK)]
    answers = store.submit(tasks, atomic=False)
    assert all(answer.created for answer in answers)
    assert store.queues()[0].counts == {"ready": BULK}
    assert store.get(f"t{BULK - 1}").spec_text == f"[{BULK - 1}]"
    assert store.taken(3) == ["t2", "t5", "t8"]


def test_a_batch_in_which_each_refusal_causes_the_next_is_answered(store):
    batch = [new_task(f"t{n}", needs=[f"t{n + 1}"]) for n in range(MANY)]
    answers = store.submit(batch, atomic=False)
    assert all(answer.refused is not None for answer in answers)
    assert store.listed() == []


@pytest.mark.req("R003-28", "R003-17", "R003-18", "R003-72")
def test_a_task_has_ten_thousand_continuations_and_another_as_many_parents(store):
    """A diamond: the top releases all in between, the last of them the bottom."""
    store.put("bottom", armed=False)
    middle = [f"m{n}" for n in range(MANY)]
    store.submit([new_task(name, armed=False, continuations=("bottom",)) for name in middle])
    store.put("top", continuations=tuple(middle))
    assert store.get("bottom").open_needs == MANY
    assert store.queues()[0].counts == {"ready": 1, "waiting": MANY + 1}
    store.run_through("top")
    assert store.queues()[0].counts == {"ready": MANY, "waiting": 1}
    worker = store.hire()
    claimed = store.claim(ClaimRequest(queue="q", worker=worker, count=MANY))
    *most, last = [Report(holder=Held(task, worker).holder, end=DONE) for task in claimed]
    assert len(store.report(most)) == MANY - 1
    assert (store.status("bottom"), store.get("bottom").open_needs) == ("waiting", 1)
    store.report([last])
    assert store.signals("bottom") == [None, "satisfy"]


@pytest.mark.req("R003-28", "R003-38")
def test_cancelling_reaches_ten_thousand_children(store):
    store.put("top")
    store.submit([new_task(f"c{n}", needs=["top"]) for n in range(MANY)])
    assert store.cancel_one("top").status == "cancelled"
    assert [queue.counts for queue in store.queues()] == [{}]


@pytest.mark.req("R003-21")
def test_a_chain_of_hundreds_of_empty_tasks_runs_through(store):
    store.put("t0", spec=None, armed=False)
    store.submit([new_task(f"t{n}", spec=None, needs=[f"t{n - 1}"]) for n in range(1, 300)])
    store.arm("t0")
    assert store.status("t299") == "succeeded"
