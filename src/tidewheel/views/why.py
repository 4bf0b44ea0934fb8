"""Explains why a task does not run, with the commands that would change it, to be copied."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise

from tidewheel.api.run_details import TaskReasons, WhyDocument
from tidewheel.api.runs import ErrorGroup, RunReason, RunStall
from tidewheel.core.graph.outputs import SUBMIT_FAILED, SUCCEEDED
from tidewheel.core.operator.blocks import BlockStatus, NeedState
from tidewheel.core.operator.definition import JobName
from tidewheel.core.operator.nested import DEPTH_MAX, nested_end, nested_run_name
from tidewheel.core.operator.requests import StoredValues
from tidewheel.core.operator.task_inputs import (
    inputs_of,
    lists_in,
    parents_of,
    size_returned,
    sizes_in,
    values_for,
    values_with_lists,
)
from tidewheel.core.operator.views import WITHDRAWN_STATUSES, RunView
from tidewheel.core.queue.status import Status
from tidewheel.core.queue.task import Instant, TaskId
from tidewheel.core.sched import explain
from tidewheel.core.sched.explain import Reason
from tidewheel.core.sched.lifecycle import only_held, root_causes
from tidewheel.core.sched.pool import RunStatus
from tidewheel.core.sched.reachability import failed_cause, handlers_of
from tidewheel.core.sched.spawn import STALL
from tidewheel.core.sched.task_state import JobPhase, Key, PooledTask, PoolState
from tidewheel.errors import NotFound, Refused
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.ports.store import Store
from tidewheel.quantities import show_instant
from tidewheel.services.explain import reasons
from tidewheel.views.error_groups import exit_advice, failure_groups
from tidewheel.views.run_facts import (
    PROGRAM,
    actions,
    command_lines,
    described,
    kept_commands,
    kept_text,
)
from tidewheel.views.snapshot import (
    LEFT,
    AskedView,
    Chain,
    RunSnapshot,
    ShownTask,
    due_times,
    is_stuck,
)
from tidewheel.views.status_text import LOST, OVER, words_of
from tidewheel.views.task_lookup import few_tasks, parents, post_commands
from tidewheel.vocabulary import time_text

STUCK_SHOWN_MAX = 5  # of a run that is a task
PASSING_STATUSES = ("created", "running", "completed")  # of such a run: nobody need do anything
ALIKE_MIN = 3  # reasons that differ only in a parent are one
PARENTS_GROUPED_MAX = 1_000
WAITING = "waiting: "  # so begins what a runner says of a job that its engine does not begin


async def why(asked: AskedView) -> WhyDocument:
    """Shows why some tasks do not run."""
    snapshot = await asked.snapshot()
    keys = few_tasks(snapshot, asked.texts("ids"))
    return {
        "stages": snapshot.is_of_stages,
        "tasks": [await reasons_of_task(asked, snapshot, key) for key in keys],
    }


async def reasons_of_task(asked: AskedView, snapshot: RunSnapshot, key: Key) -> TaskReasons:
    """Returns why a task does not run: reasons of the run first, those of the queue last."""
    one = snapshot.shown(key)
    found = [
        *waits(snapshot),
        *await reasons_of_run(asked, snapshot),
        *await reasons_within(asked, snapshot, key, DEPTH_MAX),
    ]
    if _is_settled(snapshot, one):
        found = [{**reason, "needs_action": False} for reason in found]
        found += await _of_the_rerun(asked, snapshot, one)
    return described(TaskReasons, one, run=snapshot.view.name, reasons=found)


def _is_settled(snapshot: RunSnapshot, one: ShownTask) -> bool:
    """Says whether a task has ended, or will not run, as its graph allows."""
    if one.in_pool or one.state not in OVER:
        return False
    if one.state != LOST or one.memory is None:
        return True
    pool = snapshot.pool
    causes = [failed_cause(pool, one.key, flow) for flow in one.memory.verdicts]
    return all(key and handlers_of(pool, key, words_of(pool, key).state) for key in causes)


async def _of_the_rerun(
    asked: AskedView, snapshot: RunSnapshot, one: ShownTask
) -> list[RunReason]:
    """Returns that the last job of a task failed that had succeeded before."""
    if one.state != SUCCEEDED or one.submits == 1:
        return []
    found = await failure_groups(asked.store, snapshot, [one.key], [one.key])
    return [_group_reason(each.document, each.document["text"]) for each in found]


async def reasons_of_run(asked: AskedView, snapshot: RunSnapshot) -> list[RunReason]:
    """Returns why a run does not go on that waits for no other."""
    kept = await kept_commands(asked.store, snapshot.view, snapshot.now)
    name = snapshot.view.name
    return [reason_document(name, one) for one in _of_the_run(snapshot, kept)]


async def reasons_within(
    asked: AskedView, snapshot: RunSnapshot, key: Key, depth: int
) -> list[RunReason]:
    """Returns why a task does not run in a run that goes on."""
    run, one = snapshot.view.name, snapshot.shown(key)
    nested = await reasons_in_nested(asked, snapshot, key, depth)
    is_run = bool(nested) and one.task is not None and one.task.stage is JobPhase.RUNNING
    # That a task is running says nothing of the run that it is.
    of_task = [] if is_run else task_reasons(snapshot, key)
    alike = await _alike(asked, snapshot, key, of_task)
    of_task = [one for one in of_task if not (alike and one.command in alike.commands)]
    stuck = await _stuck_parents(asked, snapshot, key) if depth else {}
    told = [
        reason_document(run, each, post_commands(snapshot, key, each.text)) for each in of_task
    ]
    told = [*(alike.reasons if alike else ()), *told]
    for reason in told:
        if any(f" {parent}:" in reason["text"] for parent in stuck):
            _set_passes(reason, False)
    return [
        *told,
        *(each for reasons in stuck.values() for each in reasons),
        *await _of_the_inputs(asked, snapshot, one),
        *await _of_the_job(asked, snapshot, one),
        *nested,
    ]


class _Alike(NamedTuple):
    """Holds one reason for each group of parents that failed alike, and the commands of the
    reasons that these stand for."""

    reasons: list[RunReason]
    commands: frozenset[str]


async def _alike(
    asked: AskedView, snapshot: RunSnapshot, key: Key, of_task: Sequence[Reason]
) -> _Alike | None:
    """Returns what stands for many reasons that differ only in the parent which failed; None
    if there are few."""
    if len(of_task) < ALIKE_MIN:
        return None
    pool = snapshot.pool
    commands = {one.command for one in of_task}
    stuck: dict[Key, str] = {}
    for parent in parents(pool, key):
        task, command = pool.tasks.get(parent), f"trigger {pool.plan.word_of(parent)}"
        if task is not None and task.stage is JobPhase.INCOMPLETE and command in commands:
            stuck[parent] = command
    found = await failure_groups(asked.store, snapshot, list(stuck)[:PARENTS_GROUPED_MAX])
    large = [one for one in found if len(one.keys) >= ALIKE_MIN]
    shown = snapshot.shown(key).shown
    reasons = [
        _group_reason(one.document, f"{shown} waits: {one.document['text']}") for one in large
    ]
    said = frozenset(stuck[parent] for one in large for parent in one.keys)
    return _Alike(reasons, said)


async def _stuck_parents(
    asked: AskedView, snapshot: RunSnapshot, key: Key
) -> dict[str, list[RunReason]]:
    """Returns the tasks before a task that are runs in which somebody is needed, with why."""
    runs = nested_tasks(snapshot)
    before = set(parents(snapshot.pool, key)) if runs else set()
    found: dict[str, list[RunReason]] = {}
    for parent in runs:
        if parent in before:
            reasons = await reasons_in_nested(asked, snapshot, parent)
            if not all(one["passes"] for one in reasons):
                found[snapshot.id_of(parent)] = reasons
    return found


async def nested_run(store: Store, snapshot: RunSnapshot, one: ShownTask) -> RunView | None:
    """Returns the run that the last submission of a task is; None if it is none."""
    node = snapshot.pool.plan.nodes.get(one.name)
    if not one.submit or node is None or not node.definition.workflow:
        return None
    return await nested_run_of(store, snapshot, one, one.submit)


async def nested_run_of(
    store: Store, snapshot: RunSnapshot, one: ShownTask, submit: int
) -> RunView | None:
    """Returns the run that this submission of a task is; None if it is none."""
    name = nested_run_name(JobName(snapshot.view.name, one.point, one.name, submit))
    with suppress(Refused):
        found = await store.find_run(name)
        return found if found.name == name else None
    return None


async def reasons_in_nested(
    asked: AskedView, snapshot: RunSnapshot, key: Key, depth: int = DEPTH_MAX
) -> list[RunReason]:
    """Returns how the run is that a task is, and what keeps that one back, through all levels.

    Commands name the run that they are for; none is an action on the run that was asked for.
    """
    found = await nested_run(asked.store, snapshot, snapshot.shown(key))
    if found is None or not depth:
        return []
    inside = asked._replace(run=found)
    inner = await inside.snapshot()
    view = inner.view
    show = f"{PROGRAM} show {shlex.quote(view.name)}"
    task = snapshot.pool.tasks.get(key)
    if task is not None and task.stage is JobPhase.INCOMPLETE and _goes_on(view):
        first = _carried_on(snapshot, key, view, show)
    else:
        said = view.reason.removeprefix(f"{view.status}: ")
        text = f"{snapshot.id_of(key)} is the run {view.name}, {view.status}"
        text += f": {said}" if said not in ("", view.status) else ""
        first = _plain_reason(text, view.status in PASSING_STATUSES, [show])
    below: list[RunReason] = []
    of_run: list[RunReason] = []
    if inner.pool.run.paused and inner.started and view.is_driven(inner.now):
        of_run = _why_paused_inside(snapshot, key, view.name)
    elif view.ended_at is None or view.wants_scheduler:
        of_run = await reasons_of_run(inside, inner)
    if view.wants_scheduler:
        for task in causes_of(inner)[:STUCK_SHOWN_MAX]:
            within = await reasons_within(inside, inner, task.key, 0)
            below += [_placed(view.name, inner.id_of(task.key), one) for one in within]
        for nested in nested_tasks(inner):
            below += await reasons_in_nested(inside, inner, nested, depth - 1)
    is_stuck_inside = not all(one["passes"] for one in below)
    if first["passes"] and is_stuck_inside:
        first["text"] += ", and something in it is stuck"
    goes_on = not is_stuck_inside and all(one["passes"] for one in of_run)
    _set_passes(first, first["passes"] and goes_on)
    return [{**one, "actions": []} for one in (first, *of_run, *below)]


def _goes_on(view: RunView) -> bool:
    """Says whether a run that is a task's is under way, or has ended as a success."""
    is_success = nested_end(view.name, view.status, view.reason).status is Status.SUCCEEDED
    return view.wants_scheduler or is_success


def _carried_on(snapshot: RunSnapshot, key: Key, view: RunView, show: str) -> RunReason:
    """Returns the reason of a task that failed as its run was stopped, and does not hear that
    somebody has carried that run on."""
    task = snapshot.id_of(key)
    text = f"the run {view.name} was resumed after {task} had failed"
    if view.wants_scheduler:
        text += f", and is {view.status}: its end will not change {task}; "
        text += f"set {task} when the run has ended"
        return _plain_reason(text, False, [show])
    set_it = f"{PROGRAM} set {shlex.quote(snapshot.view.name)} {shlex.quote(task)}"
    told = f"{text} and has {view.status}: this does not change {task}, so set it"
    return _plain_reason(told, False, [set_it, show])


def _why_paused_inside(snapshot: RunSnapshot, key: Key, run: str) -> list[RunReason]:
    """Returns what lets a paused run go on that a task is: while that is held, or the run
    around it is paused, the pause comes from there."""
    task, name = snapshot.pool.tasks.get(key), snapshot.view.name
    if task is not None and task.held:
        id_ = snapshot.id_of(key)
        held = Reason(f"{id_} is held", passes=False, command=f"release {id_}")
        return [reason_document(name, held)]
    if snapshot.pool.run.paused:
        return [reason_document(name, Reason(f"{name} is paused", False, "resume"))]
    return [reason_document(run, Reason(f"{run} is paused", passes=False, command="resume"))]


def _placed(run: str, task: str, reason: RunReason) -> RunReason:
    """Returns a reason with the run and the task that it is about."""
    text = reason["text"]
    whose = run if text.startswith(f"{task} ") else f"{run}: {task}"
    return {**reason, "text": f"{whose}: {text}"}


def causes_of(snapshot: RunSnapshot) -> list[PooledTask]:
    """Returns the tasks that keep a run from going on. While the run goes on, these are the
    tasks that will never go on by themselves."""
    pool = snapshot.pool
    causes = root_causes(pool) if snapshot.started else []
    if pool.run.status == RunStatus.WAITING_FOR_RELEASE:
        causes = [*only_held(pool), *causes]
    elif pool.run.status != RunStatus.STALLED:
        causes = [one for one in causes if one.standing is PoolState.INCOMPLETE or one.blocked]
    return causes


def nested_tasks(snapshot: RunSnapshot) -> list[Key]:
    """Returns some active tasks that are runs of another workflow, the oldest."""
    nodes = snapshot.pool.plan.nodes
    names = {name for name, node in nodes.items() if node.definition.workflow}
    if not names:
        return []
    tasks = snapshot.pool.tasks.values()
    found = [one.key for one in tasks if one.key[1] in names and one.is_active]
    return sorted(found)[:STUCK_SHOWN_MAX]


def task_reasons(snapshot: RunSnapshot, key: Key) -> list[Reason]:
    """Returns the reasons within the run for which a task does not run."""
    return list(explain.why(snapshot.pool, key, due_times(snapshot)))


def reason_document(run: str, reason: Reason, posting: Sequence[str] = ()) -> RunReason:
    """Returns the document of a reason; `posting` are commands that post the buffer objects it
    names, which do not come by themselves."""
    until = None if reason.until is None else whole_second(reason.until)
    commands = [*posting, *command_lines(run, reason.command)]
    plain = _plain_reason(reason_text(reason), reason.passes and not posting, commands)
    return {**plain, "until": until, "actions": actions(reason.command)}


def _plain_reason(text: str, passes: bool, commands: list[str]) -> RunReason:
    """Returns the document of a reason whose commands are whole lines, unknown to REST."""
    reason: RunReason = {
        "text": text,
        "passes": passes,
        "needs_action": False,
        "until": None,
        "commands": commands,
        "actions": [],
    }
    _set_passes(reason, passes)
    return reason


def _set_passes(reason: RunReason, passes: bool) -> None:
    """Says whether a reason clears on its own, and so whether somebody has to act."""
    reason["passes"] = passes
    reason["needs_action"] = bool(reason["commands"]) and not passes


def _group_reason(group: ErrorGroup, text: str) -> RunReason:
    """Returns the document of a reason that stands for a group of failures."""
    plain = _plain_reason(text, False, group["commands"])
    return {**plain, "actions": group["actions"]}


def reason_text(reason: Reason) -> str:
    """Returns a reason with the time at which it passes, where that is known."""
    if reason.until is None:
        return reason.text
    return f"{reason.text} until {whole_second(reason.until)}"


def whole_second(instant: Instant) -> str:
    """Returns a future time for people, rounded up to the second."""
    return show_instant(math.ceil(instant))


def stall_document(snapshot: RunSnapshot) -> RunStall | None:
    """Returns since when a run is stalled and when its timer stops it; None if not stalled."""
    if snapshot.stalled_since is None:
        return None
    timers = snapshot.stored.timers
    ends = (one.at for one in timers if one.point is None and one.timer == STALL)
    end = next(ends, None)
    return {
        "since": show_instant(snapshot.stalled_since),
        "until": None if end is None else whole_second(end),
    }


async def _of_the_inputs(
    asked: AskedView, snapshot: RunSnapshot, one: ShownTask
) -> list[RunReason]:
    """Returns which value a task lacks whose job could not be begun without it."""
    graph, task = snapshot.pool.plan.graph, one.task
    if task is None or task.ended != SUBMIT_FAILED:
        return []
    sizes = sizes_in(snapshot.pool, task.flows)
    parents = parents_of(graph, task.key, sizes)
    found: dict[Key, list[StoredValues]] = {}
    for row in await asked.store.run_values(snapshot.view.number, list(parents)):
        found.setdefault((row.point, row.name), []).append(row)
    known = {
        key: values_with_lists(rows, task.flows, lists_in(snapshot.pool, key, task.flows))
        for key, rows in found.items()
    }
    try:
        inputs_of(graph, task.key, {key: row for key, row in known.items() if row}, sizes)
    except Refused as refused:
        return [_plain_reason(str(refused), False, [])]
    return []


async def _of_the_job(
    asked: AskedView, snapshot: RunSnapshot, one: ShownTask
) -> list[RunReason]:
    """Returns the reasons that concern a task's job: why the queue or its engine does not begin
    it, or how it ended."""
    store = asked.store
    found: list[RunReason] = []
    if one.task is None:
        return found
    name, stage = snapshot.view.name, one.task.stage
    task_id = TaskId(f"{name}/{one.id}/{one.submit}")
    if stage is JobPhase.INCOMPLETE and one.task.plan.lists:
        found += await _of_the_lists(asked, snapshot, one.task, task_id)
    with suppress(NotFound):  # it was never handed over, is played, or was removed since
        # Of a run that is withdrawn nobody can claim a job: that is said elsewhere.
        is_claimable = snapshot.view.status not in WITHDRAWN_STATUSES
        if is_claimable and stage in (JobPhase.PREPARING, JobPhase.SUBMITTED):
            for sentence in await reasons(store, task_id, asked.sees):
                text, colon, command = sentence.rstrip(".").partition(f": {PROGRAM} ")
                commands = [f"{PROGRAM} {command}"] if colon else []
                found.append(_plain_reason(text, not commands, commands))
        if stage in (JobPhase.PREPARING, JobPhase.SUBMITTED, JobPhase.RUNNING):
            said = await store.outputs(task_id)
            if said and said[-1].text.startswith(WAITING):
                text = f"since {time_text(said[-1].at)} its job is {said[-1].text}"
                found.append(reason_document(name, Reason(text, False, f"kill {one.word}")))
        if stage is JobPhase.INCOMPLETE and (errors := (await store.get(task_id)).errors):
            error = errors[-1].description
            text = f"its last job: {error}"
            text += exit_advice(error, is_stage=snapshot.pool.plan.is_of_stages)
            log = f"{PROGRAM} log {shlex.quote(name)} {shlex.quote(one.word)} --err"
            found.append(_plain_reason(text, False, [log]))
    return found


async def _of_the_lists(
    asked: AskedView, snapshot: RunSnapshot, task: PooledTask, task_id: TaskId
) -> list[RunReason]:
    """Returns why a job that succeeded has failed for the run, or one that is not run: it
    returned no list of which other tasks are made."""
    with suppress(NotFound):  # it was played
        if (await asked.store.get(task_id)).status != Status.SUCCEEDED:
            return []
    rows = await asked.store.run_values(snapshot.view.number, [task.key])
    row = values_for(rows, task.flows)
    values = {} if row is None else json.loads(row.body)
    id_ = snapshot.pool.plan.name_of(task.key)
    for tasks in task.plan.lists:
        try:
            size_returned(tasks, values)
        except Refused as refused:
            value = shlex.quote(f"{tasks.over.value}=[…]")
            name = shlex.quote(snapshot.view.name)
            word = shlex.quote(snapshot.pool.plan.word_of(task.key))
            command = f"{PROGRAM} set {name} {word} --value {value} --out succeeded"
            return [_plain_reason(f"{id_} {refused}", False, [command])]
    return []


def _carry_on(status: str) -> str:
    """Returns the command that carries a run on."""
    # A stalled run would stall again at once; this option leaves time to mend it.
    return "run --stall-timeout 1h" if status == "stalled" else "run"


def waits(snapshot: RunSnapshot) -> list[RunReason]:
    """Returns what keeps a run from beginning; an empty list once it has begun."""
    return [_wait_document(snapshot.view.name, one) for one in snapshot.waits]


def _wait_document(name: str, chain: Chain) -> RunReason:
    """Returns the reason why a run has not begun, from a chain of needs."""
    root = chain[-1]
    is_never = root.state is NeedState.NEVER
    verb = "needs" if is_never else "waits for"
    links = [f"it {verb} {chain[0]}"]
    links += [f"{before.parent} {verb} {need}" for before, need in pairwise(chain)]
    text = f"{name} {'; '.join(links).removeprefix('it ')}"
    if is_never:
        text = f"{name} can never begin: {'; '.join(links)}, and that can no longer happen"
    commands: list[str] = []
    if is_stuck(root):
        is_final = root.block_status is BlockStatus.ABORTED
        if root.parent and root.status in LEFT and not is_final:
            commands += command_lines(root.parent, _carry_on(root.status))
        commands.append(f"tidewheel blocks abort {shlex.quote(name)}")
    return _plain_reason(text, not is_stuck(root), commands)


def _of_the_run(snapshot: RunSnapshot, kept: int) -> list[Reason]:
    name = snapshot.view.name
    if snapshot.waits:
        return []  # these are reasons of their own (`waits`)
    if not snapshot.started:
        if snapshot.view.given is None:
            return [Reason(f"{name} has not been started", passes=False, command="run")]
        how = f"start one: {PROGRAM} up, or {PROGRAM} scheduler"
        text = f"no scheduler has taken {name} yet; {how}"
        return [Reason(text, passes=False, command="")]
    if not snapshot.view.is_driven(snapshot.now):
        return [_why_undriven(snapshot, kept)]
    if snapshot.pool.run.paused:
        return [Reason(f"{name} is paused", passes=False, command="resume")]
    return []


def _why_undriven(snapshot: RunSnapshot, kept: int) -> Reason:
    """Returns the reason why nobody drives a run that was begun."""
    view = snapshot.view
    name, command = view.name, _carry_on(view.status)
    if view.is_aborted:
        text, command = f"{name} was {view.reason}, which is final", ""
    elif view.given is not None and view.can_be_reopened(snapshot.now):
        how = kept_text(kept) or "resume it"
        text = f"{name} is {view.status}, and no scheduler has taken it yet; {how}"
        command = "run"
    elif view.status == "error":
        text = f"{name} was stopped by an error of its scheduler: {view.reason}"
    elif view.status == "completed":
        text = f"{name} has completed; the commands trigger, set and release reopen it"
        command = ""
        cycling = snapshot.graph.cycling
        if cycling.final is not None and cycling.final > cycling.initial:
            further = f"{PROGRAM} run {shlex.quote(name)} --fcp POINT"
            text += f"; to run more cycles: {further}"
    elif view.status == "stopped":
        text = f"{name} is stopped"
    else:
        gone = view.ended_at is None or view.ended_at < view.updated_at
        gave_up = "its scheduler ended it when the stall timeout had passed"
        seen = "its scheduler is gone" if gone else gave_up
        text = f"no scheduler drives {name}: {seen}"
    return Reason(text, passes=False, command=command)
