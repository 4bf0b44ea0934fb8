"""Scheduling block instances, processing blocks and objects as they travel."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from tidewheel.core.operator.blocks import BLOCKS_MAX, OBJECTS_MAX, PRIORITY_MAX, PRIORITY_MIN
from tidewheel.server.wire.validation import In

Named = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Count = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
Version = str | float


class WorkflowIn(In):
    """A registered workflow, and what it is given."""

    id: Named
    version: Version = ""  # else the highest
    parameters: dict[str, Any] = msgspec.field(default_factory=dict)


class DependencyIn(In):
    """The dependency on another block, and what must have become of it."""

    type: Literal["processing_block"]
    value: Named
    condition: Literal["complete", "started", "failed", "aborted", "finished"]
    parameters: dict[str, Any] = msgspec.field(default_factory=dict)


class BlockIn(In):
    """One processing block: PB-<date>-<project>-<anything>."""

    id: Named
    type: Literal["realtime", "offline"]
    workflow: WorkflowIn
    version: Version = ""
    priority: Annotated[int, msgspec.Meta(ge=PRIORITY_MIN, le=PRIORITY_MAX)] = 0
    dependencies: tuple[DependencyIn, ...] = ()


class SbiIn(In):
    """A scheduling block instance: SBI-<date>-<project>-<anything>.

    For documentation: the text is read as a file would be, with every finding and its line.
    """

    id: Named
    version: Literal["2.0"]
    processing_blocks: Annotated[tuple[BlockIn, ...], msgspec.Meta(max_length=BLOCKS_MAX)]
    scheduling_block: dict[str, Any] = msgspec.field(default_factory=dict)
    subarray_id: str = ""
    scans: tuple[dict[str, Any], ...] = ()


class SbiQuery(In):
    """The file name of the text in findings; with .yaml or .yml it is read as YAML."""

    file: Annotated[str, msgspec.Meta(max_length=200)] = "request.json"


class SbisQuery(In):
    limit: Count = 100


class BlocksQuery(In):
    """The parameters that select blocks: of one instance, or all."""

    sbi: str | None = None
    limit: Count = 100


class AbortIn(In):
    """The reason of an abort, for people."""

    reason: Annotated[str, msgspec.Meta(max_length=1_000)] = ""


class ObjectIn(In):
    """An object that is there from now on, and what is known of it."""

    name: Named
    facts: dict[str, Any] = msgspec.field(default_factory=dict)


class ObjectsIn(In):
    objects: Annotated[tuple[ObjectIn, ...], msgspec.Meta(min_length=1, max_length=OBJECTS_MAX)]


class ObjectsQuery(In):
    """The parameters that select objects: in the order of names, those behind a name."""

    after: str = ""
    limit: Count = 1_000
