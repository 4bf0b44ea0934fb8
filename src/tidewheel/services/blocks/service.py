"""Keeps scheduling block instances, processing blocks and objects on a store.

Everybody comes through here: applications, the command line, and the server for those who come
over HTTP.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tidewheel.api.blocks import BlockFacts, BlockNeed, BufferObject, SbiFacts, StageFacts
from tidewheel.core.graph.definition import element_name
from tidewheel.core.graph.findings import Findings, finding_document
from tidewheel.core.graph.outputs import SUCCEEDED
from tidewheel.core.operator.blocks import (
    FACTS_BYTES_MAX,
    OBJECTS_MAX,
    BlockView,
    InvalidSbi,
    NeedState,
    NeedView,
    NewObject,
    ObjectView,
    SbiView,
)
from tidewheel.core.operator.definition import SIP, read_job_name
from tidewheel.core.operator.verbs import Stop
from tidewheel.core.operator.views import ABORTED_BY, SubmissionView
from tidewheel.core.queue.access import covers, run_name
from tidewheel.core.queue.status import FINAL, Status
from tidewheel.core.queue.task import Instant, TaskId
from tidewheel.core.sched.elements import size_at
from tidewheel.core.sched.task_state import Key
from tidewheel.errors import BadSetting, Declined, NotFound, NotRunning, Refused, SbiTaken
from tidewheel.formats.sip.model import LIST_PREFIX, object_name_problem
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.ports.runs import Document, RunDoor
from tidewheel.ports.store import Store
from tidewheel.services.service import ReadsDefinitions, read_in_thread
from tidewheel.views.run_facts import document_of
from tidewheel.views.snapshot import (
    RunSnapshot,
    Submissions,
    gather,
    submissions_by_task,
)
from tidewheel.views.status_text import ACTIVE, DONE, FUTURE, STATES, WAITING
from tidewheel.views.why import how_posted, object_name, reason_text, task_reasons
from tidewheel.vocabulary import time_text

if TYPE_CHECKING:
    from tidewheel.formats.sip.scheduling_block import SbiRequest
    from tidewheel.services.workflow_state import DefinitionOf

TRIES_MAX = 5  # to abort a run that schedulers take and leave meanwhile
OVER = ("completed", "stopped")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """Says what a client may ask for and see: by default all, as one that opens the store."""

    permit: Callable[[SbiRequest], None] = lambda _: None  # raises if it may not be asked for
    names: tuple[str, ...] | None = None  # which blocks it may know of; None: all

    def cover(self, block: BlockView) -> bool:
        """Says whether the client may know of a block."""
        return self.names is None or covers(self.names, run_name(block.run.name))


class BlockService:
    """Implements ``ports.runs.BlockDoor`` on a store, for a caller with these rights."""

    def __init__(  # noqa: PLR0913 - each by name
        self,
        store: Store,
        runs: RunDoor,
        home: Path,
        *,
        code_trusted: bool,
        rights: Rights = Rights(),  # noqa: B008 - frozen
        definition_of: DefinitionOf | None = None,
        read: ReadsDefinitions = read_in_thread,
    ) -> None:
        self._store, self._runs, self._home, self._read = store, runs, home, read
        self._code_trusted, self._rights = code_trusted, rights
        self._definition_of = definition_of

    # ---- instances ----

    async def submit_sbi(self, file: str, content: bytes, *, who: str) -> Document:
        from tidewheel.formats.sip.scheduling_block import read_sbi
        from tidewheel.services.blocks import requests

        findings = Findings()
        request = await asyncio.to_thread(read_sbi, file, content, findings)
        if request is None:  # it is unreadable
            raise InvalidSbi(file, findings.sorted())
        self._check_permitted(request, file, findings)
        known = None if findings.has_errors else await self._known(request.id)
        if known is not None and known.fingerprint != requests.fingerprint(request):
            raise SbiTaken(request.id)
        made = False
        if known is None:
            new = await requests.new_sbi(
                *(self._store, request, findings),
                who=who,
                code_trusted=self._code_trusted,
                rights=self._rights,
                read=self._read,
            )
            created = await self._store.create_sbi(new)
            known, made = created.sbi, created.made
        return {
            **await sbi_document(self._store, known, self._rights.names),
            "is_new": made,
            "findings": [finding_document(one) for one in findings.sorted()],
        }

    def _check_permitted(self, request: SbiRequest, file: str, findings: Findings) -> None:
        """Raises Refused if the client may not ask for this. If its text has mistakes, it
        raises InvalidSbi instead, which tells those alone."""
        try:
            self._rights.permit(request)
        except Refused:
            if findings.has_errors:
                raise InvalidSbi(file, findings.sorted()) from None
            raise

    async def _known(self, sbi_id: str) -> SbiView | None:
        try:
            return await self._store.sbi(sbi_id)
        except NotFound:
            return None

    async def sbis(self, count: int = 100) -> Document:
        return {"sbis": [document_of(SbiFacts, one) for one in await self._store.sbis(count)]}

    async def sbi(self, sbi_id: str) -> Document:
        found = await self._store.sbi(sbi_id)
        return await sbi_document(self._store, found, self._rights.names)

    # ---- blocks ----

    async def blocks(self, *, sbi: str | None = None, count: int = 100) -> Document:
        found = await self._store.blocks(sbi=sbi, count=count)
        return await blocks_document(self._store, found, self._rights.names)

    async def block(self, block_id: str) -> Document:
        """Returns the block with each of its stages."""
        store, view = self._store, await self._store.block(block_id)
        looked = await gather(store, view.run, self._home, definition_of=self._definition_of)
        # Again: it may have begun, or ended, since the first look.
        view = await store.block(block_id)
        never = await never_begin(store, [view])
        facts = block_facts(view, looked.now, self._rights.names, never=view.id in never)
        definition = await store.definition(view.run.definition)
        keys = looked.known_keys()
        if (
            definition.kind == SIP
        ):  # all stages, made or not yet; of others those that were made
            keys = [(looked.pool.plan.initial, name) for name in looked.graph.nodes]
            keys = [key for key in keys if not key[1].startswith(LIST_PREFIX)]
        found, text = await submissions_by_task(store, looked.view), looked.pool.plan.text
        by_key = {key: found.get((text(key[0]), key[1]), ()) for key in keys[:STAGES_MAX]}
        last = [there[-1].task_id for there in by_key.values() if there]
        values = await store.values_of(last) if last else {}
        stages = [
            _folded_document(looked, key, found)
            if key[1] in looked.graph.mapped and definition.kind == SIP
            else _stage_document(looked, key, there, values)
            for key, there in by_key.items()
        ]
        return {**facts, "stages": stages}

    async def abort(self, block_id: str, *, who: str, reason: str = "") -> Document:
        said = f"{ABORTED_BY}{who}" + (f": {reason}" if reason else "")
        number = (await self._store.block(block_id)).run.number
        changed = await self._abort(number, said, who)
        now, view = await self._store.now(), await self._store.block(block_id)
        return block_facts(view, now, self._rights.names, never=False) | {"changed": changed}

    async def _abort(self, number: int, said: str, who: str) -> bool:
        """Aborts a run, by its scheduler or without one; False if there is nothing to abort."""
        run = await self._store.run(number)
        for _ in range(TRIES_MAX):
            if run.status in OVER:
                return False
            if await self._store.stop_run(number, said):
                return True
            try:
                await self._runs.give(run.name, Stop(mode="kill", reason=said), who=who)
            except NotRunning:
                run = await self._store.run(number)
            else:
                return True
        raise Declined(f"{run.name} changes hands all the time; try again")

    # ---- objects ----

    async def post_objects(
        self, objects: Mapping[str, Mapping[str, object]], *, who: str
    ) -> Document:
        if not 1 <= len(objects) <= OBJECTS_MAX:
            raise BadSetting("objects", len(objects), f"1 to {OBJECTS_MAX} names at once")
        new = [_new_object(name, facts) for name, facts in objects.items()]
        return _listed(await self._store.post_objects(new, who))

    async def objects(self, *, after: str = "", count: int = 1_000) -> Document:
        return _listed(await self._store.objects(after=after, count=count))

    async def remove_object(self, name: str) -> Document:
        return object_document(await self._store.remove_object(name))


def _listed(objects: list[ObjectView]) -> Document:
    return {"objects": [object_document(one) for one in objects]}


def _new_object(name: str, facts: Mapping[str, object]) -> NewObject:
    if problem := object_name_problem(name):
        raise BadSetting("object", name, problem)
    text = json.dumps(facts)
    if len(text) > FACTS_BYTES_MAX:
        accepted = f"up to {FACTS_BYTES_MAX} bytes of JSON about one object"
        raise BadSetting(f"facts of {name}", f"{text[:60]}…", accepted)
    return NewObject(name=name, facts=text)


# Blocks, instances and objects as documents, for people and programs.


CREATED = "created"
STAGES_MAX = 10_000
ELEMENTS_TOLD_MAX = 3  # of which it is told why they failed


async def sbi_document(
    store: Store, view: SbiView, names: tuple[str, ...] | None = None
) -> Document:
    """Returns an instance as it was asked for, and its blocks as they are."""
    return {
        **document_of(SbiFacts, view),
        "request": json.loads(view.body),
        **await blocks_document(store, view.blocks, names),
    }


async def blocks_document(
    store: Store, views: Sequence[BlockView], names: tuple[str, ...] | None = None
) -> Document:
    """Returns blocks as somebody sees them who may know of what these patterns cover."""
    now, never = await store.now(), await never_begin(store, views)
    told = [block_facts(one, now, names, never=one.id in never) for one in views]
    return {"blocks": told}


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
    found = [
        one.id
        for one in known.values()
        if any(need.state is NeedState.NEVER for need in one.waits)
    ]
    for name in found:  # each as often as it waits in vain, and its children once
        found += children.pop(name, ())
    return set(found)


def block_facts(
    view: BlockView, now: Instant, names: tuple[str, ...] | None = None, *, never: bool
) -> Document:
    """Returns a block as JSON: `waits` says what it waits for, `never` that it never begins.

    Of another block that these patterns do not cover only what it is needed for is told.
    """
    asked, run = json.loads(view.body), view.run
    return document_of(
        BlockFacts,
        view,
        run,
        type=asked.get("type"),
        version=(asked.get("workflow") or {}).get("version"),
        parameters=json.loads(run.options.parameters or "{}"),
        run=run.number,
        driven=run.is_driven(now),
        offered=run.given is not None,
        waits=[str(one.told_to(names)) for one in view.waits],
        never=never,
        needs=[_need_document(one.told_to(names)) for one in view.needs],
    )


def _need_document(need: NeedView) -> Document:
    status = need.status if need.parent else ""
    return document_of(BlockNeed, need, block=need.parent, status=status)


def _stage_document(
    looked: RunSnapshot,
    key: Key,
    submissions: Sequence[SubmissionView],
    values: Mapping[TaskId, str],
) -> Document:
    one, name = looked.shown(key), object_name(looked, key)
    last = submissions[-1] if submissions else None
    handed_on = None if last is None else values.get(last.task_id)
    return document_of(
        StageFacts,
        one,
        last,
        stage=key[1] if name is None else None,
        object=name,
        # A stage that is yet to come is shown as waiting: a block was asked for as a whole.
        state=WAITING if one.state == FUTURE else one.state,
        submit=0 if last is None else read_job_name(last.task_id).submit,
        values=None if handed_on is None else json.loads(handed_on),
        why=_why(looked, key, one.state),
        events=[event for submission in submissions for event in _events(submission)],
    )


def _folded_document(looked: RunSnapshot, key: Key, found: Submissions) -> Document:
    """Returns a stage with for_each as one row: the state of its elements together."""
    pool, (point, name) = looked.pool, key
    over, text = looked.graph.mapped[name], pool.plan.text(point)
    [tasks] = [one for one in pool.plan.mapped if name in one.templates]
    size = size_at(pool, tasks, point, frozenset(pool.flows)) if looked.started else None
    elements = [looked.shown((point, element_name(name, index))) for index in range(size or 0)]
    states = Counter(WAITING if one.state == FUTURE else one.state for one in elements)
    remarks = [f"{states[one]} of {size} {one}" for one in STATES if states[one]]
    last = [there[-1] for one in elements if (there := found.get((text, one.name)))]
    wrong = [f"{read_job_name(one.task_id).node}: {one.error}" for one in last if one.error]
    why = []
    if size is None and looked.started:
        source = (point, over.source)
        why = [f"its elements are known when {over.source} succeeds"]
        if over.size is not None:
            why = _why(looked, source, looked.shown(source).state)
    begun = [one.started_at for one in last if one.started_at is not None]
    ended = [one.ended_at for one in last if one.ended_at is not None]
    is_over = size is not None and not {*states} - DONE and len(ended) == len(last)
    state = next((one for one in STATES if states[one]), WAITING if size is None else SUCCEEDED)
    return {
        **dict.fromkeys(StageFacts.__annotations__),
        "id": f"{text}/{name}",
        "stage": name.partition("<")[0],
        "state": state,
        "remarks": remarks if size else ["of no elements"] if size == 0 else [],
        "submit": 0,
        "started_at": time_text(min(begun)) if begun else None,
        "ended_at": time_text(max(ended)) if ended and is_over else None,
        "error": "; ".join(wrong[:ELEMENTS_TOLD_MAX]) or None,
        "why": why,
        "events": [],
    }


def _why(looked: RunSnapshot, key: Key, state: str) -> list[str]:
    """Returns why a stage or an object of a block waits; empty if it is active or done."""
    if not looked.started or state in ACTIVE or state in DONE:
        return []
    name = object_name(looked, key)
    if name is not None:
        return [f"it was not posted yet: {how_posted(looked, name)}"]
    found = [reason_text(one) for one in task_reasons(looked, key)]
    for other in looked.pool.plan.nodes:
        if (name := object_name(looked, (key[0], other))) is not None:
            node = f"{looked.id_of((key[0], other))}:{SUCCEEDED}"
            found = [text.replace(node, f"the object {name}") for text in found]
    return found


def _events(one: SubmissionView) -> Iterator[Document]:
    """Yields what happened to a submission, oldest first."""
    submit = read_job_name(one.task_id).submit
    told = [("submitted", one.submitted_at), ("started", one.started_at)]
    if Status(one.status) in FINAL:
        told.append((one.status, one.ended_at))
    for event, at in told:
        if at is not None:
            error = one.error if event == one.status else None
            yield {"event": event, "submit": submit, "at": time_text(at), "error": error}


def object_document(view: ObjectView) -> Document:
    return document_of(BufferObject, view, facts=json.loads(view.facts))
