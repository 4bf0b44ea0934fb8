"""What a task waits for, arrow by arrow and atom by atom, with the state of each parent."""

from __future__ import annotations

from collections.abc import Iterator

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.outputs import SUCCEEDED
from tidewheel.core.sched.dependency_index import (
    Any,
    Every,
    Expression,
    IndexedArrow,
    IndexedAtom,
    IndexedNode,
)
from tidewheel.core.sched.evaluation import holds, leaf_value, member_value
from tidewheel.core.sched.task_state import AtomValue, Flows, Key, PooledTask
from tidewheel.views.run_facts import Document
from tidewheel.views.snapshot import RunSnapshot
from tidewheel.views.status_text import words_of

MEMBERS_MAX = 50  # of a family, named one by one

VALUE_WORDS = {
    AtomValue.TRUE: "true",
    AtomValue.OPEN: "open",
    AtomValue.LOST: "lost",
    AtomValue.NOT_TAKEN: "not taken",
}


def prerequisites(looked: RunSnapshot, key: Key) -> list[Document]:
    """The arrows into a task; all of them must be true."""
    node = looked.pool.plan.nodes[key[1]]
    task = looked.pool.tasks.get(key)
    return [_arrow(looked, key, task, *pair) for pair in node.arrows_at(key[0])]


def suicides(looked: RunSnapshot, node: IndexedNode, point: Point) -> list[Document]:
    """The arrows that would remove it; all of them together."""
    arrows = [arrow for arrow in node.suicides if arrow.sequence.has(point)]
    key = (point, node.name)
    return [_arrow(looked, key, None, arrow, 0) for arrow in arrows]


def _arrow(
    looked: RunSnapshot, key: Key, task: PooledTask | None, arrow: IndexedArrow, base: int
) -> Document:
    atoms = [_atom(looked, key, task, leaf, base) for leaf in arrow.leaves]
    mask = sum(1 << number for number, one in enumerate(atoms) if one["state"] == "true")
    by_hand = task is not None and task.satisfied_by_hand and not task.missing
    met = holds(arrow.expression, mask)
    return {
        "text": expression_text(arrow.expression, [str(one["text"]) for one in atoms]),
        "satisfied": met or by_hand,
        "by_hand": (by_hand and not met) or any(one["by_hand"] for one in atoms),
        "atoms": atoms,
    }


def expression_text(expression: Expression, texts: list[str], *, inside: bool = False) -> str:
    """As it stands in a graph; an OR within an AND needs parentheses."""
    if isinstance(expression, int):
        return texts[expression]
    parts = [
        expression_text(term, texts, inside=isinstance(expression, Every))
        for term in expression.terms
    ]
    if isinstance(expression, Any):
        return f"({' | '.join(parts)})" if inside else " | ".join(parts)
    return " & ".join(parts)


def _atom(
    looked: RunSnapshot, key: Key, task: PooledTask | None, leaf: IndexedAtom, base: int
) -> Document:
    pool = looked.pool
    flows = flows_of(looked, key)
    value = value_of(looked, key[0], leaf, flows)
    satisfied = task is not None and bool(task.true >> (base + leaf.number) & 1)
    parent = leaf.parent_point(key[0], pool.plan.initial)
    state = AtomValue.TRUE if satisfied else value
    common: Document = {
        "output": leaf.wanted,
        "state": VALUE_WORDS[state],
        "by_hand": satisfied and value is not AtomValue.TRUE,
        "before_start": parent < pool.run.start,
    }
    if leaf.group is not None:
        kind = "all" if leaf.group.every else "any"
        family = f"{pool.plan.text(parent)}/{leaf.group.family}"
        members = list(_members(looked, leaf, parent, flows))
        return {
            "id": family,
            "text": f"{family}:{leaf.wanted}-{kind}",
            "parent": f"{sum(1 for one in members if one['made'])} of {len(members)}",
            "members": members[:MEMBERS_MAX],
        } | common
    name = f"{pool.plan.text(parent)}/{leaf.node}"
    text = name if leaf.output == SUCCEEDED else f"{name}:{leaf.output}"
    words = words_of(pool, (parent, leaf.node))
    at = pool.plan.nodes[leaf.node].is_at(parent)
    there = words.text if at else "no such task"
    return {"id": name, "text": text, "parent": there, "members": []} | common


def value_of(looked: RunSnapshot, point: Point, leaf: IndexedAtom, flows: Flows) -> AtomValue:
    """Where an atom stands; a family that is no longer counted is counted again."""
    pool = looked.pool
    value = leaf_value(pool, leaf, point, flows)
    if leaf.group is None or value is not AtomValue.OPEN:
        return value
    parent = leaf.parent_point(point, pool.plan.initial)
    made = (
        member_value(pool.recall(parent, member), leaf.group, flows) is AtomValue.TRUE
        for member in leaf.group.members
    )
    return AtomValue.TRUE if (all(made) if leaf.group.every else any(made)) else value


def _members(
    looked: RunSnapshot, leaf: IndexedAtom, point: Point, flows: Flows
) -> Iterator[Document]:
    """Those that have not made it first: they are what is waited for."""
    assert leaf.group is not None
    found = []
    for member in leaf.group.members:
        memory = looked.pool.recall(*(point, member))
        made = member_value(memory, leaf.group, flows) is AtomValue.TRUE
        state = words_of(looked.pool, (point, member)).text
        found.append({"id": looked.id_of((point, member)), "made": made, "state": state})
    yield from sorted(found, key=lambda one: bool(one["made"]))


def flows_of(looked: RunSnapshot, key: Key) -> Flows:
    """The flows in which a task is, was, or would be."""
    task = looked.pool.tasks.get(key)
    if task is not None:
        return task.flows
    memory = looked.pool.recall(*key)
    if memory is not None and memory.spawned:
        return memory.spawned
    return frozenset(flow for flow, count in looked.pool.flow_counts.items() if count) or (
        frozenset({1})
    )
