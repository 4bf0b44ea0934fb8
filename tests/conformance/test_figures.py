"""What a store can say about itself, for machines that watch it."""

import pytest

from tests.conformance.run_steps import Driver


@pytest.fixture(params=("memory", "sqlite", "postgres"))
def kind(request):
    """Only a server asks, and it has the store itself."""
    return request.param


def pools(store):
    return {one.label: one.value for one in store.figures() if one.name == "pool"}


def test_the_pool_of_each_run_is_counted(store):
    first, second = Driver.of(store, "one"), Driver.of(store, "two")
    assert pools(store) == {}
    first.submit("a", "b")
    second.submit("a")
    assert pools(store) == {str(first.run.number): 2.0, str(second.run.number): 1.0}
    first.over("a", "b")
    assert pools(store) == {str(second.run.number): 1.0}


def test_the_database_is_measured_in_its_own_words(store, kind):
    names = {one.name for one in store.figures()} - {"pool"}
    assert (
        names
        == {
            "memory": set(),
            "sqlite": {"file_bytes", "free_bytes", "wal_bytes"},
            "postgres": {"dead_rows", "connections", "oldest_transaction_seconds"},
        }[kind]
    )
    assert all(one.value >= 0.0 for one in store.figures())


def test_attempts_of_others_take_no_place_among_those_that_one_may_see(store):
    """L5."""
    for number, queue in enumerate(
        ("mine/q", "mine/q", "zebra", "zebra", "run:mine/1", "zebra")
    ):
        store.put(f"t{number}", queue=queue, name=f"n{number}")
        store.finish(store.hold(f"t{number}", store.hire("w", queues=(queue,))), "succeeded")

    def seen(count, *names):
        return [one.name for one in store.ended_attempts(count, names or None)]

    assert seen(3) == ["n5", "n4", "n3"]
    assert seen(1, "mine") == ["n4"]
    assert seen(2, "mine") == ["n4", "n1"]
    assert seen(9, "mine") == ["n4", "n1", "n0"]
    assert seen(9, "nobody") == []
