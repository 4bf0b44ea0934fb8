"""Everything that one database keeps."""

from __future__ import annotations

from typing import Protocol

from tidewheel.ports.blocks import BlockStore
from tidewheel.ports.notebooks import NotebookStore
from tidewheel.ports.registry import RegistryStore
from tidewheel.ports.runs import RunStore
from tidewheel.ports.server import AccessStore, EventStore
from tidewheel.ports.tasks import TaskStore


class Store(
    TaskStore,
    RunStore,
    AccessStore,
    EventStore,
    RegistryStore,
    BlockStore,
    NotebookStore,
    Protocol,
):
    """All of it: tasks, runs and who may use them, in one database."""
