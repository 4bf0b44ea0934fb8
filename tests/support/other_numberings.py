"""Orders in which another version might number the prerequisites of the same graph."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import TypeVar

One = TypeVar("One")


def backwards(things: tuple[One, ...]) -> Iterable[One]:
    return things[::-1]


class Shuffled:
    """Another one for every seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __call__(self, things: tuple[One, ...], /) -> Iterable[One]:
        drawn = list(things)
        Random(f"{self._seed} {len(drawn)}").shuffle(drawn)
        return drawn
