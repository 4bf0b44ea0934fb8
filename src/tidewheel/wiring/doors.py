"""Which class stands behind the doors that are opened for requests, near or far."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from tidewheel.ports.blocks import BringsBlockDoor
from tidewheel.ports.registry import BringsRegistryDoor
from tidewheel.ports.store import Store
from tidewheel.ports.tasks import TaskStore

if TYPE_CHECKING:
    from tidewheel.ports.blocks import BlockDoor
    from tidewheel.ports.registry import RegistryDoor
    from tidewheel.ports.runs import RunDoor
    from tidewheel.services.workflow_state import DefinitionOf


def run_door(
    store: TaskStore, home: Path, definition_of: DefinitionOf | None = None
) -> RunDoor:
    """The runs of a store, or of the server that it stands for; ``home`` holds their files."""
    from tidewheel.ports.runs import BringsRunDoor
    from tidewheel.services.run_service import RunService

    if isinstance(store, BringsRunDoor):
        return store.run_door()
    return RunService(cast("Store", store), home, definition_of)


def block_door(store: TaskStore, home: Path) -> BlockDoor:
    """Blocks and objects of a store, or of the server that it stands for."""
    if isinstance(store, BringsBlockDoor):
        return store.block_door()
    from tidewheel.services.blocks.service import BlockService

    # Whoever can open the store runs what is in it, with rights of their own.
    near = cast("Store", store)
    return BlockService(near, run_door(store, home), home, code_trusted=True)


def registry_door(store: TaskStore, home: Path) -> RegistryDoor:
    """The registry of a store, or of the server that it stands for."""
    if isinstance(store, BringsRegistryDoor):
        return store.registry_door()
    from tidewheel.services.registry.service import RegistryService

    # Whoever can open the store runs what is in it, with rights of their own.
    return RegistryService(cast("Store", store), run_door(store, home), code_trusted=True)
