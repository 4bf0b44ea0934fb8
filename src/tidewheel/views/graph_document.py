"""The graph of a run around its live tasks: states of tasks, edges and whether they are met.

A family on the left of an arrow with many members is drawn as one group, as the scheduler
counts it: N + M edges, never N × M.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from tidewheel.core.sched.dependency_index import IndexedArrow, IndexedAtom
from tidewheel.core.sched.evaluation import member_value
from tidewheel.core.sched.task_state import AtomValue, Flows, Key
from tidewheel.views.events import pooled_document
from tidewheel.views.graph import VALUE_WORDS, flows_of, value_of
from tidewheel.views.run import known_tasks
from tidewheel.views.run_facts import Document
from tidewheel.views.snapshot import RunSnapshot
from tidewheel.views.status_text import words_of
from tidewheel.views.task_lookup import TASKS_MAX, window

MEMBERS_MAX = 8  # of a family that is drawn member by member
EDGES_MAX = 20_000
POINTS_REMEMBERED = 3  # shown of a run whose pool is empty


def graph_document(looked: RunSnapshot, keys: tuple[Key, ...], edges_max: int) -> Document:
    """Everything within so many edges of these tasks, or of the pool if none are named."""
    found = window(looked.pool, edges_max, keys or _middle(looked))
    drawn = _Drawing(looked, found)
    edges = list(islice(drawn.edges(), EDGES_MAX))
    names = {name for _, name in found}
    return {
        "run": looked.view.name,
        "status": looked.view.status,
        "batch": looked.view.batch,
        "points": [looked.pool.plan.text(point) for point in sorted({key[0] for key in found})],
        "families": _families(looked, names),
        "tasks": [_task(looked, key, distance) for key, distance in found.items()],
        "groups": list(drawn.groups.values()),
        "edges": edges,
        "cut": len(found) >= TASKS_MAX or len(edges) >= EDGES_MAX,
    }


def _middle(looked: RunSnapshot) -> tuple[Key, ...]:
    """The pool; of a run that has ended, the points at which it did."""
    if looked.pool.tasks:
        return tuple(looked.pool.tasks)
    newest = list(known_tasks(looked).values())[-POINTS_REMEMBERED:]
    return tuple(key for there in newest for key in there)


def _families(looked: RunSnapshot, names: set[str]) -> dict[str, list[str]]:
    """The families of each node, the nearest first."""
    nodes = looked.pool.plan.nodes
    return {
        name: [one for one in nodes[name].definition.lineage if one != name]
        for name in sorted(names)
    }


def _task(looked: RunSnapshot, key: Key, distance: int) -> Document:
    task, memory = looked.pool.tasks.get(key), looked.pool.recall(*key)
    remembered = 0 if memory is None else memory.submits
    submit = remembered if task is None else task.submit
    point = looked.pool.plan.text(key[0])
    words = words_of(looked.pool, key)
    return pooled_document(point, key[1], words, submit) | {"distance": distance}


class _Drawing:
    """Edges as they are found, and the groups that they need."""

    def __init__(self, looked: RunSnapshot, found: Mapping[Key, int]) -> None:
        self._looked, self._found = looked, found
        self.groups: dict[str, Document] = {}

    def edges(self) -> Iterator[Document]:
        nodes = self._looked.pool.plan.nodes
        for key in self._found:
            for arrow, base in nodes[key[1]].arrows_at(key[0]):
                for leaf in arrow.leaves:
                    yield from self._into(key, arrow, leaf, base)
            for arrow in nodes[key[1]].suicides:
                if arrow.sequence.has(key[0]):
                    for leaf in arrow.leaves:
                        yield from self._into(key, arrow, leaf, None)

    def _into(
        self, key: Key, arrow: IndexedArrow, leaf: IndexedAtom, base: int | None
    ) -> Iterator[Document]:
        pool = self._looked.pool
        flows = flows_of(self._looked, key)
        task = pool.tasks.get(key)
        parent = leaf.parent_point(key[0], pool.plan.initial)
        value = value_of(self._looked, key[0], leaf, flows)
        met = task is not None and base is not None and task.true >> (base + leaf.number) & 1
        facts: Document = {
            "to": self._looked.id_of(key),
            "output": leaf.wanted,
            "state": VALUE_WORDS[AtomValue.TRUE if met else value],
            "by_hand": bool(met) and value is not AtomValue.TRUE,
            "suicide": arrow.suicide,
            "arrow": arrow.index,
            "alternative": not arrow.is_conjunction,
        }
        if leaf.group is None:
            if (parent, leaf.node) in self._found:
                yield {"from": self._looked.id_of((parent, leaf.node))} | facts
            return
        members = [(parent, one) for one in leaf.group.members if (parent, one) in self._found]
        if len(leaf.group.members) <= MEMBERS_MAX:
            for member in members:
                state = VALUE_WORDS[member_value(pool.recall(*member), leaf.group, flows)]
                yield {"from": self._looked.id_of(member)} | facts | {"state": state}
        elif members:
            yield from self._through_group(leaf, members, flows, facts)

    def _through_group(
        self, leaf: IndexedAtom, members: list[Key], flows: Flows, facts: Document
    ) -> Iterator[Document]:
        group, looked = leaf.group, self._looked
        assert group is not None
        kind = "all" if group.every else "any"
        point = members[0][0]
        name = f"{looked.pool.plan.text(point)}/{group.family}:{leaf.wanted}-{kind}"
        if name not in self.groups:
            states = {
                one: member_value(looked.pool.recall(point, one), group, flows)
                for one in group.members
            }
            made = sum(1 for value in states.values() if value is AtomValue.TRUE)
            self.groups[name] = {
                "id": name,
                "point": looked.pool.plan.text(point),
                "family": group.family,
                "output": leaf.wanted,
                "every": group.every,
                "members": len(group.members),
                "made": made,
            }
            for member in members:
                yield {
                    **facts,
                    "from": looked.id_of(member),
                    "to": name,
                    "state": VALUE_WORDS[states[member[1]]],
                }
        yield {"from": name} | facts
