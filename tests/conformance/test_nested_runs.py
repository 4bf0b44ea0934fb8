"""Issue 19: runs that are tasks of a run, in every store."""

import pytest

from tests.conformance.run_steps import Driver, active, claim_run, make_run
from tidewheel.core.operator.definition import NewRun, RunOptions, StoredDefinition
from tidewheel.core.operator.requests import (
    CommandGiven,
    JobOver,
    JobSaid,
    JobStarted,
    NestedCommand,
    NewCommand,
    ParentReport,
    StoredValues,
)
from tidewheel.core.queue.status import Status
from tidewheel.errors import NotFound, Refused, RunHeld

STOP = '{"verb": "stop", "mode": "kill"}'
TRIGGER = '{"verb": "trigger", "ids": ["1/x"]}'
GIVEN = RunOptions(mode="")


def child_of(driver, submit=1, **fields):
    """The run that a submission of 1/post is, to be made."""
    definition = StoredDefinition(digest="digest of post", workflow="post", text="graph")
    driver.store.save_definition(definition)
    name = f"{driver.run.name}/1/post/{submit:02d}"
    return NewRun(
        workflow="post",
        definition=definition.digest,
        name=name,
        parent=driver.run.number,
        given=GIVEN,
        queue=driver.run.queue,
        **fields,
    )


def begun(store, driver, submit=1):
    """A nested run that somebody drives."""
    new = child_of(driver, submit)
    driver.write(nested=[new], changes=active("post", submit=submit))
    run = store.find_run(new.name)
    return Driver(store, run, claim_run(store, run))


def report(driver, status=None, **fields):
    return ParentReport(driver.run.number, f"{driver.run.name}/1/post/1", status, **fields)


def test_a_batch_makes_the_run_that_a_submission_is(store):
    driver = Driver.of(store)
    driver.write(nested=[child_of(driver)], changes=active("post"))
    child = store.find_run(f"{driver.run.name}/1/post/01")
    assert (child.parent, child.status, child.queue) == (
        driver.run.number,
        "created",
        driver.run.queue,
    )
    assert store.verify() == []


def test_a_batch_that_is_written_twice_makes_one_run(store):
    driver = Driver.of(store)
    batch = driver.batch(nested=[child_of(driver)])
    store.write_batch(driver.lease, batch)
    store.write_batch(driver.lease, batch)
    assert len(store.runs(parent=driver.run.number)) == 1


def test_begin_and_end_of_the_run_are_told_as_those_of_a_job(store):
    driver = Driver.of(store)
    child = begun(store, driver)
    child.write(report=report(driver))
    end = report(driver, Status.SUCCEEDED, values='{"x": {"n": 1}}')
    child.write(status="completed", ends=True, report=end)
    started, over = driver.inbox()
    task_id = f"{driver.run.name}/1/post/1"
    assert isinstance(started, JobStarted) and started.task_id == task_id
    assert isinstance(over, JobOver) and over.task_id == task_id
    assert (over.status, over.text, over.exit_status) == ("succeeded", '{"x": {"n": 1}}', 0)


def test_what_the_run_says_is_told_as_what_a_job_says(store):
    driver = Driver.of(store)
    child = begun(store, driver)
    child.write(status="stalled", report=report(driver, said="WARNING:it is stalled"))
    (said,) = driver.inbox()
    assert isinstance(said, JobSaid)
    assert (said.text, said.output) == ("WARNING:it is stalled", None)
    end = report(driver, Status.SUCCEEDED)
    child.write(status="completed", ends=True, report=end)


def test_a_failure_is_told_with_its_reason(store):
    driver = Driver.of(store)
    child = begun(store, driver)
    end = report(driver, Status.FAILED, error="its run stalled\0")
    child.write(status="stalled", ends=True, report=end)
    (over,) = driver.inbox()
    assert over.status == "failed" and over.error.startswith("its run stalled")


def test_a_batch_that_is_refused_tells_nobody(store):
    driver = Driver.of(store)
    child = begun(store, driver)
    later = claim_run(store, child.run, dead_epoch=child.lease.epoch)
    assert later.epoch > child.lease.epoch
    end = report(driver, Status.SUCCEEDED)
    with pytest.raises(Refused):
        child.write(status="completed", ends=True, report=end)
    assert driver.inbox() == []


def test_a_run_that_goes_on_at_once_has_not_ended(store):
    driver = Driver.of(store)
    child = begun(store, driver)
    asked = NewCommand(run=child.run.number, body=TRIGGER, who="ada", reopens=True)
    store.post_command(asked)
    end = report(driver, Status.SUCCEEDED)
    child.write(status="completed", ends=True, report=end)
    assert driver.inbox() == []
    assert store.run(child.run.number).given is not None


def test_commands_reach_a_run_whether_or_not_somebody_drives_it(store):
    driver = Driver.of(store)
    child = begun(store, driver)
    waiting = child_of(driver, 2)
    driver.write(nested=[waiting])
    names = (child.run.name, waiting.name, f"{driver.run.name}/1/post/99")
    driver.write(nested_commands=[NestedCommand(name, STOP) for name in names])
    (heard,) = child.inbox()
    assert isinstance(heard, CommandGiven)
    assert (heard.body, heard.who) == (
        STOP,
        f"the run {driver.run.name}, of which this run is a task",
    )
    unborn = store.find_run(waiting.name)
    (kept,) = store.read_inbox(unborn.number, 10).happenings
    assert kept.body == STOP


def test_a_run_that_has_ended_or_is_of_another_hears_nothing(store):
    driver, other = Driver.of(store), Driver.of(store)
    child = begun(store, driver)
    other.write(nested_commands=[NestedCommand(child.run.name, STOP)])
    assert child.inbox() == []
    end = report(driver, Status.SUCCEEDED)
    child.write(status="completed", ends=True, report=end)
    driver.write(nested_commands=[NestedCommand(child.run.name, STOP)])
    assert store.commands(child.run.number) == []


def test_lists_and_names_mean_no_nested_run_unless_it_is_asked_for(store):
    driver = Driver.of(store)
    begun(store, driver)
    own = make_run(store, "post")
    assert [one.name for one in store.runs()] == [own.name, driver.run.name]
    assert [one.name for one in store.runs(workflow="post")] == [own.name]
    assert len(store.runs(nested=True)) == 3
    assert [one.parent for one in store.runs(parent=driver.run.number)] == [driver.run.number]
    assert store.find_run("post").name == own.name
    assert store.find_run(driver.run.name[:-1]).name == driver.run.name
    assert store.find_run(f"{driver.run.name}/1/po").name == f"{driver.run.name}/1/post/01"
    assert store.find_run(driver.run.name, (driver.run.name,)).number == driver.run.number
    nested = f"{driver.run.name}/1/post/01"
    assert store.find_run(nested, (driver.run.name,)).name == nested
    with pytest.raises(NotFound):
        store.find_run(nested, ("team-b",))


def test_nested_runs_are_claimed_first_and_may_be_asked_for_by_name(store):
    waiting = make_run(store, given=GIVEN)
    driver = Driver.of(store)
    driver.write(nested=[child_of(driver)])
    nested = f"{driver.run.name}/1/post/01"
    found = [one.name for one in store.claimable_runs(10)]
    assert found == [nested, waiting.name]
    assert [one.name for one in store.claimable_runs(10, f"{driver.run.name}/")] == [nested]
    assert store.claimable_runs(10, "elsewhere/") == []


def test_open_runs_in_a_run_are_counted_through_all_levels(store):
    driver, other = Driver.of(store), Driver.of(store)
    child = begun(store, driver)
    begun(store, child)
    begun(store, other)
    assert store.nested_count(driver.run.name) == 2
    assert store.nested_count(child.run.name) == 1
    child.write(status="stopped", ends=True, report=report(driver, Status.FAILED))
    assert store.nested_count(driver.run.name) == 1
    assert store.nested_count(driver.run.name[:-1]) == 0


def test_no_run_of_another_is_made_in_the_folder_of_a_run(store):
    driver = Driver.of(store)
    with pytest.raises(Refused):
        make_run(store, name=f"{driver.run.name}/1/post/01")


def test_nested_runs_go_with_their_parent_and_only_so(store, clock):
    driver = Driver.of(store)
    child = begun(store, driver)
    below = begun(store, child)
    for one in (below, child, driver):
        with pytest.raises(RunHeld):
            store.delete_run(driver.run.number)
        one.write(status="completed", ends=True)
    with pytest.raises(Refused, match=f"is a task of {driver.run.name}"):
        store.delete_run(child.run.number)
    clock.advance(1000.0)
    assert store.expired_runs(10.0, 10) == [driver.run.number]
    store.delete_run(driver.run.number)
    assert store.runs(nested=True) == []
    assert store.verify() == []


def test_an_active_task_whose_run_is_gone_is_a_broken_promise(store):
    driver = Driver.of(store)
    child = begun(store, driver)
    assert store.verify() == []
    child.write(status="completed", ends=True)  # and tells nobody
    assert [one.invariant for one in store.verify()] == ["P19"]
    driver.over("post")


def test_the_values_that_count_at_the_end_are_those_of_the_last_point(store):
    driver = Driver.of(store)
    rows = [
        StoredValues(1, "x", 1, "[1]", '{"n": 1}'),
        StoredValues(2, "x", 1, "[1]", '{"n": 22}'),
        StoredValues(2, "x", 2, "[1]", ""),
        StoredValues(1, "y", 3, "[1]", '{"n": 333}'),
    ]
    driver.write(values=rows)
    assert store.last_values(driver.run.number) == [(2, "x", 0), (1, "y", 10)]
