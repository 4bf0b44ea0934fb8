"""The order of ancestors, compared with the one that Python gives to classes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.formats.flow_cylc.families import ROOT, arrange


@st.composite
def hierarchies(draw):
    """Each namespace inherits from some of those before it."""
    parents = {ROOT: ()}
    for number in range(draw(st.integers(1, 8))):
        earlier = [name for name in parents if name != ROOT]
        chosen = (
            draw(st.lists(st.sampled_from(earlier), unique=True, max_size=3)) if earlier else []
        )
        parents[f"n{number}"] = tuple(chosen) or (ROOT,)
    return parents


def python_order(parents: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...] | None]:
    """None where Python refuses the class; those that inherit from it are not asked."""
    classes: dict[str, type] = {}
    orders: dict[str, tuple[str, ...] | None] = {}
    for name, above in parents.items():
        if any(parent not in classes for parent in above):
            continue
        try:
            classes[name] = type(name, tuple(classes[parent] for parent in above), {})
        except TypeError:
            orders[name] = None
        else:
            orders[name] = tuple(one.__name__ for one in classes[name].__mro__[:-1])
    return orders


@pytest.mark.slow
@given(hierarchies())
def test_ancestors_are_ordered_as_python_orders_classes(parents):
    families, problems = arrange(parents, {})
    refused = {problem.name for problem in problems}
    for name, order in python_order(parents).items():
        if order is None:
            assert name in refused
            assert families.lineages[name] == (name, ROOT)
        else:
            assert families.lineages[name] == order


@pytest.mark.slow
@given(hierarchies())
def test_a_family_has_every_task_that_has_it_among_its_ancestors(parents):
    families, _ = arrange(parents, {})
    for family, members in families.members.items():
        for name, lineage in families.lineages.items():
            is_task_below = family in lineage[1:] and not families.is_family(name)
            assert (name in members) == is_task_below


def test_a_circle_is_named_and_cut():
    families, problems = arrange({ROOT: (), "a": ("b",), "b": ("c",), "c": ("a",)}, {})
    assert [problem.message for problem in problems] == [
        "it inherits from itself: a -> b -> c -> a"
    ]
    assert families.lineages["a"] == ("a", "b", "c", ROOT)


def test_too_many_generations_are_refused():
    parents = {ROOT: (), **{f"n{n}": (f"n{n + 1}",) for n in range(300)}, "n300": (ROOT,)}
    _, problems = arrange(parents, {})
    assert problems
    assert "more than 100 ancestors" in problems[0].message
