"""Says which elements of mapped tasks there are, at a point in a flow.

Theory of operation. The source of a list says with its success how many elements the list has:
an output such as `files[3]` of its own, which is remembered by flow as all outputs are. So a
restart, a reload and the end of a point need nothing else. The first number counts in a flow:
children of a success come once, whatever the task returns when it is run again in that flow.
Before the success there are no elements. Which values they stand for the core never sees.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.definition import element_name
from tidewheel.core.graph.outputs import SUCCEEDED
from tidewheel.core.sched.dependency_index import IndexedFamily, IndexedNode, MappedTasks
from tidewheel.core.sched.pool import TaskPool
from tidewheel.core.sched.task_state import Flows, TaskHistory


def size_at(pool: TaskPool, tasks: MappedTasks, point: Point, flows: Flows) -> int | None:
    """Returns how many elements there are; None before their source succeeds in the flows."""
    memory = pool.recall(point, tasks.over.source)
    if memory is None or SUCCEEDED not in memory.made:
        return None
    return size_told_in(tasks, memory, flows & memory.made[SUCCEEDED])


def size_told_in(tasks: MappedTasks, memory: TaskHistory, flows: Flows) -> int | None:
    """Returns the size of a list that its source, of this history, has told in these flows; it
    has not succeeded yet, perhaps."""
    found = None
    for output, where in memory.made.items():
        if output[-1] == "]" and not where.isdisjoint(flows):
            size = tasks.over.size_of(output)
            if size is not None and (found is None or size > found):
                found = size
    if found is not None:
        tasks.make(found)
    return found


def flows_there(pool: TaskPool, node: IndexedNode, point: Point, flows: Flows) -> Flows:
    """Returns those of the flows in which there is a task of this node at a point."""
    if node.element is None:
        return flows
    tasks, index = node.element
    sizes = ((flow, size_at(pool, tasks, point, frozenset({flow}))) for flow in flows)
    return frozenset(flow for flow, size in sizes if size is not None and index < size)


def is_there(pool: TaskPool, node: IndexedNode, point: Point) -> bool:
    """Says whether the graph has a task of this node at a point; an element, in any flow."""
    return node.is_at(point) and bool(flows_there(pool, node, point, frozenset(pool.flows)))


def element_names(group: IndexedFamily, size: int) -> Iterator[str]:
    """Yields the names of the elements of a group that are there with a list of this size."""
    return (element_name(group.family, index) for index in range(size))


def size_told(node: IndexedNode, output: str) -> tuple[MappedTasks, int] | None:
    """Returns what an output of a source says of one of its lists; None for any other."""
    for tasks in node.lists:
        size = tasks.over.size_of(output)
        if size is not None and size <= tasks.over.elements_max:
            return tasks, size
    return None


def record_size(
    memory: TaskHistory, output: str, tasks: MappedTasks, size: int, flows: Flows
) -> Flows:
    """Records the size of a list that a source tells in these flows; returns those that have
    another already, which they keep."""
    known = {flow: size_told_in(tasks, memory, frozenset({flow})) for flow in flows}
    tasks.make(size)
    new = frozenset(flow for flow, there in known.items() if there is None)
    if new:
        memory.made[output] = memory.made.get(output, frozenset()) | new
    return frozenset(flow for flow, there in known.items() if there not in (None, size))


def untold(node: IndexedNode, memory: TaskHistory, flows: Flows) -> list[MappedTasks]:
    """Returns the lists of which a source has not told the size in one of these flows."""
    return [
        tasks
        for tasks in node.lists
        if any(size_told_in(tasks, memory, frozenset({flow})) is None for flow in flows)
    ]
