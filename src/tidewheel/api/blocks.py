"""Says what scheduling block instances, processing blocks and buffer objects look like."""

from __future__ import annotations

from typing import Any, TypedDict

from tidewheel.api.workflows import FindingFacts


class BlockNeed(TypedDict):
    """Describes what a block waits for."""

    block: str
    condition: str
    status: str
    state: str


class BlockFacts(TypedDict):
    """Describes a processing block; `never`: it waits for what cannot happen any more."""

    id: str
    sbi: str | None
    type: str | None
    workflow: str
    version: str | float | None
    parameters: dict[str, Any]
    priority: int
    run: int
    status: str
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
    """Describes a block after it was asked to end; `changed`: there was something to end."""

    changed: bool


class StageEvent(TypedDict):
    """Describes something that happened to a submission of a stage."""

    event: str
    submit: int
    at: str
    error: str | None


class StageFacts(TypedDict):
    """Describes a stage of a block, or a buffer object that it waits for."""

    id: str
    stage: str | None
    object: str | None
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
    """Describes a block with each of its stages."""

    stages: list[StageFacts]


class BlockList(TypedDict):
    """Lists processing blocks, newest first."""

    blocks: list[BlockFacts]


class SbiFacts(TypedDict):
    """Describes a scheduling block instance as one row."""

    id: str
    requested_at: str
    requested_by: str


class SbiDocument(SbiFacts):
    """Describes an instance as it was asked for, with its blocks as they are."""

    request: Any
    blocks: list[BlockFacts]


class SbiAnswer(SbiDocument):
    """Describes an instance that was asked for; `is_new`: it was not known before."""

    is_new: bool
    findings: list[FindingFacts]


class SbiList(TypedDict):
    """Lists scheduling block instances, newest first."""

    sbis: list[SbiFacts]


class BufferObject(TypedDict):
    """Describes an object that stages may wait for."""

    name: str
    facts: dict[str, Any]
    posted_at: str
    posted_by: str


class ObjectList(TypedDict):
    """Lists objects that are there, by name."""

    objects: list[BufferObject]
