"""Decides what a person who signed in may do: rules for people and groups, and how they add up.

A rule gives scopes for names. The rules that match a person add up as pairs: who may submit for
``team-a/*`` and read ``*`` may not submit for ``*``. A token's ``Grant`` holds one pair, so for
each request the rules that allow it are joined: their names together, with those scopes only
that each of them gives. Nothing is allowed for a name that no single rule allows.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidewheel.core.queue.access import (
    ANY_TEXT,
    EVERYTHING,
    INCLUDES,
    NAMES_MAX,
    Grant,
    Identity,
    Scope,
    TokenKind,
    TokenView,
    is_within,
)
from tidewheel.lazy_dataclasses import dataclass

_Pair = tuple[frozenset[Scope], tuple[str, ...]]

# Of one person at one time: one more ends the oldest.
SESSIONS_MAX = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRule:
    """Gives scopes for names to one person or to the members of one group; exactly one of
    ``person`` and ``group`` is set."""

    scopes: frozenset[Scope]
    names: tuple[str, ...]  # patterns, as tokens have them
    person: str | None = None
    group: str | None = None

    def __post_init__(self) -> None:
        assert (self.person is None) != (self.group is None), "for one person or for one group"
        assert self.scopes and self.names, "a rule gives something"

    def is_for(self, identity: Identity) -> bool:
        """Says whether the rule is for this person or for one of the person's groups."""
        return self.person == identity.person or self.group in identity.groups


def rules_for(rules: Iterable[AccessRule], identity: Identity) -> tuple[AccessRule, ...]:
    """Returns the rules that are for a person, in their order."""
    return tuple(rule for rule in rules if rule.is_for(identity))


def grant_for(rules: Iterable[AccessRule], wanted: Iterable[Scope]) -> Grant | None:
    """Returns what counts for a request that needs one of some scopes; None if no rule gives
    any of them. Of several scopes the first that a rule gives is taken, so who would be content
    with another asks again for that."""
    given = _without_included([(_included(rule), rule.names) for rule in rules])
    for scope in wanted:
        chosen = [(scopes, names) for scopes, names in given if scope in scopes]
        if chosen:
            common = frozenset.intersection(*(scopes for scopes, _ in chosen))
            return _grant(common, (name for _, names in chosen for name in names))
    return None


def stored_grant(rules: Iterable[AccessRule]) -> Grant:
    """Returns what is stored with a person's token: reading only, since at each request the
    rules are asked again; of very many names the first ones."""
    return only_reading(outline(rules))


def only_reading(grant: Grant) -> Grant:
    """Returns as much of a grant as is stored with a token of a person."""
    return Grant(scopes=frozenset({Scope.READ}), names=grant.names[:NAMES_MAX])


def outline(rules: Iterable[AccessRule]) -> Grant:
    """Returns all scopes and all names of some rules, to be shown; it decides nothing, because
    not every scope is for every name."""
    shown = tuple(rules)
    scopes = (scope for rule in shown for scope in rule.scopes)
    return _grant(scopes, (name for rule in shown for name in rule.names))


def _grant(scopes: Iterable[Scope], names: Iterable[str]) -> Grant:
    given = tuple(dict.fromkeys(names))
    return Grant(scopes=frozenset(scopes), names=EVERYTHING if ANY_TEXT in given else given)


def _included(rule: AccessRule) -> frozenset[Scope]:
    return frozenset().union(*(INCLUDES[scope] for scope in rule.scopes))


def _without_included(given: list[_Pair]) -> list[_Pair]:
    """Returns the pairs less those of which another one gives everything, too: an admin who may
    also read something stays an admin where reading is enough."""
    kept: list[_Pair] = []
    for one in given:
        if any(_gives_all(other, one) for other in kept):
            continue
        kept = [other for other in kept if not _gives_all(one, other)] + [one]
    return kept


def _gives_all(more: _Pair, less: _Pair) -> bool:
    return less[0] <= more[0] and all(is_within(name, more[1]) for name in less[1])


# Sessions: who is signed in, in a browser or with a token that `tidewheel login` keeps.


def is_session(token: TokenView) -> bool:
    """Says whether a token is that of somebody who signed in."""
    signed_in = token.identity is not None and token.kind is TokenKind.BEARER
    return token.kind is TokenKind.SESSION or signed_in


def is_own(session: TokenView, caller: TokenView) -> bool:
    """Says whether a session is the caller's: of the same person or, where nobody signed in by
    name, made from the same token."""
    if session.identity is not None or caller.identity is not None:
        mine, theirs = caller.identity, session.identity
        return (
            mine is not None
            and theirs is not None
            and (mine.source, mine.person) == (theirs.source, theirs.person)
        )
    made_from = caller.number if caller.parent is None else caller.parent
    return session.parent == made_from
