"""The NotebookStore port over any database that can run scripts.

What they need is loaded by the first one that runs: few processes keep a notebook.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from tidewheel.store.run_facade import WritingScript
from tidewheel.store.transaction import Result, Row, Script

if TYPE_CHECKING:
    from tidewheel.core.operator.notebooks import Notebook


class NotebookOperations(ABC):
    """A NotebookStore whose operations are scripts."""

    @abstractmethod
    async def look(self, script: Script[Result]) -> Result:
        """Run a script that only reads."""

    @abstractmethod
    async def _write(self, operation: str, script: WritingScript[Result]) -> Result:
        """Run a script in one transaction."""

    async def claim_notebook(
        self, name: str, owner: str, lease_seconds: float, *, dead_epoch: int | None = None
    ) -> Notebook | None:
        from tidewheel.store.operations import leased_records

        claim = leased_records.Claim(name, owner, lease_seconds, dead_epoch)
        return _notebook(
            await self._write("claim_notebook", lambda tx, _: leased_records.claim(tx, claim))
        )

    async def write_notebook(
        self, name: str, epoch: int, body: str, lease_seconds: float
    ) -> bool:
        from tidewheel.store.operations import leased_records

        return await self._write(
            "write_notebook",
            lambda tx, _: leased_records.write(tx, name, epoch, body, lease_seconds),
        )

    async def leave_notebook(self, name: str, epoch: int) -> None:
        await self._write(
            "leave_notebook", lambda tx, _: tx.rows("leave_notebook", name=name, epoch=epoch)
        )

    async def notebook(self, name: str) -> Notebook | None:
        return _notebook(await self.look(lambda tx: tx.rows("get_notebook", name=name)))


def _notebook(rows: list[Row]) -> Notebook | None:
    from tidewheel.core.operator.notebooks import Notebook

    return Notebook(*rows[0]) if rows else None
