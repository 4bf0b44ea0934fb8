"""What is told of a graph to somebody who has an earlier one."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.views.graph import IDENTITY, ToldGraphs


def graph(tasks, edges=(), families=None, batch=1):
    return {
        "run": "a/run1",
        "status": "running",
        "batch": batch,
        "points": ["1"],
        "families": families or {},
        "tasks": [{"id": one, "state": state} for one, state in tasks.items()],
        "groups": [],
        "edges": [edge(*one) for one in edges],
        "cut": False,
    }


def edge(source, target, state="open", output="succeeded"):
    facts = {"from": source, "to": target, "output": output, "suicide": False}
    return facts | {"state": state}


def identities(document, part):
    return {tuple(one[name] for name in IDENTITY[part]): one for one in document[part]}


def applied(known, told):
    """As a follower does it."""
    if told["since"] is None:
        return {part: identities(told, part) for part in IDENTITY}
    found = {part: dict(items) for part, items in known.items()}
    for part, names in IDENTITY.items():
        for lost in told["gone"][part]:
            key = (lost,) if len(names) == 1 else tuple(lost[name] for name in names)
            del found[part][key]
        found[part] |= identities(told, part)
    return found


def test_only_what_differs_is_told_and_what_is_gone_by_its_identity():
    graphs = ToldGraphs()
    first = graph({"a": "waiting", "b": "waiting"}, [("a", "b")], {"a": [], "b": []})
    known = graphs.told("w", first, "")
    then = graph({"a": "succeeded", "c": "waiting"}, [("a", "c")], {"a": [], "c": ["F"]}, 2)
    told = graphs.told("w", then, known["version"])
    assert [one["id"] for one in told["tasks"]] == ["a", "c"]
    assert told["edges"] == [edge("a", "c")] and told["families"] == {"c": ["F"]}
    assert told["gone"]["tasks"] == ["b"]
    assert told["gone"]["edges"] == [
        {"from": "a", "to": "b", "output": "succeeded", "suicide": False}
    ]
    assert (told["batch"], told["since"]) == (2, known["version"])


def test_a_batch_that_changes_nothing_in_it_makes_no_new_version():
    graphs = ToldGraphs()
    known = graphs.told("w", graph({"a": "waiting"}), "")
    told = graphs.told("w", graph({"a": "waiting"}, batch=9), known["version"])
    assert told["version"] == known["version"] and told["tasks"] == []


def test_of_two_edges_that_look_alike_the_last_one_counts():
    graphs = ToldGraphs()
    known = graphs.told("w", graph({}, [("a", "b", "lost"), ("a", "b", "open")]), "")
    same = graphs.told(
        "w", graph({}, [("a", "b", "lost"), ("a", "b", "open")]), known["version"]
    )
    assert same["edges"] == []
    told = graphs.told(
        "w", graph({}, [("a", "b", "lost"), ("a", "b", "true")]), same["version"]
    )
    assert told["edges"] == [edge("a", "b", "true")]


@pytest.mark.parametrize("bounds", [(1, 1_000), (1_000, 3)])
def test_what_is_remembered_is_bounded(bounds):
    graphs = ToldGraphs(*bounds)
    oldest = graphs.told("w", graph({"a": "waiting", "b": "waiting"}), "")
    graphs.told("w", graph({"a": "running", "b": "waiting"}), "")
    told = graphs.told("w", graph({"a": "running", "b": "running"}), oldest["version"])
    assert told["since"] is None and len(told["tasks"]) == 2


@pytest.mark.slow
@given(seed=st.integers(0, 2**32))
def test_followers_that_ask_now_and_then_always_have_the_graph_as_it_is(seed):
    choice = random.Random(seed)
    graphs, followers = ToldGraphs(graphs_max=4), [("", {}) for _ in range(3)]
    for _ in range(20):
        names = choice.sample("abcdef", choice.randrange(7))
        now = graph(
            {name: choice.choice(["waiting", "running"]) for name in names},
            [(one, two, choice.choice(["open", "true"])) for one in names for two in names[:2]],
        )
        for number, (since, known) in enumerate(followers):
            if choice.random() < 0.5:
                told = graphs.told("w", now, since)
                followers[number] = told["version"], (after := applied(known, told))
                assert after == {part: identities(now, part) for part in IDENTITY}
