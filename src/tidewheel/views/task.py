"""Shows everything about one task of a run: what it waits for, what it made, how it ran."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tidewheel.api.run_details import (
    AttemptOfTask,
    JobVariable,
    OutputFacts,
    SubmissionOfTask,
    TaskDocument,
    TaskFacts,
    VerdictFacts,
    XtriggerFacts,
)
from tidewheel.api.tasks import AttemptView, OutputView
from tidewheel.core.graph.outputs import (
    ENDS,
    IMPLIED,
    STANDARD,
    STARTED,
    SUBMITTED,
    standard_name,
)
from tidewheel.core.operator.command_events import XTRIGGER
from tidewheel.core.operator.definition import read_job_name
from tidewheel.core.operator.selection import find_point, read_id
from tidewheel.core.operator.verbs import Command, Remove, Set, Trigger, read_command
from tidewheel.core.operator.views import CommandView, SubmissionView
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.dependency_index import IndexedNode
from tidewheel.core.sched.interventions import completing
from tidewheel.core.sched.reachability import chain_text
from tidewheel.core.sched.spawn import CLOCK, EXPIRY, RETRY
from tidewheel.core.sched.task_state import Flows, Key, PooledTask, VerdictKind
from tidewheel.errors import Refused
from tidewheel.ports.store import Store
from tidewheel.quantities import show_instant
from tidewheel.scheduler.broadcasts import settings_for, with_settings
from tidewheel.services.clock_triggers import ClockTriggers
from tidewheel.services.paths import submission_directory
from tidewheel.views.graph import prerequisites, suicides
from tidewheel.views.log import found_files
from tidewheel.views.run_facts import described
from tidewheel.views.snapshot import RunSnapshot, due_times, submissions_by_task
from tidewheel.views.status_text import verdict_word, words_of
from tidewheel.views.task_lookup import children
from tidewheel.views.why import why_document
from tidewheel.vocabulary import time_text

SUBMISSIONS_SHOWN_MAX = 100
COMMANDS_MAX = 1_000
CHILDREN_MAX = 50


class TaskSubmission(NamedTuple):
    """Is a submission with its attempts and what its jobs said."""

    number: int
    view: SubmissionView
    attempts: Sequence[AttemptView]
    said: Sequence[OutputView]
    values: str | None  # JSON, for those after it


async def task_document(
    store: Store, snapshot: RunSnapshot, key: Key, home: Path
) -> TaskDocument:
    """Returns everything about a task; `why` is empty for one that runs."""
    submissions = await _submissions(store, snapshot, key)
    commands = await store.commands(snapshot.view.number, COMMANDS_MAX)
    node = snapshot.pool.plan.nodes[key[1]]
    return {
        **_facts(snapshot, key, node),
        "prerequisites": prerequisites(snapshot, key),
        "suicide": suicides(snapshot, node, key[0]),
        "xtriggers": xtriggers_document(snapshot, key, commands, _first_at(submissions)),
        "outputs": list(_outputs(snapshot, key, submissions, commands)),
        "verdicts": list(_verdicts(snapshot, key)),
        "environment": environment_document(snapshot, key, node),
        "submissions": [_submission_document(one, home) for one in submissions],
        "why": (await why_document(store, snapshot, key))["reasons"],
    }


def _facts(snapshot: RunSnapshot, key: Key, node: IndexedNode) -> TaskFacts:
    words = words_of(snapshot.pool, key)
    task = snapshot.pool.tasks.get(key)
    memory = snapshot.pool.recall(*key)
    meta = dict(node.definition.meta)
    return {
        "run": snapshot.view.name,
        "id": snapshot.id_of(key),
        "name": key[1],
        "point": snapshot.pool.plan.text(key[0]),
        "title": meta.get("title", ""),
        "description": meta.get("description", ""),
        "families": [one for one in node.definition.lineage if one != key[1]],
        "state": words.state,
        "remarks": list(words.remarks),
        "flows": sorted(words.flows),
        "in_pool": words.pooled,
        "submits": max(
            0 if memory is None else memory.submits, 0 if task is None else task.submit
        ),
        "try": 1 if task is None else task.try_number,
        "completion": str(node.completion),
        "children": _children(snapshot, key),
    }


def _children(snapshot: RunSnapshot, key: Key) -> list[str]:
    """Returns the ids of the tasks that wait for one of this task's outputs."""
    found = sorted(set(children(snapshot.pool, key)))
    return [snapshot.id_of(one) for one in found[:CHILDREN_MAX]]


async def _submissions(store: Store, snapshot: RunSnapshot, key: Key) -> list[TaskSubmission]:
    view, point = snapshot.view, snapshot.pool.plan.text(key[0])
    by_task = await submissions_by_task(store, view, point=point, name=key[1])
    shown = list(by_task.get((point, key[1]), ()))[-SUBMISSIONS_SHOWN_MAX:]
    values = await store.values_of([one.task_id for one in shown])
    found = []
    for one in shown:
        number, handed_on = read_job_name(one.task_id).submit, values.get(one.task_id)
        attempts = await store.attempts(one.task_id)
        said = await store.outputs(one.task_id)
        found.append(TaskSubmission(number, one, attempts, said, handed_on))
    return found


def _first_at(submissions: Sequence[TaskSubmission]) -> Instant | None:
    return submissions[0].view.submitted_at if submissions else None


def _outputs(
    snapshot: RunSnapshot,
    key: Key,
    submissions: Sequence[TaskSubmission],
    commands: Iterable[CommandView],
) -> Iterator[OutputFacts]:
    """Yields each output, with whether it was made, in which flows and by whom."""
    node = snapshot.pool.plan.nodes[key[1]]
    task = snapshot.pool.tasks.get(key)
    memory = snapshot.pool.recall(*key)
    by_hand = {one.output: one for one in outputs_set(snapshot, key, commands)}
    messages = dict(node.definition.outputs)
    made = _made(snapshot, key, task, submissions)
    if task is None and memory is not None:
        # An output that nobody waits for is known from the commands alone.
        there = (one for one in by_hand if one not in memory.held_back)
        made = {one: memory.spawned for one in there} | made
    for output in (*STANDARD, *messages):
        flows: Flows = frozenset() if memory is None else memory.made.get(output, frozenset())
        maker = _maker(output, submissions)
        hand = by_hand.get(output)
        is_by_hand = output in made and (
            (task is not None and output in task.by_hand) or (hand is not None and not maker)
        )
        who = _by_hand_text(hand) if is_by_hand else maker
        at = hand.at if is_by_hand and hand else _made_at(output, submissions)
        yield {
            "output": output,
            "message": messages.get(output, output),
            "made": output in made,
            "by_hand": is_by_hand,
            "by": who if output in made else "",
            "at": time_text(at) if output in made else None,
            "flows": sorted(flows or (made.get(output, frozenset()))),
            "required": output in node.completion.required,
        }


def _made(
    snapshot: RunSnapshot,
    key: Key,
    task: PooledTask | None,
    submissions: Sequence[TaskSubmission],
) -> dict[str, Flows]:
    """Returns every output that was made by any submission or by hand, with its flows."""
    memory = snapshot.pool.recall(*key)
    found: dict[str, Flows] = {} if memory is None else dict(memory.made)
    if task is not None:
        found = {output: task.flows for output in task.outputs} | found
    if memory is not None:
        for flow, verdict in memory.verdicts.items():
            if verdict.kind is VerdictKind.FINISHED and verdict.ended:
                found.setdefault(verdict.ended, frozenset({flow}))
    ran_alone = task is None and memory is not None and not memory.verdicts
    for output in (*STANDARD, *dict(snapshot.pool.plan.nodes[key[1]].definition.outputs)):
        # How a job ended is an output only if no retry was left (SEMANTICS §4.7).
        if _maker(output, submissions) and (ran_alone or output not in ENDS):
            found.setdefault(output, frozenset() if memory is None else memory.spawned)
    return found


def _maker(output: str, submissions: Sequence[TaskSubmission]) -> str:
    """Names the last submission that made an output; empty if none did."""
    for one in reversed(submissions):
        if _time_of(output, one) is not None:
            return f"submission {one.number:02d}"
    return ""


def _made_at(output: str, submissions: Sequence[TaskSubmission]) -> Instant | None:
    found = (_time_of(output, one) for one in reversed(submissions))
    return next((at for at in found if at is not None), None)


def _time_of(output: str, one: TaskSubmission) -> Instant | None:
    """Returns when a submission made an output; None if it did not."""
    view = one.view
    if output in (SUBMITTED, STARTED):
        return view.started_at
    if output == view.status and view.ended_at is not None:
        return view.ended_at
    return next((said.at for said in one.said if said.output == output), None)


def _by_hand_text(hand: SetByHand | None) -> str:
    return "by hand" if hand is None else f"by hand ({hand.who})"


def _verdicts(snapshot: RunSnapshot, key: Key) -> Iterator[VerdictFacts]:
    memory = snapshot.pool.recall(*key)
    for flow, verdict in sorted(memory.verdicts.items()) if memory is not None else ():
        text = chain_text(snapshot.pool, key, flow)
        if verdict.kind is VerdictKind.FINISHED:
            text = f"{snapshot.id_of(key)} {verdict_word(verdict)}"
        yield {"flow": flow, "verdict": str(verdict.kind), "text": text}


def _submission_document(one: TaskSubmission, home: Path) -> SubmissionOfTask:
    job = read_job_name(one.view.task_id)
    return described(
        SubmissionOfTask,
        one.view,
        submit=one.number,
        task=one.view.task_id,
        folder=str(submission_directory(home, job)),
        attempts=[
            _attempt_document(attempt, submission_directory(home, job, attempt.attempt))
            for attempt in one.attempts
        ],
        messages=[
            {"at": show_instant(said.at), "output": said.output, "text": said.text}
            for said in one.said
        ],
        values=None if one.values is None else json.loads(one.values),
    )


def _attempt_document(attempt: AttemptView, folder: Path) -> AttemptOfTask:
    ended_by = attempt.ended_by.value if attempt.ended_by else None
    error = attempt.error.description if attempt.error else None
    return described(
        AttemptOfTask, attempt, ended_by=ended_by, error=error, logs=found_files(folder)
    )


# The view below shows the variables that jobs of a task get from its definition, as set now.


VARIABLES_MAX = 200


def environment_document(
    snapshot: RunSnapshot, key: Key, node: IndexedNode
) -> list[JobVariable]:
    """Returns the variables in their order; `broadcast`: it was set during the run."""
    point, definition = snapshot.pool.plan.text(key[0]), node.definition
    settings = settings_for(snapshot.stored.broadcasts, point, definition.lineage)
    by_hand = {item for item, _ in settings}
    shown = with_settings(definition, settings).environment[:VARIABLES_MAX]
    return [
        {"name": name, "value": value, "broadcast": f"[environment]{name}" in by_hand}
        for name, value in shown
    ]


# The functions below find what operators did by hand to a task: outputs that they set, waits
# that they ended (R001-52).
#
# The pool knows outputs set by hand as long as the task is in it. Afterwards the commands say
# it: their answers name the tasks, and the commands themselves the outputs.


class SetByHand(NamedTuple):
    """Is an output that somebody set by hand."""

    output: str
    who: str
    at: Instant


def command_of(view: CommandView) -> Command | None:
    """Returns the command of a row; None if this version cannot read it."""
    try:
        return read_command(view.body)
    except Refused:
        return None


def outputs_set(
    snapshot: RunSnapshot, key: Key, commands: Iterable[CommandView]
) -> list[SetByHand]:
    """Returns the outputs of a task that commands have set, the newest first.

    The removal of a task removes with it what was set before.
    """
    found = []
    for view, command in _obeyed(snapshot, key, commands):
        if isinstance(command, Set) and (command.outputs or not command.prerequisites):
            found += [
                SetByHand(one, view.who, view.at)
                for one in _outputs_of_command(snapshot, key, command)
            ]
    return found


def let_go_at(
    snapshot: RunSnapshot, key: Key, label: str, commands: Iterable[CommandView]
) -> Instant | None:
    """Returns when somebody first let a task go on without an xtrigger, or None."""
    found = None
    for view, command in _obeyed(snapshot, key, commands):
        satisfied = command.prerequisites if isinstance(command, Set) else ()
        if isinstance(command, Trigger) or {"all", XTRIGGER + label} & set(satisfied):
            found = view.at
    return found


def _obeyed(
    snapshot: RunSnapshot, key: Key, commands: Iterable[CommandView]
) -> Iterator[tuple[CommandView, Set | Trigger]]:
    """Yields commands about a task that were obeyed, the newest first, back to its removal."""
    for view in commands:
        command = command_of(view)
        if view.answered_at is None or view.refused is not None:
            continue
        if not isinstance(command, Set | Trigger | Remove):
            continue
        if not _concerns(snapshot, key, view, command.ids):
            continue
        if isinstance(command, Remove):
            break
        yield view, command


def _concerns(snapshot: RunSnapshot, key: Key, view: CommandView, ids: Iterable[str]) -> bool:
    answer = json.loads(view.answer or "{}")
    named = answer.get("tasks") if isinstance(answer, dict) else None
    if isinstance(named, dict | list):
        return snapshot.id_of(key) in named
    return any(_names(snapshot, key, text) for text in ids)


def _names(snapshot: RunSnapshot, key: Key, text: str) -> bool:
    try:
        written = read_id(text)
    except Refused:
        return False
    style = snapshot.graph.cycling.style
    return written.name == key[1] and find_point(style, written.point) == key[0]


def _outputs_of_command(snapshot: RunSnapshot, key: Key, command: Set) -> Iterator[str]:
    named = [standard_name(one) for one in command.outputs]
    if not named:
        named = list(completing(snapshot.pool.plan.nodes[key[1]]))
    for output in named:
        yield from (*IMPLIED.get(output, ()), output)


# The view below shows what a task waits for besides other tasks: xtriggers and timers, and
# those that it did without.


TIMERS = ((CLOCK, "clock-trigger"), (RETRY, "retry delay"), (EXPIRY, "expiry"))


def xtriggers_document(
    snapshot: RunSnapshot,
    key: Key,
    commands: Sequence[CommandView],
    submitted_at: Instant | None,
) -> list[XtriggerFacts]:
    """Returns each xtrigger and timer, with whether the task still waits for it.

    `submitted_at` is when the task was first submitted.
    """
    task = snapshot.pool.tasks.get(key)
    waits = {} if task is None else task.waits
    node = snapshot.pool.plan.nodes[key[1]]
    times = {
        timer.timer: timer.at
        for timer in snapshot.stored.timers
        if (timer.point, timer.name) == key
    }
    due_at = due_times(snapshot)
    labels = (label for sequence, label in node.xtriggers if sequence.has(key[0]))
    own = list(dict.fromkeys(labels))
    found = []
    for label in own:
        call = snapshot.graph.xtriggers.get(label)
        # A task that left the pool without a submission has not waited to the end.
        gone = label not in waits if task is not None else submitted_at is not None
        by_hand = gone and _did_without(snapshot, key, label, commands, submitted_at)
        text = "" if call is None else call.function
        at = None if gone else due_at(key, label)
        found.append(_xtrigger(label, text, gone, by_hand, at))
    for label, text in _others(waits, own, times):
        found.append(_xtrigger(label, text, False, False, times.get(label)))
    return found


def _others(
    waits: dict[str, None], own: list[str], times: dict[str, Instant]
) -> Iterator[tuple[str, str]]:
    """Yields timers that are set, and messages from outside that the task waits for."""
    for label, text in TIMERS:
        if label in waits or (label == EXPIRY and label in times):
            yield label, text
    known = {label for label, _ in TIMERS}.union(own)
    yield from ((label, "external trigger") for label in waits if label not in known)


def _did_without(
    snapshot: RunSnapshot,
    key: Key,
    label: str,
    commands: Sequence[CommandView],
    submitted_at: Instant | None,
) -> bool:
    """Says whether somebody let the task go before the xtrigger was satisfied.

    A trigger after the submission changes nothing.
    """
    at = let_go_at(snapshot, key, label, commands)
    if at is None or (submitted_at is not None and submitted_at < at):
        return False
    due = ClockTriggers(snapshot.graph.xtriggers, snapshot.graph.cycling).due_at(label, key[0])
    return due is None or due > at


def _xtrigger(
    label: str, call: str, satisfied: bool, by_hand: bool, at: Instant | None
) -> XtriggerFacts:
    return {
        "label": label,
        "call": call,
        "satisfied": satisfied,
        "by_hand": by_hand,
        "at": time_text(at),
    }
