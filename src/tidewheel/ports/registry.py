"""Holds the Protocols of the registry: its rows in a store, and its service near or far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from tidewheel.core.operator.registry import (
        Bundle,
        NewWorkflow,
        Registered,
        RunRequest,
        WorkflowView,
    )
    from tidewheel.core.operator.views import RunView

Document = dict[str, object]
Parameters = Mapping[str, object]


class RegistryStore(Protocol):
    """Names and versions of definitions; beside the runs, in one store."""

    async def register(self, workflows: Sequence[NewWorkflow]) -> list[Registered]:
        """Registers all or none. The same content again changes nothing; AlreadyRegistered
        names every one that is there with other content."""
        ...

    async def workflow(self, name: str, version: str) -> WorkflowView: ...
    async def workflows(
        self, name: str | None = None, count: int = 1_000
    ) -> list[WorkflowView]:
        """Returns all versions of one, or of all; sorted as texts."""
        ...

    async def remove_workflow(self, name: str, version: str) -> WorkflowView:
        """Removes a version; its definition stays: runs may have been made of it."""
        ...


class RegistryDoor(Protocol):
    """On a store (``services.registry.service``) or before a server (``store.remote``).

    Without a version the highest one is meant. UnknownWorkflow if there is none.
    """

    async def register(
        self, bundles: Sequence[Bundle], *, who: str, strict: bool = False
    ) -> Document:
        """All definitions of all bundles or none; InvalidDefinition has every finding."""
        ...

    async def list(self, name: str = "") -> Document:
        """Returns the workflows by name, the highest version first."""
        ...

    async def show(self, name: str, version: str = "") -> Document: ...
    async def check(
        self, name: str, version: str = "", parameters: Parameters | None = None
    ) -> Document:
        """Returns whether a workflow can be registered and run; with parameters, with these."""
        ...

    async def render(
        self, name: str, version: str = "", parameters: Parameters | None = None
    ) -> Document:
        """Returns what a run with these parameters would execute."""
        ...

    async def remove(self, name: str, version: str = "") -> Document:
        """Removes a version, by default the only one there is; runs of it are not harmed."""
        ...

    async def begin(self, asked: RunRequest) -> RunView:
        """A run that the next scheduler takes up; InvalidDefinition with every finding."""
        ...


@runtime_checkable
class BringsRegistryDoor(Protocol):
    """A store that is not here but behind a server, and so is its registry."""

    def registry_door(self) -> RegistryDoor: ...
