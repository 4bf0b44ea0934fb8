"""Which scope includes which, and what a glob means."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.core.tasks.access import (
    Grant,
    Scope,
    allowed_scopes,
    covers_queue,
    covers_workflow,
    matches,
)

PIECES = st.text(alphabet="ab*", max_size=8)


@given(glob=PIECES, text=st.text(alphabet="ab", max_size=10))
def test_a_star_stands_for_any_text_and_nothing_else_does(glob, text):
    pattern = "".join(".*" if letter == "*" else re.escape(letter) for letter in glob)
    assert matches(glob, text) == bool(re.fullmatch(pattern, text))


@pytest.mark.parametrize("glob", ["[ab]", "a?", "a.c", "A"])
def test_letters_that_mean_something_elsewhere_mean_themselves(glob):
    assert matches(glob, glob)
    assert not matches(glob, "a") and not matches(glob, "ab") and not matches(glob, "abc")


def test_every_scope_includes_reading_and_admin_everything():
    for scope in Scope:
        allowed = allowed_scopes(Grant(scopes=frozenset({scope})))
        assert allowed == (set(Scope) if scope is Scope.ADMIN else {scope, Scope.READ})
    assert allowed_scopes(Grant(scopes=frozenset())) == frozenset()


def test_a_grant_is_for_its_queues_and_its_workflows():
    grant = Grant(scopes=frozenset({Scope.READ}), queues=("a*", "b"), workflows=("night*",))
    assert [covers_queue(grant, queue) for queue in ("a", "ab", "b", "bb")] == [1, 1, 1, 0]
    assert covers_workflow(grant, "nightly") and not covers_workflow(grant, "daily")
