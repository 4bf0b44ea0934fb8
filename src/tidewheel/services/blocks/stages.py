"""Describes the stages of a block: how each is, why it waits, and what happened to it.

A stage is told in the words of whoever wrote it: by its name, without points and outputs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tidewheel.api.blocks import StageFacts
from tidewheel.core.graph.definition import element_name
from tidewheel.core.graph.outputs import FAILED, SUCCEEDED
from tidewheel.core.operator.blocks import (
    BlockStatus,
    BlockView,
    StageSigns,
    StageStatus,
    StatusSince,
    block_status,
    stage_status,
)
from tidewheel.core.operator.definition import SIP, read_job_name
from tidewheel.core.operator.nested import DEPTH_MAX
from tidewheel.core.operator.views import CommandView, SubmissionView
from tidewheel.core.queue.status import FINAL, Status
from tidewheel.core.sched.elements import size_at
from tidewheel.core.sched.task_state import Key
from tidewheel.formats.sip.model import LIST_PREFIX
from tidewheel.ports.runs import Document
from tidewheel.views.run_facts import document_of
from tidewheel.views.snapshot import (
    AskedView,
    RunSnapshot,
    ShownTask,
    Submissions,
    submissions_by_task,
)
from tidewheel.views.status_text import ACTIVE, FUTURE, OVER, STATES, WAITING
from tidewheel.views.task_lookup import how_posted, object_name
from tidewheel.views.why import reason_text, reasons_of_run, reasons_within, task_reasons
from tidewheel.vocabulary import time_text

if TYPE_CHECKING:
    from tidewheel.api.runs import RunReason
    from tidewheel.core.queue.task import TaskId

STAGES_MAX = 10_000
ASKED_MAX = 100  # stages of which the queue is asked why nobody takes them
ELEMENTS_TOLD_MAX = 3  # of which it is told why they failed
PRESENT, ABSENT = "present", "absent"  # of a buffer object
START_WORKER = "tidewheel worker "
_OVER = (
    *(BlockStatus.COMPLETED, BlockStatus.FAILED, BlockStatus.ABORTED, BlockStatus.STOPPED),
)


async def stage_documents(
    asked: AskedView, looked: RunSnapshot, view: BlockView
) -> dict[str, object]:
    """Returns the stages of a block, made or not yet, and why the block as a whole waits."""
    store = asked.store
    is_sip = (await store.definition(view.run.definition)).kind == SIP
    keys = looked.known_keys()
    if is_sip:  # all stages, made or not yet; of others those that were made
        keys = [(looked.pool.plan.initial, name) for name in looked.graph.nodes]
        keys = [key for key in keys if not key[1].startswith(LIST_PREFIX)]
    found, text = await submissions_by_task(store, looked.view), looked.pool.plan.text
    by_key = {key: found.get((text(key[0]), key[1]), ()) for key in keys[:STAGES_MAX]}
    last = [there[-1].task_id for there in by_key.values() if there]
    values = await store.values_of(last) if last else {}
    page = _StagePage(asked, looked, view, values)
    stages = [
        page.folded(key, found)
        if is_sip and key[1] in looked.graph.mapped
        else await page.stage(key, there)
        for key, there in by_key.items()
    ]
    why: list[str] = []
    if view.status not in _OVER and not looked.waits:  # those are told apart
        why = [page.sentence(one) for one in await reasons_of_run(asked, looked)]
    return {"why": why, "stages": stages}


class _StagePage:
    """Writes the stages of one block."""

    def __init__(
        self,
        asked: AskedView,
        looked: RunSnapshot,
        view: BlockView,
        values: Mapping[TaskId, str],
    ) -> None:
        self._asked, self._looked, self._view = asked, looked, view
        self._values = values
        self._asked_count = 0

    async def stage(self, key: Key, submissions: Sequence[SubmissionView]) -> Document:
        looked, one = self._looked, self._looked.shown(key)
        name, last = object_name(looked, key), submissions[-1] if submissions else None
        handed_on = None if last is None else self._values.get(last.task_id)
        status = self._status(one, name, last)
        return document_of(
            StageFacts,
            one,
            last,
            stage=key[1] if name is None else None,
            object=name,
            status=status,
            # A stage that is yet to come is shown as waiting: a block was asked for as a whole.
            state=WAITING if one.state == FUTURE else one.state,
            submit=0 if last is None else read_job_name(last.task_id).submit,
            values=None if handed_on is None else json.loads(handed_on),
            why=await self._why(one, status),
            events=[
                event
                for submission in submissions
                for event in _events(submission, service_ends(looked, {key: submissions}))
            ],
        )

    def _status(self, one: ShownTask, name: str | None, last: SubmissionView | None) -> str:
        if name is not None:
            return PRESENT if one.state == SUCCEEDED else ABSENT
        return stage_status(
            StageSigns(
                state=one.state,
                remarks=one.remarks,
                job="" if last is None else last.status,
                has_begun=last is not None and last.started_at is not None,
                lacks_objects_alone=self._lacks_objects_alone(one),
                is_aborted=self._view.run.is_aborted,
                block_begun=self._looked.started,
            )
        )

    def _lacks_objects_alone(self, one: ShownTask) -> bool:
        """Says whether a stage that has not begun waits for nothing but buffer objects."""
        looked = self._looked
        if not looked.started or one.state in ACTIVE or one.state in OVER:
            return False
        others = ((one.key[0], name) for name in looked.pool.plan.nodes)
        name_of = looked.pool.plan.name_of  # as reasons have it
        objects = [name_of(key) for key in others if object_name(looked, key) is not None]
        texts = [reason_text(reason) for reason in task_reasons(looked, one.key)]
        return bool(texts) and all(
            any(f" {o}," in f"{text}," for o in objects) for text in texts
        )

    async def _why(self, one: ShownTask, status: str) -> list[str]:
        """Returns all that is known of why a stage does not go on, or an object is not there;
        empty if nothing keeps it back, or its block is over."""
        looked, key = self._looked, one.key
        is_over = one.state in OVER and not one.in_pool
        if not looked.started or is_over or status == StageStatus.ABORTED:
            return []
        name = object_name(looked, key)
        if name is not None:
            posted = one.state == SUCCEEDED
            return [] if posted else [f"it has not been posted yet: {how_posted(looked, name)}"]
        self._asked_count += 1
        if self._asked_count > ASKED_MAX:
            return [reason_text(reason) for reason in task_reasons(looked, key)]
        found = await reasons_within(self._asked, looked, key, DEPTH_MAX)
        told = [each for each in found if each["text"] != f"{one.shown} is {one.state}"]
        return list(dict.fromkeys(map(self.sentence, told)))

    def sentence(self, reason: RunReason) -> str:
        """Returns a reason, with the command that would start a worker if that is what it
        lacks."""
        start = next((one for one in reason["commands"] if one.startswith(START_WORKER)), "")
        text = reason["text"]
        return f"{text}: {start}" if start else text

    def folded(self, key: Key, found: Submissions) -> Document:
        """Returns a stage with for_each as one row: the state of its elements together."""
        looked, pool, (point, name) = self._looked, self._looked.pool, key
        over, text = looked.graph.mapped[name], pool.plan.text(point)
        [tasks] = [one for one in pool.plan.mapped if name in one.templates]
        size = size_at(pool, tasks, point, frozenset(pool.flows)) if looked.started else None
        elements = [
            looked.shown((point, element_name(name, index))) for index in range(size or 0)
        ]
        states = Counter(WAITING if one.state == FUTURE else one.state for one in elements)
        remarks = [f"{states[one]} of {size} {one}" for one in STATES if states[one]]
        last = {
            one.key: there[-1] for one in elements if (there := found.get((text, one.name)))
        }
        jobs = last.values()
        wrong = [f"{read_job_name(one.task_id).node}: {one.error}" for one in jobs if one.error]
        why = []
        if size is None and looked.started:
            source = (point, over.source)
            why = [f"its elements are known when {over.source} succeeds"]
            if over.size is not None:
                why = [reason_text(one) for one in task_reasons(looked, source)]
        begun = [one.started_at for one in jobs if one.started_at is not None]
        ended = [one.ended_at for one in jobs if one.ended_at is not None]
        is_over = size is not None and not {*states} - OVER and len(ended) == len(last)
        state = next(
            (one for one in STATES if states[one]), WAITING if size is None else SUCCEEDED
        )
        each = {self._status(one, None, last.get(one.key)) for one in elements}
        return {
            **dict.fromkeys(StageFacts.__annotations__),
            "id": f"{text}/{name}",
            "stage": name.partition("<")[0],
            "status": self._folded_status(each, size),
            "state": state,
            "remarks": remarks if size else ["its list has no elements"] if size == 0 else [],
            "submit": 0,
            "started_at": time_text(min(begun)) if begun else None,
            "ended_at": time_text(max(ended)) if ended and is_over else None,
            "error": "; ".join(wrong[:ELEMENTS_TOLD_MAX]) or None,
            "why": why,
            "events": [],
        }

    def _folded_status(self, each: set[str], size: int | None) -> str:
        """Returns the status of a stage from those of its elements: what is going on first,
        then what went wrong."""
        if size is None:
            if self._view.run.is_aborted:
                return StageStatus.ABORTED
            begun = self._looked.started
            return StageStatus.WAITING_FOR_DEPENDENCIES if begun else StageStatus.CREATED
        return next((one for one in FOLDED_ORDER if one in each), StageStatus.SUCCEEDED)


FOLDED_ORDER = (
    *(StageStatus.RUNNING, StageStatus.PREPARING, StageStatus.WAITING_FOR_RESOURCES),
    *("withdrawn", StageStatus.RETRYING, StageStatus.HELD, StageStatus.ABORTED),
    *(StageStatus.FAILED, StageStatus.WAITING_FOR_OBJECT),
    *(StageStatus.WAITING_FOR_DEPENDENCIES, StageStatus.CREATED),
    *("expired", "lost", "not_taken", "removed", "ended"),
    *(StageStatus.SUCCEEDED, StageStatus.SWITCHED_OFF),
)


def service_ends(
    looked: RunSnapshot, submissions: Mapping[Key, Sequence[SubmissionView]]
) -> dict[TaskId, str]:
    """Returns how submissions of services ended, which their jobs do not tell: one that was
    ended has succeeded, and one that ended by itself has failed."""
    ends: dict[TaskId, str] = {}
    for key, there in submissions.items():
        node = looked.pool.plan.nodes.get(key[1])
        if node is None or not node.definition.until or not there:
            continue
        ends |= {one.task_id: _ENDED for one in there}
        if (state := looked.shown(key).state) in (SUCCEEDED, FAILED):
            ends[there[-1].task_id] = state
    return ends


def _events(one: SubmissionView, ends: Mapping[TaskId, str]) -> Iterator[Document]:
    """Yields what happened to a submission, oldest first; ``ends`` are those of services."""
    submit, end = read_job_name(one.task_id).submit, ends.get(one.task_id, one.status)
    told = [("submitted", one.submitted_at), ("started", one.started_at)]
    if Status(one.status) in FINAL:
        told.append((end, one.ended_at))
    for event, at in told:
        if at is not None:
            error = one.error if event == end != SUCCEEDED else None
            yield {"event": event, "submit": submit, "at": time_text(at), "error": error}


# What happened to a block, oldest first.

COMMANDS_MAX = 1_000
_COMMAND, _CANCELLED, _ENDED = "command", "cancelled", "ended"


def history_of(
    view: BlockView,
    statuses: Sequence[StatusSince],
    commands: Sequence[CommandView],
    submissions: Submissions,
    ends: Mapping[TaskId, str],
) -> list[Document]:
    """Returns what happened to a block and its stages, oldest first."""
    found = [*_status_events(view, statuses), *map(_command_event, commands)]
    for there in submissions.values():
        for one in there:
            stage = read_job_name(one.task_id).node
            for told in _events(one, ends):
                is_cancelled = told["event"] == _CANCELLED and view.run.is_aborted
                event = StageStatus.ABORTED if is_cancelled else told["event"]
                text = str(told["error"] or "")
                found.append(_event(told["at"], event, text, stage, told["submit"]))
    return sorted(found, key=lambda one: str(one["at"]))  # texts of one form: in their order


def _event(
    at: object, event: object, text: str, stage: str | None = None, submit: object = None
) -> Document:
    return {"at": at, "stage": stage, "event": event, "submit": submit, "text": text}


def _status_events(view: BlockView, statuses: Sequence[StatusSince]) -> Iterator[Document]:
    run = view.run
    last = statuses[-1] if statuses else None
    told = list(statuses)
    # Whoever aborts a block that was stopped before changes its reason alone.
    if run.is_aborted and last is not None and last.reason != run.reason:
        at = run.updated_at
        told.append(StatusSince(at=at, status=run.status, reason=run.reason))
    for one in told:
        status = block_status(one.status, one.reason)
        text = one.reason or ("" if one.status == status else one.status)
        yield _event(time_text(one.at), status, text if one.status != "created" else view.sbi)


def _command_event(one: CommandView) -> Document:
    said = json.loads(one.body)
    ids = said.get("ids") or ()
    words = [str(said.get("verb", "")), *map(str, ids), f"by {one.who}"]
    refused = f", which was refused: {one.refused}" if one.refused else ""
    return _event(time_text(one.at), _COMMAND, " ".join(words) + refused)
