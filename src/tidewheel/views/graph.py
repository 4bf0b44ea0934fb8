"""Shows the graph of a run around its live tasks: their states, edges, and which are met.

A family on the left of an arrow with many members is drawn as one group, as the scheduler
counts it: N + M edges, never N × M.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from hashlib import blake2b
from itertools import islice
from typing import Any

import msgspec

from tidewheel.api import run_details as api
from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.outputs import SUCCEEDED
from tidewheel.core.graph.shown_names import output_text, stage_name
from tidewheel.core.operator.definition import read_job_name
from tidewheel.core.operator.views import SubmissionView
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched import dependency_index as index
from tidewheel.core.sched.dependency_index import IndexedArrow, IndexedAtom
from tidewheel.core.sched.evaluation import holds, leaf_value, member_value, members_at
from tidewheel.core.sched.task_state import AtomValue, Flows, Key
from tidewheel.views.run_facts import Document, described, job_facts
from tidewheel.views.snapshot import AskedView, RunSnapshot, Submissions
from tidewheel.views.status_text import words_of
from tidewheel.views.task_lookup import (
    WINDOW_TASKS_MAX,
    find_task,
    find_tasks,
    parents,
    window,
)

MEMBERS_MAX = 8  # of a family that is drawn member by member
EDGES_MAX = 20_000
POINTS_REMEMBERED = 3  # shown of a run whose pool is empty


async def graph(asked: AskedView) -> api.RunGraph:
    """Shows the graph around the live tasks, or around those that are named."""
    return drawn(asked, await asked.snapshot())


def drawn(asked: AskedView, snapshot: RunSnapshot) -> api.RunGraph:
    """Returns the graph within `window` edges of the named tasks, or of the pool if none are
    named; of a run with an empty pool, around its last points."""
    ids, edges_max = asked.texts("ids"), asked.number("window")
    keys = find_tasks(snapshot, ids) if ids else tuple(snapshot.pool.tasks)
    if not keys:  # of an ended run: its last points
        newest = list(snapshot.known_tasks().values())[-POINTS_REMEMBERED:]
        keys = tuple(key for there in newest for key in there)
    found = window(snapshot.pool, 1 if edges_max is None else edges_max, keys)
    drawing = _Drawing(snapshot, found)
    edges = list(islice(drawing.edges(), EDGES_MAX))
    plan = snapshot.pool.plan
    return described(
        api.RunGraph,
        snapshot.view,
        run=snapshot.view.name,
        stages=snapshot.is_of_stages,
        points=[plan.text(point) for point in sorted({key[0] for key in found})],
        families={
            name: [one for one in plan.nodes[name].definition.lineage if one != name]
            for name in sorted({name for _, name in found})
        },
        tasks=[
            described(api.GraphTask, snapshot.shown(key), distance=distance)
            for key, distance in found.items()
        ],
        groups=list(drawing.groups.values()),
        edges=edges,
        cut=len(found) >= WINDOW_TASKS_MAX or len(edges) >= EDGES_MAX,
    )


class _Drawing:
    """Finds the edges between tasks of a window, and the groups that large families become."""

    def __init__(self, snapshot: RunSnapshot, found: Mapping[Key, int]) -> None:
        self._snapshot, self._found = snapshot, found
        self.groups: dict[str, api.GraphGroup] = {}

    def edges(self) -> Iterator[api.GraphEdge]:
        nodes = self._snapshot.pool.plan.nodes
        for key in self._found:
            node = nodes[key[1]]
            removing = [(arrow, None) for arrow in node.suicides if arrow.sequence.has(key[0])]
            for arrow, base in (*node.arrows_at(key[0]), *removing):
                for leaf in arrow.leaves:
                    yield from self._into(key, arrow, leaf, base)

    def _into(
        self, key: Key, arrow: IndexedArrow, leaf: IndexedAtom, base: int | None
    ) -> Iterator[api.GraphEdge]:
        pool = self._snapshot.pool
        parent, flows, state, by_hand = _atom_state(self._snapshot, key, leaf, base)
        facts: api.EdgeFacts = {
            "to": self._snapshot.id_of(key),
            "output": leaf.wanted,
            "state": state,
            "by_hand": by_hand,
            "suicide": arrow.suicide,
            "arrow": arrow.index,
            "alternative": not arrow.is_conjunction,
        }
        if leaf.group is None:
            if (parent, leaf.node) in self._found:
                yield {"from": self._snapshot.id_of((parent, leaf.node)), **facts}
            return
        everyone = members_at(pool, leaf.group, parent, flows)
        members = [(parent, one) for one in everyone if (parent, one) in self._found]
        if len(everyone) <= MEMBERS_MAX:
            for member in members:
                made = VALUE_WORDS[member_value(pool.recall(*member), leaf.group, flows)]
                yield {"from": self._snapshot.id_of(member), **facts, "state": made}
        elif members:
            yield from self._through_group(leaf, members, flows, facts)

    def _through_group(
        self, leaf: IndexedAtom, members: list[Key], flows: Flows, facts: api.EdgeFacts
    ) -> Iterator[api.GraphEdge]:
        group, snapshot = leaf.group, self._snapshot
        assert group is not None
        kind = "all" if group.every else "any"
        point = members[0][0]
        name = f"{snapshot.pool.plan.text(point)}/{group.family}:{leaf.wanted}-{kind}"
        if name not in self.groups:
            states = {
                one: member_value(snapshot.pool.recall(point, one), group, flows)
                for one in members_at(snapshot.pool, group, point, flows)
            }
            made = sum(1 for value in states.values() if value is AtomValue.TRUE)
            self.groups[name] = {
                "id": name,
                "point": snapshot.pool.plan.text(point),
                "family": group.family,
                "output": leaf.wanted,
                "every": group.every,
                "members": len(states),
                "made": made,
            }
            for member in members:
                yield {
                    **facts,
                    "from": snapshot.id_of(member),
                    "to": name,
                    "state": VALUE_WORDS[states[member[1]]],
                }
        yield {"from": name, **facts}


# A client that knows a graph is told only what has changed since.
#
# A graph of a thousand tasks is hundreds of kilobytes, and between two looks at it a few of
# its tasks and edges differ. A version is made of what a document says, not of when it was
# asked for: a client that names a remembered version is told the differences, any other one the
# whole graph. So nothing depends on what is remembered here, by which server, or for how long.


GRAPHS_MAX = 64
PARTS_MAX = 200_000  # tasks, groups and edges of all graphs that are remembered
# The keys that tell the items of a part from each other; of two alike the last one counts.
IDENTITY = {
    "tasks": ("id",),
    "groups": ("id",),
    "edges": ("from", "to", "output", "suicide"),
}
FAMILIES = "families"  # of each name; what is no longer drawn keeps them

_Identity = tuple[str, *tuple[str | bool, ...]]  # the part, then the item in it
_Marks = dict[_Identity, int]  # what each item says, in short


class ToldGraphs:
    """Remembers hashes of the newest graphs sent to clients, to send only differences later."""

    def __init__(self, graphs_max: int = GRAPHS_MAX, parts_max: int = PARTS_MAX) -> None:
        assert graphs_max > 0 and parts_max > 0
        self._graphs_max, self._parts_max = graphs_max, parts_max
        self._known: dict[Hashable, _Marks] = {}

    def told(self, window: Hashable, document: Document, since: str) -> Document:
        """Returns this graph whole, or its differences to the version `since` of the same
        window if that version is remembered."""
        items = dict(_items(document))
        marks = {one: hash(msgspec.json.encode(item)) for one, item in items.items()}
        said = {name: one for name, one in document.items() if name not in ("batch", "status")}
        version = blake2b(msgspec.json.encode(said), digest_size=12).hexdigest()
        before = self._known.get((window, since))
        self._remember((window, version), marks)
        gone: dict[str, Any] = {part: [] for part in IDENTITY}
        if before is None:
            return document | {"version": version, "since": None, "gone": gone}
        changed: dict[str, Any] = {part: [] for part in IDENTITY} | {FAMILIES: {}}
        for (part, *identity), item in items.items():
            if before.get((part, *identity)) == marks[part, *identity]:
                continue
            if part == FAMILIES:
                changed[FAMILIES][identity[0]] = item
            else:
                changed[part].append(item)
        for part, *identity in (one for one in before if one not in marks):
            if part != FAMILIES:  # tasks and groups by ids, edges by what tells them apart
                named = dict(zip(IDENTITY[part], identity, strict=True))
                gone[part].append(named if len(named) > 1 else identity[0])
        return document | changed | {"version": version, "since": since, "gone": gone}

    def _remember(self, key: Hashable, marks: _Marks) -> None:
        self._known.pop(key, None)
        self._known[key] = marks
        count = sum(map(len, self._known.values()))
        while len(self._known) > self._graphs_max or (
            count > self._parts_max and len(self._known) > 1
        ):
            count -= len(self._known.pop(next(iter(self._known))))


def _items(document: Document) -> Iterator[tuple[_Identity, Any]]:
    for part, names in IDENTITY.items():
        items: Any = document[part]
        for item in items:
            yield (part, *(item[name] for name in names)), item
    families: Any = document[FAMILIES]
    for name, lineage in families.items():
        yield (FAMILIES, name), lineage


# The views below show what a task waits for, by arrows and atoms, and each parent's state.


MEMBERS_NAMED_MAX = 50  # of a family, named one by one

VALUE_WORDS: dict[AtomValue, api.EdgeState] = {
    AtomValue.TRUE: "true",
    AtomValue.OPEN: "open",
    AtomValue.LOST: "lost",
    AtomValue.NOT_TAKEN: "not taken",
}


def prerequisites(snapshot: RunSnapshot, key: Key) -> list[api.PrerequisiteArrow]:
    """Returns the arrows into a task, all of which must be true."""
    node = snapshot.pool.plan.nodes[key[1]]
    return [_arrow(snapshot, key, *pair) for pair in node.arrows_at(key[0])]


def suicides(snapshot: RunSnapshot, key: Key) -> list[api.PrerequisiteArrow]:
    """Returns the suicide arrows of a task, which remove it when all of them are true."""
    arrows = snapshot.pool.plan.nodes[key[1]].suicides
    return [_arrow(snapshot, key, one, None) for one in arrows if one.sequence.has(key[0])]


def _arrow(
    snapshot: RunSnapshot, key: Key, arrow: IndexedArrow, base: int | None
) -> api.PrerequisiteArrow:
    task = None if base is None else snapshot.pool.tasks.get(key)
    atoms = [_atom(snapshot, key, leaf, base) for leaf in arrow.leaves]
    mask = sum(1 << number for number, one in enumerate(atoms) if one["state"] == "true")
    by_hand = task is not None and task.satisfied_by_hand and not task.missing
    met = holds(arrow.expression, mask)
    return {
        "text": expression_text(arrow.expression, [one["text"] for one in atoms]),
        "satisfied": met or by_hand,
        "by_hand": (by_hand and not met) or any(one["by_hand"] for one in atoms),
        "atoms": atoms,
    }


def expression_text(
    expression: index.Expression, texts: list[str], *, inside: bool = False
) -> str:
    """Returns a condition as a graph writes it; an OR within an AND needs parentheses."""
    if isinstance(expression, int):
        return texts[expression]
    parts = [
        expression_text(term, texts, inside=isinstance(expression, index.Every))
        for term in expression.terms
    ]
    if isinstance(expression, index.Any):
        return f"({' | '.join(parts)})" if inside else " | ".join(parts)
    return " & ".join(parts)


def _atom_state(
    snapshot: RunSnapshot, key: Key, leaf: IndexedAtom, base: int | None
) -> tuple[Point, Flows, api.EdgeState, bool]:
    """Returns the point of an atom's parent, the flows in which it counts, its state, and
    whether it was set by hand.

    `base` is the number of its arrow's first bit in the task; None for arrows that remove the
    task.
    """
    pool, task = snapshot.pool, snapshot.pool.tasks.get(key)
    flows = flows_of(snapshot, key)
    value = value_of(snapshot, key[0], leaf, flows)
    is_set = task is not None and base is not None and task.true >> (base + leaf.number) & 1
    state = VALUE_WORDS[AtomValue.TRUE if is_set else value]
    parent = leaf.parent_point(key[0], pool.plan.initial)
    return parent, flows, state, bool(is_set) and value is not AtomValue.TRUE


def _atom(
    snapshot: RunSnapshot, key: Key, leaf: IndexedAtom, base: int | None
) -> api.PrerequisiteAtom:
    pool = snapshot.pool
    parent, flows, state, by_hand = _atom_state(snapshot, key, leaf, base)
    common: api.AtomFacts = {
        "output": leaf.wanted,
        "state": state,
        "by_hand": by_hand,
        "before_start": parent < pool.run.start,
    }
    if leaf.group is not None:
        kind = "all" if leaf.group.every else "any"
        family = f"{pool.plan.text(parent)}/{leaf.group.family}"
        members: list[api.FamilyMember] = [
            {
                "id": snapshot.id_of((parent, one)),
                "made": member_value(pool.recall(parent, one), leaf.group, flows)
                is AtomValue.TRUE,
                "state": words_of(pool, (parent, one)).text,
            }
            for one in members_at(pool, leaf.group, parent, flows)
        ]
        members.sort(key=lambda one: one["made"])  # what is not made yet comes first
        return {
            "id": family,
            "text": _group_text(snapshot, family, leaf.wanted, kind),
            "parent": f"{sum(1 for one in members if one['made'])} of {len(members)}",
            "members": members[:MEMBERS_NAMED_MAX],
            **common,
        }
    name = f"{pool.plan.text(parent)}/{leaf.node}"
    text = name if leaf.output == SUCCEEDED else f"{name}:{leaf.output}"
    if snapshot.is_of_stages:
        text = pool.plan.output_of((parent, leaf.node), leaf.output)
    at = pool.plan.nodes[leaf.node].is_at(parent)
    there = words_of(pool, (parent, leaf.node)).text if at else "no such task"
    return {"id": name, "text": text, "parent": there, "members": [], **common}


def _group_text(snapshot: RunSnapshot, family: str, wanted: str, kind: str) -> str:
    """Returns what is waited for of a family, as people read it."""
    if not snapshot.is_of_stages:
        return f"{family}:{wanted}-{kind}"
    return output_text(
        None, f"{kind} elements of {stage_name(family.partition('/')[2])}", wanted
    )


def value_of(snapshot: RunSnapshot, point: Point, leaf: IndexedAtom, flows: Flows) -> AtomValue:
    """Returns the value of an atom; counts a family here if the pool no longer counts it."""
    pool = snapshot.pool
    value = leaf_value(pool, leaf, point, flows)
    if leaf.group is None or value is not AtomValue.OPEN or leaf.group.elements is not None:
        return value
    parent = leaf.parent_point(point, pool.plan.initial)
    made = (
        member_value(pool.recall(parent, member), leaf.group, flows) is AtomValue.TRUE
        for member in leaf.group.members
    )
    return AtomValue.TRUE if (all(made) if leaf.group.every else any(made)) else value


def flows_of(snapshot: RunSnapshot, key: Key) -> Flows:
    """Returns the flows in which a task is or was; for one that never was spawned, all flows
    that have tasks."""
    task = snapshot.pool.tasks.get(key)
    if task is not None:
        return task.flows
    memory = snapshot.pool.recall(*key)
    if memory is not None and memory.spawned:
        return memory.spawned
    return frozenset(flow for flow, count in snapshot.pool.flow_counts.items() if count) or (
        frozenset({1})
    )


# The critical path is what made a run take as long as it took, from its last submission to
# its first.
#
# Each submission was made because something ended (or began) last: one of its parents, or the
# failed submission of the same task before it. Whatever was last is the step before on the
# path. A task that waits for nothing was kept back by the runahead limit: what ended last at an
# earlier point let it go.


STEPS_MAX = 5_000

Step = tuple[Key, SubmissionView]


async def critical_path(asked: AskedView) -> api.CriticalPath:
    """Shows the critical path to a task, first step first; without a task, to a submission that
    runs, or to the one that ended last."""
    snapshot, text = await asked.snapshot(), asked.text("id")
    keys = [find_task(snapshot, text)[0]] if text else snapshot.known_keys()
    submissions, now = await asked.submissions(), snapshot.now
    found = [(key, one) for key in keys for one in _of(snapshot, submissions, key)[-1:]]
    # A submission that runs is later than any that has ended.
    last = max(found, key=lambda step: (_over(step[1], now), step[1].seq), default=None)
    steps = list(_back(snapshot, submissions, last))[::-1]
    seconds = _over(steps[-1][1], now) - steps[0][1].submitted_at if steps else None
    return {
        "run": snapshot.view.name,
        "seconds": None if seconds is None else max(0.0, seconds),
        "steps": [described(api.CriticalStep, one, **job_facts(one)) for _, one in steps],
    }


def _over(one: SubmissionView, now: Instant) -> Instant:
    return now if one.ended_at is None else one.ended_at


def _back(snapshot: RunSnapshot, submissions: Submissions, step: Step | None) -> Iterator[Step]:
    for _ in range(STEPS_MAX):
        if step is None:
            return
        yield step
        step = _before(snapshot, submissions, step)


def _before(snapshot: RunSnapshot, submissions: Submissions, step: Step) -> Step | None:
    key, one = step
    known = snapshot.pool.plan.nodes
    keys = [key, *(parent for parent in parents(snapshot.pool, key) if parent[1] in known)]
    found = [
        (moment, other.seq, (parent, other))
        for parent in dict.fromkeys(keys)
        for other in _of(snapshot, submissions, parent)
        if other.seq < one.seq
        # A task that succeeded is not retried; somebody wanted it anew, in another flow.
        and (parent != key or other.status == "failed")
        and (moment := _moment(other, one.submitted_at)) is not None
    ]
    if found:
        return max(found, key=lambda each: each[:2])[2]
    return _released_by(snapshot, submissions, step)


def _released_by(snapshot: RunSnapshot, submissions: Submissions, step: Step) -> Step | None:
    """Returns the submission that let a task without parents begin: the last that had ended at
    an earlier point. None if there is none, or the task waited for something else."""
    (point, name), one = step
    node = snapshot.pool.plan.nodes[name]
    waits_for_time = bool(node.xtriggers) or node.clock is not None
    if waits_for_time or read_job_name(one.task_id).submit > 1 or node.arrows_at(point):
        return None
    found = [
        (other.ended_at, other.seq, (key, other))
        for key in snapshot.known_keys()
        if key[0] < point
        for other in _of(snapshot, submissions, key)
        if other.ended_at is not None and other.ended_at <= one.submitted_at
    ]
    return max(found, key=lambda each: each[:2])[2] if found else None


def _moment(other: SubmissionView, until: Instant) -> Instant | None:
    """Returns the last time, not after `until`, at which a submission started or ended, as both
    let others follow; None if there is none."""
    times = (other.ended_at, other.started_at)
    return max((at for at in times if at is not None and at <= until), default=None)


def _of(snapshot: RunSnapshot, submissions: Submissions, key: Key) -> list[SubmissionView]:
    return list(submissions.get((snapshot.pool.plan.text(key[0]), key[1]), ()))
