"""From a signal to the change of a task: what is counted, kept, forgotten and waited for."""

import pytest

from tests.unit.task_states import lease, task
from tidewheel.core.queue.requests import End, Ending
from tidewheel.core.queue.retry import Exponential, FixedDelays
from tidewheel.core.queue.status import Signal
from tidewheel.core.queue.steps import adopt, become_ready, cancel, end_signal, step
from tidewheel.core.queue.task import TaskError
from tidewheel.errors import WrongStatus

BROKEN = TaskError(code="exit", args='{"status": 3}', description="it exited with 3")
FAILED = End(ending=Ending.FAILED, error=BROKEN, exit_status=3)

# What a running task with 1 failure and 1 lapse becomes, at progress 0.4.
CHANGES = """
    signal     to          failures lapses owner     progress ends
    succeed    succeeded   1        1      worker-1  1.0      yes
    retry      ready       2        1      -         0.4      yes
    fail       failed      2        1      worker-1  0.4      yes
    abort      failed      2        1      worker-1  0.4      yes
    yield      ready       1        1      -         0.4      yes
    lapse      ready       1        2      -         0.4      yes
    lapse_out  failed      1        2      worker-1  0.4      yes
    time_out   failed      1        1      worker-1  0.4      yes
    cancel     cancelling  1        1      worker-1  0.4      no
    adopt      running     1        1      worker-1  0.4      no
"""


@pytest.mark.req("R002-20", "R002-48", "R002-53", "R002-54", "R002-70")
@pytest.mark.parametrize("row", CHANGES.strip().splitlines()[1:])
def test_what_a_signal_makes_of_a_running_task(row):
    signal, to, failures, lapses, owner, progress, ends = row.split()
    state = task(
        "running", failures=1, lapses=1, timeout_seconds=9.0, lease=lease(progress=0.4)
    )
    change = step(state, Signal(signal))
    assert (change.seq, change.signal, change.to_status) == (7, signal, to)
    assert (change.failures, change.lapses) == (int(failures), int(lapses))
    assert change.owner == (None if owner == "-" else owner)
    assert change.worker == "worker-1"
    assert change.progress == float(progress)
    assert change.ends_lease == (ends == "yes")


def test_a_change_is_guarded_by_the_status_and_attempt_it_was_decided_on():
    change = step(task("running"), Signal.SUCCEED)
    assert (change.from_status, change.from_attempt, change.attempt) == ("running", 3, 3)


@pytest.mark.req("R003-51", "R002-65")
@pytest.mark.parametrize(
    "signal", ["succeed", "retry", "fail", "abort", "yield", "lapse", "lapse_out", "time_out"]
)
def test_whatever_ends_a_task_that_is_being_cancelled_cancels_it(signal):
    change = step(task("cancelling", timeout_seconds=1.0), Signal(signal))
    assert change.to_status == "cancelled"
    assert change.ends_lease
    assert change.owner == "worker-1"


def test_an_illegal_signal_is_refused():
    with pytest.raises(WrongStatus):
        step(task("succeeded"), Signal.CANCEL)


@pytest.mark.req("R003-70", "R003-71", "R003-74", "R002-51")
@pytest.mark.parametrize(
    ("ending", "failures", "max_retries", "signal"),
    [
        ("succeeded", 0, 0, "succeed"),
        ("succeeded", 9, 9, "succeed"),
        ("failed", 0, 0, "fail"),
        ("failed", 0, 1, "retry"),
        ("failed", 1, 1, "fail"),
        ("failed", 1, 2, "retry"),
        ("aborted", 0, 9, "abort"),
        ("yielded", 9, 9, "yield"),
    ],
)
def test_what_the_end_of_an_attempt_means(ending, failures, max_retries, signal):
    error = BROKEN if ending in ("failed", "aborted") else None
    state = task("running", failures=failures, max_retries=max_retries)
    assert end_signal(state, End(ending=Ending(ending), error=error)) == signal


def test_a_retry_waits_as_its_policy_says_for_this_failure():
    state = task("running", failures=1, retry=FixedDelays(seconds=(5, 60)), max_retries=9)
    assert step(state, Signal.RETRY).delay_seconds == 60
    assert step(state, Signal.YIELD).delay_seconds == 0
    spread = task("running", retry=Exponential(first_seconds=100, jitter=1), max_retries=9)
    assert step(spread, Signal.RETRY, chance=0.25).delay_seconds == 75


@pytest.mark.req("R002-49", "R003-56")
def test_how_the_attempt_ended_goes_into_the_change():
    change = step(task("running"), Signal.FAIL, end=FAILED)
    assert (change.exit_status, change.error_code) == (3, "exit")
    assert (change.error_args, change.error_description) == (BROKEN.args, BROKEN.description)
    good = End(ending=Ending.SUCCEEDED, exit_status=0, metrics='{"rows": 5}')
    change = step(task("running"), Signal.SUCCEED, end=good)
    assert (change.exit_status, change.metrics) == (0, '{"rows": 5}')
    assert (change.error_code, change.error_args) == (None, "{}")


def test_the_monitor_says_why_it_ended_a_task():
    lost = step(task("running", lapses=5), Signal.LAPSE_OUT)
    assert lost.error_code == "lease_lapsed"
    assert lost.error_description == "its worker was lost 6 times; max_lapses is 5"
    slow = step(task("running", timeout_seconds=90.0), Signal.TIME_OUT)
    assert slow.error_code == "timed_out"
    assert slow.error_description == "it ran longer than its limit of 90 s"
    assert step(task("running"), Signal.LAPSE).error_code is None


@pytest.mark.req("R002-50")
@pytest.mark.parametrize(
    ("ending", "error"),
    [("succeeded", BROKEN), ("yielded", BROKEN), ("failed", None), ("aborted", None)],
)
def test_a_failure_has_an_error_and_nothing_else_has(ending, error):
    with pytest.raises(AssertionError):
        End(ending=Ending(ending), error=error)


@pytest.mark.req("R003-19", "R003-20", "R003-61")
@pytest.mark.parametrize(
    ("status", "executes", "to"),
    [
        ("waiting", True, "ready"),
        ("waiting", False, "succeeded"),
        ("ready", False, "succeeded"),
    ],
)
def test_a_task_with_nothing_to_execute_ends_when_it_becomes_ready(status, executes, to):
    state = task(status, executes=executes, owner=None)
    change = become_ready(state)
    assert change.to_status == to
    assert (change.worker, change.ends_lease) == (None, False)
    assert change.progress == (1.0 if to == "succeeded" else 0.0)


@pytest.mark.req("R002-68", "R003-39", "R003-62", "R003-64")
@pytest.mark.parametrize(
    ("status", "to"),
    [
        ("waiting", "cancelled"),
        ("ready", "cancelled"),
        ("running", "cancelling"),
        ("cancelling", None),
        ("succeeded", None),
        ("failed", None),
        ("cancelled", None),
    ],
)
def test_cancelling_again_or_too_late_is_no_error_and_changes_nothing(status, to):
    change = cancel(task(status))
    assert (change and change.to_status) == to


@pytest.mark.parametrize("status", ["running", "cancelling"])
def test_adopting_moves_the_lease_and_keeps_the_attempt(status):
    change = adopt(task(status), "worker-9")
    assert (change.to_status, change.owner, change.worker) == (status, "worker-9", "worker-1")
    assert (change.attempt, change.ends_lease) == (3, False)


@pytest.mark.parametrize(
    ("status", "held"), [("ready", lease()), ("running", None), ("cancelling", None)]
)
def test_a_lease_without_its_status_cannot_be_written_down(status, held):
    with pytest.raises(AssertionError):
        task(status, lease=held)
