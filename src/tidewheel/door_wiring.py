"""Which class stands behind the doors that are opened for requests, near or far."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from tidewheel.block_ports import BringsBlockDoor
from tidewheel.ports import Store, TaskStore
from tidewheel.registry_ports import BringsRegistryDoor
from tidewheel.wiring import run_door

if TYPE_CHECKING:
    from tidewheel.block_ports import BlockDoor
    from tidewheel.registry_ports import RegistryDoor


def block_door(store: TaskStore, home: Path) -> BlockDoor:
    """Blocks and objects of a store, or of the server that it stands for."""
    if isinstance(store, BringsBlockDoor):
        return store.block_door()
    from tidewheel.services.block_door import StoreBlockDoor  # noqa: PLC0415 - heavy

    # Whoever can open the store runs what is in it, with rights of their own.
    near = cast("Store", store)
    return StoreBlockDoor(near, run_door(store, home), home, code_trusted=True)


def registry_door(store: TaskStore, home: Path) -> RegistryDoor:
    """The registry of a store, or of the server that it stands for."""
    if isinstance(store, BringsRegistryDoor):
        return store.registry_door()
    from tidewheel.services.registry_door import StoreRegistryDoor  # noqa: PLC0415 - heavy

    # Whoever can open the store runs what is in it, with rights of their own.
    return StoreRegistryDoor(cast("Store", store), run_door(store, home), code_trusted=True)
