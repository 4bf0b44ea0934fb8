"""A store in memory: the same scripts over dictionaries, for simulation and tests."""

from tests.kit.memory.store import MemoryStore

__all__ = ["MemoryStore"]
