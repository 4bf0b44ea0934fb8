"""Storing tasks that say the same but for their specs: as if each had come by itself."""

import pytest

from tests.conformance.door import new_task
from tests.conformance.together import together
from tidewheel.core.queue.limits import Limit
from tidewheel.core.queue.requests import QueueSettings
from tidewheel.core.queue.resources import Resources
from tidewheel.core.queue.retry import Exponential
from tidewheel.core.queue.submission import SubmitLimits
from tidewheel.core.queue.task import AlikeTasks
from tidewheel.errors import BadSetting, Duplicate, InvalidTask, PayloadTooLarge
from tidewheel.store.transaction import ROWS_PER_STATEMENT_MAX

ODD_SPECS = ["{}", "null", '"\\"{NULL}\\\\\\u0000ü"', "[1e400,-0.0]"]


def alike(*ids, specs=None, **said):
    said = {"handler": "h"} | said
    return AlikeTasks(new_task(ids[0], **said, spec=None), ids, specs)


def test_each_is_what_it_would_be_by_itself(store, clock):
    said = {
        "handler": "h",
        "priority": 7,
        "max_retries": 3,
        "retry": Exponential(first_seconds=2.5),
        "timeout_seconds": 5.0,
        "estimated_runtime_seconds": 9.0,
        "resources": Resources(cpu=0.5, memory_bytes=3, labels=frozenset({"x"}), nodes=2),
        "limit_key": "k",
        "tag": "t",
    }
    store.submit(alike("a", "b", **said))
    store.submit([new_task("c", **said, spec=None)])
    one, other, alone = (vars_of(store.get(name)) for name in "abc")
    assert one == other == alone
    assert one["created_at"] == one["updated_at"] == clock.now
    entries = [store.history(name, 0, 9) for name in "abc"]
    told = [[(e.at, e.signal, e.to_status, e.attempt) for e in found] for found in entries]
    assert told == [[(clock.now, None, "ready", 0)]] * 3
    assert store.verify() == []


def vars_of(view):
    return {
        name: getattr(view, name) for name in type(view).__slots__ if name not in ("id", "seq")
    }


def test_specs_come_back_letter_by_letter(store):
    ids = [f"t{n}" for n in range(len(ODD_SPECS))]
    answers = store.submit(alike(*ids, specs=ODD_SPECS, handler=None))
    assert [(one.id, one.created, one.refused) for one in answers] == [
        (name, True, None) for name in ids
    ]
    assert [store.get(name).spec_text for name in ids] == ODD_SPECS


def test_the_same_again_is_the_same_together_and_one_by_one(store):
    tasks = alike(*"abcd", specs=ODD_SPECS)
    store.submit(tasks)
    for again in (tasks, list(tasks)):
        assert [(one.created, one.refused) for one in store.submit(again)] == [
            (False, None)
        ] * 4
    more = alike(*"cde", specs=["1", ODD_SPECS[3], "2"])
    answers = store.submit(more, atomic=False)
    assert [(one.id, one.created, type(one.refused)) for one in answers] == [
        ("c", False, Duplicate),
        ("d", False, type(None)),
        ("e", True, type(None)),
    ]
    assert len(store.submit(alike("f", "f", "g"))) == 3
    assert store.listed() == ["g", "f", "e", "d", "c", "b", "a"]
    changed = [new_task("a", handler="h", spec="1")]
    assert [one.created for one in store.submit(changed, atomic=False)] == [False]


@pytest.mark.parametrize("count", [2, ROWS_PER_STATEMENT_MAX + 2])
def test_one_that_is_known_keeps_no_other_from_being_stored(store, count):
    ids = [f"{n:05}" for n in range(count)]
    store.submit(alike(ids[-1]))
    answers = store.submit(alike(*ids))
    assert [one.created for one in answers] == [True] * (count - 1) + [False]
    claimed = [held.id for held in store.take(count)]
    assert sorted(claimed) == ids
    assert store.verify() == []


def test_they_are_claimed_in_their_order_however_many_there_are(store):
    ids = [f"{n:05}" for n in range(2 * ROWS_PER_STATEMENT_MAX + 5)]
    store.submit(alike(*ids, specs=[f"[{n}]" for n in range(len(ids))]))
    claimed = store.take(len(ids))
    assert [held.id for held in claimed] == ids
    assert [held.task.spec for held in claimed] == [f"[{n}]" for n in range(len(ids))]


def test_they_wait_for_their_time_and_for_their_limits(store, clock):
    store.configure_queue("q", QueueSettings(limits=(Limit(key="k", concurrency_max=1),)))
    store.submit(alike("a", "b", limit_key="k"))
    store.submit(alike("later", "latest", delay_seconds=5.0))
    assert store.taken(9) == ["a"]
    clock.advance(5.0)
    assert store.taken(9) == ["later", "latest"]
    assert store.verify() == []


def test_what_is_refused_is_told_of_each(world):
    small = world.open(limits=SubmitLimits(payload_bytes_max=6, tasks_per_call_max=3))
    tasks = alike("a", "b", "c", specs=["1", '"üü"', '"ööö"'])
    with pytest.raises(PayloadTooLarge):
        small.submit(tasks)
    assert small.listed() == []
    answers = small.submit(tasks, atomic=False)
    assert [type(one.refused) for one in answers] == [type(None), type(None), PayloadTooLarge]
    with pytest.raises(InvalidTask):
        small.submit(alike("d", "e", priority=-1))
    with pytest.raises(BadSetting):
        small.submit(alike("d", "e", "f", "g"))
    assert small.listed() == ["b", "a"]


def test_of_clients_at_the_same_moment_one_stores_each(world):
    def submit(door):
        return [list(door.submit(alike(*(f"{n}-{k}" for k in range(50))))) for n in range(8)]

    found = together(world, submit, submit, submit)
    for answers in zip(*found, strict=True):
        assert [sum(one.created for one in each) for each in zip(*answers, strict=True)] == [
            1
        ] * 50
    assert world.open().verify() == []
