"""Stores new tasks with their edges, all or each by itself; the same again changes nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from tidewheel import errors
from tidewheel.core.queue.dependency import EdgeState, edge_state, find_cycle, status_from_edges
from tidewheel.core.queue.requests import AllCreated, Submitted
from tidewheel.core.queue.status import Status
from tidewheel.core.queue.steps import become_ready, cancel
from tidewheel.core.queue.submission import (
    SubmitLimits,
    acceptable_alike,
    refusal,
    run_refusal,
)
from tidewheel.core.queue.task import (
    SUCCEEDED_OUTPUT,
    AlikeTasks,
    NewTask,
    TaskId,
    TaskState,
)
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.store.operations.transitions import (
    Effects,
    apply,
    become_what_edges_say,
    lock_tasks,
    read_tasks,
)
from tidewheel.store.rows import digest_of, digests_of, new_task_row
from tidewheel.store.transaction import (
    ROWS_PER_STATEMENT_MAX,
    Conflict,
    Transaction,
    in_chunks,
    rows_in_chunks,
)


@dataclass(slots=True)
class _Batch:
    """Holds the tasks of one call while they are being checked; refused tasks drop out."""

    tx: Transaction
    effects: Effects
    atomic: bool
    answers: dict[int, Submitted] = field(default_factory=dict)  # by position
    accepted: dict[TaskId, tuple[int, NewTask, str]] = field(default_factory=dict)
    repeats: dict[int, TaskId] = field(default_factory=dict)  # position -> the task it is again
    refused: dict[TaskId, errors.Refused] = field(default_factory=dict)
    is_tied: bool = False  # one of the tasks depends on more than its id
    # The stored tasks at the other end of new edges, with their graphs locked.
    neighbours: dict[TaskId, TaskState] = field(default_factory=dict)

    def refuse(self, position: int, task_id: TaskId, why: errors.Refused) -> None:
        if self.atomic:
            raise why
        self.answers[position] = Submitted(id=task_id, refused=why)
        self.refused[task_id] = why
        self.accepted.pop(task_id, None)


def submission(
    tasks: Sequence[NewTask], limits: SubmitLimits, *, atomic: bool
) -> Callable[[Transaction, Effects], Sequence[Submitted]]:
    """Returns the script that stores tasks and answers each; what can be judged without the
    store is judged now."""
    if len(tasks) > limits.tasks_per_call_max:
        accepted = f"up to {limits.tasks_per_call_max} tasks in one call"
        raise errors.BadSetting("tasks", len(tasks), accepted)
    if (alike := acceptable_alike(tasks, limits)) is not None:
        digests = digests_of(alike)
        return lambda tx, effects: submit_alike(tx, effects, alike, digests, atomic=atomic)
    good, refused = _sorted_out(tasks, limits, atomic=atomic)

    def script(tx: Transaction, effects: Effects) -> list[Submitted]:
        answers = refused | submit(tx, effects, good, atomic=atomic)
        return [answers[position] for position in range(len(tasks))]

    return script


def _sorted_out(
    tasks: Sequence[NewTask], limits: SubmitLimits, *, atomic: bool
) -> tuple[list[tuple[int, NewTask]], dict[int, Submitted]]:
    """Returns the tasks that keep the rules by themselves, and the answers for the others, both
    by position. If ``atomic``, the first one that does not raises its error."""
    good, answers = [], {}
    for position, task in enumerate(tasks):
        why = refusal(task, limits) or run_refusal(task)
        if why is None:
            good.append((position, task))
        elif atomic:
            raise why
        else:
            answers[position] = Submitted(id=task.id, refused=why)
    return good, answers


def submit(
    tx: Transaction, effects: Effects, tasks: Sequence[tuple[int, NewTask]], *, atomic: bool
) -> dict[int, Submitted]:
    """Stores tasks, each of which keeps the rules by itself; returns answers by position.

    If ``atomic``, the first task that is refused raises its error, and nothing is stored.
    """
    batch = _Batch(tx, effects, atomic)
    _drop_repeated(batch, tasks)
    if any(_is_tied(task) for _, task, _ in batch.accepted.values()):
        _check_ties(batch)
    _insert(batch)
    for position, first in batch.repeats.items():
        # What became of the task that it repeats: stored, or refused.
        batch.answers[position] = Submitted(id=first, refused=batch.refused.get(first))
    return batch.answers


def _is_tied(task: NewTask) -> bool:
    """Says whether anything but its id can keep a task from being stored."""
    return bool(task.name or task.unique_key is not None or task.needs or task.continuations)


def is_stored_by_one_query(tasks: Sequence[NewTask]) -> bool:
    """Says whether a submission is of one task that is ready at once, and nothing but the
    insert of its row has to be done unless its id is known."""
    if len(tasks) != 1:
        return False
    task = tasks[0]
    return task.armed and task.executes and not _is_tied(task)


def _check_ties(batch: _Batch) -> None:
    """Drops tasks that are stored already, and refuses those that cannot be stored for the sake
    of others. Then nothing else may come between."""
    batch.is_tied = True
    _drop_stored(batch, list(batch.accepted))
    _refuse_taken_names(batch)
    wanted = {
        neighbour
        for _, task, _ in batch.accepted.values()
        for neighbour in _neighbours_of(task)
        if neighbour not in batch.accepted
    }
    batch.neighbours = lock_tasks(batch.tx, sorted(wanted)) if wanted else {}
    _refuse_bad_edges(batch)


def submit_alike(
    tx: Transaction,
    effects: Effects,
    tasks: AlikeTasks,
    digests: list[str] | str,
    *,
    atomic: bool,
) -> Sequence[Submitted]:
    """Stores tasks that say the same but for their ids and specs, as ``submit`` does.

    They wait for nothing and have no name or key: nothing but their ids need be looked up, and
    each is ready at once. Where another client stores one of the ids at the same moment, the
    database refuses the second, and its script is run again.
    """

    def one_by_one() -> list[Submitted]:
        answers = submit(tx, effects, list(enumerate(tasks)), atomic=atomic)
        return [answers[position] for position in range(len(tasks))]

    # Of several statements a later one would tell too late.
    is_told = tx.tells_known_ids and len(tasks) <= ROWS_PER_STATEMENT_MAX
    if not (tasks.ids_are_new or is_told) and rows_in_chunks(
        tx, "find_task_digests", "ids", tasks.ids
    ):
        return one_by_one()
    one = digests if isinstance(digests, str) else ""
    said = new_task_row(tasks.said, Status.READY, one) | {"executes": True}
    for start in range(0, len(tasks), ROWS_PER_STATEMENT_MAX):
        part = slice(start, start + ROWS_PER_STATEMENT_MAX)
        specs = None if tasks.specs is None else tasks.specs[part]
        own = None if isinstance(digests, str) else digests[part]
        if not tx.insert_alike(said, tasks.ids[part], specs, own):
            return one_by_one()
    effects.queues.add(tasks.said.queue)
    return AllCreated(tasks.ids)


def _drop_repeated(batch: _Batch, tasks: Sequence[tuple[int, NewTask]]) -> None:
    """Accepts the first task of each id in the call. A later one that says the same gets the
    answer of the first; one that differs is refused."""
    for position, task in tasks:
        digest = digest_of(task)
        first = batch.accepted.get(task.id)
        if first is None:
            batch.accepted[task.id] = (position, task, digest)
        elif first[2] == digest:
            batch.repeats[position] = task.id
        else:
            why = errors.Duplicate("id", task.id, task.id)
            if batch.atomic:
                raise why
            batch.answers[position] = Submitted(id=task.id, refused=why)


def _drop_stored(batch: _Batch, wanted: Sequence[TaskId]) -> None:
    """Drops those of these tasks whose id is stored already. One that says the same as the
    stored task is answered as not created; another is refused."""
    stored: dict[str, str] = dict(rows_in_chunks(batch.tx, "find_task_digests", "ids", wanted))
    for task_id in wanted:
        position, _, ours = batch.accepted[task_id]
        if task_id not in stored:
            continue
        if stored[task_id] == ours:
            del batch.accepted[task_id]
            batch.answers[position] = Submitted(id=task_id, created=False)
        else:
            batch.refuse(position, task_id, errors.Duplicate("id", task_id, task_id))


def _refuse_taken_names(batch: _Batch) -> None:
    """Refuses tasks whose name or unique key another task has.

    Names are unique for ever, unique keys among the tasks of a queue that have not ended. A
    task that says the same as the one with its unique key counts as that one.
    """
    named = sorted({task.name for _, task, _ in batch.accepted.values() if task.name})
    holders: dict[str, str] = dict(rows_in_chunks(batch.tx, "find_task_names", "names", named))
    keyed = sorted(
        {
            (t.queue, t.unique_key)
            for _, t, _ in batch.accepted.values()
            if t.unique_key is not None
        }
    )
    rows = [{"queue": queue, "key": key} for queue, key in keyed]
    found = rows_in_chunks(batch.tx, "find_unique_keys", "keys", rows)
    live = {(queue, key): (task_id, digest) for queue, key, task_id, digest in found}
    for position, task, digest in list(batch.accepted.values()):
        if task.name:
            if holders.get(task.name) == task.id:
                raise Conflict("another client submitted this task at the same moment")
            if task.name in holders:
                why = errors.Duplicate("name", task.name, holders[task.name])
                batch.refuse(position, task.id, why)
                continue
            holders[task.name] = task.id
        if task.unique_key is not None:
            _check_unique_key(batch, position, task, digest, live)


def _check_unique_key(
    batch: _Batch,
    position: int,
    task: NewTask,
    digest: str,
    live: dict[tuple[str, str], tuple[str, str]],
) -> None:
    assert task.unique_key is not None
    holder = live.setdefault((task.queue, task.unique_key), (task.id, digest))
    if holder[0] == task.id:
        return
    if holder[1] == digest:
        del batch.accepted[task.id]
        batch.repeats[position] = TaskId(holder[0])
    else:
        batch.refuse(
            position, task.id, errors.Duplicate("unique_key", task.unique_key, holder[0])
        )


def _refuse_bad_edges(batch: _Batch) -> None:
    """Refuses tasks whose edges are impossible or form a cycle, until nothing more drops out. A
    refused task may have been the neighbour of another."""
    named_by: dict[str, list[TaskId]] = {}
    for _, task, _ in batch.accepted.values():
        for neighbour in _neighbours_of(task):
            named_by.setdefault(neighbour, []).append(task.id)
    doubtful = deque(batch.accepted)
    while True:
        while doubtful:
            task_id = doubtful.popleft()
            if task_id not in batch.accepted:
                continue
            position, task, _ = batch.accepted[task_id]
            why = _edge_refusal(task, batch)
            if why is not None:
                batch.refuse(position, task_id, why)
                doubtful.extend(named_by.get(task_id, ()))
        cycle = find_cycle(_children_after(batch))
        if cycle is None:
            return
        task_id = next(TaskId(name) for name in cycle if name in batch.accepted)
        batch.refuse(batch.accepted[task_id][0], task_id, errors.DependencyCycle(cycle))
        doubtful.extend(named_by.get(task_id, ()))


def _neighbours_of(task: NewTask) -> list[TaskId]:
    return [*(need.task_id for need in task.needs), *task.continuations]


def _edge_refusal(task: NewTask, batch: _Batch) -> errors.Refused | None:
    known = (batch.neighbours, batch.accepted)
    missing = [name for name in _neighbours_of(task) if not any(name in one for one in known)]
    if missing:
        return errors.UnknownDependency(task.id, missing)
    for child in task.continuations:
        state = batch.neighbours.get(child)
        if state is not None and state.status is not Status.WAITING:
            return errors.WrongStatus(child, "add a dependency", state.status, [Status.WAITING])
    return None


def _children_after(batch: _Batch) -> dict[str, list[str]]:
    """Returns the children of each task that could be in a cycle with a new task."""
    children: dict[str, list[str]] = {}
    for _, task, _ in batch.accepted.values():
        for need in task.needs:
            children.setdefault(need.task_id, []).append(task.id)
        if task.continuations:
            children.setdefault(task.id, []).extend(task.continuations)
    # A circle leaves the new tasks only through a continuation that is stored already.
    exits = [
        batch.neighbours[child].seq
        for _, task, _ in batch.accepted.values()
        for child in task.continuations
        if child in batch.neighbours
    ]
    for parent, child in reachable_edges(batch.tx, sorted(set(exits))):
        children.setdefault(parent, []).append(child)
    return children


def _insert(batch: _Batch) -> None:
    edges, initial = _first_statuses(batch)
    rows = []
    for task_id, (_, task, digest) in batch.accepted.items():
        status = initial[task_id]
        # A task that cannot run is created waiting, and cancelled by the same transaction.
        stored_as = Status.WAITING if status is Status.CANCELLED else status
        rows.append(new_task_row(task, stored_as, digest))
    seqs: dict[str, int] = {}
    for chunk in in_chunks(rows):
        seqs |= batch.tx.insert(chunk)
    if len(seqs) != len(rows) and not batch.is_tied:
        # Most ids are new: only those that are not cost a look.
        _drop_stored(batch, [one for one in batch.accepted if one not in seqs])
    if len(seqs) != len(batch.accepted):
        raise Conflict("another client submitted one of these tasks at the same moment")
    for task_id, (position, task, _) in batch.accepted.items():
        batch.answers[position] = Submitted(id=task_id, created=True)
        if initial[task_id] is Status.READY:
            batch.effects.queues.add(task.queue)
    if edges:
        known = seqs | {task.id: task.seq for task in batch.neighbours.values()}
        numbered = [
            (known[parent], known[child], output, state)
            for parent, child, output, state in edges
        ]
        _insert_edges(batch.tx, numbered, batch.neighbours)
    _settle_new(batch, initial, seqs)


Edge = tuple[str, str, str, EdgeState]


def _first_statuses(batch: _Batch) -> tuple[list[Edge], dict[TaskId, Status]]:
    """Returns the new edges with their states, and the first status of each new task."""
    needed = sorted({task.seq for task in batch.neighbours.values()})
    made: dict[int, set[str]] = {}
    for seq, output in rows_in_chunks(batch.tx, "list_outputs_made", "seqs", needed):
        made.setdefault(seq, set()).add(output)
    into: dict[str, list[Edge]] = {}
    for task_id, (_, task, _) in batch.accepted.items():
        for need in task.needs:
            parent = batch.neighbours.get(need.task_id)
            state = EdgeState.OPEN
            if parent is not None:
                state = edge_state(need.output, parent.status, made.get(parent.seq, ()))
            into.setdefault(task_id, []).append((need.task_id, task_id, need.output, state))
        for child in task.continuations:
            into.setdefault(child, []).append(
                (task_id, child, Status.SUCCEEDED, EdgeState.OPEN)
            )
    edges = [edge for found in into.values() for edge in dict.fromkeys(found)]
    initial = {
        task_id: status_from_edges(
            [state for _, _, _, state in into.get(task_id, ())], armed=task.armed
        )
        for task_id, (_, task, _) in batch.accepted.items()
    }
    return edges, initial


def _insert_edges(
    tx: Transaction,
    edges: Sequence[tuple[int, int, str, EdgeState]],
    stored: Mapping[TaskId, TaskState],
) -> None:
    """Stores edges, given by seqs, and joins the graphs of their tasks. ``stored`` holds those
    of the tasks that were there before."""
    rows = [
        {"parent": parent, "child": child, "output": output, "state": state}
        for parent, child, output, state in edges
    ]
    rows_in_chunks(tx, "insert_edges", "edges", rows)
    graphs = {task.seq: task.graph for task in stored.values()}
    join_graphs(tx, [(parent, child) for parent, child, _, _ in edges], graphs)


def _settle_new(batch: _Batch, initial: dict[TaskId, Status], seqs: dict[str, int]) -> None:
    """Ends new tasks at once: those ready with nothing to execute, and those cancelled."""
    ending = [
        seqs[task_id]
        for task_id, (_, task, _) in batch.accepted.items()
        if initial[task_id] is Status.CANCELLED
        or (initial[task_id] is Status.READY and not task.executes)
    ]
    if not ending:
        return
    decided = []
    for task in read_tasks(batch.tx, ending):
        change = cancel(task) if initial[task.id] is Status.CANCELLED else become_ready(task)
        assert change is not None
        decided.append((task, change))
    # What cannot run waits for nobody, though other dependencies may still be open (R003-50).
    cancelled = [task.seq for task, change in decided if change.to_status is Status.CANCELLED]
    rows_in_chunks(batch.tx, "close_edges_of_children", "seqs", cancelled)
    apply(batch.tx, decided, batch.effects)


# ---- edges between stored tasks ----
#
# Every task with an edge belongs to one graph, named by the smallest seq in it when it was
# made. Joining two graphs gives all their tasks the smaller name: rare, and the price for
# having one lock per graph instead of one per row, in an order that could deadlock.


def add_edges(tx: Transaction, edges: Sequence[tuple[TaskId, TaskId]]) -> None:
    """Makes children wait for the success of their parents; edges are (parent, child).

    Both must be waiting (R003-24); an edge that is there already is no error.
    """
    tasks = _lock_both_ends(tx, edges, "add a dependency")
    children: dict[str, list[str]] = {}
    for parent, child in edges:
        if parent == child:
            raise errors.InvalidTask(
                parent, ["it would depend on itself; remove this dependency"]
            )
        children.setdefault(parent, []).append(child)
    starts = sorted({tasks[child].seq for _, child in edges})
    for stored_parent, stored_child in reachable_edges(tx, starts):
        children.setdefault(stored_parent, []).append(stored_child)
    if cycle := find_cycle(children):
        raise errors.DependencyCycle(cycle)
    new = [
        (tasks[parent].seq, tasks[child].seq, SUCCEEDED_OUTPUT, EdgeState.OPEN)
        for parent, child in dict.fromkeys(edges)
    ]
    _insert_edges(tx, new, tasks)


def remove_edges(
    tx: Transaction, effects: Effects, edges: Sequence[tuple[TaskId, TaskId]]
) -> None:
    """Removes edges (parent, child), both of whose tasks must be waiting.

    An armed child that loses its last open edge becomes ready (R003-30).
    """
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
            raise errors.NotFound("task", task_id)
        if tasks[task_id].status is not Status.WAITING:
            raise errors.WrongStatus(
                task_id, operation, tasks[task_id].status, [Status.WAITING]
            )
    return tasks


def list_edge_states(tx: Transaction, child: int) -> list[EdgeState]:
    """Returns the states of the edges into one task."""
    return [EdgeState(row[0]) for row in tx.rows("list_edge_states", child=child)]


def reachable_edges(tx: Transaction, starts: Sequence[int]) -> list[tuple[str, str]]:
    """Returns every stored edge below these tasks, however far, as (parent id, child id)."""
    found = rows_in_chunks(tx, "list_reachable_edges", "seqs", list(starts))
    return [(parent, child) for parent, child in found]


def join_graphs(
    tx: Transaction, edges: Sequence[tuple[int, int]], graphs: Mapping[int, int | None]
) -> None:
    """Puts all tasks that these edges connect into one graph.

    ``graphs`` has, by seq, the graphs of those that were stored before; None: it had no edge.
    """
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
