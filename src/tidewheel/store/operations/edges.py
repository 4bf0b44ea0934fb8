"""Changes who waits for whom among stored tasks.

Every task with an edge belongs to one graph, named by the smallest seq in it when it was
made. Joining two graphs renames the tasks of the smaller name's rival: rare, and the price
for having one lock per graph instead of one per row, in an order that could deadlock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidewheel.core.queue.dependency import EdgeState, find_cycle
from tidewheel.core.queue.status import Status
from tidewheel.core.queue.task import SUCCEEDED_OUTPUT, TaskId, TaskState
from tidewheel.errors import DependencyCycle, InvalidTask, NotFound, WrongStatus
from tidewheel.store.operations.transitions import Effects, become_what_edges_say, lock_tasks
from tidewheel.store.transaction import Transaction, rows_in_chunks


def add_edges(tx: Transaction, edges: Sequence[tuple[TaskId, TaskId]]) -> None:
    """Lets children wait for parents; both must be waiting (R003-24), again is no error."""
    tasks = _lock_both_ends(tx, edges, "add a dependency")
    children: dict[str, list[str]] = {}
    for parent, child in edges:
        if parent == child:
            raise InvalidTask(parent, ["it would depend on itself; remove that edge"])
        children.setdefault(parent, []).append(child)
    starts = sorted({tasks[child].seq for _, child in edges})
    for stored_parent, stored_child in reachable_edges(tx, starts):
        children.setdefault(stored_parent, []).append(stored_child)
    if cycle := find_cycle(children):
        raise DependencyCycle(cycle)
    rows = [
        {
            "parent": tasks[parent].seq,
            "child": tasks[child].seq,
            "output": SUCCEEDED_OUTPUT,
            "state": EdgeState.OPEN,
        }
        for parent, child in dict.fromkeys(edges)
    ]
    rows_in_chunks(tx, "insert_edges", "edges", rows)
    graphs = {task.seq: task.graph for task in tasks.values()}
    join_graphs(tx, [(tasks[parent].seq, tasks[child].seq) for parent, child in edges], graphs)


def remove_edges(
    tx: Transaction, effects: Effects, edges: Sequence[tuple[TaskId, TaskId]]
) -> None:
    """Lets children wait no longer; the last edge of an armed child makes it ready
    (R003-30)."""
    tasks = _lock_both_ends(tx, edges, "remove a dependency")
    rows = [{"parent": tasks[parent].seq, "child": tasks[child].seq} for parent, child in edges]
    rows_in_chunks(tx, "delete_edges", "edges", rows)
    for child in dict.fromkeys(child for _, child in edges):
        # Looked at afresh: an earlier child may have ended at once and moved this one on.
        task = lock_tasks(tx, [child])[child]
        if task.status is Status.WAITING:
            become_what_edges_say(tx, task, list_edge_states(tx, task.seq), effects)


def _lock_both_ends(
    tx: Transaction, edges: Sequence[tuple[TaskId, TaskId]], operation: str
) -> dict[TaskId, TaskState]:
    wanted = sorted({task_id for edge in edges for task_id in edge})
    tasks = lock_tasks(tx, wanted)
    for task_id in wanted:
        if task_id not in tasks:
            raise NotFound("task", task_id)
        if tasks[task_id].status is not Status.WAITING:
            raise WrongStatus(task_id, operation, tasks[task_id].status, [Status.WAITING])
    return tasks


def list_edge_states(tx: Transaction, child: int) -> list[EdgeState]:
    """Returns how the edges into one task stand."""
    return [EdgeState(row[0]) for row in tx.rows("list_edge_states", child=child)]


def reachable_edges(tx: Transaction, starts: Sequence[int]) -> list[tuple[str, str]]:
    """Returns every stored edge, by ids, that can be walked down to from these tasks."""
    found = rows_in_chunks(tx, "list_reachable_edges", "seqs", list(starts))
    return [(parent, child) for parent, child in found]


def join_graphs(
    tx: Transaction, edges: Sequence[tuple[int, int]], graphs: Mapping[int, int | None]
) -> None:
    """Gives all tasks tied by these edges one graph; ``graphs`` holds those of stored tasks."""
    leaders: dict[int, int] = {}

    def leader(seq: int) -> int:
        while leaders.setdefault(seq, seq) != seq:
            leaders[seq] = leaders[leaders[seq]]
            seq = leaders[seq]
        return seq

    for parent, child in edges:
        # A stored graph stands for all its members, so joining its name joins them.
        ends = sorted(leader(graphs.get(seq) or seq) for seq in (parent, child))
        leaders[ends[1]] = ends[0]
    members = {seq for edge in edges for seq in edge}
    renamed = {
        graph: leader(graph)
        for graph in set(graphs.values())
        if graph and leader(graph) != graph
    }
    for old, new in sorted(renamed.items()):
        tx.rows("rename_graph", old=old, new=new)
    rows = [
        {"seq": seq, "graph": leader(seq)} for seq in sorted(members) if not graphs.get(seq)
    ]
    rows_in_chunks(tx, "assign_graphs", "tasks", rows)
