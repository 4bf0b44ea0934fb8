"""A scheduler whose store fails it, at the worst moments (RELIABILITY P2, P16, P21)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidewheel.core.runs import commands
from tidewheel.core.sched.records import PutFlow
from tidewheel.errors import StoreUnreachable
from tidewheel.testing.driven_run import DrivenRun

FLOW = """
[scheduler]
    [[events]]
        stall timeout = PT10S
        abort on stall timeout = False
        stall timeout handlers = echo it took too long
[scheduling]
    [[graph]]
        R1 = a => b
[runtime]
    [[a, b]]
"""


@pytest.fixture
def run(tmp_path: Path):
    driven = DrivenRun(tmp_path, FLOW)
    yield driven
    driven.close()


def test_what_was_obeyed_before_the_store_failed_is_not_obeyed_twice(run):
    """The second command needs the store; the first had been obeyed, and was not written."""
    digest = run.view.definition
    run.starts("1/a")
    first = run.asks(commands.Trigger(ids=("1/b",), flow="new"))
    second = run.asks(commands.Reload(definition=digest))
    run.way_to_store.loses_requests("definition")
    with pytest.raises(StoreUnreachable):
        run.goes_on()
    run.goes_on()
    assert run.answer(first).refused is None
    assert run.answer(second).refused is None
    assert run.running == ["1/a/1", "1/b/1"]
    stored = run.look(lambda store, number: store.read_run(number))
    flows = [one.flow.number for one in stored.changes if isinstance(one, PutFlow)]
    assert flows == [1, 2]


def test_a_stall_that_does_not_end_the_run_is_told_once(run):
    run.fails("1/a")
    assert run.status == "stalled"
    batch = run.view.batch
    assert run.waits(10).view.batch == batch + 1
    assert run.waits(100).view.batch == batch + 1
    assert (run.status, run.view.owner is None) == ("stalled", False)


def test_what_fails_again_and_again_beside_the_passes_puts_the_run_aside(tmp_path):
    """Here the store raises, when an xtrigger asks it about another run."""
    run = DrivenRun(
        tmp_path,
        """
        [scheduling]
            [[xtriggers]]
                other = workflow_state("other//1/a")
            [[graph]]
                R1 = @other => a
        [runtime]
            [[a]]
        """,
    )
    run.way_to_store.breaks("find_run", KeyError("a bug"))
    for _ in range(6):
        run.waits(10)
    assert run.status == "error"
    assert "a bug" in run.view.reason
    run.close()


def test_an_xtrigger_that_names_no_flow_is_told_and_asked_again(tmp_path):
    run = DrivenRun(
        tmp_path,
        """
        [scheduling]
            [[xtriggers]]
                other = workflow_state("other//1/a", flow_num=first)
            [[graph]]
                R1 = @other => a
        [runtime]
            [[a]]
        """,
    )
    run.waits(30)
    told = [one.facts["error"] for one in run.reports if one.event == "xtrigger.failed"]
    assert told == ["flow_num=first is no flow; write its number, as in flow_num=1"]
    assert run.status == "running"
    run.close()


PUSHED = """
[scheduling]
    [[special tasks]]
        external-trigger = a("the data are here")
    [[graph]]
        R1 = a => b
[runtime]
    [[a, b]]
"""


def test_an_xtrigger_is_watched_again_after_a_crash(tmp_path):
    run = DrivenRun(tmp_path, PUSHED)
    assert run.crash().running == []
    run.gives(commands.ExtTrigger(message="the data are here", trigger_id="1"))
    assert run.running == ["1/a/1"]
    run.close()


def test_a_stall_that_ends_and_comes_again_in_one_pass_has_its_timeout(tmp_path):
    run = DrivenRun(tmp_path, FLOW.replace("timeout = False", "timeout = True"))
    run.fails("1/a").asks(commands.Pause())
    run.asks(commands.Resume())
    assert run.goes_on().status == "stalled"
    run.waits(10)
    assert (run.status, run.view.owner) == ("stalled", None)
    run.close()


def test_a_kill_is_for_the_worker_to_do(run):
    run.starts("1/a").gives(commands.Kill(ids=("1/a",)))
    found = run.look(lambda store, number: store.submissions(number))
    assert [one.status for one in found] == ["cancelling"]


def test_a_job_that_fails_at_once_has_started(run):
    """Its start and its end come in one report; without a start it would be submit-failed."""
    run.fails("1/a")
    assert "1/a failed, incomplete" in run.view.reason
