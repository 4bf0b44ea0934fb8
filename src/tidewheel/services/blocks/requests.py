"""Makes the runs that a scheduling block instance asks for, or raises every finding.

Nothing is written here. Whatever keeps one of its blocks from running refuses all of it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import field, replace
from typing import TYPE_CHECKING

from tidewheel.core.graph.findings import NOWHERE, Finding, Findings, InvalidDefinition
from tidewheel.core.operator.blocks import BlockView, InvalidSbi, NewBlock, NewSbi
from tidewheel.core.operator.definition import RunOptions, StoredDefinition
from tidewheel.core.operator.registry import RunRequest
from tidewheel.core.queue.task import Instant
from tidewheel.errors import NotFound
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
            if one.code == UNUSED_PARAMETER:
                self.findings.add(_of_block(one, asked))
        return NewBlock(
            id=asked.id,
            run=replace(run, given=NOTHING_GIVEN),
            needs=asked.needs,
            body=json.dumps(asked.body),
        )

    async def _check_id(self, asked: BlockRequest) -> None:
        known = await self._known(asked.id)
        if known is None or known.sbi == self.sbi:
            return
        whose = f"a block of {known.sbi}" if self.rights.cover(known) else "taken"
        self.findings.error(
            "duplicate-block",
            f"{asked.id} is {whose} already",
            "give this one an id of its own",
            asked.places.id,
        )

    async def _check_parents(self, asked: BlockRequest) -> None:
        for name in dict.fromkeys(need.parent for need in asked.needs):
            if name in self.own:
                continue
            known = await self._known(name)  # one that may not be seen is as if not there
            if known is None or not self.rights.cover(known):
                self.findings.error(
                    "unknown-block",
                    f"{asked.id} waits for {name!r}, which is no block of this instance or of "
                    "an earlier one",
                    "name a block that is there: tidewheel blocks",
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
