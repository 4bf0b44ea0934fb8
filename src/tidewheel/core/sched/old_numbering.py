"""What the bits of rows of format 1 mean. Frozen: nothing here follows the compiler of today.

Theory of operation. Until format 2 a row of the pool held its true prerequisites as a mask, and
an atom of a family at a fixed point was called `family:number`; both were numbers that
`compile_plan` of that time gave while it read a graph. They are given here as it gave them:

- Arrows are read in the order of the graph. The terms of an arrow are read from left to right,
  depth first, and each different one gets the next bit when it is met first.
- The bits of a node are those of its arrows in that order, suicide arrows left out; then one
  for each sequence of a node that runs one instance after the other.
- Families are numbered over all arrows, by (family, outputs, all or any).

This holds as long as a stored definition is compiled to the arrows and terms of that time, in
that order: `tests/spec/test_sched_old_rows.py` has rows that the old version wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.condition import Atom, Condition, Group, Xtrigger
from tidewheel.core.graph.graph import Graph
from tidewheel.core.graph.outputs import SUCCEEDED
from tidewheel.core.sched.plan import AtomMeaning, PreviousInstance, fixed_term, group_term

if TYPE_CHECKING:
    from tidewheel.core.sched.records import TaskRow


def old_atoms(graph: Graph, row: TaskRow) -> tuple[AtomMeaning, ...]:
    """The atoms that the bits of a row stand for."""
    bits, point = row.bits or 0, row.point
    atoms = _atoms(graph, row.name, point) if bits else iter(())
    return tuple(dict.fromkeys(atom for bit, atom in enumerate(atoms) if bits >> bit & 1))


def is_old_key(key: AtomMeaning) -> bool:
    """Whether this is what a family at a fixed point was called; no name has a colon."""
    return key[1].rpartition(":")[2].isdigit() and ":" in key[1]


def new_absolute_key(graph: Graph, key: AtomMeaning) -> AtomMeaning:
    """What an atom at a fixed point is called now."""
    if not is_old_key(key):
        return key
    family, _, number = key[1].rpartition(":")
    groups = list(dict.fromkeys(_groups(graph)))
    if int(number) >= len(groups) or groups[int(number)][0] != family:
        return key  # nothing asks for it
    _, outputs, every = groups[int(number)]
    return (key[0], *group_term(family, outputs, every=every))


def _atoms(graph: Graph, name: str, point: Point) -> Iterator[AtomMeaning]:
    """Those of a node in the order of their bits, at this point."""
    initial = graph.cycling.initial
    for arrow in graph.arrows:
        for target in () if arrow.suicide else arrow.targets:
            if target == name:
                for term in dict.fromkeys(_terms(arrow.condition)):
                    yield (graph.parent_point(term.offset, point), *_meaning(term))
    node = graph.nodes.get(name)
    if node is not None and name in graph.special.sequential:
        before = PreviousInstance(node.sequences).parent_point(point, initial)
        yield from ((before, name, SUCCEEDED) for _ in node.sequences)


def _groups(graph: Graph) -> Iterator[tuple[str, tuple[str, ...], bool]]:
    for arrow in graph.arrows:
        for term in _terms(arrow.condition):
            if isinstance(term, Group):
                yield term.family, term.outputs, term.every


def _terms(condition: Condition) -> Iterator[Atom | Group]:
    if isinstance(condition, Atom | Group):
        yield condition
    elif not isinstance(condition, Xtrigger):
        for term in condition.terms:
            yield from _terms(term)


def _meaning(term: Atom | Group) -> tuple[str, str]:
    if isinstance(term, Atom):
        found = (term.node, term.output)
    else:
        found = group_term(term.family, term.outputs, every=term.every)
    is_fixed = term.offset is not None and term.offset.is_absolute
    return fixed_term(*found) if is_fixed else found
