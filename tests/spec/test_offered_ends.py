"""A scheduler is offered ends by the worker beside it, and writes them with its batch."""

from dataclasses import replace

import pytest

from tests.kit.driven_run import DrivenRun
from tidewheel.core.operator import verbs
from tidewheel.core.operator.requests import RunClaim
from tidewheel.core.queue.requests import HostProcess

OTHER = HostProcess(host="there", boot_id="boot", pid=3, started=3.0)
FLOW = """
[scheduling]
    [[graph]]
        R1 = a & b => c
[runtime]
    [[a, b, c]]
"""


@pytest.fixture
def run(tmp_path):
    driven = DrivenRun(tmp_path, FLOW)
    yield driven
    driven.close()


def statuses(run):
    found = run.look(lambda store, number: store.submissions(number))
    name = run.view.name
    return {one.task_id.removeprefix(f"{name}/"): one.status for one in found}


def unheard(run):
    return run.look(lambda store, number: store.read_inbox(number, 100)).happenings


def test_an_end_and_what_follows_from_it_are_one_batch(run):
    batch = run.view.batch
    assert run.offers("1/a", "1/b") is True
    assert run.view.batch == batch + 1
    assert statuses(run) == {"1/a/1": "succeeded", "1/b/1": "succeeded", "1/c/1": "running"}
    assert unheard(run) == []
    assert run.offers("1/c") is True
    assert run.status == "completed"


def test_a_start_is_taken_as_well(run):
    batch = run.view.batch
    assert run.offers_start("1/a") is True
    assert (run.view.batch, unheard(run)) == (batch + 1, [])
    assert "[1/a/01:submitted] => running" in run.log
    assert run.offers("1/a", "1/b") is True
    assert run.running == ["1/c/1"]


def test_the_run_is_the_same_after_a_crash(run):
    assert run.offers("1/a") is True
    assert run.crash().running == ["1/b/1"]
    run.ends("1/b")
    assert run.running == ["1/c/1"]


def test_a_lease_that_was_lost_makes_no_end_and_the_run_goes_on(run):
    task = run.tasks["1/a"]
    run.tasks["1/a"] = replace(task, attempt=7)
    assert run.offers("1/a", "1/b") is False
    assert run.running == ["1/a/1", "1/b/1"]
    run.tasks["1/a"] = task
    assert run.offers("1/a", "1/b") is True
    assert run.running == ["1/c/1"]


def test_a_scheduler_that_has_lost_its_run_leaves_the_end_to_the_next(run):
    other = RunClaim(run=run.view.number, process=OTHER, dead_epoch=run.view.epoch)
    run.look(lambda store, _: store.claim_run(other))
    assert run.offers("1/a") is False
    assert statuses(run)["1/a/1"] == "running"


def test_what_was_said_before_is_heard_before(tmp_path):
    flow = """
    [scheduling]
        [[graph]]
            R1 = a:ready => b
    [runtime]
        [[a]]
            [[[outputs]]]
                ready = the file is ready
        [[b]]
    """
    run = DrivenRun(tmp_path, flow)
    run.says_unheard("1/a", "the file is ready")
    assert run.offers("1/a") is True
    assert run.running == ["1/b/1"]
    run.close()


@pytest.mark.parametrize("what", ["nobody", "an ended job"])
def test_what_needs_more_than_a_batch_is_reported_by_itself(run, what):
    if what == "nobody":
        run.tasks["1/c"] = run.tasks["1/a"]
        assert run.offers("1/a", "1/c") is None
    else:
        run.ends("1/a")
        assert run.offers("1/a") is None


VALUES = """
[scheduling]
    [[graph]]
        R1 = a => b
[runtime]
    [[a]]
    [[b]]
        [[[inputs]]]
            WORD = a.word
"""


def test_an_end_with_values_and_the_task_that_is_given_them_are_one_batch(tmp_path):
    run = DrivenRun(tmp_path, VALUES)
    batch = run.view.batch
    assert run.offers("1/a", word="hello") is True
    assert (run.view.batch, unheard(run)) == (batch + 1, [])
    assert "hello" in run.tasks["1/b"].command
    assert run.crash().running == ["1/b/1"]
    run.close()


def test_values_that_a_job_told_before_its_end_send_the_end_by_itself(tmp_path):
    run = DrivenRun(tmp_path, VALUES.replace("a.word", "a.other"))
    run.says("1/a", values='{"other": "there"}')
    assert run.offers("1/a", word="hello") is False
    run.ends("1/a", word="hello")
    assert "there" in run.tasks["1/b"].command
    run.close()


def test_a_run_whose_tasks_are_runs_takes_none_as_their_definitions_have_to_be_read(tmp_path):
    flow = FLOW.replace("[[a, b, c]]", "[[a, b]]\n    [[c]]\n        workflow = other")
    run = DrivenRun(tmp_path, flow)
    assert run.offers("1/a") is None
    run.close()


def test_a_failed_pass_leaves_the_end_to_be_reported(run):
    run.way_to_store.breaks("write_batch", KeyError("a bug"))
    assert run.offers("1/a") is False
    assert statuses(run)["1/a/1"] == "running"


def test_a_command_that_waits_is_obeyed_first(run):
    given = run.asks(verbs.Hold(ids=("1/c",)))
    assert run.offers("1/a", "1/b") is True
    assert run.answer(given).refused is None
    assert run.running == []


@pytest.mark.parametrize(
    "command",
    [verbs.Kill(ids=("1/a",)), verbs.Message(id="1/a", texts=("hello",))],
    ids=["kill", "message"],
)
def test_what_another_process_stored_before_the_end_is_about_a_job_that_runs(run, command):
    """Nobody has rung here: a store tells of other processes only when it looks around."""
    given = run.asks(command)
    run.offers("1/a")
    assert run.answer(given).refused is None
