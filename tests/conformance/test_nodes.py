"""Machines and buffer space: what a claim gives when tasks want nodes, some for themselves."""

import itertools
import random

import pytest

from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.requests import Amendment, QueueSettings
from tidewheel.core.queue.resources import Resources, fits, flavoured, nodes_of
from tidewheel.errors import InvalidTask

ALONE = Resources(exclusive=True)
BOTH_WAYS = pytest.mark.usefixtures("queue_rules")


def nodes(count, idle=None, **fields):
    """What a worker has free."""
    return Resources(nodes=count, idle_nodes=idle, **fields)


@pytest.fixture(params=["plain", "by rules"])
def queue_rules(request, store):
    """A queue with limits is claimed from by another statement, which must say the same."""
    if request.param == "by rules":
        store.configure_queue("q", QueueSettings(limits=(Limit(concurrency_max=1000),)))


@pytest.mark.req("R004-20")
@BOTH_WAYS
def test_a_task_that_wants_more_nodes_than_there_are_is_passed_over(store):
    store.put("three", resources=Resources(nodes=3), priority=99)
    store.put("one")
    store.put("two", resources=Resources(nodes=2))
    assert store.taken(9, free=nodes(2)) == ["one", "two"]
    assert store.taken(9, free=nodes(2)) == []
    assert store.taken(9, free=nodes(3)) == ["three"]


@pytest.mark.req("R004-20")
@BOTH_WAYS
def test_tasks_share_nodes_as_long_as_nobody_has_them_alone(store):
    store.put(*"abcd", resources=Resources(nodes=2))
    assert store.taken(9, free=nodes(2, idle=0)) == list("abcd")


@pytest.mark.req("R004-21")
@BOTH_WAYS
def test_who_wants_nodes_alone_takes_idle_ones(store):
    store.put("two", resources=Resources(nodes=2, exclusive=True))
    assert store.taken(9, free=nodes(3, idle=1)) == []
    assert store.taken(9, free=nodes(3, idle=2)) == ["two"]


@pytest.mark.req("R004-21")
@BOTH_WAYS
def test_while_somebody_has_the_machine_alone_nothing_else_is_claimed(store):
    store.put("any", "other")
    assert store.taken(9, free=nodes(0, idle=0)) == []
    assert store.taken(9, free=nodes(1, idle=0)) == ["any", "other"]


@pytest.mark.req("R004-21")
@BOTH_WAYS
def test_an_exclusive_task_is_claimed_alone_or_waits_for_the_next_claim(store):
    store.put("first", resources=ALONE, priority=90)
    store.put("second", priority=80)
    store.put("third", resources=ALONE, priority=70)
    store.put("fourth", priority=60)
    worker = store.hire()
    assert store.taken(9, worker=worker, free=nodes(5)) == ["first"]
    assert store.taken(9, worker=worker, free=nodes(4)) == ["second"]
    assert store.taken(9, worker=worker, free=nodes(4, idle=3)) == ["third"]
    assert store.taken(9, worker=worker, free=nodes(3, idle=2)) == ["fourth"]


@BOTH_WAYS
def test_who_wants_nodes_alone_stops_nobody_while_there_are_none(store):
    store.put("alone", resources=ALONE, priority=90)
    store.put("a", "b")
    assert store.taken(9, free=nodes(1, idle=0)) == ["a", "b"]


@pytest.mark.req("R004-20")
@BOTH_WAYS
def test_buffer_space_is_counted(store):
    store.put(*"abcd", resources=Resources(buffer_bytes=2))
    store.put("large", resources=Resources(buffer_bytes=2**60), priority=99)
    assert store.taken(9, free=Resources(buffer_bytes=5)) == ["a", "b"]
    assert store.taken(9, free=Resources()) == []
    assert store.taken(1) == ["large"]


@BOTH_WAYS
def test_a_thousand_of_the_largest_buffers_can_be_added_up(store):
    names = [f"t{number}" for number in range(1000)]
    store.put(*names, resources=Resources(buffer_bytes=2**60))
    assert store.taken(1000) == names[:4]


def of(*asked):
    """What a task asks for: (flavour, nodes, those of them that it wants alone) each."""
    entries = flavoured(nodes_of(*one) for one in asked)
    count = sum(one[1] for one in asked)
    return Resources(nodes=count, exclusive=any(one[2] for one in asked), flavours=entries)


def offering(*offered, count=0, **fields):
    """What a worker has free: (flavour, nodes, idle ones) each, and others."""
    entries = tuple(nodes_of(*one) for one in offered)
    count += sum(one[1] for one in offered)
    idle = count - sum(one[1] - one[2] for one in offered)
    return nodes(count, idle, flavours=entries, **fields)


@pytest.mark.req("R004-20")
@BOTH_WAYS
def test_ten_nodes_of_one_flavour_and_two_of_another_are_counted_separately(store):
    store.put("both", resources=of(("a", 10, 10), ("b", 2, 0)))
    for too_few in (
        offering(("a", 12, 12)),
        offering(("a", 9, 9), ("b", 5, 5)),
        offering(("a", 10, 9), ("b", 2, 2)),
        offering(("a", 10, 10), ("b", 1, 1), count=9),
        nodes(100),
        nodes(100, labels=frozenset({"a"})),
        nodes(11, labels=frozenset({"a", "b"})),
    ):
        assert store.taken(9, free=too_few) == []
    assert store.taken(9, free=offering(("a", 10, 10), ("b", 2, 0))) == ["both"]


@pytest.mark.req("R004-20")
@BOTH_WAYS
def test_a_label_says_that_all_nodes_of_a_worker_are_of_a_flavour(store):
    store.put("both", resources=of(("a", 2, 0), ("b", 1, 0)))
    store.put("some", resources=of(("a", 2, 0)))
    store.put("any")
    assert store.taken(9, free=nodes(2, labels=frozenset({"a"}))) == ["some", "any"]
    assert store.taken(9, free=nodes(3, labels=frozenset({"a", "b"}))) == ["both"]


@BOTH_WAYS
def test_tasks_that_name_no_flavour_take_nodes_of_any(store):
    store.put("two", resources=Resources(nodes=2))
    store.put("alone", resources=Resources(nodes=3, exclusive=True))
    assert store.taken(9, free=offering(("a", 1, 1), ("b", 1, 0))) == ["two"]
    assert store.taken(9, free=offering(("a", 2, 2), ("b", 1, 1))) == ["alone"]


def test_nodes_by_flavour_are_seen_claimed_and_found_by_a_successor(store):
    asked = of(("a", 10, 10), ("b", 2, 0), ("", 1, 0))
    assert [(one.flavour, one.nodes, one.idle) for one in asked.flavours] == [
        ("", 13, 10),
        ("a", 10, 10),
        ("b", 2, 0),
    ]
    store.put("a", resources=asked)
    assert store.get("a").resources == asked
    capacity = Resources(cpu=1, nodes=13, flavours=(nodes_of("a", 11, 11),))
    worker = store.hire(capacity=capacity)
    assert store.workers()[0].capacity == capacity
    free = offering(("a", 11, 11), ("b", 2, 2))
    [held] = store.take(worker=worker, free=free)
    assert held.task.resources == asked
    assert [one.task.resources for one in store.orphans("tern", "boot-1")] == [asked]


def test_what_was_asked_for_is_seen_claimed_and_found_by_a_successor(store):
    asked = Resources(nodes=3, exclusive=True, buffer_bytes=2**45)
    store.put("a", resources=asked)
    store.put("b", resources=asked)
    assert store.get("a").resources == asked
    [held] = store.take()
    assert held.task.resources == asked
    by_id = store.hold("b", held.worker)
    assert by_id.task.resources == asked
    orphans = store.orphans("tern", "boot-1")
    assert [one.task.resources for one in orphans] == [asked, asked]


def test_what_a_worker_offers_is_seen(store):
    capacity = Resources(cpu=2, nodes=7, buffer_bytes=2**50)
    store.hire(capacity=capacity)
    assert store.workers()[0].capacity == capacity


def test_a_task_that_waits_may_want_other_nodes(store):
    store.put("parent")
    store.put("child", needs=["parent"], resources=Resources(nodes=2))
    amended = Resources(nodes=4, exclusive=True, buffer_bytes=9)
    store.amend("child", Amendment(resources=amended))
    assert store.get("child").resources == amended
    store.run_through("parent")
    assert store.taken(9, free=nodes(3, buffer_bytes=9)) == []
    assert store.taken(9, free=nodes(4, buffer_bytes=9)) == ["child"]


@pytest.mark.parametrize(
    ("asked", "finding"),
    [
        (Resources(nodes=0), "resources nodes is 0; expected 1 to 100000"),
        (Resources(nodes=-1), "resources nodes is -1;"),
        (Resources(nodes=100_001), "resources nodes is 100001;"),
        (Resources(buffer_bytes=-1), "resources buffer_bytes is -1; expected 0 to"),
        (Resources(buffer_bytes=2**60 + 1), "resources buffer_bytes is 1152921504606846977;"),
        (Resources(idle_nodes=1), "only workers have idle_nodes"),
        (Resources(flavours=(nodes_of("a\n", 1, 0),)), "flavour 'a.n' is not accepted"),
        (Resources(flavours=(nodes_of("a", 1, 2),)), "flavour 'a' has 1 nodes, 2 of them idle"),
    ],
)
def test_nobody_can_ask_for_what_does_not_exist(store, asked, finding):
    with pytest.raises(InvalidTask, match=finding):
        store.put("a", resources=asked)


@pytest.mark.req("R004-20", "R004-21")
@pytest.mark.parametrize("seed", range(3))
@BOTH_WAYS
def test_no_node_is_ever_had_alone_and_shared(store, seed):
    """A worker that counts as it is told takes and gives back until all have ended."""
    chance = random.Random(seed)  # which the name of the test says
    for number in range(60):
        asked = Resources(nodes=chance.choice((1, 1, 2, 4)), exclusive=chance.random() < 0.4)
        store.put(f"t{number}", resources=asked, priority=chance.randrange(3))
    capacity, running, ended = Resources(cpu=8, nodes=4), [], 0
    worker = store.hire(capacity=capacity)
    for turn in itertools.count():
        assert turn < 1000, "it comes to an end"
        free = capacity
        for held in running:
            assert fits(held.task.resources, free), running
            free = free - held.task.resources
        running += store.take(chance.randrange(1, 9), worker=worker, free=free)
        alone = sum(one.task.resources.nodes for one in running if one.task.resources.exclusive)
        shared = [
            one.task.resources.nodes for one in running if not one.task.resources.exclusive
        ]
        assert alone + max(shared, default=0) <= capacity.nodes
        if not running:
            break
        for _ in range(chance.randrange(1, len(running) + 1)):
            store.finish(running.pop(chance.randrange(len(running))))
            ended += 1
    assert ended == 60
