"""Bounds how much a definition may grow while it is read, so that a giant is known at once.

A line of a few bytes may stand for a hundred thousand tasks. What is about to be made is
counted before it is made: a process that has others to serve stops there, and has the
definition read by a process of its own. Without a bound, only the limits of each kind of
definition hold. Where work grows, and where it waits for a template, it can also be given up,
because nobody waits for it any more.
"""

from __future__ import annotations

import threading
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
        super().__init__(f"this expands to more than {size_max} tasks, graph lines or values")


class GivenUp(Refused):
    """Nobody waits for this any more."""

    code = "given_up"

    def __init__(self) -> None:
        super().__init__("this was stopped, because the caller no longer waits for it")


@dataclass(slots=True)
class _Growth:
    size_max: int
    given_up: threading.Event | None
    size: int = 0


_growth: ContextVar[_Growth | None] = ContextVar("growth", default=None)


@contextmanager
def bounded_growth(size_max: int, given_up: threading.Event | None = None) -> Iterator[None]:
    """Bounds what definitions that are read in this block grow to, all together. Once the
    event is set, from any thread, they are not read any further."""
    before = _growth.set(_Growth(size_max, given_up))
    try:
        yield
    finally:
        _growth.reset(before)


def grow(count: int) -> None:
    """Counts names, graph lines or values that are about to be made; raises Outgrown if these
    are more than the bound, GivenUp if nobody waits for them."""
    growth = _growth.get()
    if growth is not None:
        go_on()
        growth.size += count
        if growth.size > growth.size_max:
            raise Outgrown(growth.size_max)


def go_on() -> None:
    """Raises GivenUp if nobody waits any more for the definition that is read."""
    growth = _growth.get()
    if growth is not None and growth.given_up is not None and growth.given_up.is_set():
        raise GivenUp()
