"""The RegistryStore port over any database that can run scripts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidewheel.store.run_facade import WritingScript
from tidewheel.store.transaction import Result, Script

if TYPE_CHECKING:
    from tidewheel.core.operator.registry import NewWorkflow, Registered, WorkflowView


class RegistryOperations(ABC):
    """A RegistryStore whose operations are scripts."""

    @abstractmethod
    async def look(self, script: Script[Result]) -> Result:
        """Run a script that only reads."""

    @abstractmethod
    async def _write(self, operation: str, script: WritingScript[Result]) -> Result:
        """Run a script in one transaction."""

    async def register(self, workflows: Sequence[NewWorkflow]) -> list[Registered]:
        from tidewheel.store.operations import registry

        return await self._write("register", lambda tx, _: registry.register(tx, workflows))

    async def workflow(self, name: str, version: str) -> WorkflowView:
        from tidewheel.store.operations import registry

        return await self.look(lambda tx: registry.get_workflow(tx, name, version))

    async def workflows(
        self, name: str | None = None, count: int = 1_000
    ) -> list[WorkflowView]:
        from tidewheel.store.operations import registry

        return await self.look(lambda tx: registry.list_workflows(tx, name, count))

    async def remove_workflow(self, name: str, version: str) -> WorkflowView:
        from tidewheel.store.operations import registry

        return await self._write(
            "remove_workflow", lambda tx, _: registry.remove_workflow(tx, name, version)
        )
