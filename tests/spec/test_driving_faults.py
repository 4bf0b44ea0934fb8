"""A scheduler whose store fails it, at the worst moments (RELIABILITY P2, P16, P21)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.kit.driven_run import DrivenRun
from tidewheel.client.connection import Connection
from tidewheel.client.runs import Runs
from tidewheel.core.operator import verbs
from tidewheel.core.operator.requests import RunBatch, RunClaim, RunLease
from tidewheel.core.queue.requests import HostProcess
from tidewheel.core.sched.persistence import PutFlow
from tidewheel.errors import NotRunning, StoreUnreachable

OTHER = HostProcess(host="there", boot_id="boot", pid=3, started=3.0)
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
    first = run.asks(verbs.Trigger(ids=("1/b",), flow="new"))
    second = run.asks(verbs.Reload(definition=digest))
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
    assert told == ["flow_num=first is not a flow; write its number, as in flow_num=1"]
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
    run.gives(verbs.ExtTrigger(message="the data are here", trigger_id="1"))
    assert run.running == ["1/a/1"]
    run.close()


def test_a_stall_that_ends_and_comes_again_in_one_pass_has_its_timeout(tmp_path):
    run = DrivenRun(tmp_path, FLOW.replace("timeout = False", "timeout = True"))
    run.fails("1/a").asks(verbs.Pause())
    run.asks(verbs.Resume())
    assert run.goes_on().status == "stalled"
    run.waits(10)
    assert (run.status, run.view.owner) == ("stalled", None)
    run.close()


def test_a_kill_is_for_the_worker_to_do(run):
    run.starts("1/a").gives(verbs.Kill(ids=("1/a",)))
    found = run.look(lambda store, number: store.submissions(number))
    assert [one.status for one in found] == ["cancelling"]


def test_a_job_that_fails_at_once_has_started(run):
    """Its start and its end come in one report; without a start it would be submit-failed."""
    run.fails("1/a")
    assert "1/a failed, incomplete" in run.view.reason


def test_a_scheduler_that_lost_its_run_tells_nobody_that_it_began(tmp_path):
    """It opens the run again after a failure, and another has it by now (P21)."""
    flow = FLOW.replace("stall timeout handlers", "startup handlers")
    run = DrivenRun(tmp_path, flow)
    log = run.home / "runs/flow/run1/log/scheduler/handlers/activity.log"
    run.until(log.exists)
    told = log.read_text()
    log.unlink()
    run.way_to_store.loses_requests("definition")
    run.asks(verbs.Reload(definition=run.view.definition))
    with pytest.raises(StoreUnreachable):
        run.goes_on()
    other = RunClaim(run=run.view.number, process=OTHER, dead_epoch=run.view.epoch)
    run.look(lambda store, _: store.claim_run(other))
    run.goes_on()
    assert [one.event for one in run.reports if one.event.startswith("run.")] == ["run.lost"]
    run.close()
    assert "it took too long" in told
    assert not log.exists()


SUICIDE = '''
[scheduling]
    [[graph]]
        R1 = """
            a & b
            b => !a
        """
[runtime]
    [[a]]
        execution retry delays = PT10S
    [[b]]
'''


def test_a_job_that_fails_and_is_removed_instead_of_tried_again_breaks_nothing(tmp_path):
    run = DrivenRun(tmp_path, SUICIDE)
    run.ends("1/b").fails("1/a")
    assert run.status == "completed"
    assert run.waits(10).submitted == ["1/a/01", "1/b/01"]
    run.close()


def test_who_asks_a_run_that_ends_meanwhile_need_not_wait_for_an_answer(run):
    view = run.view
    lease = RunLease(run=view.number, epoch=view.epoch, batch=view.batch, lease_seconds=10.0)
    last = RunBatch(number=view.batch + 1, at=view.updated_at, status="stopped", ends=True)

    async def ask(store, _):
        connection = Connection(store)
        asking = asyncio.create_task(Runs(connection).give("flow/run1", verbs.Pause()))
        while not await store.commands(lease.run):
            await asyncio.sleep(0)
        await store.write_batch(lease, last)
        return await asking

    with pytest.raises(NotRunning):
        run.look(ask)
