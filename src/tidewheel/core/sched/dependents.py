"""Walks from a task to its dependents: the tasks that wait for one of its outputs.

Three kinds of arrows lead from a task: to relative points, through a family that it is a member
of, and from a fixed point. A rule that follows one kind only forgets tasks that the others
reach; so every rule that asks for the dependents of a task asks here. Two rules go along the
links themselves, kind by kind, since they do something else for each kind: `publish` for an
output that was made, and `reevaluate_dependents` for one that will not be made any more. Both
count the members of a family instead of visiting its dependents.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import chain, islice

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched.dependency_index import IndexedLink, IndexedNode, names_of
from tidewheel.core.sched.pool import TaskPool
from tidewheel.core.sched.task_state import Key
from tidewheel.lazy_dataclasses import NamedTuple

POINTS_BEHIND_MAX = 1_000  # looked at for each arrow


class Dependent(NamedTuple):
    """Holds a task that waits for an output, and the place of that atom among all its atoms."""

    link: IndexedLink
    point: Point
    node: IndexedNode
    base: int

    @property
    def key(self) -> Key:
        return (self.point, self.node.name)

    @property
    def bit(self) -> int:
        return 1 << (self.base + self.link.leaf.number)


def dependents(
    pool: TaskPool, node: IndexedNode, point: Point, output: str
) -> Iterator[Dependent]:
    """Yields the tasks that wait for this output of a task, without targets of suicide arrows.

    Tasks that wait for a fixed point lie at points without end: those are yielded that lie at
    points where any task is pooled or remembered.
    """
    for link in links_from(node, point, output):
        if not link.arrow.suicide:
            for child in child_points(pool, link, point):
                for target, base in link.arrow.targets:
                    yield Dependent(link, child, target, base)


def all_dependents(pool: TaskPool, node: IndexedNode, point: Point) -> Iterator[Dependent]:
    """Yields the tasks that wait for any output of a task."""
    for output in node.heard:
        yield from dependents(pool, node, point, output)


def relative_dependents(pool: TaskPool, node: IndexedNode, point: Point) -> Iterator[Dependent]:
    """Yields the tasks that wait for any output of a task at this point, not at a fixed one."""
    return (one for one in all_dependents(pool, node, point) if one.link.leaf.absolute is None)


def evicted_dependents(pool: TaskPool, node: IndexedNode, point: Point) -> Iterator[Dependent]:
    """Yields the tasks behind the horizon that waited for outputs of a task at a fixed point.

    Only commands of operators reach back there, so it may take a search, though a bounded one.
    """
    horizon = pool.run.horizon
    if horizon is None:
        return
    fixed = [
        link
        for output in node.heard
        for link in links_from(node, point, output)
        if link.leaf.absolute is not None and not link.arrow.suicide
    ]
    for link in fixed:
        points = link.arrow.sequence.sequence.points(pool.run.start, Point(horizon - 1))
        for child in islice(points, POINTS_BEHIND_MAX):
            for target, base in link.arrow.targets:
                yield Dependent(link, child, target, base)


def links_from(node: IndexedNode, point: Point, output: str) -> Iterator[IndexedLink]:
    """Yields the links to all that waits for an output which a node's task makes at a point."""
    yield from node.links.get(output, ())
    for group in node.groups.get(output, ()):
        for link in group.links:
            if link.leaf.absolute is None or link.leaf.absolute == point:
                yield link
    yield from node.absolute.get((point, output), ())


def child_points(pool: TaskPool, link: IndexedLink, point: Point) -> Iterable[Point]:
    """Returns the points of children along a link; for a fixed point, `live_points` only."""
    if link.leaf.absolute is None:
        return pool.plan.child_points(link, point)
    return sorted(live_points(pool, link))


def live_points(pool: TaskPool, link: IndexedLink) -> set[Point]:
    """Returns the points of an arrow at which any task is pooled or remembered."""
    found = pool.population.counts.keys() | pool.memory.keys()
    return {
        point for point in found if point >= pool.run.start and link.arrow.sequence.has(point)
    }


def near_the_horizon(pool: TaskPool) -> list[Key]:
    """Returns pooled tasks so far back that tasks around them may be evicted from memory.

    Only operators put tasks there.
    """
    earliest, last = pool.population.earliest(), last_near_the_horizon(pool)
    if earliest is None or last is None or earliest > last:
        return []
    return [key for key in pool.tasks if key[0] <= last]


def last_near_the_horizon(pool: TaskPool) -> Point | None:
    """Returns the last point whose tasks may have evicted neighbours; None if nothing is."""
    horizon, plan = pool.run.horizon, pool.plan
    return None if horizon is None else Point(horizon + plan.reach_back + plan.lead - 1)


def neighbourhood(pool: TaskPool, keys: Collection[Key], steps: int = 1) -> set[Key]:
    """Returns the evicted tasks that a step may look at when something happens to these.

    Those are the tasks themselves and the next of their chains, what they wait for, who waits
    for them, and what those wait for; with more `steps`, the same of all of these.
    """
    horizon, found = pool.run.horizon, set(keys)
    if horizon is None:
        return set()
    for _ in range(steps):
        for key in list(found):
            found.update(_around(pool, key))
    for point, name in keys:  # and the later ones of the same node, which a chain passes over
        node = pool.plan.nodes.get(name)
        later = node.points(Point(point + 1), Point(horizon - 1)) if node is not None else ()
        found.update((one, name) for one in islice(later, POINTS_BEHIND_MAX))
    return {
        (point, name)
        for point, name in found
        if point < horizon and name not in pool.memory.get(point, {})
    }


def _around(pool: TaskPool, key: Key) -> Iterator[Key]:
    point, name = key
    node = pool.plan.nodes.get(name)
    if node is None:
        return
    yield from _parents(pool, node, point)
    children = (all_dependents(pool, node, point), evicted_dependents(pool, node, point))
    for child in chain.from_iterable(children):
        yield child.key
        yield from _parents(pool, child.node, child.point)


def _parents(pool: TaskPool, node: IndexedNode, point: Point) -> Iterator[Key]:
    for leaf, _ in node.leaves_at(point):
        parent = leaf.parent_point(point, pool.plan.initial)
        yield from ((parent, name) for name in names_of(leaf))
