"""What a scheduler writes: whole or not at all, once, by the one that holds the run."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from tests.conformance.changes_drawn import batches
from tests.conformance.run_steps import (
    OTHER_PROCESS,
    Driver,
    active,
    claim_run,
    make_run,
    memory,
    task_row,
)
from tidewheel.core.operator.definition import RunOptions, StoredDefinition
from tidewheel.core.operator.requests import (
    CommandAnswer,
    NewCommand,
    RunTimer,
    StoredBroadcast,
    StoredValues,
    TimerKey,
    XtriggerResult,
)
from tidewheel.core.queue.requests import ClaimRequest, End, Ending, JobMessage
from tidewheel.core.queue.status import Status
from tidewheel.core.sched.persistence import (
    DropTask,
    ForgetMemory,
    ForgetStored,
    PoolLedger,
    PutChain,
    PutFlow,
    PutRun,
    PutTask,
)
from tidewheel.core.sched.pool import FlowState, RunState, RunStatus
from tidewheel.errors import NotFound, NotRunning, RunLost
from tidewheel.store.change_rows import read_changes


def in_order(changes):
    return sorted(changes, key=repr)


# ---- what is written is what is read ----


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=40,
    deadline=None,
)
@given(written=batches)
def test_the_changes_of_any_batches_are_read_as_the_ledger_has_them(store, written):
    # Made up as they are, what is active has no submissions: nor would it if it were played.
    driver = Driver.of(store, options=RunOptions(mode="simulation"))
    ledger = PoolLedger()
    for changes in written:
        driver.write(changes=changes)
        ledger.write(changes)
    left = [row for row in ledger.rows.values() if getattr(row, "point", 0) is not None]
    assert in_order(driver.changes()) == in_order(left)
    logged = store.run_changes(driver.run.number, count=10_000)
    assert [read_changes(one.changes) for one in logged] == [one for one in written if one]
    # Its submit numbers are made up, too, and no store with such a run would be sound.
    driver.write(status="stopped", ends=True)
    store.delete_run(driver.run.number)


def test_the_last_change_of_a_thing_counts(store):
    driver = Driver.of(store)
    a, b = task_row("a"), task_row("b")
    driver.write(changes=[PutTask(a), PutTask(a._replace(missing=0)), PutTask(b)])
    driver.write(changes=[DropTask((1, "a")), DropTask((9, "nobody")), PutTask(a)])
    driver.write(changes=[PutTask(b._replace(held=True)), DropTask((1, "b"))])
    assert driver.changes() == [PutTask(a)]


def test_runs_keep_apart(store):
    first, second = Driver.of(store), Driver.of(store)
    same = [
        PutTask(task_row("a")),
        memory("a"),
        PutChain("a", 1, 3),
        PutFlow(FlowState(1)),
        PutRun(RunState(start=1)),
    ]
    for driver in (first, second):
        driver.write(
            changes=same,
            timers=[RunTimer(None, "", "stall", 3.0), RunTimer(1, "a", "retry", 2.0)],
            xtriggers=[XtriggerResult("f()", "{}")],
            broadcasts=[StoredBroadcast("*", "root", "script", "x")],
        )
    first.write(
        changes=[DropTask((1, "a")), ForgetMemory(memory("a")), PutChain("a", 1, None)],
        timers_gone=[TimerKey(None, "", "stall"), TimerKey(1, "a", "retry")],
        xtriggers=[XtriggerResult("f()", "")],
        broadcasts=[StoredBroadcast("*", "root", "script", None)],
    )
    left = store.read_run(first.run.number)
    assert left.changes == [PutRun(RunState(start=1)), PutFlow(FlowState(1))]
    assert (left.timers, left.xtriggers, left.broadcasts) == ([], [], [])
    there = store.read_run(second.run.number)
    assert in_order(there.changes) == in_order(same)
    assert there.timers == [RunTimer(1, "a", "retry", 2.0), RunTimer(None, "", "stall", 3.0)]
    assert there.xtriggers == [XtriggerResult("f()", "{}")]
    assert there.broadcasts == [StoredBroadcast("*", "root", "script", "x")]


def test_timers_results_and_broadcasts_are_replaced_by_their_like(store):
    driver = Driver.of(store)
    driver.write(
        timers=[RunTimer(1, "a", "retry", 2.0), RunTimer(1, "a", "retry", 3.0)],
        xtriggers=[XtriggerResult("f()", "1"), XtriggerResult("f()", "2")],
        broadcasts=[
            StoredBroadcast("1", "a", "[environment]X", "1"),
            StoredBroadcast("1", "a", "[environment]X", ""),
        ],
    )
    driver.write(
        timers=[RunTimer(1, "a", "retry", 4.0)], timers_gone=[TimerKey(1, "a", "retry")]
    )
    seen = store.read_run(driver.run.number)
    assert seen.timers == [RunTimer(1, "a", "retry", 4.0)]
    assert seen.xtriggers == [XtriggerResult("f()", "2")]
    assert seen.broadcasts == [StoredBroadcast("1", "a", "[environment]X", "")]


def test_what_is_forgotten_as_it_is_stored_is_kept_as_history(store):
    driver = Driver.of(store)
    kept, gone = memory("b"), memory("a")
    driver.write(changes=[gone, kept])
    driver.write(changes=[ForgetStored(1, ("a", "never there"))])
    assert driver.changes() == [kept]
    assert store.forgotten(driver.run.number) == [gone]
    driver.write(changes=[ForgetStored(1, ("b",)), gone])
    assert driver.changes() == [gone]
    assert store.forgotten(driver.run.number) == [kept]


def test_more_rows_than_one_statement_carries_are_written(store):
    driver = Driver.of(store)
    names = [f"n{number}" for number in range(2_500)]
    tasks = [driver.task(name) for name in names]
    driver.write(changes=[c for name in names for c in active(name)], submissions=tasks)
    assert len(driver.changes()) == 5_000
    driver.write(
        cancellations=[task.id for task in tasks],
        changes=[DropTask((1, name)) for name in names],
    )
    happenings = driver.inbox(10_000)
    assert len(happenings) == 2_500
    driver.write(consumed=[one.seq for one in happenings])
    assert driver.inbox() == []


# ---- the head of a batch ----


def test_a_batch_says_how_the_run_is_and_renews_its_lease(store, clock):
    driver = Driver.of(store)
    store.save_definition(StoredDefinition(digest="new", workflow="wf"))
    clock.advance(3)
    driver.write(status="stalled", reason="nothing can happen", definition="new")
    seen = store.run(driver.run.number)
    assert (seen.status, seen.reason, seen.batch) == ("stalled", "nothing can happen", 1)
    assert (seen.definition, seen.updated_at) == ("new", clock.now)
    assert (seen.deadline_at, seen.ended_at) == (clock.now + 10.0, None)
    driver.write()
    assert (store.run(driver.run.number).definition, seen.epoch) == ("new", 1)


def test_a_batch_may_change_the_options_with_which_a_run_goes_on(store):
    first = RunOptions(final="3", mode="simulation")
    driver = Driver.of(store, options=first)
    driver.write()
    assert store.run(driver.run.number).options == first
    driver.write(options=RunOptions(final="5", mode="simulation", stall_timeout_seconds=2.5))
    driver.write()
    later = store.run(driver.run.number).options
    assert (later.final, later.mode, later.stall_timeout_seconds) == ("5", "simulation", 2.5)


@pytest.mark.parametrize("status", [*RunStatus, "created", "error"])
def test_every_status_of_a_run_can_be_stored(store, status):
    driver = Driver.of(store)
    driver.write(status=status)
    assert store.run(driver.run.number).status == status


@pytest.mark.parametrize("status", ["", "runing", "deleted?"])
def test_no_other_status_can_be_stored(store, status):
    with pytest.raises(AssertionError):
        Driver.of(store).write(status=status)


def test_the_last_batch_gives_the_run_back(store, clock):
    driver = Driver.of(store)
    clock.advance(1)
    driver.write(status="completed", reason="all done", ends=True)
    seen = store.run(driver.run.number)
    assert (seen.status, seen.owner, seen.deadline_at) == ("completed", None, None)
    assert (seen.ended_at, seen.batch) == (clock.now, 1)
    clock.advance(1)
    carried_on = claim_run(store, driver.run, process=OTHER_PROCESS)
    assert (carried_on.epoch, carried_on.batch) == (2, 1)
    assert store.run(driver.run.number).ended_at == clock.now - 1


def test_a_run_that_was_complete_and_is_at_once_again_ended_when_it_was_first(store, clock):
    driver = Driver.of(store)
    driver.write(status="completed", ends=True)
    first = clock.now
    for statuses, ended_at in ((["completed"], first), (["running", "completed"], first + 2)):
        clock.advance(1)
        driver.lease = claim_run(store, driver.run)
        for status in statuses:
            driver.write(status=status, ends=status == statuses[-1])
        assert store.run(driver.run.number).ended_at == ended_at
    clock.advance(1)
    driver.lease = claim_run(store, driver.run)
    driver.write(status="stopped", ends=True)
    assert store.run(driver.run.number).ended_at == clock.now


@pytest.mark.parametrize("status", ["stopped", "completed", "stalled"])
def test_a_run_that_goes_on_has_not_ended(store, clock, status):
    driver = Driver.of(store)
    driver.write(status=status, ends=True)
    assert store.run(driver.run.number).ended_at == clock.now
    driver.lease = claim_run(store, driver.run)
    driver.write(status="running")
    assert store.run(driver.run.number).ended_at is None


def test_a_batch_whose_answer_got_lost_is_written_once(store):
    driver = Driver.of(store)
    number = store.post_command(NewCommand(run=driver.run.number, body="{}", who="me"))
    [given] = driver.inbox()
    batch = driver.batch(
        consumed=[given.seq],
        changes=active("a"),
        submissions=[driver.task("a")],
        answers=[CommandAnswer(number)],
        ends=True,
        status="stopped",
    )
    for _ in range(3):
        store.write_batch(driver.lease, batch)
    assert store.run(driver.run.number).batch == 1
    assert len(store.run_changes(driver.run.number)) == 1
    assert store.listed() == [f"{driver.run.name}/1/a/1"]


def test_a_copy_of_a_batch_that_later_ones_overtook_changes_nothing(store):
    """As when a request was made again, and the first one arrives after all (found by sim)."""
    driver = Driver.of(store)
    lease, batch = driver.lease, driver.batch(changes=active("a"))
    driver.submit("a")
    driver.submit("b")
    before = (store.run(driver.run.number), driver.changes(), store.listed())
    store.write_batch(lease, batch)
    assert (store.run(driver.run.number), driver.changes(), store.listed()) == before


def test_a_scheduler_that_was_taken_over_writes_nothing(store, clock):
    driver = Driver.of(store)
    driver.submit("a")
    clock.advance(10)
    lease = claim_run(store, driver.run, process=OTHER_PROCESS)
    before = (store.run(driver.run.number), driver.changes(), store.listed())
    for batch in (driver.batch(changes=active("b"), submissions=[driver.task("b")]),):
        with pytest.raises(RunLost):
            store.write_batch(driver.lease, batch)
    assert (store.run(driver.run.number), driver.changes(), store.listed()) == before
    successor = Driver(store, driver.run, lease)
    successor.write(changes=active("b"), submissions=[driver.task("b")])
    # The same number as the successor's batch: it is not taken for that one.
    with pytest.raises(RunLost):
        store.write_batch(driver.lease, driver.batch(changes=active("c")))


def test_a_lease_that_ran_out_and_nobody_took_is_still_good(store, clock):
    driver = Driver.of(store)
    clock.advance(1_000)
    driver.write()
    assert store.run(driver.run.number).is_driven(clock.now)


def test_a_batch_that_does_not_follow_is_a_mistake(store):
    driver = Driver.of(store)
    with pytest.raises(AssertionError):
        store.write_batch(driver.lease, replace(driver.batch(), number=7))
    driver.write(ends=True, status="stopped")
    with pytest.raises(AssertionError):
        driver.write()


def test_a_batch_that_fails_leaves_nothing(store):
    driver = Driver.of(store)
    driver.submit("a")
    before = (store.run(driver.run.number), driver.changes())
    for wrong in (
        {"submissions": [driver.task("a")]},
        {"submissions": [replace(driver.task("b"), run=None)]},
        {"definition": "nowhere"},
    ):
        with pytest.raises(AssertionError):
            driver.write(changes=active("b"), **wrong)
    with pytest.raises(NotFound):
        driver.write(changes=active("b"), cancellations=["nobody"])
    assert (store.run(driver.run.number), driver.changes()) == before
    driver.write(changes=[])


# ---- submissions ----


def test_submissions_can_be_claimed_at_once_and_know_their_run(store):
    driver = Driver.of(store, lease_seconds=33.0)
    driver.submit("a")
    store.put("client", queue=driver.run.queue)
    first, second = driver.take(2)
    assert (first.id, first.task.run) == (f"{driver.run.name}/1/a/1", driver.run.number)
    assert first.task.lease_seconds == 33.0
    assert (second.id, second.task.run) == ("client", None)
    by_id = store.hold(driver.submit("b")[0])
    assert by_id.task.run == driver.run.number
    orphans = store.orphans("tern", "boot-1")
    runs = {held.task.id: held.task.run for held in orphans}
    assert runs == {first.id: driver.run.number, "client": None, by_id.id: driver.run.number}


def test_submissions_are_listed_newest_first(store, clock):
    driver, other = Driver.of(store), Driver.of(store)
    tasks = [driver.task(n, s, p) for p in ("1", "10") for n in ("a", "aa") for s in (1, 2)]
    driver.write(submissions=tasks)
    other.write(submissions=[other.task("a")])
    start = clock.now
    clock.advance(1)
    [held] = driver.take()
    store.tell(held, started=True)
    clock.advance(1)
    store.finish(held, "failed", exit_status=3)
    [ended] = store.submissions(driver.run.number, point="1", name="a")[1:]
    assert (ended.task_id, ended.status, ended.attempt) == (held.id, "failed", 1)
    assert (ended.submitted_at, ended.started_at) == (start, start + 1)
    assert (ended.ended_at, ended.exit_status) == (start + 2, 3)
    assert (ended.error, ended.worker) == ("it exited with 3", held.worker)
    run = driver.run.number
    assert [one.task_id for one in store.submissions(run)] == [t.id for t in tasks[::-1]]
    first = store.submissions(run, count=3)
    rest = store.submissions(run, before=first[-1].seq)
    assert len(first) == 3 and first + rest == store.submissions(run)

    def found(**which):
        return [
            one.task_id.removeprefix(driver.run.name) for one in store.submissions(run, **which)
        ]

    assert found(point="1") == ["/1/aa/2", "/1/aa/1", "/1/a/2", "/1/a/1"]
    assert found(name="a") == ["/10/a/2", "/10/a/1", "/1/a/2", "/1/a/1"]
    assert found(point="10", name="aa") == ["/10/aa/2", "/10/aa/1"]
    assert found(point="10", name="aa", count=1) == ["/10/aa/2"]
    assert found(name="a", before=rest[-1].seq) == []
    assert found(point="100") == found(name="wf") == []


def test_the_log_of_changes_is_read_page_by_page(store, clock):
    driver = Driver.of(store)
    for name in "abc":
        driver.write(changes=[PutTask(task_row(name))])
    driver.write()  # changed nothing
    pages = store.run_changes(driver.run.number, after=1, count=1)
    assert [(one.batch, one.at) for one in pages] == [(2, clock.now)]
    assert read_changes(pages[0].changes) == [PutTask(task_row("b"))]
    assert [one.batch for one in store.run_changes(driver.run.number)] == [1, 2, 3]


def test_a_run_that_was_not_begun_is_empty(store):
    run = make_run(store)
    seen = store.read_run(run.number)
    assert (seen.changes, seen.timers, seen.xtriggers, seen.broadcasts) == ([], [], [], [])


def test_broadcasts_are_read_in_the_order_in_which_they_were_given(store):
    driver = Driver.of(store)
    z, a = (StoredBroadcast("*", "root", f"[environment]{name}", "1") for name in "ZA")
    driver.write(broadcasts=[z])
    driver.write(broadcasts=[a])
    assert list(store.read_run(driver.run.number).broadcasts) == [z, a]
    driver.write(broadcasts=[z])
    assert list(store.read_run(driver.run.number).broadcasts) == [a, z]


# ---- a run that was let go has nothing to be claimed (SEMANTICS §9) ----


def let_go(driver, status="stopped", **fields):
    driver.write(status=status, ends=True, **fields)


def carried_on(driver):
    driver.lease = claim_run(driver.store, driver.run)
    driver.write(goes_on=True)


def test_of_a_run_that_is_stopping_nothing_more_is_taken_and_what_is_given_back_neither(store):
    driver = Driver.of(store)
    ids = driver.submit("a", "b")
    [held] = driver.take(1)
    driver.write(status="stopping", submissions=[driver.task("c")], changes=active("c"))
    assert driver.take(9) == [] and store.verify() == []
    store.finish(held, ending="yielded")
    assert driver.take(9) == [] and store.verify() == []
    assert store.withdrawn(driver.run.number) >= set(ids)
    with pytest.raises(NotRunning, match="stopping"):
        store.hold(held.id)
    let_go(driver)
    carried_on(driver)
    assert {one.id for one in driver.take(9)} >= set(ids)


@pytest.mark.parametrize("status", ["stopped", "error", "completed"])
def test_a_run_that_was_let_go_has_nothing_that_a_worker_can_claim(store, status):
    driver = Driver.of(store)
    driver.submit("a", "b")
    let_go(driver, status, submissions=[driver.task("c")], changes=active("c"))
    assert driver.take(9) == []
    assert store.listed(statuses=(Status.READY,)) == []
    assert store.verify() == []


def test_nobody_waits_for_a_delayed_task_of_a_run_that_was_let_go(store):
    driver = Driver.of(store)
    driver.submit("a", delay_seconds=60)
    every = ClaimRequest(queue=driver.run.queue, worker=store.hire(), count=9)
    assert store.claim(every).next_due_seconds == pytest.approx(60.0, abs=5.0)
    let_go(driver)
    assert store.claim(every).next_due_seconds is None
    carried_on(driver)
    assert store.claim(every).next_due_seconds == pytest.approx(60.0, abs=5.0)


def test_what_was_withdrawn_is_the_same_submission_when_the_run_goes_on(store):
    driver = Driver.of(store)
    ids = driver.submit("a", "b")
    [held] = driver.take(1)
    let_go(driver)
    store.finish(held)
    left = [one for one in ids if one != held.id]
    assert [one for one in ids if store.get(one).withdrawn] == left
    carried_on(driver)
    assert not any(store.get(one).withdrawn for one in ids)
    assert [one.id for one in driver.take(9)] == left
    assert store.verify() == []


def test_a_run_that_is_let_go_again_before_it_went_on_keeps_what_was_withdrawn(store):
    driver = Driver.of(store)
    [task_id] = driver.submit("a")
    let_go(driver)
    driver.lease = claim_run(store, driver.run)
    let_go(driver, "error")  # it could not be read
    assert driver.take(9) == [] and store.verify() == []
    carried_on(driver)
    assert [one.id for one in driver.take(9)] == [task_id]
    assert store.verify() == []


def test_runs_that_share_a_queue_withdraw_what_is_theirs(store):
    stopped, going = (Driver.of(store, name, queue="both") for name in ("wf", "other"))
    store.put("alone", queue="both")
    stopped.submit("a")
    [others] = going.submit("b")
    let_go(stopped)
    assert {one.id for one in going.take(9)} == {"alone", others}
    assert store.verify() == []


def test_a_run_that_is_claimed_offers_nothing_before_its_first_batch(store):
    driver = Driver.of(store)
    driver.submit("a")
    let_go(driver)
    driver.lease = claim_run(store, driver.run)
    assert driver.take(9) == []
    driver.write(goes_on=True)
    assert len(driver.take(9)) == 1


def test_what_is_given_back_after_the_end_of_its_run_waits_for_it(store, clock):
    driver = Driver.of(store)
    driver.submit("a", "b")
    yielded, lapsed = driver.take(2)
    let_go(driver)
    store.finish(yielded, ending="yielded")
    clock.advance(100.0)
    store.lapse()
    assert store.status(lapsed.id) == "ready"
    assert driver.take(9) == []
    assert store.verify() == []
    carried_on(driver)
    assert {one.task.attempt for one in driver.take(9)} == {2}


def test_a_withdrawn_task_cannot_be_claimed_by_its_id(store):
    driver = Driver.of(store)
    [task_id] = driver.submit("a")
    let_go(driver)
    with pytest.raises(NotRunning, match="stopped"):
        store.hold(task_id)
    carried_on(driver)
    assert store.hold(task_id).task.attempt == 1


def test_a_withdrawn_task_can_be_cancelled_and_does_not_come_back(store):
    driver = Driver.of(store)
    [task_id] = driver.submit("a")
    let_go(driver)
    store.cancel([task_id])
    carried_on(driver)
    assert driver.take(9) == []
    assert [one[0] for one in driver.said()] == ["JobOver"]
    driver.over("a")


def test_events_wait_in_the_outbox_until_everybody_was_told(store):
    driver = Driver.of(store)
    driver.write(outbox=['{"event": "startup"}'])
    driver.write(outbox=['{"event": "started"}', '{"event": "failed"}'])
    number = driver.run.number
    waiting = store.undelivered(number)
    assert [(one.batch, one.place) for one in waiting] == [(1, 0), (2, 0), (2, 1)]
    assert waiting[2].body == '{"event": "failed"}'
    store.delivered(number, [waiting[0], waiting[2]])
    assert store.undelivered(number) == [waiting[1]]
    store.delivered(number, waiting)  # again is not wrong
    assert store.undelivered(number) == []


def test_a_batch_that_is_written_again_is_told_once(store):
    driver = Driver.of(store)
    batch = driver.batch(outbox=["{}"])
    store.write_batch(driver.lease, batch)
    store.write_batch(driver.lease, batch)
    assert len(store.undelivered(driver.run.number)) == 1


def test_runs_that_are_over_and_left_somebody_untold_are_found(store, clock):
    """Once they have been over for so long: their own scheduler may be at it."""
    over, running = Driver.of(store, "over"), Driver.of(store, "running")
    told = Driver.of(store, "told")
    running.write(outbox=["{}"])
    over.write(outbox=["{}"], status="completed", ends=True)
    told.write(status="completed", ends=True)
    assert [run.name for run in store.undelivered_runs(0.0, 10)] == ["over/run1"]
    assert store.undelivered_runs(60.0, 10) == []
    clock.advance(60.0)
    assert [run.name for run in store.undelivered_runs(60.0, 10)] == ["over/run1"]
    store.delivered(over.run.number, store.undelivered(over.run.number))
    assert store.undelivered_runs(60.0, 10) == []


def test_with_a_run_its_outbox_goes(store):
    driver = Driver.of(store)
    driver.write(outbox=["{}"], status="completed", ends=True)
    store.delete_run(driver.run.number)
    assert store.undelivered(driver.run.number) == []


# ---- values that tasks returned ----


@pytest.mark.req("R007-2")
def test_a_success_brings_its_values_along_and_the_batch_that_hears_it_keeps_them(store):
    driver = Driver.of(store)
    driver.submit("a", "b")
    for held, values in zip(driver.take(2), (' {"n": 1} ', None), strict=True):
        store.finish(held, values=values, exit_status=0)
    assert [one.text for one in driver.inbox()] == ['{"n": 1}', None]
    assert not store.read_run(driver.run.number).has_values
    first = StoredValues(1, "a", 1, "[1]", '{"n": 1}')
    driver.write(values=[first, StoredValues(1, "b", 0, "[1]", "{}")])
    driver.write(values=[first._replace(submit=2), first._replace(body='{"n": 2}')])
    number = driver.run.number
    assert store.read_run(number).has_values
    found = sorted(store.run_values(number, [(1, "a"), (2, "a"), (1, "b")]))
    assert found == [
        first._replace(body='{"n": 2}'),
        first._replace(submit=2),
        StoredValues(1, "b", 0, "[1]", "{}"),
    ]
    assert store.run_values(number, []) == []
    driver.over("a", "b", status="stopped", ends=True)
    store.delete_run(number)
    assert store.run_values(number, [(1, "a")]) == []


@pytest.mark.req("R007-2")
def test_a_success_with_messages_brings_its_values_along_too(store):
    driver = Driver.of(store)
    driver.submit("a")
    [held] = driver.take()
    end = End(ending=Ending.SUCCEEDED, values='{"n": 1}')
    store.tell(held, end=end, messages=[JobMessage(number=1, text="said")])
    assert [getattr(one, "text", None) for one in driver.inbox()][-1] == '{"n": 1}'
