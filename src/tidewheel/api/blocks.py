"""Says what scheduling block instances, processing blocks and buffer objects look like."""

from __future__ import annotations

from typing import Any, TypedDict

from tidewheel.api.workflows import FindingFacts


class BlockNeed(TypedDict):
    """Describes another block for which a block waits, and the `status` of that other block."""

    block: str
    condition: str
    status: str
    state: str


class BlockFacts(TypedDict):
    """Describes a processing block; `never`: it waits for something that can no longer happen.

    `status` is the status in the words of SIP, `run_status` the status of the run of the block.
    """

    id: str
    sbi: str | None
    type: str | None
    workflow: str
    version: str | float | None
    parameters: dict[str, Any]
    priority: int
    run: int
    status: str
    run_status: str
    reason: str
    driven: bool
    offered: bool
    waits: list[str]
    never: bool
    needs: list[BlockNeed]
    created_at: str
    updated_at: str
    ended_at: str | None


class AbortedBlock(BlockFacts):
    """Describes a block after a request to abort it; `changed`: this request aborted it."""

    changed: bool


class StageEvent(TypedDict):
    """Describes something that happened to a submission of a stage."""

    event: str
    submit: int
    at: str
    error: str | None


class StageFacts(TypedDict):
    """Describes a stage of a block, or a buffer object that it waits for.

    `status` is the status in the words of SIP, `state` the state of the task of the stage.
    """

    id: str
    stage: str | None
    object: str | None
    status: str
    state: str
    remarks: list[str]
    submit: int
    submitted_at: str | None
    started_at: str | None
    ended_at: str | None
    exit_status: int | None
    error: str | None
    worker: str | None
    values: Any
    why: list[str]
    events: list[StageEvent]


class BlockDocument(BlockFacts):
    """Describes a processing block with each of its stages; `why`: what delays the whole
    block."""

    why: list[str]
    stages: list[StageFacts]


class BlockEvent(TypedDict):
    """Describes something that happened to a block, or to a submission of one of its stages."""

    at: str
    stage: str | None
    event: str
    submit: int | None
    text: str


class BlockHistory(TypedDict):
    """Lists what happened to a block and its stages, oldest first."""

    id: str
    status: str
    events: list[BlockEvent]


class BlockList(TypedDict):
    """Lists processing blocks, newest first."""

    blocks: list[BlockFacts]


class SbiFacts(TypedDict):
    """Describes a scheduling block instance in a list; `counts`: how many of its blocks have
    each status."""

    id: str
    status: str
    counts: dict[str, int]
    scheduling_block: str | None
    subarray_id: str | None
    scans: int
    requested_at: str
    requested_by: str


class SbiDocument(SbiFacts):
    """Describes a scheduling block instance as it was requested, with the present state of its
    blocks."""

    request: Any
    blocks: list[BlockFacts]


class SbiAnswer(SbiDocument):
    """Describes a scheduling block instance that was requested. `is_new`: it was not known
    before; `dry_run`: nothing was stored."""

    is_new: bool
    dry_run: bool
    findings: list[FindingFacts]


class SbiAbortedBlock(AbortedBlock):
    """Describes a block after a request to abort its scheduling block instance; `refused`: why
    the block could not be aborted."""

    refused: str | None


class AbortedSbi(SbiFacts):
    """Describes a scheduling block instance after a request to abort all of its blocks;
    `changed`: at least one of them had not ended before."""

    changed: bool
    blocks: list[SbiAbortedBlock]


class SbiList(TypedDict):
    """Lists scheduling block instances, newest first."""

    sbis: list[SbiFacts]


class BufferObject(TypedDict):
    """Describes a buffer object, such as a data set, for which stages may wait."""

    name: str
    facts: dict[str, Any]
    posted_at: str
    posted_by: str


class ObjectList(TypedDict):
    """Lists buffer objects, sorted by name."""

    objects: list[BufferObject]
