"""Several processes at the same moment: threads, each with a store of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from tests.conformance.door import Door
from tests.conformance.worlds import World
from tests.support.patience import allowed

MEET_SECONDS_MAX = allowed(30)
Thing = TypeVar("Thing")
Rounds = Callable[[Iterable[Thing]], Iterator[Thing]]


def together(world: World, *parts: Callable[[Door], Any]) -> list[Any]:
    """Let each part run against its own store, all starting at once; their results in order."""
    return in_rounds(world, *(lambda door, _, part=part: part(door) for part in parts))


def in_rounds(world: World, *parts: Callable[[Door, Rounds[Any]], Any]) -> list[Any]:
    """The same for parts that walk through a list: they begin each step at the same moment."""
    meeting = threading.Barrier(len(parts))

    def rounds(things: Iterable[Thing]) -> Iterator[Thing]:
        for thing in things:
            meeting.wait(MEET_SECONDS_MAX)
            yield thing

    def run(part: Callable[[Door, Rounds[Any]], Any]) -> Any:
        try:
            door = world.open()
            door.now()  # connected before it begins
            meeting.wait(MEET_SECONDS_MAX)
            return part(door, rounds)
        except BaseException:
            meeting.abort()  # nobody need wait for who will not come
            raise

    with ThreadPoolExecutor(len(parts)) as threads:
        running = [threads.submit(run, part) for part in parts]
        # The first cause, not those who waited in vain.
        failures = [future.exception() for future in running]
        for failure in failures:
            if failure is not None and not isinstance(failure, threading.BrokenBarrierError):
                raise failure
        return [future.result() for future in running]
