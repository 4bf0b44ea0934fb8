"""The BlockStore port over any database that can run scripts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidewheel.store.run_facade import WritingScript
from tidewheel.store.transaction import Result, Script

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


class BlockOperations(ABC):
    """A BlockStore whose operations are scripts."""

    @abstractmethod
    async def look(self, script: Script[Result]) -> Result:
        """Run a script that only reads."""

    @abstractmethod
    async def _write(self, operation: str, script: WritingScript[Result]) -> Result:
        """Run a script in one transaction."""

    async def create_sbi(self, new: NewSbi) -> CreatedSbi:
        from tidewheel.store.operations import blocks

        return await self._write("create_sbi", lambda tx, _: blocks.create_sbi(tx, new))

    async def sbi(self, sbi_id: str) -> SbiView:
        from tidewheel.store.operations import blocks

        return await self.look(lambda tx: blocks.get_sbi(tx, sbi_id))

    async def sbis(self, count: int = 100) -> list[SbiView]:
        from tidewheel.store.operations import blocks

        return await self.look(lambda tx: blocks.list_sbis(tx, count))

    async def block(self, block_id: str) -> BlockView:
        from tidewheel.store.operations import blocks

        return await self.look(lambda tx: blocks.get_block(tx, block_id))

    async def blocks(self, *, sbi: str | None = None, count: int = 100) -> list[BlockView]:
        from tidewheel.store.operations import blocks

        return await self.look(lambda tx: blocks.list_blocks(tx, sbi, count))

    async def needs_of(self, runs: Sequence[int]) -> list[NeedView]:
        from tidewheel.store.operations import blocks

        return await self.look(lambda tx: blocks.needs_of(tx, runs))

    async def stop_run(self, run: int, reason: str) -> bool:
        from tidewheel.store.operations import blocks

        return await self._write(
            "stop_run", lambda tx, effects: blocks.stop_run(tx, run, reason, effects)
        )

    async def post_objects(self, objects: Sequence[NewObject], who: str) -> list[ObjectView]:
        from tidewheel.store.operations import blocks

        return await self._write(
            "post_objects", lambda tx, effects: blocks.post_objects(tx, objects, who, effects)
        )

    async def objects(self, *, after: str = "", count: int = 1_000) -> list[ObjectView]:
        from tidewheel.store.operations import blocks

        return await self.look(lambda tx: blocks.list_objects(tx, after, count))

    async def objects_there(self, names: Sequence[str]) -> list[ObjectView]:
        from tidewheel.store.operations import blocks

        return await self.look(lambda tx: blocks.objects_there(tx, names))

    async def remove_object(self, name: str) -> ObjectView:
        from tidewheel.store.operations import blocks

        return await self._write("remove_object", lambda tx, _: blocks.remove_object(tx, name))
