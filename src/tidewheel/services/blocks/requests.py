"""Makes the runs that a scheduling block instance asks for, or raises every finding.

Nothing is written here. Whatever keeps one of its blocks from running refuses all of it.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import field, replace
from typing import TYPE_CHECKING

from tidewheel.core.graph.findings import (
    NOWHERE,
    WORKER_NEEDS,
    Finding,
    Findings,
    InvalidDefinition,
)
from tidewheel.core.operator.blocks import (
    BlockCondition,
    BlockStatus,
    BlockView,
    InvalidSbi,
    NeedView,
    NewBlock,
    NewSbi,
    SbiView,
)
from tidewheel.core.operator.definition import RunOptions, StoredDefinition
from tidewheel.core.operator.registry import RunRequest
from tidewheel.core.operator.views import RunView
from tidewheel.core.queue.task import Instant
from tidewheel.errors import AmbiguousRun, NotFound
from tidewheel.formats.sip.parameters import REQUEST, UNUSED_PARAMETER
from tidewheel.formats.sip.scheduling_block import (
    BlockRequest,
    SbiRequest,
    is_block_id,
)
from tidewheel.lazy_dataclasses import dataclass
from tidewheel.ports.store import Store
from tidewheel.services.registry.service import request_run
from tidewheel.services.run_service import NOTHING_GIVEN
from tidewheel.services.service import ReadsDefinitions, read_in_thread

if TYPE_CHECKING:
    from tidewheel.services.blocks.service import Rights


def fingerprint(request: SbiRequest) -> str:
    """Returns a hash of a request: the same for JSON or YAML, and for any order of keys."""
    return hashlib.sha256(json.dumps(request.body, sort_keys=True).encode()).hexdigest()


async def new_sbi(  # noqa: PLR0913 - each by name
    store: Store,
    request: SbiRequest,
    findings: Findings,
    *,
    who: str,
    code_trusted: bool,
    rights: Rights,
    read: ReadsDefinitions = read_in_thread,
) -> NewSbi:
    """Returns the instance with its runs; raises InvalidSbi if one of them cannot be made."""
    own = {one.id for one in request.blocks}
    now = await store.now()
    making = _Making(store, request.id, own, findings, now, rights, code_trusted, read)
    blocks = [await making.block(one) for one in request.blocks]
    if findings.has_errors:
        raise InvalidSbi(request.id or "(no id)", findings.sorted())
    return NewSbi(
        id=request.id,
        body=json.dumps(request.body),
        fingerprint=fingerprint(request),
        who=who,
        blocks=tuple(one for one in blocks if one is not None),
        definitions=tuple(making.definitions.values()),
    )


async def planned_sbi(store: Store, new: NewSbi) -> SbiView:
    """Returns an instance as it would be if it were stored now; its runs have no numbers."""
    now = await store.now()
    runs = {block.id: _planned_run(block, now) for block in new.blocks}
    for name in {need.parent for block in new.blocks for need in block.needs} - runs.keys():
        with suppress(NotFound):  # it was deleted meanwhile
            runs[name] = (await store.block(name)).run
    blocks = [
        BlockView(
            id=block.id,
            sbi=new.id,
            position=position,
            body=block.body,
            run=runs[block.id],
            priority=block.run.options.priority or 0,
            needs=tuple(
                _planned_need(need.parent, need.condition, runs[need.parent], now)
                for need in block.needs
                if need.parent in runs
            ),
        )
        for position, block in enumerate(new.blocks, 1)
    ]
    return SbiView(
        id=new.id,
        body=new.body,
        fingerprint=new.fingerprint,
        requested_at=now,
        requested_by=new.who,
        blocks=tuple(blocks),
        counts={BlockStatus.CREATED: len(blocks)},
    )


def _planned_run(block: NewBlock, now: Instant) -> RunView:
    new = block.run
    return RunView(
        number=0,
        name=block.id,
        workflow=new.workflow,
        definition=new.definition,
        options=new.options,
        folder="",
        queue="",
        status="created",
        reason="",
        epoch=0,
        batch=0,
        owner=None,
        deadline_at=None,
        created_at=now,
        updated_at=now,
        ended_at=None,
        given=new.given,
    )


def _planned_need(
    parent: str, condition: BlockCondition, run: RunView, now: Instant
) -> NeedView:
    return NeedView(
        run=0,
        parent=parent,
        condition=condition,
        status=run.status,
        begun=run.batch > 0,
        going=run.given is not None or run.is_driven(now),
        reason=run.reason,
    )


@dataclass(slots=True)
class _Making:
    """Makes the blocks of one instance; `own` are their ids."""

    store: Store
    sbi: str
    own: set[str]
    findings: Findings
    now: Instant
    rights: Rights
    code_trusted: bool
    read: ReadsDefinitions
    definitions: dict[str, StoredDefinition] = field(default_factory=dict)

    async def block(self, asked: BlockRequest) -> NewBlock | None:
        await self._check_id(asked)
        await self._check_parents(asked)
        if not asked.workflow:
            return None
        wanted = RunRequest(
            workflow=asked.workflow,
            version=asked.version,
            parameters=asked.parameters,
            name=asked.id,
            options=RunOptions(now=float(self.now), priority=asked.priority),
            sees=self.rights.names,
            code_trusted=self.code_trusted,
        )
        found = Findings()
        try:
            run, definition = await request_run(self.store, wanted, found, self.read)
        except InvalidDefinition as refused:
            for one in refused.findings:
                self.findings.add(_of_block(one, asked))
            return None
        self.definitions[definition.digest] = definition
        for one in found:
            if one.code in (UNUSED_PARAMETER, WORKER_NEEDS):
                self.findings.add(_of_block(one, asked))
        return NewBlock(
            id=asked.id,
            run=replace(run, given=NOTHING_GIVEN),
            needs=asked.needs,
            body=json.dumps(asked.body),
        )

    async def _check_id(self, asked: BlockRequest) -> None:
        known = await self._known(asked.id)
        if known is None and not await self._is_run(asked.id):
            return
        if known is not None and known.sbi == self.sbi:
            return
        is_told = known is not None and self.rights.cover(known)
        whose = f"a block of {known.sbi}" if known is not None and is_told else "taken"
        self.findings.error(
            "duplicate-block",
            f"{asked.id} is {whose} already",
            "choose another id for this block",
            asked.places.id,
        )

    async def _is_run(self, name: str) -> bool:
        """Says whether a run that is no block is called so."""
        if not is_block_id(name):
            return False
        try:
            return (await self.store.find_run(name)).name == name
        except (NotFound, AmbiguousRun):
            return False

    async def _check_parents(self, asked: BlockRequest) -> None:
        for name in dict.fromkeys(need.parent for need in asked.needs):
            if name in self.own:
                continue
            known = await self._known(name)  # one that may not be seen is as if not there
            if known is None or not self.rights.cover(known):
                self.findings.error(
                    "unknown-block",
                    f"{asked.id} waits for {name!r}, which is not a block of this instance or "
                    "of an earlier one",
                    "name an existing block; to list them: tidewheel blocks",
                    asked.places.needs[name],
                )

    async def _known(self, name: str) -> BlockView | None:
        """Returns the block of this id, None if there is none. A text that can be no block's id
        is not looked for."""
        if not is_block_id(name):
            return None
        try:
            return await self.store.block(name)
        except NotFound:
            return None


def _of_block(finding: Finding, asked: BlockRequest) -> Finding:
    """Returns a finding of the registry with the block, and its place in the request."""
    places = {NOWHERE: asked.places.workflow, REQUEST: asked.places.parameters}
    position = places.get(finding.position, finding.position)
    message = f"block {asked.id}: {finding.message}"
    return replace(finding, message=message, position=position)
