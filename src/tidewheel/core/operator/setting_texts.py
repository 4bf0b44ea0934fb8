"""What `set` may name: outputs of a task, and the prerequisites that it has (SEMANTICS §8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tidewheel.core.cycling.calendar import Point
from tidewheel.core.graph.outputs import (
    STANDARD,
    SUCCEEDED,
    standard_name,
    unknown_output_text,
)
from tidewheel.core.operator.selecting import id_text, unique_key, unrefused
from tidewheel.core.sched.dependency_index import NodePlan
from tidewheel.core.sched.pool import Pool
from tidewheel.core.sched.set_outputs import completing
from tidewheel.core.sched.task_state import Key
from tidewheel.errors import Refused

EVERYTHING = "all"
REQUIRED = "required"  # what completes the task
SKIP = "skip"  # what a skipped job would make
XTRIGGER = "xtrigger/"


class Prerequisites(NamedTuple):
    """What is to be satisfied by hand."""

    atoms: tuple[tuple[Point, str, str], ...]
    xtriggers: tuple[str, ...]
    everything: bool


def read_outputs(node: NodePlan, texts: Iterable[str]) -> tuple[str, ...]:
    """The outputs that are meant, each once; none means what completes the task."""
    return tuple(dict.fromkeys(one for text in _split(texts) for one in _meant(node, text)))


def _meant(node: NodePlan, text: str) -> tuple[str, ...]:
    if text == REQUIRED:
        return completing(node)
    if text == SKIP:
        return (*(node.definition.skip.outputs or completing(node)), SUCCEEDED)
    name = standard_name(text)
    custom = [own for own, _ in node.definition.outputs]
    if name not in STANDARD and name not in custom:
        raise Refused(unknown_output_text(node.name, text, [*STANDARD, *custom]))
    return (name,)


def read_atoms(pool: Pool, key: Key, texts: Iterable[str]) -> Prerequisites:
    """`all`, `POINT/NAME[:OUTPUT]` or `xtrigger/LABEL`, each of which the task must have."""

    def meant(text: str) -> Prerequisites:
        if text == EVERYTHING:
            return Prerequisites((), (), everything=True)
        if text.startswith(XTRIGGER):
            labels = _labels(pool, key, text.removeprefix(XTRIGGER))
            return Prerequisites((), labels, everything=False)
        return Prerequisites(_atom(pool, key, text), (), everything=False)

    found = unrefused(pool, _split(texts), meant)
    return Prerequisites(
        tuple(atom for one in found for atom in one.atoms),
        tuple(label for one in found for label in one.xtriggers),
        any(one.everything for one in found),
    )


def _labels(pool: Pool, key: Key, text: str) -> tuple[str, ...]:
    """The xtrigger that is meant, or with `all` every one that the task has."""
    node, point = pool.node(key[1]), key[0]
    known = [label for sequence, label in node.xtriggers if sequence.has(point)]
    label = text.partition(":")[0]
    if label == EVERYTHING:
        return tuple(known)
    if label not in known:
        has = f"only on {', '.join(known)}" if known else "on none"
        raise Refused(f"{id_text(pool, key)} waits for no xtrigger {label!r}; {has}")
    return (label,)


def _atom(pool: Pool, key: Key, text: str) -> tuple[tuple[Point, str, str], ...]:
    task, _, output = text.rpartition(":")
    if not task or "/" in output:
        task, output = text, SUCCEEDED
    known = {f"{id_text(pool, one[:2])}:{one[2]}": one for one in _atoms_of(pool, key)}
    asked = f"{task}:{standard_name(output)}"
    if asked in known:  # also of a parent that the graph has not at this point
        return (known[asked],)
    point, name = unique_key(pool, task)
    wanted = (point, name, standard_name(output))
    asked = f"{id_text(pool, wanted[:2])}:{wanted[2]}"
    if asked not in known:
        needs = f"it needs {', '.join(known)}" if known else "it needs none"
        raise Refused(f'{id_text(pool, key)} does not depend on "{asked}"; {needs}')
    return (wanted,)


def _atoms_of(pool: Pool, key: Key) -> Iterator[tuple[Point, str, str]]:
    """Every atom of a task's prerequisites, a family's as those of its members."""
    point, name = key
    for arrow, _ in pool.node(name).arrows_at(point):
        for leaf in arrow.leaves:
            parent = leaf.parent_point(point, pool.plan.initial)
            if leaf.group is None:
                yield (parent, leaf.node, leaf.output)
            else:
                for member in leaf.group.members:
                    for output in leaf.group.outputs:
                        yield (parent, member, output)


def _split(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from filter(None, (part.strip() for part in text.split(",")))
