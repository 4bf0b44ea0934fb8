"""Who may report for a task, and what becomes of a lease that ran out."""

import pytest

from tests.unit.task_states import lease, task
from tidewheel.core.queue.lease import Holder, Notebook, check_holder, lapse_signal
from tidewheel.errors import LeaseLost, WrongStatus


def holder(worker="worker-1", attempt=3):
    return Holder(task_id="a", attempt=attempt, worker=worker)


@pytest.mark.parametrize("status", ["running", "cancelling"])
def test_the_owner_of_the_current_attempt_may_report(status):
    check_holder(task(status), holder(), "heartbeat")


@pytest.mark.req("R002-46", "R002-52", "R003-59")
@pytest.mark.parametrize(
    ("worker", "attempt"), [("worker-2", 3), ("worker-1", 2), ("worker-1", 4), ("", 3)]
)
def test_nobody_else_may(worker, attempt):
    with pytest.raises(LeaseLost) as refused:
        check_holder(task("running"), holder(worker, attempt), "heartbeat")
    assert (refused.value.asked, refused.value.held) == ((worker, attempt), ("worker-1", 3))
    assert str(refused.value) == (
        "task 'a': Only owner can extend the heartbeat. "
        f"{worker} reported for attempt {attempt}, but worker-1 holds the task for attempt 3; "
        "stop this job: its result is discarded"
    )


def test_a_task_that_was_given_back_is_held_by_nobody():
    with pytest.raises(LeaseLost) as refused:
        check_holder(task("ready", owner=None), holder(), "heartbeat")
    assert "no worker holds the task (attempt 3 was the last)" in str(refused.value)


def test_a_task_that_ended_is_held_by_nobody_although_its_owner_is_remembered():
    with pytest.raises(LeaseLost) as refused:
        check_holder(task("failed"), holder("worker-2"), "heartbeat")
    assert refused.value.held == (None, 3)


@pytest.mark.req("R002-47", "R002-66")
@pytest.mark.parametrize("status", ["succeeded", "failed", "cancelled"])
def test_after_the_end_even_the_owner_is_told_the_status(status):
    with pytest.raises(WrongStatus) as refused:
        check_holder(task(status), holder(), "heartbeat")
    assert str(refused.value) == (
        f"task 'a': heartbeat needs status running; the status is {status}"
    )


# A lease of 10 s taken at 100: what a monitor does. "late" is after the deadline, "long" after
# the time limit, "often" with as many lapses as are allowed.
VERDICTS = """
    status     late long often   signal
    running    no   no   no      -
    running    no   no   yes     -
    running    yes  no   no      lapse
    running    yes  no   yes     lapse_out
    running    no   yes  no      time_out
    running    no   yes  yes     time_out
    running    yes  yes  no      time_out
    running    yes  yes  yes     time_out
    cancelling no   no   no      -
    cancelling no   yes  yes     -
    cancelling yes  no   no      lapse
    cancelling yes  no   yes     lapse_out
    cancelling yes  yes  no      lapse
    cancelling yes  yes  yes     lapse_out
"""


@pytest.mark.parametrize(
    ("status", "late", "long", "often", "signal"),
    [line.split() for line in VERDICTS.strip().splitlines()[1:]],
)
def test_the_verdict_on_a_lease(status, late, long, often, signal):
    held = lease(claimed_at=100.0, deadline_at=110.0)
    state = task(
        status,
        lease=held,
        timeout_seconds=5.0 if long == "yes" else 100.0,
        lapses=2 if often == "yes" else 1,
        max_lapses=2,
    )
    now = 111.0 if late == "yes" else 109.0
    assert (lapse_signal(state, now) or "-") == signal


def test_a_lease_lasts_through_the_moment_of_its_deadline():
    state = task("running", lease=lease(claimed_at=100.0, deadline_at=110.0))
    assert lapse_signal(state, 110.0) is None
    assert lapse_signal(state, 110.001) == "lapse"


def test_a_time_limit_lasts_through_its_last_moment():
    state = task(
        "running", timeout_seconds=5.0, lease=lease(claimed_at=100.0, deadline_at=110.0)
    )
    assert lapse_signal(state, 105.0) is None
    assert lapse_signal(state, 105.001) == "time_out"


def test_a_time_limit_counts_from_the_start_of_the_job():
    held = lease(claimed_at=100.0, started_at=104.0, deadline_at=120.0)
    state = task("running", timeout_seconds=5.0, lease=held)
    assert lapse_signal(state, 109.0) is None
    assert lapse_signal(state, 109.001) == "time_out"


def test_preparation_by_a_runner_is_no_part_of_the_time_that_a_task_may_run():
    held = lease(claimed_at=100.0, deadline_at=900.0)
    state = task("running", timeout_seconds=5.0, is_prepared=True, lease=held)
    assert lapse_signal(state, 800.0) is None
    begun = lease(claimed_at=100.0, started_at=800.0, deadline_at=900.0)
    state = task("running", timeout_seconds=5.0, is_prepared=True, lease=begun)
    assert lapse_signal(state, 865.0) is None  # a minute is for its runner to tidy up
    assert lapse_signal(state, 865.001) == "time_out"


def test_a_task_may_be_allowed_no_lapse_at_all():
    state = task("running", max_lapses=0, lease=lease(claimed_at=100.0, deadline_at=110.0))
    assert lapse_signal(state, 111.0) == "lapse_out"


def test_only_leases_are_judged():
    with pytest.raises(AssertionError):
        lapse_signal(task("ready", owner=None), 0.0)


@pytest.mark.parametrize(("deadline", "held"), [(None, False), (10.0, False), (10.001, True)])
def test_a_notebook_is_held_until_its_lease_runs_out(deadline, held):
    notebook = Notebook(epoch=3, owner="a", deadline_at=deadline, body="", updated_at=0.0)
    assert notebook.is_held(10.0) is held
