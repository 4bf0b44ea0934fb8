"""When a task may run: how its edges stand, and circles among tasks."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.core.queue.dependency import (
    EdgeState,
    edge_state,
    find_cycle,
    status_from_edges,
)
from tidewheel.core.queue.status import Status

OPEN, MET, DEAD = EdgeState.OPEN, EdgeState.MET, EdgeState.DEAD

# How an edge for an output (row) stands while its parent has a status (column). The parent has
# made the output "made" and no other.
EDGES = """
               waiting ready running cancelling succeeded failed cancelled
    succeeded  open    open  open    dead       met       dead   dead
    failed     open    open  open    dead       dead      met    dead
    cancelled  open    open  open    open       dead      dead   met
    finished   open    open  open    dead       met        met    dead
    made       met     met   met     met        met       met    met
    other      open    open  open    dead       dead      dead   dead
    running    open    open  open    dead       dead      dead   dead
"""


def edge_cases():
    columns, *rows = (line.split() for line in EDGES.strip().splitlines())
    return [
        (output, status, state)
        for output, *states in rows
        for status, state in zip(columns, states, strict=True)
    ]


@pytest.mark.parametrize(("output", "status", "state"), edge_cases())
def test_an_edge_stands_as_its_parent_does(output, status, state):
    assert edge_state(output, Status(status), {"made"}) == state


@pytest.mark.parametrize("status", [Status.READY, Status.RUNNING, Status.CANCELLED])
@pytest.mark.parametrize("output", ["succeeded", "failed", "finished"])
def test_a_job_cannot_claim_an_end_as_its_output(output, status):
    assert edge_state(output, status, {output}) is not MET


@pytest.mark.req("R003-3", "R003-16")
@pytest.mark.parametrize(
    ("states", "armed", "status"),
    [
        ([], True, "ready"),
        ([], False, "waiting"),
        ([OPEN], True, "waiting"),
        ([MET, OPEN], True, "waiting"),
        ([MET, MET], True, "ready"),
        ([MET], False, "ready"),
        ([MET, DEAD, OPEN], True, "cancelled"),
        ([DEAD], False, "cancelled"),
    ],
)
def test_a_task_begins_where_its_edges_say(states, armed, status):
    assert status_from_edges(states, armed=armed) == status


@pytest.mark.req("R003-26")
@pytest.mark.parametrize(
    ("children", "cycle"),
    [
        ({}, None),
        ({"a": ["b"], "b": []}, None),
        ({"a": ["a"]}, ["a", "a"]),
        ({"a": ["b"], "b": ["a"]}, ["a", "b", "a"]),
        ({"x": ["a"], "a": ["b"], "b": ["c"], "c": ["a"]}, ["a", "b", "c", "a"]),
        ({"a": ["b", "c"], "b": ["d"], "c": ["d"]}, None),
        ({"a": ["b"], "c": ["b", "c"]}, ["c", "c"]),
    ],
)
def test_a_circle_is_named_by_its_path(children, cycle):
    assert find_cycle(children) == cycle


def test_depth_is_no_obstacle():
    chain = {str(n): [str(n + 1)] for n in range(100_000)}
    assert find_cycle(chain) is None
    assert len(find_cycle(chain | {"100000": ["0"]}) or ()) == 100_002


names = st.sampled_from("abcdef")
graphs = st.dictionaries(names, st.lists(names, max_size=4), max_size=6)


@pytest.mark.slow
@given(graphs)
def test_a_circle_is_found_exactly_where_taking_leaves_away_gets_stuck(children):
    cycle = find_cycle(children)
    assert (cycle is not None) == _gets_stuck(children)
    if cycle is not None:
        assert cycle[0] == cycle[-1]
        assert len(set(cycle[:-1])) == len(cycle) - 1
        assert all(b in children[a] for a, b in pairwise(cycle))


def _gets_stuck(children):
    """Whether some tasks can never be taken away because each has a child that is left."""
    left = {name: set(below) for name, below in children.items()}
    while leaves := [name for name, below in left.items() if not below & left.keys()]:
        for name in leaves:
            del left[name]
    return bool(left)
