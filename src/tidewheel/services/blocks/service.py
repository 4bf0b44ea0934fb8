"""Keeps scheduling block instances, processing blocks and objects on a store.

Everybody comes through here: applications, the command line, and the server for those who come
over HTTP.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tidewheel.api.blocks import BlockFacts, BlockNeed, BufferObject, SbiFacts
from tidewheel.core.graph.findings import Findings, finding_document
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
    read_block_status,
)
from tidewheel.core.operator.verbs import Stop
from tidewheel.core.operator.views import ABORTED_BY, RunView
from tidewheel.core.queue.access import covers, run_name
from tidewheel.core.queue.task import Instant
from tidewheel.errors import (
    BadSetting,
    Declined,
    NoAnswer,
    NotFound,
    NotRunning,
    Refused,
    SbiTaken,
)
from tidewheel.formats.sip.model import object_name_problem
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.ports.runs import Document, RunDoor
from tidewheel.ports.store import Store
from tidewheel.services.blocks.stages import (
    COMMANDS_MAX,
    history_of,
    service_ends,
    stage_documents,
)
from tidewheel.services.service import ReadsDefinitions, read_in_thread
from tidewheel.services.workflow_state import definitions_of
from tidewheel.views.past import Pasts
from tidewheel.views.run_facts import document_of
from tidewheel.views.snapshot import AskedView, ViewContext, submissions_by_task

if TYPE_CHECKING:
    from tidewheel.formats.sip.scheduling_block import SbiRequest
    from tidewheel.services.workflow_state import DefinitionOf

TRIES_MAX = 5  # to abort a run that schedulers take and leave meanwhile
LOOK_AGAIN_SECONDS = 1.0  # whether the scheduler that was told of an abort still lives
ABORTED_AT_ONCE = 8  # blocks of an instance that schedulers are asked to abort


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

    async def submit_sbi(
        self, file: str, content: bytes, *, who: str, dry_run: bool = False
    ) -> Document:
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
            if dry_run:
                known, made = await requests.planned_sbi(self._store, new), True
            else:
                created = await self._store.create_sbi(new)
                known, made = created.sbi, created.made
        return {
            **await sbi_document(self._store, known, self._rights.names),
            "is_new": made,
            "dry_run": dry_run,
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

    async def sbis(
        self, count: int = 100, *, status: str | None = None, subarray: str | None = None
    ) -> Document:
        wanted = None if status is None else read_block_status(status)
        found = await self._store.sbis(count, status=wanted, subarray=subarray)
        return {"sbis": list(map(sbi_facts, found))}

    async def sbi(self, sbi_id: str) -> Document:
        found = await self._store.sbi(sbi_id)
        return await sbi_document(self._store, found, self._rights.names)

    async def abort_sbi(self, sbi_id: str, *, who: str, reason: str = "") -> Document:
        """Aborts every block of an instance that is not over.

        Those that have not begun come first, for one may wait for the abort of another. One
        that cannot be aborted just now keeps no other from it; to ask again is harmless.
        """
        said, found = _abort_reason(who, reason), await self._store.sbi(sbi_id)
        answers: dict[str, tuple[bool, str | None]] = {}
        places = asyncio.Semaphore(ABORTED_AT_ONCE)

        async def end(block: BlockView) -> None:
            async with places:
                try:
                    answers[block.id] = await self._abort(block.run.number, said, who), None
                except (Refused, NoAnswer) as error:
                    answers[block.id] = False, str(error)

        for block in reversed(found.blocks):
            if not block.run.batch:
                await end(block)
        await asyncio.gather(*(end(block) for block in found.blocks if block.run.batch))
        now, after = await self._store.now(), await self._store.sbi(sbi_id)
        blocks = [
            block_facts(one, now, self._rights.names, never=False)
            | dict(zip(("changed", "refused"), answers.get(one.id, (False, None)), strict=True))
            for one in after.blocks
        ]
        changed = any(one["changed"] for one in blocks)
        return {**sbi_facts(after), "changed": changed, "blocks": blocks}

    # ---- blocks ----

    async def blocks(
        self,
        *,
        sbi: str | None = None,
        status: str | None = None,
        workflow: str | None = None,
        count: int = 100,
    ) -> Document:
        wanted = None if status is None else read_block_status(status)
        found = await self._store.blocks(sbi=sbi, status=wanted, workflow=workflow, count=count)
        return await blocks_document(self._store, found, self._rights.names)

    async def block(self, block_id: str) -> Document:
        """Returns the block with each of its stages."""
        store, view = self._store, await self._store.block(block_id)
        names, asked = self._rights.names, self._asked(view)
        looked = await asked.snapshot()
        # Again: it may have begun, or ended, since the first look.
        view = await store.block(block_id)
        never = await never_begin(store, [view])
        facts = block_facts(view, looked.now, names, never=view.id in never)
        return {**facts, **await stage_documents(asked, looked, view)}

    def _asked(self, view: BlockView) -> AskedView:
        """Returns a question about the run of a block."""
        read = self._definition_of or definitions_of(self._store, self._home)
        context = ViewContext(self._home, read, Pasts())
        return AskedView(self._store, context, view.run, {"sees": self._rights.names})

    async def block_history(self, block_id: str) -> Document:
        """Returns what happened to a block and its stages, oldest first."""
        store, view = self._store, await self._store.block(block_id)
        number = view.run.number
        statuses = await store.statuses_of(number)
        commands = await store.commands(number, COMMANDS_MAX)
        submissions = await submissions_by_task(store, view.run)
        looked = await self._asked(view).snapshot()
        point, text = looked.pool.plan.initial, looked.pool.plan.text
        of_services = {
            (point, name): there
            for (at, name), there in submissions.items()
            if at == text(point)
        }
        ends = service_ends(looked, of_services)
        found = history_of(view, statuses, commands, submissions, ends)
        return {"id": view.id, "status": view.status, "events": found}

    async def abort(self, block_id: str, *, who: str, reason: str = "") -> Document:
        number = (await self._store.block(block_id)).run.number
        changed = await self._abort(number, _abort_reason(who, reason), who)
        now, view = await self._store.now(), await self._store.block(block_id)
        return block_facts(view, now, self._rights.names, never=False) | {"changed": changed}

    async def _abort(self, number: int, said: str, who: str) -> bool:
        """Aborts a run, by its scheduler or without one; False if there is nothing to abort."""
        run = await self._store.run(number)
        for _ in range(TRIES_MAX):
            if run.status == "completed" or run.is_aborted:
                return False
            if await self._store.stop_run(number, said):
                return True
            try:
                await self._tell(run, said, who)
            except NotRunning:
                run = await self._store.run(number)
            else:
                return True
        raise Declined(f"the scheduler of {run.name} keeps changing; try again")

    async def _tell(self, run: RunView, said: str, who: str) -> None:
        """Has the scheduler of a run abort it. If that has died, it is not awaited for longer
        than its lease lasts."""
        stop = Stop(mode="kill", reason=said)
        giving = asyncio.ensure_future(self._runs.give(run.name, stop, who=who))
        try:
            while not (await asyncio.wait({giving}, timeout=LOOK_AGAIN_SECONDS))[0]:
                now, seen = await self._store.now(), await self._store.run(run.number)
                if not seen.is_driven(now) and await self._store.stop_run(run.number, said):
                    return
            await giving
        finally:
            giving.cancel()

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


def _abort_reason(who: str, reason: str) -> str:
    return f"{ABORTED_BY}{who}" + (f": {reason}" if reason else "")


def _listed(objects: list[ObjectView]) -> Document:
    return {"objects": [object_document(one) for one in objects]}


def _new_object(name: str, facts: Mapping[str, object]) -> NewObject:
    if problem := object_name_problem(name):
        raise BadSetting("object", name, fault=f"object {name!r}: {problem}")
    text = json.dumps(facts)
    if len(text) > FACTS_BYTES_MAX:
        accepted = f"up to {FACTS_BYTES_MAX} bytes of JSON about one object"
        raise BadSetting(f"facts of {name}", f"{text[:60]}…", accepted)
    return NewObject(name=name, facts=text)


# Blocks, instances and objects as documents, for people and programs.


CREATED = "created"


def sbi_facts(view: SbiView) -> Document:
    """Returns an instance as one row, with what its request says of subarray and scans."""
    asked = json.loads(view.body)
    said = asked if isinstance(asked, dict) else {}
    of, scans = said.get("scheduling_block"), said.get("scans")
    return document_of(
        SbiFacts,
        view,
        counts={str(status): view.counts[status] for status in sorted(view.counts)},
        scheduling_block=_text(of.get("id")) if isinstance(of, dict) else None,
        subarray_id=_text(said.get("subarray_id")),
        scans=len(scans) if isinstance(scans, list) else 0,
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)


async def sbi_document(
    store: Store, view: SbiView, names: tuple[str, ...] | None = None
) -> Document:
    """Returns an instance as it was asked for, and its blocks as they are."""
    return {
        **sbi_facts(view),
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
        run_status=run.status,
        driven=run.is_driven(now),
        offered=run.given is not None,
        waits=[str(one.told_to(names)) for one in view.waits],
        never=never,
        needs=[_need_document(one.told_to(names)) for one in view.needs],
    )


def _need_document(need: NeedView) -> Document:
    status = need.block_status if need.parent else ""
    return document_of(BlockNeed, need, block=need.parent, status=status)


def object_document(view: ObjectView) -> Document:
    return document_of(BufferObject, view, facts=json.loads(view.facts))
