"""What a task asks of a machine, and whether it fits what a worker offers."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.core.queue.resources import (
    CPU_MAX,
    GPU_MAX,
    LABELS_MAX,
    MEMORY_BYTES_MAX,
    Resources,
    fits,
    offered_in,
    prefix_that_fits,
    resource_findings,
)

OFFERED = Resources(cpu=4, memory_bytes=8, gpu=1, labels=frozenset({"ssd", "x86"}))

amounts = st.builds(
    Resources,
    cpu=st.integers(0, 40).map(lambda tenths: tenths / 10),
    memory_bytes=st.integers(0, 10),
    gpu=st.integers(0, 2),
    labels=st.frozensets(st.sampled_from("abc")),
    nodes=st.integers(1, 4),
    exclusive=st.booleans(),
    buffer_bytes=st.integers(0, 10),
)


@pytest.mark.req("R003-36")
@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (Resources(), True),
        (OFFERED, True),
        (Resources(cpu=4.1), False),
        (Resources(memory_bytes=9), False),
        (Resources(gpu=2), False),
        (Resources(labels=frozenset({"ssd"})), True),
        (Resources(labels=frozenset({"ssd", "arm"})), False),
    ],
)
def test_a_task_fits_if_nothing_it_asks_for_is_missing(asked, answer):
    assert fits(asked, OFFERED) is answer


def test_what_is_taken_is_no_longer_free_but_labels_are_never_used_up():
    left = OFFERED - Resources(cpu=1.5, memory_bytes=3, gpu=1, labels=frozenset({"ssd"}))
    wanted = Resources(cpu=2.5, memory_bytes=5, gpu=0, labels=OFFERED.labels, idle_nodes=0)
    assert left == wanted


def test_shares_of_a_core_add_up_to_the_core():
    tenths = [Resources(cpu=0.1)] * 11
    assert prefix_that_fits(tenths, Resources(cpu=1.0)) == 10


@pytest.mark.req("R003-36")
def test_the_first_task_that_does_not_fit_ends_the_prefix():
    asked = [Resources(cpu=1), Resources(cpu=4), Resources(cpu=1)]
    assert prefix_that_fits(asked, Resources(cpu=4)) == 1


def test_all_may_fit_and_none_may_be_asked():
    assert prefix_that_fits([Resources(cpu=1)] * 3, Resources(cpu=4)) == 3
    assert prefix_that_fits([], OFFERED) == 0


@pytest.mark.slow
@given(st.lists(amounts, max_size=8), amounts)
def test_the_prefix_is_the_longest_whose_sum_fits(asked, offered):
    count = prefix_that_fits(asked, offered)
    assert count == 0 or _together(asked[:count], offered)
    assert count == len(asked) or not _together(asked[: count + 1], offered)


def _together(asked, offered):
    """By adding up, where the program takes away."""
    return (
        sum(round(one.cpu * 10) for one in asked) <= round(offered.cpu * 10)
        and sum(one.memory_bytes for one in asked) <= offered.memory_bytes
        and sum(one.gpu for one in asked) <= offered.gpu
        and sum(one.buffer_bytes for one in asked) <= offered.buffer_bytes
        and set().union(*(one.labels for one in asked)) <= offered.labels
        and max((one.nodes for one in asked), default=0) <= offered.nodes
        and not (len(asked) > 1 and any(one.exclusive for one in asked))
    )


@pytest.mark.req("R003-7")
@pytest.mark.parametrize(
    ("asked", "finding"),
    [
        (Resources(cpu=-0.5), "resources cpu is -0.5; expected 0 to 100000"),
        (Resources(cpu=math.nan), "resources cpu is nan; expected 0 to 100000"),
        (Resources(cpu=math.inf), "resources cpu is inf; expected 0 to 100000"),
        (Resources(memory_bytes=-1), "resources memory_bytes is -1; expected 0 to"),
        (Resources(memory_bytes=2**50 + 1), "resources memory_bytes is 1125899906842625;"),
        (Resources(memory_bytes=1.5), "resources memory_bytes is 1.5;"),
        (Resources(gpu=-1), "resources gpu is -1; expected 0 to 10000"),
        (Resources(gpu=10_001), "resources gpu is 10001; expected 0 to 10000"),
        (Resources(gpu=0.5), "resources gpu is 0.5;"),
        (Resources(idle_nodes=0), "only workers have idle_nodes; use nodes for a task"),
        (Resources(labels=frozenset(map(str, range(33)))), "resources has 33 labels;"),
        (Resources(labels=frozenset({" "})), "label ' ' is not accepted"),
        (Resources(labels=frozenset({"a\0b"})), "label 'a\\x00b' is not"),
        (Resources(labels=frozenset({"x" * 257})), "label 'xxx"),
    ],
)
def test_requests_that_no_machine_can_mean_are_refused(asked, finding):
    findings = resource_findings(asked)
    assert len(findings) == 1
    assert findings[0].startswith(finding)


def test_requests_at_their_bounds_are_accepted():
    labels = frozenset(f"label {n}" for n in range(LABELS_MAX))
    most = Resources(cpu=CPU_MAX, memory_bytes=MEMORY_BYTES_MAX, gpu=GPU_MAX, labels=labels)
    assert resource_findings(most) == []
    assert resource_findings(Resources()) == []


def test_all_findings_come_at_once():
    assert len(resource_findings(Resources(cpu=-1, memory_bytes=-1, gpu=-1))) == 3


@pytest.mark.slow
@pytest.mark.req("R004-20", "R004-21")
@given(
    running=st.lists(st.builds(Resources, nodes=st.integers(1, 4), exclusive=st.booleans())),
    order=st.randoms(use_true_random=False),
)
def test_what_is_idle_does_not_depend_on_who_came_first(running, order):
    free, together = Resources(nodes=6), []
    for one in running:
        if fits(one, free):
            together.append(one)
            free = free - one
    alone = sum(one.nodes for one in together if one.exclusive)
    shared = max((one.nodes for one in together if not one.exclusive), default=0)
    assert (free.nodes, free.idle) == (6 - alone, 6 - alone - shared)
    order.shuffle(together)
    again = Resources(nodes=6)
    for one in together:
        again = again - one
    assert (again.nodes, again.idle) == (free.nodes, free.idle)


def test_what_a_worker_allows_one_queue_it_offers_to_tasks_of_that_queue_alone():
    labels = frozenset({"ssd", "allow:ports", "allow:run:a/run1:host-network", "allow:b:build"})
    offered = Resources(labels=labels)
    asked = Resources(labels=frozenset({"allow:host-network", "allow:ports"}))
    assert fits(asked, offered_in("run:a/run1", offered))
    assert not fits(asked, offered_in("run:a", offered))
    assert not fits(asked, offered_in("b", offered))
    assert offered_in("other", offered) is offered


def test_a_task_asks_for_what_is_allowed_and_not_for_what_one_queue_is():
    assert resource_findings(Resources(labels=frozenset({"allow:ports"}))) == []
    (finding,) = resource_findings(Resources(labels=frozenset({"allow:trusted:ports"})))
    assert "a task asks for allow:WHAT" in finding
