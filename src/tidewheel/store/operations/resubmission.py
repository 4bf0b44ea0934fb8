"""Submits tasks that have ended once more: each as a new task with the same body.

The id of the new task is made of the old one's, so that a task is submitted again once: the
same request a second time, from a double click or a lost answer, finds the new task and makes
none. To try once more, the newest of them is submitted again. ``fit`` becomes
``fit~2-1a2b3c4d5e6f``, then ``fit~3-…``; the end of it is a digest of what only those know who
may see the old task, so that nobody else can take the id beforehand.

A new task needs what the old one needed. Where that can no longer come, because the needed task
has failed, too, the new task needs that one's successor: one that is made by the same request,
or was made before. Without a successor it is refused: to run it would be to run it without its
input.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, fields, replace

from tidewheel.api.tasks import JOB_OF_RUN, NO_SUCH_TASK, EdgeView, Resubmitted, Task
from tidewheel.core.queue.dependency import EdgeState, edge_state
from tidewheel.core.queue.requests import PAGE_COUNT_MAX
from tidewheel.core.queue.status import FINAL, Status
from tidewheel.core.queue.submission import NAME_LENGTH_MAX, SubmitLimits, refusal
from tidewheel.core.queue.task import Need, NewTask, TaskId
from tidewheel.errors import BadSetting
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.store.operations.queries import edges_of, find_each
from tidewheel.store.operations.submit import submission
from tidewheel.store.operations.transitions import Effects, read_tasks
from tidewheel.store.transaction import Transaction, rows_in_chunks

SUCCESSORS_MAX = 100  # of one task, that are looked for
NAMES_MAX = 20  # that are tried: fit.2, fit.3, …
_DIGITS = 12
_AGAIN = re.compile(rf"(.*)~(\d{{1,6}})-[0-9a-f]{{{_DIGITS}}}", re.DOTALL)
_COUNTED = re.compile(r"(.*)\.(\d{1,9})", re.DOTALL)
# What a new task says as the old one did; a field that is added to both follows.
_SAME = [one.name for one in fields(NewTask) if one.name in Task.__slots__]


def next_id(task: Task) -> TaskId:
    """Returns the id that a task has when it is submitted again."""
    found = _AGAIN.fullmatch(task.id)
    root, number = (found[1], int(found[2]) + 1) if found else (task.id, 2)
    said = f"{task.seq}\0{task.created_at!r}\0{task.id}"
    end = f"~{number}-{hashlib.sha256(said.encode()).hexdigest()[:_DIGITS]}"
    return TaskId(root[: NAME_LENGTH_MAX - len(end)] + end)


def next_name(name: str) -> str:
    """Returns the name after this one: fit, fit.2, fit.3; names are unique for ever."""
    found = _COUNTED.fullmatch(name)
    root, number = (found[1], int(found[2]) + 1) if found else (name, 2)
    end = f".{number}"
    return root[: NAME_LENGTH_MAX - len(end)] + end


@dataclass(slots=True)
class _Plan:
    """Holds what is known of the tasks of one call while it is decided what becomes of each."""

    tasks: dict[TaskId, Task] = field(default_factory=dict)  # these, and those they need
    edges: list[EdgeView] = field(default_factory=list)  # into and out of those of the call
    outputs: dict[int, set[str]] = field(default_factory=dict)  # by the seq of who made them
    refused: dict[TaskId, str] = field(default_factory=dict)
    present: dict[TaskId, TaskId] = field(default_factory=dict)  # submitted again before
    new: dict[TaskId, NewTask] = field(default_factory=dict)  # by the id of the old one
    lacks: dict[TaskId, TaskId] = field(default_factory=dict)  # what a refused one needs


def resubmit(
    tx: Transaction,
    effects: Effects,
    task_ids: Sequence[TaskId],
    limits: SubmitLimits,
    *,
    with_children: bool = False,
) -> list[Resubmitted]:
    """Submits tasks that have ended again, each by itself; those that were before are told.

    ``with_children`` adds whatever was cancelled because it needs one of them.
    """
    wanted, plan = _planned(tx, task_ids, limits, with_children=with_children)
    olds = list(plan.new)
    stored = submission([plan.new[one] for one in olds], limits, atomic=False)(tx, effects)
    answers = dict(zip(olds, stored, strict=True))
    told = []
    for one in _told(plan, wanted):
        answer = answers.get(one.again_of)
        if answer is None:
            told.append(one)
        elif answer.refused is not None:
            told.append(replace(one, id=None, refused=str(answer.refused)))
        else:
            told.append(replace(one, id=answer.id, created=answer.created))
    return told


def try_to_resubmit(
    tx: Transaction,
    task_ids: Sequence[TaskId],
    limits: SubmitLimits,
    *,
    with_children: bool = False,
) -> list[Resubmitted]:
    """Returns what ``resubmit`` would answer; nothing is stored."""
    wanted, plan = _planned(tx, task_ids, limits, with_children=with_children)
    return _told(plan, wanted)


def _told(plan: _Plan, wanted: Sequence[TaskId]) -> list[Resubmitted]:
    """Returns the answer for each task; ``created`` says of a new one that it is to be."""
    left = _cancelled_children(plan, set(wanted))
    told = []
    for old in wanted:
        new, task = plan.new.get(old), plan.tasks.get(old)
        told.append(
            Resubmitted(
                again_of=old,
                id=new.id if new else plan.present.get(old),
                created=new is not None,
                queue=task.queue if task else "",
                name=new.name if new else None,
                needs=_needs(plan, old),
                children=tuple(left.get(old, ())),
                refused=plan.refused.get(old),
            )
        )
    return told


def _needs(plan: _Plan, old: TaskId) -> tuple[TaskId, ...]:
    if old in plan.lacks:
        return (plan.lacks[old],)
    return tuple(one.task_id for one in plan.new[old].needs) if old in plan.new else ()


def _planned(
    tx: Transaction, task_ids: Sequence[TaskId], limits: SubmitLimits, *, with_children: bool
) -> tuple[list[TaskId], _Plan]:
    """Returns all tasks that are concerned, and what is to become of each."""
    wanted = list(dict.fromkeys(task_ids))
    _check_count(wanted)
    plan = _Plan()
    fresh = wanted
    while fresh:
        _read(tx, plan, fresh)
        if not with_children:
            break
        found = _cancelled_children(plan, set(wanted))
        fresh = list(dict.fromkeys(child for some in found.values() for child in some))
        wanted = wanted + fresh
        _check_count(wanted)
    _refuse_what_cannot_be(tx, plan, wanted)
    taken = {
        task_id: next_id(plan.tasks[task_id])
        for task_id in wanted
        if task_id not in plan.refused
    }
    for old, there in _existing(tx, taken).items():
        if there.queue == plan.tasks[old].queue:
            plan.present[old] = there.id
        else:
            plan.refused[old] = f"the id {taken[old]} is taken by another task"
    _make(tx, plan, wanted)
    for old, new in list(plan.new.items()):
        if why := refusal(new, limits):
            plan.refused[old] = str(why)
            del plan.new[old]
    return wanted, plan


def _check_count(wanted: Sequence[TaskId]) -> None:
    if len(wanted) > PAGE_COUNT_MAX:
        accepted = (
            f"up to {PAGE_COUNT_MAX} in one call, including the tasks that were cancelled "
            "with them"
        )
        raise BadSetting("tasks", len(wanted), accepted)


def _read(tx: Transaction, plan: _Plan, task_ids: Sequence[TaskId]) -> None:
    """Reads tasks, their edges, and the tasks at the other ends of these."""
    found = {task.id: task for task in find_each(tx, task_ids)}
    known = {(one.parent, one.child, one.output) for one in plan.edges}
    edges = [
        one
        for one in edges_of(tx, [task.seq for task in found.values()])
        if (one.parent, one.child, one.output) not in known
    ]
    ends = {end for one in edges for end in (one.parent, one.child)}
    others = find_each(tx, sorted(ends - found.keys() - plan.tasks.keys()))
    plan.tasks |= found | {task.id: task for task in others}
    plan.edges += edges
    _read_outputs(tx, plan, [*found.values(), *others])


def _read_outputs(tx: Transaction, plan: _Plan, tasks: Iterable[Task]) -> None:
    seqs = [task.seq for task in tasks]
    for seq, output in rows_in_chunks(tx, "list_outputs_made", "seqs", seqs):
        plan.outputs.setdefault(seq, set()).add(output)


def _cancelled_children(plan: _Plan, wanted: set[TaskId]) -> dict[TaskId, list[TaskId]]:
    """Returns the tasks that were cancelled because one of these ended without the output that
    they need, and are not among them. What was cancelled before that was cancelled by hand."""
    found: dict[TaskId, list[TaskId]] = {}
    for one in plan.edges:
        if one.parent not in wanted or one.child in wanted:
            continue
        parent, child = plan.tasks[one.parent], plan.tasks[one.child]
        # A job that was told to end may take long: its children were cancelled at once.
        is_after = parent.status is Status.CANCELLED or parent.updated_at <= child.updated_at
        if child.status is Status.CANCELLED and is_after and _is_dead(plan, parent, one.output):
            found.setdefault(one.parent, []).append(one.child)
    return {parent: list(dict.fromkeys(some)) for parent, some in found.items()}


def _refuse_what_cannot_be(tx: Transaction, plan: _Plan, wanted: Sequence[TaskId]) -> None:
    seqs = [plan.tasks[one].seq for one in wanted if one in plan.tasks]
    jobs = {state.id for state in read_tasks(tx, seqs) if state.run is not None}
    for task_id in wanted:
        task = plan.tasks.get(task_id)
        if task is None:
            plan.refused[task_id] = NO_SUCH_TASK
        elif task_id in jobs:
            plan.refused[task_id] = JOB_OF_RUN
        elif task.status not in FINAL:
            plan.refused[task_id] = (
                f"it is {task.status}; only a task that has ended can be submitted again"
            )


def _existing(tx: Transaction, taken: Mapping[TaskId, TaskId]) -> dict[TaskId, Task]:
    """Returns the tasks that have these ids already, by what the ids were made of."""
    there = {task.id: task for task in find_each(tx, list(taken.values()))}
    return {old: there[new] for old, new in taken.items() if new in there}


def _make(tx: Transaction, plan: _Plan, wanted: Sequence[TaskId]) -> None:
    """Makes the new task of each that is neither refused nor there. One that is refused for
    what it needs may be what another one needs."""
    left = {one for one in wanted if one not in plan.refused and one not in plan.present}
    needed: dict[TaskId, list[EdgeView]] = {}
    for edge in plan.edges:
        needed.setdefault(edge.child, []).append(edge)
    newest = _successors(tx, plan, [edge for one in left for edge in needed.get(one, ())])
    while True:
        lost = {
            one: found
            for one in left
            if (found := _missing(plan, needed.get(one, ()), newest, left))
        }
        if not lost:
            break
        plan.refused |= {one: why for one, (_, why) in lost.items()}
        plan.lacks |= {one: task_id for one, (task_id, _) in lost.items()}
        left -= lost.keys()
    names = _free_names(tx, {one: name for one in left if (name := plan.tasks[one].name)})
    for one in wanted:
        if one in left:
            new = _again(plan.tasks[one], names.get(one))
            needs = [
                Need(task_id=_need(edge, newest, left), output=edge.output)
                for edge in needed.get(one, ())
            ]
            plan.new[one] = replace(new, needs=tuple(needs))


def _again(task: Task, name: str | None) -> NewTask:
    said = {one: getattr(task, one) for one in _SAME}
    return NewTask(
        # One that never was armed would not run a second time either.
        **said | {"id": next_id(task), "name": name, "armed": True},
        spec=task.spec_text,
        environment=task.environment_text,
    )


def _is_dead(plan: _Plan, task: Task, output: str) -> bool:
    made = plan.outputs.get(task.seq, ())
    return edge_state(output, task.status, made) is EdgeState.DEAD


def _successors(
    tx: Transaction, plan: _Plan, edges: Sequence[EdgeView]
) -> dict[tuple[TaskId, str], Task]:
    """Returns, for each output that a task can no longer make, the newest task by which that
    one was submitted again; the task itself if it never was."""
    newest = {
        (edge.parent, edge.output): plan.tasks[edge.parent]
        for edge in edges
        if _is_dead(plan, plan.tasks[edge.parent], edge.output)
    }
    open_ends = set(newest)
    for _ in range(SUCCESSORS_MAX):
        taken = {newest[one].id: next_id(newest[one]) for one in open_ends}
        there = _existing(tx, taken) if taken else {}
        if not there:
            break
        _read_outputs(tx, plan, there.values())
        moved = {one: there.get(newest[one].id) for one in open_ends}
        for one, task in moved.items():
            if task is not None and task.queue == newest[one].queue:
                newest[one] = task
                plan.tasks.setdefault(task.id, task)
        open_ends = {
            one for one in open_ends if moved[one] and _is_dead(plan, newest[one], one[1])
        }
    return newest


def _need(
    edge: EdgeView, newest: Mapping[tuple[TaskId, str], Task], left: set[TaskId]
) -> TaskId:
    """Returns the task that is to be needed instead of an edge's parent."""
    task = newest.get((edge.parent, edge.output))
    if task is None:
        return edge.parent
    return next_id(task) if task.id in left else task.id


def _missing(
    plan: _Plan,
    edges: Iterable[EdgeView],
    newest: Mapping[tuple[TaskId, str], Task],
    left: set[TaskId],
) -> tuple[TaskId, str] | None:
    """Returns a task that another one needs and that can no longer make what is needed of it,
    with the reason in words; None if all can come."""
    for edge in edges:
        task = newest.get((edge.parent, edge.output))
        if task is not None and task.id not in left and _is_dead(plan, task, edge.output):
            return task.id, (
                f"it needs the output {edge.output} of {task.id}, which is {task.status}; "
                f"submit {task.id} again together with it"
            )
    return None


def _free_names(tx: Transaction, wanted: Mapping[TaskId, str]) -> dict[TaskId, str]:
    """Returns a name that no task has for each of these, which had names."""
    tried, found = {one: next_name(name) for one, name in wanted.items()}, {}
    used: set[str] = set()
    for _ in range(NAMES_MAX):
        asked = sorted(set(tried.values()))
        taken = {row[0] for row in rows_in_chunks(tx, "find_task_names", "names", asked)}
        for one, name in list(tried.items()):
            if name in taken | used:
                tried[one] = next_name(name)
            else:
                used.add(name)
                found[one] = name
                del tried[one]
        if not tried:
            break
    return found  # beyond that it has none
