"""Runs: made, found, driven by one scheduler at a time, commanded, and deleted as a whole."""

import json
from dataclasses import replace

import pytest

from tests.conformance.door import PROCESS
from tests.conformance.run_steps import OTHER_PROCESS, Driver, claim_run, make_run, memory
from tests.kit.scenario import compile_graph
from tests.kit.sched_invariants import fingerprint
from tidewheel.core.cycling.calendar import Point
from tidewheel.core.operator.definition import NewRun, RunOptions, StoredDefinition, StoredFile
from tidewheel.core.operator.requests import CommandAnswer, NewCommand
from tidewheel.core.queue.requests import QueueSettings
from tidewheel.core.queue.status import Status
from tidewheel.core.sched.events import JobEnd, JobEnded, OutputMade, OutputsSet, RunStarted
from tidewheel.core.sched.persistence import ForgetMemory, rebuild
from tidewheel.core.sched.step import new_pool, step
from tidewheel.core.sched.task_state import AtomValue, Verdict, VerdictKind
from tidewheel.errors import (
    Aborted,
    AmbiguousRun,
    BadSetting,
    Duplicate,
    InvalidTask,
    NotFound,
    NotRunning,
    RunHeld,
    RunLost,
)

DAY = 86_400.0


# ---- definitions ----


def test_a_definition_is_kept_as_it_was_saved(store):
    files = (
        StoredFile("bin/run.sh", b"#!/bin/sh\n", True),
        StoredFile("lib/\udcff data \N{SNOWMAN}", bytes(range(256))),
        StoredFile("empty", b""),
    )
    saved = StoredDefinition(
        digest="d1",
        workflow="w/x",
        kind="python",
        text='[scheduling]\n"quoted" \N{SNOWMAN}\n',
        variables='{"N": 3}',
        files=files,
    )
    store.save_definition(saved)
    store.save_definition(saved)
    assert store.definition("d1") == saved
    with pytest.raises(NotFound):
        store.definition("d2")


# ---- making and finding ----


def test_a_new_run_is_created_and_held_by_nobody(store, clock):
    options = RunOptions(mode="simulation", start_tasks=("1/a",), stall_timeout_seconds=3.5)
    run = make_run(store, "w/x", folder="/src/x", options=options)
    assert (run.name, run.queue, run.folder) == ("w/x/run1", "run:w/x/run1", "/src/x")
    assert (run.status, run.reason, run.epoch, run.batch) == ("created", "", 0, 0)
    assert (run.owner, run.deadline_at, run.ended_at) == (None, None, None)
    assert (run.created_at, run.updated_at) == (clock.now, clock.now)
    assert run.options == options
    assert store.run(run.number) == run


def test_runs_of_a_workflow_are_numbered_and_numbers_are_not_used_again(store):
    names = [make_run(store).name for _ in range(3)]
    assert names == ["wf/run1", "wf/run2", "wf/run3"]
    assert make_run(store, "other").name == "other/run1"
    store.delete_run(store.find_run("wf/run1").number)
    make_run(store, name="wf/run10")
    make_run(store, name="wf/run2x")
    make_run(store, name="wf/run0-11")
    assert make_run(store).name == "wf/run11"


def test_a_name_that_is_taken_is_refused(store):
    make_run(store, name="mine")
    with pytest.raises(Duplicate, match="mine"):
        make_run(store, "other", name="mine")
    assert [run.name for run in store.runs()] == ["mine"]


@pytest.mark.parametrize(
    "wrong",
    [
        *(
            {"name": name}
            for name in (" ", "a\nb", "../a", "a/../..", "/a", "a//b", "a/", "./a")
        ),
        *({"name": name} for name in ("-a", "a/-b", "a\u202eb", "é" * 101, "a/" * 200)),
        {"workflow": ".."},
        {"lease_seconds": 0.0},
        {"lease_seconds": -1.0},
    ],
)
def test_a_run_that_cannot_be_is_refused(store, wrong):
    with pytest.raises(BadSetting):
        make_run(store, **wrong)
    assert store.runs() == []


def test_no_run_lies_in_the_folder_of_another(store):
    """To delete the one would delete the files of the other."""
    make_run(store, name="a/b")
    for wrong, told in (
        ("a", "contains no other run"),
        ("a/b/c", "run a/b"),
        ("a/b/c/d", "run a/b"),
    ):
        with pytest.raises(BadSetting, match=told):
            make_run(store, name=wrong)
    make_run(store, name="a/bc")
    make_run(store, name="a/c")


def test_a_run_needs_a_definition_that_is_stored(store):
    with pytest.raises(NotFound):
        store.create_run(NewRun(workflow="wf", definition="nowhere"))


def test_the_queue_of_a_run_has_the_lease_that_was_asked_for_or_a_longer_one(store):
    run = make_run(store, lease_seconds=42.0)
    store.pause_queue("shared", paused=True)
    make_run(store, queue="shared", lease_seconds=70.0)
    store.configure_queue("slow", QueueSettings(lease_seconds=3600))
    make_run(store, queue="slow", lease_seconds=70.0)
    queues = {queue.queue: queue.settings for queue in store.queues()}
    assert queues[run.queue].lease_seconds == 42.0
    assert (queues["shared"].lease_seconds, queues["shared"].paused) == (70.0, True)
    assert queues["slow"].lease_seconds == 3600  # as an operator set it


def test_a_run_is_found_by_name_number_workflow_or_the_beginning_of_its_name(store):
    first, second = make_run(store), make_run(store)
    named = make_run(store, "other", name="nightly")
    number = make_run(store, "other", name="7")
    assert store.find_run("wf/run1") == first
    assert store.find_run(str(second.number)) == second
    assert store.find_run("7") == number
    assert store.find_run("wf") == second
    assert store.find_run("nig") == named
    for nobody in ("nobody", "99", "", "wf/run3", "9" * 40):
        with pytest.raises(NotFound):
            store.find_run(nobody)
    with pytest.raises(AmbiguousRun, match="wf/run2, wf/run1"):
        store.find_run("wf/r")


def test_runs_are_listed_newest_first(store):
    for workflow in ("a", "b", "a"):
        make_run(store, workflow)
    assert [run.name for run in store.runs()] == ["a/run2", "b/run1", "a/run1"]
    assert [run.name for run in store.runs(workflow="a", count=1)] == ["a/run2"]
    assert store.runs(workflow="c") == []


def test_a_run_that_is_not_there_is_not_found(store):
    looks = (store.run, store.read_run, store.commands, store.run_changes, store.forgotten)
    for look in (*looks, store.submissions, store.delete_run):
        with pytest.raises(NotFound):
            look(7)
    with pytest.raises(NotFound):
        store.read_inbox(7, 10)
    with pytest.raises(NotFound):
        store.post_command(NewCommand(run=7, body="{}", who="me"))
    with pytest.raises(NotFound):
        store.command(7)


# ---- driving ----


def test_one_scheduler_drives_a_run_at_a_time(store, clock):
    run = make_run(store)
    lease = claim_run(store, run, lease_seconds=10.0)
    assert (lease.epoch, lease.batch) == (1, 0)
    seen = store.run(run.number)
    assert (seen.owner, seen.deadline_at) == (PROCESS, clock.now + 10.0)
    assert seen.is_driven(clock.now) and not seen.is_driven(clock.now + 10.0)
    clock.advance(4)
    with pytest.raises(RunHeld, match="process 4711 on tern, whose lease lasts 6 s"):
        claim_run(store, run, process=OTHER_PROCESS)
    clock.advance(6)
    later = claim_run(store, run, process=OTHER_PROCESS)
    assert later.epoch == 2
    with pytest.raises(RunLost, match="its epoch is 2, here 1"):
        store.renew_run(lease)
    store.renew_run(later)


def test_a_run_is_taken_at_once_from_an_owner_that_is_dead_for_sure(store):
    run = make_run(store)
    claim_run(store, run)
    with pytest.raises(RunHeld):
        claim_run(store, run, process=OTHER_PROCESS, dead_epoch=0)
    assert claim_run(store, run, process=OTHER_PROCESS, dead_epoch=1).epoch == 2
    with pytest.raises(RunHeld):
        claim_run(store, run, dead_epoch=1)


def test_a_lease_that_is_renewed_goes_on(store, clock):
    run = make_run(store)
    lease = claim_run(store, run, lease_seconds=10.0)
    for _ in range(3):
        clock.advance(9)
        store.renew_run(lease)
    with pytest.raises(RunHeld):
        claim_run(store, run, process=OTHER_PROCESS)


def test_only_runs_whose_scheduler_died_can_be_taken_over(store, clock):
    dead, begun, alive = (Driver.of(store) for _ in range(3))
    dead.write(status="paused")
    alive.write()
    stopped = Driver.of(store)
    stopped.write(status="stopped", ends=True)
    make_run(store)
    assert store.claimable_runs(10) == []
    clock.advance(9)
    store.renew_run(alive.lease)
    clock.advance(1)
    assert [run.number for run in store.claimable_runs(10)] == [
        dead.run.number,
        begun.run.number,
    ]
    assert len(store.claimable_runs(1)) == 1
    claim_run(store, dead.run)
    assert [run.number for run in store.claimable_runs(10)] == [begun.run.number]


def test_a_run_that_waits_for_any_scheduler_can_be_taken_by_the_first(store, clock):
    own, offered = make_run(store), make_run(store, given=RunOptions(mode=""))
    assert store.run(own.number).given is None
    assert [run.number for run in store.claimable_runs(10)] == [offered.number]
    lease = claim_run(store, offered, lease_seconds=10.0)
    assert store.claimable_runs(10) == []
    with pytest.raises(RunHeld):
        claim_run(store, offered, process=OTHER_PROCESS)
    clock.advance(10)  # it died before its first batch, and what was asked is not forgotten
    [again] = store.claimable_runs(10)
    assert (again.number, again.given) == (offered.number, RunOptions(mode=""))
    assert claim_run(store, offered, process=OTHER_PROCESS).epoch == lease.epoch + 1


def test_a_run_that_was_stopped_is_offered_again_with_other_options(store):
    driver = Driver.of(store)
    with pytest.raises(RunHeld):
        store.offer_run(driver.run.number, RunOptions())
    driver.write(status="stopped", ends=True)
    assert store.claimable_runs(10) == []
    given = RunOptions(mode="", final="9")
    assert store.offer_run(driver.run.number, given).given == given
    assert [run.given for run in store.claimable_runs(10)] == [given]
    later = Driver(store, driver.run, claim_run(store, driver.run))
    later.write(status="running")
    assert store.run(driver.run.number).given is None
    later.write(status="stopped", ends=True)
    assert store.claimable_runs(10) == []
    store.offer_run(driver.run.number, given)
    store.delete_run(driver.run.number)
    assert store.claimable_runs(10) == []
    with pytest.raises(NotFound):
        store.offer_run(driver.run.number, given)


def test_the_same_request_makes_one_run(store):
    first = make_run(store, request="token 1, key x")
    assert make_run(store, request="token 1, key x").number == first.number
    assert make_run(store, request="token 1, key y").number != first.number
    store.delete_run(first.number)
    assert make_run(store, request="token 1, key x").number != first.number


# ---- commands ----


def test_a_command_waits_for_its_answer(store, clock):
    driver = Driver.of(store)
    number = store.post_command(
        NewCommand(run=driver.run.number, body='{"verb": "pause"}', who="ann")
    )
    waiting = store.command(number)
    assert (waiting.run, waiting.at, waiting.who) == (driver.run.number, clock.now, "ann")
    assert (waiting.answered_at, waiting.answer, waiting.refused) == (None, None, None)
    [given] = driver.inbox()
    assert given[1:] == (clock.now, number, "ann", '{"verb": "pause"}')
    clock.advance(1)
    answer = CommandAnswer(number, '{"n": 1}', "no")
    driver.write(consumed=[given.seq], answers=[answer])
    answered = store.command(number)
    assert (answered.answered_at, answered.answer) == (clock.now, '{"n": 1}')
    assert answered.refused == "no"
    assert driver.inbox() == []
    driver.write(answers=[CommandAnswer(number, "{}")])
    assert store.command(number) == answered
    second = store.post_command(NewCommand(run=driver.run.number, body="{}", who="bob"))
    assert [one.number for one in store.commands(driver.run.number)] == [second, number]
    assert [one.number for one in store.commands(driver.run.number, 1)] == [second]


def test_nobody_commands_a_run_that_nobody_drives(store, clock):
    run = make_run(store)
    command = NewCommand(run=run.number, body="{}", who="me")
    with pytest.raises(NotRunning, match=r"not running \(created\)"):
        store.post_command(command)
    driver = Driver(store, run, claim_run(store, run))
    store.post_command(command)
    clock.advance(10)
    with pytest.raises(NotRunning):
        store.post_command(command)
    driver.write(status="stopped", ends=True)
    with pytest.raises(NotRunning, match="stopped"):
        store.post_command(command)
    assert len(store.commands(run.number)) == 1


def test_a_run_knows_since_when_it_has_its_status_whoever_drove_it_since(store, clock):
    driver = Driver.of(store)
    made_at = clock.now
    assert store.status_since(driver.run.number) == made_at
    for status, since in (("stalled", 5), ("stalled", 5), ("running", 15), ("stalled", 20)):
        clock.advance(5)
        driver.write(status=status)
        assert store.status_since(driver.run.number) == made_at + since
    clock.advance(1_000)
    driver.lease = claim_run(store, driver.run)
    driver.write(status="stalled")
    assert store.status_since(driver.run.number) == made_at + 20


@pytest.mark.parametrize("status", ["stopped", "stalled", "completed"])
def test_a_run_that_has_ended_is_reopened_by_a_command_that_may(store, clock, status):
    driver = Driver.of(store)
    driver.write(status=status, ends=True)
    clock.advance(1)
    command = NewCommand(run=driver.run.number, body='{"verb": "trigger"}', who="ann")
    with pytest.raises(NotRunning, match=rf"not running \({status}\)|{status}"):
        store.post_command(command)
    numbers = [store.post_command(replace(command, reopens=True)) for _ in range(2)]
    assert store.run(driver.run.number).status == status
    [offered] = store.claimable_runs(9)
    assert offered.number == driver.run.number and offered.given is not None
    driver.lease = claim_run(store, driver.run)
    assert [one.number for one in driver.inbox()] == numbers
    driver.write(consumed=[one.seq for one in driver.inbox()], goes_on=True)
    assert store.run(driver.run.number).given is None
    assert store.claimable_runs(9) == []


@pytest.mark.parametrize(
    "status", ["running", "paused", "waiting for release", "stalled", "stopping"]
)
def test_a_run_whose_scheduler_died_is_reopened_once_its_lease_has_lapsed(store, clock, status):
    driver = Driver.of(store)
    driver.write(status=status)
    command = NewCommand(run=driver.run.number, body='{"verb": "trigger"}', who="ann")
    clock.advance(driver.lease.lease_seconds + 1)
    with pytest.raises(NotRunning):
        store.post_command(command)
    number = store.post_command(replace(command, reopens=True))
    [offered] = store.claimable_runs(9)
    assert offered.can_be_reopened(store.now()) and offered.given is not None
    driver.lease = claim_run(store, driver.run)
    assert [one.number for one in driver.inbox()] == [number]


def test_what_a_run_was_to_go_on_with_it_keeps_when_it_is_reopened(store):
    driver = Driver.of(store)
    driver.write(status="stopped", ends=True)
    store.offer_run(driver.run.number, RunOptions(final="9"))
    store.post_command(NewCommand(run=driver.run.number, body="{}", who="me", reopens=True))
    assert store.run(driver.run.number).given.final == "9"


def test_a_run_that_has_not_begun_or_is_put_aside_is_not_reopened(store):
    run = make_run(store)
    command = NewCommand(run=run.number, body="{}", who="me", reopens=True)
    with pytest.raises(NotRunning, match="created"):
        store.post_command(command)
    Driver(store, run, claim_run(store, run)).write(status="error", ends=True)
    with pytest.raises(NotRunning, match="tidewheel run wf/run1"):
        store.post_command(command)
    assert store.commands(run.number) == []


def test_an_aborted_run_stays_so_with_its_reason(store):
    driver = Driver.of(store)
    driver.write(status="stopped", reason="aborted by ann: wrong field", ends=True)
    command = NewCommand(run=driver.run.number, body="{}", who="me", reopens=True)
    for ask in (
        lambda: store.post_command(command),
        lambda: store.offer_run(driver.run.number, RunOptions()),
        lambda: claim_run(store, driver.run),
    ):
        with pytest.raises(Aborted, match="aborted by ann: wrong field"):
            ask()
    assert store.run(driver.run.number).reason == "aborted by ann: wrong field"
    assert store.claimable_runs(9) == []


TRIGGER = '{"verb": "trigger", "ids": ["1/a"]}'


def asked(store, driver, body=TRIGGER):
    return store.post_command(
        NewCommand(run=driver.run.number, body=body, who="me", reopens=True)
    )


@pytest.mark.parametrize("status", ["stopped", "stalled", "completed"])
def test_a_run_that_ends_before_it_hears_a_trigger_is_reopened_by_its_last_batch(store, status):
    """Whoever asked need not wait for that, nor be alive."""
    driver = Driver.of(store)
    number = asked(store, driver)
    driver.write(status=status, ends=True)
    [offered] = store.claimable_runs(9)
    assert (offered.number, offered.given) == (driver.run.number, RunOptions(mode=""))
    driver.lease = claim_run(store, driver.run)
    assert [one.number for one in driver.inbox()] == [number]


@pytest.mark.parametrize(
    ("status", "reason", "body"),
    [
        ("completed", "", '{"verb": "pause"}'),  # it needs a run that is driven
        ("error", "put aside", TRIGGER),  # somebody must see to it first
        ("stopped", "aborted by ann: wrong field", TRIGGER),
        ("running", "", TRIGGER),  # it is still driven
    ],
)
def test_a_batch_reopens_nothing_but_a_run_that_ended_for_a_command_that_may(
    store, status, reason, body
):
    driver = Driver.of(store)
    asked(store, driver, body)
    driver.write(status=status, reason=reason, ends=status != "running")
    assert store.run(driver.run.number).given is None
    assert store.claimable_runs(9) == []


def test_a_trigger_that_the_last_batch_answers_reopens_nothing(store):
    driver = Driver.of(store)
    number = asked(store, driver)
    consumed = [one.seq for one in driver.inbox()]
    answers = [CommandAnswer(number)]
    driver.write(status="completed", ends=True, consumed=consumed, answers=answers)
    assert store.claimable_runs(9) == []


# ---- deleting ----


def test_a_run_is_deleted_with_everything_of_it(store):
    driver, other = Driver.of(store), Driver.of(store)
    driver.submit("a", "b", "c")
    other.submit("a")
    [held, *_] = driver.take(2)
    store.tell(held, started=True)
    store.post_command(NewCommand(run=driver.run.number, body="{}", who="me"))
    with pytest.raises(RunHeld):
        store.delete_run(driver.run.number)
    driver.write(status="stopped", ends=True)
    store.delete_run(driver.run.number)
    with pytest.raises(NotFound):
        store.run(driver.run.number)
    with pytest.raises(NotFound):
        store.find_run(driver.run.name)
    with pytest.raises(NotFound):
        claim_run(store, driver.run)
    with pytest.raises(NotFound):
        store.finish(held)
    assert store.listed() == [f"{other.run.name}/1/a/1"]
    assert store.verify() == []
    again = make_run(store, name=driver.run.name)
    assert again.number > driver.run.number
    assert store.read_run(again.number).changes == []
    assert store.submissions(again.number) == []


def test_retention_lets_runs_go_as_a_whole_and_leaves_their_tasks_alone(store, clock):
    ended, carried_on, held, crashed = (Driver.of(store) for _ in range(4))
    make_run(store)
    for driver in (ended, carried_on, held, crashed):
        driver.submit("a")
        store.finish(driver.take()[0])
        driver.said()
        driver.over("a")
    for driver in (ended, carried_on, crashed):
        driver.write(status="completed", ends=True)
    claim_run(store, carried_on.run)
    clock.advance(DAY)
    assert store.expired_tasks(0, 100) == []
    assert store.delete([f"{ended.run.name}/1/a/1"]) == 0
    assert store.expired_runs(DAY, 10) == []
    clock.advance(0.001)
    assert store.expired_runs(DAY, 10) == [ended.run.number, crashed.run.number]
    assert store.expired_runs(DAY, 1) == [ended.run.number]
    store.delete_run(ended.run.number)
    assert store.expired_runs(DAY, 10) == [crashed.run.number]


def reloaded(driver, digest, who="ada"):
    """A reload as a scheduler carries it out."""
    store, run = driver.store, driver.run
    store.save_definition(StoredDefinition(digest=digest, workflow="wf", text="graph"))
    number = store.post_command(NewCommand(run=run.number, who=who, body="{}"))
    answer = CommandAnswer(number, json.dumps({"definition": digest}))
    driver.write(definition=digest, answers=[answer])


def versions(store, run):
    return [(one.version, one.definition, one.who) for one in store.run_versions(run.number)]


def test_a_run_that_is_reloaded_keeps_which_definitions_it_had(store, clock):
    driver = Driver.of(store, definition="first")
    run = driver.run
    assert versions(store, run) == [(1, "first", "")]
    clock.advance(5)
    reloaded(driver, "second")
    reloaded(driver, "second")
    reloaded(driver, "first", who="grace")
    told = [(3, "first", "grace"), (2, "second", "ada"), (1, "first", "")]
    assert versions(store, run) == told
    assert store.run(run.number).definition == "first"
    times = [one.at for one in store.run_versions(run.number)]
    assert times == [clock.now, clock.now, run.created_at]
    with pytest.raises(NotFound):
        store.run_versions(99)


def test_definitions_that_a_run_had_stay_until_it_goes_and_are_at_most_fifty(store, clock):
    driver = Driver.of(store, definition="digest 1")
    for number in range(2, 53):
        reloaded(driver, f"digest {number}")
    assert [one[0] for one in versions(store, driver.run)] == list(range(52, 2, -1))
    clock.advance(DAY)
    assert store.delete_definitions(1.0, 100) == 2
    driver.write(status="stopped", ends=True)
    store.delete_run(driver.run.number)
    assert store.delete_definitions(1.0, 100) == 50


def test_a_definition_goes_when_nothing_names_it_and_it_was_saved_last_long_ago(store, clock):
    def saved(digest):
        store.save_definition(StoredDefinition(digest=digest, workflow="wf", text="graph"))

    def kept():
        return {one for one in digests if is_kept(one)}

    def is_kept(digest):
        try:
            return bool(store.definition(digest))
        except NotFound:
            return False

    digests = {"old 1", "old 2", "saved again", "of a run", "young"}
    for digest in sorted(digests - {"young", "of a run"}):
        saved(digest)
    run = make_run(store, definition="of a run")
    clock.advance(DAY)
    saved("saved again")
    saved("young")
    assert store.delete_definitions(DAY, 10) == 0
    clock.advance(0.001)
    assert store.delete_definitions(DAY, 1) == 1
    assert store.delete_definitions(DAY, 10) == 1
    assert kept() == {"saved again", "of a run", "young"}
    store.delete_run(run.number)
    assert store.delete_definitions(DAY, 10) == 1
    assert kept() == {"saved again", "young"}


# ---- clients ----


def test_a_client_cannot_submit_for_a_run(store):
    run = make_run(store)
    with pytest.raises(InvalidTask, match="only the scheduler of a run"):
        store.put("a", run=run.number)
    assert store.listed() == []


# ---- the past ----


def test_the_past_knows_what_the_pool_has_forgotten(store):
    driver = Driver.of(store)
    other = Driver.of(store)
    driver.write(changes=[memory("a", 1, 3), memory("b", 2, 1)])
    driver.write(changes=[ForgetMemory(memory("a", 1, 3, frozenset({1, 2})))])
    past = store.past(driver.run.number)
    assert (past.recall(1, "a").submits, past.recall(1, "a").spawned) == (3, {1, 2})
    assert (past.recall(2, "b").submits, past.recall(2, "b").spawned) == (1, {1})
    assert past.recall(3, "a") is None
    assert store.past(other.run.number).recall(1, "a") is None
    assert driver.changes() == [memory("b", 2, 1)]
    assert store.forgotten(driver.run.number) == [memory("a", 1, 3, frozenset({1, 2}))]
    driver.write(changes=[memory("a", 1, 0)])
    assert past.recall(1, "a").submits == 3, "a submit number is never given again"
    assert memory("a", 1, 0) in driver.changes()
    assert store.forgotten(driver.run.number) == []


def test_a_repair_where_the_pool_has_forgotten_finds_it_in_the_store(store):
    """SEMANTICS §5: an intervention behind the oldest pooled point sees the past as it was."""
    driver = Driver.of(store, options=RunOptions(mode="simulation"))
    graph = compile_graph(
        "P1 = a & b & FAM:succeed-all => c\nP1 = a:fail => mail",
        "[[FAM]]\n[[m1, m2]]\ninherit = FAM",
        scheduling="runahead limit = P0",
        final=5,
    )
    pool = new_pool(graph, past=store.past(driver.run.number))

    def happens(event) -> None:
        driver.write(changes=step(graph, pool, event).changes)

    def ends(point: int, *names: str, how: JobEnd = JobEnd.SUCCEEDED) -> None:
        for name in names:
            job = (point, name), pool.tasks[point, name].submit
            happens(OutputMade(*job, "started", 0.0))
            happens(JobEnded(*job, how, 0.0))

    happens(RunStarted(0.0))
    ends(1, "a", how=JobEnd.FAILED)
    ends(1, "b", "m1", "m2", "mail")
    for point in (2, 3):
        ends(point, "a", "b", "m1", "m2", "c")
    assert 1 not in pool.memory
    happens(OutputsSet(task=(1, "a"), at=0.0))
    assert pool.tasks[1, "c"].is_active
    read = rebuild(pool.plan, driver.changes(), store.past(driver.run.number))
    assert fingerprint(read) == fingerprint(pool)


def test_what_was_not_done_is_found_among_what_is_forgotten(store):
    driver = Driver.of(store)
    lost = Verdict(VerdictKind.PRUNED, AtomValue.LOST, cause=(Point(1), "a", "succeeded"))
    kinds = {
        "lost": lost,
        "not taken": lost._replace(death=AtomValue.NOT_TAKEN),
        "removed": Verdict(VerdictKind.REMOVED, AtomValue.LOST),
        "suicide": Verdict(VerdictKind.SUICIDE, AtomValue.NOT_TAKEN),
        "expired": Verdict(VerdictKind.FINISHED, AtomValue.LOST, ended="expired"),
        "failed": Verdict(VerdictKind.FINISHED, AtomValue.LOST, ended="failed"),
    }
    rows = [memory(name, 1, 0)._replace(verdicts=((1, one),)) for name, one in kinds.items()]
    rows += [memory("left", 1, 1), memory("never there", 1, spawned=frozenset())]
    driver.write(changes=[ForgetMemory(row) for row in rows])
    found = store.forgotten(driver.run.number, only_undone=True)
    assert {row.key[1] for row in found} == {"lost", "removed", "left", "expired"}
    assert len(store.forgotten(driver.run.number)) == len(rows)


def test_a_run_that_one_may_not_see_is_not_found_and_hides_no_other(store):
    """What others have decides neither whether a run is found nor which."""
    mine = make_run(store, name="mine/1")
    theirs = [make_run(store, name=f"mice/{number:02}") for number in range(12)]
    names = ("mine",)
    for text in ("mine/1", "wf", "mi", str(mine.number)):
        assert store.find_run(text, names) == mine
    for text in (theirs[0].name, str(theirs[0].number), "mice", "nobody"):
        with pytest.raises(NotFound):
            store.find_run(text, names)
    more = make_run(store, name="mine/2")
    with pytest.raises(AmbiguousRun) as several:
        store.find_run("mi", names)
    assert several.value.names == (more.name, mine.name)
    assert store.find_run("mice/03", ("*",)) == theirs[3]


def test_a_list_can_leave_out_jobs_of_runs(store):
    driver = Driver.of(store)
    job, failed = driver.submit("a", "b")
    store.put("own", "also")
    store.cancel([failed, "also"])
    assert store.listed() == ["also", "own", failed, job]
    assert store.listed(jobs=True) == store.listed()
    assert store.listed(jobs=False) == ["also", "own"]
    assert store.listed(jobs=False, statuses=(Status.CANCELLED,)) == ["also"]
    assert store.listed(jobs=False, statuses=(Status.READY, Status.SUCCEEDED)) == ["own"]
    assert store.listed(jobs=False, queue=driver.run.queue) == []
    assert store.listed(jobs=False, matching="*a*") == ["also"]
    assert store.listed(jobs=False, matching=f"={job}") == []
