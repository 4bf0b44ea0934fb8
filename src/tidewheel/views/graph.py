"""Shows the graph of a run around its live tasks: their states, edges, and which are met.

A family on the left of an arrow with many members is drawn as one group, as the scheduler
counts it: N + M edges, never N × M.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from hashlib import blake2b
from itertools import islice
from typing import Any

import msgspec

from tidewheel.api.run_details import (
    AtomFacts,
    CriticalPath,
    CriticalStep,
    EdgeFacts,
    EdgeState,
    FamilyMember,
    GraphEdge,
    GraphGroup,
    GraphTask,
    PrerequisiteArrow,
    PrerequisiteAtom,
    RunGraph,
)
from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.outputs import SUCCEEDED
from tidewheel.core.operator.definition import read_job_name
from tidewheel.core.operator.views import SubmissionView
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.dependency_index import Any as AnyOf
from tidewheel.core.sched.dependency_index import (
    Every,
    Expression,
    IndexedArrow,
    IndexedAtom,
    IndexedNode,
)
from tidewheel.core.sched.evaluation import holds, leaf_value, member_value
from tidewheel.core.sched.task_state import AtomValue, Flows, Key, PooledTask
from tidewheel.quantities import show_instant
from tidewheel.views.events import pooled_document
from tidewheel.views.run import Submissions, known_tasks
from tidewheel.views.run_facts import Document, described
from tidewheel.views.snapshot import RunSnapshot
from tidewheel.views.status_text import words_of
from tidewheel.views.task_lookup import WINDOW_TASKS_MAX, parents, window

MEMBERS_MAX = 8  # of a family that is drawn member by member
EDGES_MAX = 20_000
POINTS_REMEMBERED = 3  # shown of a run whose pool is empty


def graph_document(snapshot: RunSnapshot, keys: tuple[Key, ...], edges_max: int) -> RunGraph:
    """Returns all within so many edges of these tasks, or of the pool if none are named."""
    found = window(snapshot.pool, edges_max, keys or _middle(snapshot))
    drawn = _Drawing(snapshot, found)
    edges = list(islice(drawn.edges(), EDGES_MAX))
    names = {name for _, name in found}
    return {
        "run": snapshot.view.name,
        "status": snapshot.view.status,
        "batch": snapshot.view.batch,
        "points": [
            snapshot.pool.plan.text(point) for point in sorted({key[0] for key in found})
        ],
        "families": _families(snapshot, names),
        "tasks": [_task(snapshot, key, distance) for key, distance in found.items()],
        "groups": list(drawn.groups.values()),
        "edges": edges,
        "cut": len(found) >= WINDOW_TASKS_MAX or len(edges) >= EDGES_MAX,
    }


def _middle(snapshot: RunSnapshot) -> tuple[Key, ...]:
    """Returns the tasks around which to draw: the pool, or the last points of an ended run."""
    if snapshot.pool.tasks:
        return tuple(snapshot.pool.tasks)
    newest = list(known_tasks(snapshot).values())[-POINTS_REMEMBERED:]
    return tuple(key for there in newest for key in there)


def _families(snapshot: RunSnapshot, names: set[str]) -> dict[str, list[str]]:
    """Returns the families of each node, the nearest first."""
    nodes = snapshot.pool.plan.nodes
    return {
        name: [one for one in nodes[name].definition.lineage if one != name]
        for name in sorted(names)
    }


def _task(snapshot: RunSnapshot, key: Key, distance: int) -> GraphTask:
    task, memory = snapshot.pool.tasks.get(key), snapshot.pool.recall(*key)
    remembered = 0 if memory is None else memory.submits
    submit = remembered if task is None else task.submit
    point = snapshot.pool.plan.text(key[0])
    words = words_of(snapshot.pool, key)
    return {**pooled_document(point, key[1], words, submit), "distance": distance}


class _Drawing:
    """Finds edges, and the groups that they need."""

    def __init__(self, snapshot: RunSnapshot, found: Mapping[Key, int]) -> None:
        self._snapshot, self._found = snapshot, found
        self.groups: dict[str, GraphGroup] = {}

    def edges(self) -> Iterator[GraphEdge]:
        nodes = self._snapshot.pool.plan.nodes
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
    ) -> Iterator[GraphEdge]:
        pool = self._snapshot.pool
        flows = flows_of(self._snapshot, key)
        task = pool.tasks.get(key)
        parent = leaf.parent_point(key[0], pool.plan.initial)
        value = value_of(self._snapshot, key[0], leaf, flows)
        met = task is not None and base is not None and task.true >> (base + leaf.number) & 1
        facts: EdgeFacts = {
            "to": self._snapshot.id_of(key),
            "output": leaf.wanted,
            "state": VALUE_WORDS[AtomValue.TRUE if met else value],
            "by_hand": bool(met) and value is not AtomValue.TRUE,
            "suicide": arrow.suicide,
            "arrow": arrow.index,
            "alternative": not arrow.is_conjunction,
        }
        if leaf.group is None:
            if (parent, leaf.node) in self._found:
                yield {"from": self._snapshot.id_of((parent, leaf.node)), **facts}
            return
        members = [(parent, one) for one in leaf.group.members if (parent, one) in self._found]
        if len(leaf.group.members) <= MEMBERS_MAX:
            for member in members:
                state = VALUE_WORDS[member_value(pool.recall(*member), leaf.group, flows)]
                yield {"from": self._snapshot.id_of(member), **facts, "state": state}
        elif members:
            yield from self._through_group(leaf, members, flows, facts)

    def _through_group(
        self, leaf: IndexedAtom, members: list[Key], flows: Flows, facts: EdgeFacts
    ) -> Iterator[GraphEdge]:
        group, snapshot = leaf.group, self._snapshot
        assert group is not None
        kind = "all" if group.every else "any"
        point = members[0][0]
        name = f"{snapshot.pool.plan.text(point)}/{group.family}:{leaf.wanted}-{kind}"
        if name not in self.groups:
            states = {
                one: member_value(snapshot.pool.recall(point, one), group, flows)
                for one in group.members
            }
            made = sum(1 for value in states.values() if value is AtomValue.TRUE)
            self.groups[name] = {
                "id": name,
                "point": snapshot.pool.plan.text(point),
                "family": group.family,
                "output": leaf.wanted,
                "every": group.every,
                "members": len(group.members),
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

_Identity = tuple[str | bool, ...]  # the part, then the item in it
_Marks = dict[_Identity, int]  # what each item says, in short


class ToldGraphs:
    """Remembers in short the newest graphs that clients were told, to tell them differences."""

    def __init__(self, graphs_max: int = GRAPHS_MAX, parts_max: int = PARTS_MAX) -> None:
        assert graphs_max > 0 and parts_max > 0
        self._graphs_max, self._parts_max = graphs_max, parts_max
        self._known: dict[Hashable, _Marks] = {}

    def told(self, window: Hashable, document: Document, since: str) -> Document:
        """Returns this graph, or its differences to the version `since` of the same window."""
        items = dict(_items(document))
        marks = {one: hash(msgspec.json.encode(item)) for one, item in items.items()}
        version = _version(document)
        before = self._known.get((window, since))
        self._remember((window, version), marks)
        if before is None:
            gone: Document = {part: [] for part in IDENTITY}
            return document | {"version": version, "since": None, "gone": gone}
        changed = {one: item for one, item in items.items() if before.get(one) != marks[one]}
        lost = [one for one in before if one not in marks]
        facts = {"version": version, "since": since, "gone": _gone(lost)}
        return document | _changed(changed) | facts

    def _remember(self, key: Hashable, marks: _Marks) -> None:
        self._known.pop(key, None)
        self._known[key] = marks
        count = sum(map(len, self._known.values()))
        while len(self._known) > self._graphs_max or (
            count > self._parts_max and len(self._known) > 1
        ):
            count -= len(self._known.pop(next(iter(self._known))))


def _version(document: Document) -> str:
    said = {name: what for name, what in document.items() if name not in ("batch", "status")}
    return blake2b(msgspec.json.encode(said), digest_size=12).hexdigest()


def _items(document: Document) -> Iterator[tuple[_Identity, Any]]:
    for part, names in IDENTITY.items():
        items: Any = document[part]
        for item in items:
            yield (part, *(item[name] for name in names)), item
    families: Any = document[FAMILIES]
    for name, lineage in families.items():
        yield (FAMILIES, name), lineage


def _changed(items: Mapping[_Identity, Any]) -> Document:
    found: dict[str, Any] = {part: [] for part in IDENTITY} | {FAMILIES: {}}
    for (part, *identity), item in items.items():
        if part == FAMILIES:
            found[FAMILIES][identity[0]] = item
        else:
            found[str(part)].append(item)
    return found


def _gone(lost: Iterable[_Identity]) -> Document:
    """Names what is gone: tasks and groups by ids, edges by what tells them from others."""
    found: dict[str, list[Any]] = {part: [] for part in IDENTITY}
    for part, *values in lost:
        if part == FAMILIES:
            continue
        names = IDENTITY[str(part)]
        found[str(part)].append(
            values[0] if len(names) == 1 else dict(zip(names, values, strict=True))
        )
    return dict(found)


# The views below show what a task waits for, by arrows and atoms, and each parent's state.


MEMBERS_NAMED_MAX = 50  # of a family, named one by one

VALUE_WORDS: dict[AtomValue, EdgeState] = {
    AtomValue.TRUE: "true",
    AtomValue.OPEN: "open",
    AtomValue.LOST: "lost",
    AtomValue.NOT_TAKEN: "not taken",
}


def prerequisites(snapshot: RunSnapshot, key: Key) -> list[PrerequisiteArrow]:
    """Returns the arrows into a task, all of which must be true."""
    node = snapshot.pool.plan.nodes[key[1]]
    task = snapshot.pool.tasks.get(key)
    return [_arrow(snapshot, key, task, *pair) for pair in node.arrows_at(key[0])]


def suicides(snapshot: RunSnapshot, node: IndexedNode, point: Point) -> list[PrerequisiteArrow]:
    """Returns the suicide arrows of a task, which remove it when all of them are true."""
    arrows = [arrow for arrow in node.suicides if arrow.sequence.has(point)]
    key = (point, node.name)
    return [_arrow(snapshot, key, None, arrow, 0) for arrow in arrows]


def _arrow(
    snapshot: RunSnapshot, key: Key, task: PooledTask | None, arrow: IndexedArrow, base: int
) -> PrerequisiteArrow:
    atoms = [_atom(snapshot, key, task, leaf, base) for leaf in arrow.leaves]
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
    """Returns an expression as it stands in a graph; an OR within an AND needs parentheses."""
    if isinstance(expression, int):
        return texts[expression]
    parts = [
        expression_text(term, texts, inside=isinstance(expression, Every))
        for term in expression.terms
    ]
    if isinstance(expression, AnyOf):
        return f"({' | '.join(parts)})" if inside else " | ".join(parts)
    return " & ".join(parts)


def _atom(
    snapshot: RunSnapshot, key: Key, task: PooledTask | None, leaf: IndexedAtom, base: int
) -> PrerequisiteAtom:
    pool = snapshot.pool
    flows = flows_of(snapshot, key)
    value = value_of(snapshot, key[0], leaf, flows)
    satisfied = task is not None and bool(task.true >> (base + leaf.number) & 1)
    parent = leaf.parent_point(key[0], pool.plan.initial)
    state = AtomValue.TRUE if satisfied else value
    common: AtomFacts = {
        "output": leaf.wanted,
        "state": VALUE_WORDS[state],
        "by_hand": satisfied and value is not AtomValue.TRUE,
        "before_start": parent < pool.run.start,
    }
    if leaf.group is not None:
        kind = "all" if leaf.group.every else "any"
        family = f"{pool.plan.text(parent)}/{leaf.group.family}"
        members = list(_members(snapshot, leaf, parent, flows))
        return {
            "id": family,
            "text": f"{family}:{leaf.wanted}-{kind}",
            "parent": f"{sum(1 for one in members if one['made'])} of {len(members)}",
            "members": members[:MEMBERS_NAMED_MAX],
            **common,
        }
    name = f"{pool.plan.text(parent)}/{leaf.node}"
    text = name if leaf.output == SUCCEEDED else f"{name}:{leaf.output}"
    words = words_of(pool, (parent, leaf.node))
    at = pool.plan.nodes[leaf.node].is_at(parent)
    there = words.text if at else "no such task"
    return {"id": name, "text": text, "parent": there, "members": [], **common}


def value_of(snapshot: RunSnapshot, point: Point, leaf: IndexedAtom, flows: Flows) -> AtomValue:
    """Returns the value of an atom; counts a family again that the pool no longer counts."""
    pool = snapshot.pool
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
    snapshot: RunSnapshot, leaf: IndexedAtom, point: Point, flows: Flows
) -> Iterator[FamilyMember]:
    """Yields the members of a family; first those that have not made the output yet."""
    assert leaf.group is not None
    found: list[FamilyMember] = []
    for member in leaf.group.members:
        memory = snapshot.pool.recall(*(point, member))
        made = member_value(memory, leaf.group, flows) is AtomValue.TRUE
        state = words_of(snapshot.pool, (point, member)).text
        found.append({"id": snapshot.id_of((point, member)), "made": made, "state": state})
    yield from sorted(found, key=lambda one: bool(one["made"]))


def flows_of(snapshot: RunSnapshot, key: Key) -> Flows:
    """Returns the flows in which a task is, was, or would be."""
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


def critical_path_document(
    snapshot: RunSnapshot, submissions: Submissions, last: Key | None = None
) -> CriticalPath:
    """Returns the critical path to a task, or to what ended last or runs; first step first."""
    steps = list(_back(snapshot, submissions, _end(snapshot, submissions, last)))[::-1]
    begun = steps[0][1].submitted_at if steps else None
    over = None if not steps else steps[-1][1].ended_at or snapshot.now
    return {
        "run": snapshot.view.name,
        "seconds": None if begun is None or over is None else max(0.0, over - begun),
        "steps": [_step(snapshot, step) for step in steps],
    }


def _end(snapshot: RunSnapshot, submissions: Submissions, last: Key | None) -> Step | None:
    keys = (
        [last] if last else [key for there in known_tasks(snapshot).values() for key in there]
    )
    found = [(key, one) for key in keys for one in _of(snapshot, submissions, key)[-1:]]
    # A submission that runs is later than any that has ended.
    return max(
        found, key=lambda step: (_over(step[1], snapshot.now), step[1].seq), default=None
    )


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
    """Returns what ended last, at an earlier point, before a task without parents began."""
    (point, name), one = step
    node = snapshot.pool.plan.nodes[name]
    waits_for_time = bool(node.xtriggers) or node.clock is not None
    if waits_for_time or read_job_name(one.task_id).submit > 1 or node.arrows_at(point):
        return None
    found = [
        (other.ended_at, other.seq, (key, other))
        for key in (key for there in known_tasks(snapshot).values() for key in there)
        if key[0] < point
        for other in _of(snapshot, submissions, key)
        if other.ended_at is not None and other.ended_at <= one.submitted_at
    ]
    return max(found, key=lambda each: each[:2])[2] if found else None


def _moment(other: SubmissionView, until: Instant) -> Instant | None:
    """Returns when a submission last ended or started until then, and so let others follow."""
    times = (other.ended_at, other.started_at)
    return max((at for at in times if at is not None and at <= until), default=None)


def _of(snapshot: RunSnapshot, submissions: Submissions, key: Key) -> list[SubmissionView]:
    return list(submissions.get((snapshot.pool.plan.text(key[0]), key[1]), ()))


def _step(snapshot: RunSnapshot, step: Step) -> CriticalStep:
    key, one = step
    submit, queued_at = read_job_name(one.task_id).submit, show_instant(one.submitted_at)
    shown = {"id": snapshot.id_of(key), "submit": submit, "task": one.task_id}
    return described(CriticalStep, one, **shown, queued_at=queued_at)
