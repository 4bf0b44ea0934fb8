"""The AccessStore port over any database that can run scripts.

What they need is loaded by the first one that runs: only servers and their admins do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from tidewheel.core.queue.task import Instant, WorkerId
from tidewheel.core.queue.views import Figure
from tidewheel.store.rows import worker_number
from tidewheel.store.run_facade import WritingScript
from tidewheel.store.transaction import Result, Script

if TYPE_CHECKING:
    from tidewheel.core.queue.access import AuditEntry, KeptAnswer, NewToken, TokenView


class AccessOperations(ABC):
    """An AccessStore whose operations are scripts."""

    @abstractmethod
    async def look(self, script: Script[Result]) -> Result:
        """Run a script that only reads."""

    @abstractmethod
    async def _write(self, operation: str, script: WritingScript[Result]) -> Result:
        """Run a script in one transaction."""

    async def create_token(self, new: NewToken) -> TokenView:
        from tidewheel.store.operations import access

        return await self._write("create_token", lambda tx, _: access.create_token(tx, new))

    async def token(self, number: int) -> tuple[TokenView, Instant]:
        from tidewheel.store.operations import access

        return await self.look(lambda tx: access.token(tx, number))

    async def tokens(self) -> list[TokenView]:
        from tidewheel.store.operations import access

        return await self.look(access.tokens)

    async def revoke_token(self, number: int) -> TokenView:
        from tidewheel.store.operations import access

        return await self._write("revoke_token", lambda tx, _: access.revoke_token(tx, number))

    async def spend_token(self, number: int) -> bool:
        return bool(
            await self._write(
                "spend_token", lambda tx, _: tx.rows("spend_token", number=number)
            )
        )

    async def figures(self) -> list[Figure]:
        from tidewheel.store.operations import queries

        return await self.look(queries.figures)

    async def touch_token(self, number: int) -> None:
        await self._write("touch_token", lambda tx, _: tx.rows("touch_token", number=number))

    async def assign_worker(self, worker: WorkerId, token: int) -> None:
        given = {"worker_number": worker_number(worker), "token": token}
        await self._write("assign_worker", lambda tx, _: tx.rows("assign_worker", **given))

    async def worker_token(self, worker: WorkerId) -> int | None:
        from tidewheel.store.operations import access

        number = worker_number(worker)
        return await self.look(lambda tx: access.worker_token(tx, number))

    async def add_audit(self, entry: AuditEntry) -> None:
        from tidewheel.store.operations import access

        await self._write("add_audit", lambda tx, _: access.add_audit(tx, entry))

    async def audit(self, before: int | None = None, count: int = 100) -> list[AuditEntry]:
        from tidewheel.store.operations import access

        return await self.look(lambda tx: access.audit(tx, before, count))

    async def kept_answer(self, token: int, key: str) -> KeptAnswer | None:
        from tidewheel.store.operations import access

        return await self.look(lambda tx: access.kept_answer(tx, token, key))

    async def keep_answer(self, answer: KeptAnswer) -> None:
        from tidewheel.store.operations import access

        await self._write("keep_answer", lambda tx, _: access.keep_answer(tx, answer))
