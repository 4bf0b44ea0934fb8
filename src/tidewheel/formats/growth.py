"""Bounds how much a definition may grow while it is read, so that a giant is known at once.

A line of a few bytes may stand for a hundred thousand tasks. What is about to be made is
counted before it is made: a process that has others to serve stops there, and has the
definition read by a process of its own. Without a bound, only the limits of each kind of
definition hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tidewheel.errors import Refused
from tidewheel.lazy_dataclasses import dataclass

BYTES_PER_NAME = 20  # a text of so many bytes counts as one name


class Outgrown(Refused):
    """A definition is larger than this process may read."""

    code = "too_large"
    http_status = 422

    def __init__(self, size_max: int) -> None:
        self.size_max = size_max
        super().__init__(f"this stands for more than {size_max} tasks, chains or values")


@dataclass(slots=True)
class _Growth:
    size_max: int
    size: int = 0


_growth: ContextVar[_Growth | None] = ContextVar("growth", default=None)


@contextmanager
def bounded_growth(size_max: int) -> Iterator[None]:
    """Bounds what definitions that are read in this block grow to, all together."""
    before = _growth.set(_Growth(size_max))
    try:
        yield
    finally:
        _growth.reset(before)


def grow(count: int) -> None:
    """Counts names, chains or values that are about to be made; raises Outgrown if these are
    more than the bound."""
    growth = _growth.get()
    if growth is not None:
        growth.size += count
        if growth.size > growth.size_max:
            raise Outgrown(growth.size_max)
