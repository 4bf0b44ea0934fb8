"""Window n: the pool, and everything within n edges of it (R001-50).

What lies behind is known from history, what lies ahead from the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from tidewheel.core.sched.pool import TaskPool
from tidewheel.core.sched.task_state import Key

EDGES_MAX = 10  # how far one may look
TASKS_MAX = 5_000  # of one window


def window(pool: TaskPool, edges: int, middle: Iterable[Key] | None = None) -> dict[Key, int]:
    """Every task of the window with its distance from the pool; cut if there are too many.

    With a `middle` the distance is that from these tasks.
    """
    found = dict.fromkeys(islice(pool.tasks if middle is None else middle, TASKS_MAX), 0)
    front = list(found)
    for distance in range(1, min(edges, EDGES_MAX) + 1):
        following: list[Key] = []
        for key in front:
            for other in neighbours(pool, key):
                if other not in found and len(found) < TASKS_MAX:
                    found[other] = distance
                    following.append(other)
        front = following
    return found


def neighbours(pool: TaskPool, key: Key) -> Iterator[Key]:
    """The parents and the children of a task that lie within the run."""
    for other in (*parents(pool, key), *_children(pool, key)):
        point, name = other
        final = pool.plan.final
        inside = point >= pool.run.start and (final is None or point <= final)
        if inside and pool.plan.nodes[name].is_at(point):
            yield other


def parents(pool: TaskPool, key: Key) -> Iterator[Key]:
    """Every task that an arrow into this one names, also of points outside of the run."""
    for arrow, _ in pool.plan.nodes[key[1]].arrows_at(key[0]):
        for leaf in arrow.leaves:
            parent = leaf.parent_point(key[0], pool.plan.initial)
            members = (leaf.node,) if leaf.group is None else leaf.group.members
            for member in members:
                yield (parent, member)


def _children(pool: TaskPool, key: Key) -> Iterator[Key]:
    node = pool.plan.nodes[key[1]]
    links = [link for found in node.links.values() for link in found]
    links += [link for found in node.groups.values() for group in found for link in group.links]
    for link in links:
        # An absolute parent has children at points without end.
        if link.arrow.suicide or link.leaf.absolute is not None:
            continue
        for child in pool.plan.child_points(link, key[0]):
            for target, _ in link.arrow.targets:
                yield (child, target.name)
