"""Which scope includes which, and what a glob means."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.core.queue.access import (
    Grant,
    NewToken,
    Scope,
    Served,
    TokenKind,
    TokenView,
    allowed_scopes,
    covers_pattern,
    covers_queue,
    covers_workflow,
    grant_of,
    matches,
    token_findings,
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


def test_the_queue_of_a_run_needs_its_workflow_as_well():
    grant = Grant(scopes=frozenset({Scope.READ}), workflows=("nightly",))
    assert covers_queue(grant, "run:nightly/run3") and covers_queue(grant, "run:nightly")
    assert not covers_queue(grant, "run:daily/run1")
    assert covers_queue(grant, "anything else")


@pytest.mark.parametrize(
    ("queues", "workflows", "allowed"),
    [
        (None, None, (("*",), ("*",))),
        (("ci-*",), None, (("ci-*",), ())),
        (("run:*", "default"), None, (("run:*", "default"), ("*",))),
        (("run:wfa*", "run:b/run*", "run:b/x"), None, (None, ("wfa*", "b"))),
        (("*",), None, (("*",), ("*",))),
        (None, ("wfa*",), (("run:*",), ("wfa*",))),
        (("ci-*",), ("wfa*",), (("ci-*",), ("wfa*",))),
        (("ci-*",), (), (("ci-*",), ())),
    ],
)
def test_what_a_token_leaves_out_is_no_more_than_what_it_names(queues, workflows, allowed):
    """S6."""
    grant = grant_of([Scope.SUBMIT], queues, workflows)
    assert (grant.queues, grant.workflows) == (allowed[0] or queues, allowed[1])
    new = NewToken(name="n", digest="", grant=grant)
    assert token_findings(new) == []


def view(**times):
    known = dict.fromkeys(("created_at", "expires_at", "used_at", "revoked_at"))
    return TokenView(
        number=1,
        kind=TokenKind.BEARER,
        parent=None,
        name="n",
        digest="0" * 64,
        grant=Grant(scopes=frozenset({Scope.READ})),
        **(known | times),
    )


def test_a_token_is_valid_until_it_ends_or_is_revoked():
    assert view().is_valid(5.0)
    assert view(expires_at=6.0).is_valid(5.0)
    assert not view(expires_at=5.0).is_valid(5.0)
    assert not view(revoked_at=1.0).is_valid(5.0)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"name": " "}, "name is empty"),
        ({"scopes": ()}, "no scope"),
        ({"lasts_seconds": float("inf")}, "lasts"),
        ({"queues": ()}, "queues has 0 globs"),
        ({"workflows": ("a\n",)}, "workflows"),
        ({"scopes": (Scope.ADMIN,), "queues": ("a",)}, "every queue"),
    ],
)
def test_what_is_wrong_with_a_new_token_is_said(changed, said):
    given = {"name": "n", "scopes": (Scope.READ,), "queues": ("*",), "workflows": ("*",)}
    given |= changed
    grant = Grant(
        scopes=frozenset(given["scopes"]), queues=given["queues"], workflows=given["workflows"]
    )
    new = NewToken(
        name=given["name"], digest="", grant=grant, lasts_seconds=given.get("lasts_seconds")
    )
    assert said in "; ".join(token_findings(new))


@pytest.mark.parametrize(
    ("queues", "pattern", "covered"),
    [
        (("*",), "*", True),
        (("*",), "run:*", True),
        (("run:*",), "run:*", True),
        (("run:*",), "run:nightly/*", True),
        (("run:*",), "*", False),
        (("run:*",), "r*", False),
        (("run:*",), "*run:*", False),
        (("run:nightly/*",), "run:*", False),
        (("run:nightly/*",), "run:nightly*", False),
        (("a*z",), "a*z", True),
        (("a*z",), "a*", False),
        (("a*z",), "*z", False),
        (("a*z",), "ab*yz", True),
        (("a*b*c",), "a*c", False),
        (("a", "b"), "*", False),
        (("a*", "*z"), "a*z", True),
    ],
)
def test_a_grant_covers_a_pattern_if_one_glob_covers_all_its_queues(queues, pattern, covered):
    """S6."""
    grant = Grant(scopes=frozenset({Scope.WORKER}), queues=queues)
    assert covers_pattern(grant, pattern) is covered


@pytest.mark.slow
@given(glob=st.text("ab*", max_size=6), pattern=st.text("ab*", max_size=6), data=st.data())
def test_whatever_a_covered_pattern_stands_for_its_glob_covers(glob, pattern, data):
    grant = Grant(scopes=frozenset({Scope.WORKER}), queues=(glob,))
    if covers_pattern(grant, pattern):
        parts = pattern.split("*")
        filled = parts[0] + "".join(
            data.draw(st.text("abc", max_size=3)) + part for part in parts[1:]
        )
        assert covers_queue(grant, filled)


def test_news_of_several_queues_concern_a_worker_that_serves_one_of_them():
    by_name, by_pattern = Served(["a", "b"]), Served(["run:x*"])
    assert by_name.any_of(frozenset({"b", "z"}))
    assert by_pattern.any_of(frozenset({"z", "run:xy"}))
    assert not by_name.any_of(frozenset({"z"}))
    assert not by_pattern.any_of(frozenset({"run:a"}))
