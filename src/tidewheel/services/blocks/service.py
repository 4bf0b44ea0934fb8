"""Keeps scheduling block instances, processing blocks and objects on a store.

Everybody comes through here: applications, the command line, and the server for those who come
over HTTP.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tidewheel.core.graph.findings import Findings, finding_document
from tidewheel.core.operator.blocks import (
    FACTS_BYTES_MAX,
    OBJECTS_MAX,
    InvalidSbi,
    NewObject,
    ObjectView,
    SbiView,
)
from tidewheel.core.operator.verbs import Stop
from tidewheel.core.operator.views import ABORTED_BY
from tidewheel.errors import BadSetting, Declined, NotFound, NotRunning, Refused, SbiTaken
from tidewheel.formats.sip.model import object_name_problem
from tidewheel.ports.runs import Document, RunDoor
from tidewheel.ports.store import Store
from tidewheel.services.blocks.views import (
    block_document,
    block_facts,
    blocks_document,
    object_document,
    sbi_document,
    sbi_facts,
)

if TYPE_CHECKING:
    from tidewheel.formats.sip.scheduling_block import SbiRequest
    from tidewheel.services.workflow_state import DefinitionOf

TRIES_MAX = 5  # to abort a run that schedulers take and leave meanwhile
OVER = ("completed", "stopped")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """Says what a client may ask for and see; without limits where it opens the store."""

    permit: Callable[[SbiRequest], None] = lambda _: None  # raises if it may not be asked for
    sees: Callable[[str], bool] = lambda _: True  # of which workflows there are blocks


class BlockService:
    """Is ``ports.blocks.BlockDoor`` on a store, for a caller with these rights."""

    def __init__(
        self,
        store: Store,
        runs: RunDoor,
        home: Path,
        *,
        code_trusted: bool,
        rights: Rights = Rights(),  # noqa: B008 - frozen
        definition_of: DefinitionOf | None = None,
    ) -> None:
        self._store, self._runs, self._home = store, runs, home
        self._code_trusted, self._rights = code_trusted, rights
        self._definition_of = definition_of

    # ---- instances ----

    async def submit_sbi(self, file: str, content: bytes, *, who: str) -> Document:
        from tidewheel.services.blocks.requests import (
            fingerprint,
            new_sbi,
            read_request,
        )

        findings = Findings()
        request = await read_request(file, content, findings)
        self._check_permitted(request, file, findings)
        known = None if findings.has_errors else await self._known(request.id)
        if known is not None and known.fingerprint != fingerprint(request):
            raise SbiTaken(request.id)
        made = False
        if known is None:
            new = await new_sbi(
                *(self._store, request, findings),
                who=who,
                code_trusted=self._code_trusted,
                sees=self._rights.sees,
            )
            created = await self._store.create_sbi(new)
            known, made = created.sbi, created.made
        return {
            **await sbi_document(self._store, known),
            "is_new": made,
            "findings": [finding_document(one) for one in findings.sorted()],
        }

    def _check_permitted(self, request: SbiRequest, file: str, findings: Findings) -> None:
        """Refuses a client without the right, and tells it only what the text has wrong."""
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
        return {"sbis": [sbi_facts(one) for one in await self._store.sbis(count)]}

    async def sbi(self, sbi_id: str) -> Document:
        return await sbi_document(self._store, await self._store.sbi(sbi_id))

    # ---- blocks ----

    async def blocks(self, *, sbi: str | None = None, count: int = 100) -> Document:
        found = await self._store.blocks(sbi=sbi, count=count)
        return await blocks_document(self._store, found)

    async def block(self, block_id: str) -> Document:
        from tidewheel.views.snapshot import gather

        view = await self._store.block(block_id)
        looked = await gather(
            self._store, view.run, self._home, definition_of=self._definition_of
        )
        # Again: it may have begun, or ended, since the first look.
        return await block_document(self._store, await self._store.block(block_id), looked)

    async def abort(self, block_id: str, *, who: str, reason: str = "") -> Document:
        said = f"{ABORTED_BY}{who}" + (f": {reason}" if reason else "")
        number = (await self._store.block(block_id)).run.number
        changed = await self._abort(number, said, who)
        now, view = await self._store.now(), await self._store.block(block_id)
        return block_facts(view, now, never=False) | {"changed": changed}

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
