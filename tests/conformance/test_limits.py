"""What a queue allows at once and per time, and how waiting tasks grow in priority."""

import pytest

from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.requests import QueueSettings
from tidewheel.core.queue.resources import Resources
from tidewheel.errors import BadSetting


def limited(store, *limits, queue="q", **settings):
    store.configure_queue(queue, QueueSettings(limits=limits, **settings))


def test_no_more_run_at_once_than_the_queue_allows(store):
    limited(store, Limit(concurrency_max=2))
    store.put(*"abcde")
    first = store.take(9)
    assert [held.id for held in first] == ["a", "b"]
    assert store.taken(9) == []
    store.finish(first[0])
    assert store.taken(9) == ["c"]
    store.finish(first[1], "yielded")
    assert store.taken(9) == ["b"]


@pytest.mark.parametrize("end", ["failed", "aborted", "cancelled", "lapsed"])
def test_a_place_is_free_again_whatever_ended_the_attempt(store, clock, end):
    limited(store, Limit(concurrency_max=1))
    store.put("a", "b")
    held = store.take(9)[0]
    if end == "cancelled":
        store.cancel(["a"])
        assert store.taken(9) == []
        store.finish(held)
    elif end == "lapsed":
        clock.advance(11)
        store.lapse()
        store.cancel(["a"])
    else:
        store.finish(held, end)
    assert store.taken(9) == ["b"]


def test_a_limit_of_zero_lets_nothing_run(store):
    limited(store, Limit(concurrency_max=0))
    store.put("a")
    assert store.taken() == []
    limited(store)
    assert store.taken() == ["a"]


def test_a_key_has_its_own_limit_and_does_not_hold_up_others(store):
    limited(store, Limit(key="licence", concurrency_max=1))
    store.put("l1", "l2", limit_key="licence", priority=99)
    store.put("o1", "o2", limit_key="other")
    store.put("free")
    first = store.take(9)
    assert [held.id for held in first] == ["l1", "o1", "o2", "free"]
    store.finish(first[0])
    assert store.taken(9) == ["l2"]


def test_each_key_without_a_limit_of_its_own_gets_the_common_one(store):
    limited(store, Limit(key="*", concurrency_max=1), Limit(key="wide", concurrency_max=2))
    for key in ("wide", "x", "y"):
        store.put(*(f"{key}{n}" for n in range(3)), limit_key=key)
    store.put("keyless 1", "keyless 2")
    assert store.taken(99) == ["wide0", "wide1", "x0", "y0", "keyless 1", "keyless 2"]
    assert store.taken(99) == []


def test_the_whole_queue_and_its_keys_are_bounded_together(store):
    limited(store, Limit(concurrency_max=3), Limit(key="k", concurrency_max=1))
    store.put("k1", "k2", limit_key="k")
    store.put(*"abc")
    assert store.taken(99) == ["k1", "a", "b"]


def test_limits_of_one_queue_are_no_business_of_another(store):
    limited(store, Limit(concurrency_max=0))
    store.put("here")
    store.put("there", queue="p")
    assert store.taken(queue="p") == ["there"]


def test_no_more_start_in_a_period_than_the_rate_allows(store, clock):
    limited(store, Limit(rate_max=3, rate_seconds=60))
    store.put(*"abcdefgh")
    first = store.take(9)
    assert [held.id for held in first] == ["a", "b", "c"]
    for held in first:
        store.finish(held)
    assert store.taken(9) == []
    clock.advance(19)
    assert store.taken(9) == []
    clock.advance(1)
    assert store.taken(9) == ["d"]
    clock.advance(1000)
    assert store.taken(9) == ["e", "f", "g"]


def test_a_rate_counts_starts_of_each_key(store, clock):
    limited(store, Limit(key="*", rate_max=1, rate_seconds=10))
    store.put("x1", "x2", "x3", limit_key="x")
    store.put("y1", "y2", limit_key="y")
    assert store.taken(9) == ["x1", "y1"]
    clock.advance(10)
    assert store.taken(9) == ["x2", "y2"]
    clock.advance(5)
    assert store.taken(9) == []
    clock.advance(5)
    assert store.taken(9) == ["x3"]


def test_a_clock_that_is_set_back_takes_no_start_away(store, clock):
    limited(store, Limit(rate_max=2, rate_seconds=10))
    store.put(*"abc")
    assert store.taken() == ["a"]
    clock.advance(-3600)
    assert store.taken() == ["b"]
    clock.advance(5)
    assert store.taken() == ["c"]


def test_new_settings_replace_the_old_as_a_whole(store):
    limited(store, Limit(concurrency_max=1), Limit(key="k", rate_max=1), lease_seconds=5)
    limited(store, Limit(key="m", concurrency_max=4), aging=True)
    (queue,) = store.queues()
    assert queue.settings == QueueSettings(
        aging=True, limits=(Limit(key="m", concurrency_max=4),)
    )


@pytest.mark.parametrize(
    "settings",
    [
        QueueSettings(lease_seconds=0),
        QueueSettings(lease_seconds=-1),
        QueueSettings(lease_seconds=86_401),
        QueueSettings(limits=(Limit(concurrency_max=-1),)),
        QueueSettings(limits=(Limit(rate_max=0),)),
        QueueSettings(limits=(Limit(rate_max=1, rate_seconds=0),)),
        QueueSettings(limits=(Limit(key="k", rate_max=1), Limit(key="k", rate_max=2))),
        QueueSettings(limits=(Limit(key="nul \0", rate_max=1),)),
    ],
)
def test_settings_that_mean_nothing_are_refused_and_the_old_ones_stay(store, settings):
    limited(store, Limit(concurrency_max=1))
    before = store.queues()
    with pytest.raises(BadSetting):
        store.configure_queue("q", settings)
    assert store.queues() == before


@pytest.mark.parametrize("queue", ["", "  ", "a\nb", "x" * 257])
def test_a_queue_has_a_name(store, queue):
    with pytest.raises(BadSetting):
        store.configure_queue(queue, QueueSettings())
    with pytest.raises(BadSetting):
        store.pause_queue(queue, paused=True)
    assert store.queues() == []


@pytest.mark.req("R002-81")
def test_strict_priority_may_starve_a_low_one(store, clock):
    store.put("low", priority=1)
    for round_ in range(5):
        clock.advance(1000)
        store.put(f"high {round_}", priority=2)
        assert store.taken() == [f"high {round_}"]
    assert store.taken() == ["low"]


@pytest.mark.req("R002-82")
def test_with_aging_a_second_of_being_ready_counts_as_one_priority(store, clock):
    limited(store, aging=True)
    store.put("old", priority=10)
    clock.advance(30)
    store.put("equal", priority=40)
    store.put("higher", priority=41)
    assert [store.taken()[0] for _ in range(3)] == ["higher", "old", "equal"]


@pytest.mark.req("R002-82")
def test_only_whole_seconds_of_being_ready_count(store, clock):
    limited(store, aging=True)
    store.put("old", priority=10)
    clock.advance(1.9)
    store.put("young", priority=12)
    assert store.taken() == ["young"]


@pytest.mark.req("R002-82")
def test_aging_ends_at_255_and_what_is_above_stays_above(store, clock):
    limited(store, aging=True)
    store.put("ancient", priority=0)
    clock.advance(10**6)
    store.put("top", priority=256)
    store.put("young", priority=254)
    clock.advance(1.5)
    store.put("new", priority=255)
    order = [store.taken()[0] for _ in range(4)]
    assert order == ["top", "ancient", "young", "new"]


def test_aging_counts_from_the_moment_of_becoming_ready(store, clock):
    limited(store, aging=True)
    store.put("waited", armed=False, priority=50)
    clock.advance(100)
    store.put("steady", priority=60)
    store.arm("waited")
    clock.advance(5)
    store.put("fresh", priority=57)
    assert [store.taken()[0] for _ in range(3)] == ["steady", "fresh", "waited"]


def test_aging_and_limits_and_resources_hold_together(store, clock):
    limited(store, Limit(key="k", concurrency_max=1), aging=True)
    store.put("k1", "k2", limit_key="k", priority=1, resources=Resources(cpu=1))
    clock.advance(100)
    store.put("big", priority=90, resources=Resources(cpu=4))
    store.put("small", priority=80, resources=Resources(cpu=1))
    assert store.taken(9, free=Resources(cpu=4)) == ["k1"]
    assert store.taken(9, free=Resources(cpu=4)) == ["big"]
    assert store.taken(9, free=Resources(cpu=4)) == ["small"]


@pytest.mark.req("R002-82", "R002-90")
def test_aged_tasks_are_shown_and_handed_out_in_their_aged_order(store, clock):
    limited(store, aging=True)
    store.put("old", priority=10)
    clock.advance(30)
    store.put("equal", priority=40)
    store.put("higher", priority=41)
    store.put("lower", priority=39)
    order = ["higher", "old", "equal", "lower"]
    assert [view.id for view in store.peek("q", 9)] == order
    assert [view.id for view in store.peek("q", 2)] == order[:2]
    assert store.taken(9) == order


@pytest.mark.req("R002-90")
def test_peeking_at_a_queue_with_aging_shows_what_is_due_by_now(store, clock):
    limited(store, aging=True)
    store.put("late", delay_seconds=60, priority=50)
    store.put("top", priority=300)
    assert [view.id for view in store.peek("q", 9)] == ["top"]
    clock.advance(61)
    store.put("young", priority=111)
    assert [view.id for view in store.peek("q", 9)] == ["top", "late", "young"]


# ---- turns: a fair queue ----


@pytest.mark.req("R010-7")
def test_in_a_fair_queue_each_key_gets_its_turn_whatever_its_priority(store):
    limited(store, fair=True)
    store.put("a1", "a2", "a3", "a4", limit_key="a", priority=99)
    store.put("b1", "b2", limit_key="b")
    store.put("free 1", "free 2")
    order = ["a1", "b1", "free 1", "a2", "b2", "free 2", "a3", "a4"]
    worker = store.hire()
    assert [store.taken(worker=worker)[0] for _ in range(5)] == order[:5]
    assert store.taken(9, worker=worker) == order[5:]


def test_within_a_key_the_oldest_of_the_highest_priority_has_the_turn(store):
    limited(store, fair=True)
    store.put("low", limit_key="a", priority=1)
    store.put("high", "high too", limit_key="a", priority=2)
    store.put("other", limit_key="b", priority=0)
    assert store.taken(9) == ["high", "other", "high too", "low"]


def test_a_key_that_comes_back_waits_for_those_that_waited_longer(store):
    limited(store, fair=True)
    store.put(*(f"a{n}" for n in range(4)), limit_key="a")
    order = []
    for n in range(6):
        store.put(f"b{n}", limit_key="b")
        order += store.taken()
    assert order == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_turns_and_limits_hold_together_and_a_full_key_is_passed_over(store):
    limited(store, Limit(key="a", concurrency_max=1), fair=True)
    store.put("a1", "a2", limit_key="a")
    store.put("b1", "b2", "b3", limit_key="b")
    first = store.take(3)
    assert [held.id for held in first] == ["a1", "b1", "b2"]
    store.finish(first[0])
    assert store.taken(9) == ["a2", "b3"]


def test_a_queue_that_is_fair_no_more_goes_by_priority_again(store):
    limited(store, fair=True)
    store.put("a1", "a2", limit_key="a", priority=99)
    store.put("b1", "b2", limit_key="b")
    assert store.taken(2) == ["a1", "b1"]
    limited(store)
    assert store.taken(2) == ["a2", "b2"]


# ---- lanes: what waits is not looked at, and nobody is forgotten ----


def test_limits_of_keys_hold_for_what_was_ready_before_there_were_any(store):
    store.put("a1", "a2", limit_key="a")
    store.put("free")
    limited(store, Limit(key="a", concurrency_max=1))
    store.put("a3", limit_key="a", priority=99)
    assert store.taken(9) == ["a3", "free"]
    limited(store, Limit(concurrency_max=9))
    assert store.taken(9) == ["a1", "a2"]


@pytest.mark.parametrize("end", ["succeeded", "failed", "yielded", "cancelled", "lapsed"])
def test_a_key_that_was_full_has_room_again_whatever_ended_its_attempt(store, clock, end):
    limited(store, Limit(key="*", concurrency_max=1))
    store.put("a", "b", limit_key="k")
    held = store.take()[0]
    assert store.taken() == []  # its lane is closed
    if end == "cancelled":
        store.cancel(["a"])
    elif end == "lapsed":
        clock.advance(11)
        store.lapse()
        store.cancel(["a"])
    if end != "lapsed":
        store.finish(held, "succeeded" if end == "cancelled" else end)
    assert store.taken() == (["a"] if end == "yielded" else ["b"])


def test_a_delayed_task_takes_its_place_in_the_lane_of_its_key_when_it_is_due(store, clock):
    limited(store, Limit(key="*", concurrency_max=1))
    store.put("late", limit_key="k", priority=99, delay_seconds=60)
    store.put("soon", limit_key="k")
    clock.advance(61)
    assert store.taken(9) == ["late"]


def test_a_key_whose_first_tasks_went_another_way_is_not_forgotten(store):
    limited(store, Limit(key="*", concurrency_max=1))
    store.put("a", "b", "c", limit_key="k")
    store.put("other", limit_key="m")
    assert store.taken(1, free=Resources(cpu=0)) == ["a"]
    store.cancel(["b"])
    store.finish(store.hold("c"))
    store.put("d", limit_key="k")
    assert store.taken(9) == ["other"]
    store.cancel(["a"])


def test_a_lane_whose_tasks_do_not_fit_holds_up_no_other(store):
    limited(store, Limit(key="*", concurrency_max=1))
    for n in range(30):
        store.put(f"big {n}", limit_key=f"b{n}", resources=Resources(cpu=9), priority=9)
    store.put("small", limit_key="s", resources=Resources(cpu=1))
    assert store.taken(2, free=Resources(cpu=2)) == ["small"]


def test_what_is_left_of_lanes_whose_heads_do_not_fit_overtakes_nobody(store):
    limited(store, Limit(key="*", concurrency_max=2))
    for n in range(20):
        store.put(f"big {n}", limit_key=f"k{n}", resources=Resources(cpu=9), priority=99)
        store.put(f"rest {n}", limit_key=f"k{n}", resources=Resources(cpu=1), priority=1)
    store.put("middle", limit_key="m", resources=Resources(cpu=1))
    assert store.taken(2, free=Resources(cpu=2)) == ["middle", "rest 0"]


def test_nobody_has_two_turns_because_those_before_the_next_one_do_not_fit(store):
    limited(store, fair=True)
    store.put("x1", "x2", limit_key="x", resources=Resources(cpu=1), priority=99)
    for n in range(20):
        store.put(f"big {n}", limit_key=f"k{n}", resources=Resources(cpu=9))
    store.put("y1", limit_key="y", resources=Resources(cpu=1), priority=1)
    assert store.taken(2, free=Resources(cpu=2)) == ["x1", "y1"]


def test_tasks_without_a_key_take_no_second_turn_before_a_key_far_behind_had_its_first(store):
    limited(store, fair=True)
    for n in range(20):
        store.put(f"big {n}", limit_key=f"k{n}", resources=Resources(cpu=9), priority=99)
    store.put("free 1", "free 2", resources=Resources(cpu=1))
    store.put("y1", limit_key="y", resources=Resources(cpu=1), priority=1)
    small = {"free": Resources(cpu=2), "worker": store.hire()}
    assert [store.taken(**small) for _ in range(3)] == [["free 1"], ["y1"], ["free 2"]]
