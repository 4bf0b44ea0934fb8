"""Says which elements of mapped tasks there are, at a point in a flow.

Theory of operation. The source of a list says with its success how many elements the list has:
an output such as `files[3]` of its own, which is remembered by flow as all outputs are. So a
restart, a reload and the end of a point need nothing else. The first number counts in a flow:
children of a success come once, whatever the task returns when it is run again in that flow.
Before the success there are no elements. Which values they stand for the core never sees.

A flow that begins at elements, by hand, has no list of its own unless it comes to the source:
it takes over the number of the flow whose elements are run again, until then.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.definition import ListSize, element_name
from tidewheel.core.graph.graph import Graph
from tidewheel.core.graph.outputs import SUCCEEDED
from tidewheel.core.sched.dependency_index import IndexedFamily, IndexedNode, MappedTasks
from tidewheel.core.sched.pool import StepContext, TaskPool
from tidewheel.core.sched.task_state import (
    NO_FLOW,
    Flows,
    JobPhase,
    Key,
    PooledTask,
    TaskHistory,
    VerdictKind,
)
from tidewheel.errors import Refused


def size_at(pool: TaskPool, tasks: MappedTasks, point: Point, flows: Flows) -> int | None:
    """Returns how many elements there are; None before their source succeeds in the flows."""
    said = list_at(pool, tasks, point, flows)
    return None if said is None else said.size


def list_at(pool: TaskPool, tasks: MappedTasks, point: Point, flows: Flows) -> ListSize | None:
    """Returns what is known of a list in these flows, of several the longest; None before its
    source succeeds."""
    memory = pool.recall(point, tasks.over.source)
    if memory is None:
        return None
    succeeded = flows & memory.made.get(SUCCEEDED, NO_FLOW)
    own = [said for said, where in _said(tasks, memory) if not where.isdisjoint(succeeded)]
    if succeeded != flows:  # in some it has no list of its own, or not yet
        own += [
            said
            for said, where in _said(tasks, memory, taken_over=True)
            if not where.isdisjoint(flows - succeeded)
        ]
    found = max(own, key=_by_size, default=None)
    if found is not None:
        tasks.make(found.size)
    return found


def _by_size(said: ListSize) -> int:
    return said.size


def _said(
    tasks: MappedTasks, memory: TaskHistory, *, taken_over: bool = False
) -> Iterator[tuple[ListSize, Flows]]:
    """Yields what the source of a list has said of it, or what flows have taken over."""
    for output, where in memory.made.items():
        said = tasks.over.size_said(output) if output[-1] == "]" else None
        if said is not None and said.taken_over is taken_over:
            yield said, where


def size_told_in(tasks: MappedTasks, memory: TaskHistory, flows: Flows) -> int | None:
    """Returns the size of a list that its source, of this history, has told in these flows; it
    has not succeeded yet, perhaps."""
    found = [said.size for said, where in _said(tasks, memory) if not where.isdisjoint(flows)]
    if not found:
        return None
    tasks.make(max(found))
    return max(found)


def take_over_size(context: StepContext, node: IndexedNode, point: Point, flows: Flows) -> None:
    """Lets flows without a list, into which an element is brought by hand, have as many as
    there are in others."""
    if node.element is None:
        return
    pool = context.pool
    tasks, source = node.element[0], (point, node.element[0].over.source)
    task = pool.tasks.get((point, node.name))
    known = frozenset(pool.flows) if task is None or not task.flows else task.flows
    said = list_at(pool, tasks, point, known)
    if said is None:
        return
    lacking = frozenset(
        flow for flow in flows if size_at(pool, tasks, point, frozenset({flow})) is None
    )
    if not lacking:
        return
    made, output = pool.remember(*source).made, str(said._replace(taken_over=True))
    made[output] = made.get(output, NO_FLOW) | lacking
    for group in chain.from_iterable(tasks.groups.values()):
        for flow in lacking:  # what was counted without the number is counted anew
            pool.groups.get((group.index, point), {}).pop(flow, None)
    context.touched.memory[source] = None


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


def nodes_at(pool: TaskPool, point: Point) -> list[IndexedNode]:
    """Returns the nodes of which the graph has a task at a point, in any flow."""
    for tasks in pool.plan.mapped:  # makes the elements of which nobody has asked so far
        size_at(pool, tasks, point, frozenset(pool.flows))
    return [node for node in pool.plan.nodes.values() if is_there(pool, node, point)]


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
    """Records the size of a list that a source tells in these flows; returns those that have a
    list already, which they keep."""
    known = {flow: size_told_in(tasks, memory, frozenset({flow})) for flow in flows}
    tasks.make(size)
    new = frozenset(flow for flow, there in known.items() if there is None)
    if new:
        memory.made[output] = memory.made.get(output, frozenset()) | new
    return flows - new


def has_told(tasks: MappedTasks, task: PooledTask) -> bool:
    """Says whether a task has told the size of a list: now, or before in all of its flows."""
    if any(tasks.over.size_of(output) is not None for output in task.outputs):
        return True
    flows = task.flows
    known = (size_told_in(tasks, task.memory, frozenset({flow})) for flow in flows)
    return bool(flows) and all(size is not None for size in known)


def untold(node: IndexedNode, memory: TaskHistory, flows: Flows) -> list[MappedTasks]:
    """Returns the lists of which a source has not told the size in one of these flows."""
    return [
        tasks
        for tasks in node.lists
        if any(size_told_in(tasks, memory, frozenset({flow})) is None for flow in flows)
    ]


def flows_with_its_list(
    pool: TaskPool, node: IndexedNode, task: PooledTask, flows: Flows
) -> Flows:
    """Returns those of the flows that may merge into a pooled task: of an element, or of one
    that joins elements, only those with the same list. Of another list its index stands for
    something else, and a join of one list is none of the other."""
    if not task.flows:
        return flows
    point = task.point
    for tasks in lists_behind(node, point):
        own = list_at(pool, tasks, point, task.flows)
        if own is not None:
            others = [(flow, list_at(pool, tasks, point, frozenset({flow}))) for flow in flows]
            flows = frozenset(flow for flow, its in others if its is None or its[:3] == own[:3])
    return flows


def lists_behind(node: IndexedNode, point: Point) -> list[MappedTasks]:
    """Returns the lists of which a task is an element, or whose elements it joins."""
    if node.element is not None:
        return [node.element[0]]
    groups = (leaf.group for leaf, _ in node.leaves_at(point))
    return [one.elements for one in groups if one is not None and one.elements is not None]


def refuse_absent_element(pool: TaskPool, node: IndexedNode, point: Point) -> None:
    """Raises Refused for an element of which its list, in no flow, has so many, or that is not
    there yet."""
    if node.element is None:
        return
    tasks, index = node.element
    name = pool.plan.name_of((point, node.name))
    source = pool.plan.name_of((point, tasks.over.source))
    size = size_at(pool, tasks, point, frozenset(pool.flows))
    if size is None:
        why = f"the number of elements is known when {source} succeeds"
        raise Refused(f"there is no {name} yet: {why}")
    if index >= size:
        raise Refused(f"there is no {name}: {source} returned a list of length {size}")


def _has_run(pool: TaskPool, key: Key, flows: Flows) -> bool:
    task, memory = pool.tasks.get(key), pool.recall(*key)
    if task is not None and not task.flows.isdisjoint(flows):
        tried = task.try_number > 1 or task.submit_try > 1
        if task.stage is not JobPhase.WAITING or task.outputs or tried:
            return True
    ends = {} if memory is None else memory.verdicts
    return any(ends[flow].kind is VerdictKind.FINISHED for flow in flows & ends.keys())


def refuse_to_forget_list(
    pool: TaskPool, node: IndexedNode, point: Point, flows: Flows
) -> None:
    """Raises Refused for a source some of whose elements have run in these flows: there they
    would stand for what another list has in their places, which nobody would work on."""
    for tasks in node.lists:
        for index in range(size_at(pool, tasks, point, flows) or 0):
            for name in tasks.elements(index):
                if _has_run(pool, (point, name), flows):
                    source, ran = (pool.plan.name_of((point, one)) for one in (node.name, name))
                    word = pool.plan.word_of((point, node.name))
                    raise Refused(
                        f"{ran} has run, so the list of {source} cannot be removed: elements "
                        "of another list in its place would never be processed. Run "
                        f"{source} in a new flow: trigger {word} --reflow"
                    )


def refuse_other_lists(pool: TaskPool, graph: Graph) -> None:
    """Raises Refused if a task has succeeded whose list, under another graph, would be another
    one or too long: nobody could say then which elements there are."""
    for over in dict.fromkeys(graph.mapped.values()):
        for point, there in pool.memory.items():
            memory = there.get(over.source, TaskHistory())
            made, ends = memory.made, memory.verdicts.items()
            # Of one that nobody waited for only its verdict says that it succeeded.
            ended = {flow for flow, verdict in ends if verdict.ended == SUCCEEDED}
            for flow in sorted(ended.union(made.get(SUCCEEDED, ()))):
                told = (over.size_of(one) for one, flows in made.items() if flow in flows)
                size = max((one for one in told if one is not None), default=None)
                if size is None or size > over.elements_max or over.size not in (None, size):
                    name = pool.plan.name_of((point, over.source))
                    has = "no list" if size is None else f"{_elements(size)} of"
                    takes = "accepts at most" if over.size is None else "has"
                    raise Refused(
                        f"{name} has succeeded and returned {has} {over.value}; the new "
                        f"definition {takes} {_elements(over.elements_max)}, so the tasks for "
                        "this list could not run"
                    )


def _elements(count: int) -> str:
    return "1 element" if count == 1 else f"{count} elements"


def refuse_renamed_elements(pool: TaskPool, graph: Graph) -> None:
    """Raises Refused if elements have not ended that, under another graph, have another name:
    they would be dropped, and those with the new name never come, as their list was told."""
    old = pool.plan.graph.mapped
    for name, over in old.items():
        renamed = [
            other
            for other, its in graph.mapped.items()
            if other not in old and (its.source, its.value) == (over.source, over.value)
        ]
        if name in graph.mapped or not renamed:
            continue
        left = [
            pool.plan.name_of(key)
            for key, task in pool.tasks.items()
            if task.plan.element is not None
            and element_name(name, task.plan.element[1]) == task.plan.name
        ]
        if left:
            more = f" and {len(left) - 1} more have" if len(left) > 1 else " has"
            raise Refused(
                f"{left[0]}{more} not ended, and the new definition has {renamed[0]} instead "
                f"of {name}: elements of {name} would never be processed. Reload when they "
                f"have ended, or keep the name {name}"
            )
