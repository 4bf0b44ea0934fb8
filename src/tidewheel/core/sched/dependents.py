"""The one walk from a task to its dependents: the tasks that wait for one of its outputs.

Three kinds of arrows lead from a task: to relative points, through a family that it is a member
of, and from a fixed point. A rule that follows one kind only forgets tasks that the others
reach; so every rule that asks for the dependents of a task asks here. Two rules go along the
links themselves, kind by kind, since they do something else for each kind: `publish` for an
output that was made, and `reevaluate_dependents` for one that will not be made any more. Both
count the members of a family instead of visiting its dependents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.sched.dependency_index import IndexedLink, IndexedNode
from tidewheel.core.sched.pool import TaskPool
from tidewheel.core.sched.task_state import Key

POINTS_BEHIND_MAX = 1_000  # looked at for each arrow


class Dependent(NamedTuple):
    """A task that waits for an output, and the place of that atom among all it waits for."""

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
    """The tasks that wait for this output of a task, those that are to be removed aside.

    What waits for a fixed point does so at points without end: given are those of which
    anything is known.
    """
    for link in links_from(node, point, output):
        if not link.arrow.suicide:
            for child in child_points(pool, link, point):
                for target, base in link.arrow.targets:
                    yield Dependent(link, child, target, base)


def all_dependents(pool: TaskPool, node: IndexedNode, point: Point) -> Iterator[Dependent]:
    """The tasks that wait for any output of a task."""
    for output in node.heard:
        yield from dependents(pool, node, point, output)


def relative_dependents(pool: TaskPool, node: IndexedNode, point: Point) -> Iterator[Dependent]:
    """The tasks that wait for any output of a task at this point, and not at a fixed one."""
    links = [link for links in node.links.values() for link in links]
    for groups in node.groups.values():
        links += (link for group in groups for link in group.links)
    for link in links:
        if link.leaf.absolute is None and not link.arrow.suicide:
            for child in pool.plan.child_points(link, point):
                for target, base in link.arrow.targets:
                    yield Dependent(link, child, target, base)


def evicted_dependents(pool: TaskPool, node: IndexedNode, point: Point) -> Iterator[Dependent]:
    """The tasks behind the horizon that waited for any output of a task at a fixed point.

    Only operators reach back there, so it may take a walk, though not an endless one.
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
        sequence = link.arrow.sequence.sequence
        child = sequence.first_from(pool.run.start)
        for _ in range(POINTS_BEHIND_MAX):
            if child is None or child >= horizon:
                break
            for target, base in link.arrow.targets:
                yield Dependent(link, child, target, base)
            child = sequence.next_after(child)


def links_from(node: IndexedNode, point: Point, output: str) -> Iterator[IndexedLink]:
    """Yields the links along which an output made at a point is heard."""
    yield from node.links.get(output, ())
    for group in node.groups.get(output, ()):
        for link in group.links:
            if link.leaf.absolute is None or link.leaf.absolute == point:
                yield link
    yield from node.absolute.get((point, output), ())


def child_points(pool: TaskPool, link: IndexedLink, point: Point) -> Iterable[Point]:
    """Returns where the children along a link lie; of a fixed point, those that are known."""
    if link.leaf.absolute is None:
        return pool.plan.child_points(link, point)
    return sorted(live_points(pool, link))


def live_points(pool: TaskPool, link: IndexedLink) -> set[Point]:
    """The points of an arrow at which there is a task, or one is remembered."""
    found = pool.population.counts.keys() | pool.memory.keys()
    return {
        point for point in found if point >= pool.run.start and link.arrow.sequence.has(point)
    }
