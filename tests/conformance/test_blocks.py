"""Scheduling block instances, what runs wait for, and buffer objects (seed 004)."""

import itertools
from collections import defaultdict
from dataclasses import replace

import pytest

from tests.conformance.run_steps import Driver, claim_run, make_run, task_row
from tidewheel.core.cycling.calendar import Point
from tidewheel.core.operator.blocks import (
    BlockCondition,
    BlockNeed,
    BlockStatus,
    NeedState,
    NewBlock,
    NewObject,
    NewSbi,
)
from tidewheel.core.operator.definition import NewRun, RunOptions, StoredDefinition
from tidewheel.core.operator.requests import RunTimer
from tidewheel.core.queue.requests import Wake
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.persistence import PutTask
from tidewheel.errors import (
    BadSetting,
    Duplicate,
    NotFound,
    RunHeld,
    RunLost,
    RunNeeded,
    RunWaits,
    SbiTaken,
    UnknownDependency,
)

OFFERED = RunOptions(mode="")
STATUSES = (
    *("created", "running", "paused", "waiting for release", "stalled", "stopping"),
    *("stopped", "completed", "error"),
)


def new_block(block_id, *needs, priority=None, definition="digest of wf"):
    run = NewRun(
        workflow="wf",
        definition=definition,
        name=block_id,
        options=RunOptions(priority=priority),
        given=OFFERED,
    )
    return NewBlock(id=block_id, run=run, needs=needs, body=f'{{"id": "{block_id}"}}')


def new_sbi(*blocks, sbi_id="SBI-1", fingerprint="f1"):
    return NewSbi(id=sbi_id, body='{"x": 1}', fingerprint=fingerprint, who="ada", blocks=blocks)


def after(parent, condition=BlockCondition.COMPLETE):
    return BlockNeed(parent, BlockCondition(condition))


@pytest.fixture
def blocks(store):
    """A store that has the definition of every block."""
    store.save_definition(StoredDefinition(digest="digest of wf", workflow="wf"))
    return store


def drive(store, name):
    run = store.find_run(name)
    return Driver(store, run, claim_run(store, run))


def offered(store):
    return [run.name for run in store.claimable_runs(100)]


# ---- accepted whole or not at all ----


@pytest.mark.req("R004-53")
def test_an_instance_is_kept_with_its_blocks_each_of_which_is_a_run(blocks, clock):
    sbi = new_sbi(new_block("PB-b"), new_block("PB-a", after("PB-b"), priority=100))
    created = blocks.create_sbi(sbi)
    assert created.made
    view = blocks.sbi("SBI-1")
    assert created.sbi == view
    assert (view.requested_at, view.requested_by, view.body) == (clock.now, "ada", '{"x": 1}')
    assert [(one.id, one.position, one.priority) for one in view.blocks] == [
        ("PB-b", 1, 0),
        ("PB-a", 2, 100),
    ]
    block = blocks.block("PB-a")
    assert (block.sbi, block.body, block.run) == (
        "SBI-1",
        '{"id": "PB-a"}',
        blocks.find_run("PB-a"),
    )
    assert [(one.parent, one.condition, one.status) for one in block.needs] == [
        ("PB-b", "complete", "created")
    ]
    assert [one.id for one in blocks.blocks()] == ["PB-a", "PB-b"]
    assert [one.id for one in blocks.blocks(count=1)] == ["PB-a"]
    assert [one.id for one in blocks.sbis()] == ["SBI-1"]


@pytest.mark.req("R004-53")
def test_the_same_request_again_changes_nothing_and_another_is_refused(blocks):
    sbi = new_sbi(new_block("PB-a"))
    first = blocks.create_sbi(sbi)
    again = blocks.create_sbi(sbi)
    assert not again.made
    assert again.sbi == first.sbi
    with pytest.raises(SbiTaken, match="SBI-1"):
        blocks.create_sbi(new_sbi(new_block("PB-b"), fingerprint="f2"))
    assert [run.name for run in blocks.runs()] == ["PB-a"]


@pytest.mark.req("R004-54")
@pytest.mark.parametrize(
    ("wrong", "refused"),
    [
        (new_block("PB-taken"), Duplicate),
        (new_block("PB-first"), Duplicate),
        (new_block("PB-x", after("PB-nowhere")), UnknownDependency),
        (new_block("PB-x", definition="nowhere"), NotFound),
        (new_block("../x"), BadSetting),
    ],
)
def test_nothing_is_stored_of_an_instance_with_one_bad_block(blocks, wrong, refused):
    make_run(blocks, name="PB-taken")
    with pytest.raises(refused):
        blocks.create_sbi(new_sbi(new_block("PB-first"), wrong))
    assert [run.name for run in blocks.runs()] == ["PB-taken"]
    assert blocks.sbis() == blocks.blocks() == []
    with pytest.raises(NotFound):
        blocks.sbi("SBI-1")
    with pytest.raises(NotFound):
        blocks.block("PB-first")


# ---- who may begin ----


@pytest.mark.req("R004-55")
def test_schedulers_find_the_highest_priority_first_then_the_oldest(blocks):
    priorities = {"PB-a": 0, "PB-b": -1, "PB-c": 100, "PB-d": None, "PB-e": 7}
    blocks.create_sbi(
        new_sbi(*(new_block(name, priority=given) for name, given in priorities.items()))
    )
    assert offered(blocks) == ["PB-c", "PB-e", "PB-a", "PB-d", "PB-b"]


def met(condition, status, begun):
    """The rule in words, beside the table and the statements."""
    match condition:
        case "complete":
            return status == "completed"
        case "started":
            return begun
        case "failed":
            return status in ("stalled", "error")
        case "aborted":
            return status in ("stalled", "error", "stopped")
        case _:
            return status in ("stalled", "error", "stopped", "completed")


@pytest.mark.req("R004-56")
@pytest.mark.parametrize("status", STATUSES)
def test_a_block_begins_when_its_parent_is_as_required_and_not_before(blocks, status):
    children = [new_block(f"PB-{one}", after("PB-p", one)) for one in BlockCondition]
    blocks.create_sbi(new_sbi(new_block("PB-p"), *children))
    over = status in ("stopped", "completed", "error", "stalled")
    if status != "created":
        drive(blocks, "PB-p").write(status=status, ends=over)
    for condition in BlockCondition:
        child = blocks.block(f"PB-{condition}")
        may = met(condition, status, status != "created")
        assert (child.id in offered(blocks)) is may, condition
        assert (child.waits == ()) is may
        assert [one.state for one in child.needs] == [
            NeedState.MET if may else NeedState.NEVER if over else NeedState.OPEN
        ]
        if may:
            claim_run(blocks, child.run)
        else:
            with pytest.raises(RunWaits, match=f"{child.id} .*PB-p to be {condition}"):
                claim_run(blocks, child.run)


@pytest.mark.req("R004-56")
def test_a_parent_that_stopped_by_itself_after_it_had_stalled_has_failed(blocks):
    """It is told as failed, so that is what it counts as to those who wait for it."""
    children = [new_block(f"PB-{one}", after("PB-p", one)) for one in BlockCondition]
    blocks.create_sbi(new_sbi(new_block("PB-p"), *children))
    drive(blocks, "PB-p").write(status="stopped", reason="aborted: stalled", ends=True)
    assert blocks.block("PB-p").status == "failed"
    assert set(offered(blocks)) == {"PB-started", "PB-failed", "PB-aborted", "PB-finished"}
    assert blocks.block("PB-failed").waits == ()
    assert [str(one) for one in blocks.block("PB-complete").waits] == [
        "PB-p to be complete (it has failed)"
    ]
    drive(blocks, "PB-failed")


@pytest.mark.req("R004-56")
def test_a_block_with_several_parents_waits_for_all_of_them(blocks):
    child = new_block("PB-c", after("PB-a"), after("PB-b"), after("PB-b", "started"))
    blocks.create_sbi(new_sbi(new_block("PB-a"), new_block("PB-b"), child))
    drive(blocks, "PB-a").write(status="completed", ends=True)
    other = drive(blocks, "PB-b")
    assert offered(blocks) == []
    other.write()
    assert [str(one) for one in blocks.block("PB-c").waits] == [
        "PB-b to be complete (it is running)"
    ]
    other.write(status="completed", ends=True)
    assert offered(blocks) == ["PB-c"]
    assert blocks.block("PB-c").waits == ()


@pytest.mark.req("R004-56")
def test_a_parent_may_be_of_an_earlier_instance(blocks):
    blocks.create_sbi(new_sbi(new_block("PB-a")))
    later = new_sbi(new_block("PB-b", after("PB-a")), sbi_id="SBI-2")
    blocks.create_sbi(later)
    assert offered(blocks) == ["PB-a"]
    drive(blocks, "PB-a").write(status="completed", ends=True)
    assert offered(blocks) == ["PB-b"]


def test_what_a_block_waited_for_is_no_matter_once_it_has_begun(blocks):
    """A parent that is carried on, and fails then, takes nothing back."""
    blocks.create_sbi(new_sbi(new_block("PB-a"), new_block("PB-b", after("PB-a"))))
    drive(blocks, "PB-a").write(status="completed", ends=True)
    drive(blocks, "PB-b").write(status="stopped", ends=True)
    drive(blocks, "PB-a").write(status="error", ends=True)
    blocks.offer_run(blocks.find_run("PB-b").number, OFFERED)
    assert offered(blocks) == ["PB-b"]
    assert blocks.block("PB-b").waits == ()


@pytest.mark.req("R004-56", "R004-60")
def test_a_parent_that_was_aborted_before_it_began_was_never_started(blocks):
    children = [new_block(f"PB-{one}", after("PB-p", one)) for one in BlockCondition]
    blocks.create_sbi(new_sbi(new_block("PB-p"), *children))
    blocks.stop_run(blocks.find_run("PB-p").number, "aborted")
    assert offered(blocks) == ["PB-aborted", "PB-finished"]
    assert blocks.block("PB-started").needs[0].state is NeedState.NEVER


def test_a_parent_that_somebody_will_carry_on_may_still_become_complete(blocks):
    blocks.create_sbi(new_sbi(new_block("PB-a"), new_block("PB-b", after("PB-a"))))
    drive(blocks, "PB-a").write(status="stopped", ends=True)
    assert blocks.block("PB-b").needs[0].state is NeedState.NEVER
    blocks.offer_run(blocks.find_run("PB-a").number, OFFERED)
    assert blocks.block("PB-b").needs[0].state is NeedState.OPEN


def test_of_two_schedulers_one_gets_a_block(blocks):
    blocks.create_sbi(new_sbi(new_block("PB-a")))
    seen = [blocks.claimable_runs(10), blocks.claimable_runs(10)]
    claim_run(blocks, seen[0][0])
    with pytest.raises(RunHeld):
        claim_run(blocks, seen[1][0])


@pytest.mark.req("R004-62")
def test_a_block_that_was_done_since_it_was_seen_is_not_begun_again(blocks):
    blocks.create_sbi(new_sbi(new_block("PB-a")))
    [seen] = blocks.claimable_runs(10)
    driver = drive(blocks, "PB-a")
    with pytest.raises(RunHeld):
        claim_run(blocks, seen, seen_epoch=seen.epoch)
    driver.write(status="completed", ends=True)
    with pytest.raises(RunLost):
        claim_run(blocks, seen, seen_epoch=seen.epoch)
    assert blocks.find_run("PB-a").epoch == 1


# ---- how blocks and instances are ----


def statuses(store, **which):
    """Of all blocks that are meant: each is found by its status, and by no other."""
    found = {one.id: str(one.status) for one in store.blocks(**which)}
    for status in () if "status" in which else BlockStatus:
        by_status = [one.id for one in store.blocks(**which, status=status)]
        assert by_status == [name for name, its in found.items() if its == status]
    return found


@pytest.mark.req("R004-61")
def test_a_block_says_whether_it_waits_for_blocks_resources_or_objects(blocks):
    blocks.create_sbi(new_sbi(new_block("PB-a"), new_block("PB-b", after("PB-a"))))
    assert statuses(blocks) == {"PB-a": "created", "PB-b": "waiting_for_blocks"}
    driver = drive(blocks, "PB-a")
    driver.write(changes=[PutTask(task_row("object@x"))])
    assert statuses(blocks)["PB-a"] == "waiting_for_object"
    driver.submit("a")
    assert statuses(blocks)["PB-a"] == "waiting_for_resources"
    worker = blocks.hire(queues=("run:*",))
    [held] = blocks.take(1, worker, queue="run:PB-a")
    assert statuses(blocks)["PB-a"] == "running"  # though its scheduler has not heard of it
    blocks.finish(held)
    retry = RunTimer(Point(1), "b", "retry", Instant(1e9))
    driver.over("a", timers=[retry])
    driver.write(changes=[PutTask(task_row("b"))])
    assert statuses(blocks)["PB-a"] == "running"  # it tries again
    driver.write(status="stalled")
    assert statuses(blocks)["PB-a"] == "failed"
    assert blocks.stop_run(blocks.find_run("PB-b").number, "aborted by ada")
    assert statuses(blocks)["PB-b"] == "aborted"


def test_blocks_are_found_by_status_and_workflow_page_by_page(blocks):
    names = [f"PB-{number}" for number in range(7)]
    blocks.create_sbi(new_sbi(*map(new_block, names)))
    for name in names[::2]:
        assert blocks.stop_run(blocks.find_run(name).number, "aborted by ada")
    for name, reason in (("PB-1", "stopped: by ada"), ("PB-3", "aborted: it stalled")):
        drive(blocks, name).write(status="stopped", reason=reason, ends=True)
    assert list(statuses(blocks, status=BlockStatus.ABORTED)) == names[::-2]
    assert list(statuses(blocks, status=BlockStatus.ABORTED, count=2)) == ["PB-6", "PB-4"]
    older = blocks.find_run("PB-4").number
    assert list(statuses(blocks, status=BlockStatus.ABORTED, before=older)) == ["PB-2", "PB-0"]
    assert list(statuses(blocks, status=BlockStatus.FAILED, count=1)) == ["PB-3"]
    assert list(statuses(blocks, status=BlockStatus.STOPPED, count=1)) == ["PB-1"]
    assert list(statuses(blocks, status=BlockStatus.CREATED)) == ["PB-5"]
    assert statuses(blocks, workflow="other") == {}
    assert len(statuses(blocks, workflow="wf", sbi="SBI-1")) == 7


@pytest.mark.req("R004-61")
def test_an_instance_counts_its_blocks_and_is_found_by_status_and_subarray(blocks, clock):
    for number in range(3):
        body = f'{{"subarray_id": "{number % 2}", "x": "\\u0000"}}'
        pair = [new_block(f"PB-{number}-{letter}") for letter in "ab"]
        sbi = new_sbi(*pair, sbi_id=f"SBI-{number}", fingerprint=str(number))
        blocks.create_sbi(replace(sbi, body=body))
        clock.advance(1.0)
    drive(blocks, "PB-0-a").write(status="completed", ends=True)
    for name in ("PB-1-a", "PB-1-b"):
        assert blocks.stop_run(blocks.find_run(name).number, "aborted by ada")
    found = {one.id: (str(one.status), dict(one.counts)) for one in blocks.sbis()}
    assert found == {
        "SBI-2": ("created", {"created": 2}),
        "SBI-1": ("aborted", {"aborted": 2}),
        "SBI-0": ("running", {"completed": 1, "created": 1}),
    }
    assert blocks.sbi("SBI-1").counts == {"aborted": 2}

    def ids(**which):
        return [one.id for one in blocks.sbis(**which)]

    assert ids(subarray="0") == ["SBI-2", "SBI-0"]
    assert ids(subarray="0", count=1) == ["SBI-2"]
    assert ids(subarray="0", count=1, before="SBI-2") == ["SBI-0"]
    assert ids(status=BlockStatus.ABORTED) == ["SBI-1"]
    assert ids(status=BlockStatus.ABORTED, subarray="0") == []


# The runs of two blocks, and what their instance is called.
TOGETHER = {
    ("", ""): "created",
    ("running", ""): "running",
    ("paused", "completed"): "running",
    ("completed", ""): "running",
    ("completed", "completed"): "completed",
    ("stalled", ""): "failed",
    ("stalled", "running"): "running",
    ("aborted: it stalled", "completed"): "failed",
    ("aborted by ada", "stalled"): "failed",
    ("aborted by ada", "completed"): "aborted",
    ("aborted by ada", "stopped by ada"): "aborted",
    ("stopped by ada", "completed"): "stopped",
    ("stopped by ada", ""): "stopped",
}


@pytest.mark.req("R004-61")
def test_an_instance_is_found_by_the_status_of_its_blocks_together(blocks, clock):
    expected = defaultdict(list)
    for number, (runs, status) in enumerate(TOGETHER.items()):
        pair = [new_block(f"PB-{number}-{letter}") for letter in "ab"]
        blocks.create_sbi(new_sbi(*pair, sbi_id=f"SBI-{number}", fingerprint=str(number)))
        for block, said in zip(pair, runs, strict=True):
            if " " in said:
                assert blocks.stop_run(blocks.find_run(block.run.name).number, said)
            elif said:
                drive(blocks, block.run.name).write(status=said, ends=said == "completed")
        expected[status].insert(0, f"SBI-{number}")
        clock.advance(1.0)
    for status in BlockStatus:
        found = blocks.sbis(status=status)
        assert ([one.id for one in found], {str(one.status) for one in found} - {status}) == (
            expected[status],
            set(),
        )
        pages = [blocks.sbis(1, None, status=status)]
        while pages[-1]:
            pages.append(blocks.sbis(1, pages[-1][0].id, status=status))
        assert [one.id for page in pages for one in page] == expected[status]


def test_the_statuses_of_a_run_are_kept_one_after_the_other(blocks, clock):
    blocks.create_sbi(new_sbi(new_block("PB-a")))
    driver = drive(blocks, "PB-a")
    began = clock.now
    for status, reason in (
        *(("running", ""), ("running", ""), ("stalled", "stalled: a")),
        *(("running", ""), ("stopped", "stopped: by ada")),
    ):
        clock.advance(1.0)
        driver.write(status=status, reason=reason, ends=status == "stopped")
    found = blocks.statuses_of(driver.run.number)
    assert [(one.at - began, one.status, one.reason) for one in found] == [
        (0.0, "created", ""),
        (1.0, "running", ""),
        (3.0, "stalled", "stalled: a"),
        (4.0, "running", ""),
        (5.0, "stopped", "stopped: by ada"),
    ]


# ---- deleting ----


def test_a_run_that_others_wait_for_is_not_deleted_and_outlives_retention(blocks, clock):
    block = new_block("PB-b", after("PB-a", "failed"))
    blocks.create_sbi(new_sbi(new_block("PB-a"), block))
    drive(blocks, "PB-a").write(status="completed", ends=True)
    clock.advance(100.0)
    parent, child = blocks.find_run("PB-a").number, blocks.find_run("PB-b").number
    assert blocks.expired_runs(50.0, 10) == []
    with pytest.raises(RunNeeded, match="PB-b"):
        blocks.delete_run(parent)
    # One that was aborted before it began may yet be carried on, and must wait again then.
    assert blocks.stop_run(child, "not wanted")
    with pytest.raises(RunNeeded, match="PB-b"):
        blocks.delete_run(parent)
    blocks.delete_run(child)
    assert blocks.expired_runs(50.0, 10) == [parent]
    blocks.delete_run(parent)
    assert blocks.sbis() == []


def test_an_instance_goes_with_the_last_of_its_blocks(blocks):
    sbi = new_sbi(new_block("PB-a"), new_block("PB-b"))
    blocks.create_sbi(sbi)
    for name in ("PB-a", "PB-b"):
        assert [one.id for one in blocks.sbis()] == ["SBI-1"]
        blocks.delete_run(blocks.find_run(name).number)
    assert blocks.sbis() == blocks.blocks() == []
    assert blocks.create_sbi(sbi).made


# ---- stopping what nobody drives ----


@pytest.mark.req("R004-60")
def test_a_run_that_has_not_begun_is_stopped_with_the_reason(blocks, clock):
    blocks.create_sbi(new_sbi(new_block("PB-a")))
    number = blocks.find_run("PB-a").number
    clock.advance(5.0)
    assert blocks.stop_run(number, "aborted by ada")
    run = blocks.run(number)
    assert (run.status, run.reason, run.given, run.ended_at) == (
        "stopped",
        "aborted by ada",
        None,
        clock.now,
    )
    assert offered(blocks) == []
    assert not blocks.stop_run(number, "aborted by bob")
    assert blocks.run(number).reason == "aborted by ada"


@pytest.mark.req("R004-60")
def test_a_run_that_was_stopped_is_aborted_too_and_one_that_completed_is_not(blocks):
    blocks.create_sbi(new_sbi(new_block("PB-a"), new_block("PB-b")))
    for name, status in (("PB-a", "stopped"), ("PB-b", "completed")):
        drive(blocks, name).write(status=status, reason=status, ends=True)
    stopped, completed = (blocks.find_run(name).number for name in ("PB-a", "PB-b"))
    blocks.offer_run(stopped, OFFERED)
    assert blocks.stop_run(stopped, "aborted by ada")
    assert (blocks.run(stopped).is_aborted, offered(blocks)) == (True, [])
    assert not blocks.stop_run(completed, "aborted by ada")
    assert blocks.run(completed).reason == "completed"


@pytest.mark.req("R004-60")
def test_the_tasks_of_a_run_whose_scheduler_died_are_cancelled_with_it(blocks, clock):
    blocks.create_sbi(new_sbi(new_block("PB-a")))
    driver = drive(blocks, "PB-a")
    driver.write(submissions=[driver.task("done"), driver.task("runs"), driver.task("waits")])
    worker = blocks.hire(queues=("run:*",))
    held = blocks.take(2, worker, queue="run:PB-a")
    blocks.finish(held[0])
    assert not blocks.stop_run(driver.run.number, "too early")
    clock.advance(1_000.0)
    assert blocks.stop_run(driver.run.number, "aborted")
    states = {one.id: one.status for one in blocks.get_many([one.id for one in held])}
    assert list(states.values()) == ["succeeded", "cancelling"]
    assert blocks.get("PB-a/1/waits/1").status == "cancelled"
    with pytest.raises(Exception, match="epoch"):
        driver.write()


# ---- objects ----


def test_an_object_that_was_posted_is_there_until_it_is_removed(store, clock):
    assert store.objects() == store.objects_there(["a"]) == []
    posted = store.post_objects(
        [NewObject(name="b"), NewObject(name="a", facts='{"n": 1}')], "ada"
    )
    assert [(one.name, one.facts, one.posted_at, one.posted_by) for one in posted] == [
        ("a", '{"n": 1}', clock.now, "ada"),
        ("b", "{}", clock.now, "ada"),
    ]
    assert store.objects() == posted
    assert store.objects(after="a") == posted[1:]
    assert store.objects_there(["b", "c", "b"]) == posted[1:]
    clock.advance(1.0)
    again = store.post_objects([NewObject(name="a", facts='{"n": 2}')], "bob")
    assert [(one.facts, one.posted_at, one.posted_by) for one in again] == [
        ('{"n": 2}', clock.now, "bob")
    ]
    assert store.remove_object("a") == again[0]
    with pytest.raises(NotFound):
        store.remove_object("a")
    assert [one.name for one in store.objects()] == ["b"]


def test_objects_are_listed_in_one_order_on_every_store(store):
    names = ["B", "a", "é", "A b", "_", "b", "\N{SNOWMAN}", "Z"]
    store.post_objects([NewObject(name=name) for name in names], "ada")
    pages, last = [], ""
    while page := store.objects(after=last, count=3):
        pages, last = [*pages, *page], page[-1].name
    assert [one.name for one in pages] == sorted(names)


def test_a_posted_object_wakes_the_runs_that_may_wait_for_one(store):
    numbers = []
    for kind, name in itertools.product(("sip", "flow.cylc"), ("driven", "alone")):
        digest = f"of {kind}"
        store.save_definition(StoredDefinition(digest=digest, workflow="wf", kind=kind))
        new = NewRun(workflow="wf", definition=digest, name=f"{kind}-{name}")
        run = store.create_run(new)
        numbers.append(run.number)
        if name == "driven":
            claim_run(store, run)
    heard = []
    store.listen(heard.append)
    store.post_objects([NewObject(name="a")], "ada")
    assert Wake(runs=frozenset(numbers[:1])) in heard


def test_instances_and_blocks_are_listed_from_a_place_on(blocks, clock):
    """L5: whoever may see few of many looks through page after page."""
    for number in range(1, 6):
        made = new_sbi(new_block(f"PB-{number}"), sbi_id=f"SBI-{number}")
        blocks.create_sbi(made)
        clock.advance(0 if number == 3 else 1)  # two at the same moment
    ids = [one.id for one in blocks.sbis(10)]
    assert ids == [f"SBI-{number}" for number in (5, 4, 3, 2, 1)]
    for place, one in enumerate(ids, 1):
        assert [after.id for after in blocks.sbis(10, one)] == ids[place:]
    assert [one.id for one in blocks.sbis(1, "SBI-4")] == ["SBI-3"]
    assert blocks.sbis(10, "SBI-none") == []
    listed = blocks.blocks(count=10)
    assert blocks.blocks(count=10, before=listed[1].run.number) == listed[2:]
    assert blocks.blocks(count=1, before=listed[1].run.number) == listed[2:3]
