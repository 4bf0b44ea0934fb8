"""Shows blocks, instances and objects as documents, for people and programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from tidewheel.core.graph.outputs import SUCCEEDED
from tidewheel.core.operator.blocks import BlockView, NeedState, ObjectView, SbiView
from tidewheel.core.operator.definition import SIP, read_job_name
from tidewheel.core.operator.views import SubmissionView
from tidewheel.core.queue.status import FINAL, Status
from tidewheel.core.queue.task import Instant, TaskId
from tidewheel.core.sched.explain import why
from tidewheel.core.sched.task_state import Key
from tidewheel.errors import NotFound
from tidewheel.ports.store import Store
from tidewheel.views.run import known_tasks
from tidewheel.views.run_facts import Document
from tidewheel.views.snapshot import RunSnapshot, due_times, submissions_by_task
from tidewheel.views.status_text import ACTIVE, DONE, FUTURE, WAITING, words_of
from tidewheel.views.why import object_name, post_command, reason_text
from tidewheel.vocabulary import time_text

CREATED = "created"
STAGES_MAX = 10_000


async def sbi_document(store: Store, view: SbiView) -> Document:
    """Returns an instance as it was asked for, and its blocks as they are."""
    return {
        **sbi_facts(view),
        "request": json.loads(view.body),
        **await blocks_document(store, view.blocks),
    }


async def blocks_document(store: Store, views: Sequence[BlockView]) -> Document:
    now, never = await store.now(), await never_begin(store, views)
    return {"blocks": [block_facts(one, now, never=one.id in never) for one in views]}


async def never_begin(store: Store, views: Sequence[BlockView]) -> set[str]:
    """Returns the blocks that wait for what cannot happen any more, or for such a block."""
    known = {one.id: one for one in views}
    children: dict[str, list[str]] = {}
    todo = list(views)
    for view in todo:
        for need in view.waits:
            children.setdefault(need.parent, []).append(view.id)
            if need.status == CREATED and need.parent not in known:
                with suppress(NotFound):  # it was deleted meanwhile
                    known[need.parent] = await store.block(need.parent)
                    todo.append(known[need.parent])
    found = [one.id for one in known.values() if _lacks_hope(one)]
    for name in found:  # each as often as it waits in vain, and its children once
        found += children.pop(name, ())
    return set(found)


def _lacks_hope(view: BlockView) -> bool:
    return any(one.state is NeedState.NEVER for one in view.waits)


def sbi_facts(view: SbiView) -> Document:
    return {
        "id": view.id,
        "requested_at": time_text(view.requested_at),
        "requested_by": view.requested_by,
    }


def block_facts(view: BlockView, now: Instant, *, never: bool) -> Document:
    """Returns a block as one row; `waits` says what keeps it, `never` that it stays so."""
    asked = json.loads(view.body)
    workflow, run = asked.get("workflow") or {}, view.run
    return {
        "id": view.id,
        "sbi": view.sbi,
        "type": asked.get("type"),
        "workflow": run.workflow,
        "version": workflow.get("version"),
        "parameters": json.loads(run.options.parameters or "{}"),
        "priority": view.priority,
        "run": run.number,
        "status": run.status,
        "reason": run.reason,
        "driven": run.is_driven(now),
        "offered": run.given is not None,
        "waits": [str(one) for one in view.waits],
        "never": never,
        "needs": [
            {
                "block": one.parent,
                "condition": str(one.condition),
                "status": one.status,
                "state": str(one.state),
            }
            for one in view.needs
        ],
        "created_at": time_text(run.created_at),
        "updated_at": time_text(run.updated_at),
        "ended_at": time_text(run.ended_at),
    }


async def block_document(store: Store, view: BlockView, looked: RunSnapshot) -> Document:
    """Returns the block with each of its stages."""
    never = await never_begin(store, [view])
    facts = block_facts(view, looked.now, never=view.id in never)
    definition = await store.definition(view.run.definition)
    keys = _stages(looked, is_sip=definition.kind == SIP)
    submissions = await submissions_by_task(store, looked.view)
    last = [
        there[-1].task_id
        for key in keys
        if (there := submissions.get((looked.pool.plan.text(key[0]), key[1])))
    ]
    values = await store.values_of(last) if last else {}
    return {
        **facts,
        "stages": [
            _stage_document(
                looked,
                key,
                list(submissions.get((looked.pool.plan.text(key[0]), key[1]), ())),
                values,
            )
            for key in keys
        ],
    }


def _stages(looked: RunSnapshot, *, is_sip: bool) -> list[Key]:
    """Returns all stages of a SIP workflow, made or not yet; of others those that were made."""
    if is_sip:
        point = looked.pool.plan.initial
        found = [(point, name) for name in looked.pool.plan.nodes]
    else:
        found = [key for there in known_tasks(looked).values() for key in there]
    return found[:STAGES_MAX]


def _stage_document(
    looked: RunSnapshot,
    key: Key,
    submissions: Sequence[SubmissionView],
    values: Mapping[TaskId, str],
) -> Document:
    words = words_of(looked.pool, key)
    last = submissions[-1] if submissions else None
    handed_on = None if last is None else values.get(last.task_id)
    name = object_name(looked, key)
    return {
        "id": looked.id_of(key),
        "stage": key[1] if name is None else None,
        "object": name,
        # A stage that is yet to come is shown as waiting: a block was asked for as a whole.
        "state": WAITING if words.state == FUTURE else words.state,
        "remarks": list(words.remarks),
        "submit": 0 if last is None else read_job_name(last.task_id).submit,
        "submitted_at": time_text(None if last is None else last.submitted_at),
        "started_at": time_text(None if last is None else last.started_at),
        "ended_at": time_text(None if last is None else last.ended_at),
        "exit_status": None if last is None else last.exit_status,
        "error": None if last is None else last.error,
        "worker": None if last is None else last.worker,
        "values": None if handed_on is None else json.loads(handed_on),
        "why": _why(looked, key, words.state),
        "events": [one for submission in submissions for one in _events(submission)],
    }


def _why(looked: RunSnapshot, key: Key, state: str) -> list[str]:
    """Says why a block waits; empty if it is active or done."""
    if not looked.started or state in ACTIVE or state in DONE:
        return []
    name = object_name(looked, key)
    if name is not None:
        return [f"it was not posted yet: {post_command(name)}"]
    found = [reason_text(one) for one in why(looked.pool, key, due_times(looked))]
    for other in looked.pool.plan.nodes:
        if (name := object_name(looked, (key[0], other))) is not None:
            node = f"{looked.id_of((key[0], other))}:{SUCCEEDED}"
            found = [text.replace(node, f"the object {name}") for text in found]
    return found


def _events(one: SubmissionView) -> Iterator[Document]:
    """Returns what happened to a submission, oldest first."""
    submit = read_job_name(one.task_id).submit
    told = [("submitted", one.submitted_at), ("started", one.started_at)]
    if Status(one.status) in FINAL:
        told.append((one.status, one.ended_at))
    for event, at in told:
        if at is not None:
            error = one.error if event == one.status else None
            yield {"event": event, "submit": submit, "at": time_text(at), "error": error}


def object_document(view: ObjectView) -> Document:
    return {
        "name": view.name,
        "facts": json.loads(view.facts),
        "posted_at": time_text(view.posted_at),
        "posted_by": view.posted_by,
    }
