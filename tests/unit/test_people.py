"""What a person who signed in may do: rules add up as pairs of scopes and names."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.core.queue.access import (
    INCLUDES,
    Identity,
    Scope,
    allowed_scopes,
    covers,
    workflow_name,
)
from tidewheel.core.queue.people import AccessRule, grant_for, outline, rules_for


def covers_workflow(grant, name):
    return covers(grant.names, workflow_name(name))


ADA = Identity(person="ada@example.org", source="oidc", groups=("team-a", "all"))


def rule(scopes, names, **whom):
    whom = whom or {"group": "all"}
    return AccessRule(scopes=frozenset(map(Scope, scopes.split())), names=names, **whom)


def test_a_rule_is_for_one_person_or_for_the_members_of_a_group():
    rules = [
        rule("read", ("*",), group="all"),
        rule("submit", ("team-a/*",), group="team-a"),
        rule("submit", ("team-b/*",), group="team-b"),
        rule("operate", ("x",), person="ada@example.org"),
        rule("operate", ("y",), person="bob@example.org"),
        rule("admin", ("*",), person="team-a"),
        rule("admin", ("*",), group="ada@example.org"),
    ]
    assert rules_for(rules, ADA) == (rules[0], rules[1], rules[3])


def test_who_reads_all_and_submits_for_one_team_does_not_submit_for_all():
    rules = [rule("read", ("*",)), rule("submit operate", ("team-a/*",))]
    submits = grant_for(rules, (Scope.SUBMIT,))
    assert covers_workflow(submits, "team-a/x") and not covers_workflow(submits, "team-b/x")
    reads = grant_for(rules, (Scope.READ,))
    assert covers_workflow(reads, "team-b/x")
    assert allowed_scopes(reads) == {Scope.READ}
    assert grant_for(rules, (Scope.ADMIN,)) is None


def test_an_admin_who_is_in_other_groups_stays_an_admin():
    rules = [rule("read", ("a/*",)), rule("admin", ("*",)), rule("submit", ("b",))]
    assert allowed_scopes(grant_for(rules, (Scope.READ,))) == frozenset(Scope)


def test_what_is_shown_has_all_scopes_and_names():
    shown = outline([rule("read", ("a",)), rule("submit", ("b",))])
    assert shown.scopes == {Scope.READ, Scope.SUBMIT}
    assert shown.names == ("a", "b")


def test_a_rule_for_nobody_cannot_be_written_down():
    with pytest.raises(AssertionError):
        AccessRule(scopes=frozenset({Scope.READ}), names=("a",))


SCOPES = st.frozensets(st.sampled_from(Scope), min_size=1)
NAMES = st.lists(st.sampled_from(["*", "a*", "a/*", "a/x", "b"]), min_size=1).map(tuple)
RULES = st.lists(st.builds(AccessRule, scopes=SCOPES, names=NAMES, group=st.just("all")))


@given(RULES, st.lists(st.sampled_from(Scope), min_size=1, max_size=2))
def test_nothing_is_allowed_that_no_single_rule_allows(rules, wanted):
    found = grant_for(rules, wanted)
    pairs = [(frozenset().union(*(INCLUDES[s] for s in one.scopes)), one) for one in rules]
    if found is None:
        assert not any(scope in scopes for scope, (scopes, _) in product(wanted, pairs))
        return
    assert not allowed_scopes(found).isdisjoint(wanted)
    for name, scope in product(["a", "a/x", "a/y", "b", "c"], allowed_scopes(found)):
        if covers_workflow(found, name):
            assert any(
                scope in scopes and covers_workflow(grant_for([one], one.scopes), name)
                for scopes, one in pairs
            )
