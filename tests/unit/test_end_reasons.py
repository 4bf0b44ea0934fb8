"""How a run ended, from the reason beside its status."""

import pytest

from tidewheel.client.local_run import RunEnd
from tidewheel.core.operator.views import (
    ABORTED_BY,
    Undone,
    aborted_for,
    is_at_own_stop_point,
    ran_nothing,
    stopped_at,
    was_aborted,
    with_undone,
)
from tidewheel.core.sched.pool import NOTHING_RAN


@pytest.mark.parametrize("undone", [Undone(), Undone(skipped=1), Undone(lost=2, skipped=1)])
@pytest.mark.parametrize("trouble", ["", " (a template cannot be read)"])
def test_a_run_that_ran_nothing_is_known_whatever_else_is_told_of_it(undone, trouble):
    reason = with_undone(NOTHING_RAN + trouble, undone)
    assert ran_nothing(reason)
    assert not RunEnd("completed", reason).has_run_anything
    assert RunEnd("completed", reason).undone == undone


def test_a_run_that_ran_something_is_not_taken_for_one_that_did_not():
    for reason in ("", "completed", with_undone("completed", Undone(lost=1)), "stalled: 1/a"):
        assert not ran_nothing(reason)


def test_a_run_was_aborted_by_itself_or_by_somebody():
    assert was_aborted(aborted_for("1/a failed"))
    assert RunEnd("stopped", f"{ABORTED_BY}ann: wrong field").was_aborted
    assert not was_aborted("") and not was_aborted(stopped_at("3", is_own=True))


def test_a_run_that_stopped_where_it_was_defined_to_is_told_from_one_that_was_told_to():
    assert is_at_own_stop_point(stopped_at("3", is_own=True))
    for reason in (stopped_at("3", is_own=False), "completed", "", aborted_for("1/a failed")):
        assert not is_at_own_stop_point(reason)
