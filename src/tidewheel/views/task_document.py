"""Everything about one task of a run: what it waits for, what it made, how often it ran."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tidewheel.api.tasks import AttemptView, OutputView
from tidewheel.core.graph.outputs import ENDS, STANDARD, STARTED, SUBMITTED
from tidewheel.core.operator.names import read_job_name
from tidewheel.core.operator.views import CommandView, SubmissionView
from tidewheel.core.queue.task import Instant
from tidewheel.core.sched.dependency_index import IndexedNode
from tidewheel.core.sched.reachability import chain_text
from tidewheel.core.sched.task_state import Flows, Key, PooledTask, VerdictKind
from tidewheel.ports.store import Store
from tidewheel.services.paths import submission_directory
from tidewheel.views.graph import prerequisites, suicides
from tidewheel.views.log import found_files
from tidewheel.views.run_facts import Document
from tidewheel.views.snapshot import RunSnapshot, submissions_by_task
from tidewheel.views.status_text import verdict_word, words_of
from tidewheel.views.task import (
    SetByHand,
    environment_document,
    outputs_set,
    xtriggers_document,
)
from tidewheel.views.why import why_document
from tidewheel.vocabulary import time_text

SUBMISSIONS_SHOWN_MAX = 100
COMMANDS_MAX = 1_000
CHILDREN_MAX = 50


class Submission(NamedTuple):
    """A submission with its attempts and what its jobs said."""

    number: int
    view: SubmissionView
    attempts: Sequence[AttemptView]
    said: Sequence[OutputView]
    values: str | None  # JSON, for those after it


async def task_document(store: Store, looked: RunSnapshot, key: Key, home: Path) -> Document:
    """The task; `why` is empty for one that runs."""
    submissions = await _submissions(store, looked, key)
    commands = await store.commands(looked.view.number, COMMANDS_MAX)
    node = looked.pool.plan.nodes[key[1]]
    document = _facts(looked, key, node)
    document |= {
        "prerequisites": prerequisites(looked, key),
        "suicide": suicides(looked, node, key[0]),
        "xtriggers": xtriggers_document(looked, key, commands, _first_at(submissions)),
        "outputs": list(_outputs(looked, key, submissions, commands)),
        "verdicts": list(_verdicts(looked, key)),
        "environment": environment_document(looked, key, node),
        "submissions": [_submission_document(one, home) for one in submissions],
        "why": (await why_document(store, looked, key))["reasons"],
    }
    return document


def _facts(looked: RunSnapshot, key: Key, node: IndexedNode) -> Document:
    words = words_of(looked.pool, key)
    task = looked.pool.tasks.get(key)
    memory = looked.pool.recall(*key)
    meta = dict(node.definition.meta)
    return {
        "run": looked.view.name,
        "id": looked.id_of(key),
        "name": key[1],
        "point": looked.pool.plan.text(key[0]),
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
        "children": _children(looked, key, node),
    }


def _children(looked: RunSnapshot, key: Key, node: IndexedNode) -> list[str]:
    """Who hears of one of its outputs."""
    plan = looked.pool.plan
    links = [link for found in node.links.values() for link in found]
    groups = {group.index: group for found in node.groups.values() for group in found}
    links += [link for group in groups.values() for link in group.links]
    keys = {
        (child, target.name)
        for link in links
        if not link.arrow.suicide and link.leaf.absolute is None
        for child in plan.child_points(link, key[0])
        for target, _ in link.arrow.targets
    }
    return [looked.id_of(one) for one in sorted(keys)][:CHILDREN_MAX]


async def _submissions(store: Store, looked: RunSnapshot, key: Key) -> list[Submission]:
    view, point = looked.view, looked.pool.plan.text(key[0])
    by_task = await submissions_by_task(store, view, point=point, name=key[1])
    shown = list(by_task.get((point, key[1]), ()))[-SUBMISSIONS_SHOWN_MAX:]
    values = await store.values_of([one.task_id for one in shown])
    found = []
    for one in shown:
        number, handed_on = read_job_name(one.task_id).submit, values.get(one.task_id)
        attempts = await store.attempts(one.task_id)
        said = await store.outputs(one.task_id)
        found.append(Submission(number, one, attempts, said, handed_on))
    return found


def _first_at(submissions: Sequence[Submission]) -> Instant | None:
    return submissions[0].view.submitted_at if submissions else None


def _outputs(
    looked: RunSnapshot,
    key: Key,
    submissions: Sequence[Submission],
    commands: Iterable[CommandView],
) -> Iterator[Document]:
    """Each output, whether it was made, in which flows and by whom."""
    node = looked.pool.plan.nodes[key[1]]
    task = looked.pool.tasks.get(key)
    memory = looked.pool.recall(*key)
    by_hand = {one.output: one for one in outputs_set(looked, key, commands)}
    messages = dict(node.definition.outputs)
    made = _made(looked, key, task, submissions)
    if task is None and memory is not None:
        # What nobody waits for is remembered by nobody but the commands.
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
    looked: RunSnapshot, key: Key, task: PooledTask | None, submissions: Sequence[Submission]
) -> dict[str, Flows]:
    """Every output that was made by any submission or by hand."""
    memory = looked.pool.recall(*key)
    found: dict[str, Flows] = {} if memory is None else dict(memory.made)
    if task is not None:
        found = {output: task.flows for output in task.outputs} | found
    if memory is not None:
        for flow, verdict in memory.verdicts.items():
            if verdict.kind is VerdictKind.FINISHED and verdict.ended:
                found.setdefault(verdict.ended, frozenset({flow}))
    ran_alone = task is None and memory is not None and not memory.verdicts
    for output in (*STANDARD, *dict(looked.pool.plan.nodes[key[1]].definition.outputs)):
        # How a job ended is an output only if no retry was left (SEMANTICS §4.7).
        if _maker(output, submissions) and (ran_alone or output not in ENDS):
            found.setdefault(output, frozenset() if memory is None else memory.spawned)
    return found


def _maker(output: str, submissions: Sequence[Submission]) -> str:
    """The last submission that made it."""
    for one in reversed(submissions):
        if _time_of(output, one) is not None:
            return f"submission {one.number:02d}"
    return ""


def _made_at(output: str, submissions: Sequence[Submission]) -> Instant | None:
    found = (_time_of(output, one) for one in reversed(submissions))
    return next((at for at in found if at is not None), None)


def _time_of(output: str, one: Submission) -> Instant | None:
    """When a submission made an output; None if it did not."""
    view = one.view
    if output in (SUBMITTED, STARTED):
        return view.started_at
    if output == view.status and view.ended_at is not None:
        return view.ended_at
    return next((said.at for said in one.said if said.output == output), None)


def _by_hand_text(hand: SetByHand | None) -> str:
    return "by hand" if hand is None else f"by hand ({hand.who})"


def _verdicts(looked: RunSnapshot, key: Key) -> Iterator[Document]:
    memory = looked.pool.recall(*key)
    for flow, verdict in sorted(memory.verdicts.items()) if memory is not None else ():
        text = chain_text(looked.pool, key, flow)
        if verdict.kind is VerdictKind.FINISHED:
            text = f"{looked.id_of(key)} {verdict_word(verdict)}"
        yield {"flow": flow, "verdict": str(verdict.kind), "text": text}


def _submission_document(one: Submission, home: Path) -> Document:
    view = one.view
    job = read_job_name(view.task_id)
    return {
        "submit": one.number,
        "task": view.task_id,
        "status": view.status,
        "submitted_at": time_text(view.submitted_at),
        "started_at": time_text(view.started_at),
        "ended_at": time_text(view.ended_at),
        "exit_status": view.exit_status,
        "error": view.error,
        "worker": view.worker,
        "folder": str(submission_directory(home, job)),
        "attempts": [
            _attempt_document(attempt, submission_directory(home, job, attempt.attempt))
            for attempt in one.attempts
        ],
        "messages": [
            {"at": time_text(said.at), "output": said.output, "text": said.text}
            for said in one.said
        ],
        "values": None if one.values is None else json.loads(one.values),
    }


def _attempt_document(attempt: AttemptView, folder: Path) -> Document:
    return {
        "attempt": attempt.attempt,
        "worker": attempt.worker,
        "claimed_at": time_text(attempt.claimed_at),
        "started_at": time_text(attempt.started_at),
        "ended_at": time_text(attempt.ended_at),
        "ended_by": attempt.ended_by.value if attempt.ended_by else None,
        "exit_status": attempt.exit_status,
        "error": attempt.error.description if attempt.error else None,
        "logs": found_files(folder),
    }
