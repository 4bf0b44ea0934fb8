"""From what happened to a job to the outputs of its task (SEMANTICS §6, the table)."""

import pytest

from tests.kit.scenario import Scenario
from tidewheel.core.sched import events
from tidewheel.core.sched.events import JobEnd

RETRIES = "[[a]]\nexecution retry delays = PT1S\nsubmission retry delays = PT2S\n[[b]]"


def outputs(run):
    return list(run.core.tasks[(1, "a")].outputs)


def test_a_job_that_was_accepted_is_submitted_and_one_that_reports_has_started():
    run = Scenario("a => b", start_jobs=False)
    run.happens(events.JobSubmitted((1, "a"), 1, 0.0))
    assert (run.pool, outputs(run)) == ({"1/a": "submitted"}, ["submitted"])
    run.starts("1/a")
    assert (run.pool, outputs(run)) == ({"1/a": "running"}, ["submitted", "started"])


def test_a_second_attempt_that_starts_changes_nothing():
    run = Scenario("a:start => s\na => b")
    known = len(run.effects)
    run.starts("1/a").happens(events.JobSubmitted((1, "a"), 1, 0.0))
    assert run.effects[known:] == []
    assert run.pool == {"1/a": "running", "1/s": "running"}


@pytest.mark.parametrize(
    ("started", "how", "output"),
    [
        (True, JobEnd.FAILED, "failed"),
        (False, JobEnd.FAILED, "submit-failed"),
        (True, JobEnd.KILLED, "failed"),
        (False, JobEnd.KILLED, "submit-failed"),
        (False, JobEnd.NOT_STARTED, "submit-failed"),
        (True, JobEnd.NOT_STARTED, "submit-failed"),
    ],
)
def test_a_job_that_did_not_succeed_failed_or_was_never_there(started, how, output):
    run = Scenario("a => b", start_jobs=started)
    run.happens(events.JobEnded((1, "a"), 1, how, 0.0))
    assert run.pool == {"1/a": output}


@pytest.mark.parametrize(("started", "tries"), [(True, (2, 1)), (False, (1, 2))])
def test_failures_and_submission_failures_have_retries_of_their_own(started, tries):
    run = Scenario("a => b", RETRIES, start_jobs=started)
    run.happens(events.JobEnded((1, "a"), 1, JobEnd.FAILED, 0.0))
    assert run.pool == {"1/a": "pending"}
    task = run.core.tasks[(1, "a")]
    assert (task.try_number, task.submit_try) == tries


@pytest.mark.parametrize("started", [True, False])
def test_a_killed_job_is_not_tried_again_and_its_task_is_held(started):
    run = Scenario("a => b", RETRIES, start_jobs=started)
    run.happens(events.JobEnded((1, "a"), 1, JobEnd.KILLED, 0.0))
    assert run.pool["1/a"] in ("failed", "submit-failed")
    assert run.core.tasks[(1, "a")].held
    assert run.stalled


def test_an_output_that_the_task_does_not_have_is_ignored_and_told():
    run = Scenario("a:x => b", "[[a]]\n[[[outputs]]]\nx = the x\n[[b]]").makes("1/a", "y")
    assert run.notices("unknown output") == ["1/a has no output y: ignored"]
    assert outputs(run) == ["submitted", "started"]
    assert run.makes("1/a", "x").pool["1/b"] == "running"


def test_a_task_that_runs_alone_is_retried_as_any_other():
    run = Scenario("a => b", RETRIES).succeeds("1/a").triggers("1/a")
    assert run.flows["1/a"] == []
    run.fails("1/a").timer("1/a", "retry-delay")
    assert run.submitted.count("1/a") == 3
    assert "1/a" not in run.fails("1/a").pool
