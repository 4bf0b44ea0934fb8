"""Holds the Protocols of scheduling block instances, processing blocks and objects.

``BlockStore`` is a part of a store. ``BlockDoor`` is what people and programs speak to, near
(``services.blocks.service``) or far (``store.remote``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from tidewheel.core.operator.blocks import (
        BlockView,
        CreatedSbi,
        NeedView,
        NewObject,
        NewSbi,
        ObjectView,
        SbiView,
    )

Document = dict[str, object]


class BlockStore(Protocol):
    """Blocks and objects; beside the runs, in one store."""

    async def create_sbi(self, new: NewSbi) -> CreatedSbi:
        """Creates all of its runs, needs and blocks, or nothing. The same request again changes
        nothing; SbiTaken if another one has its id, Duplicate if a block's id is taken."""
        ...

    async def sbi(self, sbi_id: str) -> SbiView: ...
    async def sbis(self, count: int = 100) -> list[SbiView]:
        """Returns instances without their blocks, newest first."""
        ...

    async def block(self, block_id: str) -> BlockView: ...
    async def blocks(self, *, sbi: str | None = None, count: int = 100) -> list[BlockView]:
        """Returns blocks, newest first."""
        ...

    async def needs_of(self, runs: Sequence[int]) -> list[NeedView]:
        """Returns what runs wait for before they begin, or waited for."""
        ...

    async def stop_run(self, run: int, reason: str) -> bool:
        """Stops a run that nobody drives, and cancels what is left of its tasks; False: it is
        driven, so that its scheduler must be asked, or it is over."""
        ...

    async def post_objects(self, objects: Sequence[NewObject], who: str) -> list[ObjectView]:
        """Notes that objects are there from now on; runs that wait for one are woken."""
        ...

    async def objects(self, *, after: str = "", count: int = 1_000) -> list[ObjectView]:
        """Returns objects by name, those behind a name."""
        ...

    async def objects_there(self, names: Sequence[str]) -> list[ObjectView]:
        """Returns those of these objects that are there."""
        ...

    async def remove_object(self, name: str) -> ObjectView: ...


class BlockDoor(Protocol):
    """The service for blocks and objects, on a store or a server; answers are documents."""

    async def submit_sbi(self, file: str, content: bytes, *, who: str) -> Document:
        """A scheduling block instance in JSON or YAML, as the file's name says; InvalidSbi
        with every finding, and then nothing is stored."""
        ...

    async def sbis(self, count: int = 100) -> Document: ...
    async def sbi(self, sbi_id: str) -> Document: ...
    async def blocks(self, *, sbi: str | None = None, count: int = 100) -> Document: ...
    async def block(self, block_id: str) -> Document:
        """Returns a block with each stage: its state, times, end, values, and why it waits."""
        ...

    async def abort(self, block_id: str, *, who: str, reason: str = "") -> Document:
        """Stages that run are ended, nothing else starts; `changed` false: it was over."""
        ...

    async def post_objects(
        self, objects: Mapping[str, Mapping[str, object]], *, who: str
    ) -> Document:
        """Names, each with what is known of the object."""
        ...

    async def objects(self, *, after: str = "", count: int = 1_000) -> Document: ...
    async def remove_object(self, name: str) -> Document: ...


@runtime_checkable
class BringsBlockDoor(Protocol):
    """A store behind a server, which brings the service for its blocks."""

    def block_door(self) -> BlockDoor: ...
