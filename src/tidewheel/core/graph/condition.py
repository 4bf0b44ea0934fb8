"""The left side of an arrow: what must have happened before its right side may run.

Values only. A family stays one term whatever its size, so that an arrow between two families of
a thousand members is two thousand edges and not a million (SEMANTICS §2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidewheel.core.cycling.offset import Offset


@dataclass(frozen=True, slots=True)
class Atom:
    """An output of one task; without an offset, at the child's own point."""

    node: str
    output: str
    offset: Offset | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """An output of each or of any member of a family; `finish` is either of two outputs."""

    family: str
    outputs: tuple[str, ...]
    every: bool
    offset: Offset | None = None


@dataclass(frozen=True, slots=True)
class XtriggerTerm:
    """Something outside of the workflow that must have happened."""

    label: str


@dataclass(frozen=True, slots=True)
class AllOf:
    """True if every term is."""

    terms: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """True if one of the terms is."""

    terms: tuple[Condition, ...]


Condition = Atom | Group | XtriggerTerm | AllOf | AnyOf
Leaf = Atom | Group | XtriggerTerm


def all_of(terms: tuple[Condition, ...]) -> Condition:
    """One term needs no conjunction, and a conjunction in a conjunction is the same one."""
    flat: list[Condition] = []
    for term in terms:
        flat.extend(term.terms if isinstance(term, AllOf) else (term,))
    return flat[0] if len(flat) == 1 else AllOf(tuple(flat))


def any_of(terms: tuple[Condition, ...]) -> Condition:
    flat: list[Condition] = []
    for term in terms:
        flat.extend(term.terms if isinstance(term, AnyOf) else (term,))
    return flat[0] if len(flat) == 1 else AnyOf(tuple(flat))


def leaves(condition: Condition) -> Iterator[Leaf]:
    """Atoms, groups and xtriggers from left to right."""
    waiting: list[Condition] = [condition]
    while waiting:
        term = waiting.pop()
        if isinstance(term, AllOf | AnyOf):
            waiting.extend(reversed(term.terms))
        else:
            yield term
