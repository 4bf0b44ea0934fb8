"""Which limit group each node is in (SEMANTICS §7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidewheel.core.graph.definition import LIMIT_DEFAULT, LimitGroup

DEFAULT_GROUP = "default"


def limit_groups(
    limits: Mapping[str, tuple[int, Iterable[str]]], families: Mapping[str, tuple[str, ...]]
) -> tuple[LimitGroup, ...]:
    """Limit and named members of each group, families replaced by their members.

    A node is in the last group that names it; all others are in the default one.
    """
    limit_of = {DEFAULT_GROUP: LIMIT_DEFAULT} | {name: one[0] for name, one in limits.items()}
    group_of = {
        task: name
        for name, (_, members) in limits.items()
        for member in members
        for task in families.get(member, (member,))
    }
    found: dict[str, list[str]] = {name: [] for name in limit_of}
    for task, name in group_of.items():
        if name != DEFAULT_GROUP:
            found[name].append(task)
    return tuple(
        LimitGroup(name, limit, tuple(found[name])) for name, limit in limit_of.items()
    )
