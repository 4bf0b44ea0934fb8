"""A store in memory: the same scripts over dictionaries, for simulation and tests."""

from tidewheel.store.memory.store import MemoryStore

__all__ = ["MemoryStore"]
