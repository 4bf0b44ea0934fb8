"""Which scope includes which, and what a glob means."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.core.operator.blocks import BlockCondition, NeedView
from tidewheel.core.operator.definition import code_queue, is_run_name
from tidewheel.core.operator.views import is_of_others
from tidewheel.core.queue.access import (
    Grant,
    NewToken,
    Scope,
    Served,
    TokenKind,
    TokenView,
    allowed_scopes,
    covers,
    covers_served,
    grant_of,
    matches,
    names_for,
    narrowed,
    queue_name,
    run_name,
    token_findings,
    workflow_name,
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
        allowed = allowed_scopes(Grant(scopes=frozenset({scope}), names=("*",)))
        assert allowed == (set(Scope) if scope is Scope.ADMIN else {scope, Scope.READ})
    assert allowed_scopes(Grant(scopes=frozenset(), names=())) == frozenset()


# What there is of two teams, by kind.
THINGS = {
    "queue team-a": queue_name("team-a"),
    "queue team-a/gpu": queue_name("team-a/gpu"),
    "queue team-ab": queue_name("team-ab"),
    "queue of a run": queue_name("run:team-a/nightly/run3"),
    "queue of its code": queue_name("run:team-a/nightly/run3/code"),
    "run": run_name("team-a/nightly/run3"),
    "run with a name of its own": run_name("PB-1"),
    "workflow": workflow_name("team-a/nightly"),
    "object": workflow_name("team-a/raw"),
    "run of another": run_name("team-b/nightly/run3"),
    "queue of another": queue_name("team-b"),
}
OF_RUNS = {"queue of a run", "queue of its code", "run"}


@pytest.mark.parametrize(
    ("pattern", "covered"),
    [
        ("*", set(THINGS)),
        (
            "team-a",
            OF_RUNS | {"queue team-a", "queue team-a/gpu", "workflow", "object"},
        ),
        ("team-a/*", OF_RUNS | {"queue team-a/gpu", "workflow", "object"}),
        ("team-a/nightly/run3", OF_RUNS),
        ("queue:team-a", {"queue team-a"}),
        ("queue:*", {"queue team-a", "queue team-a/gpu", "queue team-ab", "queue of another"}),
        ("run:team-a/nightly/run3", OF_RUNS),
        ("run:team-a/*", OF_RUNS | {"workflow", "object"}),
        ("workflow:team-a/nightly", OF_RUNS | {"workflow"}),  # L3: whatever it is a run of
        ("PB-*", {"run with a name of its own"}),
        ("nightly", set()),
    ],
)
def test_a_pattern_covers_a_name_of_any_kind_and_what_is_named_under_it(pattern, covered):
    """H5, M4, S6."""
    assert {what for what, name in THINGS.items() if covers((pattern,), name)} == covered


# Tokens of earlier versions had a list of queues and one of workflows; None: not given.
@pytest.mark.parametrize(
    ("queues", "workflows", "names"),
    [
        (None, None, ("*",)),
        (("*",), ("*",), ("*",)),
        (("ci-*",), None, ("queue:ci-*",)),
        (("ci-*",), ("*",), ("queue:ci-*",)),  # H5: it was for all workflows
        (("run:*", "default"), None, ("queue:default", "run:*")),
        (("run:wfa*",), ("wfa*",), ("workflow:wfa*",)),
        (("run:wfa*",), ("wf*",), ("workflow:wfa*",)),
        (("run:b/*",), ("b",), ("workflow:b",)),
        (("run:b/run*",), ("b",), ("run:b/run*",)),
        (("run:wfa*",), ("wfab",), ("workflow:wfab",)),
        (("run:b/run3",), ("*",), ("run:b/run3",)),
        (("run:b/run3",), ("c",), ()),
        (None, ("wfa*",), ("workflow:wfa*",)),
        (("*",), ("wfa*",), ("queue:*", "workflow:wfa*")),
        (("qa",), ("wfa*",), ("queue:qa",)),  # H2: it operated runs in queues of others
        (("*",), (), ("queue:*",)),
    ],
)
def test_two_lists_become_patterns_for_no_more_than_both_said(queues, workflows, names):
    """S6."""
    assert names_for(queues, workflows) == names


@pytest.mark.parametrize(
    ("names", "other", "both"),
    [
        (None, ("team-a",), ("team-a",)),
        (("*",), ("team-a", "queue:ci"), ("team-a", "queue:ci")),
        (("team-a",), ("team-a/x", "team-b"), ("team-a/x",)),
        (("team-a/x",), ("team-a",), ("team-a/x",)),
        (("workflow:a",), ("a",), ("workflow:a",)),
        (("workflow:a",), ("run:a",), ("workflow:a",)),
        (("workflow:a",), ("queue:a",), ()),
        (None, None, None),
        (("workflow:a",), ("workflow:*",), ("workflow:a",)),
        (("run:a/*",), ("a",), ("run:a/*",)),
        (("queue:ci-1",), ("ci-*",), ("queue:ci-1",)),
        (("ci-1",), ("queue:ci-*",), ()),
        (("a",), ("b",), ()),
    ],
)
def test_what_two_tokens_see_together_is_no_more_than_each_sees(names, other, both):
    assert narrowed(names, other) == both
    for name in THINGS.values():
        if both is not None and covers(both, name):
            assert covers(other, name) and (names is None or covers(names, name))


PATTERNS = st.sampled_from(
    ["*", "a", "a*", "a/b", "b", "queue:a*", "queue:a", "run:a", "run:a/b", "workflow:a"]
)


@given(
    names=st.lists(PATTERNS, max_size=3).map(tuple),
    other=st.lists(PATTERNS, max_size=3).map(tuple),
    text=st.sampled_from(["a", "ab", "a/b", "a/b/c", "b", "ab/c"]),
    kind=st.sampled_from([queue_name, run_name, workflow_name]),
)
def test_what_is_narrowed_is_never_wider_than_either(names, other, text, kind):
    name = kind(text)
    if covers(narrowed(names, other), name):
        assert covers(names, name) and covers(other, name)


PARTS = st.lists(st.sampled_from(["a", "b", "ab", "run1", "code", "*"]), min_size=1, max_size=4)
NAMES = PARTS.map("/".join)
KINDS = st.sampled_from(["", "queue:", "run:", "workflow:"])


@given(kind=KINDS, glob=st.text("ab/*", max_size=6) | NAMES, run=NAMES.filter(is_run_name))
def test_who_covers_the_name_of_a_run_covers_its_queue_and_nobody_else_does(kind, glob, run):
    """L3: a run belongs to whoever covers its name, whatever workflow it is a run of."""
    pattern = (f"{kind}{glob}",)
    is_covered = covers(pattern, run_name(run))
    assert covers(pattern, queue_name(f"run:{run}")) == is_covered
    code = covers(pattern, queue_name(code_queue(run, f"run:{run}")))
    assert code or not is_covered
    if kind == "workflow:":
        assert code == is_covered
    if kind == "queue:":
        assert not is_covered


@given(kind=KINDS, glob=st.text("ab/*", max_size=6) | NAMES, name=NAMES, below=NAMES)
def test_a_pattern_for_all_things_covers_whatever_is_named_under_a_name(
    kind, glob, name, below
):
    pattern = (f"{kind}{glob}",)
    if kind in ("", "run:") and covers(pattern, run_name(name)):
        assert covers(pattern, run_name(f"{name}/{below}"))
        assert covers(pattern, workflow_name(f"{name}/{below}"))


def test_no_run_is_called_as_the_queue_for_the_code_of_another():
    """L3: `run:a/code` would be the queue of both."""
    assert not is_run_name("a/code")
    assert is_run_name("code") and is_run_name("a/code/run1")


GLOBS = st.sampled_from(["*", "a*", "a", "run:*", "run:a*", "run:a/*", "run:a/run1", "run:ab*"])


@given(
    queues=st.lists(GLOBS, min_size=1, max_size=3).map(tuple),
    workflows=st.lists(st.sampled_from(["*", "a", "a*", "ab", "b"]), max_size=2).map(tuple),
    run=st.sampled_from(["a/run1", "a/run2", "ab/run1", "b/run1", "a/x/run1", "a"]),
    queue=st.sampled_from(["a", "ab", "b", "r"]),
)
def test_an_old_token_is_never_for_more_than_it_was(queues, workflows, run, queue):
    """S6: by the old rule, a queue of a run needed both lists, a run its workflow."""
    now, workflow = names_for(queues, workflows), run.rpartition("/")[0] or run
    of_workflow = any(matches(one, workflow) for one in workflows)
    # What is named under a plain workflow counts as its own now, and a run that is called as a
    # workflow has its queue with it.
    of_workflow |= any(run.startswith(f"{one}/") for one in workflows)
    names = (f"run:{run}", f"run:{run}/run1")
    of_queue = any(matches(one, name) for one in queues for name in names)
    if covers(now, queue_name(f"run:{run}")):
        assert of_workflow and of_queue
    if covers(now, run_name(run)):
        assert of_workflow
    assert covers(now, queue_name(queue)) == any(matches(one, queue) for one in queues)


def view(**times):
    known = dict.fromkeys(("created_at", "expires_at", "used_at", "revoked_at"))
    return TokenView(
        number=1,
        kind=TokenKind.BEARER,
        parent=None,
        name="n",
        digest="0" * 64,
        grant=Grant(scopes=frozenset({Scope.READ}), names=("*",)),
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
        ({"names": ()}, "it is for 0 names"),
        ({"names": ("a\n",)}, "names"),
        ({"scopes": (Scope.ADMIN,), "names": ("a",)}, "for everything"),
    ],
)
def test_what_is_wrong_with_a_new_token_is_said(changed, said):
    given = {"name": "n", "scopes": (Scope.READ,), "names": ("*",)} | changed
    grant = Grant(scopes=frozenset(given["scopes"]), names=given["names"])
    new = NewToken(
        name=given["name"], digest="", grant=grant, lasts_seconds=given.get("lasts_seconds")
    )
    assert said in "; ".join(token_findings(new))


def test_only_an_admin_s_token_is_for_everything_unless_it_says_so():
    """H5."""
    assert grant_of([Scope.ADMIN]).names == ("*",)
    assert grant_of([Scope.SUBMIT]).names == ()
    assert grant_of([Scope.SUBMIT], ("team-a",), ("ci",)).names == ("team-a", "queue:ci")


@pytest.mark.parametrize(
    ("names", "pattern", "covered"),
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
        (("team-a",), "run:team-a/*", True),
        (("team-a",), "team-a*", False),
        (("workflow:mine",), "run:*", True),  # each claim is judged by its queue
        (("workflow:mine",), "*", False),
    ],
)
def test_a_grant_covers_a_pattern_if_one_glob_covers_all_its_queues(names, pattern, covered):
    """S6."""
    assert covers_served(names, pattern) is covered


@pytest.mark.slow
@given(glob=st.text("ab*", max_size=6), pattern=st.text("ab*", max_size=6), data=st.data())
def test_whatever_a_covered_pattern_stands_for_its_glob_covers(glob, pattern, data):
    if covers_served((glob,), pattern):
        parts = pattern.split("*")
        filled = parts[0] + "".join(
            data.draw(st.text("abc", max_size=3)) + part for part in parts[1:]
        )
        assert covers((glob,), queue_name(filled))


def test_a_worker_serves_queues_by_name_and_by_pattern():
    served = Served(["a", "run:x*"])
    assert "a" in served and "run:xy" in served
    assert "b" not in served and "run:a" not in served


@pytest.mark.parametrize(
    ("names", "text", "refused"),
    [
        (None, "zebra/run1", False),
        (("mine",), "zebra/run1", True),
        (("mine",), "mine/run1", False),
        (("mine",), "17", False),  # a number tells no name
        ((), "mine", True),
    ],
)
def test_what_was_asked_for_alone_says_whether_it_is_another_s(names, text, refused):
    assert is_of_others(names, text) is refused


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (None, "PB-1 to be complete (it has not begun)"),
        (("PB-1",), "PB-1 to be complete (it has not begun)"),
        (("PB-2",), "another block, which you may not see, to be complete"),
    ],
)
def test_of_a_block_that_is_not_covered_no_more_is_told_than_what_it_is_needed_for(names, told):
    facts = {"condition": BlockCondition.COMPLETE, "status": "created"}
    need = NeedView(run=2, parent="PB-1", **facts, begun=False, going=True)
    assert str(need.told_to(names)) == told
